/**
 * What the leader keeps of one sequence while it leads: the block, who waits, and which commands
 * are under way.
 *
 * Owned by `SequenceBlocks`, which alone changes it. May call base. Invariants: 1. At most one
 * reservation is in flight. 2. An update is proposed only when nothing else of the sequence is in
 * flight. 3. While a delete is in flight no later command carries a cursor: a sequence created anew
 * could have the same incarnation and revision. 4. A block never outlives a delete that was
 * proposed after its reservation, whatever is known of the delete.
 */
import { assert } from "../../base/assert.js";
import type {
  BlockCursor,
  SequenceRecord,
  UpdateSequenceCommand,
} from "../../machine/commands/command.js";
import type { Block, Waiter } from "./block.js";
import type { ProposalDone, ProposalResult } from "../requests/results.js";

/** An update that was accepted; proposed as soon as the commands before it have ended. */
export interface PendingUpdate {
  readonly command: UpdateSequenceCommand;
  readonly sizeBytes: number;
  readonly deadlineMs: number;
  readonly done: ProposalDone;
  proposed: boolean;
}

/** A read of the sequence that has to wait until a command in flight has ended. */
export interface SettleWaiter {
  readonly deadlineMs: number;
  readonly resume: () => void;
}

export class SequenceEntry {
  readonly name: string;
  block: Block | null = null;
  /** Confirmed by a round, waiting for values, in the order of arrival. */
  ready: Waiter[] = [];
  /** Those for whom the reservation in flight was made; null when none is in flight. */
  reserving: readonly Waiter[] | null = null;
  /** The record as it stood when that reservation was proposed. */
  reservedFrom: SequenceRecord | null = null;
  /** A delete follows that reservation in the log: its block ends with those who wait for it. */
  reservationDies = false;
  inflight = 0;
  deletes = 0;
  update: PendingUpdate | null = null;
  settling: SettleWaiter[] = [];
  /** Gathered for serving in the present turn. */
  touched = false;

  constructor(name: string) {
    this.name = name;
  }

  /** Nothing of this sequence is under way. */
  isQuiet(): boolean {
    return (
      this.inflight === 0 &&
      this.ready.length === 0 &&
      this.update === null &&
      this.settling.length === 0
    );
  }

  /**
   * Takes the block out of service for a command that is being proposed, and counts the command.
   */
  pin(): Block | null {
    this.inflight++;
    if (this.block !== null) this.block.pins++;
    return this.block;
  }

  /** The cursor that such a command carries. */
  cursor(): BlockCursor | null {
    return this.block === null || this.deletes > 0 ? null : this.block.cursor();
  }

  /**
   * Ends what `pin` began. `record`: the state after the command, read only when it was applied.
   */
  unpin(pinned: Block | null, result: ProposalResult, record: SequenceRecord | null): void {
    this.inflight--;
    assert(this.inflight >= 0, "a command in flight ends once");
    if (pinned !== null) {
      pinned.pins--;
      assert(pinned.pins >= 0, "a pin is taken off once");
      if (result.status === "unknown") pinned.doubtful = true;
    }
    // Whatever block there is, this one or a newer one: if the record moved on, it is dead.
    if (result.status === "applied" && this.block !== null && !this.block.matches(record)) {
      this.block = null;
    }
  }
}
