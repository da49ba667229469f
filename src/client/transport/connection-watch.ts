/**
 * Notices that a connection went silent while calls wait on it.
 *
 * Owns one timer, which runs only while there was something to watch. Invariants: 1. A connection
 * without calls is left alone. 2. One with calls on which nothing came for `quietMs` is probed;
 * when the probe gets nothing either, it is silent. 3. Answers that wait in the socket after a
 * pause of the event loop are taken before the verdict.
 */
import type { ClientPlatform, Timer } from "../time/platform.js";

export interface Watched {
  /** When something came last. */
  readonly aliveMs: number;
  /** Asks for a sign of life; `done` is called once, after `limitMs` at the latest. */
  probe(limitMs: number, done: () => void): void;
  /** Nothing came: the connection is to be given up. */
  silent(): void;
}

export class ConnectionWatch {
  private readonly platform: ClientPlatform;
  private readonly connection: Watched;
  private readonly quietMs: number;
  private timer: Timer | null = null;
  private calls = 0;
  private busySinceMs = 0;
  private probing = false;

  constructor(platform: ClientPlatform, connection: Watched, quietMs: number) {
    this.platform = platform;
    this.connection = connection;
    this.quietMs = quietMs;
  }

  /** A call waits on the connection, or a stream with calls. */
  began(): void {
    this.calls += 1;
    if (this.calls > 1) return;
    this.busySinceMs = this.platform.nowMs();
    if (this.timer === null && !this.probing) this.arm(this.quietMs);
  }

  ended(): void {
    this.calls -= 1;
  }

  close(): void {
    this.timer?.cancel();
    this.timer = null;
  }

  private arm(waitMs: number): void {
    this.timer = this.platform.after(Math.max(1, Math.ceil(waitMs)), () => this.look());
    // The deadlines of the calls keep the process alive, not this.
    this.timer.unref();
  }

  private look(): void {
    this.timer = null;
    if (this.calls === 0) return;
    const quietForMs = this.platform.nowMs() - Math.max(this.busySinceMs, this.connection.aliveMs);
    if (quietForMs < this.quietMs) return this.arm(this.quietMs - quietForMs);
    this.probing = true;
    const sinceMs = this.platform.nowMs();
    this.connection.probe(Math.max(1, this.quietMs / 2), () =>
      this.platform.soon(() => this.verdict(sinceMs)),
    );
  }

  private verdict(probedMs: number): void {
    this.probing = false;
    if (this.calls === 0) return;
    if (this.connection.aliveMs < probedMs) this.connection.silent();
    else this.arm(this.quietMs);
  }
}
