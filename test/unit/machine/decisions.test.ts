/**
 * Decisions: golden tables that quote the rules of the contract, and random histories against the
 * naive models.
 */
import fc from "fast-check";
import t, { type Test } from "tap";
import { INT64_MAX, INT64_MIN } from "../../../src/base/int64.js";
import type {
  AllocationOutcome,
  BlockCursor,
  Command,
  Outcome,
} from "../../../src/machine/commands/command.js";
import { RowKind, generationPrefix, keySuccessor } from "../../../src/machine/store/keys.js";
import { keepRevision, trimRevisions } from "../../../src/machine/kv/kept-revisions.js";
import type { RevisionRun } from "../../../src/machine/kv/kv-row.js";
import { trimWhiteSpace } from "../../../src/machine/store/names.js";
import {
  Bench,
  allocate,
  bytes,
  collect,
  create,
  extend,
  extendGrant,
  giveBack,
  lock,
  lockNoted,
  remove,
  reserve,
  set,
  unlock,
  unlockGrant,
  update,
} from "../../doubles/machine/bench.js";
import { Model, say } from "../../doubles/machine/models.js";

/** Each step: rule, lease time, command, what is said. */
type Step = readonly [string, number, Command, string];

function runTable(t: Test, steps: readonly Step[]): Bench {
  const bench = new Bench();
  for (const [rule, leaseMs, command, expected] of steps) {
    t.equal(say(bench.one(leaseMs, command)), expected, `${rule} ${command.kind} at ${leaseMs}`);
  }
  return bench;
}

t.test("L1 to L13, L18, L19, P-060, P-072: transitions of a lock", (t) => {
  const bench = runTable(t, [
    ["L6", 0, extend("r", "a", 10), "lock 102 0"],
    ["L9", 0, unlock("r", "a"), "lock 102 0"],
    ["L1 L13", 0, lock("r", "a", 10), "lock 0 0"],
    ["L2", 5, lock("r", "a", 99), "lock 0 0"],
    ["L3", 9, lock("r", "b", 10), "lock 1 0"],
    ["L5", 9, extend("r", "b", 10), "lock 103 0"],
    ["L8", 9, unlock("r", "b"), "lock 103 0"],
    ["L4", 9, extend("r", "a", 1), "lock 2 0"],
    ["L4 T5 ended at its end", 10, extend("r", "a", 1), "lock 102 0"],
    ["L8 after its end", 10, unlock("r", "b"), "lock 103 0"],
    ["L7 after its end", 10, unlock("r", "a"), "lock 3 0"],
    ["L9 released", 10, unlock("r", "a"), "lock 102 0"],
    ["L1 L12", 10, lock("r", "b", 10), "lock 0 1"],
    ["L3 at end - 1", 19, lock("r", "a", 10), "lock 1 0"],
    ["L1 at the end", 20, lock("r", "a", 10), "lock 0 2"],
    ["L19 same owner again after the end", 30, lock("r", "a", 10), "lock 0 3"],
    ["L8 the former owner", 31, unlock("r", "b"), "lock 103 0"],
    ["clock never back: 1 counts as 31", 1, lock("r", "b", 10), "lock 1 0"],
    ["L18", 31, lock("", "a", 10), "lock 100 0"],
    ["L18", 31, lock("r", "", 10), "lock 100 0"],
    ["L18", 31, lock("x".repeat(1025), "a", 10), "lock 100 0"],
    ["L18", 31, lock("r", "o".repeat(1025), 10), "lock 100 0"],
    ["L18", 31, lock("r", "a", 0), "lock 100 0"],
    ["L18", 31, extend("r", "a", -1), "lock 100 0"],
    ["L18 1,024 bytes", 31, lock("é".repeat(512), "o".repeat(1024), 1), "lock 0 0"],
    ["L18 1,026 bytes", 31, lock("é".repeat(513), "o", 1), "lock 100 0"],
    ["reserved prefix allowed", 31, lock("__svc:x", "o", 1), "lock 0 0"],
    ["P-146 ill-formed", 31, lock("\ud800", "o", 1), "lock 100 0"],
  ]);
  const { reads } = bench.machine;
  t.match(reads.getLock("r", 39), { type: 4, token: 3n, leaseEndMs: 40, owner: bytes("a") }, "L10");
  t.match(reads.getLock("r", 40), { type: 102, token: 0n, owner: null, leaseEndMs: 0 }, "L11");
  t.equal(reads.getLock("", 1).type, 100, "L18");
  t.end();
});

