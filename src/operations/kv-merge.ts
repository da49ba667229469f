/**
 * One page of keys merged from several partitions, each read a slice at a time.
 *
 * May call base, machine, host and this folder. Invariants: 1. Every partition is shown as it was
 * in the turn in which the merge began, however many turns the page takes. 2. A page is in key
 * order; its `next` is the last key that was considered in every partition. 3. A page holds at
 * least one item if there is one within its share of visits. 4. Every view that was opened is
 * closed, on every path.
 */
import { assert, present } from "../base/assert.js";
import { compareBytes, compareText, encodeText } from "../base/bytes.js";
import type { DataReads } from "../machine/data-reads.js";
import { prefixStretch } from "../machine/pages.js";
import type { Page, PageItem } from "../machine/reading.js";
import type { StillReads } from "../machine/still-rows.js";
import type { GroupAccess } from "./access.js";
import { VISITS_MAX, sourceOf } from "./kv-pages.js";
import { Durability } from "./requests.js";
import type { Serving } from "./serving.js";
import { SlicedShare } from "./slices.js";

/** Bytes that one partition is read ahead of the others at a time. */
const SLICE_BYTES = 64 * 1024;
/** Items per slice, at most. */
const SLICE_ITEMS = 512;
/** Rows looked at per slice, and in all partitions before other work gets its chance. */
const SLICE_VISITS = 1000;
const TURN_VISITS = 2000;
/** What an item costs in a page beside its key and value, as the state machine counts it. */
export const ITEM_OVERHEAD_BYTES = 64;

/** What a scan looks for, in whichever partitions. */
export interface ScanQuery {
  readonly prefix: string;
  readonly tombstones: boolean;
  readonly limit: number;
  readonly durability: number;
}

export interface FoundItem {
  readonly group: GroupAccess;
  readonly item: PageItem;
}

export interface MergedPage {
  readonly found: readonly FoundItem[];
  /** The last key considered; null when there is no more. */
  readonly next: Uint8Array | null;
}

/** One partition's part of the merge: a slice of its keys at a time. */
class Stream {
  private page: Page | null = null;
  private at = 0;
  /** Rows that this page may still cost here. */
  private visitsLeft: number;
  /** The partition as it was when the merge began, once other turns came in between. */
  view: StillReads | null = null;

  constructor(
    readonly group: GroupAccess,
    private readonly source: { readonly reads: DataReads; readonly nowMs: number },
    private readonly question: ScanQuestion,
    private after: Uint8Array | null,
  ) {
    this.visitsLeft = question.visits;
  }

  /**
   * The next item; "end", or "later" when the page's share of visits is used up, or "pause" when
   * the turn's is.
   */
  peek(turn: Turn): PageItem | "end" | "later" | "pause" {
    for (;;) {
      const item = this.page?.items[this.at];
      if (item !== undefined) return item;
      if (this.page !== null) {
        if (this.page.next === null) return "end";
        this.after = this.page.next;
        if (this.page.items.length === 0 && this.visitsLeft <= 0) return "later";
        if (turn.visitsLeft <= 0) return "pause";
      }
      this.page = this.read();
      this.at = 0;
      this.visitsLeft -= this.page.visits;
      turn.visitsLeft -= this.page.visits;
    }
  }

  private read(): Page {
    const { prefix, sliceItems, tombstones } = this.question;
    const limits = { limit: sliceItems, maxBytes: SLICE_BYTES, maxVisits: SLICE_VISITS };
    const bounds = { after: this.after, ...limits };
    const reads = this.view?.reads ?? this.source.reads;
    const reading = reads.prefixPage(prefix, bounds, this.source.nowMs, tombstones);
    assert(reading.kind === "page", "the prefix was found acceptable");
    return reading.page;
  }

  take(): void {
    this.at++;
  }

  /** How far this partition was considered when it says "later". */
  get reached(): Uint8Array | null {
    return this.after;
  }
}

/** What one turn may still look at. */
interface Turn {
  visitsLeft: number;
}

interface ScanQuestion {
  readonly prefix: string;
  readonly tombstones: boolean;
  readonly sliceItems: number;
  readonly visits: number;
}

