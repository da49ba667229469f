/**
 * The state store of a storage directory that is being restored: partition after partition is
 * replayed into it, lifted, and in the end read back.
 *
 * Owns the stores. Invariants: 1. One partition is replayed at a time, meta first: it says which
 * keys the others have. 2. Where a target time is asked for, the whole chain is replayed too, into
 * a store that is thrown away: its end has to be that of the live replicas, and says what went on
 * after the target. 3. What is read back from the disk is what was replayed and lifted, row by row.
 */
import type { VerifiedChain } from "../../backup/validate.js";
import { assert, present } from "../../base/assert.js";
import { META_PARTITION, type PartitionId, partitionId } from "../../base/ids.js";
import { levelFault } from "../../base/levels.js";
import { failure, ok } from "../../base/result.js";
import type { GroupRecord } from "../../machine/commands/group-record.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import {
  type ChainEnd,
  type RestoredFloors,
  liftedEphemeralFloor,
  liftedIncarnation,
  liftedTokenFloor,
} from "../../machine/restoring/lifted.js";
import { StoredEvidence } from "../../machine/restoring/restored-group.js";
import { largestFloors, NO_FLOORS } from "./claims.js";
import { liftGroup } from "./group-lift.js";
import { PartitionReplay, type ReplayOrder } from "./partition-replay.js";
import { type RestoreDone, stepwise } from "./restore-faults.js";
import type { RestorePorts, RestoreSettings } from "./restore-ports.js";
import { RowFlush } from "./row-flush.js";
import { type GroupPlace, type StateFacts, SequencesAhead, readFacts } from "./state-facts.js";

const ROWS_PER_TURN = 1024;
/** Of who founded the cluster, and of who restored it. */
const FIRST_VERSION = 1;

/** One partition, as it was replayed. */
export interface RestoredPartition {
  readonly partition: PartitionId;
  readonly record: GroupRecord;
  readonly end: ChainEnd;
  readonly facts: StateFacts;
}

export interface StagedStateOrder {
  readonly verified: VerifiedChain;
  readonly targetMs: number;
  readonly statePath: string;
  /** null: the end of the chain is restored. */
  readonly scratchPath: string | null;
  isCancelled(): boolean;
  onSlice(): void;
  onPartition(): void;
}

export interface LiftOrder {
  readonly clusterId: string;
  readonly sequenceSkip: bigint;
  readonly ordinal: number;
  readonly earlier: RestoredFloors;
}

export class StagedState {
  readonly ahead = new SequencesAhead();
  readonly partitions: RestoredPartition[] = [];
  entries = 0;
  lastStampMs = 0;
  /** Highest level that a row may be of. */
  level = 1;
  /** What was set; known when everything is lifted. */
  floors: RestoredFloors = NO_FLOORS;
  private rows: RowFlush | null = null;
  private scratch: RowFlush | null = null;
  private meta: MetaReads | null = null;
  private scratchMeta: MetaReads | null = null;
  private readonly evidence = new Map<PartitionId, string>();

  constructor(
    private readonly settings: RestoreSettings,
    private readonly ports: RestorePorts,
    private readonly order: StagedStateOrder,
  ) {}

  /** Opens the stores and replays every partition. */
  replay(done: RestoreDone<unknown>): void {
    const { statePath, scratchPath, verified } = this.order;
    const ids = [...verified.partitions.keys()].sort((a, b) => a - b);
    if (ids[0] !== META_PARTITION) {
      return done(failure("RestrictedCoverage", "The backup lacks the meta partition."));
    }
    const open =
      (path: string, keepsSums: boolean, keep: (rows: RowFlush) => void) =>
      (next: RestoreDone<unknown>): void => {
        this.ports.stores.open(path, (opened) => {
          if (!opened.ok) return next(opened);
          keep(new RowFlush(opened.value, this.ports.sorter, keepsSums));
          next(ok(null));
        });
      };
    const opens = [open(statePath, true, (rows) => (this.rows = rows))];
    if (scratchPath !== null) opens.push(open(scratchPath, false, (rows) => (this.scratch = rows)));
    const replays = ids.map((id) => (next: RestoreDone<unknown>): void => {
      this.replayOne(partitionId(id), next);
    });
    stepwise([...opens, ...replays], done);
  }

