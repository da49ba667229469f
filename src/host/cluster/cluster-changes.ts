/**
 * Everything on a node that changes who belongs to the cluster, joined: the member list's own line
 * and its next step, the members of the groups led here, nodes that join, this node's leave, and
 * the meta proposals to the leader of the meta partition that all of them run.
 *
 * Invariants: 1. Nothing is decided here.
 * 2. A group counts as seen only when this node's replica of it has applied what it knows to be
 * committed, an entry of its leader's term among it: a leader that has just been elected knows the
 * commits of its forerunners only then.
 */
import { META_PARTITION, type PartitionId } from "../../base/ids.js";
import type { Program } from "../../base/levels.js";
import { type ClusterView, isFreshReplica } from "../../control/membership.js";
import { isRebalancing } from "../../control/placement.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { JoinAnswer, JoinRequest, LoggerPort } from "../../ports.js";
import type { Replica } from "../group/replica.js";
import { type FinalizeDone, Finalizing } from "./finalizing.js";
import { Hearing, isHearingFrame } from "./hearing.js";
import type { Hosted } from "./group-registry.js";
import type { HostedMap } from "./map-follower.js";
import { Joining } from "./joining.js";
import { type LeaveDone, Leaving } from "./leaving.js";
import { MemberRemoval } from "./member-removal.js";
import { Placer, type PlacerDeps } from "./placer.js";
import { META_PROPOSALS } from "./meta-proposals.js";
import { MetaProposer, isMetaProposalFrame } from "./meta-proposer.js";
import { ReplicaReports } from "../reports/replica-reports.js";
import { Reconcile } from "./reconcile.js";
import type { MetaAccess } from "./cluster-members.js";
import type { Membership } from "../../raft/state/types.js";
import type { SnapshotPurpose } from "../snapshots/snapshot-pace.js";
import type { HostSettings } from "../settings.js";
import type { LevelMark } from "../storage/level-mark.js";
import type { LevelFacts } from "../requests/results.js";
import type { ActiveGroups } from "../group/active-groups.js";

/** What is needed of the hosting of groups. */
export interface HostedGroups {
  readonly all: readonly Hosted[];
  /** Data partitions of the cluster; 0 until it is founded. */
  readonly dataPartitions: number;
  readonly hostedMap: HostedMap;
  /** The nodes that the cluster was founded with. */
  readonly founderIds: readonly number[];
  find(partition: PartitionId): Hosted | null;
}

export interface ClusterChangesDeps {
  readonly settings: HostSettings;
  readonly logger: LoggerPort;
  readonly registry: HostedGroups;
  readonly activeGroups: ActiveGroups;
  /** The records of the meta partition; null before there are any, and when this node stops. */
  metaReads(): MetaReads | null;
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  isLinked(node: number): boolean;
  /** How long a node has not been linked (ms). */
  unlinkedMs(node: number, nowMs: number): number;
  /** What nodes tell of themselves. */
  reports(): ReturnType<PlacerDeps["reports"]>;
  /** What a linked node supports; null when it is not linked. */
  programOf(node: number): Program | null;
  readonly levelMark: Pick<LevelMark, "covers">;
  /** Queues a frame on the lane "control"; false: it was dropped. */
  sendControl(to: number, bytes: Uint8Array): boolean;
  /** Gives the group a turn. */
  wake(replica: Replica): void;
  /** Something waits for `tick` that did not before: ticks come as usual. */
  tickSoon(): void;
}

export class ClusterChanges {
  readonly reconcile: Reconcile;
  readonly placer: Placer;
  /** For the member list of this node. */
  readonly metaAccess: MetaAccess;
  private readonly metaProposer: MetaProposer;
  private readonly replicaReports: ReplicaReports;
  private readonly joining: Joining;
  private readonly leaving: Leaving;
  private readonly hearing: Hearing;
  private readonly removal: MemberRemoval;
  private readonly finalizing: Finalizing;

