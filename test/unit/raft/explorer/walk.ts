/**
 * Random walks: one event after another by weight, far deeper than any exhaustive exploration gets,
 * and at the end the proof of life: healed, the group elects a leader and commits.
 *
 * Invariants: 1. A walk is a function of its seed, steps and bias. 2. Only events of `World` change
 * the world, so that the list of performed events replays it.
 */
import { Prng } from "../../../../src/base/prng.js";
import { isMember, isVoter } from "../../../../src/raft/state/membership.js";
import { addCounts, noCounts, type Counts } from "./counts.js";
import { drawCuts } from "./cuts.js";
import type { Event } from "./events.js";
import { Violation } from "./history.js";
import type { Library, ModelNode } from "./node.js";
import { swarmOf, type Bias, type Swarm, type Wish } from "./swarm.js";
import { World } from "./world.js";

export interface Walked {
  readonly seed: number;
  readonly steps: number;
  readonly counts: Counts;
  readonly violation: string | null;
  /** The events up to the violation, if they were kept. */
  readonly events: readonly Event[];
}

/**
 * Rounds of delivering everything and one tick, in which a healed group must elect, commit and
 * catch up; and how many more for each entry, since the smallest windows let one through at a time.
 */
const recoveryRounds = 400;
const roundsPerEntry = 8;

class Walk {
  readonly world: World;
  readonly swarm: Swarm;
  readonly events: Event[] = [];
  private readonly prng: Prng;
  private readonly keep: boolean;
  /** By (from * 16 + to): whether the way is cut. */
  private readonly cuts = new Set<number>();

  constructor(library: Library, seed: number, bias: Bias, keep: boolean) {
    this.swarm = swarmOf(seed, bias);
    this.world = new World(library, this.swarm.settings);
    this.prng = new Prng(seed);
    this.keep = keep;
  }

  perform(kind: Event["kind"], node: number, at: number): boolean {
    const event: Event = { kind, node, at };
    if (this.keep) this.events.push(event);
    return this.world.perform(event);
  }

  /** Any node; rather one that is as asked for, if there is one. */
  private anyNode(preferred: (node: ModelNode) => boolean = () => true): ModelNode {
    const { nodes } = this.world;
    const from = this.prng.below(nodes.length);
    for (let at = from; at < from + nodes.length; at++) {
      const node = nodes[at % nodes.length] as ModelNode;
      if (preferred(node)) return node;
    }
    return nodes[from] as ModelNode;
  }

  /** Usually the leader, since most nodes only refuse what leaders do. */
  private likelyLeader(): ModelNode {
    const { nodes } = this.world;
    const leaders = nodes.filter(({ core }) => core.role === "leader");
    if (leaders.length === 0 || this.prng.chance(1, 8)) return this.anyNode();
    return leaders[this.prng.below(leaders.length)] as ModelNode;
  }

  step(): void {
    const { wishes, maxNetwork } = this.swarm;
    const { network } = this.world;
    if (network.length > maxNetwork) {
      this.perform("drop", 0, this.prng.below(network.length));
      return;
    }
    this.grant(wishes[this.prng.below(wishes.length)] as Wish);
  }

  private grant(wish: Wish): void {
    const { prng, world } = this;
    switch (wish) {
      case "deliver":
      case "duplicate":
      case "drop":
        this.carry(wish);
        return;
      case "tick":
        this.tick();
        return;
      case "complete":
        this.perform(wish, this.anyNode(({ writes }) => writes.length > 0).id, 0);
        return;
      case "apply":
        this.perform(wish, this.anyNode(({ batches }) => batches.length > 0).id, 0);
        return;
      case "flush":
      case "forget":
        this.perform(wish, this.anyNode().id, 0);
        return;
      case "propose":
        this.perform(wish, this.likelyLeader().id, 1 + prng.below(3));
        return;
      case "read":
        this.perform(wish, prng.chance(2, 3) ? this.likelyLeader().id : this.anyNode().id, 0);
        return;
      case "change":
        this.perform(wish, this.likelyLeader().id, prng.below(64));
        return;
      case "crash": {
        const node = this.anyNode();
        this.perform(wish, node.id, prng.below(node.writes.length + 1));
        return;
      }
      case "renew":
        this.perform(wish, this.anyNode(({ core }) => !isMember(core.membership, core.id)).id, 0);
        return;
      case "transfer":
      case "unreachable":
        this.perform(wish, this.likelyLeader().id, this.anyNode().id);
        return;
      case "compact":
        this.perform(wish, this.likelyLeader().id, prng.below(3));
        return;
      case "report":
        this.report();
        return;
      case "campaign":
        this.perform(wish, this.anyNode(({ core }) => core.role !== "leader").id, 0);
        return;
      case "cut":
        drawCuts(prng, world.ids, this.likelyLeader().id, this.cuts);
        return;
      case "heal":
        this.cuts.clear();
        return;
      case "expire":
        for (let at = world.network.length - 1; at >= 0; at--) {
          if (prng.chance(1, 2)) this.perform("drop", 0, at);
        }
        return;
    }
  }