t.test("Q13 Q17: of one grant alone, and with a note", (t) => {
  const bench = runTable(t, [
    ["Q17", 0, lockNoted("r", "a", 10, "one"), "lock 0 0"],
    ["L2 the note is of the grant", 1, lockNoted("r", "a", 10, "two"), "lock 0 0"],
    ["L3", 1, lockNoted("r", "b", 10, "two"), "lock 1 0"],
    ["Q13 another token", 2, extendGrant("r", "a", 10, { token: 1n }), "lock 103 0"],
    ["Q13 another token", 2, unlockGrant("r", "a", 1n), "lock 103 0"],
    ["L5", 2, extendGrant("r", "b", 10, { token: 0n }), "lock 103 0"],
    ["L8", 2, unlockGrant("r", "b", 0n), "lock 103 0"],
    ["Q13", 2, extendGrant("r", "a", 20, { token: 0n }), "lock 2 0"],
    ["Q17 too long", 2, lockNoted("s", "a", 10, "n".repeat(1025)), "lock 100 0"],
    ["Q17 too long", 2, extendGrant("r", "a", 9, { note: "n".repeat(1025) }), "lock 100 0"],
  ]);
  const note = (nowMs: number): string | null => text(bench.machine.reads.getLock("r", nowMs).note);
  t.equal(note(2), "one", "an extend that gives none leaves it");
  t.match(bench.machine.reads.getLock("r", 2), { leaseEndMs: 22 }, "refused ones changed nothing");
  bench.apply(3, extendGrant("r", "a", 20, { note: "three" }));
  t.equal(note(3), "three");
  bench.apply(4, extend("r", "a", 20));
  t.equal(note(4), "three", "nor does one of a program that knows no notes");
  bench.apply(4, extendGrant("r", "a", 20, { note: "" }));
  t.equal(note(4), "", "an empty one is one");
  t.equal(say(bench.one(5, unlockGrant("r", "a", 0n))), "lock 3 0");
  t.equal(say(bench.one(5, unlockGrant("r", "a", 0n))), "lock 102 0", "L9");
  t.equal(say(bench.one(5, lock("r", "a", 10))), "lock 0 1");
  t.equal(note(5), null, "a grant begins without");
  t.equal(say(bench.one(6, unlockGrant("r", "a", 0n))), "lock 103 0", "a late repeat");
  t.end();
});

t.test("L17 P-057 P-059: dropped locks lift the floor, held ones stay", (t) => {
  const bench = new Bench();
  bench.apply(0, lock("short", "a", 10), lock("long", "a", 1000));
  bench.apply(10, lock("short", "a", 10));
  bench.apply(20, lock("short", "b", 10));
  t.match(bench.one(35, collect(100, 10)), { dropped: 0 }, "within retention");
  t.match(bench.one(40, collect(100, 10)), { dropped: 1, next: null }, "end 30 + 10");
  t.equal(bench.machine.tokenFloor, 3n);
  t.equal(say(bench.one(41, lock("short", "a", 10))), "lock 0 3", "above the dropped one");
  t.equal(say(bench.one(41, lock("fresh", "a", 10))), "lock 0 3", "never seen");
  t.equal(say(bench.one(41, lock("long", "b", 10))), "lock 1 0", "still held");
  t.end();
});

