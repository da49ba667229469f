/**
 * Brings the membership of the groups that this node leads in line with the member list, one change
 * per group at a time.
 *
 * Looks at each tick at the groups that were run and those that are not settled; measures how far
 * learners are; carries out what the planner says. Invariants: 1. Steps come from the planner
 * alone, from facts of now: nothing is remembered between two steps but measurements of this
 * leadership (P-094). 2. A learner counts as caught up after `CAUGHT_UP_ELECTIONS` without a break
 * within `LAG_ENTRIES` of the end (P-091). 3. A sleeping group with something to do is woken. 4.
 * What has to wait for long is told (P-093).
 */
import { type GroupPlanFacts, type GroupStep, nextGroupChange } from "../../control/membership.js";
import {
  type ConfigIndex,
  type MapVersion,
  NO_PLACEMENT,
  type PartitionId,
  type PlacementGeneration,
} from "../../base/ids.js";
import { type ListingStep, nextListingStep, nextPlacedChange } from "../../control/placed-plan.js";
import { wishedReplicas } from "../../control/placement.js";
import type { PartitionRecord } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { LoggerPort } from "../../ports.js";
import type { CoreStatus, PeerProgress } from "../../raft/state/types.js";
import type { ConfigPayload } from "../replication/config-entries.js";
import type { MembershipResult } from "../group/group-members.js";
import type { MoveOrder } from "../group/move.js";
import type { ProposeOnMeta } from "./meta-proposer.js";

/** One group, as reconciliation sees it; a replica is one. */
export interface ReconcileGroup {
  readonly partition: PartitionId;
  readonly core: {
    readonly term: number;
    status(): CoreStatus;
  };
  readonly leadership: { readonly isServing: boolean };
  readonly machine: {
    readonly membershipIndex: ConfigIndex;
    readonly placedGeneration: PlacementGeneration;
    readonly ownership: { readonly hasFrozen: boolean };
  };
  /** Entries are held back for a backup. */
  readonly pauses: { readonly cut: { isOn(nowMs: number): boolean } };
  moveTo(order: MoveOrder): boolean;
  readonly members: {
    /** No restart and no death of a minority makes its majority forget the last change. */
    readonly isEstablished: boolean;
    establish(nowMs: number): void;
    propose(ordered: ConfigPayload, nowMs: number, done: (result: MembershipResult) => void): void;
  };
}

export interface ReconcileDeps {
  readonly nodeId: number;
  readonly electionMs: number;
  readonly logger: LoggerPort;
  /** The meta partition as applied here; null before there is one. */
  metaReads(): MetaReads | null;
  groups(): readonly ReconcileGroup[];
  /** Those of them that were run since the last tick: nothing of the others has changed. */
  activeGroups(): Iterable<ReconcileGroup>;
  isLinked(node: number): boolean;
  /** Since which level of the cluster replicas are listed. */
  readonly placedFromLevel: number;
  /** Has a command decided by whoever leads the meta partition. */
  readonly proposeOnMeta: ProposeOnMeta;
  /** Ends a sleep of the group and gives it a turn. */
  wake(partition: PartitionId): void;
}

const NONE_PLACED: ReadonlyMap<number, PartitionRecord> = new Map();
/** A learner within so many entries of the end is as good as caught up. */
const LAG_ENTRIES = 64;
/** So long without a break, in election timeouts. */
const CAUGHT_UP_ELECTIONS = 1;
/** What waits longer is told. */
const PATIENCE_MS = 30_000;
/** Time for a transfer of leadership before it is ordered again. */
const TRANSFER_MS = 3000;
/** Pause between two tries to have the replicas of a partition listed. */
const PLACE_AGAIN_MS = 1000;

interface Measured {
  caughtUpSinceMs: number;
  heardMs: number;
}

/** What is known of one group in one leadership. */
interface Watch {
  readonly term: number;
  readonly peers: Map<number, Measured>;
  /**
   * Version of the member list, or generation of the record of a placed group, and membership, for
   * which nothing is left to do; -1 before.
   */
  settledVersion: number;
  settledAt: number;
  pending: boolean;
  notBeforeMs: number;
  waitingSinceMs: number;
  waitingFor: string;
}

interface MembersView {
  readonly version: number;
  map: MapVersion;
  level: number;
  readonly facts: Pick<GroupPlanFacts, "members" | "removed">;
  /** The records of partitions that are not on every node. */
  readonly placed: ReadonlyMap<number, PartitionRecord>;
  /** Those on every node that are to be listed: they have a factor. */
  readonly listable: ReadonlyMap<number, PartitionRecord>;
}

function byId(records: readonly PartitionRecord[]): ReadonlyMap<number, PartitionRecord> {
  return new Map(records.map((record) => [record.partitionId, record]));
}

export class Reconcile {
  private readonly watches = new Map<PartitionId, Watch>();
  private view: MembersView | null = null;
  /** Groups of which it is not known that nothing is left to do, by partition. */
  private readonly open = new Map<PartitionId, ReconcileGroup>();
  /** Changes that were applied. */
  changes = 0;

  constructor(private readonly deps: ReconcileDeps) {}

