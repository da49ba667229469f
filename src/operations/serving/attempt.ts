/**
 * One request at the group that this node leads: the steps that it may take there, and how each can
 * fail.
 *
 * Invariants: 1. State is read only in the turn of a confirmed round or of an applied command. 2. A
 * lease end that has passed by the leader's clock is committed to the log before anybody is told
 * (P-051). 3. An attempt ends once: by `done` or by `fail`. 4. A key is looked at, and decided on,
 * only in a turn in which the group owns it (P-100).
 */
import { assert } from "../../base/assert.js";
import type { Applied, ProposalMarks, ProposalResult } from "../../host/requests/results.js";
import type {
  Command,
  KvCommand,
  KvOutcome,
  LockCommand,
  Outcome,
} from "../../machine/commands/command.js";
import type { GroupAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";
import type { CommonEnd, Origin } from "../api/shapes.js";
import type { Trace } from "../api/tracing.js";
import type { Place } from "./placement.js";
import type { Serving } from "./serving.js";

/**
 * Ends a request without a result of its own. With `executed` null nothing was done and nobody is
 * to be named. "moved": nothing was done because this node did not prove that it leads; "unowned":
 * nothing was done because the key is another partition's, or is about to be.
 */
export type Fail = (
  end: CommonEnd | "moved" | "unowned",
  refusal: Refusal | null,
  executed: GroupAccess | null,
) => void;

type OutcomeOf<Kind extends Outcome["kind"]> = Extract<Outcome, { readonly kind: Kind }>;

export class Attempt<T> {
  readonly group: GroupAccess;
  /** Named in the answer. */
  readonly origin: Origin;

  constructor(
    readonly serving: Serving,
    place: Place,
    readonly deadlineMs: number,
    readonly fail: Fail,
    readonly done: (result: T) => void,
    readonly trace: Trace | undefined = undefined,
  ) {
    this.group = place.group;
    this.origin = place.origin;
  }

  /** What is recorded of a command of this request; null: nothing. */
  get marks(): ProposalMarks | null {
    return this.trace?.span?.proposal() ?? null;
  }

  /** Ends it as one of which nothing was done here, because this node leads no more. */
  moved(): void {
    this.fail("moved", null, this.group);
  }

  /** Ends it as one of which nothing was done here, because the group does not own the key. */
  unowned(): void {
    this.fail("unowned", null, this.group);
  }

  /** Ends it as one that is to be repeated: nobody is told what became of it. */
  retry(): void {
    this.fail("mustRetry", null, this.group);
  }

  /**
   * Calls `then` with the committed lease time once the group is proved to lead; the state may be
   * read in it.
   */
  confirm(then: (leaseMs: number) => void): void {
    const { serving, group } = this;
    // As a proposal is refused: nothing was begun, and another node is to be asked.
    if (serving.node.shuttingDown && group.isLeader()) {
      return serving.ports.timer.soon(() => this.fail("mustRetry", "shutting-down", null));
    }
    group.read(this.deadlineMs, (result) => {
      if (result.status === "confirmed") then(result.leaseMs);
      else this.fail(result.status === "aborted" ? "aborted" : "moved", null, group);
    });
  }

  /**
   * Proposes `command`, which has outcomes of `kind`, and calls `then` when it was applied. `ended`
   * hears before of how it ended.
   */
  decide<Kind extends Outcome["kind"]>(
    command: Command,
    sizeBytes: number,
    kind: Kind,
    then: (outcome: OutcomeOf<Kind>) => void,
    ended: ((result: ProposalResult) => void) | null = null,
  ): void {
    const decided = (result: ProposalResult): void => {
      ended?.(result);
      const outcome = this.outcomeOf(result, kind);
      if (outcome !== null) then(outcome);
    };
    this.group.propose(command, sizeBytes, this.deadlineMs, decided, null, this.marks);
  }

  /**
   * As `decide`, for a change of `command.key`. A group that does not own the key, as far as it was
   * applied here, is not asked: its log would only say the same.
   */
  decideKey(command: KvCommand, sizeBytes: number, then: (outcome: KvOutcome) => void): void {
    if (!this.group.machine.owns(command.key)) {
      return this.serving.ports.timer.soon(() => this.unowned());
    }
    this.decide(command, sizeBytes, "kv", then);
  }

  /** Applies `command` to the leader's own table, in the turn of a confirmed round (L16). */
  decideEphemeral<Kind extends "lock" | "kv">(
    command: LockCommand | KvCommand,
    kind: Kind,
    then: (outcome: OutcomeOf<Kind>) => void,
  ): void {
    const { group } = this;
    this.confirm(() => {
      const table = group.ephemeral;
      if (table === null) return this.moved();
      if ("key" in command && !group.machine.owns(command.key)) return this.unowned();
      const { lapsedLocks } = table;
      const outcome = table.apply(command, group.nextStamp());
      const lapsed = table.lapsedLocks - lapsedLocks;
      if (lapsed > 0) this.serving.ports.meter.locksLapsed(lapsed);
      if (outcome === "full") return this.fail("mustRetry", "overloaded", null);
      if (outcome.kind === "moved") return this.unowned();
      assert(isOutcome(outcome, kind), "an outcome is of the kind that its command has");
      then(outcome);
    });
  }

  /** The outcome of an applied proposal; null after it failed for how that ended. */
  outcomeOf<Kind extends Outcome["kind"]>(
    result: ProposalResult,
    kind: Kind,
  ): OutcomeOf<Kind> | null {
    if (!this.isApplied(result)) return null;
    const { outcome } = result;
    if (outcome.kind === "moved") {
      this.unowned();
      return null;
    }
    assert(isOutcome(outcome, kind), "an outcome is of the kind that its command has");
    return outcome;
  }

  /**
   * Calls `then` when the committed lease clock has reached `leaseTimeMs`; the state may be read in
   * it. `leaseMs` is the committed time, so that what has ended by then is seen as ended from now
   * on.
   */
  advance(leaseTimeMs: number, then: (leaseMs: number) => void): void {
    const { group } = this;
    group.advanceClock(leaseTimeMs, this.deadlineMs, (result) => {
      if (this.isApplied(result)) then(group.machine.leaseMs);
    });
  }

  private isApplied(result: ProposalResult): result is Applied {
    if (result.status === "applied") return true;
    if (result.status === "aborted") this.fail("aborted", null, this.group);
    else if (result.status === "unknown") this.retry();
    else if (result.reason === "not-leader") this.moved();
    else {
      const { reason } = result;
      const isBelow = reason === "not-available-at-level";
      this.fail("mustRetry", isBelow ? this.serving.belowLevel(this.group) : reason, null);
    }
    return false;
  }
}

function isOutcome<Kind extends Outcome["kind"]>(
  outcome: Outcome,
  kind: Kind,
): outcome is OutcomeOf<Kind> {
  return outcome.kind === kind;
}
