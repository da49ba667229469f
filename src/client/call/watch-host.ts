/**
 * What watches need from the engine. Types only.
 *
 * Invariants: 1. A watch is asked for at one endpoint at a time, and chooses none by itself.
 */
import type { Target } from "./try.js";
import type { WatchLink, WatchListener } from "./watch-link.js";

/** Where watches are asked for. */
export interface WatchHost {
  /**
   * Asks a node for a watch: the one that `last` named as `route`, if it may be used; else another
   * one than `last` if there is. Null: this wire has no streams.
   */
  openWatch(
    first: Uint8Array,
    last: WatchTarget | null,
    route: string | null,
    listener: WatchListener,
  ): WatchTarget | null;
  /** The node answered, or could not be reached. */
  watchWorked(target: WatchTarget): void;
  watchFailed(target: WatchTarget): void;
  /** The client is closed. */
  readonly isClosed: boolean;
  /** What closing the client ends. */
  readonly watches: Set<{ close(): void }>;
}

/** A watch at one endpoint. */
export interface WatchTarget {
  readonly target: Target;
  readonly link: WatchLink;
}
