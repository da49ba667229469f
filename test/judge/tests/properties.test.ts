/**
 * Every checker fires on a history that breaks its property, passes one that keeps it, and is vacuous on too little.
 */
import t from "tap";
import { checkAllocationOrder } from "../checkers/clients/allocation-order.js";
import { checkAnsweredOnce } from "../checkers/clients/answered-once.js";
import { BoundedSize } from "../checkers/nodes/bounded-size.js";
import { ElectionSafety } from "../checkers/nodes/election-safety.js";
import { FencedStore } from "../checkers/clients/fenced-store.js";
import { HISTORY_CHECKS, checkHistory } from "../checkers/history-checks.js";
import { LeaderCompleteness } from "../checkers/nodes/leader-completeness.js";
import { LogMatching } from "../checkers/nodes/log-matching.js";
import { NeverBack } from "../checkers/nodes/never-back.js";
import { checkOneHolder } from "../checkers/clients/one-holder.js";
import { READS, checkReadsSeeWrites } from "../checkers/clients/reads-see-writes.js";
import { REPLAY, checkReplay } from "../checkers/clients/replay.js";
import { StateEquality } from "../checkers/nodes/state-equality.js";
import { checkTokensGrow } from "../checkers/clients/tokens-grow.js";
import { checkValuesUnique } from "../checkers/clients/values-unique.js";
import { Findings, type Verdict, allPass, verdictText } from "../checkers/verdict.js";
import {
  type History,
  HistoryRecorder,
  attemptLine,
  attemptOfLine,
  mergeHistories,
} from "../history.js";
import {
  type Line,
  allocate,
  create,
  historyOf,
  lock,
  onKey,
  seen,
  set,
  update,
} from "./hand-made.js";

type Check = (history: History) => Verdict;
type Test = Parameters<Parameters<typeof t.test>[0]>[0];

function expect(
  test: Test,
  check: Check,
  cases: readonly (readonly [kind: string, what: string, lines: readonly Line[]])[],
): void {
  for (const [kind, what, lines] of cases) {
    const verdict = check(historyOf(lines));
    test.equal(verdict.kind, kind, `${verdict.property}: ${kind}: ${what}`);
    if (kind === "fail") test.match(verdict.violations[0], /\[\d+\] .* at node 1/, "shows events");
  }
  test.equal(check(historyOf([])).kind, "vacuous", "nothing seen is vacuous");
}

const CREATED: Line = [1, 2, "a", create(seen(0n))];
const CHANGED: Line = [5, 6, "a", update(0n, seen(0n, { revision: 2n, incarnation: 1n }))];

t.test("no value twice in an incarnation (S6)", (test) => {
  expect(test, (history) => checkValuesUnique(history, 2), [
    [
      "pass",
      "distinct",
      [CREATED, [3, 4, "a", allocate(2, "1..2 r1")], [5, 6, "b", allocate(1, "3..3 r1")]],
    ],
    [
      "fail",
      "one value twice",
      [CREATED, [3, 4, "a", allocate(2, "1..2 r1")], [5, 6, "b", allocate(1, "2..2 r2")]],
    ],
    [
      "fail",
      "twice, overlapping",
      [CREATED, [3, 8, "a", allocate(1, "1..1 r1")], [4, 7, "b", allocate(1, "1..1 r1")]],
    ],
    [
      "pass",
      "an update lies between",
      [CREATED, [3, 4, "a", allocate(1, "1..1 r1")], CHANGED, [7, 8, "b", allocate(1, "1..1 r3")]],
    ],
    [
      "fail",
      "the update came after both",
      [[1, 2, "a", allocate(1, "1..1 r1")], [3, 4, "b", allocate(1, "1..1 r1")], CHANGED],
    ],
    [
      "vacuous",
      "a replay is no second allocation",
      [
        [1, 2, "a", allocate(1, "1..1 r1", "k")],
        [3, 4, "a", allocate(1, "1..1 r1", "k")],
      ],
    ],
    [
      "fail",
      "another key with the same value",
      [
        [1, 2, "a", allocate(1, "1..1 r1", "k")],
        [3, 4, "a", allocate(1, "1..1 r1", "m")],
      ],
    ],
  ]);
  test.end();
});

