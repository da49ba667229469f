/**
 * The locks whose names begin with a text, a page at a time.
 *
 * Invariants: 1. A page is asked for when somebody wants it, never by itself.
 */
import { Notice } from "../parts/action.js";
import type { Api } from "../parts/api.js";
import { button, element, form, labelled, select } from "../parts/elements.js";
import type { LockItem, LockPage } from "../parts/shapes.js";
import { Table } from "../parts/table.js";
import { count, duration, printable, shortened } from "../parts/words.js";

const PAGE_LOCKS = 100;
const GOT = 4;

/** One lock: the ephemeral and the persistent one of a name are two. */
export interface LockName {
  readonly resource: string;
  readonly durability: number;
}

export class LockList {
  private readonly prefix = element("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly durability = select(["1", "persistent"], ["0", "ephemeral"]);
  private readonly held = select(["held", "held ones"], ["all", "all records"]);
  private readonly notice = new Notice();
  private readonly back = button("Previous page", () => this.move(-1));
  private readonly next = button("Next page", () => this.move(1));
  private readonly table: Table<LockItem>;
  readonly root: HTMLElement;
  /** Where each page up to the next one begins. */
  private cursors: (string | null)[] = [null];
  private at = 0;
  private asked = { prefix: "", durability: 1, heldOnly: true };

  /** `open`: shows one of them. */
  constructor(
    private readonly api: Api,
    open: (lock: LockName) => void,
  ) {
    this.table = new Table<LockItem>(
      "Locks",
      [
        {
          title: "Lock",
          cell: ({ resource }) => ({
            text: shortened(printable(resource)),
            isName: true,
            run: () => open({ resource, durability: this.asked.durability }),
          }),
        },
        {
          title: "Holder",
          cell: ({ owner }) =>
            owner === null ? "–" : { text: shortened(printable(owner), 60), isName: true },
        },
        { title: "Token", isNumber: true, cell: ({ fencingToken }) => String(fencingToken) },
        {
          title: "Lease left",
          isNumber: true,
          cell: ({ held, expiresInMs }) => (held ? duration(Number(expiresInMs)) : "–"),
        },
        { title: "Waiting", isNumber: true, cell: ({ waiters }) => count(waiters) },
        {
          title: "Note",
          cell: ({ note }) =>
            note === null ? "–" : { text: shortened(printable(note), 60), isName: true },
        },
      ],
      ({ resource, fencingToken }) => JSON.stringify([resource, String(fencingToken)]),
      "No lock begins like this.",
    );
    for (const part of [this.table.root, this.back, this.next]) part.hidden = true;
    const ask = form(
      () => this.begin(),
      labelled("Locks that begin with", this.prefix, "empty: all of them"),
      labelled("Kind in the list", this.durability),
      labelled("Show", this.held),
      element("button", { type: "submit" }, "List"),
    );
    const turn = element("div", { class: "row" }, this.back, this.next);
    this.root = element("div", {}, ask, this.notice.root, this.table.root, turn);
  }

  /** The page that is shown, as it is now. */
  reload(): void {
    if (!this.table.root.hidden) void this.load();
  }

  private begin(): void {
    const { prefix, durability, held } = this;
    const heldOnly = held.value === "held";
    this.asked = { prefix: prefix.value, durability: Number(durability.value), heldOnly };
    this.cursors = [null];
    this.at = 0;
    void this.load();
  }

  private move(step: number): void {
    this.at += step;
    void this.load();
  }

  private async load(): Promise<void> {
    const cursor = this.cursors[this.at] ?? null;
    try {
      const request = { ...this.asked, limit: PAGE_LOCKS, ...(cursor === null ? {} : { cursor }) };
      const page = await this.api.post<LockPage>("/v1/locks/list", request);
      if (page.type !== GOT) throw new Error(`the node answered type ${page.type}`);
      this.show(page);
    } catch (error) {
      this.notice.fail(error);
    }
  }

  private show({ items, nextCursor, hasMore }: LockPage): void {
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
    this.notice.say("none", `${place}${items.length} ${items.length === 1 ? "lock" : "locks"}.`);
  }
}