t.test("S1 to S5, S10 to S17, P-078 to P-082: transitions of a sequence", (t) => {
  const block = (revision: number, lastHandedOut: bigint, incarnation = 0): BlockCursor => ({
    incarnation,
    revision,
    lastHandedOut,
  });
  const bench = runTable(t, [
    ["S17", 0, allocate("s", 1), "type 1"],
    ["S17", 0, update("s", { increment: 2n }), "type 1"],
    ["S17", 0, { kind: "delete-sequence", name: "s" }, "type 1"],
    ["S1", 0, create(""), "type 3"],
    ["S1", 0, create(" s"), "type 3"],
    ["S1", 0, create("__svc:s"), "type 3"],
    ["S2", 0, create("s", { increment: 0n }), "type 3"],
    ["S2", 0, create("s", { initialValue: 5n, maxValue: 4n }), "type 3"],
    ["S2", 0, create("s", { blockSize: 0 }), "type 3"],
    ["S2", 0, create("s"), "type 0 0 0 1   0 0"],
    ["S2", 0, create("s", { increment: 7n }), "type 2"],
    ["S3 S14", 0, reserve("s", 1), "type 0 0 1 10 1"],
    ["S9 hands back", 0, giveBack("s", block(1, 4n)), "type 0 none"],
    ["S9 twice, the same", 0, giveBack("s", block(1, 4n)), "type 0 none"],
    ["P-074 not handed out there", 0, giveBack("s", block(1, 3n)), "type 1"],
    ["S14 handing back is no revision", 0, reserve("s", 1), "type 0 4 1 10 2"],
    [
      "P-075 keyed takes over the open block",
      0,
      allocate("s", 2, "k", { cursor: block(2, 6n) }),
      "type 0 6 1 2 3",
    ],
    ["S11", 1, allocate("s", 2, "k", { cursor: block(2, 6n) }), "type 0 6 1 2 3"],
    ["S11 other count", 1, allocate("s", 3, "k"), "type 3"],
    [
      "P-074 a used cursor counts for nothing",
      1,
      allocate("s", 1, null, { cursor: block(2, 6n) }),
      "type 0 8 1 1 4",
    ],
    [
      "P-074 nothing is left of a durable one",
      1,
      allocate("s", 1, null, { cursor: block(4, 8n) }),
      "type 0 9 1 1 5",
    ],
    ["S11 end - 1", 99, allocate("s", 2, "k"), "type 0 6 1 2 3"],
    ["S11 end", 100, allocate("s", 2, "k"), "type 0 10 1 2 6"],
    ["S4", 100, allocate("s", 0), "type 3"],
    ["S12 nothing given", 100, update("s"), "type 3"],
    ["S12 value with remove", 100, update("s", { maxValue: 9n, removeMaxValue: true }), "type 3"],
    ["S12 value with remove", 100, update("s", { blockSize: 9, removeBlockSize: true }), "type 3"],
    ["S12 merged", 100, update("s", { maxValue: 11n }), "type 3"],
    ["S13", 100, update("s", { currentValue: 5000n, increment: 10n }), "type 0 5000 0 10   1 7"],
    ["S13 keys are cleared", 100, allocate("s", 1, "k"), "type 0 5000 10 1 8"],
    [
      "S12 removeMaxValue alone",
      100,
      update("s", { removeMaxValue: true }),
      "type 0 5010 0 10   2 9",
    ],
    ["S16", 100, { kind: "delete-sequence", name: "s" }, "type 0 none"],
    ["S16 own numbering, no keys", 100, create("s", { maxValue: 3n }), "type 0 0 0 1 3  0 0"],
    ["S5", 100, allocate("s", 4), "type 4"],
    ["S8 clamped", 100, reserve("s", 2), "type 0 0 1 3 1"],
    ["S5", 100, reserve("s", 1), "type 4"],
    ["S5 rest of the block", 100, reserve("s", 1, block(1, 2n)), "type 0 2 1 1 2"],
    ["S8 max(block, count)", 100, create("big", { blockSize: 2 }), "type 0 0 0 1  2 0 0"],
    ["S8", 100, reserve("big", 5), "type 0 0 1 5 1"],
    [
      "P-078 top",
      100,
      create("top", { initialValue: INT64_MAX - 2n }),
      `type 0 ${INT64_MAX - 2n} ${INT64_MAX - 2n} 1   0 0`,
    ],
    ["P-078", 100, allocate("top", 3), "type 4"],
    ["P-078", 100, allocate("top", 2147483647), "type 4"],
    ["P-078 exactly", 100, allocate("top", 2), `type 0 ${INT64_MAX - 2n} 1 2 1`],
    ["P-078", 100, reserve("top", 1), "type 4"],
    [
      "P-078 wide",
      100,
      create("wide", { initialValue: INT64_MIN, increment: INT64_MAX }),
      `type 0 ${INT64_MIN} ${INT64_MIN} ${INT64_MAX}   0 0`,
    ],
    ["P-078", 100, reserve("wide", 2), `type 0 ${INT64_MIN} ${INT64_MAX} 2 1`],
    ["P-078", 100, allocate("wide", 1), "type 4"],
  ]);
  t.equal(bench.machine.reads.getSequence("top")?.currentValue, INT64_MAX);
  t.equal(bench.machine.reads.getSequence("absent"), null);
  t.equal(bench.machine.reads.getSequenceBlock("big")?.before, 0n);
  t.equal(trimWhiteSpace("\u0085\u2003 a b\u3000\n"), "a b", "White_Space, not String.trim");
  t.equal(trimWhiteSpace("\ufeffa"), "\ufeffa", "U+FEFF is no White_Space");
  t.end();
});

