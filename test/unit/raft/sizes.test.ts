/**
 * Sizes, windows and budgets of the core against deliberately naive second versions.
 */
import fc from "fast-check";
import t from "tap";
import { ApplyBudget } from "../../../src/raft/state/applybudget.js";
import { ChangeLog } from "../../../src/raft/state/changelog.js";
import { Inflight } from "../../../src/raft/state/inflight.js";
import { SizeLog } from "../../../src/raft/state/sizes.js";
import type { ConfigPosition } from "../../../src/raft/state/types.js";

type Operation =
  | { readonly kind: "push"; readonly size: number; readonly times: number }
  | { readonly kind: "cut"; readonly part: number }
  | { readonly kind: "compact"; readonly part: number }
  | { readonly kind: "limit"; readonly part: number; readonly budget: number };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ kind: fc.constant("push" as const), size: fc.nat(50), times: fc.nat(900) }),
  fc.record({ kind: fc.constant("cut" as const), part: fc.nat(100) }),
  fc.record({ kind: fc.constant("compact" as const), part: fc.nat(100) }),
  fc.record({
    kind: fc.constant("limit" as const),
    part: fc.nat(100),
    budget: fc.nat(3000),
  }),
);

/** One size per entry, in a plain list that begins behind `floor`. */
class NaiveSizes {
  floor = 10;
  sizes: number[] = [];

  get last(): number {
    return this.floor + this.sizes.length;
  }

  at(part: number): number {
    return this.floor + Math.floor((this.sizes.length * part) / 100);
  }

  between(first: number, last: number): number {
    let sum = 0;
    for (let index = first; index <= last; index++) {
      sum += this.sizes[index - this.floor - 1] ?? 0;
    }
    return sum;
  }
}

t.test("sizes equal a plain list of sizes after any pushes, cuts and compactions", (t) => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 25 }), fc.nat(7), (operations, overhead) => {
      const real = new SizeLog(10, [], 10);
      const naive = new NaiveSizes();
      for (const step of operations) {
        if (step.kind === "push") {
          for (let time = 0; time < step.times; time++) {
            real.push(step.size + (time % 3));
            naive.sizes.push(step.size + (time % 3));
          }
        } else if (step.kind === "cut") {
          const last = naive.at(step.part);
          real.cut(last);
          naive.sizes.length = last - naive.floor;
        } else if (step.kind === "compact") {
          const floor = naive.at(step.part);
          real.compact(floor);
          naive.sizes.splice(0, floor - naive.floor);
          naive.floor = floor;
        } else if (naive.sizes.length > 0) {
          const first = Math.min(naive.at(step.part) + 1, naive.last);
          let expected = first;
          const fits = (to: number): boolean => {
            return naive.between(first, to) + (to - first + 1) * overhead <= step.budget;
          };
          while (expected < naive.last && fits(expected + 1)) expected++;
          const found = real.limit(first, naive.last, step.budget, overhead);
          if (found !== expected) return false;
        }
        const middle = naive.at(50);
        if (real.between(middle + 1, naive.last) !== naive.between(middle + 1, naive.last)) {
          return false;
        }
      }
      const listed = real.list(naive.floor + 1, naive.last);
      return JSON.stringify(listed) === JSON.stringify(naive.sizes);
    }),
    { numRuns: 60 },
  );
  t.end();
});

