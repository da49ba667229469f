/**
 * Carries out what the core of one group asks for, in the only legal order:
 *
 * 1. Hard state before the entries of its term, in the same log write: an entry must never be found
 *    on disk above a term that the node does not remember (it could vote twice in that term).
 * 2. Messages to others may leave at once: the core hands out as `messages` only those that do not
 *    vouch for the write (a leader's appends). A snapshot comes before everything else of its record,
 *    and nothing more is taken from the core until it is durable.
 * 3. When the write is durable, and not before: first the messages that vouch for it (they are
 *    stepped here when they go to this node itself), then its receipt to the core. In the order of
 *    the takes: a record without a write of its own completes after those before it.
 * 4. Committed entries go to the applier, which applies them only now that they are durable here
 *    (P-024); the core hears of it by `applied`.
 * 5. Answers run at the end of the turn (`Completions`), after every effect of every group.
 *
 * A hard state that only carries a newer commit index is not worth a disk write, and hardly a
 * record: it is lost without harm, and goes along with a write of the group only when the log is
 * COMMITS_LATE_MAX entries behind. What is committed and not so in the log is found by the next
 * leader once it commits; the state store has its own applied index. A membership change is not
 * told late: whoever is left of two members knows it by this alone (P-084).
 *
 * Owns the order. Invariants: 1. Not re-entered. 2. Log writes are handed over at the end of the
 * turn, all groups together (group commit). 3. Writes complete in the order in which they were
 * handed over.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import type { HardState, LogEntry, LogPort, LogWrite } from "../../ports.js";
import type { RaftCore } from "../../raft/core.js";
import type {
  CommittedRange,
  Effects,
  EntryKind,
  LogRange,
  Message,
  SnapshotMeta,
  SoftState,
  WriteReceipt,
} from "../../raft/state/types.js";
import type { AppendBudget } from "../replication/append-budget.js";
import { entryKindCode } from "../replication/config-entries.js";

/** How far the commit index in the log may stay behind (entries). */
const COMMITS_LATE_MAX = 16;

/** What the effects of one group lead to. */
export interface EffectsTarget {
  roleChanged(soft: SoftState): void;
  /**
   * The payload at (term, index): proposed here, received just now, or empty for what the core
   * appends itself.
   */
  payloadFor(index: number, term: number, kind: number): Uint8Array;
  /** The log is written anew from there on: what it held there before is gone. */
  rewritten(range: LogRange): void;
  /** An entry was handed to the log. */
  appended(entry: LogEntry): void;
  /** Sends a message to another node. */
  send(message: Message): void;
  /**
   * Replaces log and state by the snapshot that belongs to `meta`; `done` is called, outside of any
   * turn, when that is durable.
   */
  install(meta: SnapshotMeta, hardState: HardState, done: () => void): void;
  committed(range: CommittedRange): void;
  readCaptured(context: number, index: number): void;
  readDropped(context: number): void;
}

interface OpenRecord {
  readonly receipt: WriteReceipt | null;
  readonly messages: readonly Message[];
  durable: boolean;
}

/** The log writes of one turn, of all groups. */
export class LogOutbox {
  private writes: LogWrite[] = [];

  /** `budget`: of what is with the log and not durable. */
  constructor(private readonly budget: AppendBudget) {}

  /** `sizeBytes`: of its entries; `written` when it is durable. */
  add(write: LogWrite, sizeBytes: number): void {
    this.budget.take(sizeBytes);
    this.writes.push(write);
  }

  written(sizeBytes: number): void {
    this.budget.give(sizeBytes);
  }

  /** Hands everything over, in order. */
  submit(log: LogPort): void {
    if (this.writes.length === 0) return;
    const { writes } = this;
    this.writes = [];
    for (const write of writes) log.write(write);
  }
}

export class EffectsExecutor {
  private readonly open: OpenRecord[] = [];
  /** Not in the log, nor on its way there. */
  private unwritten: HardState | null = null;
  /** The latest that went to the log in this life. */
  private written: HardState | null = null;
  /** Where the last membership change may be: a commit index below it is not told late. */
  private changeIndex: number;
  private running = false;
  /** The record whose snapshot is being installed, and whether that is done. */
  private installing: Effects | null = null;
  private installed = false;

  /** `onDurable` is called, outside of any turn, when a write of this group became durable. */
  constructor(
    private readonly partition: PartitionId,
    private readonly nodeId: number,
    private readonly core: RaftCore,
    private readonly target: EffectsTarget,
    private readonly outbox: LogOutbox,
    private readonly onDurable: () => void,
    /** As recovered. */
    private hardState: HardState,
  ) {
    this.changeIndex = core.lastIndex;
  }

  /** Writes that are not known to be durable yet. */
  get openCount(): number {
    return this.open.length;
  }

  /** The oldest write that is not durable yet, as an object to know it again by. */
  get oldestWrite(): object | null {
    return this.open.find((record) => !record.durable) ?? null;
  }

