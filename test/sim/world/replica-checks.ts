/**
 * What is looked at where partitions have replicas on some nodes only: hands what the world sees of
 * records, configurations and replicas to their checkers, and counts what placement went through.
 *
 * Invariants: 1. The newest record, map, member list and configuration that any node has applied
 * count as such from that moment on. 2. A replica that moves is counted once, whoever tells of it.
 */
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { AcksOfOneLife } from "../../judge/checkers/replicas/acks-of-one-life.js";
import { AtRest } from "../../judge/checkers/replicas/at-rest.js";
import { BornOfMap } from "../../judge/checkers/replicas/born-of-map.js";
import { BoundedImages } from "../../judge/checkers/replicas/bounded-images.js";
import { ComesToWhoStays } from "../../judge/checkers/replicas/comes-to-who-stays.js";
import { ConfigInMap } from "../../judge/checkers/replicas/config-in-map.js";
import { Converged } from "../../judge/checkers/replicas/converged.js";
import { DrainedMeansSafe } from "../../judge/checkers/replicas/drained-means-safe.js";
import { DroppedAfterRemoval } from "../../judge/checkers/replicas/dropped-after-removal.js";
import { GoesByOrder } from "../../judge/checkers/replicas/goes-by-order.js";
import { LeadersSpread } from "../../judge/checkers/replicas/leaders-spread.js";
import { LegalEdges } from "../../judge/checkers/replicas/legal-edges.js";
import { MajorityKept } from "../../judge/checkers/replicas/majority-kept.js";
import { NeverBelowFactor } from "../../judge/checkers/replicas/never-below-factor.js";
import { NoLiveEviction } from "../../judge/checkers/replicas/no-live-eviction.js";
import { OneVotePerTerm } from "../../judge/checkers/replicas/one-vote-per-term.js";
import { SingleMover } from "../../judge/checkers/replicas/single-mover.js";
import { SnapshotFirst } from "../../judge/checkers/replicas/snapshot-first.js";
import { WhyTold } from "../../judge/checkers/replicas/why-told.js";
import { Findings } from "../../judge/checkers/verdict.js";
import type { GroupSample, SeenCluster } from "./observe.js";
import type { PlacementPeace, ReplicaObserver } from "./replica-observer.js";

/** What a world with replicas on some nodes only is set to. */
export interface ReplicaWorld {
  /** The allocator puts replicas where they belong. */
  readonly hasAllocator: boolean;
  /** Snapshots that a node takes, and sends, at the same time. */
  readonly receiversMax: number;
  readonly sendersMax: number;
}

export class ReplicaChecks implements ReplicaObserver {
  readonly born: BornOfMap;
  readonly drops: DroppedAfterRemoval;
  readonly acks: AcksOfOneLife;
  readonly votes: OneVotePerTerm;
  readonly snapshotFirst: SnapshotFirst;
  readonly inMap: ConfigInMap;
  readonly goes: GoesByOrder;
  readonly targets: ComesToWhoStays;
  readonly mover: SingleMover;
  readonly edges: LegalEdges;
  readonly majority: MajorityKept;
  readonly factor: NeverBelowFactor;
  readonly drained: DrainedMeansSafe;
  readonly evictions: NoLiveEviction;
  readonly converged: Converged;
  readonly rest: AtRest;
  readonly leaders: LeadersSpread;
  readonly bounded: BoundedImages;
  readonly why: WhyTold;
  private readonly went = new Findings("what placement went through", {});
  private mapVersion = -1;
  private membersVersion = -1;
  private readonly roles = new Map<number, string>();
  /** Asked to leave by themselves. */
  private readonly asked = new Set<number>();
  private readonly newest = new Map<number, PartitionRecord>();
  private readonly counted = new Set<string>();
  private readonly voters = new Map<
    number,
    { readonly index: number; readonly voters: readonly number[] }
  >();
  private readonly generations = new Map<number, Set<number>>();

