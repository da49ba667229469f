/**
 * What this node does for moves of key ranges as the leader of partitions: the movers of moves from
 * them, and what `rangeDuties` says.
 *
 * Looks at those groups that moves name, or that have something left to do, when the map changed,
 * when something was decided and at each tick; at a tick also at those that were run. Invariants:
 * 1. Everything follows from applied records and rows: of an earlier leadership nothing counts
 * (P-094). 2. One command at a time for each partition and key space. 3. Without moves and rows of
 * ownership a tick costs a comparison for each group that was run.
 */
import { META_PARTITION, type MapVersion, type PartitionId, partitionId } from "../../base/ids.js";
import { type RangeDuty, type RangeRecords, rangeDuties } from "../../control/range-duties.js";
import { commandSizeBytes } from "../../machine/commands/codec.js";
import type { Command, RangeCommand, RangeMove } from "../../machine/commands/command.js";
import type { Machine } from "../../machine/machine.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { ProposalDone, ReadDone } from "../requests/results.js";
import { RangeMover, type RangeMoverDeps } from "./range-mover.js";
import type { SourceGroup } from "./source-group.js";

/** One group of this node; a hosted group is one. */
export interface WorkedGroup {
  readonly partition: PartitionId;
  readonly machine: Machine;
  isServing(): boolean;
  isLeader(): boolean;
  leaderNode(): number;
  term(): number;
  leaseNowMs(): number;
  read(deadlineMs: number, done: ReadDone): void;
  proposeFinal(command: Command, sizeBytes: number, deadlineMs: number, done: ProposalDone): void;
}

export interface RangeWorkDeps extends RangeMoverDeps {
  /** The records of the meta partition as applied here; null before there are any. */
  metaReads(): MetaReads | null;
  /** Of the partition map that is followed here; null before there is one. */
  mapVersion(): MapVersion | null;
  find(partition: PartitionId): WorkedGroup | null;
  /** The partitions that were run since the last tick. */
  activeGroups(): Iterable<{ readonly partition: PartitionId }>;
  /** Stands for election of the group now, if nobody leads it. */
  campaign(partition: PartitionId): void;
}

/** A command is waited for so long (ms). */
const PATIENCE_MS = 5000;
/** A step that was not decided is taken again after this (ms). */
const AGAIN_MS = 100;
/** Between two purges of one interval (ms). */
const PURGE_MS = 10;
/** A mover that ended is followed by another one after this at the earliest (ms). */
const MOVER_AGAIN_MS = 500;
/** Pause between two candidacies for a partition that a split makes (ms). */
const CAMPAIGN_MS = 50;

interface Records extends RangeRecords {
  readonly list: readonly RangeMove[];
}

interface RunningMover {
  readonly mover: RangeMover;
  /** Of the move and the leadership. */
  readonly name: string;
  readonly beganMs: number;
}

export class RangeWork {
  /** By key space. */
  private readonly movers = new Map<string, RunningMover>();
  /** Partitions with something left to do. */
  private readonly open = new Set<PartitionId>();
  /** What is being decided, by partition and key space, and until when it is left alone. */
  private readonly pending = new Map<string, number>();
  private records: Records | null = null;
  private seen: MapVersion | null = null;
  private nextCampaignMs = -Infinity;
  /** Of the map, when groups were looked at because of it. */
  private lookedAt: MapVersion | null = null;
  /** When groups are to be looked at again. */
  private dueMs = Infinity;

