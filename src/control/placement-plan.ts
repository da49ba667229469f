/**
 * The allocator: which replicas are to come and go next, decided by the leader of meta from
 * committed records and what nodes report. One pass is one call; the group's leader carries each
 * order out (placed-plan.ts) and reports what was applied.
 *
 * Classes in the order in which a partition is looked at: finish (a replica on its way that will
 * not arrive is cancelled, one that cannot go is kept), place (from full mode to a list: its leader
 * does that), repair, drain, trim, grow, balance. Steps are given by class, urgency, id.
 *
 * Pure. Invariants: 1. One step for each partition in a pass, and none beside a replica on its way
 * (P-092). 2. No removal is ordered that would leave no live majority of the rest, and none below
 * the factor but for a member that leaves while nothing may be moved, or that was removed by force
 * and has no successor. 3. Who leaves, is evicted or dead gets no replica. 4. Balance lowers the
 * sum of the squares of the counts by two or more with each move: it ends, and at a difference of
 * one nothing moves (P-106). 5. What is to be done and is not has a reason in each pass (P-093). 6.
 * Without the rebalancer nothing begins, but replicas of a leaving member go where the rest can do
 * without them.
 */
import { VOTERS_MAX } from "../base/limits.js";
import type { PartitionRecord, ReplicaChange } from "../machine/commands/command.js";
import { wishedReplicas } from "./placement.js";
import { planBalance } from "./placement-balance.js";
import { byLoad, PlacementLedger, type Standing } from "./placement-ledger.js";
import type { PlacementReason } from "./placement-reasons.js";
import {
  PLACEMENT_CLASSES,
  keptRests,
  restAfter,
  restKey,
  type PlacementClass,
  type PlacementPlan,
  type PlacementStep,
  type PlacementView,
  type PlacementWait,
} from "./placement-view.js";

/** A replica on its way that has not got on for so long is given up (ms). */
const STALLED_MS = 600_000;

/** A partition with something to do and nothing on its way. */
interface Case {
  readonly record: PartitionRecord;
  readonly class: PlacementClass;
  /** The lower, the sooner. */
  readonly urgency: number;
  /** All classes that apply, `class` first. */
  readonly classes: readonly PlacementClass[];
  readonly voters: readonly number[];
  readonly live: number;
  readonly wished: number;
}

type Outcome = ReplicaChange | PlacementReason;

/** What waits while a backup is taken: nothing is lost meanwhile. */
const DEFERRED: readonly PlacementClass[] = ["trim", "grow"];

const RANKS: Readonly<Record<Standing, number>> = { dead: 0, leaving: 1, silent: 2, sound: 3 };

class Pass {
  readonly ledger: PlacementLedger;
  readonly steps: PlacementStep[] = [];
  readonly waits: PlacementWait[] = [];
  readonly rests: Map<number, { readonly untilMs: number; readonly lengthMs: number }>;
  private readonly cases: Case[] = [];
  /** Placed, whole, and as many as wished: what balance may move. */
  private readonly settled: PartitionRecord[] = [];

  constructor(private readonly view: PlacementView) {
    this.rests = keptRests(view);
    this.ledger = new PlacementLedger(view, this.rests);
  }

  run(): PlacementPlan {
    for (const record of this.view.partitions) this.look(record);
    this.cases.sort((a, b) => {
      const byClass = PLACEMENT_CLASSES.indexOf(a.class) - PLACEMENT_CLASSES.indexOf(b.class);
      return byClass || a.urgency - b.urgency || a.record.partitionId - b.record.partitionId;
    });
    for (const one of this.cases) this.attempt(one);
    const { steps, waits, rests, ledger, settled } = this;
    const { inFlight } = ledger;
    if (!this.view.isEnabled) return { steps, waits, balance: null, rests, inFlight };
    const isBusy = steps.some((step) => step.class !== "finish");
    const { moves, reason } = planBalance(this.view, ledger, settled, isBusy);
    if (this.view.isHeld && moves.length > 0) {
      return { steps, waits, balance: "held", rests, inFlight };
    }
    return { steps: [...steps, ...moves], waits, balance: reason, rests, inFlight };
  }

