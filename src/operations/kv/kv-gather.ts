/**
 * Gathers items of one bucket in slices, however many dead rows lie among them.
 *
 * Invariants: 1. Everything gathered is as it was in the turn of the first slice, which lies after
 * the proof of leadership. 2. A page that is full is given even when it cannot be told whether
 * anything follows it: then it says that there may be more. 3. Every view that was opened is
 * closed, on every path. 4. The group owned all that was asked for in that turn.
 */
import { present } from "../../base/assert.js";
import { encodeText } from "../../base/bytes.js";
import type { DataReads } from "../../machine/data-reads.js";
import { rangeSpan } from "../../machine/kv/pages.js";
import type { PageItem, RangeQuery } from "../../machine/decision/reading.js";
import type { PointInTimeReads } from "../../machine/point-in-time.js";
import type { KvPageAnswer } from "../api/answers.js";
import type { GroupAccess } from "../api/host-view.js";
import { Durability } from "../api/requests.js";
import type { Attempt } from "../serving/attempt.js";
import { ownsSpan } from "./owned-spans.js";
import type { Serving } from "../serving/serving.js";
import { type TurnShare, SLICE_VISITS, SlicedShare } from "../admission/slices.js";

/**
 * Reads of `group` in the class of `durability`, with the time they judge by; null when it has none
 * now.
 */
export function sourceOf(
  group: GroupAccess,
  durability: number,
): { readonly reads: DataReads; readonly nowMs: number } | null {
  if (durability === Durability.persistent) {
    return { reads: group.machine.reads, nowMs: group.machine.leaseMs };
  }
  const table = group.ephemeral;
  return table === null ? null : { reads: table.reads, nowMs: Math.floor(group.leaseNowMs()) };
}

/** Which items, and how many of them. */
export interface Wanted {
  readonly query: RangeQuery;
  readonly durability: number;
  /** UTF-8 of the key to begin above; null = from the start. */
  readonly after: Uint8Array | null;
  /** Items at most; 0 = no bound by number. */
  readonly limit: number;
  /** Enough when the items reach this size. */
  readonly maxBytes: number;
}

export interface Gathered {
  readonly items: readonly PageItem[];
  /** Continue above this key; null when there is no more. */
  readonly next: Uint8Array | null;
  readonly sizeBytes: number;
  /** The leader's lease clock at the instant that is shown (ms). */
  readonly beganMs: number;
}

/** Why nothing was gathered. */
export type GatherCut =
  | "invalid"
  | "overrun"
  | "late"
  | "stopping"
  | "overloaded"
  | "gone"
  /** A part of it is another group's, or is about to be. */
  | "unowned";

/** Ends a request whose items were not gathered. */
export function failCut(cut: GatherCut, attempt: Attempt<KvPageAnswer>): void {
  if (cut === "invalid") attempt.fail("invalidInput", null, null);
  else if (cut === "overloaded") attempt.fail("mustRetry", "overloaded", null);
  else if (cut === "stopping") attempt.fail("aborted", null, attempt.group);
  else if (cut === "gone") attempt.moved();
  else if (cut === "unowned") attempt.unowned();
  else attempt.retry();
}

/** A read of one group, which was proved to lead. */
export interface GroupRead {
  readonly serving: Serving;
  readonly group: GroupAccess;
  readonly deadlineMs: number;
}

/** To be called in the turn of the proof; `then` may be called in the same. */
export function gather(
  read: GroupRead,
  wanted: Wanted,
  then: (result: Gathered | GatherCut) => void,
): void {
  const gathering = new Gathering(read, wanted, then);
  read.serving.sliced.next((turn) => gathering.slice(turn));
}

class Gathering {
  private readonly items: PageItem[] = [];
  private readonly share: SlicedShare;
  /** Of the leadership that was proved: its table is not that of a later one. */
  private readonly table: GroupAccess["ephemeral"];
  private view: PointInTimeReads | null = null;
  private sizeBytes = 0;
  private nowMs = 0;
  private beganMs = -1;
  private after: Uint8Array | null;

  constructor(
    private readonly read: GroupRead,
    private readonly wanted: Wanted,
    private readonly then: (result: Gathered | GatherCut) => void,
  ) {
    this.share = new SlicedShare(read.serving.sliced);
    this.table = read.group.ephemeral;
    this.after = wanted.after;
  }

  /** Enough items: all that is left to tell is whether anything follows. */
  private get isFull(): boolean {
    const { items, wanted } = this;
    if (items.length === 0) return false;
    return items.length === wanted.limit || this.sizeBytes >= wanted.maxBytes;
  }

  slice(turn: TurnShare): void {
    const { wanted } = this;
    const { serving, group } = this.read;
    if (serving.node.shuttingDown) return this.end("stopping");
    if (this.view?.overrun === true) return this.stop("overrun");
    const isLost = wanted.durability === Durability.ephemeral && group.ephemeral !== this.table;
    const source = isLost ? null : sourceOf(group, wanted.durability);
    if (source === null) return this.end("gone");
    if (this.beganMs < 0) {
      if (!ownsSpan(group.machine.ownership, wanted.query, this.after)) return this.end("unowned");
      this.nowMs = source.nowMs;
      // By what the leader's clock says at this instant, not when the last slice is through.
      this.beganMs = group.leaseNowMs();
    }
    const { isFull } = this;
    const reads = this.view?.reads ?? source.reads;
    const reading = reads.rangePage(wanted.query, this.bounds(turn), this.nowMs);
    if (reading.kind === "invalid") return this.end("invalid");
    const { page } = reading;
    turn.visitsLeft -= page.visits;
    if (isFull && page.items.length > 0) return this.give(this.reached());
    for (const item of page.items) this.items.push(item);
    this.sizeBytes += page.sizeBytes;
    if (page.next === null) return this.give(null);
    this.after = page.next;
    this.pause();
  }

  private bounds(turn: TurnShare) {
    const { after, items, wanted } = this;
    const maxVisits = Math.max(1, Math.min(turn.visitsLeft, SLICE_VISITS));
    if (this.isFull) return { after, limit: 1, maxBytes: 1, maxVisits };
    const limit = wanted.limit === 0 ? 0 : wanted.limit - items.length;
    return { after, limit, maxBytes: wanted.maxBytes - this.sizeBytes, maxVisits };
  }

  /** Other turns come in between: what is left to read is to stay as it is now. */
  private pause(): void {
    const { wanted } = this;
    const { serving, group, deadlineMs } = this.read;
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return this.stop("late");
    if (!this.share.hold(this.sizeBytes)) return this.stop("overloaded");
    if (this.view === null) {
      const holder = wanted.durability === Durability.persistent ? group.machine : group.ephemeral;
      const span = rangeSpan(wanted.query, this.after);
      this.view = holder?.pointInTimeView(span, serving.settings.responseMaxBytes) ?? null;
    }
    serving.sliced.next((turn) => this.slice(turn));
  }

  private reached(): Uint8Array {
    return encodeText(present(this.items.at(-1), "a full page holds an item").key);
  }

  /** A full page need not know what follows it. */
  private stop(cut: GatherCut): void {
    if (this.isFull) this.give(this.reached());
    else this.end(cut);
  }

  private give(next: Uint8Array | null): void {
    const { items, sizeBytes, beganMs } = this;
    this.end({ items, next, sizeBytes, beganMs });
  }

  private end(result: Gathered | GatherCut): void {
    this.view?.close();
    this.share.close();
    this.then(result);
  }
}
