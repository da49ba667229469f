/**
 * Waits between repeats: jittered and exponential, from 10 ms to 1 s.
 *
 * Owns the number of waits so far. Invariants: 1. A wait is at least what the server asked for. 2.
 * Callers that fail together do not come back together.
 */
import type { ClientPlatform } from "./platform.js";

const FIRST_MS = 10;
const LAST_MS = 1000;

export class Backoff {
  private readonly platform: ClientPlatform;
  private ceilingMs = FIRST_MS;

  constructor(platform: ClientPlatform) {
    this.platform = platform;
  }

  /** The next wait (ms). `atLeastMs`: what the server asked for. */
  nextMs(atLeastMs: number): number {
    const ceilingMs = this.ceilingMs;
    this.ceilingMs = Math.min(LAST_MS, ceilingMs * 2);
    return Math.max(atLeastMs, FIRST_MS, ceilingMs * (0.5 + this.platform.random() / 2));
  }
}
