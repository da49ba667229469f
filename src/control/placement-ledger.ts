/**
 * What nodes have, are about to get, and may still take in one pass of the planner.
 *
 * Pure. Invariants: 1. What records say is on its way counts even where nobody has reported it, and
 * a planned step counts from the moment it is planned; a replica that has its snapshot counts on in
 * number, and no more in bytes. 2. A replica is ordered only to a node that
 * is no part of the partition, may hold replicas, has been live for `LIVE_MS`, has reported lately
 * and has room; who leaves, is evicted or dead gets none. 3. Of several obstacles the one is told
 * that the best node met: the least that has to change.
 */
import {
  ARRIVING_MAX,
  ARRIVING_PLACES,
  BALANCE_ARRIVING_MAX,
  BALANCE_ARRIVING_PLACES,
  BALANCE_MOVES_MAX,
  BALANCE_PLACES,
  FEEDING_MAX,
  FEEDING_PLACES,
  MOVES_MAX,
  NODE_REPORT_VALID_MS,
} from "../base/limits.js";
import type { PartitionRecord } from "../machine/commands/command.js";
import { isListed } from "../machine/meta/replica-list.js";
import type { PlacementReason } from "./placement-reasons.js";
import {
  restKey,
  type MemberView,
  type ReportedLoad,
  type PlacementClass,
  type PlacementView,
  type Rests,
} from "./placement-view.js";
import { SnapshotLoad } from "./snapshot-load.js";

/** A node gets replicas when it has been heard for so long without a break (ms). */
const LIVE_MS = 30_000;
/** Above this part of its bound a store counts as full. */
const FULL_PART = 0.8;
/** A node that is further behind takes no part in balance (ms). */
const LAG_MAX_MS = 50;
/** One that is so far behind has no more on their way than it has places, whatever their size. */
const BEHIND_MS = 200;

/** "dead": also evicted, and no member any more. "silent": not heard now, and not dead. */
export type Standing = "sound" | "silent" | "leaving" | "dead";

export interface NodeState {
  readonly view: MemberView;
  readonly standing: Standing;
  /** Of the last few seconds. */
  readonly report: ReportedLoad | null;
  /** Replicas that it keeps, with those that come. */
  replicas: number;
  /** Replicas on their way to it. */
  readonly arriving: SnapshotLoad;
  /** New replicas that it feeds with a snapshot. */
  readonly feeding: SnapshotLoad;
}

/** What stands between a node and a replica, from the furthest off to the nearest. */
const OBSTACLES = ["no-node", "nodes-not-ready", "nodes-full", "resting", "nodes-busy"] as const;
type Obstacle = (typeof OBSTACLES)[number];

function standingOf(view: MemberView, nowMs: number): Standing {
  if (view.isDead || view.evicted) return "dead";
  if (view.role === "leaving") return "leaving";
  return view.liveSinceMs <= nowMs ? "sound" : "silent";
}

function hasRoom({ isFull, storeBytes, storeMaxBytes }: ReportedLoad): boolean {
  return !isFull && (storeMaxBytes === 0 || storeBytes < FULL_PART * storeMaxBytes);
}

/** Each move costs turns, of whatever size it is: who cannot keep up with its own gets few. */
function isBehind({ report }: NodeState): boolean {
  return report !== null && report.loopLagP99Ms > BEHIND_MS;
}

/** Fewer replicas first, then fewer bytes, then the lower id. */
export function byLoad(a: NodeState, b: NodeState): number {
  const bytes = (a.report?.storeBytes ?? 0) - (b.report?.storeBytes ?? 0);
  return a.replicas - b.replicas || bytes || a.view.nodeId - b.view.nodeId;
}

export class PlacementLedger {
  private readonly states = new Map<number, NodeState>();
  /** Voters of the member list; who leaves is none. */
  readonly listVoters: number;
  /** Partitions with a replica on its way, planned ones among them. */
  moves = 0;
  /** Those of them for repair or drain. */
  urgentMoves = 0;
  /** Replicas on their way for balance. */
  private readonly balancing = new SnapshotLoad();
  /** Partitions that came with a replica on its way. */
  readonly inFlight = new Map<PlacementClass, number>();

