/**
 * Checkers that came with scans, many-calls, key ranges, holders of ephemeral locks and disks: each fires on what breaks
 * its property, passes what keeps it, and is vacuous on too little.
 */
import t from "tap";
import { partitionId } from "../../../src/base/ids.js";
import type { LogEntry, LogPort, LogWrite } from "../../../src/ports.js";
import { BoundedSize, boundsOf } from "../checkers/nodes/bounded-size.js";
import { DurableMajority } from "../checkers/nodes/durable-majority.js";
import { FencedStore } from "../checkers/clients/fenced-store.js";
import { Leaderships, withLeaderships } from "../checkers/clients/leaderships.js";
import { LINEARIZABILITY, checkLinearizability } from "../checkers/clients/linearizability.js";
import { checkOneHolder } from "../checkers/clients/one-holder.js";
import { checkScans } from "../checkers/clients/scans.js";
import { checkTokensGrow } from "../checkers/clients/tokens-grow.js";
import type { History, KvManyReadOperation } from "../history.js";
import { LogMirror } from "../../sim/world/logmirror.js";
import {
  type Line,
  type Made,
  allocate,
  create,
  deleteSequence,
  historyOf,
  lock,
  onKey,
  seen,
  set,
  withTerms,
} from "./hand-made.js";
import {
  DEFAULT_HOST_SETTINGS,
  DEFAULT_OPERATIONS_SETTINGS,
} from "../../doubles/default-settings.js";

interface Row {
  readonly key: string;
  readonly value: string | null;
  readonly revision: bigint;
}

const OPEN = { limit: 0, startKey: null, startInclusive: true, endKey: null, endInclusive: false };

function row(key: string, value: string, revision = 0n): Row {
  return { key, value, revision };
}

function bucket(items: readonly Row[], prefix = "b"): Made {
  const operation = { kind: "kv-bucket", prefix, ephemeral: false } as const;
  return { operation, result: { type: "Got", items } };
}

/** One page of a scan of everything that begins with "b". */
function page(
  number: number,
  items: readonly Row[],
  nextCursor: string | null,
  more: Partial<KvManyReadOperation> & { readonly limit?: number } = {},
): Made {
  const { limit = 0, kind = "kv-scan" } = more;
  const place = { scan: 1, number, ...OPEN, limit };
  const operation = { kind, prefix: "b", ephemeral: false, page: place };
  return { operation, result: { type: "Got", items, nextCursor } };
}

function on(key: string, value: string, answer: string): Made {
  return set(value, answer, { key });
}

function linear(history: History): string {
  const minimum = { lock: 0, sequence: 0, key: 0 };
  const verdicts = checkLinearizability(history, { ...LINEARIZABILITY, minimum });
  return verdicts.find((verdict) => verdict.kind !== "pass")?.kind ?? "pass";
}

const A: Line = [1, 2, "a", on("b/a", "va", "Set 0")];
const C: Line = [3, 4, "a", on("b/c", "vc", "Set 0")];
const BOTH = [row("b/a", "va"), row("b/c", "vc")];
const NONE_NEEDED = { pages: 0, rows: 0, untouched: 0 };

