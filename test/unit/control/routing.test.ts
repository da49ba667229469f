/**
 * Routing against the vectors of the contract and a BigInt second version; range maps against naive
 * checks; the spread of leaderships.
 */
import fc from "fast-check";
import t from "tap";
import { type LeaderMove, planLeaderMoves } from "../../../src/control/leader-balance.js";
import { compareText, encodeText } from "../../../src/base/bytes.js";
import {
  bucketIndex,
  hashPartition,
  keyHashText,
  keySpaceOf,
  lockHashText,
  placementGroupOf,
  sequenceHashText,
} from "../../../src/base/routing.js";
import { findRange, isRangeKeySpace, mapFault, splitCase } from "../../../src/control/ranges.js";
import { xxh32 } from "../../../src/machine/store/digest.js";
import { attempt, moveId, rangeGeneration } from "../../../src/base/ids.js";
import type { RangeDescriptor, RangeMove } from "../../../src/machine/commands/command.js";
import { tilingFault } from "../../../src/machine/meta/range-map.js";

const vectors: readonly [string, number, number, number, number, number][] = [
  ["", 0xeb497740, 0x4dc4251d, 2, 2, 225],
  ["a", 0x45677835, 0xede2c224, 1, 14, 726],
  ["abc", 0x94247a12, 0x24610b04, 2, 2, 644],
  ["orders", 0xb9a68a18, 0x0742f76f, 1, 1, 49],
  ["orders/42", 0xe299b034, 0xfa518019, 1, 8, 897],
  ["users", 0x813b0f13, 0x2b70096d, 2, 7, 276],
  ["café", 0xfff437d7, 0x781c2722, 1, 13, 366],
  ["日本/東京", 0x298a6b18, 0x655f78bf, 0, 15, 33],
  ["a".repeat(40), 0xfcfb799a, 0x2666cb22, 0, 7, 232],
  ["__svc:sequences:orders", 0xec582048, 0x4b36c5d3, 1, 13, 324],
];

t.test("P-099 the vectors of the contract", (t) => {
  for (const [text, high, low, of3, of16, of1024] of vectors) {
    const bytes = encodeText(text);
    t.equal(xxh32(bytes, 0xaaaaaaaa), high, `${text} seed A`);
    t.equal(xxh32(bytes, 0x55555555), low, `${text} seed 5`);
    t.equal(bucketIndex(text, 3), of3);
    t.equal(bucketIndex(text, 16), of16);
    t.equal(bucketIndex(text, 1024), of1024);
    t.equal(hashPartition(text, 16), of16 + 1);
  }
  t.equal(keyHashText("orders/42/7"), "orders/42");
  t.equal(keyHashText("abc"), "abc");
  t.equal(keyHashText("users|eu/1"), "users");
  t.equal(sequenceHashText("eu/orders"), "__svc:sequences:eu/orders");
  t.equal(lockHashText("jobs/mail"), "jobs/mail");
  t.equal(keySpaceOf("/x"), "");
  t.equal(placementGroupOf("|x"), "");
  t.end();
});

/** The jump hash as the contract writes it, in BigInt. */
function naiveBucket(text: string, pool: number): number {
  const bytes = encodeText(text);
  let h = (BigInt(xxh32(bytes, 0xaaaaaaaa)) << 32n) | BigInt(xxh32(bytes, 0x55555555));
  let b = -1n;
  let j = 0n;
  while (j < BigInt(pool)) {
    b = j;
    h = (h * 2862933555777941757n + 1n) & 0xffffffffffffffffn;
    j = BigInt(Math.floor(Number(b + 1n) * (2 ** 31 / (Number(h >> 33n) + 1))));
  }
  return Number(b);
}

t.test("P-099 halves equal BigInt for random texts and pool sizes", (t) => {
  const text = fc.string({ unit: "binary", maxLength: 60 });
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 1024 }), (name, pool) => {
      return bucketIndex(name, pool) === naiveBucket(name, pool);
    }),
    { numRuns: 20_000 },
  );
  const long = "ä".repeat(3000);
  t.equal(bucketIndex(long, 1024), naiveBucket(long, 1024), "longer than the scratch buffer");
  const filled = new Set<number>();
  for (let at = 0; at < 2000; at++) filled.add(bucketIndex(`name-${at}`, 16));
  t.equal(filled.size, 16, "all buckets are used");
  t.end();
});

const FIRST = { partitionId: 1, generation: rangeGeneration(1) };

/** Descriptors over sorted distinct bounds. */
function tiling(bounds: readonly string[]): RangeDescriptor[] {
  const starts: (string | null)[] = [null, ...bounds];
  return starts.map((startKey, at) => ({
    startKey,
    endKey: bounds[at] ?? null,
    ...FIRST,
    partitionId: at + 1,
  }));
}

const boundList = fc
  .uniqueArray(fc.string({ unit: "binary", minLength: 1, maxLength: 4 }), { maxLength: 8 })
  .map((list) => list.sort(compareText));