t.test("order of allocations that do not overlap (S7)", (test) => {
  expect(test, (history) => checkAllocationOrder(history, 1), [
    [
      "pass",
      "larger later",
      [
        [1, 2, "a", allocate(1, "1..1 r1")],
        [3, 4, "b", allocate(1, "9..9 r2")],
      ],
    ],
    [
      "fail",
      "smaller later",
      [
        [1, 2, "a", allocate(1, "9..9 r2")],
        [3, 4, "b", allocate(1, "1..1 r1")],
      ],
    ],
    [
      "vacuous",
      "they overlap",
      [
        [1, 4, "a", allocate(1, "9..9 r2")],
        [3, 5, "b", allocate(1, "1..1 r1")],
      ],
    ],
    [
      "vacuous",
      "an update lies between",
      [[1, 2, "a", allocate(1, "9..9 r1")], CHANGED, [7, 8, "b", allocate(1, "1..1 r3")]],
    ],
    [
      "vacuous",
      "a repeated key may replay",
      [
        [1, 2, "a", allocate(1, "unknown", "k")],
        [3, 4, "b", allocate(1, "9..9 r2")],
        [5, 6, "a", allocate(1, "1..1 r1", "k")],
      ],
    ],
  ]);
  test.end();
});

t.test("idempotent replay identical (S11)", (test) => {
  const first: Line = [1, 2, "a", allocate(2, "1..2 r1", "k")];
  const check: Check = (history) => checkReplay(history, { ...REPLAY, minimum: 1 });
  expect(test, check, [
    ["pass", "the same", [first, [3, 4, "b", allocate(2, "1..2 r1", " k ")]]],
    ["fail", "other values", [first, [3, 4, "b", allocate(2, "3..4 r2", "k")]]],
    ["fail", "another revision", [first, [3, 4, "b", allocate(2, "1..2 r2", "k")]]],
    ["pass", "another count is refused", [first, [3, 4, "b", allocate(3, "InvalidInput", "k")]]],
    ["fail", "another count is accepted", [first, [3, 4, "b", allocate(3, "3..5 r2", "k")]]],
    [
      "vacuous",
      "an update lies between",
      [first, CHANGED, [7, 8, "b", allocate(2, "1..2 r3", "k")]],
    ],
    [
      "vacuous",
      "too old to be remembered",
      [first, [700_000, 700_001, "b", allocate(2, "3..4 r2", "k")]],
    ],
  ]);
  const few: Check = (history) =>
    checkReplay(history, { ...REPLAY, minimum: 1, keysRetainedMax: 1 });
  expect(test, few, [
    [
      "vacuous",
      "pushed out by a newer key",
      [first, [3, 4, "b", allocate(1, "3..3 r2", "m")], [5, 6, "b", allocate(2, "4..5 r3", "k")]],
    ],
  ]);
  test.end();
});

t.test("fencing tokens grow (L12)", (test) => {
  expect(test, (history) => checkTokensGrow(history, 1), [
    [
      "pass",
      "grow",
      [
        [1, 2, "a", lock("try-lock", "A", "Locked 0")],
        [3, 4, "b", lock("try-lock", "B", "Locked 5")],
      ],
    ],
    [
      "fail",
      "back",
      [
        [1, 2, "a", lock("try-lock", "A", "Locked 5")],
        [3, 4, "b", lock("try-lock", "B", "Locked 4")],
      ],
    ],
    [
      "fail",
      "two owners",
      [
        [1, 4, "a", lock("try-lock", "A", "Locked 5")],
        [2, 3, "b", lock("try-lock", "B", "Locked 5")],
      ],
    ],
    [
      "fail",
      "info shows an older one",
      [
        [1, 2, "a", lock("try-lock", "A", "Locked 5")],
        [3, 4, "b", lock("try-lock", "B", "Locked 6")],
        [5, 6, "c", lock("get-lock", "", "Got 5 A 10")],
      ],
    ],
    ["vacuous", "one grant", [[1, 2, "a", lock("try-lock", "A", "Locked 5")]]],
  ]);
  test.end();
});

