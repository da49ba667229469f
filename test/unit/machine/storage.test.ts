/**
 * Rows through memory, flush, crash and restart: the memtable against a flat model, replay,
 * snapshots, generations, names.
 */
import fc from "fast-check";
import t from "tap";
import { prefixSuccessor } from "../../../src/base/bytes.js";
import { NO_PLACEMENT, partitionId } from "../../../src/base/ids.js";
import { STORE_KEY_MAX_BYTES } from "../../../src/ports.js";
import type { Command, Outcome } from "../../../src/machine/commands/command.js";
import {
  RowKind,
  byteKeyToText,
  fromByteKey,
  generationPrefix,
  historyKey,
  keySuccessor,
  nameKey,
  rangeKey,
  readUint32Key,
  sequenceKeyKey,
  textToByteKey,
  toByteKey,
  uint32Key,
  uint53Key,
} from "../../../src/machine/store/keys.js";
import { Machine } from "../../../src/machine/machine.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import { KernelSorter } from "../../../src/machine/store/kernel-sorter.js";
import { RowEntry, plainSorter } from "../../../src/machine/store/row-table.js";
import { Prng } from "../../../src/base/prng.js";
import { createKernels } from "../../../src/wasm/kernels.js";
import { eraseGroup } from "../../../src/machine/snapshot/restore.js";
import type { SnapshotChunk } from "../../../src/machine/snapshot/source.js";
import {
  Bench,
  allocate,
  collect,
  create,
  lock,
  remove,
  set,
  unlock,
  update,
} from "../../doubles/machine/bench.js";
import { FakeStore, flush } from "../../doubles/machine/fake-store.js";

const byteKey = fc
  .uint8Array({ minLength: 1, maxLength: 3 })
  .map((bytes) => toByteKey(bytes.map((byte) => (byte % 5 === 0 ? 255 : byte % 4))));

/** Bytes at the carry, mostly. */
const edgeBytes = fc
  .array(fc.constantFrom(0, 1, 97, 0xfe, 0xff, 0xff), { maxLength: 5 })
  .map((list) => Uint8Array.from(list));

type MemtableStep =
  | { readonly kind: "put" | "delete" | "scan"; readonly key: string; readonly other: string }
  | { readonly kind: "freeze" | "land" | "fail" };

const memtableStep: fc.Arbitrary<MemtableStep> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({ kind: fc.constant("put" as const), key: byteKey, other: byteKey }),
  },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("delete" as const), key: byteKey, other: byteKey }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("scan" as const), key: byteKey, other: byteKey }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("freeze" as const, "land" as const, "fail" as const),
    }),
  },
);

t.test("P-119 layers equal a flat model for gets, scans and flushes that fail once", (t) => {
  let immutableScans = 0;
  const run = (steps: readonly MemtableStep[]): void => {
    const store = new FakeStore();
    const memtable = new Memtable({ store, cacheBytes: 2000 });
    const flat = new Map<string, number>();
    let pending: ReturnType<Memtable["freeze"]> | null = null;
    let counter = 0;
    for (const step of steps) {
      switch (step.kind) {
        case "put": {
          const value = new Uint8Array([counter++ & 0xff]);
          if (memtable.get(step.key) === null) memtable.insert(step.key, value);
          else memtable.put(step.key, value);
          flat.set(step.key, value[0] as number);
          break;
        }
        case "delete":
          memtable.delete(step.key);
          flat.delete(step.key);
          break;
        case "scan":
          if (memtable.hasImmutable) immutableScans++;
          compareScan(memtable, flat, step.key, step.other);
          break;
        case "freeze":
          pending ??= memtable.freeze();
          break;
        case "fail":
          // The store was full: nothing was written, the table stays, the host tries again later.
          break;
        case "land":
          if (pending === null) break;
          store.write(pending.changes, () => undefined);
          memtable.dropImmutable();
          pending = null;
          break;
      }
    }
    for (const key of [...flat.keys(), "\0", "\xff"]) {
      if ((memtable.get(key)?.[0] ?? -1) !== (flat.get(key) ?? -1)) throw new Error("get differs");
    }
    compareScan(memtable, flat, "", null);
    if (pending !== null) {
      store.write(pending.changes, () => undefined);
      memtable.dropImmutable();
    }
    flush(memtable, store);
    if (store.size !== flat.size) throw new Error("the store holds other rows");
    compareScan(new Memtable({ store }), flat, "", null);
  };
  fc.assert(fc.property(fc.array(memtableStep, { maxLength: 120 }), run), { numRuns: 800 });
  t.ok(immutableScans > 20, "scans saw an immutable table");
  t.end();
});