t.test(
  "P-079 a refusal leaves the state digest as it was, and the exact rest is still there",
  (t) => {
    const bench = new Bench();
    bench.apply(0, create("s", { maxValue: 10n }), allocate("s", 3, "k"));
    const before = bench.machine.stateDigest;
    const chain = bench.machine.chainDigest;
    const refused = bench.apply(
      1,
      allocate("s", 8, "other"),
      reserve("s", 8),
      allocate("s", 9, "k"),
      allocate("t", 1),
    );
    t.strictSame(refused.map(say), ["type 4", "type 4", "type 3", "type 1"]);
    t.equal(bench.machine.stateDigest, before);
    t.not(bench.machine.chainDigest, chain, "the chain over entries goes on");
    t.equal(say(bench.one(1, allocate("s", 7, "other"))), "type 0 3 1 7 2");
    t.not(bench.machine.stateDigest, before);
    t.end();
  },
);

t.test("K1 to K10, P-058: transitions of a key", (t) => {
  const bench = runTable(t, [
    ["K9 missing", 0, remove("k"), "kv 103 0 0"],
    ["K8 missing", 0, { kind: "kv-extend", key: "k", expiresMs: 1 }, "kv 103 0 0"],
    ["K10 missing", 0, set("k", "x", { flags: 4 }), "kv 1 -1 0"],
    ["K5 never set", 0, set("k", "v0", { flags: 32, compareRevision: -1n }), "kv 0 0 1004"],
    ["K5 IfNotExists", 0, set("k", "x", { flags: 8 }), "kv 1 0 1004"],
    ["K5 IfExists and revision", 0, set("k", "v1", { flags: 36 }), "kv 0 1 1006"],
    [
      "K5 AND",
      0,
      set("k", "x", { flags: 48, compareRevision: 1n, compareValue: bytes("no") }),
      "kv 1 1 1006",
    ],
    ["K5 value", 0, set("k", null, { flags: 16, compareValue: bytes("v1") }), "kv 0 2 1008"],
    ["K5 null counts as empty", 0, set("k", "", { flags: 16 }), "kv 0 3 1009"],
    ["K9", 0, remove("k"), "kv 4 4 1010"],
    ["K9 K10 already deleted", 0, remove("k"), "kv 103 4 1010"],
    ["K10 tombstone's", 0, set("k", "x", { flags: 4 }), "kv 1 4 1010"],
    [
      "K5 tombstone's revision",
      0,
      set("k", "v5", { flags: 32, compareRevision: 4n, expiresMs: 10 }),
      "kv 0 5 1013",
    ],
    ["K5 at the end it is missing", 10, set("k", "x", { flags: 4 }), "kv 1 5 1013"],
    ["K9 expired", 10, remove("k"), "kv 103 0 0"],
    ["K8 expired", 10, { kind: "kv-extend", key: "k", expiresMs: 1 }, "kv 103 0 0"],
    ["K1 goes on", 10, set("k", "v6", { flags: 8 }), "kv 0 6 1017"],
    [
      "K8 extend keeps the revision",
      10,
      { kind: "kv-extend", key: "k", expiresMs: 5 },
      "kv 2 6 1018",
    ],
    ["K8", 10, set("k", "x", { expiresMs: -1 }), "kv 100 0 0"],
    ["K8", 10, { kind: "kv-extend", key: "k", expiresMs: 0 }, "kv 100 0 0"],
    ["K5 contradiction", 10, set("k", "x", { flags: 12 }), "kv 100 0 0"],
    ["K5 unknown bit", 10, set("k", "x", { flags: 64 }), "kv 100 0 0"],
    ["K18", 10, set("", "x"), "kv 100 0 0"],
    ["K18", 10, set("__svc:k", "x"), "kv 100 0 0"],
    ["K18", 10, set("k".repeat(1025), "x"), "kv 100 0 0"],
  ]);
  const { reads } = bench.machine;
  const seen = (revision: bigint, nowMs: number): string => {
    const reading = reads.kvGet("k", revision, nowMs);
    const value = reading.value === null ? "null" : new TextDecoder().decode(reading.value);
    return `${reading.type} ${reading.state} ${reading.revision} ${value}`;
  };
  t.equal(seen(-1n, 14), "3 1 6 v6", "K3 latest");
  t.equal(seen(-1n, 15), "103 0 0 null", "K3 expired at its end");
  t.equal(seen(6n, 14), "3 1 6 v6");
  t.equal(seen(5n, 14), "103 0 0 null", "K3 that revision expired");
  t.equal(seen(4n, 14), "103 0 0 null", "K3 a tombstone's revision");
  t.equal(seen(2n, 14), "3 1 2 null", "K7 holds nothing");
  t.equal(seen(3n, 14), "3 1 3 ", "K7 empty bytes");
  t.equal(seen(0n, 14), "103 0 0 null", "K2 four are kept");
  t.equal(seen(7n, 14), "103 0 0 null");
  t.equal(seen(-2n, 14), "100 0 0 null", "K3");
  t.equal(reads.kvExists("k", -1n, 14).type, 10);
  bench.one(14, remove("k"));
  t.equal(reads.kvGet("k", -1n, 14).state, 2, "K4");
  t.equal(reads.kvGet("other", -1n, 14).state, 0, "K4");
  t.end();
});

