/**
 * Rows of locks with heirs: their bytes, what a snapshot, a backup, a restore and collection make
 * of them, and the bounds of what they may hold.
 */
import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { Prng } from "../../../../src/base/prng.js";
import { HEIRS_MAX, HEIRS_MAX_BYTES, HEIR_LEASE_MAX_MS } from "../../../../src/base/limits.js";
import type { Command, NewHeir } from "../../../../src/machine/commands/command.js";
import { contextOf } from "../../../../src/machine/decision/context.js";
import { applyCommand } from "../../../../src/machine/apply.js";
import { loadLock, successionOf } from "../../../../src/machine/locks/heirs.js";
import {
  type LockHeir,
  type Succession,
  decodeLockRow,
  successionLockRow,
  topToken,
} from "../../../../src/machine/locks/lock-row.js";
import { isOrphaned } from "../../../../src/machine/locks/succession.js";
import { restoredRow } from "../../../../src/machine/restoring/restored-rows.js";
import { isWholeRow } from "../../../../src/machine/snapshot/row-check.js";
import { RowKind, textToByteKey } from "../../../../src/machine/store/keys.js";
import { Bench, bytes, collect, lock, unlock } from "../../../doubles/machine/bench.js";

const UINT64_MAX = 2n ** 64n - 1n;
const INT64_MAX = 2n ** 63n - 1n;

function added(owner: string, more: Partial<NewHeir> = {}): NewHeir {
  return { owner: bytes(owner), waitId: 1n, attempt: 1n, leaseMs: 100, note: null, ...more };
}

function lockHeir(resource: string, owner: string, expiresMs: number, waitId = 7n): Command {
  const who = { resource, owner: bytes(owner), expiresMs };
  return { kind: "lock-heir", ...who, note: null, waitId, attempt: 1n };
}

function setHeirs(token: bigint, ...heirs: NewHeir[]): Command {
  const list = { token, kept: 0, added: heirs, horizonMs: 2000 };
  return { kind: "set-heirs", resource: "r", ...list };
}

function appendHeirs(token: bigint, ...heirs: NewHeir[]): Command {
  return { kind: "append-heirs", resource: "r", token, added: heirs, horizonMs: 2000 };
}

function rowBytes(bench: Bench, resource = "r"): Uint8Array | null {
  return bench.machine["groupRows"].get(RowKind.lock, textToByteKey(resource));
}

/** One that nothing is known of but a grant. */
function plainRow(random: Prng): Succession {
  const { isHeld, base, endMs } = inventedRow(random);
  const grant = { ...base, waitId: 0n, attempt: 0n };
  return { isHeld, base: grant, endMs, heirs: [], listTerm: 0, untilMs: 0, top: base.token };
}

/** Any row that the rules can leave. */
function inventedRow(random: Prng): Succession {
  const uint64 = (): bigint =>
    [0n, 1n, UINT64_MAX, BigInt(random.nextUint32())][random.below(4)] as bigint;
  const note = (): Uint8Array | null =>
    random.chance(1, 2) ? null : bytes("n".repeat(random.below(300)));
  const owner = (): Uint8Array => bytes("o".repeat(1 + random.below(200)));
  const isHeld = random.chance(3, 4);
  let token = BigInt(random.below(1000));
  const grant = () => ({
    token,
    owner: owner(),
    waitId: uint64(),
    attempt: uint64(),
    note: note(),
  });
  const base = isHeld
    ? grant()
    : { ...grant(), owner: bytes(""), waitId: 0n, attempt: 0n, note: null };
  const heirs: LockHeir[] = [];
  for (let left = isHeld ? random.below(4) : 0; left > 0; left--) {
    token += BigInt(1 + random.below(3));
    heirs.push({ ...grant(), leaseMs: 1 + random.below(HEIR_LEASE_MAX_MS) });
  }
  const times = {
    endMs: random.below(9999),
    untilMs: random.chance(1, 2) ? 0 : random.below(9999),
  };
  const top = random.chance(1, 9) ? INT64_MAX : token + BigInt(random.below(2));
  return {
    isHeld,
    base,
    heirs,
    listTerm: heirs.length > 0 ? 1 + random.below(9) : 0,
    ...times,
    top,
  };
}

