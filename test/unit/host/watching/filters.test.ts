/** Who watches a name: against looking at every filter. */
import t from "tap";
import { WatchKind } from "../../../../src/base/result-types.js";
import { Prng } from "../../../../src/base/prng.js";
import { keySpaceOf } from "../../../../src/base/routing.js";
import { watchEvent } from "../../../../src/machine/events.js";
import { Filters, type Filter, type NameSort } from "../../../../src/host/watching/filters.js";
import { type WatchRequest, keptOf } from "../../../../src/host/watching/messages.js";

/** As the contract has it, filter by filter (K12, K15). */
function watches({ kind, name }: Filter, sort: NameSort, of: string): boolean {
  switch (kind) {
    case WatchKind.key:
      return sort === "key" && name === of;
    case WatchKind.prefix:
      return sort === "key" && of.startsWith(name);
    case WatchKind.bucket:
      return sort === "key" && keySpaceOf(of) === name;
    case WatchKind.lock:
      return sort === "lock" && name === of;
    case WatchKind.lockPrefix:
      return sort === "lock" && of.startsWith(name);
    default:
      return sort === "sequence" && name === of;
  }
}

t.test("a name is found by exactly the filters that it belongs to", (t) => {
  const random = new Prng(18);
  const letters = ["a", "b", "/", "é", "𐍈"];
  const text = (): string => {
    let made = letters[random.below(2)] ?? "a";
    for (let left = random.below(6); left > 0; left--) made += letters[random.below(5)] ?? "a";
    return made;
  };
  const filters = new Filters();
  for (let round = 0; round < 4000; round++) {
    const kind = 1 + random.below(6);
    if (random.below(3) > 0) filters.take(kind, text());
    else {
      const known = [...filters.all()];
      const gone = known[random.below(Math.max(1, known.length))];
      if (gone !== undefined && filters.size > 40) filters.remove(gone);
    }
    const name = text();
    for (const sort of ["key", "lock", "sequence"] as const) {
      const found = new Set(filters.of(sort, name));
      for (const filter of filters.all()) {
        if (found.has(filter) !== watches(filter, sort, name)) {
          t.fail(`${filter.query} and the ${sort} ${name}`);
        }
      }
    }
  }
  t.ok(filters.size > 10);
  t.end();
});

t.test("W16 prefixes have 64 lengths at most", (t) => {
  const filters = new Filters();
  for (let length = 1; length <= 64; length++) {
    t.ok(filters.take(WatchKind.prefix, "p".repeat(length)));
  }
  t.equal(filters.take(WatchKind.prefix, "p".repeat(65)), null);
  t.ok(filters.take(WatchKind.prefix, "q".repeat(64)), "one of a length that is there");
  t.ok(filters.take(WatchKind.lockPrefix, "p".repeat(65)), "locks are another thing");
  t.end();
});

t.test("the history of a filter is numbered, counted, and says where it begins", (t) => {
  const filter = new Filters().take(WatchKind.key, "k");
  if (filter === null) return t.end();
  filter.partitions = new Set([4]);
  filter.gap(4, { l: 1, c: 0, leaseMs: 10 });
  const stamp = { n: 1, l: 2, c: 0 };
  const first = { l: 2, c: 0, leaseMs: 20 };
  filter.add(4, first, watchEvent(1, "k", stamp), 1);
  filter.add(4, first, watchEvent(2, "k", stamp), 1);
  filter.add(4, { l: 3, c: 0, leaseMs: 30 }, watchEvent(1, "k", stamp), 2);
  t.equal(filter.end, 2, "an entry is one batch");
  t.equal(filter.at(0)?.events.length, 2);
  t.equal(filter.sizeBytes, (filter.at(0)?.sizeBytes ?? 0) + (filter.at(1)?.sizeBytes ?? 0));
  t.ok(filter.reaches(new Map([[4, { l: 1, c: 0, leaseMs: 10 }]])));
  t.notOk(filter.reaches(new Map([[4, { l: 1, c: 0, leaseMs: 9 }]])), "an end may be missed");
  t.notOk(filter.reaches(new Map([[5, first]])), "of another partition");
  filter.dropFirst();
  t.notOk(filter.reaches(new Map([[4, { l: 1, c: 0, leaseMs: 10 }]])));
  t.ok(filter.reaches(new Map([[4, first]])));
  t.equal(filter.first, 1);
  filter.dropFirst();
  t.equal(filter.sizeBytes, 0);
  t.equal(filter.dropFirst(), 0);
  t.end();
});

t.test("P-186 what is forgotten of before a gap moves no beginning back (seed 8310257)", (t) => {
  const filter = new Filters().take(WatchKind.key, "k");
  if (filter === null) return t.end();
  filter.partitions = new Set([4]);
  filter.gap(4, { l: 1, c: 0, leaseMs: 10 });
  filter.add(4, { l: 2, c: 0, leaseMs: 20 }, watchEvent(1, "k", { n: 1, l: 2, c: 0 }), 1);
  filter.gap(4, { l: 9, c: 0, leaseMs: 90 });
  filter.dropFirst();
  t.notOk(filter.reaches(new Map([[4, { l: 3, c: 0, leaseMs: 30 }]])), "behind it the gap begins");
  t.ok(filter.reaches(new Map([[4, { l: 9, c: 0, leaseMs: 90 }]])));
  t.end();
});

t.test("W16 where a watch began is not kept, and equal requests are kept once", (t) => {
  const plain = { kind: WatchKind.key, name: "a", cursor: null, fromRevision: null };
  const first: WatchRequest = {
    ...{ ...plain, initial: false, noValues: false },
    ...{ only: 0, progressMs: 0 },
  };
  const kept = keptOf(first, null);
  t.same(kept, first);
  const resumed = { ...first, cursor: "c".repeat(1000) };
  t.equal(keptOf(resumed, kept), kept);
  t.same(keptOf(resumed, null), first);
  t.same(keptOf({ ...first, fromRevision: 7n }, null), first);
  const part = { partitions: [1], replays: "always" } as const;
  const others: readonly Partial<WatchRequest>[] = [
    { kind: WatchKind.prefix },
    { name: "b" },
    { initial: true },
    { noValues: true },
    { only: 2 },
    { progressMs: 500 },
    { eventsMax: 1 },
    { part },
  ];
  for (const other of others) t.same(keptOf({ ...first, ...other }, kept), { ...first, ...other });
  t.end();
});
