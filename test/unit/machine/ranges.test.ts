/** An interval of keys goes to another group: what it holds there, and what each command refuses. */
import t, { type Test } from "tap";
import { attempt, moveId, rangeGeneration } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import { EVERY_KEY } from "../../../src/machine/ownership/ownership.js";
import {
  KvFlag,
  KvState,
  type Command,
  type KvOutcome,
} from "../../../src/machine/commands/command.js";
import type { KeyInterval, OwnershipRow } from "../../../src/machine/ownership/ownership-row.js";
import { readPrefixPage } from "../../../src/machine/kv/pages.js";
import { GroupRows } from "../../../src/machine/store/rows.js";
import { RowKind, generationPrefix } from "../../../src/machine/store/keys.js";
import { type KvRow, decodeKvRow, encodeKvRow, rowWith } from "../../../src/machine/kv/kv-row.js";
import { carriedEnd } from "../../../src/machine/ranges/carried-lease.js";
import { Bench, bytes, collect, remove, set } from "../../doubles/machine/bench.js";
import { Move, Side, bytesOf, valuesOf } from "../../doubles/machine/range-move.js";

const SEEDS = 60;
const TAIL: KeyInterval = { keySpace: "s", startKey: "s/h", endKey: "s/r" };
/** Keys of the interval, on its borders, beside it, in a deeper bucket within it, elsewhere. */
const INSIDE = ["s/h", "s/i", "s/j", "s/k", "s/m", "s/q", "s/q~"];
const OUTSIDE = ["s", "s/a", "s/g~", "s/r", "s/z", "s/k/x", "s/k/y", "s.", "t/k"];
const BOUNDS = { maxBytes: 300, maxVisits: 4 };
const KEPT = 5;

function inside(key: string): boolean {
  return INSIDE.includes(key);
}

function fill(side: Side, random: Prng, keys: readonly string[], world: { nowMs: number }): void {
  const key = keys[random.below(keys.length)] as string;
  const kind = random.below(10);
  world.nowMs += random.below(12);
  const expiresMs = random.chance(1, 3) ? 0 : 1 + random.below(300);
  if (kind < 4) {
    const flags = random.chance(1, 4) ? KvFlag.noRevision : KvFlag.set;
    const value = random.chance(1, 8) ? null : "v".repeat(random.below(200));
    side.do(set(key, value, { expiresMs, flags, revisionsRetained: KEPT }));
  } else if (kind < 6) side.do(remove(key, KEPT));
  else if (kind === 6) side.do({ kind: "kv-extend", key, expiresMs: expiresMs + 1 });
  else if (kind === 7) side.do(collect(1 + random.below(20), random.below(200)));
  else if (kind === 8) side.do({ kind: "advance-clock" });
  else if (random.chance(1, 3)) side.flush();
}

/** Everything that a reader can see of the interval but lease ends, by key. */
function seen(side: Side, leaseMs: number): Record<string, unknown> {
  const { machine } = side;
  const all: Record<string, unknown> = {};
  for (const key of INSIDE) {
    const latest = machine.reads.kvGet(key, -1n, leaseMs);
    const readings = [latest];
    for (let revision = 0n; revision < 40n; revision++) {
      readings.push(machine.reads.kvGet(key, revision, leaseMs));
    }
    all[`state ${key}`] = latest.state;
    all[key] = readings.map(({ type, state, value, revision, leaseEndMs, lastModified }) => {
      const text = value === null ? null : Buffer.from(value).toString();
      return [type, state, text, revision, leaseEndMs !== null, lastModified.l].join(" ");
    });
  }
  const bounds = { after: null, limit: 0, maxBytes: 1 << 20, maxVisits: 10_000 };
  const prefix = generationPrefix(machine.group, machine.record().generation);
  const rows = new GroupRows(side.memtable, prefix, null);
  const page = readPrefixPage(rows, EVERY_KEY, "s/", bounds, leaseMs, true);
  if (page.kind !== "page") throw new Error("a prefix");
  const items = page.page.items.filter(({ key }) => inside(key));
  all["page"] = items.map(({ key, state, revision }) => `${key} ${state} ${revision}`);
  return all;
}

