/**
 * The replicated state machine of one group: applies committed entries in order, answers reads,
 * makes and takes snapshots.
 *
 * Owns the group's record; its rows lie in the memtable under the group's current generation. May
 * call the memtable and this folder. Deterministic: state after = f(state before, entry).
 * Invariants: 1. Entries are applied in index order without a gap. 2. Record and effects reach the
 * store in the same flush: the freeze hook writes the record whenever an entry was applied. 3. The
 * lease clock never goes back. 4. Apply never throws on commands. 5. Reads are never stale.
 */
import { assert, present } from "../base/assert.js";
import { compareHlc, type Hlc } from "../base/hlc.js";
import {
  configIndex,
  type ConfigIndex,
  type Level,
  type PartitionId,
  type PlacementGeneration,
} from "../base/ids.js";
import { applyCommand } from "./apply.js";
import type {
  AppliedEntry,
  Command,
  EntryPosition,
  MarkCommand,
  Outcome,
} from "./commands/command.js";
import { contextOf } from "./decision/context.js";
import { StateDigest } from "./store/digest.js";
import {
  type CollectedEnds,
  EMPTY_GROUP_RECORD,
  decodeGroupRecord,
  TELLING_FROM_LEVEL,
  encodeGroupRecord,
  type GroupRecord,
} from "./commands/group-record.js";
import { type RowSight, SnapshotSource } from "./snapshot/source.js";
import { generationPrefix, groupRecordKey, textToByteKey } from "./store/keys.js";
import type { MetaContext } from "./meta/meta-context.js";
import { MetaReads } from "./meta/meta-reads.js";
import type { FrozenGroup, Memtable } from "./store/memtable.js";
import { DataReads } from "./data-reads.js";
import type { RowVisitor } from "./snapshot/check.js";
import { RestoreSink, type RowTarget, intoMemtable, sweepGenerations } from "./snapshot/restore.js";
import { GroupRows } from "./store/rows.js";
import { CopySource } from "./ranges/copy-source.js";
import { RowCensus } from "./census.js";
import { IntervalCount } from "./ranges/interval-count.js";
import type { KeyInterval } from "./ownership/ownership-row.js";
import { Ownership } from "./ownership/ownership.js";
import { type PointInTimeReads, type KeySpan, pointInTimeValues } from "./point-in-time.js";
import { type ApplyTap, applyTapped } from "./tapped.js";
import { ValueWatch } from "./value-watch.js";
import { type AppliedMark, MarkHistory } from "./marks.js";

export type { AppliedEntry, EntryPosition } from "./commands/command.js";

export class Machine {
  readonly group: PartitionId;
  /** Which keys are the group's: of its rows, for as long as the machine is there. */
  readonly ownership: Ownership;
  private readonly memtable: Memtable;
  private readonly detach: () => void;
  private readonly recordKey: string;
  private readonly chain: StateDigest;
  private readonly effects: StateDigest;
  private context: MetaContext;
  private groupRows: GroupRows;
  private dataReads: DataReads;
  private metaReads: MetaReads;
  private generation: number;
  private lastGeneration: number;
  private ephemeralFloorToken: bigint;
  private index: number;
  private term: number;
  private membershipBlob: Uint8Array | null;
  private membershipAt: ConfigIndex;
  private placedAt: PlacementGeneration;
  private installedAt: EntryPosition;
  private filling: RestoreSink | null = null;
  private moved = false;
  private readonly markHistory = new MarkHistory();
  /** Is told what entries do; null: nobody wants to know. */
  tap: ApplyTap | null = null;