function compareScan(
  memtable: Memtable,
  flat: Map<string, number>,
  first: string,
  last: string | null,
): void {
  const expected = [...flat.keys()]
    .filter((key) => key >= first && (last === null || key < last))
    .sort();
  const seen: string[] = [];
  memtable.scan(first, last, (key, value) => {
    if (value[0] !== flat.get(key)) throw new Error("a scan showed an old value");
    seen.push(key);
    return true;
  });
  if (seen.join() !== expected.join())
    throw new Error(`scan gave ${seen.length} of ${expected.length} rows`);
  let first2 = 0;
  memtable.scan(first, last, () => ++first2 < 2);
  if (first2 !== Math.min(2, expected.length)) throw new Error("a scan did not stop");
}

t.test("P-106 a group is erased without reading what its rows hold", (t) => {
  const asked: boolean[] = [];
  class WatchedStore extends FakeStore {
    override scan(...[first, last, visit, keysOnly]: Parameters<FakeStore["scan"]>): void {
      asked.push(keysOnly === true);
      super.scan(first, last, (key, value) => visit(key, keysOnly ? new Uint8Array(0) : value));
    }
  }
  const store = new WatchedStore();
  const memtable = new Memtable({ store });
  const keyOf = (at: number): string => `${generationPrefix(1, 1)}${uint32Key(at)}`;
  for (let at = 0; at < 30; at++) memtable.insert(keyOf(at), new Uint8Array(9));
  flush(memtable, store);
  for (let at = 20; at < 40; at++) memtable.put(keyOf(at), new Uint8Array(7));
  memtable.put(generationPrefix(2, 1), new Uint8Array(7));
  asked.length = 0;
  const erased: number[] = [];
  do erased.push(eraseGroup(memtable, 1, 15));
  while ((erased.at(-1) ?? 0) > 0);
  t.same(erased, [15, 15, 10, 0]);
  t.ok(asked.length > 0 && asked.every((keysOnly) => keysOnly));
  flush(memtable, store);
  t.equal(store.size, 1, "of another group");
  t.end();
});

t.test("P-119 a change during a scan and a second freeze are bugs and say so", (t) => {
  const memtable = new Memtable({ store: new FakeStore() });
  memtable.put("a", new Uint8Array(1));
  t.throws(
    () => memtable.scan("", null, () => (memtable.put("b", new Uint8Array(1)), true)),
    /no row changes/,
  );
  memtable.freeze();
  t.throws(() => memtable.freeze(), /one table is immutable/);
  t.end();
});

/** A command of every kind that writes rows, chosen by number. */
function commandFor(pick: number): Command {
  const n = pick % 7;
  switch (pick % 11) {
    case 0:
      return lock(`r${n}`, "a", 3 + n);
    case 1:
      return unlock(`r${n}`, "a");
    case 2:
    case 3:
      return set(`k/${n}`, `v${pick}`, { expiresMs: n > 4 ? n : 0, flags: n === 3 ? 2 : 0 });
    case 4:
      return remove(`k/${n}`);
    case 5:
      return create(`s${n}`);
    case 6:
      return allocate(`s${n}`, 1 + (n % 3), `key${pick % 5}`);
    case 7:
      return { kind: "reserve-block", name: `s${n}`, count: 2, defaultBlockSize: 5, cursor: null };
    case 8:
      return update(`s${n}`, { currentValue: BigInt(pick) });
    case 9:
      return { kind: "delete-sequence", name: `s${n}` };
    default:
      return collect(1 + n, 4);
  }
}

interface Logged {
  readonly leaseMs: number;
  readonly commands: readonly Command[];
}

