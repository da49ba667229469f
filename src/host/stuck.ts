/**
 * A leader whose disk hangs gives its groups away: its heartbeats would go on, and nothing would
 * ever commit (P-017).
 *
 * May call: this folder. Invariants: 1. Only writes that were handed to the log count: a lost
 * quorum is no reason. 2. First the leadership is offered; where nobody takes it, the group falls
 * silent, so that the others elect. 3. It ends by itself when the write becomes durable.
 */
import type { GroupDriver } from "./driver.js";
import type { Handover } from "./handover.js";

interface Open {
  readonly record: object;
  readonly sinceMs: number;
}

export class StuckLeaders {
  private readonly open = new Map<GroupDriver, Open>();
  /** Groups that were given away, or fell silent, because of a hanging write. */
  count = 0;

  constructor(
    private readonly handover: Handover,
    /** Age of a write at which the disk counts as hanging (ms). */
    private readonly stuckAfterMs: number,
    /** Time for somebody else to take over, before the group falls silent (ms). */
    private readonly patienceMs: number,
  ) {}

  /** Looks at one group, once per beat. Returns whether it is to be ticked. */
  check(driver: GroupDriver, nowMs: number): boolean {
    const record = driver.oldestWrite;
    if (record === null || !driver.leadership.isLeading || driver.members.isAlone) {
      this.open.delete(driver);
      return true;
    }
    const known = this.open.get(driver);
    if (known === undefined || known.record !== record) {
      this.open.set(driver, { record, sinceMs: nowMs });
      return true;
    }
    const ageMs = nowMs - known.sinceMs;
    if (ageMs < this.stuckAfterMs) return true;
    if (this.handover.order(driver, nowMs)) this.count++;
    return ageMs < this.stuckAfterMs + this.patienceMs;
  }
}