interface Seen {
  moved: number;
  retried: number;
  aborted: number;
  leases: number;
  tombstones: number;
}

/** A world with something in it, and a move that is about to begin. */
function begin(random: Prng): { move: Move; world: { nowMs: number } } {
  const world = { nowMs: 10 };
  const toPool = random.chance(1, 2);
  const source = new Side(world, random.below(2) * 1_000_000, 1, true);
  const target = new Side(world, random.below(2) * 1_000_000, 9, toPool);
  if (toPool) leaveOnce(target);
  else own(target, { keySpace: "s", startKey: "s/r", endKey: "s/t" });
  for (let step = 0; step < 80; step++) fill(source, random, [...INSIDE, ...OUTSIDE], world);
  for (const key of ["s/r", "s/s", "t/q", "s/r", "s/s"]) target.do(set(key, "beside"));
  return { move: new Move(source, target, TAIL), world };
}

/** The interval is another group's: as after a split, long ago. */
function leaveOnce(side: Side): void {
  const named = { keySpace: "s", moveId: moveId(3), attempt: attempt(1) };
  side.range({ kind: "range-freeze", ...named, ...TAIL, generation: rangeGeneration(1) });
  side.range({ kind: "range-release", ...named });
  side.range({ kind: "range-purge", ...named, startKey: TAIL.startKey, limit: 5 });
}

function own(side: Side, interval: KeyInterval): void {
  const named = { keySpace: "s", moveId: moveId(3), attempt: attempt(1) };
  side.range({ kind: "range-open", ...named, ...interval, generation: rangeGeneration(1) });
  const nothing = { number: 1, keys: 0, digestLow: 0, digestHigh: 0 };
  side.range({ kind: "range-close", ...named, ...nothing });
  side.range({ kind: "range-adopt", ...named });
}

const outsideOf = (side: Side) => valuesOf(side).filter(({ key }) => !inside(key));
const insideOf = (side: Side) => valuesOf(side).filter(({ key }) => inside(key));

function latestOf({ memtable, machine }: Bench, key: string): KvRow | null {
  const prefix = generationPrefix(machine.group, machine.record().generation);
  const found = memtable.get(prefix + String.fromCharCode(RowKind.value) + key);
  return found === null ? null : decodeKvRow(found);
}

/** Ends of running leases, by key, in true time. */
function leasesOf(side: Side, leaseMs: number): Map<string, number> {
  const found = new Map<string, number>();
  for (const key of INSIDE) {
    const { leaseEndMs } = side.machine.reads.kvGet(key, -1n, leaseMs);
    if (leaseEndMs !== null) found.set(key, leaseEndMs - side.aheadMs);
  }
  return found;
}

function checkLeases(t: Test, { target }: Move, was: Map<string, number>, counts: Seen): void {
  for (const [key, endMs] of leasesOf(target, target.machine.leaseMs)) {
    const grownMs = endMs - (was.get(key) ?? NaN);
    t.ok(grownMs >= 0 && grownMs <= 1600, `P-102 the lease of ${key} grew by ${grownMs} ms`);
    counts.leases++;
  }
}

