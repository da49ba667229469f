/**
 * Reads of a whole bucket: one view of it, taken in slices so that a large one stalls nobody.
 *
 * Invariants: 1. What is shown is the bucket at the instant of the first slice, which lies after
 * the proof of leadership. 2. A bucket is whole or refused (K13, K14). 3. An entry whose lease
 * ended before the read began is never shown: the clock is committed first.
 */
import { KvType } from "../../machine/commands/command.js";
import type { KvPageAnswer } from "../api/answers.js";
import { latestEnded } from "./kv.js";
import { failCut, gather } from "./kv-gather.js";
import { pageItem } from "./kv-pages.js";
import { wholeBucket } from "../api/page-query.js";
import { Durability, type KvBucketRequest } from "../api/requests.js";
import type { Attempt } from "../serving/attempt.js";
import { emptyPage } from "../api/shapes.js";

/** Carries out one acceptable get-by-bucket. */
export function readBucket(
  attempt: Attempt<KvPageAnswer>,
  { bucket, durability }: KvBucketRequest,
): void {
  const { serving, group, origin } = attempt;
  const { responseMaxBytes } = serving.settings;
  const query = wholeBucket(bucket);
  const wanted = { query, durability, after: null, limit: 0, maxBytes: responseMaxBytes };
  const read = (advanced: boolean): void => {
    gather(attempt, wanted, (result) => {
      if (typeof result === "string") return failCut(result, attempt);
      const { items, next, sizeBytes, beganMs } = result;
      if (next !== null || sizeBytes > responseMaxBytes) {
        return attempt.done(emptyPage(KvType.errored, origin, null, true));
      }
      const ended = advanced ? null : latestEnded(items, beganMs);
      if (ended !== null && durability === Durability.persistent) {
        return attempt.advance(ended, () => read(true));
      }
      const shown = items.map((item) => pageItem(serving, group, item));
      attempt.done({ ...emptyPage(KvType.got, origin), items: shown });
    });
  };
  attempt.confirm(() => read(false));
}