  constructor(private readonly deps: ClusterChangesDeps) {
    const { settings, logger, registry } = deps;
    const { nodeId, clusterId, storage, program } = settings;
    const nowMs = (): number => deps.nowMs();
    const tickSoon = (): void => deps.tickSoon();
    const soon = (callback: () => void): void => deps.soon(callback);
    const metaLeader = (): number => this.meta()?.replica.leadership.leader ?? 0;
    const metaReads = (): MetaReads | null => deps.metaReads();
    this.metaProposer = new MetaProposer({
      nodeId,
      nowMs,
      soon,
      leader: metaLeader,
      metaReads,
      clusterView: () => (this.meta()?.replica.leadership.isServing === true ? this.view() : null),
      propose: (command, sizeBytes, deadlineMs, done) => {
        const meta = this.meta();
        if (meta === null) soon(() => done({ status: "refused", reason: "not-leader" }));
        else meta.group.proposeFinal(command, sizeBytes, deadlineMs, done);
      },
      send: (to, bytes) => deps.sendControl(to, bytes),
      tickSoon,
    });
    const proposeOnMeta = this.metaProposer.propose;
    this.metaAccess = { proposeOnMeta, clusterView: () => this.view() };
    this.reconcile = this.makeReconcile();
    this.replicaReports = this.makeReplicaReports();
    this.placer = this.makePlacer();
    const founders = (): readonly number[] => registry.founderIds;
    const both = { nowMs, soon, metaReads, metaLeader, proposeOnMeta };
    this.joining = new Joining({ clusterId, storage, program, founders, logger, ...both });
    const memberships = (): readonly Membership[] => {
      return this.common().map(({ replica }) => replica.members.membership);
    };
    const isLinked = (node: number): boolean => deps.isLinked(node);
    this.leaving = new Leaving({
      nodeId,
      memberships,
      placement: (atMs) => this.placer.sketch(atMs, this.rebalances() ?? this.isRebalancing()),
      rebalances: () => this.rebalances(),
      isLive: isLinked,
      ...both,
    });
    const send = (to: number, bytes: Uint8Array): boolean => deps.sendControl(to, bytes);
    this.hearing = new Hearing({ nowMs, soon, isLinked, send, tickSoon });
    this.removal = new MemberRemoval({
      nodeId,
      servesMeta: () => this.meta()?.replica.leadership.isServing === true,
      memberships,
      isLinked,
      evictsFromLevel: settings.permits.commands["evict-member"] ?? 0,
      hearing: this.hearing,
      ...both,
    });
    this.finalizing = new Finalizing({
      ...{ nodeId, program, logger },
      autoFinalizeMs: settings.autoFinalizeMs,
      levelMark: deps.levelMark,
      metaGroup: () => this.meta()?.group ?? null,
      programOf: (node) => deps.programOf(node),
      tickSoon,
      ...both,
    });
  }

  private makeReconcile(): Reconcile {
    const { deps } = this;
    const { settings, logger, registry } = deps;
    return new Reconcile({
      nodeId: settings.nodeId,
      electionMs: settings.electionMs,
      logger,
      metaReads: () => deps.metaReads(),
      groups: () => registry.all.map(({ replica }) => replica),
      activeGroups: () => deps.activeGroups.all(),
      isLinked: (node) => deps.isLinked(node),
      placedFromLevel: settings.permits.commands["place-partition"] ?? 0,
      proposeOnMeta: this.metaProposer.propose,
      wake: (partition) => this.unquiesce(partition),
    });
  }

  private makeReplicaReports(): ReplicaReports {
    const { activeGroups, registry } = this.deps;
    return new ReplicaReports({
      placed: () => this.reconcile.placed,
      activeGroups: () => activeGroups.all(),
      find: (partition) => registry.find(partition)?.replica ?? null,
      wake: (partition) => this.unquiesce(partition),
      propose: (command, deadlineMs, done) =>
        this.metaAccess.proposeOnMeta(command, deadlineMs, done),
      maxBytes: META_PROPOSALS["report-replicas"].maxBytes,
    });
  }

  private makePlacer(): Placer {
    const { deps } = this;
    const { settings, logger, registry } = deps;
    return new Placer({
      nodeId: settings.nodeId,
      startedMs: deps.nowMs(),
      isEnabled: settings.rebalancerEnabled,
      everyMs: settings.placementPassEveryMs,
      deadAfterMs: settings.deadMemberMs,
      fromLevel: settings.permits.commands["change-replicas"] ?? 0,
      logger,
      metaReads: () => deps.metaReads(),
      find: (partition) => registry.find(partition)?.replica ?? null,
      isLinked: (node) => deps.isLinked(node),
      unlinkedMs: (node, nowMs) => deps.unlinkedMs(node, nowMs),
      reports: () => deps.reports(),
      proposeOnMeta: this.metaProposer.propose,
    });
  }

  /** Once per tick, inside a turn; not while the node stops. */
  tick(nowMs: number): void {
    this.metaProposer.tick(nowMs);
    this.leaving.tick(nowMs);
    this.finalizing.tick(nowMs);
    this.hearing.tick(nowMs);
    this.removal.tick(nowMs);
    this.reconcile.check(nowMs);
    this.replicaReports.tick(nowMs);
    this.placer.tick(nowMs);
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    const { metaProposer, leaving, finalizing, hearing, removal, reconcile, placer } = this;
    const parts = [metaProposer, leaving, finalizing, hearing, removal, reconcile, placer];
    return parts.some((part) => part.hasWork) || this.replicaReports.hasWork;
  }