t.test(
  "P-101 P-102 K1 K2 an interval moves while it changes: all of it is there afterwards",
  (t) => {
    const counts: Seen = { moved: 0, retried: 0, aborted: 0, leases: 0, tombstones: 0 };
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = new Prng(seed);
      const { move, world } = begin(random);
      const { source, target } = move;
      let neighbours = outsideOf(target);
      const change = (): void => {
        for (let left = random.below(4); left > 0; left--) {
          fill(source, random, [...INSIDE, ...INSIDE, ...OUTSIDE], world);
        }
        if (!random.chance(1, 6)) return;
        target.do(collect(20, 5));
        neighbours = outsideOf(target);
      };
      for (;;) {
        move.begin();
        while (!move.give("next", BOUNDS)) change();
        for (let pass = random.below(3); pass > 0; pass--) {
          while (!move.give("nextNoted", BOUNDS) && random.chance(3, 4)) change();
          change();
        }
        for (let left = random.below(4); left > 0; left--) move.count?.next(2);
        change();
        if (random.chance(1, 4)) {
          if (random.chance(1, 2)) move.freeze();
          move.retry();
          change();
          counts.retried++;
          continue;
        }
        break;
      }
      if (random.chance(1, 5)) {
        move.freeze();
        move.abort(1 + random.below(4));
        t.strictSame(insideOf(target), [], `seed ${seed}: nothing is left of an aborted move`);
        t.strictSame(outsideOf(target), neighbours);
        t.equal((source.do(set("s/k", "v")) as KvOutcome).kind, "kv", "the source serves again");
        t.notOk(target.machine.owns("s/k"));
        t.equal(target.machine.dataBytes, bytesOf(target), `seed ${seed}: the size is exact`);
        counts.aborted++;
        continue;
      }
      t.equal(move.freeze().status, "done");
      const digest = insideOf(source);
      // What goes on does not touch what is frozen.
      world.nowMs += random.below(50);
      source.do(collect(1000, 1));
      t.strictSame(source.do(set("s/k", "late")), { kind: "moved" });
      t.strictSame(insideOf(source), digest);
      const { leaseMs } = source.machine;
      const before = seen(source, leaseMs);
      const leases = leasesOf(source, leaseMs);
      const kept = outsideOf(source);
      const revisions = INSIDE.map((key) => latestOf(source, key)?.revision ?? -1);
      t.equal(move.finish(BOUNDS), "done", `seed ${seed}`);
      move.release(1 + random.below(5));
      t.strictSame(insideOf(source), [], `seed ${seed}: nothing is left at the source`);
      t.strictSame(outsideOf(source), kept, "neighbours are untouched");
      t.strictSame(outsideOf(target), neighbours);
      for (const key of OUTSIDE) t.ok(source.machine.owns(key), `${key} stays`);
      t.strictSame(seen(target, target.machine.leaseMs), before, "every read is as at the freeze");
      checkLeases(t, move, leases, counts);
      for (const [at, key] of INSIDE.entries()) {
        const outcome = target.do(set(key, "next", { revisionsRetained: KEPT })) as KvOutcome;
        t.equal(outcome.revision, (revisions[at] ?? 0) + 1, `${key}: revisions go on`);
        if (before[`state ${key}`] === KvState.deleted) counts.tombstones++;
      }
      counts.moved++;
    }
    t.ok(counts.moved > 15 && counts.retried > 4 && counts.aborted > 2, JSON.stringify(counts));
    t.ok(counts.leases > 20 && counts.tombstones > 10, JSON.stringify(counts));
    t.end();
  },
);

interface World {
  readonly source: Side;
  readonly target: Side;
  readonly move: Move;
  readonly world: { nowMs: number };
}

/** A source with these keys, and a target above the pool. */
function worldOf(keys: readonly string[], interval = TAIL): World {
  const world = { nowMs: 100 };
  const source = new Side(world, 0, 1, true);
  const target = new Side(world, 0, 9, false);
  for (const key of keys) source.do(set(key, "v"));
  return { source, target, move: new Move(source, target, interval), world };
}

const PLENTY = { maxBytes: 1 << 18, maxVisits: 1000 };

/** The kinds of commands of a move, as they would be sent. */
function commandOf(kind: string, move: Move, rest: object = {}): Command {
  const generation = rangeGeneration(4);
  return { kind, ...move.named, ...TAIL, generation, ...rest } as unknown as Command;
}

