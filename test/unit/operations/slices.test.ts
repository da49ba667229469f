/**
 * Reads that look at many rows: what one turn of the loop looks at, for all callers together
 * (P-193), and what is not paged and does not fit one answer (K14, K15).
 */
import t, { type Test } from "tap";
import { assert } from "../../../src/base/assert.js";
import { KvType } from "../../../src/machine/commands/command.js";
import { DataReads } from "../../../src/machine/data-reads.js";
import type { KvPageAnswer } from "../../../src/operations/api/answers.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import { SLICE_VISITS, TURN_VISITS } from "../../../src/operations/admission/slices.js";
import { Bench, get, range, scanAll, set } from "../../doubles/operations/fixture.js";
import { Trio } from "../../doubles/operations/trio.js";

const TOMBSTONES = 60_000;
const VISITS_PER_READ = 60_000;
const keyAt = (at: number): string => `q/${String(at).padStart(6, "0")}`;

/** Counts what is looked at, turn by turn of whoever gives the loop back. */
class Counted {
  readonly visitsByTurn: number[] = [0];
  private readonly held: (() => void)[] = [];

  constructor(
    t: Test,
    private readonly bench: Bench,
  ) {
    const after = bench.world.timer.after.bind(bench.world.timer);
    bench.world.timer.after = (delayMs, callback) => {
      if (delayMs > 0) return after(delayMs, callback);
      this.held.push(callback);
      return { cancel: () => undefined };
    };
    const { rangePage, prefixPage } = DataReads.prototype;
    const count = <R extends ReturnType<typeof rangePage>>(reading: R): R => {
      const last = this.visitsByTurn.length - 1;
      const visits = reading.kind === "page" ? reading.page.visits : 0;
      this.visitsByTurn[last] = (this.visitsByTurn[last] ?? 0) + visits;
      return reading;
    };
    DataReads.prototype.rangePage = function (...asked) {
      return count(rangePage.apply(this, asked));
    };
    DataReads.prototype.prefixPage = function (...asked) {
      return count(prefixPage.apply(this, asked));
    };
    t.teardown(() => Object.assign(DataReads.prototype, { rangePage, prefixPage }));
  }

  /** One turn of those that wait for one; false when nobody does. */
  turn(): boolean {
    const callbacks = this.held.splice(0);
    this.visitsByTurn.push(0);
    for (const callback of callbacks) callback();
    this.bench.world.settle();
    return callbacks.length > 0;
  }
}

/** A queue whose items were all taken but the last few. */
function queue(bench: Bench, deleted: number, live: number): void {
  for (let at = 0; at < deleted + live; at += 1000) {
    const keys = Array.from({ length: 1000 }, (_, more) => keyAt(at + more));
    bench.ask({ kind: "kv-set-many", items: keys.map((key) => set(key, "v")) });
    if (at >= deleted) continue;
    const items = keys.map((key) => {
      return { kind: "kv-delete" as const, key, durability: 1, plain: true };
    });
    bench.ask({ kind: "kv-delete-many", items, plain: true });
  }
}

