/**
 * Snapshots on their way to or from a node, as places that are taken.
 *
 * What a snapshot costs goes by its bytes: memory, disk and network of whoever reads, sends and
 * takes it. A near-empty one costs none of these to speak of, only some turns and time, and would
 * keep others waiting for nothing.
 *
 * Pure. Invariants: 1. A large one takes a place, a smaller one as much of it as it has of
 * SNAPSHOT_PLACE_BYTES, one without bytes none. 2. Beside the places there is a bound on their
 * number, whatever their size. 3. What is not known in size is large.
 */
import { SNAPSHOT_PLACE_BYTES } from "../base/limits.js";

export class SnapshotLoad {
  private count = 0;
  /** Of each at most SNAPSHOT_PLACE_BYTES. */
  private bytes = 0;

  add(sizeBytes: number): void {
    this.count++;
    this.bytes += Math.min(sizeBytes, SNAPSHOT_PLACE_BYTES);
  }

  /** Somebody counted so many: those that are not known here are more of them. */
  raiseTo(count: number): void {
    while (this.count < count) this.add(Infinity);
  }

  /** Whether another one may begin. */
  isBelow(places: number, countMax: number): boolean {
    return this.count < countMax && this.bytes < places * SNAPSHOT_PLACE_BYTES;
  }
}