  /** Takes a frame of the lane "control" if it is for a part of this; false: it is not. */
  frame(from: number, bytes: Uint8Array): boolean {
    if (isMetaProposalFrame(bytes)) this.metaProposer.frame(from, bytes);
    else if (isHearingFrame(bytes)) this.hearing.frame(from, bytes);
    else return false;
    return true;
  }

  linkUp(node: number): void {
    this.placer.linkUp(node, this.deps.nowMs());
  }

  linkDown(node: number): void {
    this.metaProposer.linkDown(node);
    this.hearing.linkDown(node);
    this.placer.linkDown(node);
  }

  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void {
    this.joining.asked(request, answer);
  }

  /** Another node said that this one is no member. */
  get isRemoved(): boolean {
    return this.leaving.isRemoved;
  }

  /** Another node says that this one is no member. */
  refusedAsRemoved(): void {
    this.leaving.refusedAsRemoved();
  }

  /** Raises the level of the cluster; see `Finalizing`. */
  finalize(level: number, deadlineMs: number, done: FinalizeDone): void {
    this.finalizing.finalize(level, deadlineMs, done);
  }

  levelFacts(nowMs: number): LevelFacts {
    return this.finalizing.facts(nowMs);
  }

  /** Takes this node out of the cluster; see `Leaving`. */
  leave(deadlineMs: number, drainMs: number, done: LeaveDone): void {
    this.leaving.leave(deadlineMs, drainMs, done);
    this.deps.tickSoon();
  }

  /** Takes a member that is gone out of the cluster; see `MemberRemoval`. */
  removeMember(member: number, deadlineMs: number, done: LeaveDone): void {
    this.removal.remove(member, deadlineMs, done);
    this.deps.tickSoon();
  }

  /** The node stops: whoever waits for a leave or a removal hears that it is open. */
  stop(): void {
    this.leaving.stop();
    this.removal.stop();
  }

  /** What the replica of `node` comes for, as far as is known here: in whose place it comes. */
  purposeOf(partition: PartitionId, node: number): SnapshotPurpose {
    const record = this.reconcile.placed.get(partition);
    const replaces = record?.replicas.find(({ nodeId }) => nodeId === node)?.replaces ?? 0;
    const leaver = replaces === 0 ? null : this.deps.metaReads()?.member(replaces);
    if (leaver === null || leaver === undefined || leaver.evicted) return "repair";
    // One that may be dead is not waited for, leaving or not.
    if (replaces !== this.deps.settings.nodeId && !this.deps.isLinked(replaces)) return "repair";
    return leaver.role === "leaving" ? "drain" : "balance";
  }

  /** Whether moves begin is for the leader of meta to say (contract 5.4); null = not known. */
  private rebalances(): boolean | null {
    const { settings, reports } = this.deps;
    const leader = this.meta()?.replica.leadership.leader ?? 0;
    if (leader === settings.nodeId) return this.isRebalancing();
    return reports().of(leader)?.report.placement?.rebalances ?? null;
  }

  /** This node moves replicas where it leads the meta partition. */
  private isRebalancing(): boolean {
    const { deps } = this;
    return isRebalancing(deps.settings.rebalancerEnabled, deps.metaReads()?.cluster() ?? null);
  }

  private meta(): Hosted | null {
    return this.deps.registry.find(META_PARTITION);
  }

  private unquiesce(partition: PartitionId): void {
    const replica = this.deps.registry.find(partition)?.replica;
    if (replica === undefined) return;
    replica.peers.unquiesce();
    this.deps.wake(replica);
  }

  /** The groups hosted here that follow the member list: those of placed partitions do not. */
  private common(): readonly Hosted[] {
    const { all, hostedMap } = this.deps.registry;
    return all.filter(({ replica }) => !hostedMap.placed.has(replica.partition));
  }

  /** The cluster as seen here; null unless all groups that are on every node are hosted. */
  private view(): ClusterView | null {
    const { dataPartitions, hostedMap } = this.deps.registry;
    const { full, named } = hostedMap;
    const common = this.common();
    if (dataPartitions === 0 || common.length !== full + 1) return null;
    const groups = common.map(({ replica }) => {
      const { machine, core, leadership, members } = replica;
      const { leader } = leadership;
      const { term, commitIndex } = core;
      const { appliedIndex, appliedTerm } = machine;
      const isFresh = isFreshReplica({ leader, term, commitIndex, appliedIndex, appliedTerm });
      return { membership: members.membership, isFresh };
    });
    return { groups, placedOn: named };
  }
}