type Least =
  | { readonly kind: "item"; readonly stream: Stream; readonly item: PageItem }
  | { readonly kind: "stop"; readonly reached: Uint8Array }
  | { readonly kind: "end" }
  | { readonly kind: "pause" };

/** The least next item, unless a partition was not looked at that far for this page. */
function leastOf(streams: readonly Stream[], turn: Turn): Least {
  let least: Extract<Least, { kind: "item" }> | null = null;
  let reached: Uint8Array | null = null;
  for (const stream of streams) {
    const item = stream.peek(turn);
    if (item === "pause") return { kind: "pause" };
    if (item === "later") {
      const own = present(stream.reached, "a stream that stopped got somewhere");
      if (reached === null || compareBytes(own, reached) < 0) reached = own;
    } else if (item !== "end") {
      if (least === null || compareText(item.key, least.item.key) < 0) {
        least = { kind: "item", stream, item };
      }
    }
  }
  if (reached !== null) {
    const within = least !== null && compareBytes(encodeText(least.item.key), reached) <= 0;
    if (!within) return { kind: "stop", reached };
  }
  return least ?? { kind: "end" };
}

/** "gone": a partition's memory table is no more, or too much changed while the page was read. */
export type MergeCut = "gone" | "late" | "crowded" | "stopping";

/** One page in key order over all `groups`, as they are in this turn; read in slices. */
export function mergePage(
  serving: Serving,
  groups: readonly GroupAccess[],
  query: ScanQuery,
  after: Uint8Array | null,
  deadlineMs: number,
  then: (merged: MergedPage | MergeCut) => void,
): void {
  const streams = streamsOf(groups, query, after);
  if (streams === null) return then("gone");
  const { limit } = query;
  const found: FoundItem[] = [];
  const share = new SlicedShare(serving.sliced);
  let sizeBytes = 0;
  let lastKey = after;
  const end = (result: MergedPage | MergeCut): void => {
    for (const { view } of streams) view?.close();
    share.close();
    then(result);
  };
  const slice = (): void => {
    if (serving.node.shuttingDown) return end("stopping");
    if (streams.some(({ view }) => view?.overrun === true)) return end("gone");
    const turn = { visitsLeft: TURN_VISITS };
    for (;;) {
      const least = leastOf(streams, turn);
      if (least.kind === "pause") break;
      if (least.kind === "end") return end({ found, next: null });
      if (least.kind === "stop") return end({ found, next: least.reached });
      const full = found.length === limit && limit > 0;
      if (found.length > 0 && (full || sizeBytes >= serving.settings.pageBytes)) {
        return end({ found, next: lastKey });
      }
      const { item } = least;
      least.stream.take();
      lastKey = encodeText(item.key);
      found.push({ group: least.stream.group, item });
      sizeBytes += item.key.length + (item.value?.length ?? 0) + ITEM_OVERHEAD_BYTES;
    }
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return end("late");
    if (!share.hold(sizeBytes)) return end("crowded");
    // From here on other turns come in between: what is left to read is to stay as it is now.
    for (const stream of streams) stream.view ??= viewOf(serving, stream.group, query);
    serving.ports.timer.after(0, slice);
  };
  slice();
}

function viewOf(
  serving: Serving,
  group: GroupAccess,
  { prefix, durability }: ScanQuery,
): StillReads | null {
  const holder = durability === Durability.persistent ? group.machine : group.ephemeral;
  return holder?.still(prefixStretch(prefix), serving.settings.responseMaxBytes) ?? null;
}

/** Null: a partition's memory table is gone. */
function streamsOf(
  groups: readonly GroupAccess[],
  query: ScanQuery,
  after: Uint8Array | null,
): readonly Stream[] | null {
  const { prefix, limit, durability, tombstones } = query;
  const sliceItems = limit > 0 ? Math.min(limit, SLICE_ITEMS) : SLICE_ITEMS;
  const visits = Math.ceil(VISITS_MAX / groups.length);
  const streams: Stream[] = [];
  for (const group of groups) {
    const source = sourceOf(group, durability);
    if (source === null) return null;
    streams.push(new Stream(group, source, { prefix, tombstones, sliceItems, visits }, after));
  }
  return streams;
}