  constructor(
    private readonly view: PlacementView,
    private readonly rests: Rests,
  ) {
    const { nowMs, members } = view;
    this.listVoters = members.filter(({ role }) => role === "voter").length;
    for (const member of members) {
      const { nodeId, report } = member;
      const isFresh = report !== null && nowMs - report.receivedMs <= NODE_REPORT_VALID_MS;
      const loads = { replicas: 0, arriving: new SnapshotLoad(), feeding: new SnapshotLoad() };
      const standing = standingOf(member, nowMs);
      const state = { view: member, standing, report: isFresh ? report : null };
      this.states.set(nodeId, { ...state, ...loads });
    }
    for (const record of view.partitions) this.count(record);
    for (const state of this.states.values()) {
      const { snapshotsIn = 0, snapshotsOut = 0 } = state.report ?? {};
      state.arriving.raiseTo(snapshotsIn);
      state.feeding.raiseTo(snapshotsOut);
    }
  }

  get nodes(): Iterable<NodeState> {
    return this.states.values();
  }

  state(nodeId: number): NodeState | undefined {
    return this.states.get(nodeId);
  }

  standing(nodeId: number): Standing {
    return this.states.get(nodeId)?.standing ?? "dead";
  }

  /** Heard now, whatever its role. */
  isLive(nodeId: number): boolean {
    const state = this.states.get(nodeId);
    return state !== undefined && !state.view.isDead && state.view.liveSinceMs <= this.view.nowMs;
  }

  /** The live node that leads the partition; 0 = none is known. */
  leader(partitionId: number): number {
    const leader = this.view.groups.get(partitionId)?.leader ?? 0;
    return this.isLive(leader) ? leader : 0;
  }

  /** Belongs to the nodes that replicas are spread over, also while it is silent. */
  mayHold({ standing, view }: NodeState): boolean {
    const stays = standing === "sound" || standing === "silent";
    return stays && (view.role === "voter" || view.isCaughtUp);
  }

  /** What keeps any replica at all from coming here; null = nothing. */
  obstacle(state: NodeState): Obstacle | null {
    if (!this.mayHold(state)) return "no-node";
    const isReady = this.view.nowMs - state.view.liveSinceMs >= LIVE_MS;
    if (!isReady || state.report === null) return "nodes-not-ready";
    return hasRoom(state.report) ? null : "nodes-full";
  }

  isResting(partitionId: number, nodeId: number): boolean {
    const rest = this.rests.get(restKey(partitionId, nodeId));
    return rest !== undefined && this.view.nowMs < rest.untilMs;
  }

  /** Keeps up with its work, as far as it told. */
  isPrompt({ report }: NodeState): boolean {
    return report !== null && report.loopLagP99Ms <= LAG_MAX_MS;
  }

  hasPlaceForBalance({ arriving }: NodeState): boolean {
    return arriving.isBelow(BALANCE_ARRIVING_PLACES, BALANCE_ARRIVING_MAX);
  }

  /** As many replicas are on their way for balance as may be. */
  get isBalancing(): boolean {
    return !this.balancing.isBelow(BALANCE_PLACES, BALANCE_MOVES_MAX);
  }

  /** The node that is to get a replica of the partition, or why none is. */
  target(record: PartitionRecord): NodeState | Obstacle {
    let best: NodeState | null = null;
    let nearest = 0;
    for (const state of this.states.values()) {
      const obstacle = this.obstacleFor(record, state);
      if (obstacle !== null) nearest = Math.max(nearest, OBSTACLES.indexOf(obstacle));
      else if (best === null || byLoad(state, best) < 0) best = state;
    }
    return best ?? OBSTACLES[nearest] ?? "no-node";
  }

  /** Whether some live node could take a replica of the partition, sooner or later. */
  hasTarget(record: PartitionRecord): boolean {
    return [...this.states.values()].some((state) => {
      if (isListed(record, state.view.nodeId) || !this.mayHold(state)) return false;
      if (state.standing === "silent") return false;
      return state.report === null || hasRoom(state.report);
    });
  }

