/**
 * One part of a joint watch, as the node that joins has it: asks the node that tells it for one
 * answer after the other.
 *
 * Owns the questions. Invariants: 1. The next answer is asked for when all of the one before was
 * taken; until an answer came it is asked for again, so that none is left out and none taken twice.
 * 2. Of the questions that are under way the newest counts. 3. A part is lost once, and asks
 * nothing then.
 */
import { WatchEnd } from "../../base/result-types.js";
import type { JointPorts, PartAsk, PartMessage, PullResult, WatchPull } from "./parts.js";
import { messagesBytes } from "./told-parts.js";

/** How long an answer may wait for something to tell, and what is added for its way (ms). */
const WAIT_MS = 5000;
const WAY_MS = 5000;
/** Between two questions where the first one failed (ms). */
const RETRY_MS = 50;
/** A node that nothing reaches is asked so long, and one that does not answer (ms). */
const UNSENT_MS = 300;
const LOST_MS = 3000;

export interface PartOwner {
  readonly ports: JointPorts;
  /** More is held of parts, or less (bytes). */
  held(changeBytes: number): void;
  /** Not too much is held. */
  mayPull(): boolean;
  /** It stands where it is told, or has messages. */
  news(): void;
  /** Nothing comes any more: as `WatchEnd`. `isUseless`: its node does not know of parts. */
  lost(part: AskedPart, end: number, isUseless: boolean): void;
}

export class AskedPart {
  /** The node that tells it has its filter: what happens from now on is told. */
  isReady = false;
  begins = false;
  isCreated = false;
  /** All that it told so far ends with a cursor. */
  isWhole: boolean;
  /** Some of what is behind its cursor was told. */
  isAhead = false;
  /** It tells what changed by comparing. */
  compares = false;
  /** Before it is told, these are to have told all up to their SYNCED of this number. */
  readonly behind = new Map<AskedPart, number>();
  /** The last SYNCED. */
  syncedTo = 0;
  /** Of the map by which it was created, or SYNCED last. */
  mapVersion = 0;
  private readonly messages: PartMessage[] = [];
  private heldBytes = 0;
  private serial = 1;
  private question = 0;
  private isAsking = false;
  /** Since when every question failed (monotonic ms). */
  private failingMs: number | null = null;
  private isOver = false;

  /** `syncId`: SYNCED is wanted of it. */
  constructor(
    readonly node: number,
    readonly ask: PartAsk,
    private readonly number: number,
    private syncId: number,
    private readonly owner: PartOwner,
  ) {
    this.isWhole = ask.cursor !== null;
  }

  /** What it tells next; null: nothing yet. */
  get next(): PartMessage | null {
    return this.messages[0] ?? null;
  }

  take(): void {
    this.messages.shift();
    if (this.messages.length === 0) this.giveBack();
  }

  begin(): void {
    this.begins = true;
    this.pullOn();
  }

  sync(syncId: number): void {
    this.syncId = syncId;
    if (this.begins && this.isAsking) this.pull();
  }

  /** Asks on, if it is time. */
  pullOn(): void {
    if (this.isOver || this.isAsking || this.messages.length > 0) return;
    if (this.isReady && !this.begins) return;
    if (this.owner.mayPull()) this.pull();
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.giveBack();
    this.messages.length = 0;
    const { ports } = this.owner;
    const untilMs = ports.clock.monotonicMs() + WAY_MS;
    ports.pull(this.node, this.pullOf(0, true), untilMs, () => undefined);
  }

  private pullOf(waitMs: number, isOver: boolean): WatchPull {
    const { number: part, serial, begins, syncId } = this;
    const ask = serial === 1 && !isOver ? this.ask : null;
    return { part, serial, ask, begins, syncId, waitMs, isOver };
  }

  private pull(): void {
    const { ports } = this.owner;
    const question = ++this.question;
    this.isAsking = true;
    const waitMs = this.begins ? WAIT_MS : 0;
    const untilMs = ports.clock.monotonicMs() + waitMs + WAY_MS;
    ports.pull(this.node, this.pullOf(waitMs, false), untilMs, (result) => {
      if (question !== this.question || this.isOver) return;
      this.came(result);
    });
  }

  private came(result: PullResult): void {
    if (result === "unsent" || result === "lost") return this.failed(result);
    this.isAsking = false;
    if (result === "unreadable") return this.lost(WatchEnd.notHosted, true);
    if (result.status !== "told") return this.lost(WatchEnd.notHosted);
    this.failingMs = null;
    this.serial++;
    this.isReady = true;
    for (const message of result.messages) this.messages.push(message);
    this.heldBytes = messagesBytes(this.messages);
    this.owner.held(this.heldBytes);
    this.owner.news();
    this.pullOn();
  }

  private failed(how: "unsent" | "lost"): void {
    const { ports } = this.owner;
    const nowMs = ports.clock.monotonicMs();
    this.failingMs ??= nowMs;
    if (nowMs - this.failingMs >= (how === "unsent" ? UNSENT_MS : LOST_MS)) {
      return this.lost(WatchEnd.notHosted);
    }
    const { question } = this;
    ports.timer.after(RETRY_MS, () => {
      if (question === this.question && !this.isOver) this.pull();
    });
  }

  private lost(end: number, isUseless = false): void {
    this.owner.lost(this, end, isUseless);
  }

  private giveBack(): void {
    const { heldBytes } = this;
    this.heldBytes = 0;
    if (heldBytes > 0) this.owner.held(-heldBytes);
  }
}
