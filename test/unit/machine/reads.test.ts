/**
 * Scans against naive filters, cursors, ephemeral tables, the meta partition's records, and the
 * entry codec.
 */
import fc from "fast-check";
import t from "tap";
import { compareBytes, compareText, encodeText } from "../../../src/base/bytes.js";
import { FIRST_LEVEL, level, membershipVersion } from "../../../src/base/ids.js";
import { INT64_MAX, INT64_MIN } from "../../../src/base/int64.js";
import { PARTITIONS_MAX } from "../../../src/base/limits.js";
import { hashPartition, keySpaceHashText } from "../../../src/base/routing.js";
import { Prng } from "../../../src/base/prng.js";
import {
  commandSizeBytes,
  decodeEntry,
  encodeEntry,
  readCommand,
} from "../../../src/machine/commands/codec.js";
import type { Command, MemberRole, MetaOutcome } from "../../../src/machine/commands/command.js";
import { decodeCursor, encodeCursor } from "../../../src/machine/kv/cursor.js";
import type { DataReads } from "../../../src/machine/data-reads.js";
import { EPHEMERAL_TOKENS_PER_TERM } from "../../../src/base/limits.js";
import { EphemeralTable } from "../../../src/machine/ephemeral.js";
import type { FoundClusterCommand } from "../../../src/machine/commands/meta-command.js";
import { bucketSpan } from "../../../src/machine/kv/pages.js";
import type { PageItem, PageReading } from "../../../src/machine/decision/reading.js";
import {
  Bench,
  allocate,
  bytes,
  collect,
  create,
  extend,
  giveBack,
  lock,
  remove,
  reserve,
  set,
  unlock,
  update,
} from "../../doubles/machine/bench.js";
import { InventingReader } from "../../doubles/base/inventing-reader.js";
import { CLUSTER_COMMANDS, newMember } from "../../doubles/machine/members.js";
import { say } from "../../doubles/machine/models.js";
import { orders, place, report } from "../../doubles/machine/placement.js";

/** Names full of separators, and of what lies right beside them in byte order. */
const keyText = fc
  .array(fc.constantFrom("a", "b", "/", "/", ".", "0", "-", "\0", "é", "\u{10000}", "|"), {
    minLength: 1,
    maxLength: 6,
  })
  .map((parts) => parts.join(""));

interface Row {
  readonly key: string;
  readonly state: "live" | "expired" | "deleted";
}

const table = fc.uniqueArray(
  fc.record({ key: keyText, state: fc.constantFrom("live", "live", "expired", "deleted") }),
  {
    maxLength: 25,
    selector: (row) => row.key,
  },
) as fc.Arbitrary<Row[]>;

function fill(rows: readonly Row[], flushAt: number): DataReads {
  const bench = new Bench();
  rows.forEach(({ key, state }, at) => {
    bench.apply(0, set(key, key, { expiresMs: state === "expired" ? 5 : 0 }));
    if (state === "deleted") bench.apply(0, remove(key));
    if (at === flushAt) bench.flush();
  });
  return bench.machine.reads;
}

function bucketOf(key: string): string {
  return key.includes("/") ? key.slice(0, key.lastIndexOf("/")) : key;
}

function keysOf(items: readonly PageItem[]): string {
  return items.map((item) => item.key).join("\n");
}

function sorted(rows: readonly Row[], keep: (row: Row) => boolean): string[] {
  return rows
    .filter(keep)
    .map((row) => row.key)
    .sort((a, b) => compareBytes(encodeText(a), encodeText(b)));
}

/** Reads all pages of this size; checks that each keeps its bounds. */
function allPages(
  limit: number,
  maxVisits: number,
  read: (after: Uint8Array | null, visits: number) => PageReading,
): string {
  const keys: string[] = [];
  let after: Uint8Array | null = null;
  for (let pages = 0; pages < 500; pages++) {
    const reading = read(after, maxVisits);
    if (reading.kind !== "page") throw new Error("invalid");
    const { items, next } = reading.page;
    if (limit > 0 && items.length > limit) throw new Error("more items than the limit");
    keys.push(...items.map((item) => item.key));
    if (next === null) return keys.join("\n");
    if (limit > 0 && items.length < limit && maxVisits > 100)
      throw new Error("short page with more to come");
    after = next;
  }
  throw new Error("pages without end");
}