t.test("K13, K15, K16: what scans show", (test) => {
  const cases: readonly (readonly ["pass" | "fail", string, readonly Line[]])[] = [
    ["pass", "all that is there", [A, C, [5, 6, "b", bucket(BOTH)]]],
    ["fail", "an untouched key is missing", [A, C, [5, 6, "b", bucket([row("b/a", "va")])]]],
    ["fail", "out of order", [A, C, [5, 6, "b", bucket([...BOTH].reverse())]]],
    ["fail", "a key twice", [A, [5, 6, "b", bucket([row("b/a", "va"), row("b/a", "va")])]]],
    ["fail", "another bucket's key", [A, [5, 6, "b", bucket([row("b/a", "va")], "x")]]],
    ["fail", "a value that nobody wrote", [A, [5, 6, "b", bucket([row("b/a", "vx")])]]],
    [
      "fail",
      "a value that was refused",
      [A, [3, 4, "a", on("b/a", "vn", "NotSet 0")], [5, 6, "b", bucket([row("b/a", "vn")])]],
    ],
    [
      "fail",
      "a value of before",
      [A, [3, 4, "a", on("b/a", "w", "Set 1")], [5, 6, "b", bucket([row("b/a", "va")])]],
    ],
    [
      "pass",
      "a write overlaps",
      [A, [3, 8, "a", on("b/a", "w", "Set 1")], [5, 6, "b", bucket([row("b/a", "va")])]],
    ],
    [
      "fail",
      "two rows that never stood together",
      [
        A,
        [3, 20, "r", bucket([row("b/a", "va"), row("b/c", "vc")])],
        [4, 5, "a", on("b/a", "w", "Set 1")],
        [6, 7, "a", on("b/c", "vc", "Set 0")],
      ],
    ],
    [
      "pass",
      "pages",
      [
        A,
        C,
        [5, 6, "b", page(0, [row("b/a", "va")], "x")],
        [7, 8, "b", page(1, [row("b/c", "vc")], null)],
      ],
    ],
    [
      "fail",
      "lost between two pages",
      [A, C, [5, 6, "b", page(0, [row("b/a", "va")], "x")], [7, 8, "b", page(1, [], null)]],
    ],
    [
      "fail",
      "twice over two pages",
      [
        A,
        [5, 6, "b", page(0, [row("b/a", "va")], "x")],
        [7, 8, "b", page(1, [row("b/a", "va")], null)],
      ],
    ],
    ["pass", "not read to its end", [A, C, [5, 6, "b", page(0, [row("b/a", "va")], "x")]]],
    ["fail", "more than the limit", [A, C, [5, 6, "b", page(0, BOTH, null, { limit: 1 })]]],
    [
      "pass",
      "a node's own part",
      [A, C, [5, 6, "b", page(0, [], null, { kind: "kv-scan-local" })]],
    ],
    [
      "pass",
      "an unknown delete may have come",
      [A, [3, 4, "a", onKey("kv-delete", "unknown")], [5, 6, "b", bucket([row("b/a", "va")])]],
    ],
  ];
  for (const [kind, what, lines] of cases) {
    const verdict = checkScans(historyOf(lines), NONE_NEEDED);
    test.equal(verdict.kind, kind, `${what}: ${verdict.violations.join()}`);
  }
  test.equal(checkScans(historyOf([])).kind, "vacuous");
  const { seen: evidence } = checkScans(historyOf([A, C, [5, 6, "b", bucket(BOTH)]]), NONE_NEEDED);
  test.match(evidence, { pages: 1, rows: 2, untouched: 2, views: 1 });
  test.end();
});

t.test("pages of a scan count for every key that they considered", (test) => {
  const first: Line = [5, 6, "b", page(0, [row("b/a", "va")], "x")];
  const rest = (items: readonly Row[], next: string | null = null): Line => [
    7,
    8,
    "b",
    page(1, items, next),
  ];
  test.equal(linear(historyOf([A, C, first, rest([row("b/c", "vc")])])), "pass");
  test.equal(linear(historyOf([A, C, first, rest([])])), "fail", "nothing where a key is");
  test.equal(linear(historyOf([A, C, first])), "pass", "nothing is said of what was not read");
  const late: Line = [6.5, 6.8, "a", on("b/aa", "v", "Set 0")];
  const between = historyOf([A, C, first, late, rest([row("b/c", "vc")])]);
  test.equal(linear(between), "pass", "between two pages it may have been passed by");
  const early: Line = [4.5, 4.8, "a", on("b/aa", "v", "Set 0")];
  test.equal(linear(historyOf([A, C, early, first, rest([row("b/c", "vc")])])), "fail");
  const range = (items: readonly Row[]): Made => {
    const place = { scan: 9, number: 0, ...OPEN, startKey: "b/b", endKey: "b/c" };
    const operation = { kind: "kv-range", prefix: "b", ephemeral: false, page: place } as const;
    return { operation, result: { type: "Got", items, nextCursor: null } };
  };
  test.equal(linear(historyOf([A, C, [5, 6, "r", range([])]])), "pass", "both lie outside");
  test.end();
});