  private replayOne(partition: PartitionId, done: RestoreDone<unknown>): void {
    const { scratch } = this;
    const rows = present(this.rows, "the store is open");
    const replay = new PartitionReplay(rows, this.replayOrder(partition, this.meta, true));
    const whole =
      scratch === null
        ? null
        : new PartitionReplay(scratch, this.replayOrder(partition, this.scratchMeta, false));
    const run = (next: RestoreDone<unknown>): void => {
      if (whole === null) return replay.run(next);
      whole.run((result) => (result.ok ? replay.run(next) : next(result)));
    };
    run((result) => {
      if (!result.ok) return done(result);
      if (partition === META_PARTITION) {
        this.meta = replay.machine.meta;
        this.scratchMeta = whole?.machine.meta ?? null;
        const fault = this.metaFault();
        if (fault !== null) return done(fault);
      }
      this.entries += replay.entries;
      this.lastStampMs = Math.max(this.lastStampMs, replay.machine.lastStamp.l);
      this.level = Math.max(this.level, replay.machine.level);
      this.compare(rows, replay, whole, done);
    });
  }

  /** What the rows of the meta partition say against a restore. */
  private metaFault(): ReturnType<typeof failure<"CorruptArtifact" | "UnsupportedFormat">> | null {
    const cluster = this.meta?.cluster() ?? null;
    if (cluster === null) {
      return failure("CorruptArtifact", "The backup is of a cluster that was never founded.");
    }
    const fault = levelFault({ level: cluster.level, version: "" }, this.settings.program);
    this.level = Math.max(this.level, cluster.level);
    return fault === null ? null : failure("UnsupportedFormat", fault);
  }

  private replayOrder(
    partition: PartitionId,
    meta: MetaReads | null,
    isTarget: boolean,
  ): ReplayOrder {
    const { verified, targetMs, isCancelled, onSlice } = this.order;
    const isMeta = partition === META_PARTITION;
    return {
      ...{ archive: this.ports.backups, chain: verified.chain, partition, isCancelled, onSlice },
      isOfPool: isMeta || partition <= (meta?.cluster()?.dataPartitions ?? 0),
      founders: ({ meta: own }) => foundersOf(partition, isMeta ? own : meta),
      targetMs: isTarget ? targetMs : 0,
    };
  }

  /** Reads what is to be known of both states, and lets the machines go. */
  private compare(
    rows: RowFlush,
    replay: PartitionReplay,
    whole: PartitionReplay | null,
    done: RestoreDone<unknown>,
  ): void {
    const { timer } = this.ports;
    const partition = replay.machine.group;
    const record = replay.machine.record();
    const place: GroupPlace = {
      ...{ memtable: rows.memtable, partition, generation: record.generation },
    };
    const wholeRecord = whole?.machine.record() ?? null;
    replay.machine.close();
    whole?.machine.close();
    const end = this.chainEnd(partition);
    readFacts(place, timer, (facts) => {
      const keep = (ofEnd: StateFacts): void => {
        const incarnation = Math.max(end.incarnation, ofEnd.highestIncarnation);
        this.partitions.push({ partition, record, facts, end: { ...end, incarnation } });
        this.order.onPartition();
        done(ok(null));
      };
      const { scratch } = this;
      if (scratch === null || wholeRecord === null) return keep(facts);
      const endPlace: GroupPlace = {
        ...{ memtable: scratch.memtable, partition, generation: wholeRecord.generation },
      };
      readFacts(endPlace, timer, (ofEnd) => {
        this.ahead.compare(endPlace, place, timer, () => keep(ofEnd));
      });
    });
  }

  /** What the artifacts say of the end of the chain, and of everything before it. */
  private chainEnd(partition: PartitionId): ChainEnd {
    const found = present(this.order.verified.partitions.get(partition), "it was verified");
    const { image, logs } = found;
    let highestToken = image.highestToken;
    let incarnation = image.highestIncarnation;
    let { ephemeralFloor } = image.record;
    let term = image.head.term;
    for (const { trailer } of logs) {
      if (trailer.highestToken > highestToken) highestToken = trailer.highestToken;
      if (trailer.ephemeralFloor > ephemeralFloor) ephemeralFloor = trailer.ephemeralFloor;
      incarnation = Math.max(incarnation, trailer.highestIncarnation);
      term = Math.max(term, trailer.end.term, trailer.ephemeralTerm);
    }
    return { tokenFloor: highestToken + 1n, ephemeralFloor, incarnation, term };
  }

