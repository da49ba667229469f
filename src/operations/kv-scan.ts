/**
 * Prefix scans: over the whole cluster (K15) and over the partitions that this node leads (K17),
 * page by page.
 *
 * May call base, machine, host and this folder. Invariants: 1. Every partition that takes part is
 * proved to lead before anything is read, and all are read in the one turn in which the last proof
 * came in. 2. A page is in key order over all partitions, and its cursor is the last key that was
 * considered in every one of them: nothing is lost or doubled between pages. 3. A page holds at
 * least one item if there is one.
 */
import { present } from "../base/assert.js";
import { compareBytes, compareText, encodeText } from "../base/bytes.js";
import { KvType } from "../machine/command.js";
import { decodeCursor, encodeCursor } from "../machine/cursor.js";
import type { Page, PageItem } from "../machine/reading.js";
import type { GroupAccess } from "./access.js";
import type { KvPageAnswer } from "./answers.js";
import { latestEnded } from "./kv.js";
import { VISITS_MAX, badCursor, pageItem, queryText, sourceOf } from "./kv-pages.js";
import { Durability, type KvScanRequest } from "./requests.js";
import type { Fail, Serving } from "./serving.js";
import { emptyPage } from "./shapes.js";

type Done = (answer: KvPageAnswer) => void;

/** Bytes that one partition is read ahead of the others at a time. */
const SLICE_BYTES = 64 * 1024;
/** Items per slice, at most. */
const SLICE_ITEMS = 512;
/** What an item costs in a page beside its key and value, as the state machine counts it. */
const ITEM_OVERHEAD_BYTES = 64;

interface FoundItem {
  readonly group: GroupAccess;
  readonly item: PageItem;
}

interface MergedPage {
  readonly found: readonly FoundItem[];
  /** The last key considered; null when there is no more. */
  readonly next: Uint8Array | null;
}

/** Carries out one acceptable scan over the data partitions. */
export function scan(
  serving: Serving,
  request: KvScanRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const local = request.kind === "kv-scan-local";
  const tombstones = local && request.includeTombstones;
  const query = queryText(request.kind, request.prefix, request.durability, tombstones);
  const after = request.cursor === null ? null : decodeCursor(query, request.cursor);
  if (request.cursor !== null && after === null) {
    return serving.ports.timer.soon(() => done(badCursor()));
  }
  const groups = serving.dataGroups().filter((group) => !local || group.isServing());
  const step = (from: Uint8Array | null): void => {
    proveAll(serving, groups, local, deadlineMs, fail, (proved) => {
      mergeFresh(serving, proved, request, from, deadlineMs, fail, (merged) => {
        if (merged.found.length === 0 && merged.next !== null) return step(merged.next);
        done(scanAnswer(serving, merged, query));
      });
    });
  };
  step(after);
}

function scanAnswer(serving: Serving, merged: MergedPage, query: string): KvPageAnswer {
  const origin = { servedFrom: serving.settings.clientEndpoint, route: null };
  return {
    ...emptyPage(KvType.got, origin),
    items: merged.found.map(({ group, item }) => pageItem(serving, group, item)),
    nextCursor: merged.next === null ? null : encodeCursor(query, merged.next),
    hasMore: merged.next !== null,
  };
}

/**
 * Calls `then` once every group has proved that it leads. A local scan leaves out those that
 * cannot.
 */
function proveAll(
  serving: Serving,
  groups: readonly GroupAccess[],
  local: boolean,
  deadlineMs: number,
  fail: Fail,
  then: (proved: readonly GroupAccess[]) => void,
): void {
  const proved: GroupAccess[] = [];
  let open = groups.length;
  let failed = false;
  const end = (): void => {
    open--;
    if (open > 0) return;
    if (failed) fail("mustRetry", null, null);
    else then(proved);
  };
  if (open === 0) return serving.ports.timer.soon(() => then([]));
  for (const group of groups) {
    group.read(deadlineMs, (result) => {
      if (result.status === "confirmed") proved.push(group);
      else if (!local || result.status === "aborted") failed = true;
      end();
    });
  }
}

/**
 * Merges; when a lease end that passed is in the way, commits the clocks of those partitions and
 * merges again.
 */
