/**
 * The keys below a prefix, a page at a time, and the value of one of them.
 *
 * Invariants: 1. A page is asked for when somebody wants it, never by itself: values come along.
 */
import { Notice } from "../parts/action.js";
import type { Context, Page } from "../parts/page.js";
import {
  button,
  element,
  facts,
  fill,
  form,
  labelled,
  nameOf,
  select,
  setText,
} from "../parts/elements.js";
import type { KeyItem, KeyPage } from "../parts/shapes.js";
import { Table } from "../parts/table.js";
import { bytesOf, dumpOf, SHOWN_MAX_BYTES, sizeOf, textOf } from "../parts/value.js";
import { bytes, count, moment, printable, shortened } from "../parts/words.js";

const PAGE_KEYS = 100;
const GOT = 3;

/** The value of one key. */
function valueView(item: KeyItem): HTMLElement {
  const value = bytesOf(item.value ?? "");
  const text = textOf(value);
  const shown = element("pre", { tabindex: "0", "aria-label": "Value" });
  const asText = button("Text", () => show(true));
  const asHex = button("Hexadecimal", () => show(false));
  const show = (isText: boolean): void => {
    asText.setAttribute("aria-pressed", String(isText));
    asHex.setAttribute("aria-pressed", String(!isText));
    setText(shown, isText ? (text ?? "") : dumpOf(value));
  };
  asText.disabled = text === null;
  show(text !== null);
  const rest = value.length - SHOWN_MAX_BYTES;
  return element(
    "section",
    { class: "card value" },
    element("h2", { tabindex: "-1" }, "Value"),
    facts([
      ["Key", nameOf(printable(item.key))],
      ["Size", bytes(value.length)],
      ["Revision", count(item.revision)],
      ["Changed", moment(item.lastModified.l)],
      ["Expires", moment(item.expires.l)],
    ]),
    element("div", { class: "row" }, asText, asHex),
    shown,
    rest > 0 ? element("p", { class: "muted" }, `${bytes(rest)} more are not shown.`) : null,
  );
}

class Browser {
  private readonly prefix = element("input", {
    type: "text",
    autocomplete: "off",
    spellcheck: "false",
  });
  private readonly durability = select(["1", "persistent"], ["0", "ephemeral"]);
  private readonly notice = new Notice();
  private readonly opened = element("div");
  private readonly back = button("Previous page", () => this.move(-1));
  private readonly next = button("Next page", () => this.move(1));
  private readonly table: Table<KeyItem>;
  readonly root: HTMLElement;
  /** Where each page up to the next one begins. */
  private cursors: (string | null)[] = [null];
  private at = 0;
  private asked = { prefixKey: "", durability: 1 };

  constructor(private readonly context: Context) {
    this.table = new Table<KeyItem>(
      "Keys",
      [
        {
          title: "Key",
          cell: (item) => ({
            text: shortened(printable(item.key)),
            isName: true,
            run: () => this.open(item),
          }),
        },
        { title: "Size", isNumber: true, cell: ({ value }) => bytes(sizeOf(value ?? "")) },
        { title: "Revision", isNumber: true, cell: ({ revision }) => count(revision) },
        { title: "Changed", cell: ({ lastModified }) => moment(lastModified.l) },
        { title: "Expires", cell: ({ expires }) => moment(expires.l) },
      ],
      // What is opened is what was shown: a key that changed is another row.
      ({ key, revision }) => JSON.stringify([key, revision]),
      "No key begins like this.",
    );
    this.table.root.hidden = true;
    this.back.hidden = true;
    this.next.hidden = true;
    const ask = form(
      () => this.begin(),
      labelled("Keys that begin with", this.prefix, "empty: all of them"),
      labelled("Kind", this.durability),
      element("button", { type: "submit" }, "Show"),
    );
    const turn = element("div", { class: "row" }, this.back, this.next);
    this.root = element("div", {}, ask, this.notice.root, this.table.root, turn, this.opened);
  }

  private begin(): void {
    this.asked = { prefixKey: this.prefix.value, durability: Number(this.durability.value) };
    this.cursors = [null];
    this.at = 0;
    void this.load();
  }

  private move(step: number): void {
    this.at += step;
    void this.load();
  }

  private async load(): Promise<void> {
    fill(this.opened);
    const cursor = this.cursors[this.at] ?? null;
    try {
      const request = { ...this.asked, limit: PAGE_KEYS, ...(cursor === null ? {} : { cursor }) };
      const page = await this.context.api.post<KeyPage>("/v1/kv/scan-all-by-prefix", request);
      if (page.type !== GOT) throw new Error(`the node answered type ${page.type}`);
      this.show(page);
    } catch (error) {
      this.notice.fail(error);
    }
  }

  private show({ items, nextCursor, hasMore }: KeyPage): void {
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
    this.notice.say("none", `${place}${items.length} ${items.length === 1 ? "key" : "keys"}.`);
  }

  private open(item: KeyItem): void {
    const view = valueView(item);
    fill(this.opened, view);
    view.querySelector("h2")?.focus();
  }
}

export const KEYS: Page = {
  name: "keys",
  title: "Keys",
  open: (context) => ({ root: new Browser(context).root, refresh: null }),
};
