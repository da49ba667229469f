/**
 * Folding, sharing and ranges: release build, checked build and twin against naive oracles.
 */
import fc from "fast-check";
import t from "tap";
import { rangeVerdict, sizes } from "../../../src/wasm/kernels.js";
import { makeSets } from "./sets.js";

const sets = makeSets();

function sameText(left: readonly unknown[], right: readonly unknown[]): boolean {
  return left.length === right.length && left.every((value, at) => value === right[at]);
}

/** Numbers of the last write of each key, by key bytes: with a Map and Buffer.compare. */
function slowFold(keys: readonly Uint8Array[]): number[] {
  const last = new Map<string, number>();
  keys.forEach((key, at) => last.set(Buffer.from(key).toString("hex"), at));
  const numbers = [...last.values()];
  return numbers.sort((left, right) =>
    Buffer.compare(keys[left] as Uint8Array, keys[right] as Uint8Array),
  );
}

function foldAll(keys: readonly Uint8Array[]): boolean {
  const expected = slowFold(keys);
  return sets.every(({ kernels }) => {
    kernels.compact.clearKeys();
    if (!keys.every((key) => kernels.compact.addKey(key))) return false;
    return sameText([...kernels.compact.fold()], expected);
  });
}

t.test("fold keeps the last write of each key, in the order of bytes", async (t) => {
  // Few different bytes and lengths around eight: long common prefixes, zero bytes, equal keys.
  const byte = fc.constantFrom(0, 1, 127, 128, 255);
  const tight = fc.array(byte, { maxLength: 20 }).map((bytes) => Uint8Array.from(bytes));
  const text = fc.constantFrom("a", "orders/1", "orders/10", "orders/2/state", "ä", "\u{10437}");
  const key = fc.oneof(
    tight,
    tight,
    text.map((value) => new TextEncoder().encode(value)),
  );
  fc.assert(fc.property(fc.array(key, { maxLength: 60 }), foldAll), { numRuns: 400 });
  const ladder = Array.from({ length: 300 }, (_, at) => new Uint8Array(8 * (300 - at)));
  t.ok(foldAll([...ladder, ...ladder]), "each key is the beginning of the next");
  const random = fc.sample(fc.uint8Array({ minLength: 1, maxLength: 3 }), {
    numRuns: 20_000,
    seed: 3,
  });
  t.ok(foldAll(random), "20,000 keys");
  t.ok(foldAll(Array.from({ length: 9000 }, (_, at) => Uint8Array.of(9 - (at % 9)))), "equals");
  t.ok(foldAll([]), "none");
});

t.test("fold: the limits of a batch", async (t) => {
  for (const { kernels } of sets) {
    const { compact } = kernels;
    compact.clearKeys();
    const large = new Uint8Array(sizes.keyBytes - 1).fill(255);
    t.ok(compact.addKey(large));
    t.ok(compact.addKey(Uint8Array.of(7)), "filled to the last byte");
    t.notOk(compact.addKey(Uint8Array.of(7)), "and no further");
    t.strictSame([...compact.fold()], [1, 0]);
    compact.clearKeys();
    for (let at = 0; at < sizes.keys; at++) compact.addKey(Uint8Array.of(at >> 8, at));
    t.notOk(compact.addKey(Uint8Array.of(7)));
    t.equal(compact.fold().length, sizes.keys);
  }
});

t.test("many calls share one reservation, in order, within its limit", async (t) => {
  const edge = fc.constantFrom(1, 2, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1);
  const count = fc.oneof(edge, fc.integer({ min: 1, max: 1000 }));
  const limit = fc.oneof(fc.constantFrom(0, 1, 2 ** 31 - 1, 2 ** 32, 2 ** 53 - 1), fc.nat(5000));
  fc.assert(
    fc.property(fc.array(count, { maxLength: 40 }), limit, (counts, most) => {
      const offsets: number[] = [];
      let total = 0;
      for (const wanted of counts) {
        if (total + wanted > most) break;
        offsets.push(total);
        total += wanted;
      }
      return sets.every(({ kernels }) => {
        const shared = kernels.compact.share(counts, most);
        const found = [...shared.offsetLow.subarray(0, shared.taken)].map(
          (low, at) => low + (shared.offsetHigh[at] as number) * 2 ** 32,
        );
        const { taken } = shared;
        return taken === offsets.length && shared.total === total && sameText(found, offsets);
      });
    }),
    { numRuns: 400 },
  );
  for (const { kernels } of sets) {
    const all = new Uint32Array(sizes.shareItems).fill(2 ** 32 - 1);
    const shared = kernels.compact.share(all, 2 ** 53 - 1);
    t.equal(shared.taken, sizes.shareItems);
    t.equal(shared.total, sizes.shareItems * (2 ** 32 - 1));
    t.throws(() => kernels.compact.share(new Uint32Array(sizes.shareItems + 1), 1), /fit/);
  }
});