t.test(
  "P-094 P-100 each command of a move: once, again, of an older attempt, out of order",
  (t) => {
    const { source, target, move } = worldOf(INSIDE);
    const said = (side: Side, kind: string, rest: object = {}): string => {
      const { status, nextImport } = side.range(commandOf(`range-${kind}`, move, rest));
      return nextImport === 0 ? status : `${status} ${nextImport}`;
    };
    const older = { attempt: attempt(1) };
    const item = { key: "s/k", row: null, continues: false, history: [] };
    const items = (number: number, rest: object = {}) => {
      return { number, sourceLeaseMs: 1, copyAgeMs: 0, items: [item], ...rest };
    };
    const nothing = { keys: 0, digestLow: 0, digestHigh: 0 };
    // Nothing was opened or frozen.
    t.equal(said(target, "import", items(1)), "stale");
    t.equal(said(target, "close", { number: 1, ...nothing }), "stale");
    for (const kind of ["adopt", "drop", "unfreeze", "release"]) {
      t.equal(said(target, kind), "unchanged", kind);
    }
    t.equal(said(target, "freeze"), "not-owned");
    t.equal(said(source, "open"), "stale", "what is owned is not filled");
    // The target.
    move.attempt = attempt(2);
    t.equal(said(target, "open"), "done 1");
    t.equal(said(target, "open"), "unchanged 1");
    t.equal(said(target, "open", older), "stale");
    t.equal(said(target, "open", { endKey: "s/s" }), "invalid", "a move has one interval");
    t.equal(said(target, "import", items(2)), "gap 1");
    t.equal(said(target, "import", items(1, older)), "stale");
    t.equal(said(target, "import", items(1, { attempt: attempt(3) })), "stale");
    t.equal(said(target, "import", items(1, { moveId: moveId(78) })), "stale");
    t.equal(said(target, "import", items(1, { items: [{ ...item, key: "s/r" }] })), "invalid 1");
    t.equal(said(target, "import", items(1)), "done 2");
    t.equal(said(target, "import", items(1)), "unchanged 2");
    t.equal(said(target, "adopt"), "stale", "it is not closed");
    t.equal(said(target, "close", { number: 1, ...nothing }), "gap 2");
    t.equal(said(target, "close", { number: 2, ...nothing, keys: 1 }), "mismatch 2");
    t.equal(said(target, "close", { number: 2, ...nothing, digestLow: 1 }), "mismatch 2");
    t.equal(said(target, "close", { number: 2, ...nothing, digestHigh: 1 }), "mismatch 2");
    t.equal(said(target, "close", { number: 2, ...nothing, ...older }), "stale");
    t.equal(said(target, "close", { number: 2, ...nothing }), "closed 2");
    t.equal(said(target, "close", { number: 2, ...nothing }), "unchanged 2");
    t.equal(said(target, "open"), "closed 2");
    t.equal(said(target, "import", items(1)), "unchanged 2");
    t.equal(said(target, "import", items(2)), "stale");
    t.notOk(target.machine.owns("s/k"), "before the cut");
    t.equal(said(target, "adopt", older), "stale");
    t.equal(said(target, "drop", older), "stale");
    t.equal(said(target, "adopt"), "done");
    t.equal(said(target, "adopt"), "unchanged");
    t.equal(said(target, "drop"), "unchanged", "what was adopted is not dropped");
    t.ok(target.machine.owns("s/k"));
    t.equal(said(target, "open", { attempt: attempt(3) }), "stale");
    // The source.
    t.equal(said(source, "freeze"), "done");
    t.equal(said(source, "freeze"), "unchanged");
    t.equal(said(source, "freeze", older), "stale");
    t.equal(said(source, "freeze", { attempt: attempt(3) }), "not-owned", "to be unfrozen first");
    t.equal(said(source, "unfreeze"), "stale", "no later attempt than the one that froze it");
    t.equal(said(source, "unfreeze", { attempt: attempt(3) }), "done");
    t.ok(source.machine.ownership.isWhole);
    t.equal(said(source, "unfreeze", { attempt: attempt(3) }), "unchanged");
    t.equal(said(source, "freeze", { attempt: attempt(3) }), "done");
    t.equal(said(source, "release"), "stale", "of an older attempt");
    t.equal(said(source, "purge", { limit: 5 }), "unchanged", "nothing goes before the cut");
    move.attempt = attempt(3);
    t.equal(said(source, "release"), "done");
    t.equal(said(source, "release"), "unchanged");
    t.equal(said(source, "freeze"), "stale");
    t.equal(said(source, "unfreeze", { attempt: attempt(9) }), "unchanged");
    t.equal(said(source, "purge", { limit: 0 }), "invalid");
    t.equal(said(source, "open", { attempt: attempt(4) }), "unsettled");
    t.equal(said(source, "purge", { limit: 5 }), "more");
    t.equal(said(source, "purge", { limit: 5 }), "done");
    t.equal(said(source, "purge", { limit: 5 }), "unchanged");
    // Whatever a command holds, it has an outcome.
    for (const rest of [
      { startKey: "s/r", endKey: "s/h" },
      { startKey: "t/a" },
      { endKey: "s/a/b" },
      { keySpace: "" },
      { keySpace: "__svc:x" },
      { moveId: moveId(0) },
      { attempt: attempt(0) },
    ]) {
      t.equal(said(target, "open", rest), "invalid", JSON.stringify(rest));
      t.equal(said(source, "freeze", rest), "invalid", JSON.stringify(rest));
    }
    t.end();
  },
);

