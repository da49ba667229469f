/**
 * How fast a node makes pieces of images and logs for backups, so that whoever is served notices
 * little of it.
 *
 * Invariants: 1. Making pieces takes no more than a share of the loop's time: less while requests
 * come, least while the loop is late as well. 2. No more bytes are made in a second than the node
 * may, of all that it ships together. 3. It never stands still. 4. A piece counts as what making it
 * costs: time that other processes took meanwhile asks for no rest.
 */
import { BACKUP_BYTES_PER_SECOND } from "../../base/limits.js";
import type { LoadPort } from "../../ports.js";

const SHARE_IDLE = 0.7;
const SHARE_SERVING = 0.2;
const SHARE_LATE = 0.1;
/** From so many requests in a second on the node serves. */
const SERVING_PER_SECOND = 20;
const LATE_MS = 50;
/** Making so many bytes costs the loop a millisecond at most. */
const BYTES_PER_MS = 32 * 1024;
/** So much may be made before its time, so that a turn makes more than one piece (ms). */
const AHEAD_MS = 4;

export class ShipPace {
  private freeAtMs = -Infinity;

  constructor(private readonly load: LoadPort | null) {}

  /** From when on the next piece may be made (ms). */
  get nextMs(): number {
    return this.freeAtMs - AHEAD_MS;
  }

  /** A piece of `sizeBytes` was made from `beganMs` to `endedMs`. */
  made(sizeBytes: number, beganMs: number, endedMs: number): void {
    const spentMs = Math.min(endedMs - beganMs, sizeBytes / BYTES_PER_MS);
    const byBytesMs = (sizeBytes * 1000) / BACKUP_BYTES_PER_SECOND;
    const takesMs = Math.max(spentMs / this.share(), byBytesMs);
    this.freeAtMs = Math.max(this.freeAtMs, beganMs) + takesMs;
  }

  private share(): number {
    const { load } = this;
    if (load === null) return SHARE_IDLE;
    const isServing = load.requestsPerSecond() >= SERVING_PER_SECOND;
    if (load.loopLagP99Ms() > LATE_MS) return isServing ? SHARE_LATE : SHARE_SERVING;
    return isServing ? SHARE_SERVING : SHARE_IDLE;
  }
}
