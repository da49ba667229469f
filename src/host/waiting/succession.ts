/**
 * The heirs of one lock at the leader of its group: the list as it was applied last, the grant
 * that was told last ahead of it, and what is on its way for the lock.
 *
 * Pure memory of one leadership; owns the position along the list. Invariants: 1. The position is
 * ahead of the row only by releases that are on their way into the log, one behind the other. 2.
 * What could say otherwise than the list is known from its proposal until it is applied or certain
 * to have no effect; where nobody hears what became of it, until something that was proposed
 * behind it is applied, as a log keeps the order. 3. An heir that is the base and was not told is
 * known as such.
 *
 * Its counterpart in the searches is `test/unit/machine/succession/leader.ts`: `position`,
 * `isUndisturbed`, `isReleased` and `isTried` are the same here, the second stricter: no try is on
 * its way, of whomever. `read` is what `applyOldest` does with the position, and `untold` is what
 * `followUp` goes by.
 */
import { equalBytes } from "../../base/bytes.js";
import {
  type Ask,
  type Heir,
  type SuccessionRow,
  isInTime,
  isOrphaned,
} from "../../machine/locks/succession.js";

export type ListedRow = SuccessionRow<Uint8Array, bigint>;
export type ListedHeir = Heir<Uint8Array, bigint>;
export type NamedAsk = Ask<Uint8Array, bigint>;

/** A command for the lock that is on its way. */
export interface Passage {
  /** In the order of the proposals. */
  readonly number: number;
  /** "harmless": it can move nothing but what the list says. */
  readonly kind: "try" | "unlock" | "other" | "harmless";
  /** Whom it is of; null: nobody. */
  readonly owner: Uint8Array | null;
  /** Of an unlock; null: it names no grant. */
  readonly token: bigint | null;
  /** Nobody hears what became of it. */
  isDoubtful: boolean;
}

/** A list that goes its way, and whom it names. */
export interface OpenList {
  /** It takes the place of the one before it; false: it lengthens that one. */
  readonly isAnew: boolean;
  readonly added: readonly NamedAsk[];
}

/** The lease of an heir that is told must be over so long before the list (ms). */
const MARGIN_MS = 100;
const NOBODY: readonly ListedHeir[] = [];

export class Succession {
  /** As read last; null: there is none, or it names neither heirs nor an acquire. */
  row: ListedRow | null = null;
  /** The grant that was told last, ahead of the row. */
  position: ListedHeir | null = null;
  /** The base of the row, an heir that was not told of it. */
  untold: bigint | null = null;
  /** It is counted among the lists of former leaders. */
  isCounted = false;
  /** Somebody whom the list names may be gone, or stand behind one who waits: it is looked at. */
  isDoubted = false;
  /** Those that are on their way, in order. */
  private lists: readonly OpenList[] = [];
  /** Where in the list the next heir stands. */
  private nextAt = 0;
  private toldToken = -1n;
  private issued = 0;
  private passages: Passage[] = [];
  private waits: { readonly token: bigint; readonly then: () => void }[] = [];

  constructor(readonly term: number) {}

  /** The heirs behind the position, in a list of this term. */
  get ahead(): readonly ListedHeir[] {
    return this.next === null ? NOBODY : (this.row?.heirs.slice(this.nextAt) ?? NOBODY);
  }

  /** The next one, in a list of this term; null: nobody. */
  get next(): ListedHeir | null {
    const { row } = this;
    if (row?.isHeld !== true || row.listTerm !== this.term) return null;
    return row.heirs[this.nextAt] ?? null;
  }

  get isListOpen(): boolean {
    return this.lists.length > 0;
  }

  /** One that takes the place of all before it is on its way. */
  get isRewritten(): boolean {
    return this.lists.some(({ isAnew }) => isAnew);
  }

  /** Those who follow when all lists that are on their way are written. */
  get coming(): readonly NamedAsk[] {
    let coming: readonly NamedAsk[] = this.ahead;
    for (const { isAnew, added } of this.lists) coming = isAnew ? added : [...coming, ...added];
    return coming;
  }

  /** Releases go by it: there are heirs, or may be, or one was told ahead of the row. */
  get isActive(): boolean {
    return this.position !== null || this.isListOpen || this.next !== null;
  }

  /** There is no list of this term, or one that says otherwise is on its way. */
  get isCleared(): boolean {
    return this.next === null || this.isListOpen;
  }

  /**
   * Nothing of it is needed any more. What is doubtful is in the log before all lists to come, and
   * applied when these are.
   */
  get isIdle(): boolean {
    const isWaitedFor = this.untold !== null || this.waits.length > 0;
    return !this.isActive && !isWaitedFor && this.isAllDoubtful;
  }

  /** The list is of a former leader, and may still be followed. */
  isOrphaned(leaseNowMs: number): boolean {
    const { row, term } = this;
    return row !== null && isOrphaned(row, { term, nowMs: leaseNowMs });
  }