t.test("P-102 an item is a whole key or continues one; anything else is refused whole", (t) => {
  const { source, target, move } = worldOf(["s/h"]);
  for (let revision = 0; revision < 4; revision++) source.do(set("s/m", `${revision}`));
  move.begin();
  const slice = source.machine.openCopy(TAIL, () => source.leaseNowMs).next(PLENTY);
  if (slice === "overrun") return void t.fail("nothing changed");
  const whole = slice.items.find(({ key }) => key === "s/m");
  if (whole === undefined) return void t.fail("it is there");
  const [first, second] = whole.history;
  const { row: latest } = whole;
  const decoded = latest === null ? null : decodeKvRow(latest);
  if (decoded === null) return void t.fail("it is a row");
  const kept = [{ first: 0, count: 2 ** 32 - 1 }];
  const endless = encodeKvRow(rowWith(decoded, { revision: 2 ** 40, kept }));
  const refused = [
    [{ ...whole, key: "s/g" }],
    [{ ...whole, key: "s/r" }],
    [{ ...whole, key: "s/k/x" }],
    [{ ...whole, key: "" }],
    [{ ...whole, row: bytes("no row") }],
    [{ ...whole, history: [second, first] }],
    [{ ...whole, history: [first, first] }],
    [{ ...whole, history: [whole.row] }],
    [{ ...whole, history: [bytes("no row")] }],
    [{ ...whole, row: null }],
    [{ ...whole, continues: true }],
    [{ ...whole, row: null, continues: true }],
    [{ ...whole, row: endless, history: [] }],
    [whole, { ...whole, key: "s/g" }],
  ];
  for (const [at, items] of refused.entries()) {
    const { status, nextImport } = target.range(move.import(items, 100));
    t.strictSame([status, nextImport], ["invalid", 1], `case ${at}`);
    t.strictSame(valuesOf(target), [], `case ${at}: nothing was done`);
  }
  const head = { ...whole, history: [first] };
  const tail = { ...whole, row: null, continues: true, history: whole.history.slice(1) };
  t.equal(target.range(move.import([head], 100)).status, "done");
  t.equal(target.range(move.import([tail], 100, 2)).status, "done");
  t.equal(valuesOf(target).length, 4);
  t.equal(target.range(move.import([tail], 100, 3)).status, "done", "it may come again");
  t.equal(target.range(move.import([{ ...head, history: [] }], 100, 4)).keys, 1);
  t.equal(valuesOf(target).length, 1, "a whole item takes the place of all");
  t.equal(target.machine.dataBytes, bytesOf(target));
  t.end();
});

