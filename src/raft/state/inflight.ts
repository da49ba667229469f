/**
 * The appends with entries that are on their way to one follower: a window, limited by count and by
 * bytes.
 *
 * Invariants: 1. Last indexes ascend. 2. The sums equal what the ring holds. 3. The ring grows only
 * up to what is in use.
 */
import { assert } from "../../base/assert.js";
import type { LogIndex } from "./types.js";

/** Of a window that was never used: most are not, and there is one per group and member. */
const NOTHING: number[] = [];

export class Inflight {
  private readonly maxCount: number;
  private readonly maxBytes: number;
  private lasts: LogIndex[] = NOTHING;
  private sizes: number[] = NOTHING;
  private head = 0;
  private used = 0;
  private bytes = 0;

  constructor(maxCount: number, maxBytes: number) {
    this.maxCount = maxCount;
    this.maxBytes = maxBytes;
  }

  get count(): number {
    return this.used;
  }

  get sizeBytes(): number {
    return this.bytes;
  }

  get full(): boolean {
    return this.used >= this.maxCount || this.bytes >= this.maxBytes;
  }

  /** One more append, that ends at `last`, is on its way. */
  add(last: LogIndex, sizeBytes: number): void {
    assert(!this.full, "a full window takes nothing");
    if (this.used === this.lasts.length) this.grow();
    const at = (this.head + this.used) % this.lasts.length;
    this.lasts[at] = last;
    this.sizes[at] = sizeBytes;
    this.used++;
    this.bytes += sizeBytes;
  }

  /** Everything up to `index` has arrived. */
  freeUpTo(index: LogIndex): void {
    while (this.used > 0 && (this.lasts[this.head] as LogIndex) <= index) {
      this.bytes -= this.sizes[this.head] as number;
      this.head = (this.head + 1) % this.lasts.length;
      this.used--;
    }
    assert(this.used > 0 || this.bytes === 0, "an empty window holds no bytes");
  }

  clear(): void {
    this.head = 0;
    this.used = 0;
    this.bytes = 0;
  }

  private grow(): void {
    const capacity = Math.max(4, this.lasts.length * 2);
    const lasts: LogIndex[] = [];
    const sizes: number[] = [];
    for (let at = 0; at < capacity; at++) {
      const from = (this.head + at) % Math.max(1, this.used);
      lasts.push(at < this.used ? (this.lasts[from] as LogIndex) : 0);
      sizes.push(at < this.used ? (this.sizes[from] as number) : 0);
    }
    this.lasts = lasts;
    this.sizes = sizes;
    this.head = 0;
  }
}
