/**
 * What is left of a cluster on one node becomes the state that a new cluster of one begins with
 * (contract 7.7): what this node had applied, lifted above what the old cluster could hand out.
 *
 * Owns the rows meanwhile. Invariants: 1. What is replayed is what this node knows to be committed,
 * and nothing above it. 2. A survey writes nothing. 3. Each partition is lifted once, however often
 * the act is begun again: a row of the node says so, durable together with what it stands for. 4. A
 * partition of the map that is not here is there afterwards, empty, with floors as high as any
 * other's. 5. Of moves of key ranges that were under way nothing is left: map and partitions, each
 * known as of another moment, say the same of each key (`machine/restoring/settled-ranges.ts`).
 */
import { present } from "../../base/assert.js";
import { decodeText, encodeText } from "../../base/bytes.js";
import { META_PARTITION, type PartitionId, partitionId } from "../../base/ids.js";
import { SINCE } from "../../base/levels.js";
import { failure, ok } from "../../base/result.js";
import { decodeEntry } from "../../machine/commands/codec.js";
import {
  EMPTY_GROUP_RECORD,
  type GroupRecord,
  encodeGroupRecord,
} from "../../machine/commands/group-record.js";
import { Machine } from "../../machine/machine.js";
import type { RestoredFloors } from "../../machine/restoring/lifted.js";
import {
  type SettledRanges,
  settleGroup,
  settleRanges,
} from "../../machine/restoring/settled-ranges.js";
import { eraseGroup } from "../../machine/snapshot/restore.js";
import { groupRecordKey, keySuccessor, nodeRowKey } from "../../machine/store/keys.js";
import type { LogEntry, LogPort, StorePort, TimerPort } from "../../ports.js";
import { changeMembership } from "../../raft/state/membership.js";
import {
  EntryKindCode,
  decodeConfigChange,
  decodeMembership,
  encodeMembership,
  membershipOfVoters,
} from "../replication/config-entries.js";
import { installAtStart } from "../snapshots/snapshot-recovery.js";
import { decodeIdentity, IDENTITY_KEY } from "../storage/identity.js";
import { storedGroups } from "../storage/recovery.js";
import { decodeReplicaRow, replicaRowKey } from "../storage/replica-row.js";
import { NO_FLOORS, largestFloors } from "./claims.js";
import { liftGroup } from "./group-lift.js";
import { type RestoreDone, type RestoreFault, stepwise } from "./restore-faults.js";
import { RowFlush } from "./row-flush.js";

const MARK_PREFIX = nodeRowKey("forced/");
const NODE_PREFIX = nodeRowKey("");
const SLICE_BYTES = 1024 * 1024;
const ROWS_PER_TURN = 1024;
const HELD_BYTES_MAX = 64 * 1024 * 1024;
/** The level at which a cluster without members can be refounded. */
const LEVEL_NEEDED = SINCE.commands["refound-cluster"][1];

/** What an operator wants to know of a partition before anything is done. */
export interface SurveyedPartition {
  readonly partition: PartitionId;
  /** The map places it elsewhere, or it had not come yet: nothing of it is here. */
  readonly isMissing: boolean;
  readonly appliedIndex: number;
  /** Last index that this node knows to be committed: it will be applied. */
  readonly commitIndex: number;
  /** Where its log ends: what lies above the commit index is given up. */
  readonly lastIndex: number;
  /** Node that stamped the last entry known to be committed; 0 = none. */
  readonly leader: number;
  /** When it did, Unix milliseconds by its clock; 0 = never. */
  readonly heardMs: number;
}

export interface ForcedOrder {
  readonly clusterId: string;
  readonly ordinal: number;
  readonly earlier: RestoredFloors;
}

interface Kept {
  readonly partition: PartitionId;
  readonly machine: Machine;
  readonly commitIndex: number;
  readonly lastIndex: number;
  /** Highest term that this node knows of. */
  readonly term: number;
}