  private look(record: PartitionRecord): void {
    if (record.state === "Removed") return;
    const { replicationFactor } = this.view;
    const wished = wishedReplicas(record, replicationFactor, this.ledger.listVoters);
    if (record.mode === "full") {
      if (wished > 0) this.wait(record, "place", "not-listed");
      return;
    }
    let live = 0;
    let dead = 0;
    let leaving = 0;
    for (const { role, nodeId } of record.replicas) {
      if (role !== "voter") return this.finish(record, wished);
      if (this.ledger.isLive(nodeId)) live++;
      const standing = this.ledger.standing(nodeId);
      if (standing === "dead") dead++;
      if (standing === "leaving") leaving++;
    }
    const count = record.replicas.length;
    if (count === wished && dead + leaving === 0) {
      if (live === count) this.settled.push(record);
      return;
    }
    const classes: PlacementClass[] = [];
    if (dead > 0 && count - dead < wished) classes.push("repair");
    if (leaving > 0) classes.push("drain");
    if (count > wished) classes.push("trim");
    if (count < wished && dead === 0) classes.push("grow");
    const [first] = classes;
    if (first === undefined) return;
    const voters = record.replicas.map(({ nodeId }) => nodeId);
    // Spare voters: how many more may be lost before nothing is decided any more.
    const spare = live - Math.floor(count / 2) - 1;
    const urgency = this.urgency(record, first, spare);
    this.cases.push({ record, class: first, urgency, classes, voters, live, wished });
  }

  /** The smallest is drained first: most replicas are safe soonest. */
  private urgency(record: PartitionRecord, kind: PlacementClass, spare: number): number {
    if (kind === "repair") return spare;
    if (kind === "drain") return this.view.groups.get(record.partitionId)?.sizeBytes ?? 0;
    return kind === "grow" ? record.replicas.length : 0;
  }

  private wait(record: PartitionRecord, kind: PlacementClass, reason: PlacementReason): void {
    this.waits.push({ partitionId: record.partitionId, class: kind, reason });
  }

  private order(record: PartitionRecord, kind: PlacementClass, change: ReplicaChange): void {
    const { partitionId, generation } = record;
    this.steps.push({ class: kind, order: { partitionId, generation, change } });
  }

  /**
   * Nothing new beside a replica on its way; one that will not arrive goes again, and one that
   * cannot go stays.
   */
  private finish(record: PartitionRecord, wished: number): void {
    const { partitionId, replicas } = record;
    const voters = replicas.filter(({ role, nodeId }) => {
      return role === "voter" && this.ledger.standing(nodeId) !== "dead";
    }).length;
    for (const { role, nodeId, replaces } of replicas) {
      if (role === "removing" && this.isNeeded(record, nodeId)) {
        return this.order(record, "finish", { kind: "keep", nodeId });
      }
      if (role !== "learner") continue;
      const isLost = this.ledger.standing(nodeId) === "dead" || this.isStalled(partitionId);
      const isUseless = replaces === 0 && voters >= wished;
      if (!isLost && !isUseless && this.ledger.standing(nodeId) !== "leaving") continue;
      if (isLost) {
        const key = restKey(partitionId, nodeId);
        this.rests.set(key, restAfter(this.rests.get(key), this.view.nowMs));
      }
      return this.order(record, "finish", { kind: "cancel", nodeId });
    }
    this.wait(record, "finish", "replica-on-its-way");
  }

  /**
   * Voters died since it was ordered to go, and only with it the group decides anything: it stays
   * until they are replaced. The silent ones may come back; it waits for them.
   */
  private isNeeded({ partitionId, replicas }: PartitionRecord, nodeId: number): boolean {
    const { ledger } = this;
    const rest = replicas.filter(({ role }) => role === "voter");
    const live = rest.filter((voter) => ledger.isLive(voter.nodeId)).length;
    const hasDead = rest.some((voter) => ledger.standing(voter.nodeId) === "dead");
    if (!this.view.isEnabled || !hasDead || live * 2 > rest.length) return false;
    return ledger.leader(partitionId) !== 0 && ledger.isLive(nodeId) && rest.length < VOTERS_MAX;
  }

  private isStalled(partitionId: number): boolean {
    const { groups, nowMs } = this.view;
    return nowMs - (groups.get(partitionId)?.advancedMs ?? nowMs) >= STALLED_MS;
  }