  /**
   * Loads the group's record from the memtable, or starts an empty group, with `firstGeneration` of
   * rows: above all that the group ever had here. A damaged record is an assertion: the node stops.
   * `ownsByDefault`: the group is of the hash pool, and owns every key that no row takes from it.
   */
  constructor(memtable: Memtable, group: PartitionId, firstGeneration = 0, ownsByDefault = true) {
    this.memtable = memtable;
    this.group = group;
    this.recordKey = groupRecordKey(group);
    const bytes = memtable.get(this.recordKey);
    const first = { generation: firstGeneration, lastGeneration: firstGeneration };
    const empty = { ...EMPTY_GROUP_RECORD, ...first };
    const record = bytes === null ? empty : decodeGroupRecord(bytes);
    assert(record !== null, "the record of a group is whole and of a known version");
    this.generation = record.generation;
    this.lastGeneration = record.lastGeneration;
    this.index = record.appliedIndex;
    this.term = record.appliedTerm;
    this.ephemeralFloorToken = record.ephemeralFloor;
    this.membershipBlob = record.membership;
    this.membershipAt = record.membershipIndex;
    this.placedAt = record.placedGeneration;
    this.installedAt = { index: record.installedIndex, term: record.installedTerm };
    this.chain = new StateDigest(record.chainLow, record.chainHigh);
    this.effects = new StateDigest(record.effectsLow, record.effectsHigh);
    this.groupRows = this.openRows(record.dataBytes ?? 0);
    this.ownership = new Ownership(ownsByDefault);
    this.ownership.load(this.groupRows);
    this.dataReads = new DataReads(this.groupRows, this.ownership);
    this.metaReads = new MetaReads(this.groupRows, this.groupRows);
    this.context = this.contextOf(record);
    this.detach = memtable.onFreeze(() => this.writeRecord());
  }

  private contextOf(record: GroupRecord): MetaContext {
    const meta = this.metaReads;
    return { ...contextOf(this.groupRows, this.ownership, record), meta };
  }

  private openRows(dataBytes: number): GroupRows {
    const prefix = generationPrefix(this.group, this.generation);
    return new GroupRows(this.memtable, prefix, this.effects, dataBytes);
  }

  /** Names and values of all rows, about. */
  get dataBytes(): number {
    return this.groupRows.dataBytes;
  }

  /** Position of the last snapshot installed here. */
  get installed(): EntryPosition {
    return this.installedAt;
  }

  /** Index of the last applied entry; 0 at first. */
  get appliedIndex(): number {
    return this.index;
  }

  get appliedTerm(): number {
    return this.term;
  }

  /** The lease clock (ms): committed lease time, by which reads judge expiry. */
  get leaseMs(): number {
    return this.context.nowMs;
  }

  /** Stamp of the last entry that had one. */
  get lastStamp(): Hlc {
    return this.context.stamp;
  }

  get tokenFloor(): bigint {
    return this.context.tokenFloor;
  }

  /** From which lease times on nothing that ended was dropped by collection. */
  get collected(): CollectedEnds {
    return { keysMs: this.context.collectedKeysMs, locksMs: this.context.collectedLocksMs };
  }

  /** What ephemeral tokens are counted from. */
  get ephemeralFloor(): bigint {
    return this.ephemeralFloorToken;
  }

  /**
   * The group's configuration as last applied or restored, and the index of its entry; null before
   * the first.
   */
  get membership(): Uint8Array | null {
    return this.membershipBlob;
  }

  get membershipIndex(): ConfigIndex {
    return this.membershipAt;
  }

  /** Highest generation of the partition's record that an applied configuration rests on. */
  get placedGeneration(): PlacementGeneration {
    return this.placedAt;
  }

  /** What the group's entries may hold; raised by an entry of its log alone (P-030). */
  get level(): Level {
    return this.context.level;
  }

  /**
   * Reads of locks, sequences and key/value. Fetch it anew for each read: an installed snapshot
   * replaces it.
   */
  get reads(): DataReads {
    return this.dataReads;
  }

  /** Values as they are now, for reading in slices; null for no span. The caller closes it. */
  pointInTimeView(span: KeySpan | null, maxHeldBytes: number): PointInTimeReads | null {
    const { memtable, groupRows, ownership } = this;
    return pointInTimeValues(memtable, groupRows.prefix, ownership, span, maxHeldBytes);
  }

  /** Tells from now on whether a value of the span changed. The caller closes it. */
  watchValues(span: KeySpan): ValueWatch {
    const { memtable, groupRows, ownership } = this;
    const isCurrent = (): boolean => this.groupRows === groupRows;
    return new ValueWatch(memtable, groupRows.prefix, span, ownership, isCurrent);
  }

  /**
   * Whether a key is the group's now. A read or write of one that is not is for another group, and
   * did nothing here. `key`: of legal form.
   */
  owns(key: string): boolean {
    return this.ownership.isWhole || this.ownership.owns(textToByteKey(key));
  }

