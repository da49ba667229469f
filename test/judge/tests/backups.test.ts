/**
 * The checkers of restored clusters: each passes, fires, and is vacuous where it saw too little.
 */
import t from "tap";
import { checkAboveBefore } from "../checkers/backups/above-before.js";
import { INCARNATION_LIFT, carriedOn } from "../checkers/backups/carried-on.js";
import { checkCausalCut } from "../checkers/backups/causal-cut.js";
import { LINEARIZABILITY, checkLinearizability } from "../checkers/clients/linearizability.js";
import type { History } from "../history.js";
import {
  type Line,
  type Made,
  create,
  getSequence,
  historyOf,
  lock,
  onKey,
  seen,
  set,
} from "./hand-made.js";

function look(answer: string, key = "b/k"): Made {
  const { operation, result } = onKey("kv-get", answer);
  return { operation: { ...operation, key } as Made["operation"], result };
}

function known(incarnation: bigint): Made {
  return getSequence(seen(0n, { incarnation }));
}

const CUT = { calledMs: 100, answeredMs: 200 };

function kinds(history: History): string[] {
  const minimum = { lock: 0, sequence: 0, key: 0 };
  return checkLinearizability(history, { ...LINEARIZABILITY, minimum }).map(({ kind }) => kind);
}

/** What a restored cluster shows, whose first node was started at 5000 ms. */
function carried(old: readonly Line[], restored: readonly Line[]): History {
  return carriedOn(historyOf(old), CUT, { history: historyOf(restored), beganMs: 5000 });
}

t.test("7.5 what was answered before the call is in the backup", (t) => {
  const old: Line[] = [[10, 20, "a", set("one", "Set 0")]];
  t.same(kinds(carried(old, [[6000, 6001, "r", look("Got 0 one")]])), ["pass"]);
  t.same(kinds(carried(old, [[6000, 6001, "r", look("DoesNotExist -1")]])), ["fail"]);
  t.end();
});

t.test("7.5 what was beside it and is over by the first look left its revision", (t) => {
  const old: Line[] = [[90, 190, "b", set("two", "unknown", { expiresMs: 300 })]];
  const restored: Line[] = [
    [6000, 6001, "r", look("DoesNotExist 0")],
    [6010, 6011, "r", set("three", "Set 1")],
  ];
  t.same(kinds(carried(old, restored)), ["pass"]);
  t.end();
});

t.test("7.5 what was called after the answer is not", (t) => {
  const old: Line[] = [
    [10, 20, "a", set("one", "Set 0")],
    [210, 220, "a", set("two", "Set 1")],
  ];
  t.same(kinds(carried(old, [[6000, 6001, "r", look("Got 0 one")]])), ["pass"]);
  t.same(kinds(carried(old, [[6000, 6001, "r", look("Got 1 two")]])), ["fail"]);
  t.end();
});

t.test("7.5 what was beside it may be in it, and then happened before the first look", (t) => {
  for (const answer of ["Set 1", "unknown"]) {
    const old: Line[] = [
      [10, 20, "a", set("one", "Set 0")],
      [90, 190, "b", set("two", answer)],
    ];
    t.same(kinds(carried(old, [[6000, 6001, "r", look("Got 0 one")]])), ["pass"], answer);
    t.same(kinds(carried(old, [[6000, 6001, "r", look("Got 1 two")]])), ["pass"], answer);
    const late: Line[] = [
      [6000, 6001, "r", look("Got 0 one")],
      [6010, 6011, "r", look("Got 1 two")],
    ];
    t.same(kinds(carried(old, late)), ["fail"], `${answer}: it comes too late`);
  }
  t.end();
});

t.test("7.5 leases stand still from the backup to the first start", (t) => {
  const old: Line[] = [[90, 95, "a", lock("try-lock", "a", "Locked 5", 1000)]];
  const held: Line[] = [[5800, 5801, "r", lock("get-lock", "", "Got 5 a 150")]];
  t.same(kinds(carried(old, held)), ["pass"]);
  const early: Line[] = [[5800, 5801, "r", lock("try-lock", "b", "Locked 99")]];
  t.same(kinds(carried(old, early)), ["fail"], "the lease was shortened");
  const late: Line[] = [[5950, 5951, "r", lock("try-lock", "b", "Locked 99")]];
  t.same(kinds(carried(old, late)), ["pass"]);
  t.end();
});

t.test("7.5 a restored sequence is known under its incarnation of before", (t) => {
  const old: Line[] = [[10, 20, "a", create(seen(0n))]];
  const shows = (incarnation: bigint): Line[] => [[6000, 6001, "r", known(incarnation)]];
  t.same(kinds(carried(old, shows(INCARNATION_LIFT))), ["pass"]);
  t.same(kinds(carried(old, shows(3n))), ["fail"]);
  t.end();
});

t.test("P-134 a cut is closed under before", (t) => {
  const restored = historyOf([
    [6000, 6001, "r", look("Got 0 one", "first")],
    [6002, 6003, "r", look("Got 1 one", "second")],
  ]);
  const least = { included: 1, excluded: 1 };
  const verdict = (lines: readonly Line[]): string =>
    checkCausalCut(historyOf(lines), CUT, restored, least).kind;
  const before: Line = [10, 20, "a", set("one", "Set 0", { key: "first" })];
  const excluded: Line = [110, 120, "a", set("two", "Set 1", { key: "first" })];
  const after: Line = [130, 140, "b", set("one", "Set 1", { key: "second" })];
  t.equal(verdict([before, after]), "vacuous", "nothing is excluded");
  t.equal(verdict([before, excluded, after]), "fail", "what came after it is in the backup");
  const beside: Line = [115, 140, "b", set("one", "Set 1", { key: "second" })];
  t.equal(verdict([before, excluded, beside]), "pass", "it did not come after it");
  const sight: Line = [111, 112, "c", look("Got 1 two", "first")];
  t.equal(verdict([before, [105, 190, "a", excluded[3]], sight, beside]), "fail", "it was seen");
  t.equal(verdict([before, [30, 40, "a", excluded[3]], beside]), "fail", "before the call");
  t.equal(verdict([before, excluded, [201, 202, "b", after[3]]]), "fail", "after the answer");
  t.end();
});

t.test("7.5 tokens and incarnations lie above all before", (t) => {
  const old = historyOf([
    [10, 20, "a", lock("try-lock", "a", "Locked 5")],
    [300, 310, "a", lock("try-lock", "b", "Locked 9")],
    [10, 20, "a", known(0n)],
  ]);
  const verdict = (token: number, incarnation: bigint, before = [old]): string => {
    const restored = historyOf([
      [6000, 6001, "r", known(incarnation)],
      [6002, 6003, "r", lock("try-lock", "c", `Locked ${token}`)],
    ]);
    return checkAboveBefore(before, restored, { grants: 1, sequences: 1 }).kind;
  };
  t.equal(verdict(10, 1n), "pass");
  t.equal(verdict(9, 1n), "fail", "granted after the backup, by the old cluster");
  t.equal(verdict(10, 0n), "vacuous", "it was made anew");
  const second = historyOf([[7000, 7001, "s", known(4n)]]);
  t.equal(verdict(10, 4n, [old, second]), "fail", "an earlier restore had it");
  t.equal(verdict(10, 5n, [old, second]), "pass");
  t.end();
});
