/** Which keys a group owns: rows and the map beside them, against a naive list of intervals. */
import t from "tap";
import { NO_STAMP } from "../../../src/base/hlc.js";
import { attempt, moveId, rangeGeneration } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import { KvType, type KvOutcome } from "../../../src/machine/commands/command.js";
import { EphemeralTable } from "../../../src/machine/ephemeral.js";
import {
  type KeyInterval,
  type OwnershipRow,
  type OwnershipState,
  decodeOwnership,
  encodeOwnership,
  isSettled,
} from "../../../src/machine/ownership/ownership-row.js";
import { Ownership, spaceOf } from "../../../src/machine/ownership/ownership.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import { GroupRows } from "../../../src/machine/store/rows.js";
import { generationPrefix, textToByteKey } from "../../../src/machine/store/keys.js";
import { Bench, lock, remove, set } from "../../doubles/machine/bench.js";
import { FakeStore } from "../../doubles/machine/fake-store.js";

const SEEDS = 20;
const SPACES = ["a", "a/b", "é"];
const LETTERS = "bdfhjlnprtvxz".split("");
const STATES: readonly OwnershipState[] = ["here", "left", "leaving", "arriving", "closed"];

function rowOf(interval: KeyInterval, state: OwnershipState, isPurged = false): OwnershipRow {
  const { keySpace, startKey, endKey } = interval;
  return {
    ...{ keySpace, startKey, endKey, state, isPurged, purgedTo: null },
    ...{ generation: rangeGeneration(3), moveId: moveId(7), attempt: attempt(2) },
    ...{ nextImport: 1, keys: 0, digestLow: 0, digestHigh: 0, stamp: NO_STAMP },
  };
}

function intervalOf(random: Prng): KeyInterval {
  const keySpace = SPACES[random.below(SPACES.length)] as string;
  const bounds = [random.below(LETTERS.length), random.below(LETTERS.length)].sort((a, b) => a - b);
  const [low = 0, high = 0] = bounds;
  const startKey = random.chance(1, 4) ? null : `${keySpace}/${LETTERS[low] as string}`;
  const isOpen = random.chance(1, 4) || low === high;
  return { keySpace, startKey, endKey: isOpen ? null : `${keySpace}/${LETTERS[high] as string}` };
}

/** Every key asked about: bounds, keys between them, the key that is the space itself. */
const KEYS = SPACES.flatMap((space) => [
  ...(space.includes("/") ? [] : [space]),
  ...Array.from("abcdefghijklmnopqrstuvwxyz", (letter) => `${space}/${letter}`),
]);

function contains({ keySpace, startKey, endKey }: KeyInterval, key: string): boolean {
  const at = key.lastIndexOf("/");
  if ((at < 0 ? key : key.slice(0, at)) !== keySpace) return false;
  return (startKey === null || startKey <= key) && (endKey === null || key < endKey);
}

/** The list: later intervals win over earlier ones. */
interface Naive {
  readonly interval: KeyInterval;
  /** null: as by default. */
  readonly state: OwnershipState | null;
}

function ownsNaively(list: readonly Naive[], byDefault: boolean, key: string): boolean {
  for (const { interval, state } of [...list].reverse()) {
    if (contains(interval, key)) return state === null ? byDefault : state === "here";
  }
  return byDefault;
}

/** What is wrong with the rows as a whole; "" when nothing is. */
function faultOf(rows: readonly OwnershipRow[]): string {
  for (const [at, row] of rows.entries()) {
    const next = rows[at + 1];
    if (next?.keySpace !== row.keySpace) continue;
    if (row.endKey === null || next.startKey === null || row.endKey > next.startKey) {
      return `${row.keySpace}: ${String(row.endKey)} lies above ${String(next.startKey)}`;
    }
    const areAlike = row.state === next.state && isSettled(row) && isSettled(next);
    if (row.endKey === next.startKey && areAlike) return `${row.endKey} divides equal rows`;
  }
  return "";
}