t.test("P-126 P-128 a row is read as it was written, and damage is told or is another row", (t) => {
  const random = new Prng(5);
  const versions = new Map<number, number>();
  let whole = 0;
  const asWritten = (row: Uint8Array): boolean => {
    const decoded = decodeLockRow(row);
    if (decoded === null) return false;
    const again = successionLockRow(successionOf(decoded));
    if (Buffer.compare(again, row) !== 0) {
      throw new Error(`${Buffer.from(row).toString("hex")} is read as something else`);
    }
    return true;
  };
  for (let at = 0; at < 400; at++) {
    const row = random.chance(1, 3) ? plainRow(random) : inventedRow(random);
    const stored = successionLockRow(row).slice();
    versions.set(stored[0] as number, (versions.get(stored[0] as number) ?? 0) + 1);
    const decoded = decodeLockRow(stored);
    if (decoded === null) throw new Error("a row that was written is none");
    if (!isDeepStrictEqual(successionOf(decoded), row)) throw new Error("it is another one");
    for (let cut = 0; stored[0] === 3 && cut < stored.length; cut++) {
      if (decodeLockRow(stored.subarray(0, cut)) !== null) throw new Error(`cut at ${cut}`);
    }
    for (let times = 0; times < 40; times++) {
      const changed = stored.slice();
      const place = random.chance(1, 2) ? random.below(40) : random.below(changed.length);
      changed[place % changed.length] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)] as number;
      if (asWritten(changed)) whole++;
      if (isWholeRow(RowKind.lock, changed) !== (decodeLockRow(changed) !== null)) t.fail("check");
    }
  }
  for (const version of [1, 2, 3]) t.ok((versions.get(version) ?? 0) >= 20, `version ${version}`);
  t.ok(whole > 500 && whole < 15_900, "some are rows");
  t.end();
});

t.test("Q15 a row without heirs and without a repeatable wait is written as it always was", (t) => {
  const [with3, without] = [new Bench(), new Bench()];
  with3.apply(0, lockHeir("r", "a", 100));
  with3.apply(1, setHeirs(0n, added("b")));
  t.equal(rowBytes(with3)?.[0], 3);
  with3.apply(2, unlock("r", "a"), unlock("r", "b"));
  t.equal(rowBytes(with3)?.[0], 3, "U is not over");
  with3.apply(5000, lock("r", "c", 100), unlock("r", "c"), lock("r", "c", 7));
  without.apply(0, lock("r", "a", 100), unlock("r", "a"), lock("r", "b", 100), unlock("r", "b"));
  without.apply(5000, lock("r", "c", 100), unlock("r", "c"), lock("r", "c", 7));
  t.strictSame(rowBytes(with3), rowBytes(without));
  t.end();
});

t.test(
  "P-057 P-059 L17 collection keeps what heirs may hold, and lifts the floor above all of it",
  (t) => {
    const bench = new Bench();
    bench.apply(0, lockHeir("r", "a", 10));
    bench.apply(0, setHeirs(0n, added("b"), added("c")));
    t.match(bench.one(2099, collect(10, 0)), { dropped: 0 }, "the list is not over");
    t.match(bench.one(2104, collect(10, 5)), { dropped: 0 }, "nor is what follows it");
    t.match(bench.one(2105, collect(10, 5)), { dropped: 1 });
    t.equal(bench.machine.tokenFloor, 3n, "above the heirs");
    t.equal(bench.machine.collected.locksMs >= 10, true);
    t.match(bench.one(2105, lockHeir("r", "b", 10)), { type: 0, token: 3n });
    t.end();
  },
);

t.test("P-039 P-057 a snapshot has the heirs, and counts the tokens that are named", (t) => {
  const bench = new Bench();
  bench.apply(0, lockHeir("r", "a", 1000));
  bench.apply(0, setHeirs(0n, added("b", { note: bytes("n") }), added("c")));
  const other = new Bench();
  const source = bench.machine.openSnapshot(1 << 20);
  const sink = other.machine.beginRestore();
  for (let isLast = false; !isLast;) {
    const chunk = source.next(1 << 16);
    if (chunk === "overrun") throw new Error("it is small");
    t.not(sink.take(chunk.bytes), "damaged");
    isLast = chunk.last;
  }
  source.close();
  t.equal(sink.highestToken, 2n);
  other.machine.install(sink);
  t.strictSame(rowBytes(other), rowBytes(bench));
  t.strictSame(other.machine.reads.succession("r"), bench.machine.reads.succession("r"));
  t.end();
});