t.test("one holder per lease, in true time with drift (T3, T4)", (test) => {
  const check: Check = (history) => checkOneHolder(history, { minimum: 2, drift: 0 });
  const grant: Line = [1, 2, "a", lock("try-lock", "A", "Locked 0", 100)];
  expect(test, check, [
    [
      "pass",
      "after the release",
      [
        grant,
        [3, 4, "a", lock("try-unlock", "A", "Unlocked 0")],
        [5, 6, "b", lock("try-lock", "B", "Locked 1")],
      ],
    ],
    ["pass", "after the lease", [grant, [90, 102, "b", lock("try-lock", "B", "Locked 1")]]],
    ["fail", "within the lease", [grant, [50, 51, "b", lock("try-lock", "B", "Locked 1")]]],
    [
      "fail",
      "within the extension",
      [
        grant,
        [50, 51, "a", lock("try-extend", "A", "Extended 0", 100)],
        [120, 121, "b", lock("try-lock", "B", "Locked 1")],
      ],
    ],
    [
      "pass",
      "an extension may shorten",
      [
        grant,
        [5, 6, "a", lock("try-extend", "A", "Extended 0", 10)],
        [50, 51, "b", lock("try-lock", "B", "Locked 1")],
      ],
    ],
    [
      "pass",
      "also one that is answered after the lease that it had shortened",
      [
        grant,
        [5, 120, "a", lock("try-extend", "A", "Extended 0", 10)],
        [50, 51, "b", lock("try-lock", "B", "Locked 1")],
      ],
    ],
    [
      "pass",
      "an unknown release may have worked",
      [
        grant,
        [5, 6, "a", lock("try-unlock", "A", "unknown")],
        [50, 51, "b", lock("try-lock", "B", "Locked 1")],
      ],
    ],
    [
      "pass",
      "a repeat does not prolong (L2)",
      [
        grant,
        [50, 51, "a", lock("try-lock", "A", "Locked 0", 100)],
        [110, 111, "b", lock("try-lock", "B", "Locked 1")],
      ],
    ],
  ]);
  const drifting: Line[] = [grant, [94, 95, "b", lock("try-lock", "B", "Locked 1")]];
  test.equal(check(historyOf(drifting)).kind, "fail", "P-174 a clock faster than declared");
  const declared = checkOneHolder(historyOf(drifting), { minimum: 2, drift: 0.1 });
  test.equal(declared.kind, "pass", "as fast as declared");
  test.end();
});

t.test("reads see completed writes (C6)", (test) => {
  const check: Check = (history) => checkReadsSeeWrites(history, { ...READS, minimum: 1 });
  const write: Line = [1, 2, "a", set("x", "Set 3")];
  expect(test, check, [
    ["pass", "seen", [write, [3, 4, "b", onKey("kv-get", "Got 3 x")]]],
    ["fail", "an older revision", [write, [3, 4, "b", onKey("kv-get", "Got 2 w")]]],
    ["fail", "nothing", [write, [3, 4, "b", onKey("kv-get", "DoesNotExist 0")]]],
    ["fail", "a write that takes a revision again", [write, [3, 4, "b", set("y", "Set 3")]]],
    [
      "vacuous",
      "a delete may lie between",
      [
        write,
        [3, 9, "c", onKey("kv-delete", "unknown")],
        [5, 6, "b", onKey("kv-get", "DoesNotExist 0")],
      ],
    ],
    ["vacuous", "they overlap", [write, [1.5, 4, "b", onKey("kv-get", "Got 2 w")]]],
  ]);
  test.end();
});

