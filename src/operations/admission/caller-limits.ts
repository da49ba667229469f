/**
 * How many requests each caller may make in a second (contract 10.9): a bucket for each, that fills
 * as time goes by.
 *
 * Owns the buckets. Invariants: 1. A caller gets its rate in any second, and what it left of the
 * second before at most. 2. Whoever is not named is not limited: it is another node. 3. At most
 * CALLERS_MAX are known; who came first is forgotten first, and begins with a full bucket again.
 */
import type { RequestContext } from "../api/context.js";

const CALLERS_MAX = 10_000;
const SECOND_MS = 1000;

interface Bucket {
  left: number;
  atMs: number;
}

export class CallerLimits {
  /** Requests refused since the start. */
  refused = 0;
  private readonly buckets = new Map<string, Bucket>();

  /** `perSecond`: 0 = no limit, but for callers that have one of their own. */
  constructor(private perSecond: number) {}

  /** From now on; what callers have left stays, up to the new rate. */
  change(perSecond: number): void {
    this.perSecond = perSecond;
  }

  /** Counts a request; false: it is one too many. */
  admits({ caller }: Pick<RequestContext, "caller">, nowMs: number): boolean {
    if (caller === undefined) return true;
    const rate = caller.rate ?? this.perSecond;
    if (rate === 0) return true;
    const bucket = this.bucketOf(caller.name, rate, nowMs);
    const filled = bucket.left + ((nowMs - bucket.atMs) * rate) / SECOND_MS;
    bucket.left = Math.min(rate, filled);
    bucket.atMs = nowMs;
    if (bucket.left < 1) {
      this.refused++;
      return false;
    }
    bucket.left--;
    return true;
  }

  private bucketOf(name: string, rate: number, nowMs: number): Bucket {
    const known = this.buckets.get(name);
    if (known !== undefined) return known;
    if (this.buckets.size >= CALLERS_MAX) {
      for (const first of this.buckets.keys()) {
        this.buckets.delete(first);
        break;
      }
    }
    const bucket = { left: rate, atMs: nowMs };
    this.buckets.set(name, bucket);
    return bucket;
  }
}