  /** null: replicas are on all nodes, and what is looked at need not be seen. */
  constructor(world: ReplicaWorld | null) {
    const few = world === null ? {} : undefined;
    this.born = new BornOfMap(few);
    this.drops = new DroppedAfterRemoval(few);
    this.acks = new AcksOfOneLife(few);
    this.votes = new OneVotePerTerm(few);
    this.snapshotFirst = new SnapshotFirst(few);
    this.inMap = new ConfigInMap(few);
    this.goes = new GoesByOrder(few);
    this.targets = new ComesToWhoStays(few);
    this.mover = new SingleMover(few);
    this.edges = new LegalEdges(few);
    this.majority = new MajorityKept(few);
    this.factor = new NeverBelowFactor(world?.hasAllocator === true, few);
    this.drained = new DrainedMeansSafe(few);
    this.evictions = new NoLiveEviction(few);
    this.converged = new Converged(few);
    this.rest = new AtRest(few);
    this.leaders = new LeadersSpread(few);
    const { receiversMax = Infinity, sendersMax = Infinity } = world ?? {};
    this.bounded = new BoundedImages(receiversMax, sendersMax, few);
    this.why = new WhyTold(few);
  }

  get all(): readonly { verdict(): ReturnType<Findings["verdict"]> }[] {
    const ofLives = [this.born, this.drops, this.acks, this.votes, this.snapshotFirst];
    const ofRecords = [
      ...[this.inMap, this.goes, this.mover, this.edges, this.majority, this.factor],
    ];
    const ofNodes = [this.drained, this.evictions, this.bounded, this.why, this.targets];
    const ofPeace = [this.converged, this.rest, this.leaders];
    return [...ofLives, ...ofRecords, ...ofNodes, ...ofPeace, this.went];
  }

  sample(sample: GroupSample, isNewLeader: boolean): void {
    const { node, partition: group, incarnation, appliedIndex: applied } = sample;
    const { installedIndex: installed, leading } = sample;
    this.born.replica(node, group, incarnation);
    this.drops.replica(node, group, incarnation);
    this.snapshotFirst.observe({ node, group, incarnation, applied, installed, leading });
    const isMoving = this.newest.get(group)?.replicas.some(({ role }) => role !== "voter");
    if (isNewLeader && isMoving === true) this.went.count("leader changes inside a move");
  }

  /** Some node has applied a member list; called before the records of the same moment. */
  cluster({ version, members, factor }: SeenCluster, atMs: number): void {
    if (version <= this.membersVersion) return;
    this.membersVersion = version;
    this.factor.cluster(members, factor, atMs);
    const listed = new Set(members.map(({ nodeId }) => nodeId));
    const voters = members.filter(({ role }) => role === "voter").map(({ nodeId }) => nodeId);
    this.evictions.voters(voters, atMs);
    for (const { nodeId, role } of members) {
      const isNews = this.roles.get(nodeId) !== role;
      if (role === "leaving" && isNews && !this.asked.has(nodeId)) {
        this.evictions.removed(nodeId, atMs);
      }
      this.roles.set(nodeId, role);
    }
    for (const nodeId of [...this.roles.keys()]) {
      if (listed.has(nodeId)) continue;
      this.roles.delete(nodeId);
      this.asked.delete(nodeId);
    }
  }

  records(records: readonly PartitionRecord[], mapVersion: number, atMs: number): void {
    for (const record of records) {
      if (!this.isNews(record)) continue;
      this.born.record(record);
      this.drops.record(record);
      this.inMap.record(record);
      this.goes.record(record);
      this.mover.record(record);
      this.edges.record(record);
      this.factor.record(record, atMs);
      this.drained.record(record);
      this.note(record);
    }
    if (mapVersion <= this.mapVersion) return;
    this.mapVersion = mapVersion;
    this.bounded.records(records);
  }

  /** What one node has applied of a generation all have: that is for the checker of equal states. */
  private isNews({ partitionId, generation }: PartitionRecord): boolean {
    let seen = this.generations.get(partitionId);
    if (seen === undefined) this.generations.set(partitionId, (seen = new Set()));
    return seen.size < seen.add(generation).size;
  }