t.test("every request is answered once within its bound (C9)", (test) => {
  const recorder = new HistoryRecorder(10);
  const { operation } = onKey("kv-get", "unknown");
  const outcome = { kind: "unknown", reason: "MustRetry" } as const;
  const inTime = recorder.call("a", 1, operation, 0, 100);
  recorder.answered(inTime, outcome, 90);
  test.equal(checkAnsweredOnce(recorder.history(), 1).kind, "pass");
  test.equal(checkAnsweredOnce(recorder.history(), 2).kind, "vacuous");
  const lost = recorder.call("b", 1, operation, 100, 100);
  recorder.lost(lost, "the node was killed", 110);
  recorder.call("c", 1, operation, 150, 100);
  test.equal(checkAnsweredOnce(recorder.history(200), 1).kind, "pass", "excused, or not due yet");
  test.equal(checkAnsweredOnce(recorder.history(251), 1).kind, "fail", "never answered");
  const late = new HistoryRecorder(10);
  late.answered(late.call("a", 1, operation, 0, 100), outcome, 101);
  test.equal(checkAnsweredOnce(late.history(), 1).kind, "fail", "answered late");
  const twice = new HistoryRecorder(1);
  const id = twice.call("a", 1, operation, 0, 100);
  twice.answered(id, outcome, 1);
  twice.answered(id, outcome, 2);
  test.equal(checkAnsweredOnce(twice.history(), 1).kind, "fail", "answered twice");
  test.equal(twice.isFull(), true);
  test.throws(() => twice.call("a", 1, operation, 3), /full/, "nothing is dropped silently");
  test.end();
});

t.test("P-073 the fenced store refuses smaller tokens", (test) => {
  const store = new FencedStore({ accepted: 2, refused: 1 });
  test.equal(store.verdict().kind, "vacuous");
  test.equal(store.write("r", "A", 1n), true);
  test.equal(store.write("r", "B", 2n), true);
  test.equal(store.verdict().kind, "vacuous", "nobody wrote late");
  test.equal(store.write("r", "A", 1n), false);
  test.equal(store.verdict().kind, "pass");
  test.equal(store.write("r", "C", 2n), true);
  test.equal(store.verdict().kind, "fail", "two owners with one token");
  test.end();
});

t.test("properties of the replicated log: each fires, passes, and is vacuous", (test) => {
  const elections = new ElectionSafety(2);
  test.equal(elections.verdict().kind, "vacuous");
  elections.leader(1, 5, 1);
  elections.leader(2, 5, 2);
  elections.leader(1, 5, 1);
  test.equal(elections.verdict().kind, "pass");
  elections.leader(1, 5, 3);
  test.match(elections.verdict(), { kind: "fail", violationCount: 1 });

  const matching = new LogMatching(1);
  matching.entry(1, 1, 7, 2, 2, "x");
  test.equal(matching.verdict().kind, "vacuous");
  matching.entry(2, 1, 7, 2, 2, "x");
  matching.entry(2, 1, 7, 3, 2, "y");
  test.equal(matching.verdict().kind, "pass");
  matching.entry(3, 1, 7, 2, 1, "x");
  matching.entry(3, 1, 7, 3, 2, "z");
  test.match(matching.verdict(), { kind: "fail", violationCount: 2 });

  const complete = new LeaderCompleteness({ elections: 1, commits: 2 });
  complete.commit(1, 1, 1, 1);
  test.equal(complete.verdict().kind, "vacuous");
  complete.commit(1, 1, 2, 2);
  complete.commit(2, 1, 2, 2);
  complete.leader(2, 1, 3, (index) => (index === 1 ? null : 2));
  test.equal(complete.verdict().kind, "pass");
  complete.leader(3, 1, 4, (index) => (index === 1 ? 1 : undefined));
  test.match(complete.verdict(), { kind: "fail", violationCount: 1 });
  complete.commit(3, 1, 1, 3);
  test.match(complete.verdict(), { kind: "fail", violationCount: 2 });

  const equality = new StateEquality(1);
  equality.applied(1, 1, 9, "x");
  test.equal(equality.verdict().kind, "vacuous");
  equality.applied(2, 1, 9, "x");
  test.equal(equality.verdict().kind, "pass");
  equality.applied(3, 1, 9, "y");
  test.equal(equality.verdict().kind, "fail");
  test.end();
});

