/**
 * Some nodes with replicas of some partitions each, whose watches are joined: every replica applies
 * the log of its partition when a test says so, and what nodes ask each other takes its time, or is
 * lost.
 */
import { assert } from "../../../src/base/assert.js";
import { Joints } from "../../../src/host/joint-watching/joints.js";
import type { JointPorts, PullResult } from "../../../src/host/joint-watching/parts.js";
import { ToldParts } from "../../../src/host/joint-watching/told-parts.js";
import type { Command } from "../../../src/machine/commands/command.js";
import { Bench } from "../machine/bench.js";
import { ManualTimer } from "./world.js";
import { WatchBench } from "./watch-bench.js";

const PROGRESS_MS = 1000;

interface Entry {
  readonly leaseMs: number;
  readonly commands: readonly Command[];
}

interface JointNode {
  readonly id: number;
  readonly bench: WatchBench;
  readonly told: ToldParts;
  readonly joints: Joints;
}

/** What becomes of a question to another node. */
export type Fate = "arrives" | "unsent" | "question lost" | "answer lost";

export class JointBench {
  readonly timer = new ManualTimer();
  readonly nodes: readonly JointNode[];
  readonly down = new Set<number>();
  fate: () => Fate = () => "arrives";
  /** Of one way (ms). */
  delayMs: () => number = () => 0;
  isOn = true;
  private readonly logs = new Map<number, Entry[]>();

  /** `replicas`: for each partition, from 1 on, the nodes that have it. */
  constructor(
    readonly size: number,
    readonly replicas: readonly (readonly number[])[],
    settings: ConstructorParameters<typeof WatchBench>[1] = {},
    private readonly rowsOf = (_node: number, id: number): Bench => new Bench(undefined, id),
  ) {
    this.nodes = Array.from({ length: size }, (_, at) => this.nodeOf(at + 1, settings));
  }

  private nodeOf(id: number, settings: ConstructorParameters<typeof WatchBench>[1]): JointNode {
    const { timer } = this;
    const rowsOf = (partition: number): Bench => this.rowsOf(id, partition);
    const bench = new WatchBench(this.replicas.length, settings, rowsOf, timer);
    for (const partition of bench.groups.keys()) {
      if (this.replicas[partition - 1]?.includes(id) !== true) bench.groups.delete(partition);
    }
    const { ports } = bench.hub;
    const told = new ToldParts(bench.hub, ports);
    const { clock, partitionsOf, mapVersion, clusterId, isClosing } = ports;
    const jointPorts: JointPorts = {
      ...{ clock, timer, nodeId: id, partitionsOf, mapVersion, clusterId, isClosing },
      isOn: () => this.isOn,
      isHere: (partition) => bench.groups.has(partition),
      hostsOf: (partition) =>
        this.hosts(partition).filter((each) => each !== id && !this.down.has(each)),
      pull: (node, pull, _deadlineMs, done) => {
        if (node === id) return told.pull("own", pull, done);
        this.ask(id, node, pull, done);
      },
    };
    return { id, bench, told, joints: new Joints(bench.hub, jointPorts, PROGRESS_MS) };
  }

  private ask(
    from: number,
    to: number,
    pull: Parameters<JointPorts["pull"]>[1],
    done: (result: PullResult) => void,
  ): void {
    const { timer } = this;
    const fate = this.down.has(to) ? "unsent" : this.fate();
    if (fate === "unsent") return timer.soon(() => done("unsent"));
    timer.after(this.delayMs(), () => {
      const isGone = (): boolean => this.down.has(to) || this.down.has(from);
      if (fate === "question lost" || isGone()) return done("lost");
      this.node(to).told.pull(String(from), pull, (pulled) => {
        timer.after(this.delayMs(), () => {
          done(fate === "answer lost" || isGone() ? "lost" : pulled);
        });
      });
    });
  }

  node(id: number): JointNode {
    const node = this.nodes[id - 1];
    assert(node !== undefined, "there is such a node");
    return node;
  }

  hosts(partition: number): readonly number[] {
    return this.nodes.filter(({ bench }) => bench.groups.has(partition)).map(({ id }) => id);
  }

  /** As callers of the node open their streams. */
  watches(id: number) {
    const { joints, bench } = this.node(id);
    const open = joints.open.bind(joints);
    const { tally } = bench.hub;
    return { watches: { tally, open: (sink: Parameters<typeof open>[0]) => open(sink) } };
  }

  /** The log of the partition has one entry more. Nobody applied it yet. */
  append(partition: number, ...commands: Command[]): void {
    const log = this.logs.get(partition) ?? [];
    this.logs.set(partition, log);
    log.push({ leaseMs: this.timer.nowMs, commands });
  }

  /** Whether the node has entries of the partition to apply. */
  isBehind(id: number, partition: number): boolean {
    const group = this.node(id).bench.groups.get(partition);
    const size = this.logs.get(partition)?.length ?? 0;
    return group !== undefined && group.machine.appliedIndex < size;
  }

  /** The node applies the next entry of the partition, where there is one. */
  applyNext(id: number, partition: number): void {
    const group = this.node(id).bench.groups.get(partition);
    const entry = this.logs.get(partition)?.[group?.machine.appliedIndex ?? 0];
    if (group !== undefined && entry !== undefined)
      group.rows.apply(entry.leaseMs, ...entry.commands);
    if (group !== undefined && !this.isBehind(id, partition)) group.release();
  }

  /** Every replica of the partition applies all of its log. */
  level(partition: number): void {
    for (const id of this.hosts(partition))
      while (this.isBehind(id, partition)) this.applyNext(id, partition);
    this.settle();
  }

  /** One more entry, which every replica applies. */
  apply(partition: number, ...commands: Command[]): void {
    this.append(partition, ...commands);
    this.level(partition);
  }

  settle(): void {
    while (this.timer.step());
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left--) {
      this.timer.nowMs++;
      this.settle();
    }
  }

  /** The node is gone, with all that it had in memory of parts; or it is there again. */
  setDown(id: number, isDown: boolean): void {
    if (isDown) this.down.add(id);
    else this.down.delete(id);
  }
}