  /** Once per tick, inside a turn. */
  check(nowMs: number): void {
    const known = this.view;
    const view = this.readMembers();
    if (view === null) return;
    const news = view === known ? this.deps.activeGroups() : this.deps.groups();
    for (const group of news) this.open.set(group.partition, group);
    for (const group of this.open.values()) {
      if (group.leadership.isServing && !this.look(group, view, nowMs)) continue;
      this.open.delete(group.partition);
      if (!group.leadership.isServing) this.watches.delete(group.partition);
    }
  }

  /** Groups are not as the member list wishes, as far as is known. */
  get hasWork(): boolean {
    return this.open.size > 0;
  }

  /** The records of partitions that are not on every node; another map after each change. */
  get placed(): ReadonlyMap<number, PartitionRecord> {
    return this.view?.placed ?? NONE_PLACED;
  }

  /** The groups led here that are not as the member list, or their record, wishes, and why. */
  waits(): readonly { readonly partition: PartitionId; readonly why: string }[] {
    const waits = [...this.watches].map(([partition, { waitingFor: why }]) => ({ partition, why }));
    return waits.filter(({ why }) => why !== "");
  }

  /** Why a group that this node leads is not as the member list wishes; null when it is. */
  waitingFor(partition: PartitionId): string | null {
    const watch = this.watches.get(partition);
    return watch === undefined || watch.waitingFor === "" ? null : watch.waitingFor;
  }

  /** The group left this node. */
  removed({ partition }: { readonly partition: PartitionId }): void {
    this.watches.delete(partition);
    this.open.delete(partition);
  }

  private readMembers(): MembersView | null {
    const reads = this.deps.metaReads();
    const cluster = reads?.cluster() ?? null;
    if (reads === null || cluster === null) return null;
    const { membershipVersion: version, mapVersion: map, level } = cluster;
    const known = this.view;
    if (known?.version === version && known.map === map && known.level === level) return known;
    const members = reads.members();
    const voters = members.filter(({ role }) => role === "voter").length;
    const records = reads.partitions().filter(({ state }) => state !== "Removed");
    const placed = byId(records.filter(({ mode }) => mode === "placed"));
    const isPermitted = level >= this.deps.placedFromLevel;
    const isWished = (record: PartitionRecord): boolean =>
      isPermitted &&
      record.mode === "full" &&
      wishedReplicas(record, cluster.replicationFactor, voters) > 0;
    const listable = byId(records.filter(isWished));
    const isPlain = placed.size + listable.size === 0;
    const wasPlain = known === null || known.placed.size + known.listable.size === 0;
    if (known?.version === version && isPlain && wasPlain) {
      known.map = map;
      known.level = level;
      return known;
    }
    const listed = new Set(members.map((member) => member.nodeId));
    const former = reads.formerMembers().map((member) => member.nodeId);
    const removed = new Set(former.filter((node) => !listed.has(node)));
    this.view = { version, map, level, facts: { members, removed }, placed, listable };
    return this.view;
  }

  private watchOf(group: ReconcileGroup): Watch {
    const known = this.watches.get(group.partition);
    const { term } = group.core;
    if (known?.term === term) return known;
    const watch: Watch = {
      term,
      peers: new Map(),
      settledVersion: -1,
      settledAt: -1,
      pending: false,
      notBeforeMs: 0,
      waitingSinceMs: 0,
      waitingFor: "",
    };
    this.watches.set(group.partition, watch);
    return watch;
  }

  /** Returns whether nothing is left to do in this group. */
  private look(group: ReconcileGroup, view: MembersView, nowMs: number): boolean {
    const watch = this.watchOf(group);
    const { membershipIndex } = group.machine;
    const record = view.placed.get(group.partition) ?? null;
    const version = record?.generation ?? view.version;
    const full = record === null ? this.fullRecord(group, view) : null;
    const isSeen = watch.settledVersion === version && watch.settledAt === membershipIndex;
    if (isSeen && full === null) return true;
    if (watch.pending) return false;
    const status = group.core.status();
    this.measure(watch, status, nowMs);
    if (nowMs < watch.notBeforeMs) return false;
    const { placedGeneration } = group.machine;
    const facts = {
      self: this.deps.nodeId,
      membership: status.membership,
      isLive: (node: number) => this.isLive(watch, node, nowMs),
      isCaughtUp: (node: number) => this.isCaughtUp(watch, node, nowMs),
      ...{ placedGeneration, configIndex: membershipIndex },
      // A change of members would make either longer; neither lasts.
      isPaused: group.pauses.cut.isOn(nowMs) || group.machine.ownership.hasFrozen,
      isLinked: (node: number) => this.deps.isLinked(node),
    };
    if (full !== null) {
      const listing = nextListingStep(
        { ...facts, record: full },
        view.listable.has(group.partition),
      );
      if (listing !== null) return this.list(group, watch, listing, nowMs);
    }
    const step =
      record === null
        ? nextGroupChange({ ...facts, ...view.facts })
        : nextPlacedChange({ ...facts, record });
    if (step.kind === "settled") {
      watch.settledVersion = version;
      watch.settledAt = membershipIndex;
      watch.waitingFor = "";
      return true;
    }
    // A sleeping group hears nothing of its members: it is woken, and measured from then on.
    this.deps.wake(group.partition);
    this.carryOut(group, watch, step, record?.generation ?? NO_PLACEMENT, nowMs);
    return false;
  }

