/**
 * How many callers may try for one lock at the same time: a crowd before one resource must not fill
 * the node's admission and the partition's queue, or the holder could neither extend nor release
 * (P-070).
 *
 * Owns the counts. Invariants: 1. Only try-lock is counted and refused; extend, unlock and get-info
 * never are. 2. A count exists only while somebody tries, so the table is bounded by admission.
 */
import { assert } from "../../base/assert.js";

export class Contention {
  private readonly trying = new Map<string, number>();

  /** `contendersMax`: callers that may try for one resource at a time. */
  constructor(private readonly contendersMax: number) {
    assert(contendersMax >= 1, "somebody may always try");
  }

  /** Counts one caller in. False, and not counted: too many are trying already. */
  enter(resource: string): boolean {
    const count = this.trying.get(resource) ?? 0;
    if (count >= this.contendersMax) return false;
    this.trying.set(resource, count + 1);
    return true;
  }

  /** Counts one caller out. */
  leave(resource: string): void {
    const count = this.trying.get(resource) ?? 0;
    assert(count >= 1, "whoever leaves has entered");
    if (count === 1) this.trying.delete(resource);
    else this.trying.set(resource, count - 1);
  }

  /** Resources that somebody is trying for. */
  get size(): number {
    return this.trying.size;
  }
}