t.test("6.3: a key space is registered and removed in one order", (test) => {
  const change = (kind: "register-range" | "unregister-range", type: string): Made => {
    const operation = { kind, keySpace: "b" } as const;
    if (type === "unknown") return { operation, result: "unknown" };
    return { operation, result: { type, descriptorCount: 0 } };
  };
  const seeded = change("register-range", "Seeded");
  const removed = change("unregister-range", "Removed");
  test.equal(
    linear(
      historyOf([
        [1, 2, "a", seeded],
        [3, 4, "a", removed],
        [5, 6, "a", seeded],
      ]),
    ),
    "pass",
  );
  test.equal(
    linear(
      historyOf([
        [1, 2, "a", seeded],
        [3, 4, "a", seeded],
      ]),
    ),
    "fail",
    "seeded twice",
  );
  const busy = change("unregister-range", "QuiesceWindowOpen");
  test.equal(
    linear(historyOf([[1, 2, "a", busy]])),
    "fail",
    "what is not registered does not move",
  );
  test.equal(
    linear(
      historyOf([
        [1, 2, "a", seeded],
        [3, 4, "a", busy],
        [5, 6, "a", change("register-range", "AlreadySeeded")],
      ]),
    ),
    "pass",
  );
  const open = change("unregister-range", "unknown");
  test.equal(
    linear(
      historyOf([
        [1, 2, "a", seeded],
        [3, 4, "b", open],
        [5, 6, "a", seeded],
      ]),
    ),
    "pass",
  );
  const over = historyOf([
    [1, 2, "a", seeded],
    [3, 9, "b", removed],
    [4, 8, "c", removed],
    [10, 11, "a", seeded],
  ]);
  test.equal(linear(over), "pass");
  const swapped = historyOf([
    [1, 5, "a", seeded],
    [2, 6, "b", removed],
    [7, 8, "c", seeded],
  ]);
  test.equal(
    linear(swapped),
    "pass",
    "an answer that may have changed nothing is not placed first",
  );
  test.equal(linear(historyOf([[1, 2, "a", change("register-range", "Refused")]])), "fail");
  test.end();
});

t.test("a keyed answer may be an allocation of the next incarnation", (test) => {
  const history = historyOf([
    [1, 2, "a", create(seen(0n))],
    [3, 4, "a", allocate(1, "1..1 r1", "k")],
    [5, 20, "b", allocate(1, "1..1 r1", "k")],
    [6, 7, "a", deleteSequence("Success")],
    [8, 9, "a", create(seen(0n))],
    [21, 22, "a", allocate(1, "2..2 r2")],
  ]);
  test.equal(linear(history), "pass");
  test.end();
});

t.test("many allocations without an answer are decided", (test) => {
  const lines: Line[] = [[1, 2, "a", create(seen(0n))]];
  for (let at = 0; at < 40; at++) {
    const key = at % 3 === 0 ? null : `k${at >> 2}`;
    lines.push([3 + at, 4, `p${at}`, allocate(1 + (at % 5), "unknown", key)]);
  }
  lines.push([50, 51, "a", deleteSequence("Success")], [52, 53, "a", create(seen(0n))]);
  lines.push([54, 55, "a", allocate(1, "1..1 r1")]);
  const budget = { stepsMax: 20_000, memoryMax: 20_000 };
  const minimum = { lock: 0, sequence: 0, key: 0 };
  const [verdict] = checkLinearizability(historyOf(lines), { ...LINEARIZABILITY, minimum, budget });
  test.equal(verdict?.kind, "pass");
  test.end();
});

