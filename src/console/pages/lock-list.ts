/** The locks whose names begin with a text, a page at a time. */
import { Notice } from "../parts/action.js";
import type { Api } from "../parts/api.js";
import { element, form, labelled, select } from "../parts/elements.js";
import { Pager, type PageRequest } from "../parts/pager.js";
import type { LockItem, LockPage } from "../parts/shapes.js";
import { Table } from "../parts/table.js";
import { count, duration, printable, shortened } from "../parts/words.js";

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
  private readonly pager: Pager<LockItem>;
  readonly root: HTMLElement;
  private asked = { prefix: "", durability: 1, heldOnly: true };

  /** `open`: shows one of them. */
  constructor(
    private readonly api: Api,
    open: (lock: LockName) => void,
  ) {
    const table = new Table<LockItem>(
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
    this.pager = new Pager(table, this.notice, ["lock", "locks"], (page) => this.load(page));
    const ask = form(
      () => this.begin(),
      labelled("Locks that begin with", this.prefix, "empty: all of them"),
      labelled("Kind in the list", this.durability),
      labelled("Show", this.held),
      element("button", { type: "submit" }, "List"),
    );
    this.root = element("div", {}, ask, this.notice.root, this.pager.root);
  }

  /** The page that is shown, as it is now. */
  reload(): void {
    this.pager.reload();
  }

  private begin(): void {
    const { prefix, durability, held } = this;
    const heldOnly = held.value === "held";
    this.asked = { prefix: prefix.value, durability: Number(durability.value), heldOnly };
    this.pager.begin();
  }

  private async load(page: PageRequest): Promise<LockPage> {
    const answer = await this.api.post<LockPage>("/v1/locks/list", { ...this.asked, ...page });
    if (answer.type !== GOT) throw new Error(`the node answered type ${answer.type}`);
    return answer;
  }
}