t.test(
  "P-054 K12 K13 K15 K16 buckets, prefixes and ranges equal a naive filter, pages of 1 to n",
  (t) => {
    const shape = fc.record({
      rows: table,
      flushAt: fc.integer({ min: 0, max: 25 }),
      probe: keyText,
      bounds: fc.tuple(
        fc.option(keyText, { nil: null }),
        fc.option(keyText, { nil: null }),
        fc.boolean(),
        fc.boolean(),
      ),
      limit: fc.integer({ min: 0, max: 6 }),
      visits: fc.constantFrom(1, 2, 7, 1000),
    });
    let found = 0;
    fc.assert(
      fc.property(shape, ({ rows, flushAt, probe, bounds, limit, visits }) => {
        const reads = fill(rows, flushAt);
        const probes = new Set([
          probe,
          ...rows.flatMap(({ key }) => [bucketOf(key), [...key].slice(0, 2).join("")]),
        ]);
        for (const name of probes) {
          if (name === "") continue;
          const inBucket = (row: Row): boolean =>
            row.state === "live" && bucketOf(row.key) === name;
          const bucket = reads.bucket(name, 5, 1_000_000);
          const expected = sorted(rows, inBucket);
          found += expected.length;
          if (bucket.kind !== "items" || keysOf(bucket.items) !== expected.join("\n"))
            throw new Error(`bucket ${name}`);

          for (const tombstones of [false, true]) {
            const begins = (row: Row): boolean =>
              row.key.startsWith(name) &&
              (row.state === "live" || (tombstones && row.state === "deleted"));
            const got = allPages(limit, visits, (after, maxVisits) =>
              reads.prefixPage(
                name,
                { after, limit, maxBytes: 1_000_000, maxVisits },
                5,
                tombstones,
              ),
            );
            if (got !== sorted(rows, begins).join("\n")) throw new Error(`prefix ${name}`);
          }

          const [startKey, endKey, startInclusive, endInclusive] = bounds;
          const inRange = (row: Row): boolean => {
            if (!inBucket(row)) return false;
            const low = startKey === null ? 1 : compareText(row.key, startKey);
            const high = endKey === null ? -1 : compareText(row.key, endKey);
            return (
              (low > 0 || (low === 0 && startInclusive)) &&
              (high < 0 || (high === 0 && endInclusive))
            );
          };
          const query = { bucket: name, startKey, endKey, startInclusive, endInclusive };
          const got = allPages(limit, visits, (after, maxVisits) =>
            reads.rangePage(query, { after, limit, maxBytes: 1_000_000, maxVisits }, 5),
          );
          if (got !== sorted(rows, inRange).join("\n")) throw new Error(`range ${name}`);
        }
        return true;
      }),
      { numRuns: 400 },
    );
    t.ok(found > 500, "buckets had keys");
    t.end();
  },
);

t.test("P-155 K13 a bucket read in slices shows the moment of its begin", (t) => {
  const change = fc.record({ key: keyText, deletes: fc.boolean(), flushes: fc.boolean() });
  const shape = fc.record({
    rows: table,
    probe: keyText,
    visits: fc.integer({ min: 1, max: 4 }),
    changes: fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 30 }),
  });
  let changed = 0;
  fc.assert(
    fc.property(shape, ({ rows, probe, visits, changes }) => {
      const bench = new Bench();
      for (const { key, state } of rows) {
        bench.apply(0, set(key, key, { expiresMs: state === "expired" ? 5 : 0 }));
        if (state === "deleted") bench.apply(0, remove(key));
      }
      for (const name of new Set([probe, ...rows.map(({ key }) => bucketOf(key))])) {
        const view = bench.machine.pointInTimeView(bucketSpan(name), 1_000_000);
        if (name === "") return view === null;
        if (view === null) throw new Error("a bucket has a view");
        const now = bench.machine.reads.bucket(name, 5, 1_000_000);
        if (now.kind !== "items") throw new Error("a bucket is read");
        const query = { bucket: name, startKey: null, endKey: null };
        const bounds = { limit: 0, maxBytes: 1_000_000, maxVisits: visits };
        let slice = 0;
        const got = allPages(0, visits, (after) => {
          for (const { key, deletes, flushes } of changes[slice++] ?? []) {
            bench.apply(0, deletes ? remove(key) : set(key, `later ${slice}`));
            if (flushes) bench.flush();
            changed++;
          }
          const inclusive = { startInclusive: true, endInclusive: true };
          return view.reads.rangePage({ ...query, ...inclusive }, { ...bounds, after }, 5);
        });
        if (view.overrun || got !== keysOf(now.items)) throw new Error(`bucket ${name}: ${got}`);
        view.close();
      }
      return true;
    }),
    { numRuns: 400 },
  );
  t.ok(changed > 500, "rows changed while they were read");
  const bench = new Bench();
  bench.apply(0, set("b/1", "x".repeat(500)));
  const view = bench.machine.pointInTimeView(bucketSpan("b"), 100);
  t.equal(view?.overrun, false);
  bench.apply(0, set("c/1", "elsewhere"), set("b/1", "changed"));
  t.equal(view?.overrun, true, "what is kept for a view is bounded");
  t.end();
});