t.test(
  "K1 P-058 tombstones, expired values and their history leave after retention, in slices",
  (t) => {
    const bench = new Bench();
    for (const value of ["a", "b", "c"])
      bench.apply(0, set("dead", value), set("late", value, { expiresMs: 50 }));
    bench.apply(0, remove("dead"), set("alive", "x"));
    t.equal(say(bench.one(59, collect(100, 60))), "collected");
    t.equal(
      say(bench.one(59, set("dead", "d", { flags: 32, compareRevision: 3n }))),
      "kv 0 4 1006",
    );
    bench.one(59, remove("dead"));
    t.match(
      bench.one(118, collect(100, 60)),
      { dropped: 3, next: null },
      "late: 50 + 60, with three revisions",
    );
    t.equal(say(bench.one(118, set("late", "x", { flags: 36 }))), "kv 1 -1 0", "never set again");
    const slices: Outcome[] = [];
    let after: Uint8Array | null = null;
    do {
      const outcome = bench.one(119, collect(1, 60, after));
      slices.push(outcome);
      after = outcome.kind === "collected" ? outcome.next : null;
    } while (after !== null && slices.length < 50);
    t.equal(say(bench.one(119, set("dead", "x"))), `kv 0 0 ${1000 + bench.machine.appliedIndex}`);
    t.equal(say(bench.one(119, set("alive", "y"))), `kv 0 1 ${1000 + bench.machine.appliedIndex}`);
    t.ok(slices.length > 3, "one row at a time");
    t.end();
  },
);

const name = fc.constantFrom("a", "b", "c/d", "é");
const owner = fc.constantFrom("x", "y", "z");
const lease = fc.integer({ min: 0, max: 12 });
const value = fc.option(fc.constantFrom("", "v", "w"), { nil: null });
const big = (min: number, max: number): fc.Arbitrary<bigint> =>
  fc.bigInt({ min: BigInt(min), max: BigInt(max) });