  constructor(private readonly deps: RangeWorkDeps) {}

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.movers.size + this.open.size + this.pending.size > 0;
  }

  /** Steps of moves from partitions that are led here, by key space. */
  steps(): ReadonlyMap<string, string> {
    return new Map([...this.movers].map(([keySpace, { mover }]) => [keySpace, mover.step]));
  }

  /** Intervals that left partitions led here, and whose rows are still being deleted. */
  get purges(): number {
    const rows = [...this.open].flatMap((partition) => {
      const group = this.deps.find(partition);
      return group?.isServing() === true ? group.machine.ownership.all() : [];
    });
    return rows.filter(({ state, isPurged }) => state === "left" && !isPurged).length;
  }

  /** Once per tick, inside a turn; not while the node stops. */
  tick(nowMs: number): void {
    const records = this.read();
    if (records === null) return;
    for (const [name, untilMs] of this.pending) if (untilMs <= nowMs) this.pending.delete(name);
    this.move(records, nowMs);
    for (const { partition } of this.deps.activeGroups()) this.look(partition, records, nowMs);
    for (const partition of [...this.open]) this.look(partition, records, nowMs);
  }

  /** In each turn, and at once where nothing is to be done. */
  turn(nowMs: number): void {
    const version = this.deps.mapVersion();
    const hasChanged = version !== this.lookedAt;
    if (hasChanged || nowMs >= this.dueMs) {
      this.lookedAt = version;
      this.dueMs = Infinity;
      const records = this.read();
      if (records === null) return;
      if (hasChanged) this.move(records, nowMs);
      if (hasChanged && records.list.length > 0) this.spread(nowMs);
      for (const [name, untilMs] of this.pending) if (untilMs <= nowMs) this.pending.delete(name);
      for (const partition of [...this.open]) this.look(partition, records, nowMs);
    }
    for (const { mover } of this.movers.values()) if (mover.wakeAtMs <= nowMs) mover.tick(nowMs);
  }

  /**
   * Followers of meta hear of a commit with the next message: with the next heartbeat, where
   * nothing else is written. Whoever is to take the next step of a move hears of it at once, by a
   * round of a read.
   */
  private spread(nowMs: number): void {
    const meta = this.deps.find(META_PARTITION);
    if (meta?.isServing() === true) meta.read(nowMs + PATIENCE_MS, () => undefined);
  }

  /** When a turn is wanted although nothing happens. */
  get wakeAtMs(): number {
    let atMs = this.dueMs;
    for (const { mover } of this.movers.values()) atMs = Math.min(atMs, mover.wakeAtMs);
    return atMs;
  }

  private dueAt(atMs: number): void {
    this.dueMs = Math.min(this.dueMs, atMs);
    this.deps.wakeAt(atMs);
  }

  /** The node stops. */
  stop(): void {
    for (const { mover } of this.movers.values()) mover.end();
    this.movers.clear();
  }

  private read(): Records | null {
    const reads = this.deps.metaReads();
    const cluster = reads?.cluster() ?? null;
    if (reads === null || cluster === null) return null;
    if (cluster.mapVersion === this.seen && this.records !== null) return this.records;
    this.seen = cluster.mapVersion;
    const list = reads.moves();
    const bySpace = new Map(list.map((move) => [move.keySpace, move]));
    this.records = {
      mapVersion: cluster.mapVersion,
      poolSize: cluster.dataPartitions,
      list,
      moves: () => list,
      moveOf: (keySpace) => bySpace.get(keySpace) ?? null,
      rangesOf: (keySpace) => this.deps.metaReads()?.ranges(keySpace) ?? [],
    };
    for (const { source, target } of list) {
      this.open.add(partitionId(source));
      this.open.add(partitionId(target));
    }
    return this.records;
  }

  /** Movers come with records and leaderships, and go with them. */
  private move(records: Records, nowMs: number): void {
    for (const move of records.list) {
      const { keySpace, moveId } = move;
      const group = this.deps.find(partitionId(move.source));
      const name = `${moveId}/${group?.term() ?? 0}`;
      const known = this.movers.get(keySpace);
      known?.mover.learn(move);
      // One that ended waits for the record to say so; when it does not, another one begins.
      const isKnown = known?.name === name && nowMs - known.beganMs < MOVER_AGAIN_MS;
      if (known !== undefined && (isKnown || (known.name === name && !known.mover.isOver)))
        continue;
      known?.mover.end();
      this.movers.delete(keySpace);
      if (move.phase !== "copying" || group?.isServing() !== true) continue;
      const mover = new RangeMover(this.deps, sourceGroup(group), move);
      this.movers.set(keySpace, { mover, name, beganMs: nowMs });
    }
    for (const move of records.list) this.stand(move, nowMs);
    for (const [keySpace, { mover }] of this.movers) {
      if (records.moveOf(keySpace) === null) {
        mover.end();
        this.movers.delete(keySpace);
      } else mover.tick(nowMs);
    }
  }

  /** Who leads the source leads the new partition of a split at once, if it can. */
  private stand({ kind, phase, source, target }: RangeMove, nowMs: number): void {
    if (kind !== "split" || phase !== "copying" || nowMs < this.nextCampaignMs) return;
    const group = this.deps.find(partitionId(target));
    if (group === null || group.leaderNode() !== 0) return;
    if (this.deps.find(partitionId(source))?.isServing() !== true) return;
    this.nextCampaignMs = nowMs + CAMPAIGN_MS;
    this.deps.campaign(partitionId(target));
  }

  private look(partition: PartitionId, records: Records, nowMs: number): void {
    const group = this.deps.find(partition);
    const isNamed = records.list.some(({ source, target }) => {
      return source === partition || target === partition;
    });
    const ownership = group?.machine.ownership;
    if (ownership === undefined || (ownership.hasNoRows && !isNamed)) {
      this.open.delete(partition);
      return;
    }
    if (group?.isServing() !== true) {
      // Whoever leads it does this; it is looked at again when it is run.
      if (group?.isLeader() !== true) this.open.delete(partition);
      return;
    }
    const duties = rangeDuties({ partition, ownership }, records);
    if (duties.length === 0 && !isNamed) this.open.delete(partition);
    else this.open.add(partition);
    for (const duty of duties) this.do(group, duty, nowMs);
  }

  private do(group: WorkedGroup, { on, command }: RangeDuty, nowMs: number): void {
    const name = `${group.partition}/${command.keySpace}`;
    if (this.pending.has(name)) return;
    const deadlineMs = nowMs + PATIENCE_MS;
    this.pending.set(name, deadlineMs + AGAIN_MS);
    const decided = (isDone: boolean): void => {
      const waitMs = !isDone ? AGAIN_MS : command.kind === "range-purge" ? PURGE_MS : 0;
      const untilMs = this.deps.nowMs() + waitMs;
      this.pending.set(name, untilMs);
      this.dueAt(untilMs);
    };
    if (on === "meta") {
      // What it says is seen when the record is applied here.
      this.deps.proposeOnMeta(command, deadlineMs, () => decided(false));
      return;
    }
    propose(group, command, deadlineMs, ({ status }) => decided(status === "applied"));
  }

  /** The group left this node. */
  removed(partition: PartitionId): void {
    this.open.delete(partition);
  }
}

function propose(
  group: WorkedGroup,
  command: RangeCommand,
  deadlineMs: number,
  done: ProposalDone,
): void {
  group.proposeFinal(command, commandSizeBytes(command), deadlineMs, done);
}

function sourceGroup(group: WorkedGroup): SourceGroup {
  return {
    isServing: () => group.isServing(),
    term: () => group.term(),
    propose: (command, deadlineMs, done) => propose(group, command, deadlineMs, done),
    openCopy: (move) => group.machine.openCopy(move, () => group.leaseNowMs()),
    openCount: (move) => group.machine.openCount(move),
    frozenFor: (move) => {
      const rows = group.machine.ownership.overlapping(move);
      const frozen = rows.find(
        ({ state, moveId }) => state === "leaving" && moveId === move.moveId,
      );
      return frozen?.attempt ?? null;
    },
  };
}