  /** A snapshot is being installed: log and state are between two lives. */
  get isInstalling(): boolean {
    return this.installing !== null;
  }

  /** Executes until the core asks for nothing and nothing durable is left to be reported to it. */
  run(): void {
    assert(!this.running, "effects are not executed inside effects");
    this.running = true;
    let completed = this.completeDurable();
    if (this.installed) this.finishInstall();
    while (this.installing === null && (completed || this.core.hasEffects())) {
      if (this.core.hasEffects()) this.execute(this.core.takeEffects());
      completed = this.completeDurable();
    }
    this.running = false;
  }

  private execute(effects: Effects): void {
    if (effects.softState !== null) this.target.roleChanged(effects.softState);
    if (effects.hardState !== null) {
      this.hardState = effects.hardState;
      this.unwritten = effects.hardState;
    }
    if (effects.snapshot === null) return this.executeWrites(effects, false);
    this.installing = effects;
    this.target.install(effects.snapshot, this.hardState, () => {
      this.installed = true;
      this.onDurable();
    });
  }

  private finishInstall(): void {
    const { installing } = this;
    assert(installing !== null, "an install that ended was begun");
    this.installed = false;
    this.installing = null;
    this.executeWrites(installing, true);
  }

  /** `hardStateWritten`: an install wrote it with its position. */
  private executeWrites(effects: Effects, hardStateWritten: boolean): void {
    if (hardStateWritten) this.wroteState(this.hardState);
    const writes = effects.append !== null || (effects.mustSync && !hardStateWritten);
    if (writes || effects.receipt !== null || effects.messagesAfterWrite.length > 0) {
      this.write(effects, writes);
    }
    for (const message of effects.messages) this.deliver(message);
    if (effects.committed !== null) this.target.committed(effects.committed);
    for (const read of effects.readStates) this.target.readCaptured(read.context, read.index);
    for (const context of effects.droppedReads) this.target.readDropped(context);
  }

  private write(effects: Effects, writes: boolean): void {
    const record: OpenRecord = {
      receipt: effects.receipt,
      messages: effects.messagesAfterWrite,
      durable: !writes,
    };
    this.open.push(record);
    if (!writes) return;
    const entries = effects.append === null ? [] : this.entriesOf(effects.append);
    const { partition: group } = this;
    const hardState = this.stateToWrite();
    const sizeBytes = effects.append?.sizeBytes ?? 0;
    const done = (): void => {
      assert(!record.durable, "a write becomes durable once");
      this.outbox.written(sizeBytes);
      record.durable = true;
      this.onDurable();
    };
    this.outbox.add({ group, hardState, entries, done }, sizeBytes);
  }

  /** The hard state that goes along with a write; null: none has to. */
  private stateToWrite(): HardState | null {
    const { unwritten, written } = this;
    if (unwritten === null) return null;
    const isBound = written?.term === unwritten.term && written.vote === unwritten.vote;
    const mayBeLate = isBound && written.commit >= this.changeIndex;
    if (mayBeLate && unwritten.commit < written.commit + COMMITS_LATE_MAX) return null;
    this.wroteState(unwritten);
    return unwritten;
  }

  private wroteState(hardState: HardState): void {
    this.written = hardState;
    this.unwritten = null;
  }

  private entriesOf(range: LogRange): LogEntry[] {
    const entries: LogEntry[] = [];
    let run = 0;
    let change = 0;
    let sizeBytes = 0;
    this.changeIndex = range.configChanges.at(-1)?.index ?? this.changeIndex;
    this.target.rewritten(range);
    for (let index = range.first; index <= range.last; index++) {
      const nextRun = range.termRuns[run + 1];
      if (nextRun !== undefined && nextRun.first <= index) run++;
      const term = range.termRuns[run]?.term ?? 0;
      const config = range.configChanges[change];
      let kind: EntryKind = "normal";
      if (config !== undefined && config.index === index) {
        kind = config.kind;
        change++;
      }
      const code = entryKindCode(kind);
      const payload = this.target.payloadFor(index, term, code);
      sizeBytes += payload.length;
      const entry = { index, term, kind: code, payload };
      this.target.appended(entry);
      entries.push(entry);
    }
    assert(sizeBytes === range.sizeBytes, "the payloads are those that the core was told of");
    return entries;
  }

  /** Reports durable records to the core, oldest first. Returns whether there were any. */
  private completeDurable(): boolean {
    let count = 0;
    for (const record of this.open) {
      if (!record.durable) break;
      count++;
    }
    if (count === 0) return false;
    for (const record of this.open.splice(0, count)) {
      for (const message of record.messages) this.deliver(message);
      if (record.receipt !== null) this.core.written(record.receipt);
    }
    return true;
  }

  /** The one place where messages go out: to this node itself, or to another one. */
  private deliver(message: Message): void {
    if (message.to !== this.nodeId) return this.target.send(message);
    // A vote for itself that was long on its way to the disk says nothing once it is no member.
    this.core.step(message);
  }
}
