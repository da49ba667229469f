/**
 * How fast a node makes pieces of images and logs for backups, so that whoever is served notices
 * little of it.
 *
 * Invariants: 1. Making pieces takes no more than a share of the loop's time: less while requests
 * come, least while the loop is late. 2. No more bytes are made in a second than the node may, of
 * all that it ships together. 3. It never stands still.
 */
import { BACKUP_BYTES_PER_SECOND } from "../../base/limits.js";
import type { LoadPort } from "../../ports.js";

const SHARE_IDLE = 0.7;
const SHARE_SERVING = 0.2;
const SHARE_LATE = 0.1;
/** From so many requests in a second on the node serves. */
const SERVING_PER_SECOND = 20;
const LATE_MS = 50;

export class ShipPace {
  private freeAtMs = -Infinity;

  constructor(private readonly load: LoadPort | null) {}

  /** From when on the next piece may be made (ms). */
  get nextMs(): number {
    return this.freeAtMs;
  }

  /** A piece of `sizeBytes` was made from `beganMs` to `endedMs`. */
  made(sizeBytes: number, beganMs: number, endedMs: number): void {
    const restMs = (endedMs - beganMs) * (1 / this.share() - 1);
    const byBytesMs = (sizeBytes * 1000) / BACKUP_BYTES_PER_SECOND;
    this.freeAtMs = Math.max(endedMs + restMs, Math.max(this.freeAtMs, beganMs) + byBytesMs);
  }

  private share(): number {
    const { load } = this;
    if (load === null) return SHARE_IDLE;
    if (load.loopLagP99Ms() > LATE_MS) return SHARE_LATE;
    return load.requestsPerSecond() >= SERVING_PER_SECOND ? SHARE_SERVING : SHARE_IDLE;
  }
}