t.test("P-102 whatever a target has, it takes in the same in order and out of order", (t) => {
  const seen = { allNew: 0, mixed: 0 };
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Prng(seed);
    const world = { nowMs: 100 };
    const source = new Side(world, 0, 1, true);
    const sides = [0, 1].map((number) => {
      const target = new Side(world, 0, 9 + number, false);
      return { target, move: new Move(source, target, TAIL) };
    });
    for (const { move } of sides) move.begin();
    for (let number = 1; number <= 4; number++) {
      for (let change = 0; change < 6; change++) fill(source, random, INSIDE, world);
      const copy = source.machine.openCopy(TAIL, () => source.leaseNowMs);
      const slice = copy.next(PLENTY);
      copy.close();
      if (slice === "overrun") return void t.fail("nothing changed");
      const items = slice.items.filter(() => random.chance(1, 2));
      const known = new Set(valuesOf((sides[0] as (typeof sides)[0]).target).map(({ key }) => key));
      seen[items.some(({ key }) => known.has(key)) ? "mixed" : "allNew"] += items.length;
      const [inOrder, backwards] = sides.map(({ target, move }, at) => {
        const given = at === 0 ? items : [...items].reverse();
        const outcome = target.range(move.import(given, slice.leaseMs, number));
        const { digestLow, digestHigh } = target.machine.ownership.all()[0] ?? {};
        const rows = valuesOf(target).map(({ key, row }) => [key, row.split(" ")[1]]);
        return { outcome, digestLow, digestHigh, rows, dataBytes: target.machine.dataBytes };
      });
      t.strictSame(inOrder, backwards, `seed ${seed}, import ${number}`);
      for (const { target } of sides) t.equal(target.machine.dataBytes, bytesOf(target));
    }
  }
  t.ok(seen.allNew > 200 && seen.mixed > 200, JSON.stringify(seen));
  t.end();
});

t.test("P-101 a large key goes in parts; a change of it in between drops the rest", (t) => {
  const { source, target, move } = worldOf([]);
  const large = (): void => {
    for (let at = 0; at < 8; at++) {
      source.do(set("s/m", "x".repeat(3000), { revisionsRetained: 8 }));
    }
  };
  large();
  move.begin();
  const small = { maxBytes: 4000, maxVisits: 100 };
  t.notOk(move.give("next", small));
  t.notOk(move.give("next", small));
  source.do(set("s/m", "between", { revisionsRetained: 8 }));
  t.ok(move.give("next", small), "what is left of it is given again as a whole");
  t.equal(move.copy?.notedKeys, 1);
  large();
  let slices = 0;
  while (!move.give("nextNoted", small)) slices++;
  t.ok(slices >= 3, `${slices} slices`);
  move.freeze();
  t.equal(move.finish(small), "done");
  t.strictSame(
    insideOf(target).map(({ row }) => row.slice(row.indexOf(" "))),
    insideOf(source).map(({ row }) => row.slice(row.indexOf(" "))),
  );
  t.end();
});

t.test("P-102 T3 leases keep what they have left, ages are kept and never negative", (t) => {
  const at = { sourceLeaseMs: 1000, copyAgeMs: 250, nowMs: 40 };
  t.equal(carriedEnd(null, false, at), null);
  t.equal(carriedEnd(1001, false, at), 40 + 1 + 1000 + 3, "what runs goes on, and a margin");
  t.equal(carriedEnd(1000, false, at), 40, "it has just ended");
  t.equal(carriedEnd(990, false, at), 30, "and ten milliseconds ago");
  t.equal(carriedEnd(900, false, at), 0, "longer ago than the clock of the target runs");
  t.equal(carriedEnd(985, true, at), 25, "the age of a tombstone");
  t.equal(carriedEnd(1007, true, at), 40, "no age is negative");
  t.equal(carriedEnd(Number.MAX_SAFE_INTEGER, false, at), Number.MAX_SAFE_INTEGER);
  t.end();
});