  /**
   * Reads an interval of keys for the group that it goes to. The caller closes it. `leaseNowMs`:
   * the lease clock as its leader knows it; the committed one may have stood still for long.
   */
  openCopy(interval: KeyInterval, leaseNowMs: () => number): CopySource {
    return new CopySource(this.groupRows, interval, leaseNowMs);
  }

  /** Counts what an interval of keys holds. The caller closes it. */
  openCount(interval: KeyInterval): IntervalCount {
    return new IntervalCount(this.groupRows, interval);
  }

  /** Leases of locks that ended without a release, as entries found them that were applied here. */
  get lapsedLocks(): number {
    return this.context.lapsedLocks;
  }

  /** Counts the group's rows, in slices. */
  openCensus(): RowCensus {
    return new RowCensus(this.groupRows, () => this.context.nowMs);
  }

  /** Reads of the meta partition's records. */
  get meta(): MetaReads {
    return this.metaReads;
  }

  /** Digest over all effects so far: equal on replicas at equal indexes. 16 hexadecimal digits. */
  get stateDigest(): string {
    return this.effects.toString();
  }

  /** As `stateDigest`, over all applied entries, refusals included. */
  get chainDigest(): string {
    return this.chain.toString();
  }

  /** The halves of `chainDigest`. */
  get chainHalves(): { readonly low: number; readonly high: number } {
    return this.chain;
  }

  /**
   * Applies one normal entry: decides each command in order and appends one outcome each to
   * `outcomes`. The entry must be the next one. Stamps and lease times that go back are raised to
   * the previous ones.
   */
  apply(entry: AppliedEntry, commands: readonly Command[], outcomes: Outcome[]): void {
    this.step(entry);
    const context = this.context;
    const { level } = context;
    context.term = entry.term;
    if (entry.leaseMs > context.nowMs) context.nowMs = entry.leaseMs;
    if (compareHlc(entry.stamp, context.stamp) > 0) context.stamp = entry.stamp;
    this.chain.number(context.nowMs | 0);
    if (this.tap !== null) applyTapped(context, this.effects, commands, outcomes, this.tap);
    else for (const command of commands) outcomes.push(applyCommand(context, command));
    if (context.level !== level) this.effects.number(context.level);
    this.chain.number(commands.length);
    this.chain.number(this.effects.low);
    this.chain.number(this.effects.high);
    const last = commands[commands.length - 1];
    if (last?.kind === "mark") this.noteMark(entry, last);
  }

  private noteMark({ index, term }: EntryPosition, { backupId, round }: MarkCommand): void {
    const { stamp } = this.context;
    this.markHistory.note({ backupId, round, index, term, stamp, chain: this.chainDigest });
  }

  /** The last marks of backups that were applied here, the latest last. */
  get marks(): readonly AppliedMark[] {
    return this.markHistory.all;
  }

  /** Applies an entry without content: the no-op of a new leader. */
  applyEmpty(entry: EntryPosition): void {
    this.step(entry);
  }

  /**
   * Applies a change of the group's configuration; `blob` is the whole new configuration as the
   * host encodes it, `generation` that of the partition's record which the change rests on.
   */
  applyMembership(entry: EntryPosition, blob: Uint8Array, generation: PlacementGeneration): void {
    this.step(entry);
    this.membershipBlob = blob;
    this.membershipAt = configIndex(entry.index);
    if (generation > this.placedAt) this.placedAt = generation;
    for (const byte of blob) this.chain.number(byte);
    this.chain.number(generation | 0);
  }

  private step(entry: EntryPosition): void {
    assert(entry.index === this.index + 1, "an entry is applied right after the one before it");
    assert(entry.term >= this.term, "terms do not fall along the log");
    this.index = entry.index;
    this.term = entry.term;
    this.moved = true;
    this.chain.number(entry.index | 0);
    this.chain.number(entry.term | 0);
  }

  /** Changes the rows of a group that no log is applied to: one that is restored, or forced. */
  rewrite(change: (context: MetaContext) => void): void {
    change(this.context);
    this.moved = true;
  }