  /** What this restore sets when earlier ones set `earlier`; null: too much. */
  floorsAfter(earlier: RestoredFloors): RestoredFloors | null {
    let floors = NO_FLOORS;
    for (const { record, end, facts } of this.partitions) {
      const { highestToken, highestIncarnation } = facts;
      const tokenFloor = liftedTokenFloor(highestToken, record.tokenFloor, end, earlier);
      const ephemeralFloor = liftedEphemeralFloor(record.ephemeralFloor, end, earlier);
      const incarnation = liftedIncarnation(highestIncarnation, end, earlier);
      if (tokenFloor === null || ephemeralFloor === null || incarnation === null) return null;
      floors = largestFloors(floors, { tokenFloor, ephemeralFloor, incarnation });
    }
    return floors;
  }

  /** Makes of every partition what a new cluster begins with. */
  lift({ clusterId, sequenceSkip, ordinal, earlier }: LiftOrder, done: RestoreDone<unknown>): void {
    const claimed = present(this.floorsAfter(earlier), "what is too much was not claimed");
    const rows = present(this.rows, "the store is open");
    const steps = this.partitions.map((group) => (next: RestoreDone<unknown>): void => {
      const order = { clusterId, ordinal, earlier, end: group.end, sequenceSkip };
      if (this.order.isCancelled()) return next(failure("Cancelled", "The call was cancelled."));
      liftGroup(rows, group, order, this.ports.timer, (lifted) => {
        if (!lifted.ok) return next(lifted);
        const { floors } = lifted.value;
        this.floors = largestFloors(this.floors, floors);
        const evidence = lifted.value.evidence(rows.sumsOf(group.partition));
        this.evidence.set(group.partition, evidence);
        this.order.onPartition();
        next(ok(null));
      });
    });
    stepwise(steps, (result) => {
      const { floors } = this;
      const isCovered =
        floors.tokenFloor <= claimed.tokenFloor &&
        floors.ephemeralFloor <= claimed.ephemeralFloor &&
        floors.incarnation <= claimed.incarnation;
      if (result.ok) assert(isCovered, "a restore sets no more than it claimed");
      done(result);
    });
  }

  /** Closes the stores; also more than once. */
  close(done: () => void): void {
    const { rows, scratch } = this;
    this.rows = null;
    this.scratch = null;
    const closeScratch = (): void => (scratch === null ? done() : scratch.close(done));
    if (rows === null) closeScratch();
    else rows.close(closeScratch);
  }

  /** Opens the store once more, and compares what is in it with what was lifted. */
  readBack(done: RestoreDone<unknown>): void {
    this.ports.stores.open(this.order.statePath, (opened) => {
      if (!opened.ok) return done(opened);
      const rows = new RowFlush(opened.value, this.ports.sorter);
      const steps = this.partitions.map(({ partition }) => (next: RestoreDone<unknown>): void => {
        this.readGroup(rows, partition, next);
      });
      stepwise(steps, (result) => rows.close(() => done(result)));
    });
  }

  private readGroup(rows: RowFlush, partition: PartitionId, done: RestoreDone<unknown>): void {
    const reading = new StoredEvidence(rows.memtable, partition);
    const slice = (): void => {
      const found = reading.step(ROWS_PER_TURN);
      if (found === null) return this.ports.timer.soon(slice);
      if (found === this.evidence.get(partition)) {
        this.order.onPartition();
        return done(ok(null));
      }
      const what = `Partition ${partition} was read back as another one than was written.`;
      done(failure("IoError", what));
    };
    slice();
  }
}

/**
 * Who a group began with whose members never changed: they are the ones of its record or of the
 * cluster, all of whom are still there.
 */
function foundersOf(partition: PartitionId, meta: MetaReads | null): readonly number[] {
  if (meta === null) return [];
  const listed = meta.partition(partition)?.founders ?? [];
  if (listed.length > 0) return listed;
  const first = meta.members().filter(({ joinedVersion }) => joinedVersion === FIRST_VERSION);
  return first.map(({ nodeId }) => nodeId);
}