t.test("restored sizes: exact at the borders of stretches, averaged within, never falling", (t) => {
  const stretches = fc.array(
    fc.record({ count: fc.integer({ min: 1, max: 9 }), bytes: fc.nat(99) }),
    {
      minLength: 1,
      maxLength: 8,
    },
  );
  fc.assert(
    fc.property(stretches, fc.nat(100), (list, part) => {
      let first = 6;
      const runs = list.map(({ count, bytes }) => {
        const run = { first, sizeBytes: bytes };
        first += count;
        return run;
      });
      const last = first - 1;
      const sizes = new SizeLog(5, runs, last);
      runs.forEach((run, at) => {
        const end = (runs[at + 1]?.first ?? last + 1) - 1;
        if (sizes.between(run.first, end) !== run.sizeBytes) t.fail("a border is off");
        const even = run.sizeBytes / (end - run.first + 1);
        for (const size of sizes.list(run.first, end)) {
          if (size < Math.floor(even) || size > Math.ceil(even)) t.fail("not averaged");
        }
      });
      const cut = 5 + Math.floor(((last - 5) * part) / 100);
      const before = sizes.between(6, cut);
      sizes.cut(cut);
      sizes.push(7);
      return sizes.between(6, cut) === before && sizes.between(cut + 1, cut + 1) === 7;
    }),
  );
  t.throws(() => new SizeLog(5, [{ first: 7, sizeBytes: 1 }], 8), /without a gap/);
  t.throws(() => new SizeLog(5, [], 8), /to its end/);
  t.throws(() => new SizeLog(5, [], 5).push(-1), /whole number/);
  t.end();
});

t.test("P-035 windows equal a plain list of what is on its way", (t) => {
  const step = fc.record({ add: fc.boolean(), size: fc.nat(9), free: fc.nat(30) });
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.integer({ min: 1, max: 9 }),
      (steps, most) => {
        const real = new Inflight(most, 20);
        let naive: { last: number; size: number }[] = [];
        let next = 1;
        const bytes = (): number => naive.reduce((sum, { size }) => sum + size, 0);
        for (const { add, size, free } of steps) {
          if (add && naive.length < most && bytes() < 20) {
            real.add(next, size);
            naive.push({ last: next, size });
            next += 1 + (size % 3);
          } else if (!add) {
            real.freeUpTo(free);
            naive = naive.filter(({ last }) => last > free);
          }
          const full = naive.length >= most || bytes() >= 20;
          if (real.count !== naive.length || real.sizeBytes !== bytes() || real.full !== full) {
            return false;
          }
        }
        return true;
      },
    ),
  );
  const full = new Inflight(1, 9);
  full.add(1, 1);
  t.throws(() => full.add(2, 1), /takes nothing/);
  t.end();
});

t.test("the apply budget gives bytes back with the last entry of a batch, and once", (t) => {
  const budget = new ApplyBudget(10);
  budget.handOut(3, 6, false);
  t.equal(budget.paused, false);
  t.equal(budget.freeBytes, 4);
  budget.handOut(5, 4, false);
  t.equal(budget.paused, true, "used up");
  budget.acknowledge(2);
  t.equal(budget.freeBytes, 0, "the batch is not done");
  budget.acknowledge(3);
  t.equal(budget.freeBytes, 6);
  budget.acknowledge(3);
  t.equal(budget.freeBytes, 6);
  budget.handOut(6, 1, true);
  t.equal(budget.paused, true, "cut short: wait");
  budget.acknowledge(6);
  t.equal(budget.freeBytes, 10);
  t.equal(budget.paused, false);
  t.end();
});

t.test("P-084 positions of membership changes follow cuts and compactions", (t) => {
  const indexes = fc.uniqueArray(fc.integer({ min: 1, max: 30 }), { maxLength: 10 });
  fc.assert(
    fc.property(indexes, fc.nat(31), fc.nat(31), (list, last, floor) => {
      const positions = [...list]
        .sort((left, right) => left - right)
        .map((index): ConfigPosition => ({ index, kind: "configChangeV2" }));
      const log = new ChangeLog(positions);
      log.cut(last);
      log.compact(floor);
      const left = positions.filter(({ index }) => index <= last && index > floor);
      for (let index = 0; index <= 31; index++) {
        const there = left.some((position) => position.index === index);
        if ((log.kindAt(index) !== "normal") !== there) return false;
        const within = left.some((position) => position.index > index && position.index <= 20);
        if (log.hasWithin(index, 20) !== within) return false;
      }
      return JSON.stringify(log.between(1, 31)) === JSON.stringify(left);
    }),
  );
  t.end();
});