const most = 2n ** 63n - 1n;
const least = -(2n ** 63n);
const edges = [0n, 1n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 62n, most];
const near = fc
  .tuple(fc.constantFrom(...edges, ...edges.map((edge) => -edge), least), fc.bigInt(-3n, 3n))
  .map(([edge, step]) => BigInt.asIntN(64, edge + step));
const int64 = fc.oneof(near, fc.bigInt(least, most));
const positive = fc.oneof(
  fc.bigInt(1n, 10n),
  near.map((value) => (value > 0n ? value : 1n)),
  fc.bigInt(1n, most),
);
const wants = fc.oneof(
  fc.constantFrom(0, 1, 2, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1),
  fc.integer({ min: 1, max: 100 }),
);

interface Wanted {
  readonly current: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | undefined;
  readonly counts: readonly number[];
}

function slowRanges({ current, increment, maxValue, counts }: Wanted): string[] {
  let cursor = current;
  const lines = counts.map((count) => {
    const end = cursor + BigInt(count) * increment;
    const start = cursor + increment;
    if (count < 1 || count >= 2 ** 31) return `0 0 ${String(rangeVerdict.invalidCount)}`;
    if (end > most) return `0 0 ${String(rangeVerdict.beyondInt64)}`;
    if (maxValue !== undefined && end > maxValue) {
      return `0 0 ${String(rangeVerdict.beyondMaxValue)}`;
    }
    cursor = end;
    return `${String(start)} ${String(end)} ${String(rangeVerdict.ok)}`;
  });
  return [...lines, String(cursor)];
}

function rangesAll(wanted: Wanted): boolean {
  const expected = slowRanges(wanted);
  const granted = expected.filter((line) => line.endsWith(` ${String(rangeVerdict.ok)}`)).length;
  return sets.every(({ kernels }) => {
    const { ranges } = kernels;
    ranges.counts.set(wanted.counts);
    if (ranges.allocate(wanted.counts.length, wanted) !== granted) return false;
    const lines = wanted.counts.map((_, item) =>
      [ranges.start(item), ranges.end(item), ranges.verdicts[item]].join(" "),
    );
    return sameText([...lines, String(ranges.current())], expected);
  });
}

t.test("P-078 P-079 ranges are exact at every edge, and refusals consume nothing", async (t) => {
  const wanted = fc.record({
    current: int64,
    increment: positive,
    maxValue: fc.option(int64, { nil: undefined }),
    counts: fc.array(wants, { maxLength: 12 }),
  });
  fc.assert(fc.property(wanted, rangesAll), { numRuns: 3000 });
  // The rest of a range, exactly: never too little, never one too much.
  const exact = fc.tuple(positive, fc.integer({ min: 1, max: 2 ** 31 - 1 }), fc.bigInt(0n, 2n));
  fc.assert(
    fc.property(exact, int64, fc.boolean(), ([increment, count, short], end, limited) => {
      const current = end - increment * BigInt(count);
      if (current < least) return true;
      const maxValue = limited ? end - short : undefined;
      const counts = [count, Math.max(1, count - 1), 1, 1];
      return rangesAll({ current, increment, maxValue, counts });
    }),
    { numRuns: 2000 },
  );
  for (const { kernels } of sets) {
    const { ranges } = kernels;
    ranges.counts.set([5, 4, 1]);
    const cursor = { current: most - 4n, increment: 1n, maxValue: undefined };
    t.equal(ranges.allocate(3, cursor), 1);
    t.strictSame([...ranges.verdicts.subarray(0, 3)], [2, 0, 2], "a smaller request succeeds");
    t.equal(ranges.current(), most, "the last value is exactly the largest");
    t.equal(ranges.end(1).toBigInt(), most);
    t.equal(ranges.allocate(0, cursor), 0);
    t.equal(ranges.current(), most - 4n, "no items change nothing");
    t.throws(() => ranges.allocate(1, { ...cursor, increment: 0n }), /at least 1/);
    t.throws(() => ranges.allocate(1, { ...cursor, current: most + 1n }), /int64/);
    t.throws(() => ranges.allocate(1, { ...cursor, maxValue: most + 1n }), /int64/);
    t.throws(() => ranges.allocate(sizes.rangeItems + 1, cursor), /fit/);
  }
});