t.test("P-104 tilings are accepted and every damage is named", (t) => {
  fc.assert(
    fc.property(boundList, fc.nat(), (bounds, pick) => {
      const descriptors = tiling(bounds);
      if (tilingFault(descriptors) !== null) return false;
      const at = pick % descriptors.length;
      const without = descriptors.filter((_, index) => index !== at);
      if (tilingFault(without) === null) return false;
      const twice = [
        ...descriptors.slice(0, at),
        ...descriptors.slice(at, at + 1),
        ...descriptors.slice(at),
      ];
      const swapped = descriptors.slice().reverse();
      return tilingFault(twice) !== null && (bounds.length === 0 || tilingFault(swapped) !== null);
    }),
    { numRuns: 2000 },
  );
  const empty = { ...FIRST, startKey: "b", endKey: "b" };
  const [first, last] = tiling(["b"]) as [RangeDescriptor, RangeDescriptor];
  t.equal(tilingFault([first, empty, last]), "empty-range");
  t.equal(tilingFault([]), "empty-map");
  t.same(mapFault([{ keySpace: "k", descriptors: [last] }]), {
    keySpace: "k",
    fault: "open-start",
  });
  t.equal(mapFault([{ keySpace: "k", descriptors: [first, last] }]), null);
  t.end();
});

t.test("P-104 a key is found in exactly the range that holds it, by byte order", (t) => {
  const key = fc.string({ unit: "binary", minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(boundList, key, (bounds, wanted) => {
      const descriptors = tiling(bounds);
      const naive = descriptors.find(
        ({ startKey, endKey }) =>
          (startKey === null || compareText(startKey, wanted) <= 0) &&
          (endKey === null || compareText(wanted, endKey) < 0),
      );
      return findRange(descriptors, wanted) === naive;
    }),
    { numRuns: 5000 },
  );
  t.equal(findRange([], "a"), null);
  for (const [name, legal] of [
    ["a", true],
    ["", false],
    ["__svc:x", false],
    ["a/meta", false],
    ["meta", true],
  ] as const) {
    t.equal(isRangeKeySpace(name), legal, name);
  }
  t.equal(isRangeKeySpace("x".repeat(1025)), false);
  t.end();
});

t.test("6.3 a split by hand: what it finds, in the order of the contract", (t) => {
  const descriptors = tiling(["k/m"]);
  const move = (change: Partial<RangeMove>): RangeMove => ({
    ...{ moveId: moveId(3), kind: "split", keySpace: "k", startKey: "k/p", endKey: null },
    ...{ source: 2, target: 3, generation: rangeGeneration(1), attempt: attempt(1) },
    ...{ phase: "copying", reason: "none", sourceDone: false, targetDone: false },
    ...{ deadlineLeaseMs: 9, ...change },
  });
  const found = (key: string, running: RangeMove | null = null, ranges = descriptors): string => {
    const one = splitCase("k", ranges, running, key);
    if (one.kind === "refused") return one.status;
    return one.kind === "runs" ? "runs" : `begins ${one.range.partitionId}`;
  };
  t.equal(found("k/n"), "begins 2");
  t.equal(found("k/c"), "begins 1");
  t.equal(found("k/n", null, []), "NoRange");
  t.equal(found("k/m"), "InvalidSplitKey", "the start of a range");
  t.equal(found("k/n/o"), "InvalidSplitKey", "of another key space");
  t.equal(found("k/p", move({})), "runs");
  t.equal(found("k/p", move({ phase: "cut" }), tiling(["k/m", "k/p"])), "runs", "it succeeded");
  t.equal(found("k/p", move({ phase: "aborting" })), "UnsettledMovingIntents");
  t.equal(found("k/n", move({})), "ConcurrentSplit");
  t.equal(found("k/n", move({ phase: "cut" })), "UnsettledMovingIntents");
  t.equal(found("k/m", move({})), "InvalidSplitKey");
  t.equal(found("k/p", move({ kind: "home" })), "ConcurrentSplit", "another kind of move");
  t.end();
});

t.test("P-106 leaderships that one node has too many of are spread in passes, then stay", (t) => {
  for (const count of [3, 20, 2000]) {
    const nodes = [1, 2, 3, 4, 5];
    const leaders = new Array<number>(count).fill(1);
    const planned = (self: number): LeaderMove[] => {
      const all = leaders.map((leader, partition) => ({ partition, leader, candidates: nodes }));
      const mine = all.filter(({ leader }) => leader === self);
      const groups = mine.map((one) => ({ ...one, ledForMs: 60_000, isChanging: false }));
      const leads = (nodeId: number) => leaders.filter((leader) => leader === nodeId).length;
      const counted = nodes.map((nodeId) => ({ nodeId, leads: leads(nodeId) }));
      return planLeaderMoves({ self, isLeaving: false, nodes: counted, groups });
    };
    let passes = 0;
    for (; passes < 100; passes++) {
      const moves = nodes.flatMap((node) => planned(node));
      if (moves.length === 0) break;
      t.ok(moves.length <= Math.max(4, count / 4), "not all at once");
      for (const { partition, to } of moves) leaders[partition] = to;
    }
    const led = nodes.map((node) => leaders.filter((leader) => leader === node).length);
    t.ok(Math.max(...led) - Math.min(...led) <= 1, `an even spread of ${count}: ${led.join(" ")}`);
    t.ok(passes <= 25, `a pass takes half a minute, ${count} groups took ${passes}`);
  }
  t.end();
});