t.test("K12 K14 K15 K18 pages and buckets by example", (t) => {
  const bench = new Bench();
  for (const key of ["a", "a/x", "a/b/c", "a//x", "a/", "a-", "ab", "/x"])
    bench.apply(0, set(key, "12345"));
  for (let at = 0; at < 100; at++)
    bench.apply(0, set(`deep/${at % 3}/${at}`, "v"), set(`deep/k${at}`, "v"));
  const { reads } = bench.machine;
  const bucket = (name: string): string => {
    const reading = reads.bucket(name, 0, 1_000_000);
    return reading.kind === "items" ? keysOf(reading.items).replaceAll("\n", " ") : reading.kind;
  };
  t.equal(bucket("a"), "a a/ a/x");
  t.equal(bucket("a/b"), "a/b/c");
  t.equal(bucket("a/"), "a//x");
  t.equal(bucket(""), "invalid", "the empty bucket");
  t.equal(bucket("__svc:x"), "invalid");
  t.equal(bucket("deep").split(" ").length, 100, "deeper buckets are jumped over");
  t.same(reads.bucket("deep", 0, 500), { kind: "too-large" }, "K14: never a part");
  const page = reads.prefixPage(
    "deep/k",
    { after: null, limit: 0, maxBytes: 200, maxVisits: 1000 },
    0,
    false,
  );
  t.equal(page.kind === "page" && page.page.items.length, 3, "ends at its bytes");
  const one = reads.prefixPage(
    "a",
    { after: null, limit: 0, maxBytes: 1, maxVisits: 1000 },
    0,
    false,
  );
  t.equal(one.kind === "page" && one.page.items.length, 1, "at least one");
  const exact = reads.prefixPage(
    "a/",
    { after: null, limit: 4, maxBytes: 1e6, maxVisits: 1000 },
    0,
    false,
  );
  t.equal(exact.kind === "page" && exact.page.next, null, "hasMore is exact");
  for (const limit of [-1, 0.5]) {
    t.same(reads.prefixPage("a", { after: null, limit, maxBytes: 1, maxVisits: 1 }, 0, false), {
      kind: "invalid",
    });
  }
  const item = (reads.bucket("a/b", 0, 1000) as { items: readonly PageItem[] }).items[0];
  t.match(item, { revision: 0, leaseEndMs: null, state: 1, lastModified: { n: 1 } });
  t.end();
});

t.test("K18 cursors are of their query, whole, and one text each", (t) => {
  fc.assert(
    fc.property(keyText, keyText, keyText, (query, key, other) => {
      const last = encodeText(key);
      const cursor = encodeCursor(query, last);
      const back = decodeCursor(query, cursor);
      if (back === null || compareBytes(back, last) !== 0) return false;
      return query === other || decodeCursor(other, cursor) === null;
    }),
    { numRuns: 2000 },
  );
  const cursor = encodeCursor("q", encodeText("k".repeat(1024)));
  t.ok(decodeCursor("q", cursor));
  t.equal(decodeCursor("q", encodeCursor("q", encodeText("k".repeat(1025)))), null);
  t.equal(decodeCursor("q", encodeCursor("q", new Uint8Array([0xff]))), null, "not UTF-8");
  for (const bad of [
    "",
    "A",
    "!!!!",
    `${cursor}A`,
    cursor.slice(1),
    cursor.replace(/^./, "B"),
    "=".repeat(40),
  ]) {
    t.equal(decodeCursor("q", bad), null);
  }
  t.end();
});

