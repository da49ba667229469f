/** Joint watches of nodes that know of moved keys at different times (W4, W9, W14). */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { JointBench } from "../../../doubles/host/joint-bench.js";
import { set } from "../../../doubles/machine/bench.js";
import { Move, Side } from "../../../doubles/machine/range-move.js";
import { WatchCaller, watchRequest } from "../../../doubles/operations/watching.js";

const BOUNDS = { maxBytes: 1 << 20, maxVisits: 100 };
/** Where nodes have no partition but one each; the last node has none. */
const REPLICAS = [[1], [2]];
const JOINING = 3;

class World {
  readonly source = new Side({ nowMs: 2000 }, 0, 1, true);
  readonly target = new Side({ nowMs: 2000 }, 0, 2, false);
  readonly bench = new JointBench(3, REPLICAS, {}, (_node, id) => {
    return id === 1 ? this.source : this.target;
  });

  constructor() {
    this.source.do(set("b/m", "1"));
    // Keys of others have been moved before.
    for (const { bench } of this.bench.nodes) {
      bench.ranges.set("other", [{ startKey: null, endKey: null, partitionId: 1 }]);
    }
  }

  watching(kind: number, name: string, rest = {}): WatchCaller {
    const caller = new WatchCaller(this.bench.watches(JOINING));
    caller.stream.create(1, watchRequest(kind, name, rest));
    this.bench.pass(100);
    return caller;
  }

  /** All keys of `b` move to partition 2, which changes one of them. No node has the map of it. */
  moves(): void {
    const move = new Move(this.source, this.target, {
      ...{ keySpace: "b", startKey: null, endKey: null },
    });
    move.begin();
    while (!move.give("next", BOUNDS));
    move.freeze();
    move.finish(BOUNDS);
    move.release(100);
    this.target.do(set("b/m", "2"));
  }

  learns(...ids: number[]): void {
    for (const id of ids) {
      const { bench } = this.bench.node(id);
      bench.places.set("b", 2);
      bench.ranges.set("b", [{ startKey: null, endKey: null, partitionId: 2 }]);
      bench.version++;
      // As an entry of the partition that has the map does.
      bench.hub["arm"]();
    }
    this.bench.pass(200);
  }
}

t.test("W9 W14 a barrier is not passed by whoever joins parts by an old map", (t) => {
  const world = new World();
  const caller = world.watching(WatchKind.bucket, "b");
  t.same(caller.take(), ["created"]);
  world.moves();
  world.learns(1, 2);
  caller.stream.sync(1, 0);
  world.bench.pass(200);
  t.same(caller.take(), [], "what was answered is of a partition that has no part");
  world.learns(JOINING);
  t.same(caller.take(), ["MERGED set b/m 2 r1", "mark", "synced 1"]);
  caller.stream.sync(2, 0);
  world.bench.pass(10);
  t.same(caller.take(), ["synced 2"], "at once where all have one map");
  t.end();
});

t.test("W4 W14 a start is not told by whoever joins parts by an old map", (t) => {
  const world = new World();
  world.moves();
  world.learns(1, 2);
  const caller = world.watching(WatchKind.bucket, "b", { initial: true });
  t.same(caller.take(), []);
  world.learns(JOINING);
  t.same(caller.take(), ["created", "INITIAL set b/m 2 r1", "mark"]);
  t.end();
});

t.test("W4 W14 nor by one of whose parts one is told by an old map", (t) => {
  const world = new World();
  world.moves();
  world.learns(1, JOINING);
  const caller = world.watching(WatchKind.prefix, "b/", { initial: true });
  t.same(caller.take(), []);
  world.learns(2);
  t.same(caller.take(), ["created", "INITIAL set b/m 2 r1", "mark"]);
  t.end();
});

t.test("W9 W14 a barrier that nobody takes yet is passed once, by whatever map", (t) => {
  const world = new World();
  const caller = world.watching(WatchKind.bucket, "b");
  caller.full = true;
  caller.stream.sync(1, 0);
  world.bench.pass(50);
  for (const { bench } of world.bench.nodes.slice(0, 2)) bench.version++;
  world.bench.pass(50);
  caller.drain();
  world.bench.pass(10);
  t.same(caller.take(), ["created", "synced 1"]);
  t.end();
});

t.test("W14 a watch that stands by no one map ends as stale", (t) => {
  const world = new World();
  world.moves();
  world.learns(1, 2);
  const caller = world.watching(WatchKind.bucket, "b");
  world.bench.pass(11_000);
  t.same(caller.take(), ["ended stale"]);
  t.end();
});

t.test("W14 locks do not move, whatever the maps of nodes", (t) => {
  const world = new World();
  world.bench.node(1).bench.version++;
  const caller = world.watching(WatchKind.lockPrefix, "b/");
  caller.stream.sync(1, 0);
  world.bench.pass(10);
  t.same(caller.take(), ["created", "synced 1"]);
  t.end();
});
