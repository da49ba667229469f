/**
 * One page of keys merged from several partitions, each read a slice at a time.
 *
 * Invariants: 1. Every partition is shown as it was in the turn in which the merge began, however
 * many turns the page takes. 2. A page is in key order; its `next` is the last key in it. 3. A page
 * holds at least one item if there is one. 4. A page that is to be whole is not cut: it is told
 * that it does not fit. 5. Every view that was opened is closed, on every path, and every watch but
 * that of a page, which is its taker's. 6. What the partitions own is as of that turn, too.
 */
import { assert } from "../../base/assert.js";
import { compareText, encodeText } from "../../base/bytes.js";
import type { DataReads } from "../../machine/data-reads.js";
import type { Page, PageItem } from "../../machine/decision/reading.js";
import type { PointInTimeReads } from "../../machine/point-in-time.js";
import type { GroupAccess } from "../api/host-view.js";
import { sourceOf } from "./kv-gather.js";
import { SpanWatch } from "./span-watch.js";
import { type SpaceTiles, type SpanQuery, joinTiles, spanOfQuery, tilesOf } from "./span-tiles.js";
import { Durability } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";
import { type TurnShare, SLICE_VISITS, SlicedShare } from "../admission/slices.js";

/** Bytes that one partition is read ahead of the others at a time. */
const SLICE_BYTES = 64 * 1024;
/** Items per slice, at most. */
const SLICE_ITEMS = 512;
/** What an item costs in a page beside its key and value, as the state machine counts it. */
export const ITEM_OVERHEAD_BYTES = 64;

/** What a page looks for, in whichever partitions. */
export interface ScanQuery extends SpanQuery {
  readonly tombstones: boolean;
  readonly limit: number;
  readonly durability: number;
  /** A page is full when it reaches this size (bytes). */
  readonly maxBytes: number;
  /** Everything, or the word that it does not fit `maxBytes` (K15). */
  readonly whole: boolean;
}

/** A scan of partitions of this node. */
export interface ScanRead {
  readonly serving: Serving;
  readonly groups: readonly GroupAccess[];
  readonly query: ScanQuery;
  /** The key above which to begin; null = from the start. */
  readonly after: Uint8Array | null;
  readonly deadlineMs: number;
  /** The page is looked at again: whoever gets it closes its watch. */
  readonly isWatched: boolean;
}

export interface FoundItem {
  readonly group: GroupAccess;
  readonly item: PageItem;
}

export interface MergedPage {
  readonly found: readonly FoundItem[];
  /** The last key in it; null when there is no more. */
  readonly next: Uint8Array | null;
  readonly sizeBytes: number;
  /** What the partitions owned in that turn of the keys behind where it begins. */
  readonly spaces: readonly SpaceTiles[];
  /** Since that turn; null of a page that is not watched. */
  readonly watch: SpanWatch | null;
}

/** One partition's part of the merge: a slice of its keys at a time. */
class Stream {
  private page: Page | null = null;
  private at = 0;
  /** The partition as it was when the merge began, once other turns came in between. */
  view: PointInTimeReads | null = null;

  constructor(
    readonly group: GroupAccess,
    private readonly source: { readonly reads: DataReads; readonly nowMs: number },
    private readonly query: ScanQuery,
    private after: Uint8Array | null,
  ) {}

  /** The next item; "end", or "pause" when the turn's share of visits is used up. */
  peek(turn: TurnShare): PageItem | "end" | "pause" {
    for (;;) {
      const item = this.page?.items[this.at];
      if (item !== undefined) return item;
      if (this.page !== null) {
        if (this.page.next === null) return "end";
        this.after = this.page.next;
      }
      if (turn.visitsLeft <= 0) return "pause";
      this.page = this.read(turn);
      this.at = 0;
      turn.visitsLeft -= this.page.visits;
    }
  }

  private read(turn: TurnShare): Page {
    const { prefix, range, limit: itemsMax, tombstones } = this.query;
    const limit = itemsMax > 0 ? Math.min(itemsMax, SLICE_ITEMS) : SLICE_ITEMS;
    const maxVisits = Math.min(turn.visitsLeft, SLICE_VISITS);
    const bounds = { after: this.after, limit, maxBytes: SLICE_BYTES, maxVisits };
    const { nowMs } = this.source;
    const reads = this.view?.reads ?? this.source.reads;
    const reading =
      range === null
        ? reads.prefixPage(prefix, bounds, nowMs, tombstones)
        : reads.rangePage(range, bounds, nowMs);
    assert(reading.kind === "page", "the query was found acceptable");
    return reading.page;
  }

  take(): void {
    this.at++;
  }
}

interface Least {
  readonly stream: Stream;
  readonly item: PageItem;
}

