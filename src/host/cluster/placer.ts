/**
 * Runs the allocator where the meta partition is led: what nodes report and what is measured here
 * becomes the view of a pass, and what the pass orders becomes commands.
 *
 * Invariants: 1. Only the serving leader of meta orders; of an earlier leadership nothing counts,
 * neither rests nor plans (P-094): only how long this node has heard others goes on. 2. One command
 * at a time, of at most PLACEMENT_ITEMS_MAX orders; the next pass waits until it is decided. 3. A
 * turn runs one pass at most, and passes that changes ask for have a pause between them. 4. A
 * cluster in which nothing is placed, and nothing is to be, costs a comparison for each tick. 5.
 * Work that does not move is told (P-093).
 */
import type { ClusterRecord, Member, PartitionRecord } from "../../machine/commands/command.js";
import { type PartitionId, META_PARTITION, partitionId } from "../../base/ids.js";
import { NODE_REPORT_VALID_MS, PLACEMENT_ITEMS_MAX } from "../../base/limits.js";
import { drainLeft } from "../../control/drain.js";
import { isRebalancing, wishedReplicas } from "../../control/placement.js";
import { planPlacement } from "../../control/placement-plan.js";
import { MoveProgress } from "../../control/placement-progress.js";
import { PLACEMENT_REASONS } from "../../control/placement-reasons.js";
import {
  IDLE_PASSES_ALARM,
  PLACEMENT_CLASSES,
  type PlacementClass,
  type MemberView,
  type PlacedGroupView,
  type PlacementPlan,
  type PlacementView,
  type ReportedLoad,
  type Rests,
  idlePasses,
} from "../../control/placement-view.js";
import { deadMembers } from "../../control/silence.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { LoggerPort } from "../../ports.js";
import type { CoreStatus } from "../../raft/state/types.js";
import type { PartitionWait } from "../reports/node-report.js";
import type { HeardReport, Lead } from "../reports/node-reports.js";
import type { PlacementFacts } from "../requests/results.js";
import type { ProposeOnMeta } from "./meta-proposer.js";
import { isWithin } from "./reconcile.js";

/** One group of this node; a replica is one. */
export interface OwnGroup {
  readonly leadership: { readonly isServing: boolean; leaseNowMs(monotonicMs: number): number };
  readonly machine: { readonly dataBytes: number };
  readonly core: { readonly term: number; status(): CoreStatus };
}

export interface PlacerDeps {
  readonly nodeId: number;
  /** When the process began (ms of the monotonic clock). */
  readonly startedMs: number;
  /** As the node was told; null = as the factor of the cluster says. */
  readonly isEnabled: boolean | null;
  /** Pause between two timed passes (ms). */
  readonly everyMs: number;
  /** Silence after which the replicas of a member are replaced (ms); 0 = never. */
  readonly deadAfterMs: number;
  /** Since which level of the cluster replicas are moved. */
  readonly fromLevel: number;
  readonly logger: LoggerPort;
  metaReads(): MetaReads | null;
  find(partition: PartitionId): OwnGroup | null;
  isLinked(node: number): boolean;
  /** How long a node has not been linked (ms). */
  unlinkedMs(node: number, nowMs: number): number;
  reports(): {
    /** Reports of others that were taken in. */
    readonly taken: number;
    of(node: number): HeardReport | null;
    /** As the other node that leads a partition says; null when none does. */
    leadOf(partition: number): Lead | null;
  };
  readonly proposeOnMeta: ProposeOnMeta;
}

/** Pause between two passes that changes ask for (ms). */
const COALESCE_MS = 100;
/** A command is waited for so long (ms). */
const PATIENCE_MS = 5000;
/** Pause after a command that was not decided (ms). */
const RETRY_MS = 1000;

/** Pause between two lines about what a leaving node has left (ms). */
const TELL_DRAIN_MS = 10_000;

/** The records that passes look at, as of one version of them. */
interface Records {
  readonly cluster: ClusterRecord;
  readonly members: readonly Member[];
  readonly partitions: readonly PartitionRecord[];
  /** Something is placed, or is to be. */
  readonly isNeeded: boolean;
}

/** What is known in one leadership. */
class Reign {
  records: Records | null = null;
  rests: Rests = new Map();
  plan: PlacementPlan | null = null;
  readonly progress = new MoveProgress();
  reportsTaken = -1;
  isDirty = true;
  isPending = false;
  idle = 0;
  lastPassMs = -Infinity;
  nextToldMs = -Infinity;
  nextTimedMs: number;
  notBeforeMs = -Infinity;

