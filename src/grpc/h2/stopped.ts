/**
 * Streams that were ended by us before their clients had finished: what still comes on them is
 * dropped.
 *
 * Invariants: 1. Never more than STOPPED_MAX are remembered: the oldest are forgotten.
 */
import { STREAMS_PER_CONNECTION_MAX } from "../../base/limits.js";

const STOPPED_MAX = 2 * STREAMS_PER_CONNECTION_MAX;

export class StoppedStreams {
  private readonly ids = new Set<number>();

  add(id: number): void {
    this.ids.add(id);
    if (this.ids.size <= STOPPED_MAX) return;
    const [oldest] = this.ids;
    if (oldest !== undefined) this.ids.delete(oldest);
  }

  has(id: number): boolean {
    return this.ids.has(id);
  }

  /** Forgets one; false: it was not remembered. */
  delete(id: number): boolean {
    return this.ids.delete(id);
  }
}