const cursor = fc.option(
  fc.record({
    incarnation: fc.integer({ min: 0, max: 2 }),
    revision: fc.integer({ min: 0, max: 6 }),
    lastHandedOut: big(-2, 40),
  }),
  { nil: null },
);

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(name, owner, lease).map(([r, o, ms]) => lock(r, o, ms)) },
  { weight: 2, arbitrary: fc.tuple(name, owner, lease).map(([r, o, ms]) => extend(r, o, ms)) },
  { weight: 2, arbitrary: fc.tuple(name, owner).map(([r, o]) => unlock(r, o)) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        name,
        value,
        fc.integer({ min: 0, max: 70 }),
        lease,
        value,
        big(-1, 6),
        fc.integer({ min: 1, max: 4 }),
      )
      .map(([key, stored, bits, expiresMs, other, compareRevision, revisionsRetained]) =>
        set(key, stored, {
          // Conditions are rare, or hardly any set would succeed.
          flags: bits < 64 && bits % 3 === 0 ? bits : bits & 2,
          expiresMs,
          compareValue: other === null ? null : bytes(other),
          compareRevision,
          revisionsRetained,
        }),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(name, fc.integer({ min: 1, max: 4 })).map(([k, n]) => remove(k, n)),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        name,
        owner,
        lease,
        fc.constantFrom("", "n1", "n2"),
        fc.option(big(0, 4), { nil: null }),
      )
      .map(([n, by, ms, note, token]): Command => {
        if (note === "n1") return lockNoted(n, by, ms, note);
        if (note === "" && token !== null) return unlockGrant(n, by, token);
        return extendGrant(n, by, ms, { token, note: note === "" ? null : note });
      }),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(name, lease)
      .map(([key, expiresMs]): Command => ({ kind: "kv-extend", key, expiresMs })),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        name,
        big(-5, 5),
        big(0, 3),
        fc.option(big(-5, 40), { nil: null }),
        fc.option(fc.integer({ min: 0, max: 6 }), { nil: null }),
      )
      .map(([n, initialValue, increment, maxValue, blockSize]) =>
        create(n, { initialValue, increment, maxValue, blockSize }),
      ),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        name,
        fc.option(big(-3, 30), { nil: null }),
        fc.option(big(0, 3), { nil: null }),
        fc.option(big(0, 60), { nil: null }),
        fc.boolean(),
        cursor,
      )
      .map(([n, currentValue, increment, maxValue, removeMaxValue, at]) =>
        update(n, { currentValue, increment, maxValue, removeMaxValue, cursor: at }),
      ),
  },
  { weight: 1, arbitrary: name.map((n): Command => ({ kind: "delete-sequence", name: n })) },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        name,
        fc.integer({ min: 0, max: 3 }),
        fc.option(fc.constantFrom("k", "l", "m", "n", "o"), { nil: null }),
        cursor,
        fc.integer({ min: 1, max: 3 }),
      )
      .map(([n, count, key, at, keysRetainedMax]) =>
        allocate(n, count, key, { cursor: at, keysRetainedMax, keysRetainedMs: 9 }),
      ),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(name, fc.integer({ min: 0, max: 12 }), cursor)
      .map(([n, count, at]) => reserve(n, count, at)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(name, cursor)
      .map(([n, at]): Command => (at === null ? { kind: "advance-clock" } : giveBack(n, at))),
  },
  { weight: 1, arbitrary: fc.tuple(lease).map(([ms]) => collect(10_000, ms)) },
);

/**
 * Lease times move by small steps, so that ends are hit at end − 1, end and end + 1, and now and
 * then back.
 */
const history = fc.array(fc.tuple(fc.integer({ min: -2, max: 6 }), command), {
  minLength: 1,
  maxLength: 60,
});

t.test("P-056 P-057 P-058 P-060 P-077: random histories say what the naive models say", (t) => {
  const tokens = new Map<string, bigint>();
  let locked = 0;
  const run = (steps: readonly (readonly [number, Command])[]): void => {
    const bench = new Bench();
    const model = new Model();
    let nowMs = 0;
    tokens.clear();
    steps.forEach(([step, made], at) => {
      nowMs = Math.max(0, nowMs + step);
      const outcome = bench.one(nowMs, made);
      const expected = model.apply(nowMs, 1001 + at, made);
      if (say(outcome) !== expected)
        throw new Error(`${made.kind}: ${say(outcome)} is not ${expected}`);
      const isTry = made.kind === "try-lock" || made.kind === "lock-with-note";
      if (isTry && outcome.kind === "lock" && outcome.type === 0) {
        locked++;
        const last = tokens.get(made.resource) ?? -1n;
        if (outcome.token < last) throw new Error("a token went back");
        tokens.set(made.resource, outcome.token);
      }
      if (at % 7 === 0) bench.flush();
    });
    compareReads(bench, model);
  };
  fc.assert(fc.property(history, run), { numRuns: 1500 });
  t.ok(locked > 500, "locks were granted");
  t.end();
});