for (const byDefault of [true, false]) {
  t.test(`P-100 P-042 any assignments: a naive list agrees, default ${String(byDefault)}`, (t) => {
    const seen = new Set<string>();
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = new Prng(seed);
      const memtable = new Memtable({ store: new FakeStore() });
      const rows = new GroupRows(memtable, "g", null);
      const ownership = new Ownership(byDefault);
      const list: Naive[] = [];
      for (let step = 0; step < 40; step++) {
        const interval = intervalOf(random);
        const overlaps = ownership.overlapping(interval);
        const { version } = ownership;
        const before = KEYS.map((key) => ownership.owns(textToByteKey(key)));
        // What is under way is divided by nothing, and is replaced by a row of its own bounds.
        const isDivided = overlaps.some((row) => {
          return !isSettled(row) && !containsAll(interval, row);
        });
        if (isDivided) continue;
        if (random.chance(1, 4)) {
          ownership.carve(rows, interval);
          list.push({ interval, state: null });
        } else {
          const state = STATES[random.below(STATES.length)] as OwnershipState;
          const row = rowOf(interval, state, random.chance(1, 2));
          ownership.assign(rows, row);
          list.push({ interval, state });
          if (!isSettled(row) && random.chance(1, 2)) {
            const left = rowOf(interval, "left");
            ownership.replace(rows, left);
            list.push({ interval, state: "left" });
          }
        }
        const all = ownership.all();
        const fault = faultOf(all);
        if (fault !== "") return void t.fail(`seed ${seed}, step ${step}: ${fault}`);
        for (const [at, key] of KEYS.entries()) {
          const owned = ownership.owns(textToByteKey(key));
          if (owned !== ownsNaively(list, byDefault, key)) {
            return void t.fail(`seed ${seed}, step ${step}: ${key} is owned: ${String(owned)}`);
          }
          if (owned !== before[at] && ownership.version === version) {
            return void t.fail(`seed ${seed}, step ${step}: other keys at one version`);
          }
          seen.add(`${String(owned)} of ${String(all.length > 0)}`);
        }
        const asked = intervalOf(random);
        const owned = KEYS.filter((key) => contains(asked, key)).map((key) => {
          return ownsNaively(list, byDefault, key);
        });
        const spans = ownership.spans(
          textToByteKey(asked.keySpace),
          textToByteKey(asked.startKey ?? ""),
          asked.endKey === null ? null : textToByteKey(asked.endKey),
        );
        const inSpans = KEYS.filter((key) => contains(asked, key)).map((key) => {
          const name = textToByteKey(key);
          return spans.some(({ first, last }) => first <= name && (last === null || name < last));
        });
        t.strictSame(inSpans, owned, `seed ${seed}, step ${step}: spans`);
        const apart = spans.every((span, at) => at === 0 || spans[at - 1]?.last !== span.first);
        if (!apart) t.fail(`seed ${seed}, step ${step}: spans touch`);
        if (owned.length > 0) {
          const isAll = ownership.ownsAll(asked);
          if (isAll && owned.includes(false)) t.fail(`seed ${seed}: all of it is owned`);
          if (ownership.ownsNone(asked) && owned.includes(true)) t.fail(`seed ${seed}: none is`);
        }
        const again = new Ownership(byDefault);
        again.load(rows);
        if (asBytes(again.all()) !== asBytes(all)) {
          t.fail(`seed ${seed}, step ${step}: the map is not that of the rows`);
        }
      }
    }
    t.equal(seen.size, byDefault ? 3 : 3, [...seen].join("; "));
    t.end();
  });
}

function asBytes(rows: readonly OwnershipRow[]): string {
  return rows.map((row) => Buffer.from(encodeOwnership(row)).toString("latin1")).join();
}

function containsAll(outer: KeyInterval, inner: KeyInterval): boolean {
  const startsInside =
    outer.startKey === null || (inner.startKey !== null && outer.startKey <= inner.startKey);
  const endsInside =
    outer.endKey === null || (inner.endKey !== null && inner.endKey <= outer.endKey);
  return startsInside && endsInside;
}

/** Puts a row beside those of the machine as if a command had. */
function give(bench: Bench, row: OwnershipRow): void {
  const { machine, memtable } = bench;
  const prefix = generationPrefix(machine.group, machine.record().generation);
  machine.ownership.assign(new GroupRows(memtable, prefix, null), row);
}

const AWAY: KeyInterval = { keySpace: "a", startKey: "a/m", endKey: "a/p" };

t.test("P-100 6.2 a key that the group does not own is not touched, locks are", (t) => {
  const bench = new Bench();
  for (const key of ["a/l", "a/m", "a/n", "a/p"]) bench.one(1, set(key, "v"));
  const digest = bench.machine.stateDigest;
  give(bench, rowOf(AWAY, "leaving"));
  const extend = { kind: "kv-extend", key: "a/m", expiresMs: 5 } as const;
  for (const command of [set("a/m", "w"), extend, remove("a/n"), set("a/o", "new")]) {
    t.strictSame(bench.one(2, command), { kind: "moved" });
  }
  t.equal(bench.machine.stateDigest, digest, "nothing was done");
  t.equal((bench.one(2, set("a/p", "w")) as KvOutcome).revision, 1, "its end is outside");
  t.equal((bench.one(2, set("a/m/x", "w")) as KvOutcome).type, KvType.set, "another key space");
  t.equal(bench.one(2, set("", "w")).kind, "kv", "what is no key is refused as ever");
  t.match(bench.one(2, lock("a/m", "o", 5)), { kind: "lock", type: 0 });
  t.ok(bench.machine.owns("a/l"));
  t.notOk(bench.machine.owns("a/n"));
  t.end();
});