t.test("L15 P-068 P-059 K19 ephemeral tables: rules, tokens by term, bounds", (t) => {
  const make = (term: number, floor = 0n, maxBytes = 100_000): EphemeralTable =>
    new EphemeralTable({ floor, term, maxBytes });
  const at = (leaseMs: number) => ({ leaseMs, stamp: { n: 1, l: leaseMs, c: 0 } });
  const said = (table: EphemeralTable, leaseMs: number, command: Command): string => {
    const outcome = table.apply(command as Parameters<EphemeralTable["apply"]>[0], at(leaseMs));
    return outcome === "full" ? "full" : say(outcome);
  };
  const first = make(3);
  const base = 2n * EPHEMERAL_TOKENS_PER_TERM;
  t.equal(said(first, 0, lock("r", "a", 10)), `lock 0 ${base}`);
  t.equal(said(first, 9, lock("r", "b", 10)), "lock 1 0");
  t.equal(said(first, 10, lock("r", "b", 10)), `lock 0 ${base + 1n}`);
  t.equal(said(first, 10, unlock("r", "b")), `lock 3 ${base + 1n}`);
  t.equal(said(first, 11, set("k", "v", { expiresMs: 5 })), "kv 0 0 11");
  t.equal(first.reads.kvGet("k", -1n, 15).type, 3);
  t.equal(first.reads.kvGet("k", -1n, 16).type, 103);
  t.equal(said(first, 3, lock("r", "c", 10)), `lock 0 ${base + 2n}`, "the clock does not go back");
  t.equal(first.reads.getLock("r", 15).leaseEndMs, 21);
  t.match(first.collect(1000, null, 100, 0), { dropped: 2, next: null });
  t.equal(said(first, 1000, lock("fresh", "a", 1)), `lock 0 ${base + 3n}`, "the floor was lifted");
  t.ok(3n * EPHEMERAL_TOKENS_PER_TERM > base + 3n, "next term lies above");
  t.equal(
    said(make(1, 1n << 50n), 0, lock("r", "a", 1)),
    `lock 0 ${1n << 50n}`,
    "floor of a restore",
  );
  t.throws(() => make(2 ** 27 + 1), /fit int64/);
  t.doesNotThrow(() => make(2 ** 20), "2^20 terms");
  const small = make(1, 0n, 2000);
  let granted = 0;
  while (said(small, 0, lock(`r${granted}`, "a", 100)) !== "full") granted++;
  t.ok(granted > 5 && granted < 40);
  t.equal(said(small, 50, lock("r0", "b", 1)), "full", "refused, not granted");
  t.equal(said(small, 50, extend("r0", "a", 100)), "lock 2 0", "holders go on");
  t.equal(small.collect(99, null, 1000, 0).dropped, 0, "held ones stay");
  t.equal(small.collect(100, null, 1000, 0).dropped, granted - 1);
  t.equal(said(small, 100, lock("more", "b", 1)), "lock 0 1");
  t.end();
});