  private note(record: PartitionRecord): void {
    const { partitionId, generation, mode, replicas } = record;
    const known = this.newest.get(partitionId);
    if (mode !== "placed" || (known !== undefined && known.generation >= generation)) return;
    this.newest.set(partitionId, record);
    for (const { nodeId, role, incarnation } of replicas) {
      const place = `${partitionId}/${nodeId}`;
      this.once(`${place}/${incarnation}`, role === "voter" && incarnation > 0, "moves");
      const isAgain = role === "learner" && this.counted.has(`held ${place}`);
      this.once(`again ${place}/${incarnation}`, isAgain, "replicas that come again");
      const before = known?.replicas.find((replica) => replica.nodeId === nodeId)?.role;
      const isKept = before === "removing" && role === "voter";
      this.once(`kept ${place}/${generation}`, isKept, "replicas kept");
      if (role === "voter") this.counted.add(`held ${place}`);
    }
    if (replicas.every(({ role }) => role === "voter")) {
      const count = replicas.length;
      this.once(`factor ${partitionId} ${count}`, count <= 5, `partitions of ${count}`);
    }
  }

  private once(key: string, isIt: boolean, what: string): void {
    if (!isIt || this.counted.has(key)) return;
    this.counted.add(key);
    this.went.count(what);
  }

  membership(group: number, index: number, membership: Membership): void {
    this.noteVoters(group, index, membership);
    this.inMap.membership(group, index, membership);
    this.goes.membership(group, index, membership);
    this.mover.membership(group, index, membership);
    this.majority.membership(group, index, membership);
    this.drained.membership(group, index, membership);
  }

  /** Who votes since the newest configuration. */
  private noteVoters(group: number, index: number, { voters }: Membership): void {
    const known = this.voters.get(group);
    if (known !== undefined && known.index >= index) return;
    this.voters.set(group, { index, voters });
    const replicas = this.newest.get(group)?.replicas ?? [];
    for (const { nodeId, incarnation } of replicas) {
      if (!voters.includes(nodeId) || known?.voters.includes(nodeId) !== false) continue;
      this.snapshotFirst.votes(nodeId, group, incarnation);
    }
  }

  // ReplicaObserver -----------------------------------------------------------------------------

  configWritten(...entry: Parameters<MajorityKept["writes"]>): void {
    this.majority.writes(...entry);
  }

  gone(node: number, atMs: number): void {
    this.majority.gone(node, atMs);
  }

  back(node: number): void {
    this.majority.back(node);
  }

  began(node: number, atMs: number): void {
    this.evictions.began(node, atMs);
  }

  orderedByHand(partition: number, generation: number): void {
    this.factor.ordered(partition, generation);
    this.bounded.ordered(partition, generation);
  }

  orderDone(...done: Parameters<LegalEdges["ordered"]>): void {
    this.edges.ordered(...done);
  }

  leaveAsked(node: number): void {
    this.asked.add(node);
  }

  left(node: number, isDrained: boolean): void {
    if (isDrained) this.went.count("drains");
    this.drained.left(node, isDrained);
  }

  removedByForce(): void {
    this.went.count("removals by force");
  }

  removalRefused(): void {
    this.evictions.refused();
  }

  strays(count: number): void {
    this.went.count("frames of former lives", count);
  }

  links(look: Parameters<NoLiveEviction["look"]>[0]): void {
    this.evictions.look(look);
  }

  transfers(...seen: Parameters<BoundedImages["transfers"]>): void {
    this.bounded.transfers(...seen);
  }

  pass(pass: Parameters<ReplicaObserver["pass"]>[0]): void {
    this.why.pass(pass);
    this.targets.pass(pass);
  }

  settled({ placement, hasAllocator, led, hasBalancer, partitions }: PlacementPeace): void {
    this.converged.settled(placement, hasAllocator);
    if (hasBalancer) this.leaders.settled(led);
    this.drained.settled(partitions, new Set(led.map(({ partition }) => partition)));
  }

  rested(...seen: Parameters<AtRest["rested"]>): void {
    this.rest.rested(...seen);
  }
}