function applyLogged(machine: Machine, log: readonly Logged[], upTo: number): void {
  while (machine.appliedIndex < upTo) {
    const index = machine.appliedIndex + 1;
    const { leaseMs, commands } = log[index - 1] as Logged;
    if (commands.length === 0 && index % 2 === 0) machine.applyEmpty({ index, term: 1 });
    else if (commands.length === 0)
      machine.applyMembership({ index, term: 1 }, new Uint8Array([index]), NO_PLACEMENT);
    else machine.apply({ index, term: 1, leaseMs, stamp: { n: 1, l: index, c: 0 } }, commands, []);
  }
}

function allRows(memtable: Memtable, machine: Machine): string {
  return rowList(memtable, machine).join("\n");
}

function rowList(memtable: Memtable, machine: Machine): readonly string[] {
  const prefix = generationPrefix(machine.group, machine.record().generation);
  const rows: string[] = [];
  memtable.scan(prefix, keySuccessor(prefix), (key, value) => {
    rows.push(`${key.slice(prefix.length)}=${toByteKey(value)}`);
    return true;
  });
  return rows;
}

const log = fc.array(
  fc.record({
    leaseMs: fc.integer({ min: 0, max: 40 }),
    commands: fc.array(fc.nat(200).map(commandFor), { maxLength: 6 }),
  }),
  { minLength: 1, maxLength: 40 },
);

t.test(
  "P-028 P-117 a crash at any entry, with flushes anywhere: replay ends in the same state",
  (t) => {
    let replayed = 0;
    const run = (entries: readonly Logged[], flushAt: readonly number[], crashAt: number): void => {
      const straight = new Bench();
      applyLogged(straight.machine, entries, entries.length);
      let store = new FakeStore();
      let bench = new Bench(store);
      const crash = crashAt % (entries.length + 1);
      for (let index = 1; index <= entries.length; index++) {
        applyLogged(bench.machine, entries, index);
        if (flushAt.includes(index)) {
          const immutable = bench.memtable.freeze();
          const group = immutable.groups[0];
          if (group?.appliedIndex !== index) throw new Error("the freeze names the applied index");
          store.write(immutable.changes, () => undefined);
          if (index % 3 !== 0) bench.memtable.dropImmutable();
          else bench = new Bench(store);
        }
        if (index !== crash) continue;
        store = store.copy();
        bench = new Bench(store);
        replayed += index - bench.machine.appliedIndex;
      }
      applyLogged(bench.machine, entries, entries.length);
      if (bench.machine.chainDigest !== straight.machine.chainDigest)
        throw new Error("chains differ");
      if (bench.machine.stateDigest !== straight.machine.stateDigest)
        throw new Error("digests differ");
      if (allRows(bench.memtable, bench.machine) !== allRows(straight.memtable, straight.machine)) {
        throw new Error("rows differ");
      }
    };
    fc.assert(
      fc.property(log, fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 5 }), fc.nat(), run),
      { numRuns: 400 },
    );
    t.ok(replayed > 100, "entries were replayed");
    const bench = new Bench();
    bench.apply(0, lock("r", "a", 1));
    const stamp = { n: 1, l: 1, c: 0 };
    t.throws(
      () => bench.machine.apply({ index: 3, term: 1, leaseMs: 0, stamp }, [], []),
      /right after/,
    );
    t.throws(() => bench.machine.applyEmpty({ index: 1, term: 1 }), /right after/);
    t.end();
  },
);

function takeSnapshot(bench: Bench, maxBytes: number, between: () => void): SnapshotChunk[] {
  const source = bench.machine.openSnapshot(1 << 20);
  const chunks: SnapshotChunk[] = [];
  for (;;) {
    const chunk = source.next(maxBytes);
    if (chunk === "overrun") throw new Error("overrun");
    chunks.push(chunk);
    if (chunk.last) return chunks;
    between();
  }
}

function restoreInto(bench: Bench, chunks: readonly SnapshotChunk[]): void {
  const sink = bench.machine.beginRestore();
  chunks.forEach((chunk, at) => {
    const result = sink.take(chunk.bytes);
    if (!result.ok) throw new Error(result.message);
    if ((result.value === "done") !== (at === chunks.length - 1))
      throw new Error("end of snapshot");
    if (at % 2 === 0) bench.flush();
  });
  bench.machine.install(sink);
}

