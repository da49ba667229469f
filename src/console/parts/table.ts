/**
 * A table that is brought up to date in place.
 *
 * Invariants: 1. A row keeps its elements as long as its key is there: focus stays. 2. At most
 * ROWS_STEP rows more than somebody asked for are in the document. 3. On narrow screens a row is
 * a card, and still a row for whoever cannot see that: the roles are written out.
 */
import { badge, button, element, nameOf, setText } from "./elements.js";
import { plural, type Tone } from "./words.js";

const ROWS_STEP = 100;

export interface Cell {
  readonly text: string;
  readonly tone?: Tone;
  /** Somebody gave this name. */
  readonly isName?: boolean;
  /** What a button in this cell does. */
  readonly run?: () => void;
}

export interface Column<R> {
  readonly title: string;
  readonly isNumber?: boolean;
  cell(row: R): Cell | string;
}

interface Shown {
  readonly line: HTMLTableRowElement;
  /** What each cell looked like. */
  readonly marks: string[];
}

function contentOf({ text, tone, isName, run }: Cell): Node {
  if (run !== undefined) return button(text, run, isName === true ? "link name" : "small");
  if (tone !== undefined) return badge(tone, text);
  return isName === true ? nameOf(text) : document.createTextNode(text);
}

export class Table<R> {
  readonly root: HTMLElement;
  private readonly body = element("tbody", { role: "rowgroup" });
  private readonly more: HTMLButtonElement;
  private readonly empty: HTMLElement;
  private readonly table: HTMLElement;
  private readonly shown = new Map<string, Shown>();
  private rows: readonly R[] = [];
  private limit = ROWS_STEP;

  constructor(
    caption: string,
    private readonly columns: readonly Column<R>[],
    private readonly keyOf: (row: R) => string,
    emptyText: string,
  ) {
    const heads = columns.map(({ title, isNumber }) =>
      element("th", { scope: "col", role: "columnheader", class: isNumber ? "number" : "" }, title),
    );
    const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...heads));
    this.table = element(
      "table",
      { role: "table" },
      element("caption", {}, caption),
      head,
      this.body,
    );
    this.empty = element("p", { class: "empty" }, emptyText);
    this.more = button("", () => {
      this.limit += ROWS_STEP;
      this.update(this.rows);
    });
    this.root = element("div", { class: "table" }, this.table, this.empty, this.more);
    this.update([]);
  }

  update(rows: readonly R[]): void {
    this.rows = rows;
    const seen = rows.slice(0, this.limit);
    const keys = new Set(seen.map(this.keyOf));
    for (const [key, { line }] of this.shown) {
      if (keys.has(key)) continue;
      line.remove();
      this.shown.delete(key);
    }
    for (const [at, row] of seen.entries()) this.put(row, at);
    this.empty.hidden = rows.length > 0;
    this.table.hidden = rows.length === 0;
    this.more.hidden = rows.length <= this.limit;
    setText(this.more, `Show more: ${plural(rows.length - this.limit, "row")} left`);
  }

  private put(row: R, at: number): void {
    const key = this.keyOf(row);
    let shown = this.shown.get(key);
    if (shown === undefined) {
      const cells = this.columns.map(({ title, isNumber }) =>
        element("td", { role: "cell", "data-title": title, class: isNumber ? "number" : "" }),
      );
      shown = { line: element("tr", { role: "row" }, ...cells), marks: [] };
      this.shown.set(key, shown);
    }
    for (const [column, { cell }] of this.columns.entries()) {
      const made = cell(row);
      const whole = typeof made === "string" ? { text: made } : made;
      const mark = `${whole.tone ?? ""}|${whole.isName ?? ""}|${whole.text}`;
      if (shown.marks[column] === mark) continue;
      shown.marks[column] = mark;
      shown.line.cells[column]?.replaceChildren(contentOf(whole));
    }
    const there = this.body.rows[at];
    if (there !== shown.line) this.body.insertBefore(shown.line, there ?? null);
  }
}
