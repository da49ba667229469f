/**
 * Reads of a whole bucket: one view of it, taken in slices so that a large one stalls nobody.
 *
 * May call base, machine, host and this folder. Invariants: 1. What is shown is the bucket at the
 * instant of the first slice, which lies after the proof of leadership. 2. A bucket is whole or
 * refused (K13, K14). 3. An entry whose lease ended before the read began is never shown: the clock
 * is committed first. 4. Every view that was opened is closed, on every path.
 */
import { KvType } from "../machine/command.js";
import { bucketStretch } from "../machine/pages.js";
import type { PageItem } from "../machine/reading.js";
import type { GroupAccess } from "./access.js";
import type { KvPageAnswer } from "./answers.js";
import { latestEnded } from "./kv.js";
import { pageItem, sourceOf } from "./kv-pages.js";
import { Durability, type KvBucketRequest } from "./requests.js";
import type { Fail, KeyPlace, Serving } from "./serving.js";
import { emptyPage } from "./shapes.js";
import { SlicedShare } from "./slices.js";

type Done = (answer: KvPageAnswer) => void;

/** Rows looked at in one turn: some 20 ms. */
export const BUCKET_VISITS = 2000;
/** Bytes read in one turn, roughly. */
const SLICE_BYTES = 1024 * 1024;

/** Why a bucket was not read to its end. */
type Cut = "too-large" | "invalid" | "overrun" | "late" | "stopping" | "crowded";

/** Carries out one acceptable get-by-bucket. */
export function readBucket(
  serving: Serving,
  { group, origin }: KeyPlace,
  request: KvBucketRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const { durability } = request;
  const read = (advanced: boolean): void => {
    const source = sourceOf(group, durability);
    if (source === null) return fail("mustRetry", null, group);
    // By what the leader's clock says at this instant, not when the last slice is through.
    const beganMs = group.leaseNowMs();
    gather(serving, group, request, source.nowMs, deadlineMs, (items) => {
      if (items === "invalid") return fail("invalidInput", null, null);
      if (items === "too-large") return done(emptyPage(KvType.errored, origin, null, true));
      if (items === "crowded") return fail("mustRetry", "overloaded", null);
      if (items === "stopping") return fail("aborted", null, group);
      if (items === "overrun" || items === "late") return fail("mustRetry", null, group);
      const ended = advanced ? null : latestEnded(items, beganMs);
      if (ended !== null && durability === Durability.persistent) {
        return serving.advance(group, ended, deadlineMs, fail, () => read(true));
      }
      const shown = items.map((item) => pageItem(serving, group, item));
      done({ ...emptyPage(KvType.got, origin), items: shown });
    });
  };
  serving.confirm(group, deadlineMs, fail, () => read(false));
}

/** Reads all live items of the bucket as it is now, slice by slice. */
function gather(
  serving: Serving,
  group: GroupAccess,
  { bucket, durability }: KvBucketRequest,
  nowMs: number,
  deadlineMs: number,
  then: (items: readonly PageItem[] | Cut) => void,
): void {
  const { responseMaxBytes } = serving.settings;
  const holder = durability === Durability.persistent ? group.machine : group.ephemeral;
  const view = holder?.still(bucketStretch(bucket), responseMaxBytes) ?? null;
  if (view === null) return then("invalid");
  const query = { bucket, startKey: null, startInclusive: true, endKey: null, endInclusive: true };
  const items: PageItem[] = [];
  const share = new SlicedShare(serving.sliced);
  let sizeBytes = 0;
  const end = (result: readonly PageItem[] | Cut): void => {
    view.close();
    share.close();
    then(result);
  };
  const slice = (after: Uint8Array | null): void => {
    if (serving.node.shuttingDown) return end("stopping");
    if (view.overrun) return end("overrun");
    const bounds = { after, limit: 0, maxBytes: SLICE_BYTES, maxVisits: BUCKET_VISITS };
    const reading = view.reads.rangePage(query, bounds, nowMs);
    if (reading.kind === "invalid") return end("invalid");
    const { page } = reading;
    sizeBytes += page.sizeBytes;
    if (sizeBytes > responseMaxBytes) return end("too-large");
    for (const item of page.items) items.push(item);
    const { next } = page;
    if (next === null) return end(items);
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return end("late");
    if (!share.hold(sizeBytes)) return end("crowded");
    serving.ports.timer.after(0, () => slice(next));
  };
  slice(null);
}