export class ForcedState {
  floors: RestoredFloors = NO_FLOORS;
  private readonly rows: RowFlush;
  private readonly kept: Kept[] = [];
  private missing: PartitionId[] = [];
  /** Of which anything is here, whatever it is. */
  private found: PartitionId[] = [];
  private founders: readonly number[] = [];

  /** `log`: null when an earlier try has lifted everything. */
  constructor(
    private readonly store: StorePort,
    private readonly log: LogPort | null,
    private readonly timer: TimerPort,
    /** The rows of the meta partition fit: they are lifted in one flush. */
    heldBytesMax = HELD_BYTES_MAX,
  ) {
    this.rows = new RowFlush(store, undefined, false, heldBytesMax);
  }

  /** Looks at what is there. */
  survey(): RestoreFault | null {
    const { memtable } = this.rows;
    const bytes = memtable.get(IDENTITY_KEY);
    this.founders = (bytes === null ? null : decodeIdentity(bytes))?.founders.map(idOf) ?? [];
    const found = new Set<PartitionId>([...this.logged().keys(), ...storedGroups(this.store)]);
    this.found = [...found].sort((a, b) => a - b);
    for (const partition of this.found) {
      const fault = this.keep(partition);
      if (fault !== null) return fault;
    }
    const meta = this.meta;
    if (meta?.meta.cluster() === null || meta === null) {
      return failure("IoError", "The data directory holds no cluster.");
    }
    if (meta.level < LEVEL_NEEDED) {
      const what = `The cluster is at level ${meta.level}`;
      return failure("IoError", `${what}: it can be forced from level ${LEVEL_NEEDED} on.`);
    }
    this.missing = this.missingOf(meta);
    return null;
  }

  /** What the map names, and is not here. */
  private missingOf(meta: Machine): PartitionId[] {
    const isHere = new Set(this.kept.map(({ partition }) => partition));
    return livingOf(meta).filter((partition) => !isHere.has(partition));
  }

  private get meta(): Machine | null {
    return this.kept.find(({ partition }) => partition === META_PARTITION)?.machine ?? null;
  }

  private logged(): ReturnType<LogPort["recovered"]> {
    return this.log?.recovered() ?? new Map<PartitionId, never>();
  }

  private keep(partition: PartitionId): RestoreFault | null {
    const { memtable } = this.rows;
    const isMeta = partition === META_PARTITION;
    // A replica that was leaving is no state to go on from.
    const row = memtable.get(replicaRowKey(partition));
    if (row !== null && decodeReplicaRow(row)?.state !== "live") return null;
    const pool = this.meta?.meta.cluster()?.dataPartitions ?? 0;
    if (!isMeta && memtable.get(groupRecordKey(partition)) === null) {
      // What the log alone has of a group begins with its founding.
      if ((this.logged().get(partition)?.floor.index ?? 0) > 0) return null;
    }
    const machine = new Machine(memtable, partition, 0, isMeta || partition <= pool);
    const { appliedIndex, appliedTerm, installed } = machine;
    const own = { group: partition, appliedIndex, appliedTerm, installed };
    const known = this.logged().get(partition) ?? null;
    const start = this.log === null ? { kind: "none" as const } : installAtStart(own, known);
    if (start.kind === "mixed") {
      const what = `Partition ${partition}: log and state store are not of one moment.`;
      return failure("IoError", what);
    }
    const recovered = start.kind === "reset" ? start.recovered : known;
    const commit = recovered?.hardState.commit ?? 0;
    const lastIndex = Math.max(recovered?.lastIndex ?? 0, appliedIndex);
    const commitIndex = Math.max(appliedIndex, Math.min(commit, lastIndex));
    if (commitIndex === 0) return null;
    const term = Math.max(recovered?.hardState.term ?? 0, appliedTerm);
    this.kept.push({ partition, machine, commitIndex, lastIndex, term });
    return null;
  }

