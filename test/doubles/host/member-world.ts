/**
 * A cluster in which only membership moves: every node has a meta machine that applies one shared
 * log, and every group is a membership with a leader. Commands and changes take effect at the next
 * step, unless the node that gave them is down.
 */
import { PROGRAM } from "../../../src/base/levels.js";
import { assert } from "../../../src/base/assert.js";
import {
  FIRST_LEVEL,
  NO_PLACEMENT,
  type PartitionId,
  configIndex,
  partitionId,
} from "../../../src/base/ids.js";
import type { ClusterView, GroupView } from "../../../src/control/membership.js";
import { Hearing, isHearingFrame } from "../../../src/host/cluster/hearing.js";
import { Joining } from "../../../src/host/cluster/joining.js";
import { type LeaveOutcome, Leaving } from "../../../src/host/cluster/leaving.js";
import { MemberRemoval } from "../../../src/host/cluster/member-removal.js";
import { MetaProposer, isMetaProposalFrame } from "../../../src/host/cluster/meta-proposer.js";
import { type ReconcileGroup, Reconcile } from "../../../src/host/cluster/reconcile.js";
import { ClusterMembers } from "../../../src/host/cluster/cluster-members.js";
import type { ProposalDone, ProposalResult } from "../../../src/host/requests/results.js";
import type {
  Command,
  Member,
  MetaOutcome,
  Outcome,
} from "../../../src/machine/commands/command.js";
import { Machine } from "../../../src/machine/machine.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import { allMembers, changeMembership } from "../../../src/raft/state/membership.js";
import type { JoinAnswer } from "../../../src/ports.js";
import type {
  ConfigChange,
  CoreStatus,
  Membership,
  PeerProgress,
} from "../../../src/raft/state/types.js";
import { FakeStore } from "../machine/fake-store.js";

export const ELECTION_MS = 1000;
export const BEAT_MS = 100;

/** Every group is on every node. */
function clusterOf(groups: readonly GroupView[]): ClusterView {
  return { groups, placedOn: new Set() };
}

/** One group of the cluster, as it is everywhere. */
export class FakeGroup {
  leader = 1;
  term = 1;
  changes = 0;
  isPaused = false;
  hasFrozen = false;
  readonly caughtUp = new Map<number, number>();

  constructor(
    readonly partition: PartitionId,
    public membership: Membership,
  ) {}

  hasQuorum(isUp: (node: number) => boolean): boolean {
    const { voters } = this.membership;
    return voters.filter((node) => isUp(node)).length * 2 > voters.length;
  }
}

export class MemberNode {
  isUp = true;
  readonly machine: Machine;
  readonly clusterMembers: ClusterMembers;
  readonly reconcile: Reconcile;
  readonly metaProposer: MetaProposer;
  readonly joining: Joining;
  readonly leaving: Leaving;
  readonly hearing: Hearing;
  readonly removal: MemberRemoval;