  /** Why the group that `leader` leads cannot feed a new replica; null when it can. */
  feeding(leader: number): PlacementReason | null {
    const state = this.states.get(leader);
    if (state === undefined) return null;
    const most = isBehind(state) ? FEEDING_PLACES : FEEDING_MAX;
    return state.feeding.isBelow(FEEDING_PLACES, most) ? null : "leader-busy";
  }

  get isFull(): boolean {
    return this.moves >= MOVES_MAX;
  }

  /** A learner is ordered. `leaves`: who keeps its replica no longer; 0 = nobody. */
  plannedAdd(kind: PlacementClass, partitionId: number, comes: number, leaves: number): void {
    this.begin(kind);
    const sizeBytes = this.sizeOf(partitionId);
    const target = this.states.get(comes);
    if (target !== undefined) {
      target.replicas++;
      target.arriving.add(sizeBytes);
    }
    this.drop(leaves);
    if (kind === "balance") this.balancing.add(sizeBytes);
    this.states.get(this.leader(partitionId))?.feeding.add(sizeBytes);
  }

  plannedRemove(kind: PlacementClass, leaves: number): void {
    this.begin(kind);
    this.drop(leaves);
  }

  private obstacleFor(record: PartitionRecord, state: NodeState): Obstacle | null {
    const { nodeId } = state.view;
    if (isListed(record, nodeId)) return "no-node";
    const obstacle = this.obstacle(state);
    if (obstacle !== null) return obstacle;
    if (this.isResting(record.partitionId, nodeId)) return "resting";
    const most = isBehind(state) ? ARRIVING_PLACES : ARRIVING_MAX;
    return state.arriving.isBelow(ARRIVING_PLACES, most) ? null : "nodes-busy";
  }

  private begin(kind: PlacementClass): void {
    this.moves++;
    if (kind === "repair" || kind === "drain") this.urgentMoves++;
  }

  private drop(nodeId: number): void {
    const state = this.states.get(nodeId);
    if (state !== undefined) state.replicas--;
  }

  /** Counts what a record says is there and on its way. */
  private count({ partitionId, mode, state: life, replicas }: PartitionRecord): void {
    if (mode === "full" || life === "Removed") return;
    let kind: PlacementClass | null = null;
    for (const { nodeId, role, replaces } of replicas) {
      const node = this.states.get(nodeId);
      if (role !== "removing" && node !== undefined) node.replicas++;
      if (role === "voter") continue;
      kind = this.kindOfMove(role === "learner" ? replaces : nodeId, role === "learner");
      if (role === "learner") this.countArrival(kind, partitionId, node, replaces);
    }
    if (kind === null) return;
    this.begin(kind);
    this.inFlight.set(kind, (this.inFlight.get(kind) ?? 0) + 1);
  }

  private countArrival(
    kind: PlacementClass,
    partitionId: number,
    node: NodeState | undefined,
    replaces: number,
  ): void {
    const group = this.view.groups.get(partitionId);
    const hasSnapshot = group?.hasSnapshot === true;
    const sizeBytes = hasSnapshot ? 0 : this.sizeOf(partitionId);
    node?.arriving.add(sizeBytes);
    if (kind === "balance") this.balancing.add(sizeBytes);
    this.drop(replaces);
    // Who is not heard is not fed, and keeps nobody else waiting. Back again it waits its turn: how
    // many snapshots leave a node at a time, its sender sees to.
    const isFed = node !== undefined && this.isLive(node.view.nodeId) && !hasSnapshot;
    if (isFed) this.states.get(group?.leader ?? 0)?.feeding.add(sizeBytes);
  }

  /** As its leader told; without one it may be of any size. */
  private sizeOf(partitionId: number): number {
    const group = this.view.groups.get(partitionId);
    return group === undefined || group.leader === 0 ? Infinity : group.sizeBytes;
  }

  /** What a move is for, by who leaves: nobody remembers it. */
  private kindOfMove(leaves: number, isComing: boolean): PlacementClass {
    if (leaves === 0) return "grow";
    const standing = this.standing(leaves);
    if (standing === "dead") return "repair";
    if (standing === "leaving") return "drain";
    return isComing ? "balance" : "trim";
  }
}