  /** What `survey` found. */
  report(): readonly SurveyedPartition[] {
    const here = this.kept.map(({ partition, machine, commitIndex, lastIndex }) => {
      const { n: leader, l: heardMs } = machine.lastStamp;
      const { appliedIndex } = machine;
      const found = { appliedIndex, commitIndex, lastIndex, leader, heardMs };
      return { partition, isMissing: false, ...found };
    });
    const none = { appliedIndex: 0, commitIndex: 0, lastIndex: 0, leader: 0, heardMs: 0 };
    const missing = this.missing.map((partition) => ({ partition, isMissing: true, ...none }));
    return [...here, ...missing].sort((a, b) => a.partition - b.partition);
  }

  /** Applies what is committed, and makes it durable. */
  replay(done: RestoreDone<unknown>): void {
    const steps = this.kept.map((kept) => (next: RestoreDone<unknown>): void => {
      this.replayOne(kept, next);
    });
    const flush = (next: RestoreDone<unknown>): void => this.rows.flush(next);
    stepwise([...steps, flush], done);
  }

  private replayOne(kept: Kept, done: RestoreDone<unknown>): void {
    const { partition, machine, commitIndex } = kept;
    const next = (): void => {
      const first = machine.appliedIndex + 1;
      if (first > commitIndex) return done(ok(null));
      const log = present(this.log, "what is not applied is in the log");
      log.read(partition, first, commitIndex, SLICE_BYTES, (read) => {
        if (!read.ok || read.value.length === 0) {
          const what = `Partition ${partition}: entry ${first} cannot be read from the log.`;
          return done(failure("IoError", what));
        }
        for (const entry of read.value) {
          if (this.applyOne(machine, entry)) continue;
          const what = `Partition ${partition}: entry ${entry.index} cannot be applied.`;
          return done(failure("IoError", what));
        }
        if (!this.rows.isDue) return next();
        this.rows.flush((flushed) => (flushed.ok ? next() : done(flushed)));
      });
    };
    next();
  }

  private applyOne(machine: Machine, entry: LogEntry): boolean {
    const { index, term, kind, payload } = entry;
    if (kind !== EntryKindCode.normal) return this.change(machine, entry);
    if (payload.length === 0) machine.applyEmpty({ index, term });
    else {
      const decoded = decodeEntry(payload);
      if (!decoded.ok) return false;
      const { leaseMs, stamp } = decoded.value.stamp;
      machine.apply({ index, term, leaseMs, stamp }, decoded.value.commands, []);
    }
    return true;
  }

  private change(machine: Machine, entry: LogEntry): boolean {
    const stored = machine.membership;
    const before = stored === null ? membershipOfVoters(this.founders) : decodeMembership(stored);
    const ordered = decodeConfigChange(entry.payload);
    if (before === null || ordered === null) return false;
    const changed = changeMembership(before, ordered.change);
    if (!changed.ok) return false;
    machine.applyMembership(entry, encodeMembership(changed.membership), ordered.generation);
    return true;
  }