function text(given: Uint8Array | null): string | null {
  return given === null ? null : new TextDecoder().decode(given);
}

function compareReads(bench: Bench, model: Model): void {
  const { reads, leaseMs } = bench.machine;
  for (const key of ["a", "b", "c/d", "é"]) {
    for (let revision = -1; revision < 12; revision++) {
      const reading = reads.kvGet(key, BigInt(revision), leaseMs);
      const value = reading.value === null ? "null" : `=${new TextDecoder().decode(reading.value)}`;
      const said =
        reading.type === 3
          ? `${reading.revision} ${value} ${reading.leaseEndMs ?? 0}`
          : `none ${reading.state}`;
      const expected = model.kvGet(key, revision);
      if (said !== expected) throw new Error(`${key} r${revision}: ${said} is not ${expected}`);
    }
    const info = reads.getLock(key, leaseMs);
    const owned =
      info.owner === null
        ? "none"
        : `${text(info.owner)} ${info.token} ${info.leaseEndMs} ${text(info.note) ?? "-"}`;
    if (owned !== model.lockInfo(key))
      throw new Error(`${key}: ${owned} is not ${model.lockInfo(key)}`);
    const record = reads.getSequence(key);
    const described = say({ kind: "sequence", type: 0, record });
    const expected = model.describe(key);
    if (described !== `type 0 ${expected}`)
      throw new Error(`${key}: ${described} is not ${expected}`);
  }
}

t.test("P-071 a batch of n equals n batches of one in outcomes and state", (t) => {
  const run = (steps: readonly (readonly [number, Command])[], cuts: readonly boolean[]): void => {
    const single = new Bench();
    const batched = new Bench();
    const stamp = { n: 1, l: 1, c: 0 };
    const one: Outcome[] = [];
    const many: Outcome[] = [];
    let batch: Command[] = [];
    steps.forEach(([, made], at) => {
      single.machine.apply({ index: at + 1, term: 1, leaseMs: 5, stamp }, [made], one);
      batch.push(made);
      if (cuts[at % cuts.length] !== true && at < steps.length - 1) return;
      const index = batched.machine.appliedIndex + 1;
      batched.machine.apply({ index, term: 1, leaseMs: 5, stamp }, batch, many);
      batch = [];
    });
    const text = (list: readonly Outcome[]): string =>
      JSON.stringify(list, (_, v: unknown) => (typeof v === "bigint" ? `${v}n` : v));
    if (text(one) !== text(many)) throw new Error("outcomes differ");
    if (single.machine.stateDigest !== batched.machine.stateDigest)
      throw new Error("state differs");
  };
  fc.assert(fc.property(history, fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), run), {
    numRuns: 500,
  });
  t.pass("equal");
  t.end();
});

t.test("S11 forgetting by number: the newest entries of the bound are kept", (t) => {
  const bench = new Bench();
  bench.apply(0, create("s"));
  const said = (key: string, max: number): AllocationOutcome =>
    bench.one(
      0,
      allocate("s", 1, key, { keysRetainedMax: max, keysRetainedMs: 0 }),
    ) as AllocationOutcome;
  for (let at = 0; at < 20; at++) said(`k${at}`, 4);
  t.equal(said("k16", 4).before, 16n, "kept");
  t.equal(said("k15", 4).before, 20n, "forgotten, counts as new");
  t.equal(bench.memtable.rows < 20, true, "rows are bounded");
  t.end();
});