  /** Told at `leaseNowMs`, the lease of `heir` is over before the list is. */
  isInTime(heir: ListedHeir, leaseNowMs: number): boolean {
    return this.row !== null && isInTime(this.row, heir, leaseNowMs, MARGIN_MS);
  }

  /** The row as it is now, with all that was applied in this turn. */
  read(row: ListedRow | null): void {
    const { position, term } = this;
    const named = this.row?.listTerm === term ? this.row.heirs : NOBODY;
    this.row = row;
    this.nextAt = 0;
    if (position !== null) {
      const heirs = row?.isHeld === true ? row.heirs : NOBODY;
      const at = heirs.findIndex(({ token }) => token === position.token);
      this.position = heirs[at] ?? null;
      this.nextAt = at + 1;
    }
    const base = row?.isHeld === true ? row.base : null;
    if (base?.token !== this.untold) this.untold = null;
    if (base !== null) this.seeBase(base, named);
    if (this.position === null) this.endWaits();
  }

  private seeBase(
    { token, owner, waitId, attempt }: ListedRow["base"],
    named: readonly ListedHeir[],
  ): void {
    if (token <= this.toldToken) return;
    const isIt = (ask: NamedAsk): boolean =>
      ask.waitId === waitId && ask.attempt === attempt && equalBytes(ask.owner, owner);
    const isNaming = this.lists.some(({ added }) => added.some(isIt));
    if (isNaming || named.some((heir) => heir.token === token)) this.untold = token;
  }

  /** Somebody was told of the grant. */
  told(token: bigint): void {
    if (token > this.toldToken) this.toldToken = token;
    if (this.untold !== null && this.untold <= token) this.untold = null;
  }

  /** The next one is told of its grant, as the release before it is on its way. */
  stepTo(heir: ListedHeir): void {
    this.position = heir;
    this.nextAt++;
    this.told(heir.token);
  }

  /** Nothing is on its way that could move the list otherwise. */
  get isUndisturbed(): boolean {
    return this.passages.length === 0;
  }

  /** Of all that is on its way nobody hears. */
  get isAllDoubtful(): boolean {
    return this.passages.every(({ isDoubtful }) => isDoubtful);
  }

  /** A release of that grant is on its way. */
  isReleased(token: bigint, owner: Uint8Array): boolean {
    const isIt = (passage: Passage): boolean =>
      passage.token === null ? isOf(passage, owner) : passage.token === token;
    return this.passages.some((passage) => passage.kind === "unlock" && isIt(passage));
  }

  /** A try-lock of `owner` is on its way. */
  isTried(owner: Uint8Array): boolean {
    return this.passages.some((passage) => passage.kind === "try" && isOf(passage, owner));
  }

  /** A command goes its way. */
  begin(kind: Passage["kind"], owner: Uint8Array | null, token: bigint | null): Passage {
    const passage = { number: ++this.issued, kind, owner, token, isDoubtful: false };
    if (kind !== "harmless") this.passages.push(passage);
    return passage;
  }

  /** What became of it: it was applied, or certainly had no effect, or nobody knows. */
  end(passage: Passage, how: "applied" | "void" | "unknown"): void {
    passage.isDoubtful = how === "unknown";
    if (passage.isDoubtful || this.passages.length === 0) return;
    const isOpen = ({ number, isDoubtful }: Passage): boolean =>
      number !== passage.number && !(how === "applied" && isDoubtful && number < passage.number);
    this.passages = this.passages.filter(isOpen);
  }

  /** A list goes its way. */
  beginList(isAnew: boolean, added: readonly NamedAsk[]): OpenList {
    const list = { isAnew, added };
    this.lists = [...this.lists, list];
    return list;
  }

  /** It was applied, and the row was read since; or it will not be. */
  endList(list: OpenList): void {
    this.lists = this.lists.filter((each) => each !== list);
  }

  /** The row does not show the grant of `heir`, which was told. */
  isUnshown({ token }: ListedHeir): boolean {
    const { position, row } = this;
    if (position === null || position.token < token) return false;
    return row?.heirs.some((heir) => heir.token === token) === true;
  }

  /** Calls `then` as soon as the row shows what was told last, or this is over. */
  whenShown(then: () => void): void {
    if (this.position === null) return then();
    this.waits.push({ token: this.position.token, then });
  }

  /** The row has come to `token`. */
  shows(token: bigint): void {
    while (this.waits[0] !== undefined && this.waits[0].token <= token) this.waits.shift()?.then();
  }

  endWaits(): void {
    const { waits } = this;
    this.waits = [];
    for (const { then } of waits) then();
  }
}

function isOf({ owner }: Passage, other: Uint8Array): boolean {
  return owner !== null && equalBytes(owner, other);
}