t.test("P-193: a turn looks at a bounded number of rows, for all callers together", async (t) => {
  const bench = new Bench();
  queue(bench, TOMBSTONES, 1000);
  const counted = new Counted(t, bench);
  const requests: DataRequest[] = [];
  for (let caller = 0; caller < 5; caller++) requests.push(range("q", { limit: 10 }));
  requests.push(scanAll("q/", { limit: 10 }));
  requests.push(scanAll("q/", { limit: 10, kind: "kv-scan-local" }));
  requests.push({ kind: "kv-bucket", bucket: "q", durability: 1, plain: true });
  const answers = requests.map((request) => bench.send(request) as KvPageAnswer[]);
  bench.world.settle();
  t.ok(
    answers.every((got) => got.length === 0),
    "nobody is through in the first turn",
  );
  const others: unknown[][] = [];
  const written: string[] = [];
  // Each caller has begun, and sees the queue as it was then.
  for (let turn = 0; turn < requests.length; turn++) counted.turn();
  while (counted.turn()) {
    others.push(bench.send(get(keyAt(TOMBSTONES))));
    // Neither what comes into being behind the reader, nor what goes before it, is in its page.
    const key = keyAt(written.length * 7);
    bench.send(set(key, "later"));
    written.push(key);
    bench.send({ kind: "kv-delete", key: keyAt(TOMBSTONES + 1), durability: 1, plain: true });
    bench.world.settle();
    if (counted.visitsByTurn.length > 10_000) break;
  }
  const most = Math.max(...counted.visitsByTurn);
  t.ok(most <= TURN_VISITS, `${most} visits in one turn`);
  const all = counted.visitsByTurn.reduce((sum, visits) => sum + visits, 0);
  t.ok(all >= requests.length * VISITS_PER_READ, "and all of them were looked at");
  t.ok(
    others.every((got) => got.length === 1),
    "other requests are answered in between, every turn",
  );
  const first = Array.from({ length: 10 }, (_, at) => keyAt(TOMBSTONES + at));
  for (const [at, got] of answers.entries()) {
    const request = requests[at];
    const [answer] = got;
    assert(answer !== undefined && request !== undefined, "every caller has its answer");
    t.equal(answer.type, KvType.got);
    const keys = answer.items.map(({ key }) => key);
    if (request.kind === "kv-bucket") t.equal(keys.length, 1000);
    else t.same([keys, answer.hasMore], [first, true], `${request.kind}: the exact page`);
  }
  const turns = counted.visitsByTurn.length;
  t.ok(turns > (requests.length * TOMBSTONES) / TURN_VISITS, "slice by slice");
});

t.test(
  "P-193, C9: whoever waits for its slice ends at its deadline, or with the node",
  async (t) => {
    const bench = new Bench();
    queue(bench, 3000, 0);
    const counted = new Counted(t, bench);
    const ask = (request: DataRequest, withinMs = 1e6): unknown[] =>
      bench.send(request, [], withinMs);
    const requests = (): DataRequest[] => [
      range("q"),
      scanAll("q/", { limit: 5 }),
      { kind: "kv-bucket", bucket: "q", durability: 1, plain: true },
    ];
    const late = requests().map((request) => ask(request, 3));
    bench.world.settle();
    bench.world.timer.nowMs += 5;
    while (counted.turn());
    for (const got of late) t.match(got, [{ type: KvType.mustRetry }]);
    const stopped = requests().map((request) => ask(request));
    bench.world.settle();
    bench.node.stop(bench.nowMs + 1000, () => undefined);
    bench.world.settle();
    while (counted.turn());
    for (const got of stopped) t.match(got, [{ type: KvType.aborted }]);
  },
);

t.test("P-193: a page that is full need not wait to hear what follows it", async (t) => {
  const bench = new Bench();
  bench.ask(set("q/!", "first"));
  queue(bench, 2 * TURN_VISITS + 1000, 0);
  const counted = new Counted(t, bench);
  const expected = { type: KvType.got, items: [{ key: "q/!" }] };
  for (const request of [range("q", { limit: 1 }), scanAll("q/", { limit: 1 })]) {
    const read = (withinMs: number): KvPageAnswer[] => {
      const got: KvPageAnswer[] = [];
      bench.send<typeof request>(request, got, withinMs);
      bench.world.settle();
      return got;
    };
    const patient = read(1e6);
    while (counted.turn());
    t.match(patient, [{ ...expected, hasMore: false, nextCursor: null }], "nothing follows");
    const hurried = read(3);
    bench.world.timer.nowMs += 5;
    while (counted.turn());
    t.match(hurried, [{ ...expected, hasMore: true, nextCursor: String }], "something may");
  }
});

t.test("P-193: large rows that are dead count by their bytes", async (t) => {
  const bench = new Bench();
  const sizeBytes = 200_000;
  const value = "x".repeat(sizeBytes);
  for (let at = 0; at < 60; at++) bench.ask(set(keyAt(at), value, { expiresMs: 1000 }));
  bench.world.timer.nowMs += 2000;
  bench.ask(set(keyAt(99), "v", { expiresMs: 1 }));
  const counted = new Counted(t, bench);
  const read = bench.send(range("q"));
  bench.world.settle();
  while (counted.turn());
  t.match(read, [{ type: KvType.got, hasMore: false }]);
  const most = Math.max(...counted.visitsByTurn);
  t.ok(most <= TURN_VISITS + sizeBytes / 1024, `${most} visits in one turn`);
  t.ok(most > TURN_VISITS / 2);
});