t.test("meta partition: founding, members, factors, key spaces (5.2, 5.4, 6.2, 6.3)", (t) => {
  const bench = new Bench();
  const meta = (command: Command): string => {
    const { status, generation } = bench.one(0, command) as MetaOutcome;
    return `${status} ${generation}`;
  };
  const register: Command = { kind: "register-range", keySpace: "users", partitionId: 2 };
  const factor = (partitionId: number, replicationFactor: number): Command => ({
    kind: "set-replication-factor",
    partitionId,
    replicationFactor,
  });
  t.equal(meta(register), "not-founded 0");
  t.equal(bench.machine.meta.cluster(), null);
  const found: Command = {
    kind: "found-cluster",
    clusterId: "id",
    dataPartitions: 4,
    replicationFactor: 0,
    level: FIRST_LEVEL,
    members: [newMember(2, "b:1", ""), newMember(1, "a:1", "sa")],
  };
  t.equal(meta({ ...found, members: [] } as Command), "invalid 0");
  t.equal(meta({ ...found, dataPartitions: PARTITIONS_MAX + 1 } as Command), "invalid 0");
  t.equal(meta(found), "done 1");
  t.equal(meta({ ...found, clusterId: "other" } as Command), "unchanged 0");
  t.match(bench.machine.meta.cluster(), {
    clusterId: "id",
    dataPartitions: 4,
    membershipVersion: 1,
    mapVersion: 1,
  });
  t.strictSame(
    bench.machine.meta.members().map((member) => member.nodeId),
    [1, 2],
  );
  t.equal(meta({ kind: "update-member", ...newMember(2, "b:2", "") }), "done 2");
  t.equal(meta({ kind: "update-member", ...newMember(2, "b:2", "") }), "unchanged 2");
  t.equal(meta({ kind: "update-member", ...newMember(9, "b:2", "") }), "invalid 0");
  t.match(bench.machine.meta.member(2), { endpoint: "b:2", role: "voter", joinedVersion: 1 });
  t.equal(meta(factor(4, 3)), "done 2");
  t.equal(meta(factor(4, 3)), "unchanged 2");
  t.equal(meta(factor(4, 0)), "done 3");
  t.equal(meta(factor(4, 10)), "invalid 0");
  for (const id of [0, -1, 5, 1.5, 2 ** 40]) t.equal(meta(factor(id, 1)), "unknown-partition 0");
  t.equal(meta(register), "done 1");
  t.equal(meta({ ...register, partitionId: 3 } as Command), "unchanged 1");
  t.equal(meta({ ...register, keySpace: "a/meta" } as Command), "invalid 0");
  t.equal(meta({ ...register, keySpace: "é", partitionId: 7 } as Command), "unknown-partition 0");
  t.equal(meta({ ...register, keySpace: "é" } as Command), "done 1");
  t.equal(meta({ ...register, keySpace: "use" } as Command), "done 1");
  bench.flush();
  t.strictSame(
    bench.machine.meta.keySpaces().map((space) => space.keySpace),
    ["use", "users", "é"],
  );
  t.strictSame(bench.machine.meta.ranges("users"), [
    { startKey: null, endKey: null, partitionId: 2, generation: 1 },
  ]);
  const home = hashPartition(keySpaceHashText("users"), 4);
  t.equal(home, 3);
  t.equal(meta({ kind: "unregister-range", keySpace: "users" }), "range-elsewhere 0", "6.3");
  t.equal(bench.machine.meta.ranges("users").length, 1, "decided in apply: nothing was done");
  const there = "uses";
  t.equal(hashPartition(keySpaceHashText(there), 4), 2);
  t.equal(meta({ ...register, keySpace: there } as Command), "done 1");
  t.equal(meta({ kind: "unregister-range", keySpace: there }), "done 0");
  t.equal(meta({ kind: "unregister-range", keySpace: there }), "unchanged 0");
  t.strictSame(bench.machine.meta.ranges(there), []);
  t.equal(bench.machine.meta.cluster()?.mapVersion, 8);
  t.equal(bench.machine.meta.partitions().length, 4);
  t.end();
});

t.test("contract 9: only a node that is alone has no address", (t) => {
  const bench = new Bench();
  const meta = (command: Command): string => {
    const { status, generation } = bench.one(0, command) as MetaOutcome;
    return `${status} ${generation}`;
  };
  const nowhere = newMember(1, "", "s1");
  const other = newMember(2, "h2:1", "s2");
  const found = (...members: FoundClusterCommand["members"]): string => {
    const size = { dataPartitions: 2, replicationFactor: 0, level: FIRST_LEVEL };
    return meta({ kind: "found-cluster", clusterId: "c", ...size, members });
  };
  t.equal(found(nowhere, other), "invalid 0");
  t.equal(found(nowhere), "done 1");
  const update = (endpoint: string): string =>
    meta({ kind: "update-member", ...newMember(1, endpoint, "s1") });
  t.equal(update(""), "unchanged 1");
  t.equal(update("h1:1"), "done 2", "it got a peer port");
  t.equal(update(""), "done 3", "and lost it");
  t.equal(meta({ kind: "add-member", ...other, endpoint: "" }), "invalid 0");
  t.equal(update("h1:1"), "done 4");
  t.equal(meta({ kind: "add-member", ...other }), "done 5");
  t.equal(update(""), "invalid 0", "the other one could not find it any more");
  t.equal(bench.machine.meta.member(1)?.endpoint, "h1:1");
  t.end();
});

