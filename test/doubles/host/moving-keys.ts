/**
 * Keys that move between the partitions of a joint bench: a machine for each partition that applies
 * every entry at once, as leaders do, and writes the log of its replicas; and the map, of which
 * nodes learn late.
 *
 * Owns the logs, the map and the one move that is under way. Invariants: 1. A key is written by
 * who owns it, and by nobody between freeze and adoption. 2. The map has a cut before the target
 * adopts. 3. A node learns of the map in its order.
 */
import { assert } from "../../../src/base/assert.js";
import { moveId } from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import { findRange } from "../../../src/control/ranges.js";
import type { KeyOwner } from "../../../src/host/watching/watching.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { Bench } from "../machine/bench.js";
import { Move, Side } from "../machine/range-move.js";
import type { JointBench } from "./joint-bench.js";
import type { WatchBench } from "./watch-bench.js";

const BOUNDS = { maxBytes: 1 << 20, maxVisits: 3 };
const PURGE_ROWS = 3;

/** Writes down what it applies. */
class Leader extends Side {
  constructor(
    private readonly bench: JointBench,
    partition: number,
    ownsByDefault: boolean,
  ) {
    super(bench.timer, 0, partition, ownsByDefault);
  }

  override do(command: Command): ReturnType<Bench["one"]> {
    this.bench.append(this.machine.group, command);
    return super.do(command);
  }
}

/** One version of the map, as a node takes it in. */
type MapChange = (node: WatchBench) => void;

interface UnderWay {
  readonly move: Move;
  readonly space: string;
  readonly from: number;
  readonly to: number;
  step: "copying" | "frozen" | "cut" | "adopted";
}

export class MovingKeys {
  /** Moves that came to their end. */
  moved = 0;
  private readonly leaders: readonly Leader[];
  private readonly owners = new Map<string, readonly KeyOwner[]>();
  private readonly changes: MapChange[] = [];
  private readonly known = new Map<number, number>();
  private underWay: UnderWay | null = null;
  private begun = 0;

  /** Key space `at` of `spaces` is of partition `at + 1`; the partitions behind own nothing at first. */
  constructor(
    private readonly bench: JointBench,
    private readonly random: Prng,
    private readonly spaces: readonly string[],
  ) {
    this.leaders = bench.replicas.map((_nodes, at) => {
      return new Leader(bench, at + 1, at < spaces.length);
    });
    for (const { id, bench: node } of bench.nodes) {
      this.known.set(id, 0);
      node.meta.rounds = "held";
      for (const [at, space] of spaces.entries()) node.homes.set(space, at + 1);
    }
    for (const [at, space] of spaces.entries()) {
      this.owners.set(space, [{ startKey: null, endKey: null, partitionId: at + 1 }]);
    }
  }

  private leader(partition: number): Leader {
    const leader = this.leaders[partition - 1];
    assert(leader !== undefined, "there is such a partition");
    return leader;
  }

  /** False: nobody takes it now. */
  write(space: string, key: string, command: Command): boolean {
    const owner = findRange(this.owners.get(space) ?? [], key);
    return this.leader(owner?.partitionId ?? 0).do(command).kind === "kv";
  }

  /** The next step of the move that is under way, or the first one of another. */
  moveOn(): void {
    const { underWay } = this;
    if (underWay === null) return this.begin();
    const { move, space, from, to } = underWay;
    if (underWay.step === "copying" || underWay.step === "frozen") {
      if (this.random.chance(1, 12)) {
        move.abort(PURGE_ROWS);
        this.underWay = null;
        return;
      }
    }
    switch (underWay.step) {
      case "copying":
        if (!move.give("next", BOUNDS)) return;
        move.freeze();
        underWay.step = "frozen";
        return;
      case "frozen":
        assert(move.close(BOUNDS) === "closed", "all of it was copied");
        this.cut(space, move, to);
        underWay.step = "cut";
        return;
      case "cut":
        assert(move.adopt() === "done", "what is closed is adopted");
        underWay.step = "adopted";
        return;
      case "adopted":
        assert(from !== to, "it went elsewhere");
        move.release(PURGE_ROWS);
        this.moved++;
        this.underWay = null;
    }
  }

  private begin(): void {
    const { random, spaces } = this;
    const space = spaces[random.below(spaces.length)] as string;
    const last = this.owners.get(space)?.at(-1);
    const from = last?.partitionId ?? 0;
    const home = spaces.indexOf(space) + 1;
    const others = this.leaders.map((_leader, at) => at + 1).slice(spaces.length);
    const targets = [home, ...others].filter((partition) => partition !== from);
    const to = targets[random.below(targets.length)] as number;
    const interval = { keySpace: space, startKey: `${space}/2`, endKey: null };
    const sides = [this.leader(from), this.leader(to)] as const;
    const move = new Move(...sides, interval, moveId(++this.begun));
    move.begin();
    this.underWay = { move, space, from, to, step: "copying" };
  }

  private cut(space: string, { interval, moveId: id }: Move, to: number): void {
    const { startKey, endKey } = interval;
    const home = this.spaces.indexOf(space) + 1;
    const owners: readonly KeyOwner[] = [
      { startKey: null, endKey: startKey, partitionId: home },
      { startKey, endKey, partitionId: to },
    ];
    this.owners.set(space, owners);
    this.changes.push((node) => {
      node.ranges.set(space, owners);
      node.cuts.add(id);
      node.version++;
    });
  }

  /** The node takes in the next version of the map, where there is one. */
  learn(id: number): void {
    const { bench: node } = this.bench.node(id);
    const known = this.known.get(id) ?? 0;
    const change = this.changes[known];
    if (change !== undefined) {
      change(node);
      this.known.set(id, known + 1);
      // As an entry of the partition that has the map does.
      node.hub["arm"]();
    }
    if ((this.known.get(id) ?? 0) === this.changes.length) node.meta.release();
  }

  /** The move that is under way comes to its end, and every node learns of all. */
  settle(): void {
    while (this.underWay !== null) this.moveOn();
    for (const { id } of this.bench.nodes) {
      for (let left = this.changes.length; left >= 0; left--) this.learn(id);
    }
  }
}
