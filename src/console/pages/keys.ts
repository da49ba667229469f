/**
 * The keys below a prefix, a page at a time, and the value of one of them.
 *
 * Invariants: 1. Nothing is read again by itself: values come along.
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
import { Pager, type PageRequest } from "../parts/pager.js";
import type { KeyItem, KeyPage } from "../parts/shapes.js";
import { Table } from "../parts/table.js";
import { bytesOf, dumpOf, SHOWN_MAX_BYTES, sizeOf, textOf } from "../parts/value.js";
import { bytes, count, moment, printable, shortened } from "../parts/words.js";

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
  private readonly pager: Pager<KeyItem>;
  readonly root: HTMLElement;
  private asked = { prefixKey: "", durability: 1 };

  constructor(private readonly context: Context) {
    const table = new Table<KeyItem>(
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
    this.pager = new Pager(table, this.notice, ["key", "keys"], (page) => this.load(page));
    const ask = form(
      () => this.begin(),
      labelled("Keys that begin with", this.prefix, "empty: all of them"),
      labelled("Kind", this.durability),
      element("button", { type: "submit" }, "Show"),
    );
    this.root = element("div", {}, ask, this.notice.root, this.pager.root, this.opened);
  }

  private begin(): void {
    this.asked = { prefixKey: this.prefix.value, durability: Number(this.durability.value) };
    this.pager.begin();
  }

  private async load(page: PageRequest): Promise<KeyPage> {
    fill(this.opened);
    const request = { ...this.asked, ...page };
    const answer = await this.context.api.post<KeyPage>("/v1/kv/scan-all-by-prefix", request);
    if (answer.type !== GOT) throw new Error(`the node answered type ${answer.type}`);
    return answer;
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
