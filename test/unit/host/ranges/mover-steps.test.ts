/** One move at the leader of its source, step by step: what it asks of whom, and what it waits for. */
import t from "tap";
import { attempt, moveId, rangeGeneration } from "../../../../src/base/ids.js";
import { CopyPace } from "../../../../src/host/ranges/copy-pace.js";
import { RangeMover, type RangeMoverDeps } from "../../../../src/host/ranges/range-mover.js";
import type { SourceGroup } from "../../../../src/host/ranges/source-group.js";
import { RangeTally } from "../../../../src/host/requests/range-tally.js";
import type { ProposalDone } from "../../../../src/host/requests/results.js";
import type {
  RangeCommand,
  RangeMove,
  RangeStatus,
} from "../../../../src/machine/commands/command.js";
import type { CopySource } from "../../../../src/machine/ranges/copy-source.js";
import type { IntervalCount } from "../../../../src/machine/ranges/interval-count.js";

const MOVE: RangeMove = {
  ...{ moveId: moveId(4), kind: "split", keySpace: "s", startKey: "s/m", endKey: null },
  ...{ source: 1, target: 3, generation: rangeGeneration(1), attempt: attempt(1) },
  ...{ phase: "copying", reason: "none", sourceDone: false, targetDone: false },
  deadlineLeaseMs: 600_000,
};
const ITEM = { key: "s/n", row: null, continues: false, history: [] };

/** The source, the target and meta decide at once, but for what is held. */
class Bench {
  nowMs = 1000;
  claims = 1;
  /** Keys that changed, as the copy would say when it is asked next. */
  noted = 0;
  /** Slices that the count of the source takes. */
  countSlices = 1;
  holdsFreeze = false;
  /** The target says nothing about a close. */
  losesClose = false;
  frozen: number | null = null;
  readonly asked: string[] = [];
  readonly held: (() => void)[] = [];
  private readonly queue: (() => void)[] = [];
  readonly mover: RangeMover;

  constructor() {
    this.mover = new RangeMover(this.deps(), this.group(), MOVE);
  }

  private deps(): RangeMoverDeps {
    return {
      nowMs: () => this.nowMs,
      soon: (callback) => void this.queue.push(callback),
      wakeAt: () => undefined,
      logger: { log: () => undefined },
      pace: new CopyPace(1e9),
      tally: new RangeTally(),
      proposeOnMeta: (command, _deadlineMs, done) => {
        if (command.kind === "retry-move" && command.attempt !== this.claims) {
          // The question whether the attempt stands.
          return this.later(() => {
            done({ status: "applied", outcome: "stale", version: this.claims, items: [] });
          });
        }
        this.asked.push(command.kind);
        if (command.kind === "retry-move") this.claims++;
        this.later(() =>
          done({ status: "applied", outcome: "done", version: this.claims, items: [] }),
        );
      },
      proposeRange: (_partition, command, _deadlineMs, done) => {
        this.asked.push(command.kind);
        if (command.kind === "range-close" && this.losesClose) return;
        const status = command.kind === "range-close" ? "closed" : "done";
        this.later(() => done({ status: "applied", outcome: ended(status) }));
      },
    };
  }

  private group(): SourceGroup {
    const slice = (items: readonly (typeof ITEM)[]) => {
      return { items, sizeBytes: 10, visits: 1, leaseMs: 1, isEnd: true };
    };
    const copy = {
      overrun: false,
      next: () => slice([ITEM]),
      nextNoted: () => {
        const items = this.noted > 0 ? [ITEM] : [];
        this.noted = 0;
        return slice(items);
      },
      close: () => undefined,
    };
    Object.defineProperty(copy, "notedKeys", { get: () => this.noted });
    return {
      isServing: () => true,
      term: () => 1,
      propose: (command, _deadlineMs, done) => this.propose(command, done),
      openCopy: () => copy as unknown as CopySource,
      openCount: () => {
        const count = {
          overrun: false,
          next: () => --this.countSlices <= 0,
          counted: { keys: 1, digestLow: 0, digestHigh: 0 },
          close: () => undefined,
        };
        return count as unknown as IntervalCount;
      },
      frozenFor: () => (this.frozen === null ? null : attempt(this.frozen)),
    };
  }

