/**
 * The slow beat of a node: everything that goes by time and not by events, once per heartbeat
 * interval.
 *
 * May call: base, this folder. Invariants: 1. Ticks are derived from elapsed monotonic time, after
 * the inbox of the turn, and capped below an election timeout; a longer gap is reported (P-009,
 * P-010). 2. Only groups for which raft time matters are ticked. 3. A beat costs a few comparisons
 * per group.
 */
import type { DriverShared } from "./driver.js";
import type { Flusher } from "./flusher.js";
import type { Hosting } from "./hosting.js";
import type { StuckLeaders } from "./stuck.js";

/** Missed ticks that are made up for at once: what was sent meanwhile may not be read yet. */
const MISSED_TICKS_MAX = 3;

export class Pulse {
  private lastTickMs: number;
  private nextMs: number;
  private wasClosed = false;
  /** Gaps between beats that were longer than an election timeout. */
  lateCount = 0;

  /** `onIntakeOpened` is called when the log or the store has room again. */
  constructor(
    private readonly shared: DriverShared,
    private readonly hosting: Hosting,
    private readonly flusher: Flusher,
    private readonly onIntakeOpened: () => void,
    private readonly stuck: StuckLeaders,
    /** Called once per beat. */
    private readonly alsoAtBeat: (nowMs: number) => void,
  ) {
    this.lastTickMs = shared.ports.clock.monotonicMs();
    this.nextMs = this.lastTickMs;
  }

  get nextBeatMs(): number {
    return this.nextMs;
  }

  beat(nowMs: number): void {
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + this.shared.settings.heartbeatMs;
    this.tick(nowMs);
    this.watchIntake();
    this.flusher.relieveLog();
    this.flusher.check(nowMs, true);
    this.hosting.look(nowMs);
    this.alsoAtBeat(nowMs);
  }

  private tick(nowMs: number): void {
    const { heartbeatMs, electionMs } = this.shared.settings;
    const gapMs = nowMs - this.lastTickMs;
    const ticks = Math.floor(gapMs / heartbeatMs);
    if (ticks === 0) return;
    this.lastTickMs += ticks * heartbeatMs;
    if (gapMs > electionMs) {
      this.lateCount++;
      const fields = { gapMs: Math.round(gapMs) };
      this.shared.ports.logger.log("warn", "This node stood still for a while.", fields);
    }
    const capped = Math.min(ticks, MISSED_TICKS_MAX);
    for (const { driver } of this.hosting.all) {
      if (driver.needsTicks && this.stuck.check(driver, nowMs)) driver.tick(capped, nowMs);
    }
  }

  private watchIntake(): void {
    const closed = !this.shared.intakeOpen();
    this.stuck.noteIntake(!closed, this.shared.ports.clock.monotonicMs());
    if (this.wasClosed && !closed) this.onIntakeOpened();
    this.wasClosed = closed;
  }
}