t.test(
  "P-037 P-039 P-041 a snapshot taken while writes go on is the state at its index, whole",
  (t) => {
    let chunksSeen = 0;
    const run = (entries: readonly Logged[], cut: number, maxBytes: number): void => {
      const at = cut % (entries.length + 1);
      const original = new Bench();
      applyLogged(original.machine, entries, at);
      if (cut % 2 === 0) original.flush();
      const rows = allRows(original.memtable, original.machine);
      const digest = original.machine.chainDigest;
      const chunks = takeSnapshot(original, maxBytes, () => {
        const next = Math.min(original.machine.appliedIndex + 1, entries.length);
        applyLogged(original.machine, entries, next);
        if (next % 4 === 0) original.flush();
      });
      chunksSeen += chunks.length;
      const other = new Bench();
      other.apply(1, set("k/0", "old"), lock("stale", "x", 100), create("old"));
      if (at > 0) {
        restoreInto(other, chunks);
        if (allRows(other.memtable, other.machine) !== rows) throw new Error("rows differ");
        if (other.machine.chainDigest !== digest) throw new Error("digest differs");
        while (other.machine.sweep(3) > 0);
        other.flush();
        const restarted = new Bench(other.store.copy());
        if (allRows(restarted.memtable, restarted.machine) !== rows)
          throw new Error("rows differ after restart");
        if (restarted.store.size !== rowList(restarted.memtable, restarted.machine).length + 1)
          throw new Error("old rows are left");
        applyLogged(original.machine, entries, entries.length);
        applyLogged(restarted.machine, entries, entries.length);
        if (restarted.machine.chainDigest !== original.machine.chainDigest)
          throw new Error("later digests differ");
        if (restarted.machine.tokenFloor !== original.machine.tokenFloor)
          throw new Error("floors differ");
      }
    };
    fc.assert(fc.property(log, fc.nat(), fc.integer({ min: 1, max: 400 }), run), { numRuns: 250 });
    t.ok(chunksSeen > 500, "snapshots had chunks");
    t.end();
  },
);

t.test("P-040 damaged, missing, repeated, foreign and mixed chunks are refused", (t) => {
  const bench = new Bench();
  for (let pick = 0; pick < 60; pick++) bench.apply(1, commandFor(pick));
  const chunks = takeSnapshot(bench, 150, () => undefined);
  const others = takeSnapshot(bench, 150, () => undefined);
  t.ok(chunks.length > 4);
  t.strictSame(
    chunks.map((chunk) => chunk.bytes),
    others.map((chunk) => chunk.bytes),
    "equal states, equal bytes",
  );
  bench.apply(1, set("k/0", "another"));
  const later = takeSnapshot(bench, 150, () => undefined);
  const verdict = (list: readonly (Uint8Array | undefined)[], group = 1): string => {
    const target = new Bench(new FakeStore(), group);
    const sink = target.machine.beginRestore();
    for (const chunk of list) {
      if (chunk === undefined) continue;
      const result = sink.take(chunk);
      if (!result.ok) {
        t.equal(sink.take(chunk).ok, false, "a broken restore stays broken");
        t.throws(() => target.machine.install(sink), /all of it was taken/);
        return "damaged";
      }
    }
    return sink.finished() === null ? "unfinished" : "done";
  };
  const bytes = chunks.map((chunk) => chunk.bytes);
  t.equal(verdict(bytes), "done");
  t.equal(verdict(bytes, 2), "damaged", "of another group");
  t.equal(verdict(bytes.slice(1)), "damaged", "skipped");
  t.equal(verdict([bytes[0], bytes[0]]), "damaged", "repeated");
  t.equal(verdict(bytes.slice(0, -1)), "unfinished");
  const mixed = bytes.map((chunk, at) => (at === bytes.length - 1 ? later[at]?.bytes : chunk));
  t.equal(verdict(mixed), "damaged", "the digest covers everything");
  for (let at = 0; at < (bytes[1]?.length ?? 0); at++) {
    const flipped = (bytes[1] as Uint8Array).slice();
    flipped[at] = (flipped[at] as number) ^ 4;
    t.equal(verdict([bytes[0], flipped]), "damaged");
    t.equal(verdict([bytes[0], (bytes[1] as Uint8Array).slice(0, at)]), "damaged");
  }
  t.end();
});

