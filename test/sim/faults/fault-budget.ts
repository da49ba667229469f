/**
 * The atlas: who belongs to the cluster, as far as any node has told, and what of it may be lost
 * or taken away so that a majority of healthy voters is left.
 *
 * Invariants: 1. What may be is judged for the worst that changes under way can lead to: whoever
 * was asked to leave is gone, and a joiner that was lost votes. 2. Each group counts for itself,
 * and each half of a joint configuration. 3. The newest configuration that any node applied counts.
 */
import { VOTERS_MAX } from "../../../src/base/limits.js";
import { META_PARTITION, partitionId } from "../../../src/base/ids.js";
import type { Node } from "../../../src/host/node.js";
import { membershipOfVoters } from "../../../src/host/replication/config-entries.js";
import type { Member, PartitionRecord } from "../../../src/machine/commands/command.js";
import type { Membership } from "../../../src/raft/state/types.js";
import type { GroupSample, Observer } from "../world/observe.js";
import type { Server } from "../world/server.js";

export interface SeenMembers {
  readonly version: number;
  readonly members: readonly Member[];
}

export interface SeenMap {
  readonly version: number;
  readonly records: readonly PartitionRecord[];
}

interface Place {
  life: number;
  membershipIndex: number;
  membershipVersion: number;
  mapVersion: number;
}

export class Atlas {
  /** The newest member list that any node applied. */
  seenMembers: SeenMembers = { version: 0, members: [] };
  /** The newest partition map that any node applied. */
  seenMap: SeenMap = { version: 0, records: [] };
  /** Asked to leave, and not yet answered for good. */
  readonly leaving = new Set<Server>();
  /** Somebody may be about to remove them, living or not: they count as lost. */
  readonly doomed = new Set<Server>();
  private readonly configs = new Map<number, { index: number; membership: Membership }>();
  /** How many replicas of a placed partition are wanted, as the newest meta group has it. */
  private factor = 0;
  private factorIndex = 0;
  private readonly places = new Map<number, Place>();
  /** Replicas that have something of their group, and so a vote. */
  private readonly begun = new Set<number>();
  /** Replicas with which a group begins, or may: they have a vote while nobody leads it yet. */
  private readonly founding = new Set<number>();

  constructor(
    private readonly servers: readonly Server[],
    founders: number,
    private readonly observer: Pick<Observer, "members" | "membership" | "records" | "cluster">,
  ) {
    const ids = Array.from({ length: founders }, (_, at) => at + 1);
    this.configs.set(META_PARTITION, { index: 0, membership: membershipOfVoters(ids) });
  }

  /** A group of `node` looks other than before. Called before the sample is told to others. */
  look(node: Node, sample: GroupSample): void {
    const { partition, life } = sample;
    const key = keyOf(sample.node, partition);
    let place = this.places.get(key);
    if (place === undefined || place.life !== life) {
      place = { life, membershipIndex: -1, membershipVersion: -1, mapVersion: -1 };
      this.places.set(key, place);
    }
    const group = node.group(partitionId(partition));
    if (group === null) return;
    const { machine } = group;
    if (machine.appliedIndex > 0) this.begun.add(key);
    else this.begun.delete(key);
    if (group["replica"].core["raft"].awaitsSnapshot) this.founding.delete(key);
    else this.founding.add(key);
    if (machine.membershipIndex !== place.membershipIndex) {
      place.membershipIndex = machine.membershipIndex;
      // Of a group whose members never changed this is how it began; who awaits a snapshot has none.
      const { membership } = group["replica"].members;
      if (membership.voters.length > 0) this.sawConfig(sample, machine.membershipIndex, membership);
    }
    if (group.partition !== META_PARTITION) return;
    const cluster = machine.meta.cluster();
    const version = cluster?.membershipVersion ?? 0;
    const factor = cluster?.replicationFactor ?? 0;
    if (machine.appliedIndex > this.factorIndex) {
      this.factorIndex = machine.appliedIndex;
      this.factor = factor;
    }
    if (version !== place.membershipVersion) {
      place.membershipVersion = version;
      const members = machine.meta.members();
      if (version > this.seenMembers.version) this.seenMembers = { version, members };
      this.observer.members?.(sample.node, life, version, JSON.stringify(members));
      this.observer.cluster?.({ version, members, factor }, sample.atMs);
    }
    const map = cluster?.mapVersion ?? 0;
    if (map === place.mapVersion) return;
    place.mapVersion = map;
    const records = machine.meta.partitions();
    if (map > this.seenMap.version) this.seenMap = { version: map, records };
    this.observer.records?.(records, map, sample.atMs);
  }

  private sawConfig(sample: GroupSample, index: number, membership: Membership): void {
    const { partition, node, life, incarnation } = sample;
    const known = this.configs.get(partition);
    if (known === undefined || index > known.index) {
      this.configs.set(partition, { index, membership });
    }
    this.observer.membership?.(node, life, partition, index, membership, incarnation);
  }

  /** The configuration of a group as the newest node has it. */
  configOf(partition: number): Membership | null {
    return this.configs.get(partition)?.membership ?? null;
  }

  roleOf(nodeId: number): Member["role"] | null {
    return this.seenMembers.members.find((member) => member.nodeId === nodeId)?.role ?? null;
  }

  /** No more voters may be listed: who joins stays a learner. */
  get hasAllVoters(): boolean {
    const voters = this.seenMembers.members.filter(({ role }) => role === "voter");
    return voters.length >= VOTERS_MAX;
  }

