/**
 * A cluster of which only placement moves: records decided by the real commands of meta, planned by the real
 * planners, carried out by groups whose configurations change by the arithmetic of the core. Messages are late, lost
 * and doubled; nodes know old records; leaders change. Throws when a rule of placement is broken.
 */
import {
  configIndex,
  placementGeneration,
  type PlacementGeneration,
} from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import { nextGroupChange } from "../../../src/control/group-plan.js";
import { type KnownLife, hostingStep } from "../../../src/control/hosting.js";
import { nextMemberChange } from "../../../src/control/membership.js";
import {
  type PlacedPlanFacts,
  dueReport,
  nextListingStep,
  nextPlacedChange,
} from "../../../src/control/placed-plan.js";
import { planPlacement } from "../../../src/control/placement-plan.js";
import { wishedReplicas } from "../../../src/control/placement.js";
import {
  type MemberView,
  type PlacedGroupView,
  type PlacementPlan,
  type PlacementStep,
  type PlacementView,
} from "../../../src/control/placement-view.js";
import { deadMembers } from "../../../src/control/silence.js";
import type { Command, Member, PartitionRecord } from "../../../src/machine/commands/command.js";
import { allMembers, changeMembership, isJoint } from "../../../src/raft/state/membership.js";
import type { ConfigChange, Membership } from "../../../src/raft/state/types.js";
import { newMember } from "../machine/members.js";
import { MetaBench, inShort } from "../machine/placement.js";

export const TICK_MS = 5000;
const DEAD_AFTER_MS = 300_000;
const LEAVE_JOINT: ConfigChange = { version: 2, transition: "auto", operations: [] };

/** What meta has committed at some time. */
interface MapState {
  readonly members: readonly Member[];
  readonly records: ReadonlyMap<number, PartitionRecord>;
}

interface WorldNode {
  isUp: boolean;
  sinceMs: number;
  /** Never comes back. */
  isGone: boolean;
  /** How much of the history of meta it has applied. */
  applied: number;
  readonly lives: Map<number, KnownLife>;
}

export class WorldGroup {
  leader = 0;
  index = 0;
  placedGeneration: PlacementGeneration = placementGeneration(0);
  /** Learners and how far they are: 1 = snapshot, 2 = caught up. */
  readonly progress = new Map<number, number>();
  /** Its new replicas get nowhere. */
  isSick = false;
  /** What the leader of meta has heard, late. */
  told: PlacedGroupView = { leader: 0, sizeBytes: 1, hasSnapshot: false, advancedMs: 0 };

  constructor(
    readonly partition: number,
    public membership: Membership,
  ) {}
}

export class PlacementWorld {
  readonly bench: MetaBench;
  readonly nodes = new Map<number, WorldNode>();
  readonly groups: WorldGroup[];
  nowMs = 10_000_000;
  isEnabled = true;
  /** Everything arrives, at once, and no leader changes but by need. */
  isCalm = false;
  readonly seen = {
    steps: 0,
    cancels: 0,
    keeps: 0,
    stale: 0,
    elections: 0,
    drops: 0,
    fences: 0,
    joint: 0,
  };
  lastPlan: PlacementPlan | null = null;
  private readonly history: MapState[] = [];
  private pending: { readonly atMs: number; readonly command: Command }[] = [];
  private rests: PlacementView["rests"] = new Map();
  private leadingSinceMs = 0;
  private readonly factor: number;

