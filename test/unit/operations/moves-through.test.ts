/**
 * A split and its merge by the commands of apply themselves, with callers at every step: what they
 * read, and what they wrote is where they find it.
 */
import t from "tap";
import { KvType } from "../../../src/machine/commands/command.js";
import type { Command, Outcome, RangeMove } from "../../../src/machine/commands/command.js";
import type { KvAnswer, KvPageAnswer } from "../../../src/operations/api/answers.js";
import type { CopySlice } from "../../../src/machine/ranges/copy-source.js";
import { Bench, get, range, scanAll, set } from "../../doubles/operations/fixture.js";
import { administer } from "../../doubles/operations/administration.js";

const SPACE = "e";
const BOUNDS = { maxBytes: 200, maxVisits: 3 };

/** Drives one move at a time, a step for each call. */
class Mover {
  readonly bench = new Bench({ rangeSplitMinSize: 2, rangeMergeMinSize: 100 });

  constructor() {
    this.bench.holdMoves();
  }

  get meta() {
    return this.bench.node.metaGroup().machine.meta;
  }

  get move(): RangeMove {
    const move = this.meta.move(SPACE);
    if (move === null) throw new Error("a range moves");
    return move;
  }

  decide(partition: number, command: Command): Outcome {
    const { bench } = this;
    const group = partition === 0 ? bench.node.metaGroup() : bench.group(partition);
    let outcome: Outcome | null = null;
    group.propose(command, 5000, bench.nowMs + 10_000, (result) => {
      if (result.status === "applied") ({ outcome } = result);
    });
    bench.world.settle();
    if (outcome === null) throw new Error(`${command.kind} is applied`);
    return outcome;
  }

  private get of() {
    const { keySpace, moveId, attempt } = this.move;
    return { keySpace, moveId, attempt };
  }

  private get interval() {
    const { startKey, endKey, generation } = this.move;
    return { ...this.of, startKey, endKey, generation };
  }

  private number = 1;
  private copy: ReturnType<ReturnType<Bench["group"]>["machine"]["openCopy"]> | null = null;

  open(): void {
    const { source, target } = this.move;
    this.decide(target, { kind: "range-open", ...this.interval });
    this.number = 1;
    const { machine } = this.bench.group(source);
    this.copy = machine.openCopy({ ...this.interval }, () => machine.leaseMs);
  }

  private give(step: "next" | "nextNoted"): void {
    for (;;) {
      const slice: CopySlice | "overrun" = this.copy?.[step](BOUNDS) ?? "overrun";
      if (slice === "overrun") throw new Error("an overrun");
      const { items, leaseMs: sourceLeaseMs } = slice;
      if (items.length > 0) {
        const { number } = this;
        const part = { number, sourceLeaseMs, copyAgeMs: 0, items };
        this.decide(this.move.target, { kind: "range-import", ...this.of, ...part });
        this.number++;
      }
      if (slice.isEnd) return;
    }
  }

  fill(): void {
    this.give("next");
  }

  freeze(): void {
    this.decide(this.move.source, { kind: "range-freeze", ...this.interval });
  }

  close(): void {
    const { source, target } = this.move;
    this.give("nextNoted");
    const count = this.bench.group(source).machine.openCount({ ...this.interval });
    while (!count.next(100));
    const { counted } = count;
    const { number } = this;
    const end = this.decide(target, { kind: "range-close", ...this.of, number, ...counted });
    if (end.kind !== "range" || end.status !== "closed") throw new Error("source and target agree");
    count.close();
    this.copy?.close();
  }

  cut(): void {
    this.decide(0, { kind: "cut-range", ...this.of });
  }

  adopt(): void {
    const { moveId, target } = this.move;
    this.decide(target, { kind: "range-adopt", ...this.of });
    this.decide(0, { kind: "finish-move", keySpace: SPACE, moveId, side: "target" });
  }