function mergeFresh(
  serving: Serving,
  groups: readonly GroupAccess[],
  request: KvScanRequest,
  after: Uint8Array | null,
  deadlineMs: number,
  fail: Fail,
  then: (merged: MergedPage) => void,
): void {
  const merged = mergePage(serving, groups, request, after);
  if (merged === null) return fail("mustRetry", null, null);
  const late = request.durability === Durability.persistent ? lateGroups(merged, groups) : [];
  let open = late.length;
  if (open === 0) return then(merged);
  let failed = false;
  for (const [group, endedMs] of late) {
    const end = (): void => {
      open--;
      if (open > 0) return;
      const again = failed ? null : mergePage(serving, groups, request, after);
      if (again === null) fail("mustRetry", null, null);
      else then(again);
    };
    const failOne: Fail = () => {
      failed = true;
      end();
    };
    serving.advance(group, endedMs, deadlineMs, failOne, end);
  }
}

function lateGroups(
  merged: MergedPage,
  groups: readonly GroupAccess[],
): readonly (readonly [GroupAccess, number])[] {
  const late: [GroupAccess, number][] = [];
  for (const group of groups) {
    const own = merged.found.filter((found) => found.group === group).map(({ item }) => item);
    const endedMs = latestEnded(own, group.leaseNowMs());
    if (endedMs !== null) late.push([group, endedMs]);
  }
  return late;
}

/** One partition's part of the merge: a slice of its keys at a time. */
class Stream {
  private page: Page | null = null;
  private at = 0;

  constructor(
    readonly group: GroupAccess,
    private readonly read: (group: GroupAccess, after: Uint8Array | null) => Page | null,
    private after: Uint8Array | null,
  ) {}

  /** The next item; "end", or "later" when the turn's share of visits is used up, or "gone". */
  peek(): PageItem | "end" | "later" | "gone" {
    for (;;) {
      const item = this.page?.items[this.at];
      if (item !== undefined) return item;
      if (this.page !== null) {
        if (this.page.next === null) return "end";
        this.after = this.page.next;
        // A slice without items used its whole share of visits on rows that ended.
        if (this.page.items.length === 0) return "later";
      }
      this.page = this.read(this.group, this.after);
      this.at = 0;
      if (this.page === null) return "gone";
    }
  }

  take(): void {
    this.at++;
  }

  /** How far this partition was considered when it says "later". */
  get reached(): Uint8Array | null {
    return this.after;
  }
}

type Least =
  | { readonly kind: "item"; readonly stream: Stream; readonly item: PageItem }
  | { readonly kind: "stop"; readonly reached: Uint8Array }
  | { readonly kind: "end" }
  | { readonly kind: "gone" };

/** The least next item, unless a partition was not looked at that far in this turn. */
function leastOf(streams: readonly Stream[]): Least {
  let least: Extract<Least, { kind: "item" }> | null = null;
  let reached: Uint8Array | null = null;
  for (const stream of streams) {
    const item = stream.peek();
    if (item === "gone") return { kind: "gone" };
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

/**
 * One page in key order over all `groups`, read in this turn. Null: a partition's memory table is
 * gone.
 */
function mergePage(
  serving: Serving,
  groups: readonly GroupAccess[],
  request: KvScanRequest,
  after: Uint8Array | null,
): MergedPage | null {
  const { prefix, durability, limit } = request;
  const tombstones = request.kind === "kv-scan-local" && request.includeTombstones;
  const read = (group: GroupAccess, from: Uint8Array | null): Page | null => {
    const source = sourceOf(group, durability);
    if (source === null) return null;
    const maxVisits = Math.ceil(VISITS_MAX / groups.length) + SLICE_ITEMS;
    const sliceItems = limit > 0 ? Math.min(limit, SLICE_ITEMS) : SLICE_ITEMS;
    const bounds = { after: from, limit: sliceItems, maxBytes: SLICE_BYTES, maxVisits };
    const reading = source.reads.prefixPage(prefix, bounds, source.nowMs, tombstones);
    return reading.kind === "page" ? reading.page : null;
  };
  const streams = groups.map((group) => new Stream(group, read, after));
  const found: FoundItem[] = [];
  let sizeBytes = 0;
  let lastKey = after;
  for (;;) {
    const least = leastOf(streams);
    if (least.kind === "gone") return null;
    if (least.kind === "end") return { found, next: null };
    if (least.kind === "stop") return { found, next: least.reached };
    const full = found.length === limit && limit > 0;
    if (found.length > 0 && (full || sizeBytes >= serving.settings.pageBytes)) {
      return { found, next: lastKey };
    }
    const { item } = least;
    least.stream.take();
    lastKey = encodeText(item.key);
    found.push({ group: least.stream.group, item });
    sizeBytes += item.key.length + (item.value?.length ?? 0) + ITEM_OVERHEAD_BYTES;
  }
}
