/**
 * One of several locks of the same kind: so many may work at a time.
 *
 * Pure but for what it asks for. Invariants: 1. All are tried, in random order, before one is
 * waited for. 2. At most one of them is held in the end, by the handle that is given.
 */
import { InvalidInputError } from "../values/errors.js";
import { int32Of } from "../values/numbers.js";
import { durationMs } from "../values/options.js";
import type { LockHandle } from "./lock-handle.js";
import type { AcquireOptions } from "./lock-shapes.js";

/** Of one name; each is asked about when all are held. */
const PERMITS_MAX = 1000;

type Acquire = (resource: string, options: AcquireOptions) => Promise<LockHandle>;

/** `random`: from 0 to below 1. */
export async function acquirePermit(
  acquire: Acquire,
  random: () => number,
  name: string,
  count: number,
  options: AcquireOptions,
): Promise<LockHandle> {
  const permits = int32Of("count", count, 0);
  if (permits < 1 || permits > PERMITS_MAX) {
    throw new InvalidInputError(`count is 1 to ${PERMITS_MAX}`);
  }
  const { waitMs = 0 } = options;
  if (waitMs !== Number.POSITIVE_INFINITY) durationMs("waitMs", waitMs, 0);
  const left = Array.from({ length: permits }, (_, at) => `${name}#${at}`);
  let handle: LockHandle;
  let resource: string;
  do {
    const at = Math.floor(random() * left.length);
    [resource] = left.splice(at, 1) as [string];
    handle = await acquire(resource, { ...options, waitMs: 0 });
    if (handle.acquired) return handle;
  } while (left.length > 0);
  return waitMs === 0 ? handle : acquire(resource, options);
}