  /** Lifts every partition that no earlier try has lifted. */
  lift(order: ForcedOrder, done: RestoreDone<unknown>): void {
    const { memtable } = this.rows;
    const own = encodeText(order.clusterId);
    const isLifted = (partition: PartitionId): boolean => {
      const mark = memtable.get(`${MARK_PREFIX}${partition}`);
      return mark !== null && decodeText(mark) === order.clusterId;
    };
    const meta = present(this.meta, "the meta partition is there");
    const groups = this.kept.map(({ machine }) => machine);
    const ranges = settleRanges(meta, groups);
    this.missing = this.missingOf(meta);
    // Nobody hosts what the map does not name: no node would start with rows of it.
    const isNamed = new Set([META_PARTITION, ...livingOf(meta)]);
    const gone = new Set(this.found.filter((partition) => !isNamed.has(partition)));
    const flush = (next: RestoreDone<unknown>): void => this.rows.flush(next);
    const ends = this.kept.map(({ machine }) => machine.record());
    const steps = this.kept.map((kept) => (next: RestoreDone<unknown>): void => {
      const { partition, machine, term } = kept;
      const record = machine.record();
      machine.close();
      this.floors = largestFloors(this.floors, { ...NO_FLOORS, ...pick(record) });
      if (gone.has(partition)) return next(ok(null));
      if (isLifted(partition)) return next(ok(null));
      const { tokenFloor, ephemeralFloor } = record;
      const end = { tokenFloor, ephemeralFloor, incarnation: 0, term };
      const last = (): void => memtable.put(`${MARK_PREFIX}${partition}`, own);
      const lifting = { ...order, end, sequenceSkip: 0n };
      liftGroup(
        this.rows,
        { partition, record },
        lifting,
        this.timer,
        (lifted) => {
          if (!lifted.ok) return next(lifted);
          this.floors = largestFloors(this.floors, lifted.value.floors);
          next(ok(null));
        },
        last,
      );
    });
    const erasing = [...gone].map((partition) => (next: RestoreDone<unknown>): void => {
      this.erase(partition, () => this.rows.flush(next));
    });
    const missing = (next: RestoreDone<unknown>): void => this.liftMissing(ends, ranges, next);
    stepwise([flush, ...steps, ...erasing, missing], done);
  }

  /** Takes all rows of a group away, slice by slice; what is not flushed yet is the caller's. */
  private erase(partition: PartitionId, done: () => void): void {
    const slice = (): void => {
      if (eraseGroup(this.rows.memtable, partition, ROWS_PER_TURN) === 0) return done();
      this.timer.soon(slice);
    };
    slice();
  }

  /** Partitions of which nothing is here begin empty, above all that is known. */
  private liftMissing(
    ends: readonly GroupRecord[],
    ranges: SettledRanges,
    done: RestoreDone<unknown>,
  ): void {
    const { memtable } = this.rows;
    const { tokenFloor, ephemeralFloor } = this.floors;
    const leaseMs = ends.reduce((most, record) => Math.max(most, record.leaseMs), 0);
    const level = present(ends[0], "the meta partition is there").level;
    const steps = this.missing.map((partition) => (next: RestoreDone<unknown>): void => {
      this.erase(partition, () => {
        const begun = { appliedIndex: 1, appliedTerm: 1, installedIndex: 1, installedTerm: 1 };
        const floors = { tokenFloor, ephemeralFloor, leaseMs, level };
        const record = { ...EMPTY_GROUP_RECORD, ...begun, ...floors };
        memtable.put(groupRecordKey(partition), encodeGroupRecord(record));
        const machine = new Machine(memtable, partition, 0, partition <= ranges.poolSize);
        settleGroup(machine, ranges);
        this.rows.flush((flushed) => {
          machine.close();
          next(flushed);
        });
      });
    });
    stepwise(steps, done);
  }

  /** Forgets everything that this node knew of itself and others in the old cluster. */
  forget(done: RestoreDone<unknown>): void {
    const { memtable } = this.rows;
    const doomed: string[] = [];
    memtable.scanKeys(NODE_PREFIX, keySuccessor(NODE_PREFIX), (key) => {
      doomed.push(key);
      return true;
    });
    for (const key of doomed) memtable.delete(key);
    this.rows.flush(done);
  }

  /** Ends it without having written anything; also after everything was written. */
  close(done: () => void): void {
    for (const { machine } of this.kept) machine.close();
    this.rows.close(done);
  }
}

function pick({ tokenFloor, ephemeralFloor }: GroupRecord): Partial<RestoredFloors> {
  return { tokenFloor, ephemeralFloor };
}

function idOf({ nodeId }: { readonly nodeId: number }): number {
  return nodeId;
}

/** The partitions of the map. */
function livingOf({ meta }: Machine): PartitionId[] {
  const living = meta.partitions().filter(({ state }) => state !== "Removed");
  return living.map((record) => partitionId(record.partitionId));
}
