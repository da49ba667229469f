/**
 * Pages of a bucket's range, and what all reads of many keys share.
 *
 * May call base, machine, host and this folder. Invariants: 1. What one answer shows of one
 * partition is its state at one instant after leadership was proved. 2. An entry
 * whose lease ended before the read began is never shown: the clock is committed first. 3. A cursor
 * belongs to its query.
 */
import { PAGE_LIMIT_MAX, RANGE_PAGE_LIMIT_DEFAULT } from "../base/limits.js";
import { KvType } from "../machine/command.js";
import { decodeCursor, encodeCursor } from "../machine/cursor.js";
import type { DataReads } from "../machine/data-reads.js";
import type { Page, PageBounds, PageItem } from "../machine/reading.js";
import type { GroupAccess } from "./access.js";
import type { KvPageAnswer, KvPageItem } from "./answers.js";
import { latestEnded } from "./kv.js";
import { Durability, type KvRangeRequest } from "./requests.js";
import type { Fail, KeyPlace, Serving } from "./serving.js";
import { NOWHERE, emptyPage } from "./shapes.js";

type Done = (answer: KvPageAnswer) => void;

/** Rows looked at in one turn before other work gets its chance. */
export const VISITS_MAX = 50_000;

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

export function pageItem(serving: Serving, group: GroupAccess, item: PageItem): KvPageItem {
  const { key, value, revision, leaseEndMs, lastModified, state } = item;
  return { key, value, revision, expires: serving.expires(group, leaseEndMs), lastModified, state };
}

/** Text that is equal exactly for the same question. */
export function queryText(...parts: readonly (string | number | boolean | null)[]): string {
  return parts.map((part) => (part === null ? "-" : `${String(part).length}:${part}`)).join("");
}

/** Carries out one acceptable get-by-range. */
export function readRange(
  serving: Serving,
  { group, origin }: KeyPlace,
  request: KvRangeRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const query = rangeQueryText(request);
  const after = request.cursor === null ? null : decodeCursor(query, request.cursor);
  if (request.cursor !== null && after === null) {
    return serving.ports.timer.soon(() => fail("invalidInput", null, null));
  }
  readRangeAfter(serving, group, request, after, deadlineMs, fail, (page) => {
    const items = page.items.map((item) => pageItem(serving, group, item));
    const nextCursor = page.next === null ? null : encodeCursor(query, page.next);
    const hasMore = page.next !== null;
    done({ ...emptyPage(KvType.got, origin), items, nextCursor, hasMore });
  });
}

function rangeQueryText(request: KvRangeRequest): string {
  const { prefix, startKey, startInclusive, endKey, endInclusive, durability } = request;
  return queryText("range", prefix, startKey, startInclusive, endKey, endInclusive, durability);
}

function readRangeAfter(
  serving: Serving,
  group: GroupAccess,
  request: KvRangeRequest,
  after: Uint8Array | null,
  deadlineMs: number,
  fail: Fail,
  then: (page: Page) => void,
): void {
  const bounds: PageBounds = {
    after,
    limit: request.limit === 0 ? RANGE_PAGE_LIMIT_DEFAULT : request.limit,
    maxBytes: serving.settings.pageBytes,
    maxVisits: VISITS_MAX + PAGE_LIMIT_MAX,
  };
  const query = {
    bucket: request.prefix,
    startKey: request.startKey,
    startInclusive: request.startKey === null || request.startInclusive,
    endKey: request.endKey,
    endInclusive: request.endInclusive,
  };
  const read = (advanced: boolean): void => {
    const source = sourceOf(group, request.durability);
    if (source === null) return fail("mustRetry", null, group);
    const reading = source.reads.rangePage(query, bounds, source.nowMs);
    if (reading.kind === "invalid") return fail("invalidInput", null, null);
    const { page } = reading;
    const ended = advanced ? null : latestEnded(page.items, group.leaseNowMs());
    if (ended !== null && request.durability === Durability.persistent) {
      return serving.advance(group, ended, deadlineMs, fail, () => read(true));
    }
    // Nothing but rows that ended in one turn's share of visits: go on behind them in another turn.
    if (page.items.length === 0 && page.next !== null) {
      const { next } = page;
      return readRangeAfter(serving, group, request, next, deadlineMs, fail, then);
    }
    then(page);
  };
  serving.confirm(group, deadlineMs, fail, () => read(false));
}

/** The answer to a cursor that is not one of its query. */
export function badCursor(): KvPageAnswer {
  return emptyPage(KvType.invalidInput, NOWHERE);
}