  constructor(
    readonly world: MemberWorld,
    readonly nodeId: number,
    readonly storageId: string,
    endpoint = `n${nodeId}:1`,
  ) {
    this.machine = new Machine(new Memtable({ store: new FakeStore() }), partitionId(0));
    const { meta } = world;
    const logger = { log: () => undefined };
    const soon = (callback: () => void): void => void world.later.push(callback);
    const nowMs = (): number => world.nowMs;
    const leader = (): number => (meta.hasQuorum(world.isUp) ? meta.leader : 0);
    const serves = (): boolean => this.isUp && leader() === nodeId;
    const propose = (
      command: Command,
      _sizeBytes: number,
      _deadlineMs: number,
      done: ProposalDone,
    ): boolean => {
      const isTaken = serves();
      if (isTaken) world.queue.push({ by: nodeId, command, done });
      else done({ status: "refused", reason: "not-leader" });
      return isTaken;
    };
    this.metaProposer = new MetaProposer({
      tickSoon: () => undefined,
      nodeId,
      nowMs,
      soon,
      leader,
      metaReads: () => this.machine.meta,
      clusterView: () =>
        clusterOf(world.groups.map(({ membership }) => ({ membership, isFresh: world.isFresh }))),
      propose,
      send: (to, bytes) => this.send(to, bytes),
    });
    const replica = { machine: this.machine, leadership: {} };
    Object.defineProperty(replica.leadership, "isServing", { get: serves });
    this.clusterMembers = new ClusterMembers(
      {
        nodeId,
        endpoint,
        clusterId: "cluster",
        storageId,
        founders: world.founders.map((founder) => ({ ...founder, storageId: "" })),
        initialPartitions: world.groups.length - 1,
        replicationFactor: 0,
        givenReplicationFactor: null,
        program: PROGRAM,
        heartbeatMs: 100,
      },
      { entropy: { uint32: () => 7 }, logger },
      replica as ConstructorParameters<typeof ClusterMembers>[2],
      { proposeFinal: propose },
      { level: FIRST_LEVEL },
    );
    this.clusterMembers.connect({
      proposeOnMeta: this.metaProposer.propose,
      clusterView: () =>
        clusterOf(world.groups.map(({ membership }) => ({ membership, isFresh: world.isFresh }))),
    });
    const reads = () => this.machine.meta;
    this.reconcile = new Reconcile({
      nodeId,
      electionMs: ELECTION_MS,
      logger,
      metaReads: reads,
      groups: () => world.groups.map((group) => this.groupView(group)),
      activeGroups: () => world.groups.map((group) => this.groupView(group)),
      isLinked: (node) => world.isUp(node),
      placedFromLevel: 1,
      proposeOnMeta: this.metaProposer.propose,
      wake: () => undefined,
    });
    this.joining = new Joining({
      clusterId: "cluster",
      storage: "lmdb",
      program: PROGRAM,
      founders: () => world.founders.map((founder) => founder.nodeId),
      logger,
      nowMs,
      soon,
      metaReads: reads,
      metaLeader: leader,
      proposeOnMeta: this.metaProposer.propose,
    });
    this.leaving = new Leaving({
      nodeId,
      nowMs,
      soon,
      metaReads: reads,
      metaLeader: leader,
      memberships: () => world.groups.map((group) => group.membership),
      placement: () => null,
      rebalances: () => false,
      isLive: (node) => world.isUp(node),
      proposeOnMeta: this.metaProposer.propose,
    });
    const isLinked = (node: number): boolean => world.isUp(node) && world.hears(nodeId, node);
    this.hearing = new Hearing({
      nowMs,
      soon,
      isLinked,
      send: (to, bytes) => this.send(to, bytes),
      tickSoon: () => undefined,
    });
    this.removal = new MemberRemoval({
      nodeId,
      nowMs,
      soon,
      metaReads: reads,
      servesMeta: serves,
      memberships: () => world.groups.map((group) => group.membership),
      isLinked,
      get evictsFromLevel() {
        return world.evictsFromLevel;
      },
      hearing: this.hearing,
      proposeOnMeta: this.metaProposer.propose,
    });
  }

  private send(to: number, bytes: Uint8Array): boolean {
    const { world, nodeId } = this;
    assert(isMetaProposalFrame(bytes) !== isHearingFrame(bytes), "frames are marked");
    if (!this.isUp || !world.isUp(to) || world.losesFrames) return false;
    if (world.loses(nodeId, to)) return true;
    world.later.push(() => {
      if (!world.isUp(to)) return;
      const node = world.node(to);
      if (isMetaProposalFrame(bytes)) node.metaProposer.frame(nodeId, bytes);
      else node.hearing.frame(nodeId, bytes);
    });
    return true;
  }

  tick(): void {
    if (!this.isUp) return;
    const { nowMs } = this.world;
    this.clusterMembers.check(nowMs);
    this.reconcile.check(nowMs);
    this.metaProposer.tick(nowMs);
    this.leaving.tick(nowMs);
    this.hearing.tick(nowMs);
    this.removal.tick(nowMs);
  }

  private groupView(group: FakeGroup): ReconcileGroup {
    const { world, nodeId } = this;
    const isServing = this.isUp && group.leader === nodeId && group.hasQuorum(world.isUp);
    return {
      partition: group.partition,
      leadership: { isServing },
      machine: {
        placedGeneration: NO_PLACEMENT,
        membershipIndex: configIndex(group.changes),
        ownership: { hasFrozen: group.hasFrozen },
      },
      core: {
        term: group.term,
        status: () => world.statusOf(group),
      },
      pauses: { cut: { isOn: () => group.isPaused } },
      moveTo: ({ to }) => {
        assert(group.membership.voters.includes(to), "leadership goes to a voter");
        if (world.isUp(to)) world.elect(group, to);
        return true;
      },
      members: {
        isEstablished: true,
        establish: () => undefined,
        propose: ({ change }, _nowMs, done) =>
          world.changes.push({ by: nodeId, group, change, done }),
      },
    };
  }
}

