/** Rows counted in slices, and leases of locks that ended without a release. */
import t from "tap";
import type { RowCensus } from "../../../src/machine/census.js";
import { EphemeralTable } from "../../../src/machine/ephemeral.js";
import {
  Bench,
  allocate,
  collect,
  create,
  extend,
  lock,
  remove,
  set,
  unlock,
} from "../../doubles/machine/bench.js";

function counted(census: RowCensus, maxVisits: number): number {
  let slices = 1;
  while (!census.next(maxVisits)) slices++;
  return slices;
}

t.test("3.8 rows are counted by kind, flushed or not, and locks while they are held", (t) => {
  const bench = new Bench();
  for (let at = 0; at < 30; at++) bench.one(0, lock(`lock-${at}`, "a", at < 10 ? 10 : 1000));
  bench.one(0, unlock("lock-29", "a"));
  bench.flush();
  for (let at = 0; at < 5; at++) bench.one(20, set("key", `value ${at}`));
  bench.one(20, remove("gone"));
  bench.one(20, create("sequence"));
  bench.one(20, allocate("sequence", 1, "idempotency"));
  const slow = bench.machine.openCensus();
  t.ok(counted(slow, 7) >= 6, "a slice has its bound");
  t.same(slow.rows, { lock: 30, sequence: 1, "idempotency-key": 1, value: 1, revision: 3 });
  t.equal(slow.heldLocks, 19, "of 30, ten ended and one was released");
  const fast = bench.machine.openCensus();
  t.equal(counted(fast, 1000), 1);
  t.same(fast.rows, slow.rows);
  t.end();
});

t.test("3.8 a lease that ended by itself is counted once, by whoever meets it first", (t) => {
  const bench = new Bench();
  const lapsed = (leaseMs: number, command: Parameters<Bench["one"]>[1]): number => {
    const { lapsedLocks } = bench.machine;
    bench.one(leaseMs, command);
    return bench.machine.lapsedLocks - lapsedLocks;
  };
  t.equal(lapsed(0, lock("a", "x", 10)), 0);
  t.equal(lapsed(5, lock("a", "y", 10)), 0, "busy");
  t.equal(lapsed(5, extend("a", "x", 10)), 0);
  t.equal(lapsed(15, lock("a", "y", 10)), 1, "the next grant");
  t.equal(lapsed(25, unlock("a", "x")), 0, "somebody else's");
  t.equal(lapsed(25, unlock("a", "y")), 1, "a late release");
  t.equal(lapsed(25, unlock("a", "y")), 0);
  t.equal(lapsed(30, lock("a", "x", 10)), 0, "a released lock did not end");
  t.equal(lapsed(30, unlock("a", "x")), 0, "in time");
  t.equal(lapsed(30, lock("b", "x", 10)), 0);
  t.equal(lapsed(1000, collect(10, 100)), 1, "collected: b, and a, which was released");
  const table = new EphemeralTable({ floor: 0n, term: 1, maxBytes: 1 << 20 });
  const decide = (leaseMs: number, command: ReturnType<typeof lock>): void => {
    if (command.kind !== "try-lock") throw new Error("a lock is wanted");
    table.apply(command, { leaseMs, stamp: { n: 1, l: leaseMs, c: 0 } });
  };
  decide(0, lock("a", "x", 10));
  decide(10, lock("a", "y", 10));
  t.equal(table.lapsedLocks, 1);
  t.end();
});