/** The least next item of all partitions. */
function leastOf(streams: readonly Stream[], turn: TurnShare): Least | "end" | "pause" {
  let least: Least | null = null;
  for (const stream of streams) {
    const item = stream.peek(turn);
    if (item === "pause") return "pause";
    if (item === "end") continue;
    if (least === null || compareText(item.key, least.item.key) < 0) least = { stream, item };
  }
  return least ?? "end";
}

/** "gone": a partition's memory table is no more, or too much changed while the page was read. */
export type MergeCut = "gone" | "late" | "overloaded" | "stopping";

/** One page in key order over all groups, as they are in its first turn; read in slices. */
export function mergePage(read: ScanRead, then: (merged: MergedPage | MergeCut) => void): void {
  const merge = new Merge(read, then);
  read.serving.sliced.next((turn) => merge.slice(turn));
}

class Merge {
  private readonly found: FoundItem[] = [];
  private readonly share: SlicedShare;
  /** Of the leaderships that were proved: their tables are not those of later ones. */
  private readonly tables: readonly GroupAccess["ephemeral"][];
  private streams: readonly Stream[] | null = null;
  private spaces: readonly SpaceTiles[] = [];
  private watch: SpanWatch | null = null;
  private sizeBytes = 0;
  private lastKey: Uint8Array | null;

  constructor(
    private readonly read: ScanRead,
    private readonly then: (merged: MergedPage | MergeCut) => void,
  ) {
    this.share = new SlicedShare(read.serving.sliced);
    this.tables = read.groups.map((group) => group.ephemeral);
    this.lastKey = read.after;
  }

  slice(turn: TurnShare): void {
    const { serving, query } = this.read;
    if (serving.node.shuttingDown) return this.end("stopping");
    this.streams ??= this.open();
    const { streams } = this;
    if (streams === null) return this.end("gone");
    if (streams.some(({ view }) => view?.overrun === true)) return this.stop("gone");
    for (;;) {
      const least = leastOf(streams, turn);
      if (least === "pause") return this.pause(streams);
      if (least === "end") return this.give(null);
      if (this.isFull) return this.give(this.lastKey);
      this.take(least);
      if (query.whole && this.sizeBytes > query.maxBytes) {
        this.found.length = 0;
        return this.give(this.lastKey);
      }
    }
  }

  /** Null: a partition's memory table is gone. */
  private open(): readonly Stream[] | null {
    const { groups, query, after } = this.read;
    const { durability } = query;
    const streams: Stream[] = [];
    for (const [at, group] of groups.entries()) {
      const isLost = durability === Durability.ephemeral && group.ephemeral !== this.tables[at];
      const source = isLost ? null : sourceOf(group, durability);
      if (source === null) return null;
      streams.push(new Stream(group, source, query, after));
    }
    this.spaces = joinTiles(groups.map(({ machine }) => tilesOf(machine.ownership, query, after)));
    if (this.read.isWatched) {
      this.watch = new SpanWatch(groups, durability, spanOfQuery(query, after));
    }
    return streams;
  }

  /** Enough items: all that is left to tell is whether anything follows. */
  private get isFull(): boolean {
    const { found } = this;
    const { query } = this.read;
    if (found.length === 0 || query.whole) return false;
    return found.length === query.limit || this.sizeBytes >= query.maxBytes;
  }

  private take({ stream, item }: Least): void {
    stream.take();
    this.lastKey = encodeText(item.key);
    this.found.push({ group: stream.group, item });
    this.sizeBytes += this.lastKey.length + (item.value?.length ?? 0) + ITEM_OVERHEAD_BYTES;
  }

  /** Other turns come in between: what is left to read is to stay as it is now. */
  private pause(streams: readonly Stream[]): void {
    const { serving, deadlineMs } = this.read;
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return this.stop("late");
    if (!this.share.hold(this.sizeBytes)) return this.stop("overloaded");
    for (const stream of streams) stream.view ??= viewOf(this.read, stream.group);
    serving.sliced.next((turn) => this.slice(turn));
  }

  /** A full page need not know what follows it. */
  private stop(cut: MergeCut): void {
    if (this.isFull) this.give(this.lastKey);
    else this.end(cut);
  }

  private give(next: Uint8Array | null): void {
    const { found, sizeBytes, spaces, watch } = this;
    watch?.shows(found);
    this.end({ found, next, sizeBytes, spaces, watch });
  }

  private end(result: MergedPage | MergeCut): void {
    for (const { view } of this.streams ?? []) view?.close();
    this.share.close();
    if (typeof result === "string") this.watch?.close();
    this.then(result);
  }
}

function viewOf({ serving, query, after }: ScanRead, group: GroupAccess): PointInTimeReads | null {
  const holder = query.durability === Durability.persistent ? group.machine : group.ephemeral;
  const span = spanOfQuery(query, after);
  return holder?.pointInTimeView(span, serving.settings.responseMaxBytes) ?? null;
}