interface QueuedCommand {
  readonly by: number;
  readonly command: Command;
  readonly done: ProposalDone;
}

interface QueuedChange {
  readonly by: number;
  readonly group: FakeGroup;
  readonly change: ConfigChange;
  readonly done: (result: "applied" | "refused" | "unknown") => void;
}

export class MemberWorld {
  nowMs = 1000;
  later: (() => void)[] = [];
  queue: QueuedCommand[] = [];
  changes: QueuedChange[] = [];
  losesFrames = false;
  /** Frames of meta proposals that are lost although they were sent. */
  loses: (from: number, to: number) => boolean = () => false;
  /** Whether the link between two nodes that are up stands. */
  hears: (by: number, node: number) => boolean = () => true;
  /** Groups change nobody while this is set. */
  changesHeld = false;
  /** Removals by force are told from leaves. */
  evictsFromLevel = 1;
  /** The replicas at the leader of the meta partition are up to date. */
  isFresh = true;
  /** Time that a new member of a group takes to catch up. */
  catchUpMs = 500;
  readonly groups: FakeGroup[] = [];
  readonly nodes = new Map<number, MemberNode>();
  readonly log: Command[] = [];

  constructor(
    readonly founders: readonly { readonly nodeId: number; readonly endpoint: string }[],
    partitions: number,
  ) {
    const voters = founders.map((founder) => founder.nodeId).sort((a, b) => a - b);
    const rest = { votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
    for (let id = 0; id <= partitions; id++) {
      const group = new FakeGroup(partitionId(id), { voters, ...rest });
      group.leader = voters[id % voters.length] as number;
      this.groups.push(group);
    }
    for (const { nodeId } of founders) this.add(nodeId, `s${nodeId}`);
  }

  get meta(): FakeGroup {
    return this.groups[0] as FakeGroup;
  }

  readonly isUp = (node: number): boolean => this.nodes.get(node)?.isUp ?? false;

  node(nodeId: number): MemberNode {
    const node = this.nodes.get(nodeId);
    assert(node !== undefined, "the node is there");
    return node;
  }

  /** Starts a node; its replica of the meta partition holds what is committed. */
  add(nodeId: number, storageId: string, endpoint?: string): MemberNode {
    const node = new MemberNode(this, nodeId, storageId, endpoint);
    this.nodes.set(nodeId, node);
    for (const command of this.log) this.applyOn(node, command);
    return node;
  }

  /** The process of `nodeId` ends: the links of all others to it break. */
  kill(nodeId: number): void {
    this.node(nodeId).isUp = false;
    for (const other of this.nodes.values()) if (other.isUp) other.hearing.linkDown(nodeId);
  }

  elect(group: FakeGroup, leader: number): void {
    group.leader = leader;
    group.term++;
  }

  /** The members of the first node that is up. */
  memberRoles(): string {
    const node = [...this.nodes.values()].find((candidate) => candidate.isUp);
    const members = node?.machine.meta.members() ?? [];
    return members.map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
  }

  /** Ids of nodes that were members and are not any more. */
  removedIds(): number[] {
    return [...this.nodes.keys()].filter((id) => {
      const former = this.log.some((one) => one.kind === "remove-member" && one.nodeId === id);
      return former && this.memberOf(id) === null;
    });
  }

  statusOf(group: FakeGroup): CoreStatus {
    const progress = allMembers(group.membership).map((id): PeerProgress => {
      const sinceMs = group.caughtUp.get(id) ?? 0;
      const isCaughtUp = this.nowMs - sinceMs >= this.catchUpMs;
      return {
        id,
        state: isCaughtUp ? "replicate" : "probe",
        match: isCaughtUp ? 1000 : 0,
        next: 1,
        learner: group.membership.learners.includes(id),
        paused: false,
        pendingSnapshot: 0,
        active: this.isUp(id),
        inflightCount: 0,
        inflightFull: false,
      };
    });
    return {
      id: group.leader,
      role: "leader",
      term: group.term,
      vote: group.leader,
      leader: group.leader,
      commitIndex: 1000,
      appliedIndex: 1000,
      lastIndex: 1000,
      writtenIndex: 1000,
      floorIndex: 0,
      transferTo: 0,
      membership: group.membership,
      progress,
    };
  }

  step(): void {
    this.nowMs += BEAT_MS;
    for (const group of this.groups) this.electIfDue(group);
    for (const node of this.nodes.values()) node.tick();
    for (const callback of this.later.splice(0)) callback();
    for (const { by, command, done } of this.queue.splice(0)) {
      const isAlive = this.isUp(by) && this.meta.leader === by && this.meta.hasQuorum(this.isUp);
      done(isAlive ? this.commit(command) : { status: "unknown" });
    }
    if (this.changesHeld) return;
    for (const change of this.changes.splice(0)) this.change(change);
  }

  run(until: () => boolean, stepsMax = 2000): boolean {
    for (let count = 0; count < stepsMax && !until(); count++) this.step();
    return until();
  }

  private electIfDue(group: FakeGroup): void {
    const { voters } = group.membership;
    if (this.isUp(group.leader) && voters.includes(group.leader)) return;
    const heir = voters.find((node) => this.isUp(node));
    if (heir !== undefined && group.hasQuorum(this.isUp)) this.elect(group, heir);
  }

  private commit(command: Command): ProposalResult {
    this.log.push(command);
    let outcome: Outcome = { kind: "done" };
    const known = command.kind === "add-member" ? this.memberOf(command.nodeId) : null;
    for (const node of this.nodes.values()) {
      // Nodes that are down learn of it when they come back: they hold the same log.
      outcome = this.applyOn(node, command);
    }
    if (command.kind === "add-member" && known === null && this.memberOf(command.nodeId) !== null) {
      const isListed = this.groups.some(({ membership }) => {
        return allMembers(membership).includes(command.nodeId);
      });
      assert(!isListed, "no group lists the id of a node that begins anew (P-097)");
    }
    return { status: "applied", outcome, leaseMs: 0, term: 1, index: this.log.length };
  }

  private memberOf(nodeId: number): Member | null {
    const [node] = this.nodes.values();
    return node?.machine.meta.member(nodeId) ?? null;
  }

  private applyOn(node: MemberNode, command: Command): MetaOutcome {
    const outcomes: Outcome[] = [];
    const index = node.machine.appliedIndex + 1;
    const stamp = { n: 1, l: index, c: 0 };
    node.machine.apply({ index, term: 1, leaseMs: 0, stamp }, [command], outcomes);
    return outcomes[0] as MetaOutcome;
  }

  private change({ by, group, change, done }: QueuedChange): void {
    if (group.leader !== by || !group.hasQuorum(this.isUp)) return done("unknown");
    const before = group.membership;
    const result = changeMembership(before, change);
    if (!result.ok) return done("refused");
    assert(change.operations.length === 1, "one operation at a time");
    for (const id of allMembers(result.membership)) {
      if (!allMembers(before).includes(id)) group.caughtUp.set(id, this.nowMs);
    }
    group.membership = result.membership;
    group.changes++;
    assert(group.hasQuorum(this.isUp), "a live majority stays live (P-092)");
    assert(result.membership.voters.includes(group.leader), "no leader removes itself");
    done("applied");
  }
}

/** A cluster of `count` founders that all know each other. */
export function founded(count: number, partitions = 3): MemberWorld {
  const founders = Array.from({ length: count }, (_, at) => {
    return { nodeId: at + 1, endpoint: `n${at + 1}:1` };
  });
  const world = new MemberWorld(founders, partitions);
  if (!world.run(() => isKnown(world, count))) throw new Error("founded");
  return world;
}

/** All members and their data directories are known. */
function isKnown(world: MemberWorld, count: number): boolean {
  const members = world.node(1).machine.meta.members();
  return members.length === count && members.every((one) => one.storageId === `s${one.nodeId}`);
}

export function join(
  world: MemberWorld,
  via: number,
  nodeId: number,
  storageId: string,
): JoinAnswer {
  const answers: JoinAnswer[] = [];
  const request = {
    nodeId,
    storageId,
    endpoint: `n${nodeId}:1`,
    storage: "lmdb",
    program: PROGRAM,
  } as const;
  world.node(via).joining.asked(request, (answer) => void answers.push(answer));
  world.run(() => answers.length > 0);
  return answers[0] as JoinAnswer;
}

export function leave(world: MemberWorld, nodeId: number, drainMs = 60_000): LeaveOutcome | "open" {
  const outcomes: LeaveOutcome[] = [];
  const { nowMs } = world;
  world.node(nodeId).leaving.leave(nowMs + 90_000, drainMs, (end) => void outcomes.push(end));
  world.run(() => outcomes.length > 0);
  return outcomes[0] ?? "open";
}
