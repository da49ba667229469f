/**
 * What there is to watch in a world: keys, locks and sequences of its workload, alone and many at once.
 *
 * Pure.
 */
import type { Prng } from "../../../src/base/prng.js";
import { WatchKind } from "../../../src/base/result-types.js";
import { BUCKETS } from "../clients/kv-requests.js";
import { pick } from "../clients/workload.js";
import type { Plan } from "../plan/plan.js";

/** Names of the kind lie in every partition. */
export function isOfMany(kind: number): boolean {
  return kind === WatchKind.prefix || kind === WatchKind.lockPrefix;
}

/** Kind and name. */
export function drawName(prng: Prng, plan: Plan): readonly [number, string] {
  switch (prng.below(7)) {
    case 0:
      return [WatchKind.key, `bucket-${prng.below(3)}/key-${prng.below(Math.min(3, plan.keys))}`];
    case 1:
    case 2:
      return [WatchKind.prefix, pick(prng, ["bucket-", "bucket-1", "bucket-2/", "b"])];
    case 3:
      return [WatchKind.bucket, pick(prng, BUCKETS)];
    case 4:
      return [WatchKind.lock, pick(prng, [`lock-${prng.below(plan.locks)}`, "forced/0"])];
    case 5:
      return [WatchKind.lockPrefix, pick(prng, ["lock-", "forced/", "forced/1"])];
    default:
      return [WatchKind.sequence, `seq-${prng.below(plan.sequences)}`];
  }
}