  constructor(
    readonly term: number,
    readonly sinceMs: number,
    everyMs: number,
  ) {
    this.nextTimedMs = sinceMs + everyMs;
  }
}

export class Placer {
  private reign: Reign | null = null;
  /** Since when the links stand that stand now. */
  private readonly linkedSinceMs = new Map<number, number>();
  private readonly passes = { ordered: 0, waiting: 0, settled: 0 };
  private readonly accepted = new Map<PlacementClass, number>();
  private readonly refused = new Map<PlacementClass, number>();

  constructor(private readonly deps: PlacerDeps) {}

  /** The last pass of this leadership; null: there was none, or another node leads meta. */
  get plan(): PlacementPlan | null {
    return this.reign?.plan ?? null;
  }

  facts(nowMs: number): PlacementFacts {
    const { passes, accepted, refused, reign } = this;
    const moves = PLACEMENT_CLASSES.flatMap((kind) => [
      { class: kind, result: "accepted", count: accepted.get(kind) ?? 0 } as const,
      { class: kind, result: "refused", count: refused.get(kind) ?? 0 } as const,
    ]);
    const waiting = new Map<string, number>();
    for (const { reason } of reign?.plan?.waits ?? []) add(waiting, reason);
    const balance = reign?.plan?.balance ?? null;
    if (balance !== null) add(waiting, balance);
    const isIdle = (reign?.idle ?? 0) >= IDLE_PASSES_ALARM;
    const known = reign?.plan?.inFlight;
    const inFlight = new Map(PLACEMENT_CLASSES.map((kind) => [kind, known?.get(kind) ?? 0]));
    const oldestTransitionMs = reign?.progress.oldestMs(nowMs) ?? 0;
    return { passes: { ...passes }, moves, inFlight, oldestTransitionMs, waiting, isIdle };
  }

  /** What partitions wait for before a step of theirs is ordered, as the last pass told. */
  waits(): readonly PartitionWait[] {
    const waits: PartitionWait[] = [];
    for (const { partitionId: partition, reason } of this.reign?.plan?.waits ?? []) {
      // What is on its way, or is being listed, the leader of the group tells.
      if (reason === "replica-on-its-way" || reason === "not-listed") continue;
      waits.push({ partition, why: PLACEMENT_REASONS[reason] });
    }
    return waits;
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    const { reign } = this;
    const plan = reign?.plan ?? null;
    if (reign === null || plan === null || reign.records?.isNeeded !== true) return false;
    const { steps, waits, balance } = plan;
    return reign.isPending || reign.isDirty || steps.length + waits.length > 0 || balance !== null;
  }

  /**
   * Placed partitions as any node sees them, whoever leads meta: what is linked now is live. Null
   * while nothing is placed. `isEnabled`: replicas are moved, as far as is known here.
   */
  sketch(nowMs: number, isEnabled: boolean): PlacementView | null {
    const { deps } = this;
    const reign = new Reign(0, nowMs, deps.everyMs);
    const records = this.read(reign, nowMs);
    if (records?.partitions.some(({ mode }) => mode === "placed") !== true) return null;
    const view = this.view(reign, records, nowMs);
    return { ...view, isEnabled: isEnabled && records.isNeeded };
  }

  /** Once per tick, inside a turn. */
  tick(nowMs: number): void {
    const reign = this.reignNow(nowMs);
    if (reign === null) return;
    const records = this.read(reign, nowMs);
    if (records?.isNeeded !== true) return;
    const { taken } = this.deps.reports();
    if (taken !== reign.reportsTaken) reign.isDirty = true;
    reign.reportsTaken = taken;
    if (reign.isPending || nowMs < reign.notBeforeMs) return;
    const isTimed = nowMs >= reign.nextTimedMs;
    const isDue = reign.isDirty && nowMs - reign.lastPassMs >= COALESCE_MS;
    if (isTimed || isDue) this.pass(reign, records, isTimed, nowMs);
  }

  /** A node is heard from now on; also while another node leads meta. */
  linkUp(node: number, nowMs: number): void {
    this.linkedSinceMs.set(node, nowMs);
    if (this.reign !== null) this.reign.isDirty = true;
  }

  linkDown(node: number): void {
    this.linkedSinceMs.delete(node);
    if (this.reign !== null) this.reign.isDirty = true;
  }