  /** After the end of a merge the source is gone with its partition. */
  release(): void {
    const move = this.meta.move(SPACE);
    if (move === null) return;
    const { source, moveId, startKey } = move;
    this.decide(source, { kind: "range-release", ...this.of });
    const purge = { kind: "range-purge", ...this.of, startKey, limit: 100 } as const;
    this.decide(source, purge);
    this.decide(0, { kind: "finish-move", keySpace: SPACE, moveId, side: "source" });
  }
}

const STEPS = ["open", "fill", "freeze", "close", "cut", "adopt", "release"] as const;
const bucket = { kind: "kv-bucket", bucket: SPACE, durability: 1, plain: true } as const;

t.test("C8 K13 K15 K16 P-100 P-102 callers at every step of a split and a merge", async (t) => {
  const mover = new Mover();
  const { bench } = mover;
  const { world } = bench;
  const revisions = new Map<string, number>();
  const keys = ["e/a", "e/b", "e/n", "e/o"];
  for (const key of keys) bench.ask(set(key, "0"));
  bench.ask({ kind: "kv-delete", key: "e/o", durability: 1, plain: true });
  bench.ask(set("e/gone", "0"));
  bench.ask({ kind: "kv-delete", key: "e/gone", durability: 1, plain: true });
  keys.splice(3, 1);
  for (const key of keys) revisions.set(key, 0);
  const call = (kind: "ranges.register" | "ranges.split" | "ranges.merge"): object[] => {
    const answers: object[] = [];
    const context = { deadlineMs: bench.nowMs + 60_000, forwardHops: 0, requestId: "t" };
    const request = { keySpace: SPACE, splitKey: "e/n" };
    administer(bench.operations, kind, request, context, (answer: object) => {
      answers.push(answer);
    });
    world.pass(50);
    return answers;
  };
  const around = (label: string, isShut: boolean): void => {
    const pages: KvPageAnswer[] = [];
    bench.send(bucket, pages);
    bench.send(range(SPACE), pages);
    bench.send(scanAll("e"), pages);
    const writes: KvAnswer[] = [];
    for (const key of keys) bench.send(set(key, label), writes);
    const reads: KvAnswer[] = [];
    for (const key of keys) bench.send(get(key), reads);
    bench.send(get("e/o"), reads);
    world.pass(60, 5);
    pending.push(() => {
      t.equal(pages.length, 3, `${label}: pages`);
      for (const page of pages) {
        t.strictSame(
          page.items.map(({ key }) => key),
          keys,
          `${label}: every key once`,
        );
      }
      t.match(
        writes.map(({ type }) => type),
        keys.map(() => KvType.set),
        `${label}: written`,
      );
      const types = reads.map(({ type }) => type);
      t.match(types, [...keys.map(() => KvType.got), KvType.doesNotExist], `${label}: read`);
      for (const key of keys) revisions.set(key, (revisions.get(key) ?? 0) + 1);
    });
    if (isShut) t.ok(pages.length < 3 && writes.length < keys.length, `${label}: some wait`);
    else for (const check of pending.splice(0)) check();
  };
  const pending: (() => void)[] = [];

  t.match(call("ranges.register"), [{ status: "Seeded" }]);
  const split = call("ranges.split");
  around("begun", false);
  for (const step of STEPS) {
    mover[step]();
    world.pass(50, 5);
    around(`split ${step}`, ["freeze", "close", "cut"].includes(step));
  }
  t.match(split, [{ status: "Succeeded", newPartitionId: 4 }]);
  t.equal(mover.meta.move(SPACE), null);

  world.pass(11_000);
  const merge = call("ranges.merge");
  t.equal(mover.move.kind, "merge");
  around("merge begun", false);
  for (const step of STEPS) {
    mover[step]();
    world.pass(50, 5);
    around(`merge ${step}`, ["freeze", "close", "cut"].includes(step));
  }
  t.match(merge, [{ status: "Completed", merges: 1 }]);
  t.equal(mover.meta.ranges(SPACE).length, 1);
  for (const key of keys) {
    t.match(bench.ask(get(key)), { revision: revisions.get(key) ?? 0 }, "each write once");
  }
  t.match(bench.ask(set("e/o", "back")), { type: KvType.set, revision: 2 }, "K1 tombstones move");
  t.equal(bench.operations.inflight, 0);
});
