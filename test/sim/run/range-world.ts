/**
 * The part of a run that is about key ranges: whoever changes them, what is looked at while they move,
 * and what their peace must come to.
 *
 * Invariants: 1. Looking changes nothing. 2. A time counts as clear only if nothing is wrong with any
 * machine or wire. 3. In peace every move ends; then what nodes do by themselves comes to rest.
 */
import { META_PARTITION } from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import type { Group } from "../../../src/host/group/group.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { SeenPartition } from "../../judge/checkers/ranges/ids-once.js";
import type { RangePeace, SeenReplica } from "../../judge/checkers/ranges/peace-of-ranges.js";
import { leftOver, unended } from "../../judge/checkers/ranges/peace-of-ranges.js";
import type { Faults } from "../faults/faults.js";
import { Ranger } from "../members/ranger.js";
import type { RangePlan } from "../members/rangeplan.js";
import { RangeSwing } from "../members/rangeswing.js";
import type { SimNetwork } from "../net/network.js";
import type { Plan } from "../plan/plan.js";
import type { RangeChecks } from "../world/range-checks.js";
import { strangeKeys } from "../world/range-rows.js";
import { RangeCounts } from "../world/range-counts.js";
import { RangeTap } from "../world/range-tap.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { isKept, newestMeta } from "./placement-peace.js";

/** Between two looks (ms). */
const LOOK_MS = 50;
/** The longest lease of the workload, with what a move may add to it (ms). */
const LEASES_END_MS = 66_000;
/** Intervals in which nothing more may begin. */
const QUIET_INTERVALS = 8;