  private reignNow(nowMs: number): Reign | null {
    const meta = this.deps.find(META_PARTITION);
    if (meta?.leadership.isServing !== true) this.reign = null;
    else if (this.reign?.term !== meta.core.term) {
      this.reign = new Reign(meta.core.term, nowMs, this.deps.everyMs);
    }
    return this.reign;
  }

  private read(reign: Reign, nowMs: number): Records | null {
    const reads = this.deps.metaReads();
    const cluster = reads?.cluster() ?? null;
    if (reads === null || cluster === null) return null;
    const known = reign.records;
    const isSame =
      known?.cluster.mapVersion === cluster.mapVersion &&
      known.cluster.membershipVersion === cluster.membershipVersion &&
      known.cluster.level === cluster.level;
    if (isSame) return known;
    const members = reads.members();
    const partitions = reads.partitions();
    const voters = members.filter(({ role }) => role === "voter").length;
    const isPermitted = cluster.level >= this.deps.fromLevel;
    const isNeeded = partitions.some((record) => {
      const wished = wishedReplicas(record, cluster.replicationFactor, voters);
      return record.mode === "placed" || wished > 0;
    });
    reign.records = { cluster, members, partitions, isNeeded: isPermitted && isNeeded };
    reign.isDirty = true;
    const isSameMap = known?.cluster.mapVersion === cluster.mapVersion;
    if (!isSameMap) reign.progress.note(partitions, known === null, nowMs);
    return reign.records;
  }

  private pass(reign: Reign, records: Records, isTimed: boolean, nowMs: number): void {
    const plan = planPlacement(this.view(reign, records, nowMs));
    const isWaiting = plan.waits.length > 0 || plan.balance !== null;
    this.passes[plan.steps.length > 0 ? "ordered" : isWaiting ? "waiting" : "settled"]++;
    reign.isDirty = false;
    reign.lastPassMs = nowMs;
    reign.rests = plan.rests;
    reign.plan = plan;
    if (isTimed) this.count(reign, plan, nowMs);
    if (plan.steps.length > 0) this.order(reign, plan, nowMs);
  }

  private count(reign: Reign, plan: PlacementPlan, nowMs: number): void {
    reign.nextTimedMs = nowMs + this.deps.everyMs;
    reign.idle = idlePasses(reign.idle, plan, reign.progress.takeMoved());
    this.tellDrain(reign, plan, nowMs);
    if (reign.idle !== IDLE_PASSES_ALARM) return;
    const first = plan.waits[0];
    const about = first === undefined ? {} : { partition: first.partitionId, why: first.reason };
    const fields = { waits: plan.waits.length, ...about };
    this.deps.logger.log("warn", "Replicas are not where they should be, and none moves.", fields);
  }

  /** Of a member that leaves: what is left, and what the first of that waits for. */
  private tellDrain(reign: Reign, plan: PlacementPlan, nowMs: number): void {
    const { members = [], partitions = [] } = reign.records ?? {};
    const leaver = members.find(({ role }) => role === "leaving");
    if (leaver === undefined || nowMs < reign.nextToldMs) return;
    reign.nextToldMs = nowMs + TELL_DRAIN_MS;
    const left = drainLeft(partitions, leaver.nodeId, plan);
    const [first] = left;
    if (first === undefined) return;
    const about = { partition: first.partitionId, why: first.reason ?? "its next step is ordered" };
    const fields = { member: leaver.nodeId, left: left.length, ...about };
    this.deps.logger.log("info", "Replicas of a leaving node move to others.", fields);
  }

  private order(reign: Reign, { steps }: PlacementPlan, nowMs: number): void {
    const ordered = steps.slice(0, PLACEMENT_ITEMS_MAX);
    const items = ordered.map(({ order }) => order);
    reign.isPending = true;
    const command = { kind: "change-replicas", items } as const;
    this.deps.proposeOnMeta(command, nowMs + PATIENCE_MS, (result) => {
      reign.isPending = false;
      if (result.status !== "applied") {
        reign.notBeforeMs = nowMs + RETRY_MS;
        reign.isDirty = true;
        return;
      }
      for (const [at, { status }] of result.items.entries()) {
        const kind = ordered[at]?.class;
        if (kind !== undefined) add(status === "done" ? this.accepted : this.refused, kind);
      }
    });
  }

