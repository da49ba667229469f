/**
 * Pages of a bucket's range, and what all reads of many keys share.
 *
 * Invariants: 1. What one answer shows of one partition is its state at one instant after
 * leadership was proved. 2. An entry whose lease ended before the read began is never shown: the
 * clock is committed first. 3. A cursor belongs to its query.
 */
import { RANGE_PAGE_LIMIT_DEFAULT } from "../../base/limits.js";
import { KvType } from "../../machine/commands/command.js";
import type { PageItem } from "../../machine/decision/reading.js";
import type { GroupAccess } from "../api/host-view.js";
import type { KvPageAnswer, KvPageItem } from "../api/answers.js";
import { rangeAfter, rangeCursor, rangeQueryOf } from "../api/page-query.js";
import { latestEnded } from "./kv.js";
import { type Wanted, failCut, gather } from "./kv-gather.js";
import { Durability, type KvRangeRequest } from "../api/requests.js";
import type { Attempt } from "../serving/attempt.js";
import type { Serving } from "../serving/serving.js";
import { NOWHERE, emptyPage } from "../api/shapes.js";

export function pageItem(serving: Serving, group: GroupAccess, item: PageItem): KvPageItem {
  const { key, value, revision, leaseEndMs, lastModified, state } = item;
  return { key, value, revision, expires: serving.expires(group, leaseEndMs), lastModified, state };
}

/** Carries out one acceptable get-by-range. */
export function readRange(attempt: Attempt<KvPageAnswer>, request: KvRangeRequest): void {
  const { serving, group, origin } = attempt;
  const after = rangeAfter(request);
  if (after === "bad") {
    return serving.ports.timer.soon(() => attempt.fail("invalidInput", null, null));
  }
  const { durability } = request;
  const wanted: Wanted = {
    query: rangeQueryOf(request),
    durability,
    after,
    limit: request.limit === 0 ? RANGE_PAGE_LIMIT_DEFAULT : request.limit,
    maxBytes: serving.settings.pageBytes,
  };
  const read = (advanced: boolean): void => {
    gather(attempt, wanted, (result) => {
      if (typeof result === "string") return failCut(result, attempt);
      const ended = advanced ? null : latestEnded(result.items, result.beganMs);
      if (ended !== null && durability === Durability.persistent) {
        return attempt.advance(ended, () => read(true));
      }
      const items = result.items.map((item) => pageItem(serving, group, item));
      const nextCursor = result.next === null ? null : rangeCursor(request, result.next);
      const hasMore = result.next !== null;
      attempt.done({ ...emptyPage(KvType.got, origin), items, nextCursor, hasMore });
    });
  };
  attempt.confirm(() => read(false));
}

/** The answer to a cursor that is not one of its query. */
export function badCursor(): KvPageAnswer {
  return emptyPage(KvType.invalidInput, NOWHERE);
}