export class RangeWorld {
  readonly ranger: Ranger;
  readonly tap: RangeTap;
  private readonly counts: RangeCounts;
  private readonly swing: RangeSwing | null;
  private readonly aiming: Prng;
  /** The newest term of each group that any node knew. */
  private readonly terms = new Map<number, number>();
  private isPeace = false;
  private isOver = false;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly ranges: RangePlan,
    private readonly servers: readonly Server[],
    private readonly network: SimNetwork,
    private readonly faults: Faults,
    history: HistoryRecorder,
    private readonly checks: RangeChecks,
  ) {
    this.aiming = world.prng("aims");
    const nowMs = (): number => world.nowMs;
    this.counts = new RangeCounts(nowMs, checks.counts, (partition) => {
      const group = this.leaders().get(partition);
      return group === undefined ? null : { node: group.leaderNode(), machine: group.machine };
    });
    this.tap = new RangeTap(nowMs, {
      applied: (seen) => {
        checks.applied(seen);
        this.counts.applied(seen.group, seen.machine);
      },
      installed: (node, group) => checks.installed(node, group),
    });
    this.ranger = new Ranger(world, plan, ranges, servers, faults, history, {
      asked: (id, ask) => checks.asked(id, ask, world.nowMs),
      told: (id, answer) => checks.told(id, answer),
      witnessed: (...seen) => checks.witnessed(...seen),
    });
    const { thresholds, isSwinging } = ranges;
    const [space] = this.ranger.spaces;
    const swings = isSwinging && space !== undefined;
    this.swing = swings ? new RangeSwing(world, plan, servers, space, thresholds, history) : null;
    checks.hasCalls = () => this.ranger.isAsking;
    checks.onPhase = (phase, move) => {
      const { moveId, kind, keySpace, source, target } = move;
      world.say(0, `move ${moveId}, ${kind} of ${keySpace} from ${source} to ${target}: ${phase}`);
      faults.moments.came(phase, move);
    };
  }

  start(): void {
    this.ranger.start();
    this.swing?.start();
    if (this.ranges.aims.length > 0) this.aim();
    this.look();
  }

  /** A life is open. */
  opened({ nodeId, running }: Server): void {
    if (running === null) return;
    this.tap.attach(nodeId, running.node);
    this.counts.attach(running.node);
  }

  settle(): void {
    this.isPeace = true;
    this.ranger.settle();
    if (this.swing === null) return;
    this.swing.settle();
    this.checks.swung(this.plan.ticks / 3_600_000);
  }

  /** Faults that wait for moves. */
  private aim(): void {
    const { aims, aimEveryMs } = this.ranges;
    this.world.schedule(1 + this.aiming.below(2 * aimEveryMs), () => {
      if (this.isPeace) return;
      this.faults.strikeOneOf(aims, this.aiming);
      this.aim();
    });
  }

  // While it runs ---------------------------------------------------------------------------------

  private look(): void {
    this.world.schedule(LOOK_MS, () => {
      if (this.isOver || this.world.hasEnded) return;
      const leaders = this.answering();
      const pool = this.plan.host.initialPartitions ?? 1;
      const accepting = (key: string): readonly number[] => {
        const found: number[] = [];
        const home = this.checks.homeOf(key);
        for (const [partition, group] of leaders) {
          const isAsked = partition > pool || partition === home;
          if (isAsked && partition !== META_PARTITION && group.machine.owns(key)) {
            found.push(partition);
          }
        }
        return found;
      };
      const isLed = (partition: number): boolean => {
        const group = leaders.get(partition);
        return (group?.machine.appliedIndex ?? -1) >= (this.tap.highest.get(partition) ?? 0);
      };
      let isClear: boolean | null = null;
      this.checks.look(this.world.nowMs, accepting, isLed, () => (isClear ??= this.isClear()));
      this.look();
    });
  }

  /**
   * Groups at the leaders that serve, of the newest term that anybody knows, or knew before the group
   * was removed there.
   */
  private leaders(): ReadonlyMap<number, Group> {
    const { terms } = this;
    const leaders = new Map<number, Group>();
    for (const { running } of this.servers) {
      // Who closes serves nothing any more, and may have closed its store.
      if (running === null || running.node["parts"].stopping.isClosing) continue;
      for (const group of running.node.groups()) {
        const term = group.term();
        const known = terms.get(group.partition) ?? -1;
        if (term > known) {
          terms.set(group.partition, term);
          leaders.delete(group.partition);
        }
        if (term >= known && group.isServing()) leaders.set(group.partition, group);
      }
    }
    return leaders;
  }

  /** Those that have applied what they committed: before, no read is answered and no write decided. */
  private answering(): ReadonlyMap<number, Group> {
    const leaders = [...this.leaders()].filter(([, group]) => {
      // What `facts` tells of it, without the rest: this is asked all the time.
      return group.machine.appliedIndex >= group["replica"].core.commitIndex;
    });
    return new Map(leaders);
  }

  private isClear(): boolean {
    const { nowMs } = this.world;
    const there = this.servers.filter(({ isRetired }) => !isRetired);
    const isWell = there.every(({ running, disk, rows, deafTo, isLost }) => {
      if (running === null || isLost || deafTo.size > 0) return false;
      const isHung = Math.max(disk.hungUntilMs, rows.hungUntilMs, rows.lateUntilMs) > nowMs;
      const isBad = isHung || disk.isFull || rows.isFull || disk.slowness > 1;
      const { isPaused, costMs } = running.life;
      if (isBad || isPaused || costMs > 0 || running.node.shuttingDown) return false;
      // Groups pause for the cut of a backup.
      const nowOfNodeMs = running.node.nowMs();
      return !running.node.groups().some((group) => {
        return group["replica"].pauses.cut.isOn(nowOfNodeMs);
      });
    });
    return (
      isWell && there.every(({ nodeId: a }) => there.every(({ nodeId: b }) => this.isWay(a, b)))
    );
  }

  private isWay(from: number, to: number): boolean {
    if (from === to) return true;
    const { cuts, slowMs, lateCallsMs, bytesPerMs } = this.network.direction(from, to);
    const isLinked = this.servers[from - 1]?.running?.node.links.facts().some((link) => {
      return link.node === to && link.linked;
    });
    return cuts === 0 && slowMs + lateCallsMs + bytesPerMs === 0 && isLinked === true;
  }

  // Peace -----------------------------------------------------------------------------------------

  /** Nobody is left of the cluster. */
  private get isGivenUp(): boolean {
    return this.servers.every(({ isRetired }) => isRetired);
  }

  /** What has not ended; null = everything has. */
  unsettled(): string | null {
    if (this.isGivenUp) return null;
    if (newestMeta(this.servers) === null) return "nobody knows the key ranges";
    if (this.ranger.isAsking) return "somebody still changes key ranges";
    const partitions = newestMeta(this.servers)?.partitions() ?? [];
    return unended(this.peace(false)) ?? leftOver({ replicas: this.removedReplicas(partitions) });
  }

  private peace(hasRows: boolean): RangePeace {
    const meta = newestMeta(this.servers);
    const moves = meta?.moves() ?? [];
    const partitions = meta?.partitions() ?? [];
    const replicas: SeenReplica[] = [];
    for (const { running, nodeId, isLost, isDamaged, isRetired } of this.servers) {
      if (running === null || isLost || isDamaged || isRetired) continue;
      for (const { partition, machine } of running.node.groups()) {
        if (partition === META_PARTITION) continue;
        const rows = machine.ownership.all().filter(({ state, isPurged }) => {
          return state !== "here" && !(state === "left" && isPurged);
        });
        const unfinished = rows.map((row) => JSON.stringify(row));
        const strange = hasRows ? strangeKeys(machine) : [];
        replicas.push({ node: nodeId, partition, unfinished, strange });
      }
    }
    if (hasRows) replicas.push(...this.removedReplicas(partitions));
    return {
      moves: moves.map((move) => JSON.stringify(move)),
      leaving: meta?.leavingKeySpaces() ?? [],
      partitions,
      replicas,
    };
  }

  /** What nodes keep of partitions that were removed. */
  private removedReplicas(partitions: readonly SeenPartition[]): SeenReplica[] {
    const kept: SeenReplica[] = [];
    for (const { partitionId: partition, state } of partitions) {
      if (state !== "Removed") continue;
      for (const server of this.servers) {
        const { nodeId: node, isLost, isDamaged, isRetired } = server;
        if (isLost || isDamaged || isRetired || !isKept(server, partition)) continue;
        kept.push({ node, partition, unfinished: [], strange: ["a removed partition"] });
      }
    }
    return kept;
  }
  /** All moves have ended; what nodes do by themselves comes to rest. */
  rest(): void {
    const { world, checks, ranges } = this;
    this.isOver = this.isGivenUp;
    if (this.isOver) return;
    checks.settled(this.peace(true));
    if (ranges.isAutomatic) {
      const { collectionEveryMs: intervalMs } = ranges.thresholds;
      // Leases that end make ranges smaller.
      world.run(world.nowMs + LEASES_END_MS);
      checks.calm.quiet(world.nowMs, 10_000 + intervalMs);
      world.run(world.nowMs + 2 * (10_000 + intervalMs) + QUIET_INTERVALS * intervalMs);
      checks.calm.rested(world.nowMs, intervalMs);
      checks.settled(this.peace(true));
    }
    this.isOver = true;
  }
}