  private view(reign: Reign, records: Records, nowMs: number): PlacementView {
    const { deps } = this;
    const reports = new Map<number, HeardReport>();
    for (const { nodeId } of records.members) {
      const heard = deps.reports().of(nodeId);
      if (heard !== null) reports.set(nodeId, heard);
    }
    const dead = deadMembers({
      self: deps.nodeId,
      members: records.members,
      deadAfterMs: deps.deadAfterMs,
      leadingForMs: nowMs - reign.sinceMs,
      silenceMs: (by, of) => this.silenceMs(reports, by, of, nowMs),
    });
    const meta = deps.find(META_PARTITION)?.core.status();
    const members = records.members.map(({ nodeId, role, evicted }): MemberView => {
      const peer = meta?.progress.find(({ id }) => id === nodeId);
      const isBehind = peer === undefined || !isWithin(peer, meta?.lastIndex ?? 0);
      return {
        ...{ nodeId, role, evicted, isDead: dead.has(nodeId) },
        isCaughtUp: nodeId === deps.nodeId || !isBehind,
        liveSinceMs: this.liveSinceMs(nodeId, nowMs),
        report: loadOf(reports.get(nodeId), nowMs),
      };
    });
    return {
      nowMs,
      isEnabled: isRebalancing(deps.isEnabled, records.cluster),
      isHeld: this.isHeld(nowMs),
      replicationFactor: records.cluster.replicationFactor,
      members,
      partitions: records.partitions,
      groups: this.groups(reign, records.partitions, reports, nowMs),
      rests: reign.rests,
    };
  }

  private isHeld(nowMs: number): boolean {
    const leaseMs = this.deps.find(META_PARTITION)?.leadership.leaseNowMs(nowMs) ?? 0;
    return this.deps.metaReads()?.isPlannerHeld(leaseMs) === true;
  }

  /** How long a node has been heard is this node's own measurement, whoever leads meta. */
  private liveSinceMs(node: number, nowMs: number): number {
    if (node === this.deps.nodeId) return this.deps.startedMs;
    if (!this.deps.isLinked(node)) return Infinity;
    return this.linkedSinceMs.get(node) ?? nowMs;
  }

  private silenceMs(
    reports: ReadonlyMap<number, HeardReport>,
    by: number,
    of: number,
    nowMs: number,
  ): number | null {
    if (by === this.deps.nodeId) return this.deps.unlinkedMs(of, nowMs);
    const heard = reports.get(by);
    if (heard === undefined) return null;
    return heard.report.unlinked.find(({ nodeId }) => nodeId === of)?.forMs ?? 0;
  }

  private groups(
    reign: Reign,
    partitions: readonly PartitionRecord[],
    reports: ReadonlyMap<number, HeardReport>,
    nowMs: number,
  ): ReadonlyMap<number, PlacedGroupView> {
    const groups = new Map<number, PlacedGroupView>();
    const told = this.deps.reports();
    for (const record of partitions) {
      if (record.mode !== "placed") continue;
      const { partitionId: id } = record;
      const own = this.deps.find(partitionId(id));
      const isOwn = own?.leadership.isServing === true;
      const lead = isOwn ? null : told.leadOf(id);
      const leader = isOwn ? this.deps.nodeId : (lead?.node ?? 0);
      const sizeBytes = isOwn ? own.machine.dataBytes : (lead?.sizeBytes ?? 0);
      const learner = record.replicas.find(({ role }) => role === "learner");
      if (learner === undefined) {
        groups.set(id, { leader, sizeBytes, hasSnapshot: false, advancedMs: nowMs });
        continue;
      }
      const arrival = reports.get(leader)?.report.arrivals.find(({ partition, nodeId }) => {
        return partition === id && nodeId === learner.nodeId;
      });
      const advancedMs = reign.progress.advanced(id, learner, arrival, nowMs);
      const hasSnapshot = arrival?.hasSnapshot === true;
      groups.set(id, { leader, sizeBytes, hasSnapshot, advancedMs });
    }
    return groups;
  }
}

function add<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function loadOf(heard: HeardReport | undefined, nowMs: number): ReportedLoad | null {
  if (heard === undefined || heard.ageMs > NODE_REPORT_VALID_MS) return null;
  const { snapshotsIn, snapshotsOut, storeBytes, storeMaxBytes, isFull, loopLagP99Ms } =
    heard.report;
  const receivedMs = nowMs - heard.ageMs;
  return {
    ...{ receivedMs, snapshotsIn, snapshotsOut },
    ...{ storeBytes, storeMaxBytes, isFull, loopLagP99Ms },
  };
}
