/**
 * What every LogPort must do, whoever made it: one suite for the real, the in-memory and a
 * simulated log.
 *
 * Invariants: 1. Only the port and the harness are used. 2. Nothing here depends on timing.
 */
import type { Test } from "tap";
import { type PartitionId, partitionId } from "../../src/base/ids.js";
import type { HardState, LogEntry, LogPort, LogPosition } from "../../src/ports.js";

export interface LogHarness {
  /** Opens the log; again after `restart`. */
  open(): Promise<LogPort>;
  /** Starts something and waits until it answers. */
  call<T>(start: (done: (value: T) => void) => void): Promise<T>;
  /** True when what was written is still there after close and open. */
  readonly survives: boolean;
  /** Ends everything. */
  finish(): Promise<void>;
}

const A = partitionId(3);
const B = partitionId(4);

export function makeEntries(first: number, last: number, term: number, bytes = 50): LogEntry[] {
  const list: LogEntry[] = [];
  for (let index = first; index <= last; index++) {
    const payload = new Uint8Array(bytes).fill((index * 7 + term) & 255);
    list.push({ index, term, kind: index % 4 === 0 ? 2 : 0, payload });
  }
  return list;
}

class Driver {
  constructor(
    readonly harness: LogHarness,
    public log: LogPort,
  ) {}

  write(
    group: PartitionId,
    entries: LogEntry[],
    hardState: HardState | null = null,
  ): Promise<void> {
    return this.harness.call<undefined>((done) => {
      this.log.write({ group, hardState, entries, done: () => done(undefined) });
    }) as Promise<void>;
  }

  async read(group: PartitionId, first: number, last: number, maxBytes = 1e9): Promise<string> {
    const found = await this.harness.call<readonly LogEntry[] | string>((done) => {
      this.log.read(group, first, last, maxBytes, (result) => {
        done(result.ok ? result.value : result.code);
      });
    });
    return typeof found === "string" ? found : found.map(describeEntry).join(" ");
  }

  reset(group: PartitionId, floor: LogPosition, hardState: HardState): Promise<unknown> {
    return this.harness.call<undefined>((done) => {
      this.log.resetGroup(group, floor, hardState, () => done(undefined));
    });
  }

  async reopen(): Promise<void> {
    await this.harness.call<undefined>((done) => this.log.close(() => done(undefined)));
    this.log = await this.harness.open();
  }
}

export function describeEntry(entry: LogEntry): string {
  const { index, term, kind, payload } = entry;
  const content = `${String(payload.length)}/${String(payload[0] ?? -1)}`;
  return `${String(index)}:${String(term)}:${String(kind)}:${content}`;
}

function describe(list: readonly LogEntry[]): string {
  return list.map(describeEntry).join(" ");
}

type Case = (t: Test, driver: Driver) => Promise<void>;