  private propose(command: RangeCommand, done: ProposalDone): void {
    this.asked.push(command.kind);
    const apply = (): void => {
      if (command.kind === "range-freeze") this.frozen = command.attempt;
      if (command.kind === "range-unfreeze") this.frozen = null;
      const outcome = ended("done");
      this.later(() => done({ status: "applied", outcome, leaseMs: 1, term: 1, index: 1 }));
    };
    if (command.kind === "range-freeze" && this.holdsFreeze) this.held.push(apply);
    else apply();
  }

  private later(callback: () => void): void {
    this.queue.push(callback);
  }

  /** Runs what is due; true when the mover came to the step. */
  runTo(step: string): boolean {
    for (let turn = 0; turn < 500 && this.mover.step !== step && !this.mover.isOver; turn++) {
      this.turn();
    }
    return this.mover.step === step;
  }

  turn(): void {
    const next = this.queue.shift();
    if (next !== undefined) return next();
    this.nowMs += 10;
    this.mover.tick(this.nowMs);
  }

  run(): void {
    for (let turn = 0; turn < 1000 && !this.mover.isOver; turn++) this.turn();
  }
}

function ended(status: RangeStatus) {
  return { kind: "range", status, nextImport: 1, keys: 0, dropped: 0 } as const;
}

void t.test("a move without trouble: each step once, in its order", (t) => {
  const bench = new Bench();
  bench.run();
  t.ok(bench.mover.isOver);
  const steps = "retry-move range-open range-import range-freeze range-close cut-range";
  t.equal(bench.asked.join(" "), steps);
  t.end();
});

void t.test("P-100 a freeze that is applied late is opened before keys are copied again", (t) => {
  const bench = new Bench();
  bench.holdsFreeze = true;
  t.ok(bench.runTo("freeze"));
  bench.asked.length = 0;
  t.ok(bench.runTo("claim"), "nobody waits for it for long");
  bench.holdsFreeze = false;
  t.equal(bench.frozen, null, "it is not applied yet");
  t.ok(bench.runTo("copy"));
  t.match(bench.asked.join(" "), /range-unfreeze range-open$/, "it would stand before this");
  for (const apply of bench.held.splice(0)) apply();
  bench.frozen = null;
  bench.run();
  t.equal(bench.asked.at(-1), "cut-range");
  t.end();
});

void t.test(
  "P-100 what was frozen for too long is opened when the next attempt was claimed",
  (t) => {
    const bench = new Bench();
    bench.losesClose = true;
    t.ok(bench.runTo("close"));
    t.equal(bench.frozen, 2);
    bench.asked.length = 0;
    t.ok(bench.runTo("claim"), "the target says nothing for two seconds");
    bench.losesClose = false;
    bench.run();
    const before = bench.asked.splice(0, bench.asked.indexOf("retry-move"));
    t.notOk(before.includes("range-unfreeze"));
    const anew = "retry-move range-unfreeze range-open range-import";
    t.equal(bench.asked.join(" "), `${anew} range-freeze range-close cut-range`);
    t.end();
  },
);

void t.test("P-101 what changed until the freeze is brought along before the close", (t) => {
  const bench = new Bench();
  t.ok(bench.runTo("freeze"));
  bench.asked.length = 0;
  bench.noted = 3;
  bench.run();
  t.equal(bench.asked.join(" "), "range-freeze range-import range-close cut-range");
  t.end();
});

void t.test(
  "what changes while a large range is counted is brought along before it is frozen",
  (t) => {
    const bench = new Bench();
    bench.countSlices = 20;
    t.ok(bench.runTo("verify"));
    bench.asked.length = 0;
    bench.noted = 5000;
    t.ok(bench.runTo("freeze"));
    t.equal(bench.asked.join(" "), "range-import", "in one pass more");
    t.equal(bench.noted, 0);
    bench.run();
    t.equal(bench.asked.at(-1), "cut-range");
    t.end();
  },
);

void t.test("passes come to an end, however much changes", (t) => {
  const bench = new Bench();
  t.ok(bench.runTo("copy"));
  for (let turn = 0; turn < 2000 && bench.mover.step !== "freeze"; turn++) {
    bench.noted = 5000;
    bench.turn();
  }
  t.equal(bench.mover.step, "freeze");
  t.end();
});