t.test("P-041 a group that is made again over its rows goes on with its generations", (t) => {
  const source = new Bench();
  for (let pick = 0; pick < 40; pick++) source.apply(1, commandFor(pick));
  const chunks = takeSnapshot(source, 100, () => undefined);
  const first = new Bench();
  first.apply(1, set("of a former life", "x"));
  const sink = first.machine.beginRestore();
  for (const chunk of chunks) sink.take(chunk.bytes);
  first.machine.install(sink);
  first.flush();
  // It leaves this node, before the rows of its former life were swept, and comes back.
  first.machine.close();
  const again = new Machine(first.memtable, first.machine.group);
  t.equal(again.record().generation, sink.generation, "whatever leaves, the record stays");
  t.ok(again.beginRestore().generation > sink.generation, "no number is used a second time");
  again.abandonRestore();
  const index = again.appliedIndex + 1;
  const stamp = { n: 1, l: 5000, c: 0 };
  again.apply({ index, term: 9, leaseMs: 2, stamp }, [set("of this life", "y")], []);
  const before = allRows(first.memtable, again);
  t.ok(again.sweep(1000) > 0, "the former life is swept");
  t.equal(again.sweep(1000), 0);
  t.equal(allRows(first.memtable, again), before, "and nothing of this one");
  first.flush();
  t.equal(new Bench(first.store.copy()).machine.record().generation, sink.generation);
  t.end();
});

t.test("P-041 a crash in a restore leaves the group as it was, and its rubbish is swept", (t) => {
  const bench = new Bench();
  for (let pick = 0; pick < 40; pick++) bench.apply(1, commandFor(pick));
  const chunks = takeSnapshot(bench, 100, () => undefined);
  const target = new Bench();
  target.apply(1, set("mine", "x"));
  target.flush();
  const before = allRows(target.memtable, target.machine);
  const sink = target.machine.beginRestore();
  for (const chunk of chunks.slice(0, 3)) sink.take(chunk.bytes);
  target.flush();
  const restarted = new Bench(target.store.copy());
  t.equal(allRows(restarted.memtable, restarted.machine), before);
  t.equal(restarted.machine.appliedIndex, 1);
  t.ok(restarted.machine.sweep(1000) > 0, "rubbish was there");
  t.equal(restarted.machine.sweep(1000), 0);
  const again = restarted.machine.beginRestore();
  t.ok(again.generation > sink.generation, "a generation is used once");
  for (const chunk of chunks) again.take(chunk.bytes);
  t.equal(restarted.machine.sweep(1000), 0, "what is being filled stays");
  restarted.machine.install(again);
  t.equal(restarted.machine.chainDigest, bench.machine.chainDigest);
  t.equal(again.highestToken >= 0n, true);
  const old = restarted.machine.beginRestore();
  t.throws(() => restarted.machine.install(old), /all of it/);
  const source = bench.machine.openSnapshot(200);
  source.next(1);
  for (let at = 0; at < 60; at++)
    bench.apply(2, set(`wide/${at % 7}`, "x".repeat(30)), commandFor(at));
  t.equal(source.next(1), "overrun", "old rows are bounded");
  source.close();
  t.end();
});