const cases: Readonly<Record<string, Case>> = {
  "what was written is read back, in parts that fit": async (t, driver) => {
    await driver.write(A, makeEntries(1, 9, 1));
    await driver.write(B, makeEntries(1, 3, 2), { term: 2, vote: 1, commit: 3 });
    t.equal(await driver.read(A, 1, 9), describe(makeEntries(1, 9, 1)));
    t.equal(await driver.read(A, 4, 6), describe(makeEntries(4, 6, 1)));
    t.equal(await driver.read(A, 2, 9, 100), describe(makeEntries(2, 3, 1)), "two fit 100 bytes");
    t.equal(await driver.read(A, 2, 9, 1), describe(makeEntries(2, 2, 1)), "one at least");
    t.equal(await driver.read(B, 1, 3), describe(makeEntries(1, 3, 2)));
    t.equal(await driver.read(A, 8, 20), describe(makeEntries(8, 9, 1)), "what there is");
    t.equal(await driver.read(A, 10, 20), "", "nothing above the end");
  },
  "P-115 an entry voids all earlier-written ones from its index on": async (t, driver) => {
    await driver.write(A, makeEntries(1, 7, 1));
    await driver.write(A, makeEntries(5, 5, 2));
    t.equal(await driver.read(A, 5, 7), describe(makeEntries(5, 5, 2)));
    await driver.write(A, makeEntries(6, 8, 3));
    t.equal(
      await driver.read(A, 4, 9),
      describe([...makeEntries(4, 4, 1), ...makeEntries(5, 5, 2), ...makeEntries(6, 8, 3)]),
    );
  },
  "a read of what is not durable yet waits for it": async (t, driver) => {
    const results = await driver.harness.call<string[]>((done) => {
      const order: string[] = [];
      const arrived = (what: string): void => {
        order.push(what);
        if (order.length === 2) done(order);
      };
      const entries = makeEntries(1, 2, 1);
      driver.log.write({ group: A, hardState: null, entries, done: () => arrived("written") });
      driver.log.read(A, 1, 2, 1000, (result) => {
        arrived(result.ok ? describe(result.value) : result.code);
      });
    });
    t.same(results.sort(), [describe(makeEntries(1, 2, 1)), "written"].sort());
  },
  "a read above the end is answered while others write": async (t, driver) => {
    await driver.write(A, makeEntries(1, 2, 1));
    let isAnswered = false;
    const written = await driver.harness.call<number>((done) => {
      let index = 0;
      const put = (): void => {
        if (isAnswered || index === 500) return done(index);
        index++;
        const entries = makeEntries(index, index, 1);
        driver.log.write({ group: B, hardState: null, entries, done: put });
      };
      put();
      driver.log.read(A, 3, 9, 1000, (result) => {
        isAnswered = true;
        t.same(result, { ok: true, value: [] });
      });
    });
    t.ok(written < 500, "it did not wait for the log to fall idle");
  },
  "a floor hides what is below it": async (t, driver) => {
    await driver.write(A, makeEntries(1, 10, 4));
    driver.log.raiseFloor(A, { index: 6, term: 4 });
    driver.log.raiseFloor(A, { index: 3, term: 4 });
    t.equal(await driver.read(A, 6, 8), "compacted");
    t.equal(await driver.read(A, 7, 8), describe(makeEntries(7, 8, 4)));
    await driver.write(A, makeEntries(11, 11, 4));
    t.equal(await driver.read(A, 7, 11), describe(makeEntries(7, 11, 4)));
  },
  "an installed snapshot replaces all entries": async (t, driver) => {
    await driver.write(A, makeEntries(1, 4, 1));
    await driver.reset(A, { index: 100, term: 7 }, { term: 8, vote: 0, commit: 100 });
    t.equal(await driver.read(A, 4, 4), "compacted");
    t.equal(await driver.read(A, 100, 101), "compacted");
    await driver.write(A, makeEntries(101, 103, 8));
    t.equal(await driver.read(A, 101, 103), describe(makeEntries(101, 103, 8)));
  },
  "a forgotten group is gone": async (t, driver) => {
    await driver.write(A, makeEntries(1, 4, 1), { term: 1, vote: 2, commit: 3 });
    await driver.write(B, makeEntries(1, 2, 1));
    await driver.harness.call<undefined>((done) => {
      driver.log.forgetGroup(A, () => done(undefined));
      t.notOk(driver.log.recovered().has(A), "nothing of it is known any more");
    });
    t.equal(await driver.read(A, 1, 4), "");
    await driver.reopen();
    t.notOk(driver.log.recovered().has(A));
  },
  "P-097 a group that comes again after it was forgotten begins anew": async (t, driver) => {
    await driver.write(A, makeEntries(1, 9, 1), { term: 7, vote: 2, commit: 3 });
    await driver.reopen();
    driver.log.forgetGroup(A, () => undefined);
    await driver.write(A, makeEntries(1, 2, 8), { term: 8, vote: 0, commit: 1 });
    t.notOk(driver.log.recovered().has(A), "what was found at the start is of another life");
    t.equal(await driver.read(A, 1, 9), describe(makeEntries(1, 2, 8)));
    await driver.reopen();
    if (!driver.harness.survives) return;
    const found = driver.log.recovered().get(A);
    t.match(found, { lastIndex: 2, hardState: { term: 8, vote: 0, commit: 1 } });
    t.equal(await driver.read(A, 1, 9), describe(makeEntries(1, 2, 8)));
    driver.log.forgetGroup(A, () => undefined);
    const floor = { term: 9, index: 40 };
    await driver.harness.call<undefined>((done) => {
      const hardState = { term: 9, vote: 1, commit: 40 };
      driver.log.resetGroup(A, floor, hardState, () => done(undefined));
    });
    await driver.write(A, makeEntries(41, 42, 9));
    await driver.reopen();
    t.match(driver.log.recovered().get(A), { floor, lastIndex: 42 }, "from a snapshot, too");
  },
  "callbacks never come in the turn of their call, and come in order": async (t, driver) => {
    const order = await driver.harness.call<number[]>((done) => {
      const seen: number[] = [];
      let isInCall = true;
      for (let at = 1; at <= 20; at++) {
        const group = at % 2 === 0 ? A : B;
        const index = Math.ceil(at / 2);
        const arrived = (): void => {
          t.notOk(isInCall, "not in the same turn");
          seen.push(at);
          if (seen.length === 20) done(seen);
        };
        driver.log.write({
          group,
          hardState: null,
          entries: makeEntries(index, index, 1),
          done: arrived,
        });
      }
      isInCall = false;
    });
    t.same(
      order,
      Array.from({ length: 20 }, (_, at) => at + 1),
    );
  },
  "P-189 a restart knows the sizes of entries well enough": async (t, driver) => {
    if (!driver.harness.survives) return;
    const sizes = [100, 30_000, 30_000, 5000, 30_000, 30_000, 0, 20_000];
    const entries = sizes.map((sizeBytes, at) => {
      return { index: at + 1, term: 1, kind: 0, payload: new Uint8Array(sizeBytes).fill(at) };
    });
    await driver.write(A, entries, { term: 1, vote: 0, commit: 0 });
    await driver.reopen();
    t.same(driver.log.recovered().get(A)?.sizeRuns, [
      { firstIndex: 1, sizeBytes: 65_100 },
      { firstIndex: 5, sizeBytes: 60_000 },
      { firstIndex: 8, sizeBytes: 20_000 },
    ]);
  },
  "an empty write is answered, a hard state alone is kept": async (t, driver) => {
    await driver.write(A, []);
    await driver.write(A, [], { term: 9, vote: 65_535, commit: 0 });
    await driver.reopen();
    if (!driver.harness.survives) return;
    t.same(driver.log.recovered().get(A)?.hardState, { term: 9, vote: 65_535, commit: 0 });
  },
  "recovered logs after a restart": async (t, driver) => {
    if (!driver.harness.survives) return;
    await driver.write(A, makeEntries(1, 6, 2), { term: 2, vote: 5, commit: 4 });
    await driver.write(A, makeEntries(5, 9, 3), { term: 3, vote: 0, commit: 9 });
    driver.log.raiseFloor(A, { index: 2, term: 2 });
    await driver.reset(B, { index: 50, term: 6 }, { term: 6, vote: 1, commit: 50 });
    await driver.write(B, makeEntries(51, 51, 6, 0));
    await driver.reopen();
    const snapshots = driver.log.recovered();
    t.same([...snapshots.keys()].sort(), [A, B]);
    t.same(snapshots.get(A), {
      group: A,
      hardState: { term: 3, vote: 0, commit: 9 },
      floor: { index: 2, term: 2 },
      lastIndex: 9,
      termRuns: [
        { term: 2, firstIndex: 3 },
        { term: 3, firstIndex: 5 },
      ],
      specialEntries: [
        { index: 4, kind: 2 },
        { index: 8, kind: 2 },
      ],
      sizeRuns: [{ firstIndex: 3, sizeBytes: 350 }],
    });
    t.match(snapshots.get(B), { floor: { index: 50, term: 6 }, lastIndex: 51 });
    t.same(snapshots.get(B)?.sizeRuns, [{ firstIndex: 51, sizeBytes: 0 }]);
    t.equal(
      await driver.read(A, 3, 9),
      describe([...makeEntries(3, 4, 2), ...makeEntries(5, 9, 3)]),
    );
    await driver.write(A, makeEntries(10, 10, 3));
    await driver.reopen();
    t.equal(driver.log.recovered().get(A)?.lastIndex, 10);
  },
};

/** Runs all cases, each on a log of its own. */
export function logConformance(t: Test, name: string, make: () => LogHarness): void {
  for (const [title, run] of Object.entries(cases)) {
    void t.test(`${name}: ${title}`, async (inner) => {
      const harness = make();
      const driver = new Driver(harness, await harness.open());
      await run(inner, driver);
      await harness.call<undefined>((done) => driver.log.close(() => done(undefined)));
      await harness.finish();
    });
  }
}