t.test("P-102 a lease that somebody was told to have ended does not run on elsewhere", (t) => {
  const { source, target, move, world } = worldOf(["s/h"]);
  source.do(set("s/m", "v", { expiresMs: 50 }));
  source.do(set("s/q", "old", { expiresMs: 50 }));
  source.do(set("s/q", "new"));
  move.begin();
  t.ok(move.give("next", PLENTY));
  world.nowMs += 60;
  source.do({ kind: "advance-clock" });
  t.equal(source.machine.reads.kvGet("s/m", -1n, source.machine.leaseMs).type, 103);
  move.freeze();
  t.equal(move.finish(PLENTY), "done");
  const { reads, leaseMs } = target.machine;
  t.equal(reads.kvGet("s/m", -1n, leaseMs).type, 103, "it has ended there as well");
  t.equal(reads.kvGet("s/q", 0n, leaseMs).type, 103, "and so has an older revision");
  t.equal(reads.kvGet("s/q", -1n, leaseMs).type, 3);
  t.end();
});

t.test(
  "P-102 a lease of a group whose log stood still for long grows by no more than another",
  (t) => {
    const { source, target, move, world } = worldOf(["s/h"]);
    source.do(set("s/m", "v", { expiresMs: 60_000 }));
    const was = leasesOf(source, source.machine.leaseMs);
    world.nowMs += 40_000;
    move.begin();
    t.ok(move.give("next", PLENTY));
    move.freeze();
    t.equal(move.finish(PLENTY), "done");
    checkLeases(t, move, was, { moved: 0, retried: 0, aborted: 0, leases: 0, tombstones: 0 });
    t.equal(target.machine.reads.kvGet("s/m", -1n, target.machine.leaseMs).type, 3);
    t.end();
  },
);

t.test("T3 the stamps of a key do not fall: those that come along count", (t) => {
  const { source, target, move } = worldOf([]);
  for (let step = 0; step < 50; step++) source.do(set("s/m", "v"));
  const { lastModified } = source.machine.reads.kvGet("s/m", -1n, 0);
  move.begin();
  move.give("next", PLENTY);
  move.freeze();
  t.equal(move.finish(PLENTY), "done");
  const again = target.do(set("s/m", "w")) as KvOutcome;
  t.ok(again.lastModified.l >= lastModified.l, `${again.lastModified.l}`);
  t.end();
});

t.test("P-101 a copy looks at a bounded number of rows, and says when it lost track", (t) => {
  const many = Array.from({ length: 300 }, (_, at) => `s/k/${at}`);
  const { source, move } = worldOf(["s/h", ...many, "s/m"]);
  const copy = source.machine.openCopy(TAIL, () => source.leaseNowMs);
  let slices = 0;
  const keys: string[] = [];
  for (let isEnd = false; !isEnd; slices++) {
    const slice = copy.next({ maxBytes: 1 << 18, maxVisits: 20 });
    if (slice === "overrun") return void t.fail("nothing changed");
    t.ok(slice.visits <= 22);
    keys.push(...slice.items.map(({ key }) => key));
    ({ isEnd } = slice);
  }
  t.strictSame(keys, ["s/h", "s/m"]);
  t.ok(slices < 10, `it jumps over deeper buckets: ${slices}`);
  source.do(set("s/h", "w"));
  t.equal(copy.notedKeys, 1);
  source.do(remove("s/m"));
  t.equal(copy.notedKeys, 2);
  source.do(set("s/r", "w"));
  source.do(set("s/k/1", "w"));
  t.equal(copy.notedKeys, 2, "nobody else's keys");
  const noted = copy.nextNoted(PLENTY);
  t.match(noted, { isEnd: true, items: [{ key: "s/h" }, { key: "s/m" }] });
  const install = source.machine.beginRestore();
  const snapshot = source.machine.openSnapshot(1 << 20);
  for (let last = false; !last;) {
    const chunk = snapshot.next(1 << 16);
    if (chunk === "overrun") throw new Error("nothing changes meanwhile");
    install.take(chunk.bytes);
    last = chunk.last;
  }
  const count = source.machine.openCount(TAIL);
  source.machine.install(install);
  t.equal(copy.nextNoted(PLENTY), "overrun", "other rows took the place of those it watched");
  t.ok(count.overrun);
  copy.close();
  count.close();
  const fresh = source.machine.openCopy(TAIL, () => source.leaseNowMs);
  t.match(fresh.next(PLENTY), { isEnd: true });
  for (let at = 0; at < 100_001; at++) {
    const key = `s/i${at.toString(36)}`;
    source.one(source.machine.leaseMs, set(key, null));
    if (fresh.overrun) break;
  }
  t.equal(fresh.nextNoted(PLENTY), "overrun", "more names than are kept");
  t.ok(move);
  t.end();
});