t.test(
  "commit and applied never go back, sizes are bounded: each fires, passes, is vacuous",
  (test) => {
    const sample = { node: 1, life: 1, group: 1, term: 3, commit: 9, applied: 8, durable: 9 };
    const spoiled = [
      { ...sample, commit: 8 },
      { ...sample, applied: 7 },
      { ...sample, term: 2 },
      { ...sample, applied: 10, commit: 10 },
      { ...sample, applied: 9, commit: 8 },
      { ...sample, life: 2, term: 2 },
    ];
    for (const bad of spoiled) {
      const back = new NeverBack(2);
      back.observe(sample);
      test.equal(back.verdict().kind, "vacuous");
      back.observe(bad);
      test.equal(back.verdict().kind, "fail", JSON.stringify(bad));
    }
    const good = new NeverBack(2);
    good.observe(sample);
    good.observe({ ...sample, life: 2, commit: 5, applied: 5 });
    test.equal(good.verdict().kind, "pass", "a new life starts from its snapshot");
    good.wiped(1);
    good.observe({ ...sample, life: 3, term: 0, commit: 0, applied: 0, durable: 0 });
    test.equal(good.verdict().kind, "pass", "a wiped node starts anew");

    const size = new BoundedSize(1);
    test.equal(size.verdict().kind, "vacuous");
    size.sample(1, "log bytes", 10, 10);
    test.equal(size.verdict().kind, "pass");
    size.sample(1, "log bytes", 11, 10);
    test.match(size.verdict(), { kind: "fail", seen: { "largest log bytes": 11 } });
    test.end();
  },
);

t.test("P-166 every history checker is vacuous on an empty history", (test) => {
  const scans = { pages: 1, rows: 1, untouched: 1 };
  const minimum = { ...HISTORY_CHECKS.minimum, scans };
  const verdicts = checkHistory(historyOf([]), { ...HISTORY_CHECKS, minimum });
  test.same(new Set(verdicts.map((verdict) => verdict.kind)), new Set(["vacuous"]));
  test.equal(allPass(verdicts), false);
  test.equal(allPass([]), false, "no verdict is no pass");
  const [first] = verdicts;
  test.match(
    first === undefined ? "" : verdictText(first),
    /^VACUOUS +one answer in time: judged 0/,
  );
  test.end();
});

t.test("histories survive as JSON lines, int64 exact, and are merged by time", (test) => {
  const largest = 2n ** 63n - 1n;
  const history = historyOf([
    [1, 2, "a", create(seen(largest, { initialValue: -(2n ** 63n) }))],
    [3, 4, "b", set("int64:5", "Set 0")],
    [5, 6, "b", set("text:x", "unknown")],
    [7, 8, "c", lock("get-lock", "", "Got 9007199254740993 A 5")],
  ]);
  const again = history.attempts.map((attempt) => attemptOfLine(attemptLine(attempt)));
  test.same(again, history.attempts);
  test.throws(() => attemptOfLine('{"id":"x"}'), /not an attempt/);
  const merged = mergeHistories([
    historyOf([[1, 4, "a", set("x", "Set 0")]]),
    historyOf([
      [4, 6, "b", set("y", "unknown")],
      [7, 8, "b", set("z", "Set 2")],
    ]),
  ]);
  const orders = merged.attempts.map(({ callOrder, returnOrder }) => [callOrder, returnOrder]);
  test.same(
    orders,
    [
      [1, 3],
      [2, null],
      [4, 5],
    ],
    "equal times count as overlapping",
  );
  test.end();
});

t.test("P-176 few undecided objects of many are green only where a quota says so", (t) => {
  const verdictOf = (objects: number, open: number): Verdict => {
    const findings = new Findings("p", { operations: 10 });
    findings.count("operations", 20);
    findings.count("objects", objects);
    for (let at = 0; at < open; at++) findings.undecided(`object ${at}`);
    return findings.verdict();
  };
  t.equal(verdictOf(100, 5).kind, "undecided");
  t.notOk(allPass([verdictOf(100, 5)]));
  t.ok(allPass([verdictOf(100, 5)], 0.05));
  t.notOk(allPass([verdictOf(100, 6)], 0.05));
  t.ok(allPass([verdictOf(100, 0)]));
  const failed = new Findings("p", {});
  failed.count("objects", 1000);
  failed.undecided("one");
  failed.violation("two");
  t.notOk(allPass([failed.verdict()], 0.05), "a violation outweighs everything");
  t.end();
});
