/**
 * Keeps what a node hosts in line with the applied partition map, for as long as the node runs:
 * replicas that the map places here come, those that a newer map is without go.
 *
 * Owns the lives of replicas (`ReplicaLives`). Invariants: 1. A group comes and goes by the map
 * alone, never by a message (P-097). 2. A replica of a placed partition is made when its row is
 * durable, and begins with the founders of the record or awaits a snapshot. 3. What recovery found
 * of a log is of the life that was open then: one that comes later begins without it. 4. While the
 * map stays as it is, following it costs one read; where it changes, what changed of it. 5. No data
 * partition is hosted before the record of the cluster is applied: it says which keys the partition
 * owns. 6. What a split made begins with the founders of its record, if this data directory is the
 * one that was meant (P-088).
 */
import { present } from "../../base/assert.js";
import {
  FOUNDING_INCARNATION,
  META_PARTITION,
  NOT_BORN,
  type MapVersion,
  type PartitionId,
  partitionId,
} from "../../base/ids.js";
import type { Result } from "../../base/result.js";
import { type KnownLife, hostingStep } from "../../control/hosting.js";
import type { ClusterRecord, PartitionRecord } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { RecoveredGroupLog } from "../../ports.js";
import type { PeerLives } from "../replication/peer-lives.js";
import { type Beginning, foundingBeginning } from "../storage/recovery.js";
import type { LastWords } from "../storage/replica-row.js";
import { ReplicaLives, type ReplicaLivesDeps } from "./replica-lives.js";

/** The partition map, as far as it says where replicas are. */
export interface HostedMap {
  /** Data partitions on every node. */
  readonly full: number;
  /** The others, */
  readonly placed: ReadonlySet<PartitionId>;
  /** and the nodes that records name, of partitions that are not removed. */
  readonly named: ReadonlySet<number>;
}

/** A replica that is here. */
interface HostedReplica {
  readonly lives: PeerLives;
}

/** Of a replica that was never made: no other life of it follows, as no id is used twice. */
const NO_WORDS: LastWords = {
  incarnation: FOUNDING_INCARNATION,
  term: 0,
  vote: 0,
  lastGeneration: 0,
};

export interface MapFollowerDeps extends Omit<ReplicaLivesDeps, "changed"> {
  readonly nodeId: number;
  /** Of this data directory. */
  readonly storageId: string;
  /** The voters that the cluster was founded with. */
  founderIds(): readonly number[];
  /** This directory was none of the founding. */
  isJoiner(): boolean;
  /** The records as applied here; null before there is a meta partition. */
  reads(): MetaReads | null;
  /** Nothing comes and goes any more: the node stops. */
  isStopping(): boolean;
  find(partition: PartitionId): HostedReplica | null;
  /** The groups that are here. */
  hosted(): Iterable<PartitionId>;
  /** Makes and starts a replica. */
  host(
    partition: PartitionId,
    beginning: Beginning,
    recovered: RecoveredGroupLog | null,
  ): HostedReplica;
  /** Takes a replica away from everybody who knows it; what it has stays in log and store. */
  retire(partition: PartitionId): LastWords;
}

export class MapFollower {
  private readonly lives: ReplicaLives;
  /** What the log had at the start of groups of which it is not known yet how they began. */
  private readonly unhosted = new Map<PartitionId, RecoveredGroupLog>();
  private seen: MapVersion | null = null;
  /** The records as of that version. */
  private records: readonly PartitionRecord[] = [];
  /** Data partitions of the cluster; 0 until it is founded. */
  dataPartitions = 0;
  /** As applied last. */
  map: HostedMap = { full: 0, placed: new Set(), named: new Set() };

  constructor(private readonly deps: MapFollowerDeps) {
    this.lives = new ReplicaLives({
      ...deps,
      changed: (partition) => {
        const record = deps.isStopping() ? null : (deps.reads()?.partition(partition) ?? null);
        if (record !== null) this.followOne(record);
      },
    });
  }

  /** Of the map as applied last; null before. */
  get mapVersion(): MapVersion | null {
    return this.seen;
  }

  /** Reads what earlier starts left. */
  load(): Result<null, "damaged-state"> {
    return this.lives.load();
  }

  /** Once per tick. */
  tick(): void {
    this.lives.tick();
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return this.lives.hasWork;
  }

  /** Replicas that the map places here and that are still to be made. */
  get comingCount(): number {
    return this.lives.comingCount;
  }

  /** Replicas that were dropped to the end in this life of the node. */
  get drops(): number {
    return this.lives.drops;
  }

  /**
   * How a group goes on of which log or store hold something at the start; null when it does not:
   * it was dropped, or its record is not known yet.
   */
  recovers(partition: PartitionId, recovered: RecoveredGroupLog | null): Beginning | null {
    const row = this.lives.row(partition);
    if (row !== null && row.state !== "live") return null;
    if (this.isFounded(partition)) {
      const record = this.deps.reads()?.partition(partition) ?? null;
      const isFirst = row === null && this.isInPool(partition);
      if (isFirst || (row !== null && row.incarnation > 0) || record !== null) {
        return this.beginningOf(partition, record, recovered);
      }
    }
    if (recovered !== null) this.unhosted.set(partition, recovered);
    return null;
  }