  constructor(
    private readonly prng: Prng,
    founders: number,
    factor: number,
    partitions: number,
  ) {
    this.factor = factor;
    this.bench = new MetaBench(founders, factor, partitions);
    for (let id = 1; id <= founders; id++) this.startNode(id);
    this.groups = this.bench.machine.meta.partitions().map(({ partitionId, founders: listed }) => {
      const voters = listed.length > 0 ? listed : [...this.nodes.keys()];
      const rest = { votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
      return new WorldGroup(partitionId, { voters, ...rest });
    });
    this.note();
  }

  startNode(id: number): void {
    const fresh = { isUp: true, sinceMs: 0, isGone: false, applied: 0, lives: new Map() };
    this.nodes.set(id, { ...fresh, applied: Math.max(0, this.history.length - 1) });
  }

  get now(): MapState {
    return this.history.at(-1) as MapState;
  }

  node(id: number): WorldNode {
    return this.nodes.get(id) as WorldNode;
  }

  isUp(id: number): boolean {
    return this.nodes.get(id)?.isUp === true;
  }

  setUp(id: number, isUp: boolean): void {
    const node = this.node(id);
    if (node.isUp === isUp) return;
    node.isUp = isUp;
    node.sinceMs = this.nowMs;
  }

  /** A command decided by meta now. */
  decide(command: Command): void {
    const { status, items } = this.bench.meta(command);
    for (const item of items) {
      if (item.status === "taken-in") throw new Error("a member that no record knew of");
      if (item.status === "stale") this.seen.stale++;
    }
    if (status === "done") this.note();
  }

  addMember(id: number): void {
    this.decide({ kind: "add-member", ...newMember(id, `h${id}:1`, `s${id}`) });
    this.startNode(id);
  }

  evict(id: number): void {
    this.bench.setMember(id, { role: "leaving", evicted: true });
    this.note();
  }

  hasMajority(membership: Membership): boolean {
    return [membership.voters, membership.votersOutgoing].every((voters) => {
      return voters.length === 0 || voters.filter((id) => this.isUp(id)).length * 2 > voters.length;
    });
  }

  /** A new leader of meta: it knows the records, and nothing else. */
  changeMetaLeader(): void {
    this.rests = new Map();
    this.leadingSinceMs = this.nowMs;
    for (const group of this.groups) {
      group.told = { ...group.told, leader: 0, hasSnapshot: false, advancedMs: this.nowMs };
    }
  }

  tick(): void {
    this.nowMs += TICK_MS;
    const due = this.pending.filter(({ atMs }) => atMs <= this.nowMs);
    this.pending = this.pending.filter(({ atMs }) => atMs > this.nowMs);
    for (const { command } of due) this.decide(command);
    for (const [id, node] of this.nodes) if (node.isUp) this.follow(id, node);
    for (const group of this.groups) this.runGroup(group);
    this.changeMembers();
    this.plan();
    this.check();
  }

  get isQuiet(): boolean {
    const { lastPlan } = this;
    if (lastPlan?.steps.length !== 0) return false;
    return lastPlan.waits.every(({ class: kind }) => kind !== "finish" && kind !== "place");
  }

  wished(record: PartitionRecord): number {
    const voters = this.now.members.filter(({ role }) => role === "voter").length;
    return wishedReplicas(record, this.factor, voters);
  }

  view(): PlacementView {
    const members = this.now.members.map((line): MemberView => this.memberView(line));
    return {
      ...{
        nowMs: this.nowMs,
        isEnabled: this.isEnabled,
        isHeld: false,
        replicationFactor: this.factor,
        members,
      },
      partitions: [...this.now.records.values()],
      groups: new Map(this.groups.map(({ partition, told }) => [partition, told])),
      rests: this.rests,
    };
  }

  private memberView({ nodeId, role, evicted }: Member): MemberView {
    const node = this.node(nodeId);
    const load = { storeBytes: 1, storeMaxBytes: 0, isFull: false, loopLagP99Ms: 1 };
    const report = { receivedMs: this.nowMs, snapshotsIn: 0, snapshotsOut: 0, ...load };
    return {
      ...{ nodeId, role, evicted, isCaughtUp: true, isDead: this.dead().has(nodeId) },
      liveSinceMs: node.isUp ? node.sinceMs : Infinity,
      report: node.isUp ? report : null,
    };
  }

  /** Members that are dead: meta is led by the first node that is up. */
  dead(): ReadonlySet<number> {
    const self = [...this.nodes].find(([, { isUp }]) => isUp)?.[0] ?? 0;
    return deadMembers({
      ...{ self, members: this.now.members, deadAfterMs: DEAD_AFTER_MS },
      leadingForMs: this.nowMs - this.leadingSinceMs,
      silenceMs: (by, of) => {
        const node = this.node(of);
        return this.isUp(by) ? (node.isUp ? 0 : this.nowMs - node.sinceMs) : null;
      },
    });
  }

  private note(): void {
    const meta = this.bench.machine.meta;
    const records = new Map(meta.partitions().map((record) => [record.partitionId, record]));
    this.history.push({ members: meta.members(), records });
  }

  private send(command: Command): void {
    if (this.isCalm) return void this.pending.push({ atMs: this.nowMs, command });
    const copies = this.prng.chance(1, 8) ? this.prng.below(3) : 1;
    for (let copy = 0; copy < copies; copy++) {
      this.pending.push({ atMs: this.nowMs + this.prng.below(4) * TICK_MS, command });
    }
  }

  /** A node applies some of what meta has committed, and does with its replicas what it says. */
  private follow(id: number, node: WorldNode): void {
    const last = this.history.length - 1;
    const steps = this.isCalm ? last : this.prng.below(4);
    const { applied } = node;
    node.applied = Math.min(last, applied + steps);
    for (let at = applied; at <= node.applied; at++) {
      for (const group of this.groups) this.host(id, node, group, this.history[at] as MapState);
    }
  }

  private host(id: number, node: WorldNode, group: WorldGroup, state: MapState): void {
    const known = node.lives.get(group.partition) ?? null;
    const step = hostingStep(state.records.get(group.partition) ?? null, id, known);
    if (step.kind === "come") {
      node.lives.set(group.partition, { incarnation: step.incarnation, isLive: true });
    }
    if (step.kind !== "drop" || known === null) return;
    this.seen.drops++;
    node.lives.set(group.partition, { ...known, isLive: false });
    if (!allMembers(group.membership).includes(id)) return;
    const listed = this.now.records.get(group.partition)?.replicas;
    const life = listed?.find(({ nodeId }) => nodeId === id)?.incarnation ?? 0;
    if (life <= known.incarnation)
      throw new Error(`node ${id} drops what counts: ${this.tell(group)}`);
  }

  private runGroup(group: WorldGroup): void {
    this.elect(group);
    this.advance(group);
    this.tellMeta(group);
    const { leader } = group;
    if (leader === 0) return;
    if (isJoint(group.membership)) return this.change(group, LEAVE_JOINT, 0);
    const state = this.history[this.node(leader).applied] as MapState;
    const record = state.records.get(group.partition);
    if (record === undefined) return;
    const facts: PlacedPlanFacts = {
      ...{ self: leader, record, membership: group.membership, isPaused: false },
      configIndex: configIndex(group.index),
      placedGeneration: group.placedGeneration,
      isLinked: (id) => this.isUp(id),
      isLive: (id) => this.isUp(id),
      isCaughtUp: (id) => this.isCaughtUp(group, id),
    };
    if (record.mode === "full") return this.stepInFullMode(group, facts, state);
    const report = dueReport(facts);
    if (report !== null) this.send({ kind: "report-replicas", items: [report] });
    const step = nextPlacedChange(facts);
    if (step.kind === "transfer") group.leader = step.to;
    if (step.kind === "change") this.change(group, step.change, record.generation);
  }

  private isCaughtUp(group: WorldGroup, id: number): boolean {
    return this.isUp(id) && (group.progress.get(id) === 2 || group.membership.voters.includes(id));
  }

  private stepInFullMode(group: WorldGroup, facts: PlacedPlanFacts, state: MapState): void {
    const voters = state.members.filter(({ role }) => role === "voter").length;
    const isWished = wishedReplicas(facts.record, this.factor, voters) > 0;
    const listing = nextListingStep(facts, isWished);
    if (listing?.kind === "fence") {
      this.seen.fences++;
      return this.change(group, listing.change, listing.generation);
    }
    if (listing?.kind === "place") this.send({ kind: "place-partition", items: [listing.item] });
    if (listing !== null) return;
    const ids = new Set(state.members.map(({ nodeId }) => nodeId));
    const former = this.bench.machine.meta.formerMembers().map(({ nodeId }) => nodeId);
    const removed = new Set(former.filter((id) => !ids.has(id)));
    const step = nextGroupChange({ ...facts, members: state.members, removed });
    if (step.kind === "transfer") group.leader = step.to;
    if (step.kind === "change") this.change(group, step.change, 0);
  }

  private elect(group: WorldGroup): void {
    const { membership } = group;
    const fits = membership.voters.filter((id) => this.isUp(id));
    const isLed = fits.includes(group.leader) && this.hasMajority(membership);
    if (isLed && (this.isCalm || !this.prng.chance(1, 20))) return;
    if (!this.hasMajority(membership)) return void (group.leader = 0);
    group.leader = fits[this.prng.below(fits.length)] ?? 0;
    this.seen.elections++;
  }

  /** Learners get on, if they have a replica of the life that the record gives them. */
  private advance(group: WorldGroup): void {
    if (group.leader === 0 || group.isSick) return;
    for (const id of group.membership.learners) {
      const life = this.nodes.get(id)?.lives.get(group.partition);
      const record = this.now.records.get(group.partition);
      const listed = record?.replicas.find(({ nodeId }) => nodeId === id)?.incarnation ?? 0;
      if (!this.isUp(id) || life?.isLive !== true || life.incarnation < listed) continue;
      const before = group.progress.get(id) ?? 0;
      if (before < 2 && this.prng.chance(2, 3)) group.progress.set(id, before + 1);
    }
  }

  private tellMeta(group: WorldGroup): void {
    if (!this.isCalm && this.prng.chance(1, 3)) return;
    const record = this.now.records.get(group.partition);
    const comes = record?.replicas.find(({ role }) => role === "learner")?.nodeId ?? 0;
    const hasSnapshot = (group.progress.get(comes) ?? 0) > 0;
    const isMoving = comes !== 0 && hasSnapshot === group.told.hasSnapshot;
    const advancedMs = isMoving ? group.told.advancedMs : this.nowMs;
    group.told = { leader: group.leader, sizeBytes: group.partition, hasSnapshot, advancedMs };
  }

  /** An entry of the group: it may be lost with its leader. */
  private change(group: WorldGroup, change: ConfigChange, generation: number): void {
    if (!this.hasMajority(group.membership) || (!this.isCalm && this.prng.chance(1, 10))) return;
    const before = group.membership;
    const result = changeMembership(before, change);
    if (!result.ok) throw new Error(`${result.reason}: ${this.tell(group)}`);
    const after = result.membership;
    if (!this.hasMajority(after)) throw new Error(`no majority is left: ${this.tell(group)}`);
    const isOwnEnd = !after.voters.includes(group.leader) && !isJoint(before);
    if (isOwnEnd) throw new Error(`a leader removes itself: ${this.tell(group)}`);
    if (isJoint(after)) this.seen.joint++;
    for (const id of result.removed) group.progress.delete(id);
    for (const id of allMembers(before)) {
      if (!allMembers(after).includes(id)) group.progress.delete(id);
    }
    group.membership = after;
    group.index++;
    const rests = Math.max(group.placedGeneration, generation);
    group.placedGeneration = placementGeneration(rests);
  }

  /** Learners of the list rise and leavers go when nothing counts on them. */
  private changeMembers(): void {
    const { members, records } = this.now;
    const isFull = (group: WorldGroup): boolean => records.get(group.partition)?.mode === "full";
    const rest = { votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
    const metaVoters = members.filter(
      ({ role, nodeId }) => role !== "leaving" && this.isUp(nodeId),
    );
    const meta = { ...rest, voters: metaVoters.map(({ nodeId }) => nodeId) };
    const groups = [meta, ...this.groups.filter(isFull).map(({ membership }) => membership)];
    const placedOn = [...records.values()].flatMap(({ replicas }) => replicas);
    const step = nextMemberChange(members, {
      groups: groups.map((membership) => ({ membership, isFresh: true })),
      placedOn: new Set(placedOn.map(({ nodeId }) => nodeId)),
    });
    if (step !== null) this.decide(step);
  }

  private plan(): void {
    const view = this.view();
    const plan = planPlacement(view);
    this.rests = plan.rests;
    this.lastPlan = plan;
    const partitions = plan.steps.map(({ order }) => order.partitionId);
    if (new Set(partitions).size < partitions.length) throw new Error("two steps for a partition");
    for (const step of plan.steps) {
      this.judge(step, view);
      this.send({ kind: "change-replicas", items: [step.order] });
    }
  }

  /** What no order may be. */
  private judge({ class: kind, order }: PlacementStep, { members }: PlacementView): void {
    const record = this.now.records.get(order.partitionId) as PartitionRecord;
    const { change } = order;
    const story = (): string =>
      `${kind} ${JSON.stringify(change)}: ${record.replicas.map(inShort).join()}`;
    this.seen.steps++;
    if (change.kind === "cancel") return void this.seen.cancels++;
    if (change.kind === "keep") {
      this.seen.keeps++;
      const voters = record.replicas.filter(({ role }) => role === "voter");
      if (voters.every(({ nodeId }) => this.isUp(nodeId))) throw new Error(`no need: ${story()}`);
      return;
    }
    if (record.replicas.some(({ role }) => role !== "voter"))
      throw new Error(`two on their way: ${story()}`);
    const about = members.find(({ nodeId }) => nodeId === change.nodeId);
    if (change.kind === "add") {
      const isFit = about?.role !== "leaving" && about?.evicted === false && !about.isDead;
      if (!isFit || !this.isUp(change.nodeId)) throw new Error(`not to this node: ${story()}`);
      if (!this.isEnabled) throw new Error(`it is off: ${story()}`);
      return;
    }
    const rest = record.replicas.filter(({ nodeId }) => nodeId !== change.nodeId);
    const isLeaver = about === undefined || about.role === "leaving";
    const couldTake = members.some(({ nodeId, role, evicted, isDead }) => {
      const isFree = record.replicas.every((replica) => replica.nodeId !== nodeId);
      return isFree && role !== "leaving" && !evicted && !isDead && this.isUp(nodeId);
    });
    // Who never comes back goes where nobody could come instead.
    const isLost = (about?.evicted ?? true) && !couldTake;
    const mayFall = isLost || (isLeaver && !this.isEnabled);
    if (rest.length < this.wished(record) && !mayFall) {
      throw new Error(`below the factor: ${story()}`);
    }
    const live = rest.filter(({ nodeId }) => this.isUp(nodeId)).length;
    if (live * 2 <= rest.length) throw new Error(`a majority is taken: ${story()}`);
    const dead = record.replicas.find(({ nodeId }) => this.dead().has(nodeId));
    if (dead !== undefined && !isLeaver && !this.dead().has(change.nodeId)) {
      throw new Error(`a live one goes before a dead one: ${story()}`);
    }
  }

  /** The law between record and configuration. */
  private check(): void {
    for (const group of this.groups) {
      const record = this.now.records.get(group.partition);
      if (record?.mode !== "placed") continue;
      const listed = new Set(record.replicas.map(({ nodeId }) => nodeId));
      if (allMembers(group.membership).some((id) => !listed.has(id))) {
        throw new Error(`a member is not listed: ${this.tell(group)}`);
      }
    }
  }

  tell(group: WorldGroup): string {
    const record = this.now.records.get(group.partition);
    const { voters, learners, votersOutgoing } = group.membership;
    const config = `${voters.join()}|${learners.join()}|${votersOutgoing.join()}`;
    const listed = record?.replicas.map(inShort).join(", ") ?? "";
    return `partition ${group.partition} [${config}] led by ${group.leader}, ${record?.generation}: ${listed}`;
  }
}