t.test("P-101 what is counted follows each change behind the reading", (t) => {
  const { source } = worldOf(INSIDE);
  const random = new Prng(5);
  const world = { nowMs: 200 };
  const begun = source.machine.openCount(TAIL);
  for (let step = 0; step < 400; step++) {
    if (step % 5 === 0) begun.next(1);
    fill(source, random, [...INSIDE, ...OUTSIDE], world);
    world.nowMs = 200;
  }
  while (!begun.next(1000));
  const fresh = source.machine.openCount(TAIL);
  while (!fresh.next(1));
  t.strictSame(begun.counted, fresh.counted);
  t.ok(begun.counted.keys > 0);
  source.do(set("s/h", "other"));
  t.strictNotSame(begun.counted, { ...fresh.counted, digestLow: -1 });
  t.strictSame(begun.counted, fresh.counted, "both follow");
  t.end();
});

t.test("P-101 who asks again after the end of a count is told the same", (t) => {
  const { source } = worldOf(["s/h", "s/i"]);
  const count = source.machine.openCount(TAIL);
  while (!count.next(1000));
  source.do(set("s/m", "above all that was read"));
  t.ok(count.next(1000), "it is at its end");
  const fresh = source.machine.openCount(TAIL);
  while (!fresh.next(1000));
  t.strictSame(count.counted, fresh.counted);
  t.end();
});

t.test("P-105 a purge takes nothing of its neighbours, in slices of any size", (t) => {
  for (let limit = 1; limit <= 6; limit++) {
    const { source, move } = worldOf([...INSIDE, ...OUTSIDE, ...INSIDE, ...OUTSIDE]);
    move.freeze();
    const kept = outsideOf(source);
    source.range({ kind: "range-release", ...move.named });
    const slices = move.purge(source, limit);
    t.ok(slices >= (2 * INSIDE.length) / limit, `${slices} slices of ${limit}`);
    t.strictSame(insideOf(source), []);
    t.strictSame(outsideOf(source), kept);
    const [row] = source.machine.ownership.all();
    t.match(row, { state: "left", isPurged: true, purgedTo: null });
  }
  t.end();
});

t.test("P-104 what comes home is owned as ever, and pieces that left are joined", (t) => {
  const { source, target, move } = worldOf(INSIDE);
  move.begin();
  while (!move.give("next", PLENTY));
  move.freeze();
  t.equal(move.finish(PLENTY), "done");
  move.release(100);
  const states = (side: Side) =>
    side.machine.ownership.all().map(({ state }: OwnershipRow) => state);
  t.strictSame([states(source), states(target)], [["left"], ["here"]]);
  const home = new Move(target, source, { keySpace: "s", startKey: "s/k", endKey: "s/r" });
  home.begin();
  while (!home.give("next", PLENTY));
  home.freeze();
  t.equal(home.finish(PLENTY), "done");
  home.release(2);
  t.strictSame(states(target), ["here"], "above the pool nothing is kept of what left");
  t.ok(source.machine.owns("s/k"));
  t.notOk(source.machine.owns("s/h"));
  const rest = new Move(target, source, { keySpace: "s", startKey: "s/h", endKey: "s/k" });
  rest.begin();
  while (!rest.give("next", PLENTY));
  rest.freeze();
  t.equal(rest.finish(PLENTY), "done");
  rest.release(2);
  t.strictSame([states(source), states(target)], [[], []]);
  t.ok(source.machine.ownership.isWhole);
  t.strictSame(valuesOf(target), []);
  t.equal(target.machine.dataBytes, 0);
  t.end();
});
