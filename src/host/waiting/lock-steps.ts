/**
 * Releases upon which the next holder of a lock was told in memory: on their way into the log.
 *
 * Owns who has released and was not answered. Invariants: 1. A release goes its way until it is
 * applied or the leadership ends: one that is refused on the way, though the leadership goes on, is
 * proposed again, and nobody is told in memory before. 2. Whoever released is answered once, when
 * that is applied, at its deadline at the latest. 3. Upon whose release somebody was told is never
 * told that it came to nothing, nor is it carried to another leader: it had its effect here.
 */
import { LockType } from "../../machine/commands/command.js";
import { DueHeap, type DueItem } from "./due-heap.js";
import type { Decision, LockCall, LockDecisions } from "./lock-decisions.js";
import type { Queue } from "./queue.js";
import type { ListedHeir, Succession } from "./succession.js";
import { RETRY_MS, type WaitingPorts } from "./waiting.js";

export class Step implements DueItem {
  dueMs = 0;
  heapAt = -1;
  isTold = false;
  isAnswered = false;

  constructor(
    readonly queue: Queue,
    readonly succession: Succession,
    /** Whoever is told. */
    readonly heir: ListedHeir,
    readonly call: LockCall,
  ) {}
}

/** Where the steps are made. */
export interface Stepping {
  isCurrent(queue: Queue): boolean;
  /** Reads who holds the lock. */
  note(queue: Queue): void;
  /** The release came to its end. */
  stepped(step: Step, decision: Decision): void;
}

export class LockSteps {
  private readonly steps = new DueHeap<Step>();

  constructor(
    private readonly ports: WaitingPorts,
    private readonly decisions: LockDecisions,
    private readonly stepping: Stepping,
  ) {}

  /** When whoever released must have been answered; infinity: nobody. */
  get nextMs(): number {
    return this.steps.nextMs;
  }

  /** Answers those whose time is over. */
  due(nowMs: number): void {
    for (let step = this.steps.take(nowMs); step; step = this.steps.take(nowMs)) {
      step.isAnswered = true;
      step.call.then({ kind: "unknown" });
    }
  }

  /** The release goes its way; false: it is refused, and whoever asked is told so. */
  send(step: Step): boolean {
    const { queue, succession, call } = step;
    const passage = succession.begin("harmless", null, null);
    const then = (decision: Decision): void => {
      if (decision.kind === "decided") succession.end(passage, "applied");
      if (step.isTold && this.stepping.isCurrent(queue)) {
        if (this.isLost(step, decision)) return this.sendAgain(step);
        this.stepping.stepped(step, decision);
      }
      this.steps.remove(step);
      if (step.isAnswered) return;
      call.then(step.isTold && decision.kind !== "decided" ? { kind: "unknown" } : decision);
    };
    return this.decisions.release({ ...call, deadlineMs: Infinity, then });
  }

  /** Whoever is next is told. */
  tell(step: Step): void {
    step.isTold = true;
    this.steps.set(step, step.call.deadlineMs);
  }

  /** It came to nothing, the leadership goes on, and the row does not show who was told. */
  private isLost({ queue, succession, heir }: Step, decision: Decision): boolean {
    const { kind } = decision;
    const isVoid = kind === "decided" ? decision.type !== LockType.unlocked : kind === "refused";
    if (!isVoid) return false;
    this.stepping.note(queue);
    return succession.isUnshown(heir);
  }

  private sendAgain(step: Step): void {
    const { succession } = step;
    const passage = succession.begin("other", null, null);
    this.ports.timer.after(RETRY_MS, () => {
      succession.end(passage, "void");
      this.send(step);
    });
  }
}