t.test(
  "member list: joins, roles, removals, data directories (5.2, 5.3; P-090, P-094, P-096)",
  (t) => {
    const bench = new Bench();
    const meta = (command: Command): string => {
      const { status, generation } = bench.one(0, command) as MetaOutcome;
      return `${status} ${generation}`;
    };
    const add = (nodeId: number, storageId: string, endpoint = `h${nodeId}:1`): string =>
      meta({ kind: "add-member", ...newMember(nodeId, endpoint, storageId) });
    const role = (nodeId: number, wished: MemberRole): string =>
      meta({ kind: "set-member-role", nodeId, role: wished });
    const remove = (nodeId: number): string => meta({ kind: "remove-member", nodeId });
    t.equal(add(2, "s2"), "not-founded 0");
    t.equal(role(2, "voter"), "not-founded 0");
    const members = [newMember(1, "h1:1", "")];
    const size = { dataPartitions: 2, level: FIRST_LEVEL } as const;
    const found = { kind: "found-cluster", clusterId: "c", ...size } as const;
    const ten = Array.from({ length: 10 }, (_, at) => ({ ...members[0], nodeId: at + 1 }));
    t.equal(meta({ ...found, replicationFactor: 0, members: ten } as Command), "invalid 0");
    t.equal(meta({ ...found, replicationFactor: 0, members }), "done 1");
    t.equal(
      add(1, "s1"),
      "storage-lost 1",
      "a founder of unknown storage tells it, or nobody is it",
    );
    const own = { kind: "update-member", ...newMember(1, "h1:1", "s1") } as const;
    t.equal(meta(own), "done 2");
    t.equal(meta(own), "unchanged 2");
    t.equal(meta({ ...own, storageId: "other" }), "storage-lost 2");
    t.equal(meta({ ...own, storageId: "" }), "unchanged 2", "unknown leaves what is known");
    t.equal(add(2, ""), "invalid 0");
    t.equal(add(2, "s2"), "done 3");
    t.equal(add(2, "s2"), "unchanged 3");
    t.equal(add(2, "s2", "moved:1"), "done 4");
    t.equal(add(2, "s2b"), "storage-lost 4");
    t.match(bench.machine.meta.member(2), { role: "learner", joinedVersion: 3, storageId: "s2" });
    t.equal(role(1, "leaving"), "last-voter 4");
    t.equal(remove(1), "last-voter 4", "a learner is no voter");
    t.equal(role(2, "voter"), "done 5");
    t.equal(role(2, "voter"), "unchanged 5");
    t.equal(role(2, "learner"), "invalid 5");
    t.equal(role(9, "voter"), "not-a-member 5");
    t.equal(role(2, "leaving"), "done 6");
    t.equal(role(1, "leaving"), "drain-in-progress 6");
    t.equal(remove(1), "drain-in-progress 6");
    t.equal(role(2, "voter"), "done 7", "a drain that timed out gives the role back");
    t.equal(role(2, "leaving"), "done 8");
    t.equal(remove(2), "done 9");
    t.equal(remove(2), "unchanged 9");
    t.equal(role(2, "voter"), "not-a-member 9", "the removal won the race");
    t.equal(add(2, "s2"), "was-removed 9", "a removed node does not come back by itself");
    t.equal(add(2, "s2b"), "done 10", "but as a new one under its id");
    t.equal(remove(2), "done 11");
    t.equal(add(2, "s2"), "was-removed 11", "nor with an older life's disk");
    t.strictSame(bench.machine.meta.formerMembers(), [
      { nodeId: 2, removedVersion: 11, storageIds: ["s2", "s2b"] },
    ]);
    for (let id = 3; id <= 11; id++) t.match(add(id, `s${id}`), /done/);
    for (let id = 3; id <= 10; id++) t.match(role(id, "voter"), /done/);
    t.equal(role(11, "voter"), "too-many-voters 28", "nine vote, further nodes stay learners");
    t.strictSame(bench.machine.meta.partition(1)?.replicas, [], "every voter");
    t.end();
  },
);