t.test("P-137 T7 a restored list is orphaned, whatever the term, and ends when it did", (t) => {
  const bench = new Bench();
  bench.term = 5;
  bench.apply(0, lockHeir("r", "a", 1000), lock("s", "a", 1000));
  bench.apply(0, setHeirs(0n, added("b")));
  const order = {
    ...{ clusterId: "new", ordinal: 1, sequenceSkip: 0n },
    earlier: { tokenFloor: 0n, ephemeralFloor: 0n, incarnation: 0 },
    end: { tokenFloor: 0n, ephemeralFloor: 0n, incarnation: 0, term: 1 },
  };
  const plain = rowBytes(bench, "s") as Uint8Array;
  t.equal(restoredRow(RowKind.lock, plain, order), plain, "nothing is known of heirs");
  const restored = restoredRow(RowKind.lock, rowBytes(bench) as Uint8Array, order);
  if (typeof restored === "string") throw new Error(restored);
  const before = bench.machine.reads.succession("r") as Succession;
  bench.machine.rewrite(({ rows }) => rows.put(RowKind.lock, textToByteKey("r"), restored));
  const after = bench.machine.reads.succession("r") as Succession;
  t.strictSame({ ...after, listTerm: before.listTerm }, before);
  t.equal(topToken(restored), 1n);
  for (const term of [5, 6, 2 ** 50]) {
    t.ok(isOrphaned(after, { term, nowMs: 2099 }), `term ${term}`);
    t.notOk(isOrphaned(after, { term, nowMs: 2100 }));
  }
  t.match(bench.one(1500, lock("r", "x", 10)), { type: 1 }, "its heir may hold it");
  t.match(bench.one(2100, lock("r", "x", 10)), { type: 0, token: 2n });
  t.end();
});

t.test("11 lists have a bound, and nobody who may not be an heir is one", (t) => {
  const bench = new Bench();
  bench.apply(0, lockHeir("r", "a", 100_000));
  const status = (command: Command): unknown => {
    const before = rowBytes(bench);
    const outcome = bench.one(0, command) as { status?: string };
    if (outcome.status !== "written") t.equal(rowBytes(bench), before, "nothing is written");
    return outcome.status;
  };
  const many = (count: number, from = 0): NewHeir[] =>
    Array.from({ length: count }, (_, at) => added(`h${from + at}`));
  t.equal(status(setHeirs(0n, ...many(HEIRS_MAX + 1))), "invalid");
  const wrong: Partial<NewHeir>[] = [
    ...[{ owner: bytes("") }, { owner: bytes("x".repeat(1025)) }, { waitId: 0n }],
    ...[{ leaseMs: 0 }, { leaseMs: -1 }, { leaseMs: HEIR_LEASE_MAX_MS + 1 }],
    { note: bytes("x".repeat(1025)) },
  ];
  for (const more of wrong) t.equal(status(setHeirs(0n, added("h", more))), "invalid");
  t.equal(status({ ...setHeirs(0n), resource: "" } as Command), "invalid");
  t.equal(status(setHeirs(0n, added("h", { leaseMs: HEIR_LEASE_MAX_MS }))), "written");
  t.equal(status(setHeirs(0n, ...many(HEIRS_MAX))), "written");
  const last = (): bigint => bench.machine.reads.succession("r")?.heirs.at(-1)?.token ?? 0n;
  t.equal(status(appendHeirs(last(), added("one more"))), "stale", "there are as many as may be");
  const large = added("large", { note: bytes("x".repeat(1000)) });
  const isOwner = (at: number): NewHeir => ({ ...large, owner: bytes(`l${at}`) });
  const fits = Math.floor(HEIRS_MAX_BYTES / 1100);
  t.equal(status(setHeirs(0n, ...Array.from({ length: fits }, (_, at) => isOwner(at)))), "written");
  t.equal(status(appendHeirs(last(), isOwner(90), isOwner(91), isOwner(92))), "stale");
  t.equal(status(appendHeirs(last(), added("small"))), "written");
  t.end();
});

t.test("P-057 no heir is named above the largest token", (t) => {
  const bench = new Bench();
  bench.apply(0, lockHeir("r", "a", 1000));
  const { machine } = bench;
  const record = { ...machine.record(), tokenFloor: 0n };
  const context = {
    ...contextOf(machine["groupRows"], machine.ownership, record),
    ...{ meta: machine.meta, term: 1, tokenCeiling: 2n },
  };
  t.match(applyCommand(context, setHeirs(0n, added("b"), added("c"), added("d"))), {
    status: "stale",
  });
  t.match(applyCommand(context, setHeirs(0n, added("b"), added("c"))), { status: "written" });
  t.match(applyCommand(context, { ...setHeirs(0n), kept: 0 } as Command), { status: "written" });
  t.match(applyCommand(context, unlock("r", "a")), { type: 3 });
  t.match(applyCommand(context, lockHeir("r", "x", 10)), { type: 99 }, "they are used up");
  t.equal(loadLock(machine["groupRows"], textToByteKey("r"))?.succession?.top, 2n);
  t.end();
});