  /** Votes in some group, or counts as a voter of the member list. */
  isVoter(nodeId: number): boolean {
    for (const [partition, { membership }] of this.configs) {
      if (this.isRemoved(partition)) continue;
      if ([...membership.voters, ...membership.votersOutgoing].includes(nodeId)) return true;
    }
    const role = this.roleOf(nodeId);
    return role === "voter" || role === "leaving";
  }

  /** Whether the data of `server` may be lost for good. */
  mayLose(server: Server): boolean {
    return server.isDamaged || this.survives(new Set([server]), new Set());
  }

  /** Whether `server` may be asked to leave, so that `least` healthy members stay. */
  mayLeave(server: Server, least: number): boolean {
    const stay = this.servers.filter((other) => {
      const isWhole = !other.isDamaged && !other.isLost && !other.isRetired;
      return isWhole && other !== server && !this.leaving.has(other) && this.isVoter(other.nodeId);
    });
    return stay.length >= least && this.survives(new Set(), new Set([server]));
  }

  private survives(lost: ReadonlySet<Server>, gone: ReadonlySet<Server>): boolean {
    const isHealthy = (server: Server): boolean =>
      !server.isDamaged &&
      !server.isLost &&
      !server.isRetired &&
      !this.doomed.has(server) &&
      !lost.has(server);
    const stands = (partition: number, voters: readonly number[]): boolean => {
      const counted = this.servers.filter((server) => {
        if ((gone.has(server) || this.leaving.has(server)) && isHealthy(server)) return false;
        const isLate = server.isJoiner || server.isReadmitted;
        const mayVoteYet = isLate && !isHealthy(server) && !server.isRetired;
        return voters.includes(server.nodeId) || mayVoteYet;
      });
      const isWhole = (server: Server): boolean =>
        isHealthy(server) && this.mayVote(server, partition);
      return counted.filter(isWhole).length * 2 > counted.length;
    };
    const isMajority = (voters: readonly number[]): boolean => {
      const healthy = this.servers.filter((each) => {
        return voters.includes(each.nodeId) && isHealthy(each);
      });
      return healthy.length * 2 > voters.length;
    };
    // A group that nobody has applied anything of begins with the voters of its record.
    const isBegun = ({ mode, state, partitionId: id, replicas }: PartitionRecord): boolean => {
      const isKnown = mode === "full" || state === "Removed" || this.configs.has(id);
      return isKnown || isMajority(replicas.map(({ nodeId }) => nodeId));
    };
    if (!this.seenMap.records.every(isBegun)) return false;
    for (const [partition, { membership }] of this.configs) {
      if (this.isRemoved(partition)) continue;
      const { voters, votersOutgoing } = membership;
      const record = this.recordOf(partition);
      if (record !== null) {
        const losesVoter = [...lost].some(({ nodeId }) => voters.includes(nodeId));
        if (losesVoter && this.isShrinking(record)) return false;
        const leaving = [...gone, ...this.leaving].map(({ nodeId }) => nodeId);
        if (outcomesOf(membership, record, leaving).every((each) => isMajority(each))) continue;
        return false;
      }
      if (!stands(partition, voters)) return false;
      if (votersOutgoing.length > 0 && !stands(partition, votersOutgoing)) return false;
    }
    return true;
  }

  /** Whoever was added to a group awaits a snapshot of it and votes for nobody, also while nobody leads it yet. */
  private mayVote({ nodeId }: Server, partition: number): boolean {
    const key = keyOf(nodeId, partition);
    if (this.begun.has(key)) return true;
    const isBegun = this.servers.some((other) => this.begun.has(keyOf(other.nodeId, partition)));
    return !isBegun && (partition === META_PARTITION || this.founding.has(key));
  }

  /** Nobody needs anything of it any more. */
  private isRemoved(partition: number): boolean {
    const record = this.seenMap.records.find(({ partitionId }) => partitionId === partition);
    return record?.state === "Removed";
  }

  /** Voters go one by one, before anybody knows that one of those who stay lost its disk just now. */
  private isShrinking({ replicas, replicationOverride }: PartitionRecord): boolean {
    const wanted = replicationOverride === 0 ? this.factor : replicationOverride;
    return replicas.filter(({ role }) => role !== "learner").length > wanted;
  }

  /** Of a placed partition; null in full mode, and of meta. */
  private recordOf(partition: number): PartitionRecord | null {
    const record = this.seenMap.records.find(({ partitionId }) => partitionId === partition);
    return record?.mode === "placed" ? record : null;
  }
}

/** Of one replica. */
function keyOf(node: number, partition: number): number {
  return node * 4096 + partition;
}

/** Who may vote in a placed group, now and when what is under way is through. */
function outcomesOf(
  { voters, votersOutgoing, learners }: Membership,
  { replicas }: PartitionRecord,
  leaving: readonly number[],
): readonly (readonly number[])[] {
  const coming = replicas.filter(({ role }) => role === "learner");
  const going = replicas.filter(({ role }) => role === "removing").map(({ nodeId }) => nodeId);
  const replaced = coming.map(({ replaces }) => replaces);
  const all = [...new Set([...voters, ...learners, ...coming.map(({ nodeId }) => nodeId)])];
  const rest = all.filter((node) => !going.includes(node) && !replaced.includes(node));
  const stay = rest.filter((node) => !leaving.includes(node));
  return [voters, votersOutgoing, all, rest, stay].filter(({ length }) => length > 0);
}