const everyKind: readonly Command[] = [
  lock("r", "o", 1),
  extend("é\u{10000}", "o", -1),
  unlock("r".repeat(2000), "o"),
  set("k", null),
  set("k", "", {
    flags: 63,
    compareValue: bytes("x"),
    compareRevision: INT64_MIN,
    expiresMs: 2 ** 31 - 1,
  }),
  remove("k"),
  { kind: "kv-extend", key: "k", expiresMs: 7 },
  create("s", { initialValue: INT64_MIN, increment: INT64_MAX, maxValue: INT64_MAX, blockSize: 5 }),
  create("s"),
  update("s", {
    currentValue: 0n,
    removeMaxValue: true,
    cursor: { incarnation: 1, revision: 2 ** 53 - 1, lastHandedOut: -1n },
  }),
  update("s", { blockSize: 0, removeBlockSize: true, maxValue: -5n }),
  { kind: "delete-sequence", name: "s" },
  allocate("s", -1),
  allocate("s", 1, "", { cursor: { incarnation: 0, revision: 0, lastHandedOut: INT64_MAX } }),
  reserve("s", 3),
  giveBack("s", { incarnation: 0, revision: 1, lastHandedOut: 2n }),
  { kind: "advance-clock" },
  collect(5, 6),
  collect(5, 6, new Uint8Array([0, 255])),
  {
    kind: "found-cluster",
    clusterId: "c",
    dataPartitions: 3,
    replicationFactor: 1,
    level: level(3),
    members: [newMember(1, "h:1", "s1")],
  },
  ...CLUSTER_COMMANDS,
  { kind: "raise-level", to: level(2), membershipVersion: membershipVersion(2 ** 53 - 1) },
  { kind: "set-level", level: level(7) },
  orders(2 ** 53 - 1, { kind: "add", nodeId: 4, replaces: -1 }),
  orders(0, { kind: "remove", nodeId: 2 ** 31 - 1 }, -5),
  orders(1, { kind: "cancel", nodeId: 1 }),
  { kind: "change-replicas", items: [] },
  report(2 ** 53 - 1, [3, 1], [1, -2], 7),
  report(0, []),
  place(2 ** 40, 5, [9, 1], [2]),
];

t.test(
  "P-030 every command goes through bytes and back; other versions stop, damage is damage",
  (t) => {
    const stamp = { leaseMs: 2 ** 53 - 1, stamp: { n: -7, l: 2 ** 45, c: 2 ** 32 - 1 } };
    const encoded = encodeEntry(stamp, everyKind);
    const decoded = decodeEntry(encoded);
    t.ok(decoded.ok);
    if (decoded.ok) {
      t.strictSame(decoded.value.stamp, stamp);
      t.strictSame(decoded.value.commands, everyKind);
      t.strictSame(
        encodeEntry(decoded.value.stamp, decoded.value.commands),
        encoded,
        "one encoding",
      );
    }
    let found = 0;
    for (let number = 0; number < 256; number++) {
      const random = new Prng(number);
      for (let round = 0; round < 20; round++) {
        const command = readCommand(new InventingReader(random, [number, 1]));
        if (command === "unknown") break;
        if (command === null) continue;
        if (round === 0) found++;
        const again = decodeEntry(encodeEntry(stamp, [command]));
        t.strictSame(again.ok && again.value.commands, [command], command.kind);
      }
    }
    t.ok(found >= 22, `${found} kinds were found by their numbers`);
    let sum = 0;
    for (const command of everyKind) sum += commandSizeBytes(command);
    t.equal(sum + 1 + 8 + 16 + 1, encoded.length);
    const failureOf = (entry: Uint8Array): string => {
      const result = decodeEntry(entry);
      return result.ok ? "ok" : result.code;
    };
    for (let at = 0; at < encoded.length; at++)
      t.equal(failureOf(encoded.slice(0, at)), "malformed");
    t.equal(failureOf(new Uint8Array([...encoded, 0])), "malformed", "a byte too many");
    const one = encodeEntry(stamp, [{ kind: "advance-clock" }]);
    t.equal(failureOf(one), "ok");
    for (const [at, byte] of [
      [0, 2],
      [one.length - 2, 200],
      [one.length - 1, 2],
    ] as const) {
      const changed = one.slice();
      changed[at] = byte;
      t.equal(failureOf(changed), "unknown-version");
    }
    t.throws(() => encodeEntry(stamp, [lock("\ud800", "o", 1)]), /well-formed/);
    t.throws(() => encodeEntry(stamp, [lock("r", "o", 2 ** 31)]), /int32/);
    t.throws(() => encodeEntry(stamp, [create("s", { initialValue: INT64_MAX + 1n })]), /int64/);
    const bench = new Bench();
    t.equal(bench.apply(1, ...everyKind).length, everyKind.length, "apply gives one outcome each");
    t.end();
  },
);
