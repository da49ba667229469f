/**
 * Keys by the end of their lease, for whoever has to know when it is there.
 *
 * Pure but for what it owns. Invariants: 1. A key is kept once, with the end that was told last. 2.
 * Asking costs as many keys as end, and a list of seconds.
 */
import { ended } from "../decision/lease.js";
import type { ByteKey } from "../store/keys.js";

const BUCKET_MS = 1000;

function bucketOf(endMs: number): number {
  return Math.floor(endMs / BUCKET_MS);
}

export class EndingLeases {
  private readonly ends = new Map<ByteKey, number>();
  private readonly buckets = new Map<number, Set<ByteKey>>();

  get size(): number {
    return this.ends.size;
  }

  endOf(key: ByteKey): number | null {
    return this.ends.get(key) ?? null;
  }

  set(key: ByteKey, endMs: number): void {
    this.delete(key);
    this.ends.set(key, endMs);
    const bucket = bucketOf(endMs);
    const keys = this.buckets.get(bucket);
    if (keys === undefined) this.buckets.set(bucket, new Set([key]));
    else keys.add(key);
  }

  delete(key: ByteKey): void {
    const endMs = this.ends.get(key);
    if (endMs === undefined) return;
    this.ends.delete(key);
    const bucket = bucketOf(endMs);
    const keys = this.buckets.get(bucket);
    keys?.delete(key);
    if (keys?.size === 0) this.buckets.delete(bucket);
  }

  /** The keys whose lease is over at `nowMs`; they are forgotten. */
  take(nowMs: number): ByteKey[] {
    const found: ByteKey[] = [];
    for (const [bucket, keys] of this.buckets) {
      if (bucket > bucketOf(nowMs)) continue;
      for (const key of keys) if (ended(this.ends.get(key) as number, nowMs)) found.push(key);
    }
    for (const key of found) this.delete(key);
    return found;
  }
}