  /** The first class of the case that has a step; else the reason of the first. */
  private attempt(one: Case): void {
    let reason: PlacementReason | null = null;
    for (const kind of one.classes) {
      const outcome = this.change(one, kind);
      if (typeof outcome !== "string") {
        this.note(one.record, kind, outcome);
        return this.order(one.record, kind, outcome);
      }
      reason ??= outcome;
    }
    if (reason !== null) this.wait(one.record, one.class, reason);
  }

  private note(
    { partitionId }: PartitionRecord,
    kind: PlacementClass,
    change: ReplicaChange,
  ): void {
    const { nodeId } = change;
    if (change.kind === "add") {
      this.ledger.plannedAdd(kind, partitionId, nodeId, change.replaces);
    } else this.ledger.plannedRemove(kind, nodeId);
  }

  private change(one: Case, kind: PlacementClass): Outcome {
    const goers = this.view.isEnabled ? one.voters : one.voters.filter((id) => this.mustGo(id));
    if (goers.length === 0) return "disabled";
    if (this.view.isHeld && DEFERRED.includes(kind)) return "held";
    if (one.live * 2 <= one.voters.length) return "no-majority";
    if (this.ledger.leader(one.record.partitionId) === 0) return "no-leader";
    if (this.ledger.isFull) return "cluster-busy";
    if (!this.view.isEnabled) return this.remove(one, goers);
    switch (kind) {
      case "repair":
        return this.repair(one);
      case "drain":
        return this.drain(one);
      case "trim":
        return this.remove(one, one.voters);
      default:
        return this.add(one, 0);
    }
  }

  /** Leaves the cluster, by itself or by force, or has left it. */
  private mustGo(nodeId: number): boolean {
    const member = this.ledger.state(nodeId)?.view;
    return member === undefined || member.evicted || member.role === "leaving";
  }

  private firstOf({ voters }: Case, standing: Standing): number {
    return voters.find((nodeId) => this.ledger.standing(nodeId) === standing) ?? 0;
  }

  /** What never comes back goes without a successor where no live node could be one (P-095). */
  private repair(one: Case): Outcome {
    const outcome = this.add(one, this.firstOf(one, "dead"));
    if (typeof outcome !== "string" || this.ledger.hasTarget(one.record)) return outcome;
    const gone = one.voters.filter((nodeId) => {
      return this.ledger.state(nodeId)?.view.evicted !== false;
    });
    return gone.length === 0 ? outcome : this.remove(one, gone);
  }

  private drain(one: Case): Outcome {
    const staying = one.voters.filter((nodeId) => {
      return !["dead", "leaving"].includes(this.ledger.standing(nodeId));
    });
    if (staying.length >= one.wished) return this.remove(one, one.voters);
    return this.add(one, this.firstOf(one, "leaving"));
  }

  private add({ record }: Case, replaces: number): Outcome {
    const leader = this.ledger.leader(record.partitionId);
    const obstacle = this.ledger.feeding(leader);
    if (obstacle !== null) return obstacle;
    const target = this.ledger.target(record);
    if (typeof target === "string") return target;
    return { kind: "add", nodeId: target.view.nodeId, replaces };
  }

  /** The first of `candidates` that the rest can do without: who costs the rest least goes first. */
  private remove(one: Case, candidates: readonly number[]): Outcome {
    const leader = this.ledger.leader(one.record.partitionId);
    const rank = (nodeId: number): number => RANKS[this.ledger.standing(nodeId)];
    const ranked = [...candidates].sort((a, b) => {
      const byLeader = Number(a === leader) - Number(b === leader);
      return rank(a) - rank(b) || byLeader || this.fuller(a, b);
    });
    const goes = ranked.find((nodeId) => {
      const rest = one.voters.filter((voter) => voter !== nodeId);
      const live = rest.filter((voter) => this.ledger.isLive(voter)).length;
      return live * 2 > rest.length;
    });
    return goes === undefined ? "majority-at-risk" : { kind: "remove", nodeId: goes };
  }

  private fuller(a: number, b: number): number {
    const [one, other] = [this.ledger.state(a), this.ledger.state(b)];
    return one === undefined || other === undefined ? b - a : byLoad(other, one);
  }
}

/** What is to be ordered now, and why the rest is not. */
export function planPlacement(view: PlacementView): PlacementPlan {
  return new Pass(view).run();
}