  private carry(wish: "deliver" | "duplicate" | "drop"): void {
    const { network } = this.world;
    if (network.length === 0) {
      this.tick();
      return;
    }
    const at = this.choose(network.length);
    const message = network[at]?.message;
    if (message === undefined) return;
    const cut = this.cuts.size > 0 && this.cuts.has(message.from * 16 + message.to);
    this.perform(cut ? "drop" : wish, cut || wish === "drop" ? 0 : message.to, at);
  }

  /** The position of the message that comes next. What is delivered late is what makes trouble. */
  private choose(count: number): number {
    const { prng } = this;
    const { order } = this.swarm;
    if (order === "any" || prng.chance(1, 20)) return prng.below(count);
    const near = prng.below(Math.min(3, count));
    return order === "oldest" ? near : count - 1 - near;
  }

  private tick(): void {
    if (this.swarm.evenTicks) {
      for (const id of this.world.ids) this.perform("tick", id, 1);
      return;
    }
    const { id } = this.anyNode(({ core }) => core.term > 0);
    this.perform("tick", id, this.prng.chance(1, 6) ? 4 : 1);
  }

  private report(): void {
    const [report] = this.world.reports;
    if (report === undefined) return;
    // A report of success may be lost; one of failure comes in the end.
    this.perform("report", report.node, report.ok ? report.about : -report.about);
  }

  /** The members, as of the newest applied state. */
  private get members(): ModelNode[] {
    const { nodes } = this.world;
    const newest = nodes.reduce((best, node) => {
      return node.applied.index > best.applied.index ? node : best;
    });
    return nodes.filter(({ id }) => isMember(newest.applied.membership, id));
  }

  /** The members and everybody whose vote one of them still asks for; others are switched off. */
  private get needed(): number[] {
    const { members } = this;
    return this.world.ids.filter((id) => {
      return members.some((node) => node.id === id || isVoter(node.core.membership, id));
    });
  }

  /** Delivers what is on its way, reports, writes and applies. Whether there was anything. */
  private carryOn(needed: readonly number[]): boolean {
    const { world } = this;
    let busy = world.network.length > 0;
    for (let left = world.network.length; left > 0; left--) {
      const to = world.network[0]?.message.to ?? 0;
      this.perform(needed.includes(to) ? "deliver" : "drop", needed.includes(to) ? to : 0, 0);
    }
    while (world.reports.length > 0) this.report();
    for (const { id, writes, batches } of world.nodes) {
      if (!needed.includes(id)) continue;
      for (; writes.length > 0 && this.perform("complete", id, 0); busy = true);
      for (; batches.length > 0 && this.perform("apply", id, 0); busy = true);
    }
    return busy;
  }

  /** What happens between two ticks, with messages that travel quickly, and a tick. */
  private round(): void {
    const { needed } = this;
    for (let trips = 0; trips < 6 && this.carryOn(needed); trips++);
    for (const id of needed) this.perform("tick", id, 1);
  }

  /**
   * Whether the group must come to life again once everything works. After membership changes that
   * holds with pre-votes only: without them, a voter that missed a change may run ahead in term
   * with elections that it cannot win, and never be caught up with by those who could.
   */
  private get mustRecover(): boolean {
    const { gentleChanges, core } = this.swarm.settings;
    return this.world.counts.changesApplied === 0 || (gentleChanges && core.preVote === true);
  }

  /** Everything works from now on: the group must elect a leader, commit, and catch up. */
  recover(): void {
    if (!this.mustRecover) return;
    this.cuts.clear();
    this.world.counts.recoveries++;
    let proposed = 0;
    let term = 0;
    const bound = recoveryRounds + roundsPerEntry * this.world.history.truth.length;
    for (let rounds = 0; rounds < bound; rounds++) {
      this.round();
      const { members } = this;
      const leader = members.find(({ core }) => core.role === "leader");
      if (leader === undefined) continue;
      if (term !== leader.core.term) {
        // A new leader: whatever the one before had proposed may be gone.
        if (!this.perform("propose", leader.id, 1)) continue;
        proposed = leader.core.lastIndex;
        term = leader.core.term;
      } else if (members.every(({ applied }) => applied.index >= proposed)) return;
    }
    const state = this.world.nodes.map(({ core }) => JSON.stringify(core.status())).join("\n");
    throw new Violation(`healed, the group does not come to life again (${proposed}):\n${state}`);
  }
}

/** Walks `steps` steps from the seed, then lets the group recover. */
export function walk(
  library: Library,
  seed: number,
  steps: number,
  bias: Bias = {},
  keep = false,
): Walked {
  const walking = new Walk(library, seed, bias, keep);
  const { world, events } = walking;
  let violation: string | null = null;
  try {
    while (world.counts.steps < steps) walking.step();
    walking.recover();
  } catch (error) {
    violation = error instanceof Error ? error.message : String(error);
  }
  return { seed, steps: world.counts.steps, counts: world.counts, violation, events };
}

/** Walk after walk until `steps` are done or something is found. */
export function walks(
  library: Library,
  firstSeed: number,
  steps: number,
  stepsEach: number,
  bias: Bias = {},
): { readonly total: Counts; readonly found: Walked | null } {
  const total = noCounts();
  for (let seed = firstSeed; total.steps < steps; seed++) {
    const walked = walk(library, seed, Math.min(stepsEach, steps - total.steps), bias);
    addCounts(total, walked.counts);
    if (walked.violation !== null) return { total, found: walked };
  }
  return { total, found: null };
}
