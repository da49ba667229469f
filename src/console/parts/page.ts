/** What a page of the console is, and what it gets. Types only. */
import type { Api } from "./api.js";
import type { History } from "./figures.js";
import type { Overview } from "./shapes.js";

export interface Context {
  readonly api: Api;
  readonly history: History;
  /** As the node answered last; null: not yet, or not any more. */
  overview(): Overview | null;
}

export interface View {
  readonly root: HTMLElement;
  /** Brings it up to date, after each new overview; null: nothing here changes by itself. */
  readonly refresh: (() => Promise<void>) | null;
}

export interface Page {
  /** In the address, behind `#/`. */
  readonly name: string;
  readonly title: string;
  open(context: Context): View;
}
