/**
 * One page of the keys that some partitions of this node hold, and the pages of several nodes put
 * together to one.
 *
 * Invariants: 1. Every partition that takes part is proved to lead before anything is read, and all
 * of a node are shown as they are in the one turn in which the merge begins, after the last proof
 * came in. 2. A page is in key order; its `next` is the last key that was considered in every
 * partition of every node: nothing is lost or doubled between pages. 3. A part says what its
 * partitions owned in that turn.
 */
import { compareBytes, compareText, encodeText } from "../../base/bytes.js";
import type { GroupAccess } from "../api/host-view.js";
import type { KvPageItem, Refusal } from "../api/answers.js";
import { latestEnded } from "./kv.js";
import {
  ITEM_OVERHEAD_BYTES,
  type MergedPage,
  type ScanQuery,
  type ScanRead,
  mergePage,
} from "./kv-merge.js";
import { pageItem } from "./kv-pages.js";
import { Durability } from "../api/requests.js";
import type { SpanWatch } from "./span-watch.js";
import { type SpaceTiles, joinTiles, tilesUpTo } from "./span-tiles.js";

/** Items in key order, up to the last key that was considered; null when there is no more. */
export interface PagePart {
  readonly items: readonly KvPageItem[];
  readonly next: Uint8Array | null;
  /** What the partitions owned of the keys up to there. */
  readonly spaces: readonly SpaceTiles[];
}

export type PartResult =
  | (PagePart & { readonly end: "page"; readonly watch: SpanWatch | null })
  | { readonly end: "mustRetry" | "aborted"; readonly refusal: Refusal | null };

/**
 * Every group of `read` must be proved to lead, or with `some` those that are take part. Of a page
 * that is watched, the watch is the taker's to close.
 */
export function readPart(read: ScanRead, some: boolean, then: (part: PartResult) => void): void {
  const { serving } = read;
  const fail: FailPart = (end, refusal) => then({ end, refusal });
  proveAll(read, some, (proved) => {
    const refusal = serving.node.shuttingDown ? "shutting-down" : null;
    if (proved === null) return fail("mustRetry", refusal);
    mergeFresh({ ...read, groups: proved }, fail, ({ found, next, spaces, watch }) => {
      const items = found.map(({ group, item }) => pageItem(serving, group, item));
      then({ end: "page", items, next, spaces: tilesUpTo(spaces, next), watch });
    });
  });
}

type FailPart = (end: "mustRetry" | "aborted", refusal: Refusal | null) => void;

/** Null: a group that must take part could not prove that it leads. */
export function proveAll(
  { serving, groups, deadlineMs }: Pick<ScanRead, "serving" | "groups" | "deadlineMs">,
  some: boolean,
  then: (proved: readonly GroupAccess[] | null) => void,
): void {
  const proved: GroupAccess[] = [];
  let open = groups.length;
  let failed = false;
  if (open === 0) return serving.ports.timer.soon(() => then([]));
  for (const group of groups) {
    group.read(deadlineMs, (result) => {
      if (result.status === "confirmed") proved.push(group);
      else if (!some || result.status === "aborted") failed = true;
      open--;
      if (open === 0) then(failed ? null : proved);
    });
  }
}

/**
 * Merges; when a lease end that passed is in the way, commits the clocks of those partitions and
 * merges again.
 */
function mergeFresh(read: ScanRead, fail: FailPart, then: (merged: MergedPage) => void): void {
  const { groups, query, deadlineMs } = read;
  const merge = (end: (merged: MergedPage) => void): void => {
    mergePage(read, (merged) => {
      if (merged === "gone" || merged === "late") fail("mustRetry", null);
      else if (merged === "overloaded") fail("mustRetry", "overloaded");
      else if (merged === "stopping") fail("aborted", null);
      else end(merged);
    });
  };
  merge((merged) => {
    const late = query.durability === Durability.persistent ? lateGroups(merged, groups) : [];
    let open = late.length;
    if (open === 0) return then(merged);
    merged.watch?.close();
    let failed = false;
    for (const [group, endedMs] of late) {
      group.advanceClock(endedMs, deadlineMs, ({ status }) => {
        if (status !== "applied") failed = true;
        open--;
        if (open > 0) return;
        if (failed) fail("mustRetry", null);
        else merge(then);
      });
    }
  });
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

/**
 * One page of the parts of several nodes, each of its own partitions and after the same key. "too-
 * large": it was to be whole, and is larger than `maxBytes`.
 */
export function combineParts(
  parts: readonly PagePart[],
  { limit, maxBytes, whole }: Pick<ScanQuery, "limit" | "maxBytes" | "whole">,
): PagePart | "too-large" {
  if (whole && parts.some(({ next }) => next !== null)) return "too-large";
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const spaces = joinTiles(parts.map((part) => part.spaces));
  let reached: Uint8Array | null = null;
  for (const { next } of parts) {
    if (next !== null && (reached === null || compareBytes(next, reached) < 0)) reached = next;
  }
  const heads = parts.map(({ items }) => ({ items, at: 0 }));
  const items: KvPageItem[] = [];
  let sizeBytes = 0;
  for (;;) {
    const least = leastOf(heads);
    const item = least?.items[least.at];
    if (least === null || item === undefined) return { items, next: reached, spaces };
    const key = encodeText(item.key);
    if (reached !== null && compareBytes(key, reached) > 0) return { items, next: reached, spaces };
    const last = items.at(-1);
    const isFull = (limit > 0 && items.length >= limit) || sizeBytes >= maxBytes;
    if (!whole && last !== undefined && isFull)
      return { items, next: encodeText(last.key), spaces };
    least.at++;
    items.push(item);
    sizeBytes += key.length + (item.value?.length ?? 0) + ITEM_OVERHEAD_BYTES;
    if (whole && sizeBytes > maxBytes) return "too-large";
  }
}

interface Head {
  readonly items: readonly KvPageItem[];
  at: number;
}

/** The part whose next item comes first; null at the end of all. */
function leastOf(heads: readonly Head[]): Head | null {
  let least: Head | null = null;
  let key = "";
  for (const head of heads) {
    const own = head.items[head.at];
    if (own === undefined || (least !== null && compareText(own.key, key) > 0)) continue;
    least = head;
    ({ key } = own);
  }
  return least;
}