  /** What the group owns by default is known only with the cluster's record. */
  private isFounded(partition: PartitionId): boolean {
    return partition === META_PARTITION || (this.deps.reads()?.cluster() ?? null) !== null;
  }

  /** It is there from the founding on, as the meta partition is. */
  private isInPool(partition: PartitionId): boolean {
    return partition <= (this.deps.reads()?.cluster()?.dataPartitions ?? 0);
  }

  /** As the founders of the cluster began it, or those of a partition that a split made. */
  private foundedBy(
    record: PartitionRecord | null,
    recovered: RecoveredGroupLog | null,
  ): Beginning {
    const { deps } = this;
    if (record === null || record.bornVersion === NOT_BORN) {
      return foundingBeginning(deps.founderIds(), deps.isJoiner());
    }
    const { founders, bornVersion } = record;
    const member = deps.reads()?.member(deps.nodeId) ?? null;
    const isMeant = member?.storageId === deps.storageId && member.joinedVersion <= bornVersion;
    const isFounder = isMeant && founders.includes(deps.nodeId);
    // Who has entries has begun; whom the member list does not name any more, too.
    const hasBegun = (recovered?.lastIndex ?? 0) > 0;
    return foundingBeginning(founders, !isFounder && !hasBegun);
  }

  private beginningOf(
    partition: PartitionId,
    record: PartitionRecord | null,
    recovered: RecoveredGroupLog | null,
  ): Beginning {
    const row = this.lives.row(partition);
    if (row === null) return this.foundedBy(record, recovered);
    const { incarnation, term, vote, lastGeneration } = row;
    const known = { term, vote, firstGeneration: lastGeneration + 1 };
    if (incarnation > 0) return { founders: [], incarnation, isAdded: true, ...known };
    const { founders } = present(record, "a founder's record is known");
    if (founders.length > 0) return { founders, incarnation, isAdded: false, ...known };
    // It was on every node before it was listed: it begins as it would have begun there.
    return { ...this.foundedBy(null, recovered), ...known };
  }

  /** Brings what is hosted in line with the map, where that changed. */
  follow(reads: MetaReads, cluster: ClusterRecord): void {
    if (cluster.mapVersion === this.seen) return;
    this.seen = cluster.mapVersion;
    const placed = new Set<PartitionId>();
    const named = new Set<number>();
    const listed = new Set<number>();
    let full = 0;
    const before = this.records;
    this.records = reads.partitions();
    let at = 0;
    for (const record of this.records) {
      listed.add(record.partitionId);
      const isThere = record.state !== "Removed";
      if (record.mode === "full" && isThere) full++;
      if (record.mode === "placed") placed.add(partitionId(record.partitionId));
      // A removed partition keeps its list for good, and nobody may wait for it.
      if (isThere) for (const { nodeId } of record.replicas) named.add(nodeId);
      while ((before[at]?.partitionId ?? Infinity) < record.partitionId) at++;
      // What keeps a record from being followed now tells when that is over.
      if (before[at] !== record) this.followOne(record);
    }
    this.map = { full, placed, named };
    this.dataPartitions = cluster.dataPartitions;
    const known = [...this.deps.hosted(), ...this.unhosted.keys()];
    for (const partition of known) if (!listed.has(partition)) this.forget(reads, partition);
  }

  /** What is left here of a partition that was removed so long ago that its record is gone. */
  private forget(reads: MetaReads, partition: PartitionId): void {
    const { deps, lives } = this;
    if (partition === META_PARTITION || lives.isBusy(partition) || deps.isStopping()) return;
    if (reads.partition(partition) !== null || !reads.isRemoved(partition)) return;
    const isHosted = deps.find(partition) !== null;
    this.unhosted.delete(partition);
    lives.drop(partition, isHosted ? deps.retire(partition) : NO_WORDS);
  }

  private followOne(record: PartitionRecord): void {
    const { deps, lives } = this;
    const partition = partitionId(record.partitionId);
    if (lives.isBusy(partition) || deps.isStopping()) return;
    const hosted = deps.find(partition) ?? this.takeUp(partition, record);
    hosted?.lives.learn(record.replicas);
    const step = hostingStep(record, deps.nodeId, this.lastLife(partition, hosted));
    if (step.kind === "drop") lives.drop(partition, deps.retire(partition));
    if (step.kind !== "come") return;
    if (record.mode === "placed") return lives.come(partition, step.incarnation);
    deps.host(partition, this.foundedBy(record, null), null);
  }

  private lastLife(partition: PartitionId, hosted: HostedReplica | null): KnownLife | null {
    if (hosted !== null) return { incarnation: hosted.lives.own, isLive: true };
    const row = this.lives.row(partition);
    return row === null ? null : { incarnation: row.incarnation, isLive: false };
  }

  /** A replica whose life has begun and which is not made: it waited for its row, or its record. */
  private takeUp(partition: PartitionId, record: PartitionRecord): HostedReplica | null {
    const recovered = this.unhosted.get(partition) ?? null;
    const row = this.lives.row(partition);
    const isBegun =
      row === null ? recovered !== null && record.mode === "full" : row.state === "live";
    if (!isBegun) return null;
    this.unhosted.delete(partition);
    return this.deps.host(partition, this.beginningOf(partition, record, recovered), recovered);
  }
}