t.test("C10: ephemeral answers are told by their leadership", (test) => {
  const leaderships = new Leaderships();
  leaderships.serves(1, 3, 10);
  leaderships.serves(1, 3, 12);
  leaderships.serves(1, 5, 100);
  test.equal(leaderships.only(1, 5, 9), null, "nobody yet");
  test.equal(leaderships.only(1, 20, 30), 3);
  test.equal(leaderships.only(1, 20, 110), null, "either");
  test.equal(leaderships.only(1, 100, 110), 5);
  test.equal(leaderships.only(2, 100, 110), null, "another group");
  leaderships.serves(1, 6, 200, true);
  leaderships.serves(1, 8, 300, true);
  test.equal(leaderships.only(1, 120, 210), null);
  test.equal(leaderships.onlyEra(1, 120, 210), 5, "it took over what the other had");
  test.equal(leaderships.onlyEra(1, 210, 310), null, "not from the one directly before");
  const ephemeral = { ephemeral: true };
  const history = historyOf([
    [20, 21, "a", lock("try-lock", "A", "Locked 1", 1000, ephemeral)],
    [30, 31, "b", lock("try-lock", "B", "Locked 2", 1000, ephemeral)],
    [32, 33, "b", lock("try-lock", "B", "Locked 2", 1000)],
  ]);
  const told = withLeaderships(history, leaderships, 1);
  test.same(
    told.attempts.map((attempt) => attempt.term),
    [3, 3, null],
  );
  test.equal(linear(history), "pass", "a leadership may have ended in between");
  test.equal(linear(told), "fail", "in one leadership there is one holder");
  const holders = (terms: readonly number[]): string =>
    checkOneHolder(withTerms(history, terms), { minimum: 0, drift: 0 }).kind;
  test.same([holders([3, 3]), holders([3, 5]), holders([0, 3])], ["fail", "pass", "pass"]);
  test.end();
});

t.test("L12: a token that was given back is not granted again", (test) => {
  const grant: Line = [1, 2, "a", lock("try-lock", "A", "Locked 5")];
  const release: Line = [3, 4, "a", lock("try-unlock", "A", "Unlocked 5")];
  const again = (token: number): Line => [5, 6, "a", lock("try-lock", "A", `Locked ${token}`)];
  test.equal(checkTokensGrow(historyOf([grant, release, again(5)]), 0).kind, "fail");
  const grown = checkTokensGrow(historyOf([grant, release, again(6)]), 0);
  test.match(grown, { kind: "pass", seen: { "after a release": 1 } });
  test.equal(checkTokensGrow(historyOf([grant, again(5)]), 0).violationCount, 0, "held all along");
  test.end();
});

t.test("P-073 who is granted a lock after a token was seen has a larger one", (test) => {
  const store = new FencedStore({ accepted: 1 });
  store.granted("r", "A", 1n, store.mark("r"));
  store.write("r", "A", 5n);
  const mark = store.mark("r");
  store.granted("r", "A", 5n, mark);
  store.granted("r", "B", 6n, mark);
  test.match(store.verdict(), { kind: "pass", seen: { "grants compared": 2 } });
  store.granted("r", "B", 5n, mark);
  store.granted("r", "A", 4n, mark);
  test.match(store.verdict(), { kind: "fail", violationCount: 2 });
  test.end();
});

/** A log that does what the test says, when it says so. */
function heldLog(): { readonly log: LogPort; readonly done: (() => void)[] } {
  const done: (() => void)[] = [];
  const log = {
    recovered: () => new Map(),
    write: (write: LogWrite) => void done.push(write.done),
  } as Partial<LogPort> as LogPort;
  return { log, done };
}

function entries(group: number, first: number, terms: readonly number[]): LogWrite {
  const list = terms.map((term, at): LogEntry => {
    return { index: first + at, term, kind: 0, payload: new Uint8Array(1) };
  });
  return { group: partitionId(group), entries: list, hardState: null, done: () => undefined };
}

