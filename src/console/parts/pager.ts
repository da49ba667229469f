/**
 * A list that comes a page at a time: its table, two buttons that turn pages, and what is said.
 *
 * Invariants: 1. A page is asked for when somebody wants it, never by itself. 2. What comes late
 * does not replace what was asked for after it.
 */
import type { Notice } from "./action.js";
import { button, element } from "./elements.js";
import type { ListPage } from "./shapes.js";
import type { Table } from "./table.js";

/** What a request has of the page that it asks for. */
export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

const PAGE_ITEMS = 100;

export class Pager<Item> {
  private readonly back = button("Previous page", () => this.move(-1));
  private readonly next = button("Next page", () => this.move(1));
  readonly root: HTMLElement;
  /** Where each page up to the next one begins. */
  private cursors: (string | null)[] = [null];
  private at = 0;
  private loads = 0;

  /** `noun`: one of them, and several. */
  constructor(
    private readonly table: Table<Item>,
    private readonly notice: Notice,
    private readonly noun: readonly [string, string],
    private readonly load: (page: PageRequest) => Promise<ListPage<Item>>,
  ) {
    for (const part of [table.root, this.back, this.next]) part.hidden = true;
    const turn = element("div", { class: "row" }, this.back, this.next);
    this.root = element("div", {}, table.root, turn);
  }

  /** The first page of another list. */
  begin(): void {
    this.cursors = [null];
    this.at = 0;
    void this.ask();
  }

  /** The page that is shown, as it is now. */
  reload(): void {
    if (!this.table.root.hidden) void this.ask();
  }

  private move(step: number): void {
    this.at += step;
    void this.ask();
  }

  private async ask(): Promise<void> {
    const load = ++this.loads;
    const cursor = this.cursors[this.at] ?? null;
    try {
      const asked = { limit: PAGE_ITEMS, ...(cursor === null ? {} : { cursor }) };
      const page = await this.load(asked);
      if (load === this.loads) this.show(page);
    } catch (error) {
      if (load === this.loads) this.notice.fail(error);
    }
  }

  private show({ items, nextCursor, hasMore }: ListPage<Item>): void {
    this.cursors.length = this.at + 1;
    if (hasMore) this.cursors.push(nextCursor);
    this.table.update(items);
    this.table.root.hidden = false;
    const isPaged = hasMore || this.at > 0;
    this.back.hidden = !isPaged;
    this.next.hidden = !isPaged;
    this.back.disabled = this.at === 0;
    this.next.disabled = !hasMore;
    const place = isPaged ? `Page ${this.at + 1}: ` : "";
    this.notice.say("none", `${place}${items.length} ${this.noun[items.length === 1 ? 0 : 1]}.`);
  }
}