t.test(
  "P-126 P-146 names of any content and full length are keys of their own, in byte order",
  (t) => {
    const names = [
      "a",
      "a\0",
      "\0",
      "ÿ",
      "\uffff",
      "\u{10000}",
      "z".repeat(1024),
      `${"z".repeat(1023)}y`,
      "é".repeat(512),
      "\u{1f600}".repeat(256),
    ];
    for (const name of names) {
      const key = nameKey(name);
      t.ok(key !== null);
      t.equal(byteKeyToText(key as string), name);
      t.equal(key, textToByteKey(name));
      t.equal(toByteKey(fromByteKey(key as string)), key);
      t.ok(
        fromByteKey(generationPrefix(9, 9) + "\x31" + historyKey(key as string, 1)).length <=
          STORE_KEY_MAX_BYTES,
      );
      t.ok(
        fromByteKey(generationPrefix(9, 9) + "\x21" + sequenceKeyKey(1, key as string)).length <=
          STORE_KEY_MAX_BYTES,
      );
      t.ok(
        fromByteKey(generationPrefix(9, 9) + "\x43" + rangeKey(key as string, key as string))
          .length <= STORE_KEY_MAX_BYTES,
      );
    }
    for (const bad of [
      "",
      "z".repeat(1025),
      "é".repeat(513),
      "\u{1f600}".repeat(257),
      "\ud800",
      "a\udc00",
      "\ud800\ud800",
    ]) {
      t.equal(nameKey(bad), null);
    }
    fc.assert(
      fc.property(fc.string({ unit: "binary", minLength: 1, maxLength: 20 }), (name) => {
        const key = nameKey(name) as string;
        return key === textToByteKey(name) && byteKeyToText(key) === name;
      }),
    );
    fc.assert(
      fc.property(edgeBytes, edgeBytes, (prefix, other) => {
        const successor = keySuccessor(toByteKey(prefix));
        const expected = prefixSuccessor(prefix);
        if (successor !== (expected === null ? null : toByteKey(expected))) return false;
        const key = toByteKey(other);
        const inside = key.startsWith(toByteKey(prefix));
        const between = key >= toByteKey(prefix) && (successor === null || key < successor);
        return inside === between;
      }),
      { numRuns: 5000 },
    );
    t.equal(readUint32Key(uint32Key(0xfedcba98), 0), 0xfedcba98);
    t.equal(uint53Key(2 ** 53 - 1) > uint53Key(2 ** 32), true);
    const bench = new Bench();
    for (const name of names) bench.apply(0, set(name, "v"), lock(name, "o", 10), create(name));
    bench.flush();
    for (const name of names) {
      t.equal(bench.machine.reads.kvGet(name, -1n, 0).type, 3);
      t.equal(bench.machine.reads.getLock(name, 0).type, 4);
      t.ok(bench.machine.reads.getSequence(name) !== null);
    }
    t.end();
  },
);

t.test("row tables keep order however they are filled, and drop what left no trace", (t) => {
  const bench = new Bench();
  const outcomes: Outcome[] = [];
  for (let index = 1; index <= 3000; index++) {
    const stamp = { n: 1, l: index, c: 0 };
    bench.machine.apply({ index, term: 1, leaseMs: 0, stamp }, [set("hot", `${index}`)], outcomes);
  }
  t.ok(bench.memtable.rows <= 5, "superseded history leaves no marks in memory");
  const immutable = bench.memtable.freeze();
  t.equal(immutable.changes.length, 5, "latest, three older ones, group record");
  t.strictSame(plainSorter.sort([]), []);
  t.equal(new Machine(bench.memtable, partitionId(2)).appliedIndex, 0, "groups are apart");
  t.equal(RowKind.value + 1, RowKind.history);
  t.end();
});

t.test(
  "the kernel sorts rows as plain sorting does, and what does not fit it is sorted plainly",
  (t) => {
    const sorter = new KernelSorter(createKernels({ mode: "wasm" }).compact);
    const twin = new KernelSorter(createKernels({ mode: "twin" }).compact);
    const random = new Prng(7);
    for (const [rows, size] of [
      [10, 4],
      [255, 3],
      [256, 20],
      [3000, 6],
      [600, 20_000],
    ] as const) {
      const made = new Map<string, RowEntry>();
      while (made.size < rows) {
        const bytes = new Uint8Array(1 + random.below(size)).map(
          () => [0, 97, 255][random.below(3)] as number,
        );
        const key = toByteKey(bytes) + uint32Key(made.size);
        made.set(key, new RowEntry(key, null, false));
      }
      const expected = plainSorter.sort([...made.values()]).map((entry) => entry.key);
      t.strictSame(
        sorter.sort([...made.values()]).map((entry) => entry.key),
        expected,
        `${rows} rows`,
      );
      t.strictSame(
        twin.sort([...made.values()]).map((entry) => entry.key),
        expected,
        `${rows} rows, twin`,
      );
    }
    const memtable = new Memtable({ store: new FakeStore(), sorter });
    for (let at = 0; at < 1000; at++) memtable.put(`k${(at * 7) % 1000}`, new Uint8Array(1));
    const { changes } = memtable.freeze();
    t.strictSame(
      changes.map((change) => toByteKey(change.key)),
      Array.from({ length: 1000 }, (_, at) => `k${at}`).sort(),
    );
    t.end();
  },
);
