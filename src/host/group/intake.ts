/**
 * The way into one group: admission of commands, reads and clock advances.
 *
 * Invariants: 1. What is refused here was never queued and has no effect. 2. Whatever is accepted
 * is answered by its deadline: the group's wake time covers it (contract C9). 3. Not-leading
 * refuses at once; leading without serving lets commands and reads wait (P-014).
 */
import type { Command } from "../../machine/commands/command.js";
import { ClockAdvances } from "../requests/clockadvance.js";
import type { DriverShared, GroupDriver } from "./driver.js";
import type { ProposalDone, ReadDone, RefusalReason } from "../requests/results.js";

export class Intake {
  readonly advances: ClockAdvances;
  /** Commands accepted that may leave rows behind: what retention goes by. */
  changesAccepted = 0;

  constructor(
    private readonly shared: DriverShared,
    private readonly driver: GroupDriver,
  ) {
    this.advances = new ClockAdvances(shared.answers, (command, sizeBytes, deadlineMs, done) =>
      this.propose(command, sizeBytes, deadlineMs, done),
    );
  }

  propose(command: Command, sizeBytes: number, deadlineMs: number, done: ProposalDone): void {
    const { driver, shared } = this;
    if (!driver.leadership.isLeading) return this.refuse(done, "not-leader");
    if (!shared.admits()) return this.refuse(done, "overloaded");
    driver.peers.rouse();
    const nowMs = shared.ports.clock.monotonicMs();
    const waiter = { command, sizeBytes, deadlineMs, done };
    if (!driver.batcher.enqueue(waiter, nowMs)) return this.refuse(done, "overloaded");
    if (command.kind !== "collect" && command.kind !== "advance-clock") this.changesAccepted++;
    if (driver.wantsCut(nowMs)) shared.wake(driver);
    shared.wakeAt(driver.wakeAtMs);
  }

  read(deadlineMs: number, done: ReadDone): void {
    const { driver, shared } = this;
    const { isLeading, isServing } = driver.leadership;
    if (!isLeading || !driver.reads.add(deadlineMs, done)) {
      shared.answers.read(done, { status: "retry" });
      return;
    }
    driver.peers.rouse();
    if (isServing) shared.wake(driver);
    shared.wakeAt(deadlineMs);
  }

  advanceClock(leaseTimeMs: number, deadlineMs: number, done: ProposalDone): void {
    this.advances.add(leaseTimeMs, deadlineMs, done);
    this.shared.wakeAt(deadlineMs);
  }

  expire(nowMs: number): void {
    this.driver.expire(nowMs);
    this.advances.expire(nowMs);
  }

  /** When this group wants a turn although nothing happens. */
  get wakeAtMs(): number {
    return Math.min(this.driver.wakeAtMs, this.advances.earliestDeadlineMs);
  }

  private refuse(done: ProposalDone, reason: RefusalReason): void {
    this.shared.answers.proposal(done, { status: "refused", reason });
  }
}
