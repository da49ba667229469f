/**
 * The clocks, timers and randomness of Node: the one file of the client that takes them from there.
 *
 * Owns no state beyond its timers. Invariants: 1. A delay longer than a timer can be is made of
 * several.
 */
import { uptime } from "node:os";
import type { ClientPlatform, Timer } from "./platform.js";

/** setTimeout fires at once when it is given more (ms). */
const TIMER_MAX_MS = 2_147_483_647;

class SystemTimer implements Timer {
  private readonly callback: () => void;
  private leftMs: number;
  private timeout: NodeJS.Timeout;
  private held = true;

  constructor(delayMs: number, callback: () => void) {
    this.callback = callback;
    this.leftMs = delayMs;
    this.timeout = this.slice();
  }

  private slice(): NodeJS.Timeout {
    const sliceMs = Math.min(this.leftMs, TIMER_MAX_MS);
    this.leftMs -= sliceMs;
    return setTimeout(() => this.sliceOver(), sliceMs);
  }

  private sliceOver(): void {
    if (this.leftMs <= 0) return this.callback();
    this.timeout = this.slice();
    if (!this.held) this.timeout.unref();
  }

  cancel(): void {
    clearTimeout(this.timeout);
  }

  ref(): void {
    this.held = true;
    this.timeout.ref();
  }

  unref(): void {
    this.held = false;
    this.timeout.unref();
  }
}

export const systemPlatform: ClientPlatform = {
  nowMs: () => performance.now(),
  uptimeMs: () => uptime() * 1000,
  wallMs: () => Date.now(),
  after: (delayMs, callback) => new SystemTimer(delayMs, callback),
  soon: (callback) => void setImmediate(callback),
  random: () => Math.random(),
};