  /**
   * The record of a partition on every node that is to be listed, or was about to be: by a leader
   * that knew more than this one, as far as the configuration tells.
   */
  private fullRecord(
    { partition, machine }: ReconcileGroup,
    view: MembersView,
  ): PartitionRecord | null {
    const listable = view.listable.get(partition) ?? null;
    if (listable !== null || machine.placedGeneration === NO_PLACEMENT) return listable;
    return this.deps.metaReads()?.partition(partition) ?? null;
  }

  /** One step on the way from every node to a list; false: the group stays under observation. */
  private list(group: ReconcileGroup, watch: Watch, step: ListingStep, nowMs: number): false {
    this.deps.wake(group.partition);
    if (step.kind === "wait") {
      this.wait(group.partition, watch, step.why, nowMs);
      return false;
    }
    if (step.kind === "fence") {
      const why = "its replicas are about to be listed";
      const change = { kind: "change", change: step.change, why } as const;
      this.carryOut(group, watch, change, step.generation, nowMs);
      return false;
    }
    if (!group.members.isEstablished) {
      group.members.establish(nowMs);
      return false;
    }
    watch.waitingFor = "its replicas are being listed";
    watch.waitingSinceMs = nowMs;
    watch.notBeforeMs = nowMs + PLACE_AGAIN_MS;
    const command = { kind: "place-partition", items: [step.item] } as const;
    // Whatever the end is: only the record that is applied here says that it is listed.
    this.deps.proposeOnMeta(command, watch.notBeforeMs, () => undefined);
    return false;
  }

  private measure(watch: Watch, status: CoreStatus, nowMs: number): void {
    for (const peer of status.progress) {
      if (peer.id === this.deps.nodeId) continue;
      const known = watch.peers.get(peer.id) ?? { caughtUpSinceMs: Infinity, heardMs: -Infinity };
      watch.peers.set(peer.id, known);
      if (peer.active) known.heardMs = nowMs;
      const isCaughtUp = isWithin(peer, status.lastIndex) && this.isLive(watch, peer.id, nowMs);
      known.caughtUpSinceMs = isCaughtUp ? Math.min(known.caughtUpSinceMs, nowMs) : Infinity;
    }
  }

  private isLive(watch: Watch, node: number, nowMs: number): boolean {
    if (node === this.deps.nodeId) return true;
    if (!this.deps.isLinked(node)) return false;
    const heardMs = watch.peers.get(node)?.heardMs ?? -Infinity;
    return nowMs - heardMs <= 2 * this.deps.electionMs;
  }

  private isCaughtUp(watch: Watch, node: number, nowMs: number): boolean {
    const sinceMs = watch.peers.get(node)?.caughtUpSinceMs ?? Infinity;
    return nowMs - sinceMs >= CAUGHT_UP_ELECTIONS * this.deps.electionMs;
  }

  /** `generation`: of the record that asks for the step. */
  private carryOut(
    group: ReconcileGroup,
    watch: Watch,
    step: GroupStep,
    generation: PlacementGeneration,
    nowMs: number,
  ): void {
    const { partition } = group;
    if (step.kind === "wait" || step.kind === "settled") {
      return this.wait(partition, watch, step.kind === "wait" ? step.why : "", nowMs);
    }
    watch.waitingFor = step.why;
    watch.waitingSinceMs = nowMs;
    const fields = { partition, why: step.why };
    if (step.kind === "transfer") {
      this.deps.logger.log("info", "A partition is handed over.", { ...fields, to: step.to });
      watch.notBeforeMs = nowMs + TRANSFER_MS;
      group.moveTo({ to: step.to, mustCarry: false, reason: "replicas" });
      return;
    }
    this.deps.logger.log("info", "The members of a partition change.", fields);
    watch.pending = true;
    const ordered = { change: step.change, generation };
    group.members.propose(ordered, nowMs, (result) => {
      watch.pending = false;
      if (result === "applied") this.changes++;
      else watch.notBeforeMs = nowMs + this.deps.electionMs;
    });
    this.deps.wake(partition);
  }

  private wait(partition: PartitionId, watch: Watch, why: string, nowMs: number): void {
    if (watch.waitingFor !== why) {
      watch.waitingFor = why;
      watch.waitingSinceMs = nowMs;
      return;
    }
    if (nowMs - watch.waitingSinceMs < PATIENCE_MS) return;
    watch.waitingSinceMs = nowMs;
    this.deps.logger.log("warn", "The members of a partition wait.", { partition, why });
  }
}

/** The peer is as good as caught up with a log that ends at `lastIndex`. */
export function isWithin(peer: PeerProgress, lastIndex: number): boolean {
  // A peer that never answered matches nothing, also in a group without entries (P-091).
  return peer.state === "replicate" && peer.match + LAG_ENTRIES >= lastIndex;
}
