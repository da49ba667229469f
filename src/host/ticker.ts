/**
 * The ticks of a node: everything that goes by time and not by events, once per heartbeat
 * interval, and less often while all groups sleep.
 *
 * Invariants: 1. Raft ticks are derived from elapsed monotonic time, after the inbox of the turn,
 * and capped below an election timeout; a longer gap is reported (P-009, P-010). 2. Only groups for
 * which raft time matters are ticked. 3. A tick costs a few comparisons per group that is awake;
 * one that sleeps is looked at every five seconds.
 */
import type { GroupOwner } from "./group/group-owner.js";
import type { ReplicaDeps, Replica } from "./group/replica.js";
import type { Flusher } from "./storage/flusher.js";
import type { GroupRegistry } from "./cluster/group-registry.js";
import { PROBE_STEP_MS } from "./group/quiescence.js";
import type { DiskStallTransfers } from "./leaders/disk-stall.js";
import type { ActiveGroups } from "./group/active-groups.js";

/** Missed ticks that are made up for at once: what was sent meanwhile may not be read yet. */
const MISSED_TICKS_MAX = 3;
/** A node that rests ticks after so many heartbeat intervals, and after so long at most (ms). */
const REST_INTERVALS = 10;
const REST_MAX_MS = 1000;

export class Ticker implements GroupOwner {
  private lastTickMs: number;
  private nextMs: number;
  private wasClosed = false;
  /** Groups for which time matters, as far as is known; sleepers are looked at more seldom. */
  private readonly ticking = new Set<Replica>();
  private allAreDue = true;
  private probeStep = -1;
  private resting = false;
  /** A group was woken since the last tick began. */
  private unquiesced = false;
  /** Gaps between ticks that were longer than an election timeout. */
  lateCount = 0;

  /** `onIntakeOpened` is called when the log or the store has room again. */
  constructor(
    private readonly shared: ReplicaDeps,
    private readonly registry: GroupRegistry,
    private readonly flusher: Flusher,
    private readonly onIntakeOpened: () => void,
    private readonly diskStalls: DiskStallTransfers,
    private readonly activeGroups: ActiveGroups,
    /** Called once per tick; returns whether something waits for the next one. */
    private readonly alsoAtTick: (nowMs: number) => boolean,
  ) {
    this.lastTickMs = shared.ports.clock.monotonicMs();
    this.nextMs = this.lastTickMs;
  }

  get nextTickMs(): number {
    return this.nextMs;
  }

  /** A group is woken: the tick goes on as usual. */
  unquiesce(): void {
    this.unquiesced = true;
    if (!this.resting) return;
    this.resting = false;
    this.lastTickMs = this.shared.ports.clock.monotonicMs();
    this.nextMs = this.lastTickMs + this.shared.settings.heartbeatMs;
  }

  removed(replica: Replica): void {
    this.ticking.delete(replica);
  }

  /** Groups are awake that nobody runs: the next tick looks at all. */
  unquiesceAll(): void {
    this.allAreDue = true;
    this.unquiesce();
  }

  private get restMs(): number {
    const { heartbeatMs } = this.shared.settings;
    return Math.max(heartbeatMs, Math.min(REST_INTERVALS * heartbeatMs, REST_MAX_MS));
  }

  tick(nowMs: number): void {
    if (nowMs < this.nextMs) return;
    const { heartbeatMs } = this.shared.settings;
    const isAwake = this.tickGroups(nowMs);
    this.watchIntake();
    this.flusher.relieveLog(nowMs);
    this.flusher.check(nowMs, true);
    this.registry.look(nowMs);
    const isWanted = this.alsoAtTick(nowMs);
    this.resting = !isAwake && !this.unquiesced && !isWanted && !this.wasClosed;
    // Only now: whoever was woken since the last tick may get its turn behind this one.
    this.unquiesced = false;
    this.nextMs = nowMs + (this.resting ? this.restMs : heartbeatMs);
  }

  /** Returns whether raft time matters to any group. */
  private tickGroups(nowMs: number): boolean {
    const count = this.ticksUntil(nowMs);
    this.gather(nowMs);
    for (const replica of this.ticking) {
      const isTicked = replica.needsTicks;
      if (isTicked && count > 0 && this.diskStalls.check(replica, nowMs))
        replica.tick(count, nowMs);
      if (!isTicked || !replica.peers.isRestless) this.ticking.delete(replica);
    }
    return this.ticking.size > 0;
  }

  /** Who is to be ticked: who was run, and now and then all, because sleepers ask by time. */
  private gather(nowMs: number): void {
    const step = Math.floor(nowMs / PROBE_STEP_MS);
    if (step !== this.probeStep || this.allAreDue || this.wasClosed) {
      for (const { replica } of this.registry.all) this.ticking.add(replica);
    } else {
      for (const replica of this.activeGroups.all()) this.ticking.add(replica);
    }
    this.probeStep = step;
    this.allAreDue = false;
  }

  private ticksUntil(nowMs: number): number {
    const { heartbeatMs, electionMs } = this.shared.settings;
    const dueMs = this.resting ? this.nextMs : this.lastTickMs;
    const gapMs = nowMs - dueMs;
    if (gapMs > electionMs) {
      this.lateCount++;
      const fields = { gapMs: Math.round(gapMs) };
      this.shared.ports.logger.log("warn", "This node stood still for a while.", fields);
    }
    if (this.resting) {
      this.lastTickMs = nowMs;
      return 1;
    }
    const ticks = Math.floor(gapMs / heartbeatMs);
    this.lastTickMs += ticks * heartbeatMs;
    return Math.min(ticks, MISSED_TICKS_MAX);
  }

  private watchIntake(): void {
    const closed = !this.shared.intakeOpen();
    this.diskStalls.noteIntake(!closed, this.shared.ports.clock.monotonicMs());
    if (this.wasClosed && !closed) this.onIntakeOpened();
    this.wasClosed = closed;
  }
}