t.test("S11 S16 P-127 the collector takes entries that are over, and those of ended lives", (t) => {
  const bench = new Bench();
  bench.apply(0, create("s"), create("t"), create("u"));
  const keyed = (name: string, key: string, keysRetainedMs: number): Command =>
    allocate(name, 1, key, { keysRetainedMax: 0, keysRetainedMs });
  bench.apply(0, keyed("s", "a", 10), keyed("s", "b", 0), keyed("t", "a", 0), keyed("u", "a", 0));
  bench.apply(0, update("t", { increment: 2n }), { kind: "delete-sequence", name: "u" });
  const rowsOf = (kind: number): number => {
    let count = 0;
    const prefix = generationPrefix(1, 0) + String.fromCharCode(kind);
    bench.memtable.scan(prefix, keySuccessor(prefix), () => ++count > 0);
    return count;
  };
  t.equal(rowsOf(RowKind.sequenceKey), 4);
  t.match(bench.one(9, collect(100, 1000)), { dropped: 2, next: null }, "lives of t and u ended");
  t.equal(say(bench.one(9, keyed("s", "a", 10))), "type 0 0 1 1 1", "still remembered");
  t.match(bench.one(10, collect(100, 1000)), { dropped: 1, next: null }, "over at its end");
  t.equal(rowsOf(RowKind.sequenceKey), 1);
  t.equal(rowsOf(RowKind.sequenceOrder), 1);
  t.equal(say(bench.one(10, keyed("s", "b", 0))), "type 0 1 1 1 2");
  t.equal(say(bench.one(10, keyed("s", "a", 10))), "type 0 2 1 1 3", "counts as new");
  t.equal(rowsOf(RowKind.sequenceOrder), 2);
  for (const limit of [0, -1, 1.5, 10_001]) {
    t.match(bench.one(99, collect(limit, 0)), { dropped: 0, next: null });
  }
  t.end();
});

t.test("P-058 K2 runs of kept revisions say what a plain list says", (t) => {
  const listOf = (runs: readonly RevisionRun[]): number[] =>
    runs.flatMap(({ first, count }) => Array.from({ length: count }, (_, at) => first + at));
  const step = fc.record({
    gap: fc.constantFrom(0, 0, 0, 1, 3),
    keepMax: fc.integer({ max: 9, min: 0 }),
    drops: fc.integer({ max: 5, min: 1 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let runs: readonly RevisionRun[] = [];
      let list: number[] = [];
      let revision = 0;
      for (const { gap, keepMax, drops } of steps) {
        revision += gap;
        runs = keepRevision(runs, revision);
        list.push(revision);
        revision += 1;
        const { kept, dropped } = trimRevisions(runs, keepMax, drops);
        const excess = Math.min(drops, Math.max(0, list.length - keepMax));
        t.same(dropped, list.slice(0, excess));
        list = list.slice(excess);
        t.same(listOf(kept), list);
        const apart = kept.every((run, at) => {
          const before = kept[at - 1];
          return run.count > 0 && (before === undefined || before.first + before.count < run.first);
        });
        t.ok(apart, "runs ascend and do not touch");
        runs = kept;
      }
    }),
  );
  t.end();
});

t.test("P-058 K2 lowering the number of kept revisions, holes, and many of them", (t) => {
  const bench = new Bench();
  for (let at = 0; at < 40; at++)
    bench.apply(0, set("k", `${at}`, { revisionsRetained: 100, flags: at % 2 === 0 ? 0 : 2 }));
  const readable = (): string => {
    const found: number[] = [];
    for (let at = 0; at < 50; at++)
      if (bench.machine.reads.kvGet("k", BigInt(at), 0).type === 3) found.push(at);
    return found.join(" ");
  };
  const even = Array.from({ length: 20 }, (_, at) => at * 2);
  t.equal(readable(), [...even, 39].join(" "), "K6: odd ones are not kept, the latest is readable");
  bench.apply(0, set("k", "x", { revisionsRetained: 3 }));
  t.equal(readable(), "36 38 40");
  bench.apply(0, set("k", "x", { revisionsRetained: 1 }));
  t.equal(readable(), "41");
  for (let at = 42; at < 1000; at++)
    bench.apply(0, set("k", "x", { revisionsRetained: 10_000, flags: at % 2 === 0 ? 0 : 2 }));
  t.equal(bench.machine.reads.kvGet("k", 600n, 0).type, 3, "256 runs are kept");
  t.equal(bench.machine.reads.kvGet("k", 44n, 0).type, 103, "older ones are given up");
  for (const revisionsRetained of [0, -1, 0.5, NaN]) {
    t.equal(say(bench.one(0, set("k", "x", { revisionsRetained }))), "kv 100 0 0");
  }
  t.end();
});