t.test("P-193: a many-read spends from the same budget, key by key", async (t) => {
  const bench = new Bench();
  queue(bench, 0, 1000);
  const counted = new Counted(t, bench);
  const items = Array.from({ length: 1000 }, (_, at) => get(keyAt(at)));
  const reads = Array.from({ length: 8 }, () =>
    bench.send({ kind: "kv-get-many", items, plain: true }),
  );
  bench.world.settle();
  const open = reads.filter((got) => got.length === 0);
  t.equal(open.length, reads.length - TURN_VISITS / 1000, "two of them fit the first turn");
  while (counted.turn());
  for (const got of reads) {
    t.equal(got[0]?.items.filter(({ type }) => type === KvType.got).length, 1000);
  }
  t.ok(SLICE_VISITS * 2 <= TURN_VISITS, "several callers have a slice in each turn");
});

const ITEM_BYTES = 64;

/** Sets keys so that the scan of `prefix` has exactly `totalBytes`, as pages are measured. */
function fill(write: (key: string, value: string) => void, totalBytes: number): string[] {
  const keys: string[] = [];
  let left = totalBytes;
  for (let at = 0; left > 0; at++) {
    const key = `d${String(at % 30).padStart(2, "0")}/${String(at).padStart(5, "0")}`;
    const next = left - 2000 - key.length - ITEM_BYTES;
    const valueBytes = next > key.length + ITEM_BYTES ? 2000 : left - key.length - ITEM_BYTES;
    write(key, "x".repeat(valueBytes));
    keys.push(key);
    left -= key.length + valueBytes + ITEM_BYTES;
  }
  return keys.sort();
}

t.test("K14, K15: a scan without limit and cursor is whole or refused", async (t) => {
  const settings = { responseMaxBytes: 300_000, pageBytes: 20_000 };
  for (const excessBytes of [-1, 0, 1]) {
    const bench = new Bench(settings);
    const trio = new Trio(settings);
    const total = settings.responseMaxBytes + excessBytes;
    const keys = fill((key, value) => {
      bench.ask(set(key, value));
      trio.ask(1, set(key, value));
    }, total);
    const whole: [string, KvPageAnswer][] = [
      ["one node", bench.ask(scanAll("d"))],
      ["K17", bench.ask(scanAll("d", { kind: "kv-scan-local" }))],
    ];
    for (const at of [1, 2, 3]) whole.push([`node ${at} of 3`, trio.ask(at, scanAll("d"))]);
    for (const [label, answer] of whole) {
      const shown = answer.items.map(({ key }) => key);
      if (excessBytes > 0) {
        t.match(answer, { type: KvType.errored, tooLarge: true, items: [], hasMore: false }, label);
      } else {
        t.match(answer, { type: KvType.got, tooLarge: false, hasMore: false, nextCursor: null });
        t.same(shown, keys, `${label}: all of it`);
      }
    }
    for (const limit of [1000, 10_000]) {
      const seen: string[] = [];
      let cursor: string | null = null;
      let pages = 0;
      do {
        const page: KvPageAnswer = trio.ask(1 + (pages % 3), scanAll("d", { limit, cursor }));
        t.equal(page.type, KvType.got);
        seen.push(...page.items.map(({ key }) => key));
        cursor = page.nextCursor;
        // Behind a cursor it is paged with no limit, too.
        if (cursor !== null && pages === 0) {
          const rest = trio.ask(2, scanAll("d", { cursor }));
          t.match(rest, { type: KvType.got, tooLarge: false, hasMore: true });
          t.ok(rest.items.length < keys.length / 2, "by the size of a page");
        }
        pages++;
      } while (cursor !== null);
      t.same(seen, keys, "page by page it is there in any case");
      t.ok(pages > 10);
    }
  }
});