t.test("K13 K15 K16 buckets, pages and views show the keys that are owned", (t) => {
  const bench = new Bench();
  for (const letter of "klmnopq") bench.one(1, set(`a/${letter}`, "v"));
  bench.one(1, remove("a/n"));
  const { machine } = bench;
  const bounds = { after: null, limit: 0, maxBytes: 1 << 20, maxVisits: 1000 };
  const query = {
    bucket: "a",
    startKey: "a/l",
    startInclusive: false,
    endKey: null,
    endInclusive: true,
  };
  const keysOf = (reads: Bench["machine"]["reads"]): string[] => {
    const bucket = reads.bucket("a", 5, 1 << 20);
    const prefix = reads.prefixPage("a/", bounds, 5, true);
    const range = reads.rangePage(query, bounds, 5);
    if (bucket.kind !== "items" || prefix.kind !== "page" || range.kind !== "page") return ["?"];
    return [bucket.items, prefix.page.items, range.page.items].map((items) => {
      return items.map(({ key }) => key.slice(2)).join("");
    });
  };
  t.strictSame(keysOf(machine.reads), ["klmopq", "klmnopq", "mopq"]);
  const view = machine.pointInTimeView({ first: "a", last: "b" }, 1 << 20);
  give(bench, rowOf(AWAY, "left"));
  t.strictSame(keysOf(machine.reads), ["klpq", "klpq", "pq"]);
  if (view === null) return void t.fail("there is a view");
  t.strictSame(keysOf(view.reads), ["klmopq", "klmnopq", "mopq"], "of the moment of opening");
  view.close();
  t.end();
});

t.test("P-042 the map follows open, install and restart; above the pool nothing is owned", (t) => {
  const bench = new Bench();
  give(bench, rowOf(AWAY, "leaving"));
  bench.flush();
  const again = new Bench(bench.store);
  t.notOk(again.machine.owns("a/m"), "after a start");
  const other = new Bench(undefined, 1);
  t.ok(other.machine.owns("a/m"));
  const source = bench.machine.openSnapshot(1 << 20);
  const sink = other.machine.beginRestore();
  for (let last = false; !last;) {
    const chunk = source.next(1 << 14);
    if (chunk === "overrun") throw new Error("nothing changes meanwhile");
    t.ok(sink.take(chunk.bytes).ok);
    last = chunk.last;
  }
  const { version } = other.machine.ownership;
  other.machine.install(sink);
  t.ok(other.machine.ownership.version > version);
  t.notOk(other.machine.owns("a/m"), "after an install");
  t.strictSame(other.one(1, set("a/m", "v")), { kind: "moved" });
  const split = new Bench(undefined, 9, false);
  t.strictSame(split.one(1, set("a/m", "v")), { kind: "moved" });
  give(split, rowOf(AWAY, "here"));
  t.equal(split.one(1, set("a/m", "v")).kind, "kv");
  t.strictSame(split.one(1, set("a/p", "v")), { kind: "moved" });
  t.end();
});

t.test("K19 ephemeral entries of an interval that moves are lost and do not come back", (t) => {
  const { machine } = new Bench();
  const bench = { machine, memtable: new Memtable({ store: new FakeStore() }) } as Bench;
  const table = new EphemeralTable({
    ...{ floor: 0n, term: 1, maxBytes: 100_000, ownership: machine.ownership },
  });
  const stamp = { leaseMs: 1, stamp: { n: 1, l: 1, c: 0 } };
  const say = (command: ReturnType<typeof set>) => table.apply(command as never, stamp);
  for (const key of ["a/l", "a/m", "a/m", "a/m/x", "b"]) say(set(key, "v"));
  t.equal(table.rows, 5, "with an older revision");
  give(bench, rowOf(AWAY, "leaving"));
  t.strictSame(say(set("a/m", "w")), { kind: "moved" });
  table.dropMoved();
  t.equal(table.rows, 3);
  machine.ownership.carve(new GroupRows(bench.memtable, "", null), AWAY);
  table.dropMoved();
  t.match(say(set("a/m", "w")), { kind: "kv", revision: 0 }, "revisions restart");
  t.end();
});

t.test("P-131 a row of ownership is read as it was written, and nothing else is", (t) => {
  const row = {
    ...rowOf({ keySpace: "é", startKey: null, endKey: "é/z" }, "left"),
    ...{ nextImport: 2 ** 40, keys: 9, digestLow: 2 ** 32 - 1, digestHigh: 2 ** 31 },
    ...{ stamp: { n: -1, l: 5, c: 6 }, purgedTo: "é/b" },
  };
  const bytes = encodeOwnership(row);
  t.strictSame(decodeOwnership(bytes), row);
  t.equal(decodeOwnership(bytes.subarray(1)), null);
  t.equal(decodeOwnership(Uint8Array.of(...bytes, 0)), null);
  t.equal(decodeOwnership(encodeOwnership({ ...row, startKey: "é/z" })), null, "empty");
  t.equal(spaceOf("a/b/c"), "a/b");
  t.equal(spaceOf("a"), "a");
  t.end();
});