  /** The record as it stands. */
  record(): GroupRecord {
    return {
      generation: this.generation,
      lastGeneration: this.lastGeneration,
      appliedIndex: this.index,
      appliedTerm: this.term,
      leaseMs: this.context.nowMs,
      stamp: this.context.stamp,
      tokenFloor: this.context.tokenFloor,
      ephemeralFloor: this.ephemeralFloorToken,
      nextLife: this.context.nextLife,
      membership: this.membershipBlob,
      membershipIndex: this.membershipAt,
      placedGeneration: this.placedAt,
      level: this.context.level,
      installedIndex: this.installedAt.index,
      installedTerm: this.installedAt.term,
      dataBytes: this.context.level < TELLING_FROM_LEVEL ? null : this.groupRows.dataBytes,
      collected: this.context.level < TELLING_FROM_LEVEL ? null : this.collected,
      effectsLow: this.effects.low,
      effectsHigh: this.effects.high,
      chainLow: this.chain.low,
      chainHigh: this.chain.high,
    };
  }

  private writeRecord(): FrozenGroup | null {
    if (!this.moved) return null;
    this.memtable.put(this.recordKey, encodeGroupRecord(this.record()));
    this.moved = false;
    return { group: this.group, appliedIndex: this.index, appliedTerm: this.term };
  }

  /**
   * Starts a snapshot of the state as it is now; entries may be applied while it is read in chunks.
   * The caller closes it. `maxHeldBytes`: bound on old rows kept for it; beyond it the snapshot
   * fails ("overrun") and is to be started again. `seen`: is shown the rows.
   */
  openSnapshot(maxHeldBytes: number, seen: RowSight | null = null): SnapshotSource {
    return new SnapshotSource(this.memtable, this.group, this.record(), maxHeldBytes, seen);
  }

  /**
   * Starts to fill a fresh generation from a snapshot; the current one stays until `install`. A
   * second begin makes the first one's rows rubbish for `sweep`. `target`: where its rows go; by
   * `install` they are where reads find them. `seen`: is shown each of them.
   */
  beginRestore(
    target: RowTarget = intoMemtable(this.memtable),
    seen: RowVisitor | null = null,
  ): RestoreSink {
    this.lastGeneration++;
    this.memtable.put(this.recordKey, encodeGroupRecord(this.record()));
    this.filling = new RestoreSink(target, this.group, this.lastGeneration, seen);
    return this.filling;
  }

  /** Gives up a restore: what it filled is rubbish for `sweep`. */
  abandonRestore(): void {
    this.filling = null;
  }

  /**
   * Deletes up to `limit` rows of former generations and of restores given up; returns how many. To
   * be called after a start and an install until it returns 0.
   */
  sweep(limit: number): number {
    const keep = [this.generation];
    if (this.filling !== null) keep.push(this.filling.generation);
    return sweepGenerations(this.memtable, this.group, keep, limit);
  }

  /**
   * Switches to the filled generation: rows, floors, clock, position and membership change
   * together.
   */
  install(sink: RestoreSink): void {
    const record = present(sink.finished(), "a snapshot is installed when all of it was taken");
    assert(sink === this.filling, "the last restore begun is the one installed");
    assert(record.appliedIndex >= this.index, "a snapshot never takes the group back");
    this.filling = null;
    this.generation = sink.generation;
    this.index = record.appliedIndex;
    this.term = record.appliedTerm;
    this.ephemeralFloorToken = record.ephemeralFloor;
    this.membershipBlob = record.membership;
    this.membershipAt = record.membershipIndex;
    this.placedAt = record.placedGeneration;
    this.installedAt = { index: record.appliedIndex, term: record.appliedTerm };
    this.chain.set(record.chainLow, record.chainHigh);
    this.effects.set(record.effectsLow, record.effectsHigh);
    this.groupRows.retire();
    this.groupRows = this.openRows(sink.dataBytes);
    this.dataReads = new DataReads(this.groupRows, this.ownership);
    this.metaReads = new MetaReads(this.groupRows, this.groupRows);
    const { lapsedLocks } = this.context;
    this.context = this.contextOf(record);
    this.moved = true;
    this.ownership.load(this.groupRows);
    this.context.lapsedLocks = lapsedLocks;
    this.tap?.replaced();
  }

  /** Stops taking part in freezes: the group leaves this node, or the node ends. */
  close(): void {
    this.detach();
  }
}
