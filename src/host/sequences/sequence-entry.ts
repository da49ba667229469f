/**
 * What the leader keeps of the sequences of one group while it leads: the block, who waits, and
 * which commands are under way.
 *
 * Owns the entries; `SequenceBlocks` and `Reservations` change them. Invariants: 1. At most one
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
import { type Block, type BlockGroup, type Waiter, endMoved } from "./block.js";
import type { ProposalDone, ProposalMarks, ProposalResult } from "../requests/results.js";

/** An update that was accepted; proposed as soon as the commands before it have ended. */
export interface PendingUpdate {
  readonly command: UpdateSequenceCommand;
  readonly sizeBytes: number;
  readonly deadlineMs: number;
  readonly done: ProposalDone;
  readonly marks: ProposalMarks | null;
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

  /** Ends an update that was not proposed yet. */
  endUpdate(result: ProposalResult): void {
    const { update } = this;
    if (update === null || update.proposed) return;
    this.update = null;
    update.done(result);
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

export class SequenceEntries {
  private readonly byName = new Map<string, SequenceEntry>();
  /** Counts resets: what was begun under another number belongs to a leadership that ended. */
  private resetCount = 0;

  constructor(private readonly group: BlockGroup) {}

  get size(): number {
    return this.byName.size;
  }

  get resets(): number {
    return this.resetCount;
  }

  find(name: string): SequenceEntry | undefined {
    return this.byName.get(name);
  }

  /** The entry of `name`, made when there is none. */
  of(name: string): SequenceEntry {
    let entry = this.byName.get(name);
    if (entry === undefined) {
      entry = new SequenceEntry(name);
      this.byName.set(name, entry);
    }
    return entry;
  }

  /** All of them; the walk goes on while entries come and go. */
  all(): IterableIterator<SequenceEntry> {
    return this.byName.values();
  }

  /** Drops the entry when nothing is left to remember. */
  forget(entry: SequenceEntry): void {
    if (entry.block !== null || !entry.isQuiet()) return;
    if (this.byName.get(entry.name) === entry) this.byName.delete(entry.name);
  }

  /** The entry that was longest at its place in the order, which it now closes. */
  rotate(): SequenceEntry | null {
    const oldest = this.byName.values().next().value;
    if (oldest === undefined) return null;
    this.byName.delete(oldest.name);
    this.byName.set(oldest.name, oldest);
    return oldest;
  }

  /** Drops everything, and ends whoever waits for something that is not proposed. */
  reset(): void {
    this.resetCount++;
    const dropped = [...this.byName.values()];
    this.byName.clear();
    for (const entry of dropped) {
      entry.block = null;
      for (const waiter of entry.ready.splice(0)) endMoved(waiter);
      entry.endUpdate({ status: "refused", reason: "not-leader" });
      for (const waiting of entry.settling.splice(0)) waiting.resume();
    }
  }

  /**
   * Ends the part of `result` that all commands share: the pins, the block, whoever waited for the
   * end.
   */
  landed(entry: SequenceEntry, pinned: Block | null, result: ProposalResult): void {
    const applied = result.status === "applied";
    entry.unpin(pinned, result, applied ? this.group.machine.reads.getSequence(entry.name) : null);
    for (const waiting of entry.settling.splice(0)) waiting.resume();
    if (entry.update !== null && !entry.update.proposed) this.startUpdate(entry);
    this.forget(entry);
  }

  /**
   * Proposes the waiting update once nothing else of the sequence is in flight: its cursor is exact
   * then.
   */
  startUpdate(entry: SequenceEntry): void {
    const { update } = entry;
    if (update === null || update.proposed || entry.inflight > 0) return;
    update.proposed = true;
    const pinned = entry.pin();
    const command = { ...update.command, cursor: entry.cursor() };
    const { sizeBytes, deadlineMs, done, marks } = update;
    const landed = (result: ProposalResult): void => {
      entry.update = null;
      this.landed(entry, pinned, result);
      done(result);
    };
    this.group.propose(command, sizeBytes, deadlineMs, landed, null, marks);
  }
}
