/**
 * Prefix scans: over the whole cluster (K15) and over the partitions that this node leads (K17),
 * page by page.
 *
 * May call base, machine, host and this folder. Invariants: 1. Every partition that takes part is
 * proved to lead before anything is read, and all are shown as they are in the one turn in which
 * the last proof came in. 2. A page is in key order over all partitions, and its cursor is the last
 * key that was considered in every one of them: nothing is lost or doubled between pages. 3. A page
 * holds at least one item if there is one.
 */
import { KvType } from "../machine/command.js";
import { decodeCursor, encodeCursor } from "../machine/cursor.js";
import type { GroupAccess } from "./access.js";
import type { KvPageAnswer } from "./answers.js";
import { latestEnded } from "./kv.js";
import { type MergedPage, mergePage } from "./kv-merge.js";
import { badCursor, pageItem, queryText } from "./kv-pages.js";
import { Durability, type KvScanRequest } from "./requests.js";
import type { Fail, Serving } from "./serving.js";
import { emptyPage } from "./shapes.js";

type Done = (answer: KvPageAnswer) => void;

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
  const merge = (end: (merged: MergedPage) => void): void => {
    mergePage(serving, groups, request, after, deadlineMs, (merged) => {
      if (merged === "gone" || merged === "late") fail("mustRetry", null, null);
      else if (merged === "crowded") fail("mustRetry", "overloaded", null);
      else if (merged === "stopping") fail("aborted", null, null);
      else end(merged);
    });
  };
  merge((merged) => {
    const late = request.durability === Durability.persistent ? lateGroups(merged, groups) : [];
    let open = late.length;
    if (open === 0) return then(merged);
    let failed = false;
    for (const [group, endedMs] of late) {
      const end = (): void => {
        open--;
        if (open > 0) return;
        if (failed) fail("mustRetry", null, null);
        else merge(then);
      };
      const failOne: Fail = () => {
        failed = true;
        end();
      };
      serving.advance(group, endedMs, deadlineMs, failOne, end);
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