t.test("C3: what is committed is on the disks of a majority", (test) => {
  const held = heldLog();
  const mirror = new LogMirror(held.log, () => undefined);
  mirror.write(entries(1, 1, [1, 1, 1]));
  test.equal(mirror.isDurable(1, 1, 1), false, "under way");
  mirror.write(entries(1, 3, [2, 2]));
  held.done[0]?.();
  test.equal(mirror.isDurable(1, 2, 1), true);
  test.equal(mirror.isDurable(1, 3, 2), false, "the old entry was durable, not the one above it");
  held.done[1]?.();
  test.equal(mirror.isDurable(1, 4, 2), true);
  test.equal(mirror.isDurable(1, 4, 1), false, "another term");

  const on3 = (checker: DurableMajority, has: readonly boolean[]): DurableMajority => {
    has.forEach((yes, at) => checker.disk(at + 1, 1, 7, (index) => yes || index < 5));
    checker.commit(1, 7, 4, 2, [1, 2, 3]);
    checker.commit(1, 7, 5, 2, [1, 2, 3]);
    return checker;
  };
  test.equal(on3(new DurableMajority(1), [true, false, true]).verdict().kind, "pass");
  test.equal(on3(new DurableMajority(1), [true, false, false]).verdict().kind, "fail");
  test.equal(new DurableMajority(1).verdict().kind, "vacuous");
  const changed = new DurableMajority(0);
  changed.commit(1, 7, 4, 2, [1]);
  changed.commit(1, 7, 5, 2, [1, 2, 3]);
  test.equal(changed.verdict().kind, "pass", "the voters have just changed");
  const wiped = on3(new DurableMajority(1), [true, true, false]);
  wiped.disk(2, 2, 7, () => false);
  wiped.commit(1, 7, 6, 2, [1, 2, 3]);
  test.equal(wiped.verdict().kind, "pass", "what a former life held counts");
  test.end();
});

t.test("sizes are bounded by the settings", (test) => {
  const kept = { compactEveryEntries: 10, logKeepBytesMax: 64 << 10 };
  const host = { ...DEFAULT_HOST_SETTINGS, initialPartitions: 2, ...kept };
  const small = { ...host, compactKeepEntries: 0, batchBytesMax: 16 << 10, unflushedRowsMax: 100 };
  const operations = { ...DEFAULT_OPERATIONS_SETTINGS, valueMaxBytes: 4000 };
  const bounds = boundsOf(small, operations, 64 << 10);
  test.ok(bounds.logBytes < 3 << 20 && bounds.logBytes > 6 * (64 << 10), `${bounds.logBytes}`);
  test.ok(boundsOf(host, operations, 64 << 10).logBytes > bounds.logBytes, "larger entries");
  const fine = { logBytes: 1, unflushedBytes: 1, queuedBytes: 1, requests: 1, isTroubled: false };
  for (const member of ["logBytes", "unflushedBytes", "queuedBytes", "requests"] as const) {
    const checker = new BoundedSize(1);
    checker.measure(1, { ...fine, atMs: 1, [member]: bounds[member] }, bounds);
    test.equal(checker.verdict().kind, "pass");
    checker.measure(1, { ...fine, atMs: 2, [member]: bounds[member] + 1 }, bounds);
    test.equal(checker.verdict().kind, "fail", member);
  }
  const excused = new BoundedSize(1);
  const large = { ...fine, logBytes: bounds.logBytes + 1 };
  excused.measure(1, { ...large, atMs: 1, isTroubled: true }, bounds);
  excused.measure(1, { ...large, atMs: 5000 }, bounds);
  test.equal(excused.verdict().kind, "pass", "the disk did not work a moment ago");
  excused.measure(1, { ...large, atMs: 20_000 }, bounds);
  test.equal(excused.verdict().kind, "fail", "long enough ago");
  test.end();
});
