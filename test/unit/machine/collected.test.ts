/** What a group tells of what collection dropped: it is state, and the same everywhere (W7). */
import t from "tap";
import { level } from "../../../src/base/ids.js";
import {
  type CollectedEnds,
  TELLING_FROM_LEVEL,
  decodeGroupRecord,
} from "../../../src/machine/commands/group-record.js";
import { snapshotRecord } from "../../../src/machine/snapshot/format.js";
import { Bench, collect, lock, remove, set, unlock } from "../../doubles/machine/bench.js";

function ends(keysMs: number, locksMs: number): CollectedEnds {
  return { keysMs, locksMs };
}

function raised(bench = new Bench()): Bench {
  bench.one(0, { kind: "set-level", level: level(TELLING_FROM_LEVEL) });
  return bench;
}

/** Leaves nothing behind but the rows that `collect` may drop. */
function fill(bench: Bench): void {
  bench.apply(10, set("k", "1"), set("e", "1", { expiresMs: 30 }), lock("r", "a", 100));
  bench.one(20, remove("k"));
  bench.one(50, unlock("r", "a"));
}

t.test("the latest end that was dropped is told, of keys and of locks", (t) => {
  const bench = raised();
  fill(bench);
  bench.one(60, set("lives", "1", { expiresMs: 1 << 20 }));
  t.same(bench.machine.collected, ends(0, 0), "nothing is dropped yet");
  bench.one(125, collect(100, 100));
  t.same(bench.machine.collected, ends(21, 0), "a deletion: above its time");
  bench.one(145, collect(100, 100));
  t.same(bench.machine.collected, ends(41, 0), "the end of a lease");
  bench.one(150, collect(100, 100));
  t.same(bench.machine.collected, ends(41, 50), "a lock");
  bench.one(9000, collect(100, 100));
  t.same(bench.machine.collected, ends(41, 50), "what lives, or is dropped, moves nothing");
  t.end();
});

t.test("a value whose history is dropped in slices is told of when it goes itself", (t) => {
  const bench = raised();
  for (let at = 0; at < 4; at++) bench.one(10, set("k", `${at}`, { revisionsRetained: 10 }));
  bench.one(20, remove("k", 10));
  bench.one(1000, collect(2, 100));
  t.same(bench.machine.collected, ends(0, 0));
  bench.one(1000, collect(100, 100));
  t.same(bench.machine.collected, ends(21, 0));
  t.end();
});

t.test("P-039 it is in records and snapshots, and a restart goes on with it", (t) => {
  const bench = raised();
  fill(bench);
  bench.one(500, collect(100, 100));
  bench.flush();
  const again = new Bench(bench.store);
  t.same(again.machine.collected, ends(41, 50));
  const told = decodeGroupRecord(snapshotRecord(again.machine.record()));
  t.same(told?.collected, ends(41, 50));
  t.equal(told?.dataBytes, null, "the size is each node's own affair");
  t.end();
});

t.test("P-030 below its level it is not stored: after a start anything may be gone", (t) => {
  const bench = new Bench();
  fill(bench);
  bench.one(130, collect(100, 100));
  t.same(bench.machine.collected, ends(21, 0));
  t.equal(bench.machine.record().collected, null);
  bench.flush();
  const again = new Bench(bench.store);
  t.same(again.machine.collected, ends(130, 130), "all that ended up to its clock");
  again.one(5000, collect(100, 100));
  t.same(again.machine.collected, ends(130, 130));
  t.end();
});

t.test("P-130 with the level it is the same on every replica, started anew or not", (t) => {
  const bench = new Bench();
  fill(bench);
  bench.one(130, collect(100, 100));
  bench.flush();
  const again = new Bench(bench.store);
  for (const each of [bench, again]) {
    each.one(140, { kind: "set-level", level: level(TELLING_FROM_LEVEL) });
  }
  t.same(bench.machine.collected, ends(140, 140));
  const [one, other] = [bench, again].map(({ machine }) => snapshotRecord(machine.record()));
  t.same(one, other);
  for (const each of [bench, again]) {
    each.one(150, { kind: "set-level", level: level(TELLING_FROM_LEVEL + 1) });
  }
  t.same(bench.machine.collected, ends(140, 140), "a later level changes nothing");
  t.end();
});
