/**
 * The checkers of what is told of key ranges, and of what clients see of moves: each passes, fires, and is
 * vacuous where it saw too little.
 */
import t from "tap";
import { Calm } from "../checkers/ranges/calm.js";
import { CountsTrue } from "../checkers/ranges/counts-true.js";
import {
  type AskedChange,
  HonestStatus,
  type ToldChange,
} from "../checkers/ranges/honest-status.js";
import type { SeenMove, SeenRange } from "../checkers/ranges/seen-moves.js";
import { throughMoves } from "../checkers/ranges/through-moves.js";
import { UnregisterKeeps } from "../checkers/ranges/unregister-keeps.js";
import { historyOf, set } from "./hand-made.js";

const SPLIT: SeenMove = {
  ...{ keySpace: "b", startKey: "b/m", endKey: null },
  ...{ moveId: 7, kind: "split", source: 1, target: 4 },
};

function ranges(...list: readonly SeenRange[]): Map<string, readonly SeenRange[]> {
  return new Map([["b", list]]);
}

const WHOLE = { keySpace: "b", startKey: null, endKey: null, partitionId: 1, generation: 1 };
const HALVES = [
  { ...WHOLE, endKey: "b/m", generation: 2 },
  { ...WHOLE, startKey: "b/m", partitionId: 4, generation: 2 },
];

function asked(kind: AskedChange["kind"], splitKey = ""): AskedChange {
  return { kind, keySpace: kind === "merge" ? "" : "b", splitKey };
}

function told(status: string, more: Partial<ToldChange> = {}): ToldChange {
  const success = ["Seeded", "AlreadySeeded", "Removed", "Succeeded", "Completed"].includes(status);
  const none = { partitionId: 0, generation: 0, merges: 0 };
  return { status, success, determinate: null, ...none, ...more };
}

const SURE = { determinate: true } as const;

t.test("answers to changes of ranges are true", (t) => {
  const minimum = { answers: 3, "splits done": 1, "refusals for good": 1 };
  const checker = new HonestStatus(true, minimum);
  checker.asked(1, asked("register"), 0);
  checker.map(ranges(WHOLE));
  checker.told(1, told("Seeded"));
  checker.asked(2, asked("split", "b/z"), 10);
  checker.told(2, told("BelowMinRangeSize", SURE));
  t.equal(checker.verdict().kind, "vacuous");
  checker.asked(3, asked("split", "b/m"), 20);
  checker.began(SPLIT);
  checker.asked(4, asked("unregister"), 30);
  checker.told(4, told("QuiesceWindowOpen"));
  checker.map(ranges(...HALVES));
  checker.cut(7);
  checker.told(3, told("Succeeded", { ...SURE, partitionId: 4, generation: 2 }));
  checker.ended(7);
  t.equal(checker.verdict().kind, "pass");
  checker.asked(5, asked("unregister"), 40);
  checker.told(5, told("QuiesceWindowOpen"));
  t.equal(checker.verdict().violationCount, 1, "no move was under way");
  checker.began({ ...SPLIT, moveId: 8 });
  checker.ended(7);
  checker.asked(10, asked("unregister"), 45);
  checker.told(10, told("QuiesceWindowOpen"));
  t.equal(checker.verdict().violationCount, 1, "the end of the one before was told again");
  checker.ended(8);
  checker.asked(6, asked("unregister"), 50);
  checker.told(6, told("Removed"));
  t.equal(checker.verdict().violationCount, 2, "there are ranges");
  checker.asked(7, asked("unregister"), 50);
  checker.map(new Map());
  checker.told(7, told("Removed"));
  checker.asked(8, asked("register"), 60);
  checker.told(8, told("AlreadySeeded"));
  t.equal(checker.verdict().violationCount, 3, "there is no range");
  checker.asked(9, asked("register"), 70);
  checker.passed("b", true);
  checker.passed("b", false);
  checker.told(9, told("Seeded"));
  t.equal(checker.verdict().violationCount, 3, "it was there in the middle of an entry");
  t.end();
});

t.test("a refusal for good has no effect afterwards, and flags go with their statuses", (t) => {
  const fires = (drive: (checker: HonestStatus) => void, isManual = true): string => {
    const checker = new HonestStatus(isManual, {});
    checker.map(ranges(WHOLE));
    checker.asked(1, asked("split", "b/m"), 0);
    drive(checker);
    return checker.verdict().kind;
  };
  const refuse = (checker: HonestStatus): void => checker.told(1, told("NoRange", SURE));
  t.equal(fires(refuse), "pass");
  t.equal(
    fires((checker) => {
      refuse(checker);
      checker.began(SPLIT);
    }),
    "fail",
    "it begins later",
  );
  t.equal(
    fires((checker) => {
      checker.began(SPLIT);
      refuse(checker);
    }),
    "fail",
    "it had begun",
  );
  t.equal(
    fires((checker) => {
      refuse(checker);
      checker.began(SPLIT);
    }, false),
    "pass",
    "somebody else may have",
  );
  t.equal(
    fires((checker) => {
      refuse(checker);
      checker.asked(2, asked("split", "b/m"), 5);
      checker.began(SPLIT);
    }),
    "pass",
    "another call may have",
  );
  const failed = (checker: HonestStatus): void => {
    checker.began(SPLIT);
    checker.told(1, told("PartitionCreationFailed", SURE));
  };
  t.equal(fires(failed), "pass", "what could not be made was begun");
  t.equal(
    fires((checker) => {
      failed(checker);
      checker.cut(7);
    }),
    "fail",
    "and is not cut",
  );
  const wrong: readonly ToldChange[] = [
    told("Fine"),
    told("NoRange", { determinate: false }),
    told("Indeterminate", SURE),
    told("ConcurrentSplit", SURE),
    told("Succeeded", { ...SURE, partitionId: 4, generation: 2 }),
    told("Succeeded", { ...SURE, success: false }),
  ];
  for (const answer of wrong) {
    t.equal(
      fires((checker) => checker.told(1, answer)),
      "fail",
      JSON.stringify(answer),
    );
  }
  t.equal(
    fires((checker) => checker.told(1, told("TransferFailed", { determinate: false }))),
    "pass",
  );
  t.end();
});

t.test("merges that are told were made", (t) => {
  const merge = { ...SPLIT, kind: "merge", source: 4, target: 1 } as const;
  for (const [made, count, kind] of [
    [1, 1, "pass"],
    [2, 1, "pass"],
    [0, 1, "fail"],
  ] as const) {
    const checker = new HonestStatus(true, {});
    checker.asked(1, asked("merge"), 0);
    for (let at = 1; at <= made; at++) {
      checker.began({ ...merge, moveId: at });
      checker.cut(at);
      checker.ended(at);
    }
    checker.told(1, told("Completed", { ...SURE, merges: count }));
    t.equal(checker.verdict().kind, kind, `${made} made, ${count} told`);
  }
  t.end();
});

t.test("P-106 automatic changes come to rest", (t) => {
  const calm = new Calm({ "quiet intervals": 5 });
  calm.began("a split", 1000);
  calm.quiet(2000, 100);
  calm.began("a merge", 2150);
  calm.rested(2500, 100);
  t.equal(calm.verdict().kind, "vacuous");
  calm.rested(3000, 100);
  t.match(calm.verdict(), { kind: "pass", seen: { "automatic changes": 2 } });
  calm.began("a split", 2300);
  t.equal(calm.verdict().kind, "fail");
  const swing = new Calm({});
  swing.swung(12, 2, 1);
  t.equal(swing.verdict().kind, "pass");
  swing.swung(13, 2, 1);
  t.equal(swing.verdict().kind, "fail");
  t.end();
});

t.test("sizes of ranges are true", (t) => {
  const counts = new CountsTrue({ "known sizes": 3 });
  counts.counted("r", 100, 5, 5);
  counts.counted("r", 200, 7, 8);
  counts.counted("r", 300, 9, 9);
  counts.told("r", 210, 250, 7);
  counts.told("r", 210, 250, null);
  counts.told("r", 150, 250, 5);
  t.equal(counts.verdict().kind, "vacuous");
  counts.told("r", 310, 320, 9);
  t.match(counts.verdict(), { kind: "pass", seen: { "unknown sizes": 1 } });
  counts.told("r", 50, 60, 99);
  t.equal(counts.verdict().kind, "pass", "nobody looked before it");
  counts.told("r", 210, 250, 6);
  t.equal(counts.verdict().violationCount, 1, "it had 7 to 9");
  counts.told("r", 210, 250, 6, 1);
  t.equal(counts.verdict().violationCount, 1, "so many may have come since it was counted");
  counts.counted("r", 400, 3, 3);
  counts.counted("r", 400, 4, 4);
  counts.told("r", 400, 400, 4);
  t.equal(counts.verdict().violationCount, 1, "several looks at one time");
  counts.told("r", 210, 250, 10);
  t.equal(counts.verdict().violationCount, 2);
  t.end();
});

t.test("K12 an unregister keeps every key", (t) => {
  const minimum = { "keys found meanwhile": 1, "keys found afterwards": 1, nodes: 2 };
  const keeps = new UnregisterKeeps(minimum);
  keeps.read(1, "b/w", "v", "v", "meanwhile");
  t.equal(keeps.verdict().kind, "vacuous");
  keeps.read(2, "b/w", "v", "v", "afterwards");
  t.equal(keeps.verdict().kind, "pass");
  keeps.read(2, "b/w", "v", null, "afterwards");
  keeps.read(2, "b/w", "v", "u", "meanwhile");
  t.match(keeps.verdict(), { kind: "fail", violationCount: 2 });
  t.end();
});

t.test("what went through moves is counted", (t) => {
  const bucket = {
    operation: { kind: "kv-bucket", prefix: "b", ephemeral: false },
    result: { type: "Got", items: [] },
  } as const;
  const history = historyOf([
    [1, 2, "a", set("v", "Set 0", { key: "b/n" })],
    [9, 15, "a", set("w", "Set 1", { key: "b/n" })],
    [30, 31, "a", set("x", "Set 2", { key: "b/n" })],
    [32, 33, "a", set("y", "Set 0", { key: "b/a" })],
    [11, 12, "b", bucket],
    [40, 41, "b", bucket],
  ]);
  const move = { keySpace: "b", startKey: "b/m", endKey: null, frozenMs: 10, adoptedMs: 20 };
  const counts = (keySpace: string, atMs: number): number =>
    keySpace === "b" && atMs > 20 ? 2 : 1;
  const verdict = throughMoves(history, [move], counts, {});
  t.match(verdict, {
    kind: "pass",
    seen: {
      "moved keys with calls before and after": 1,
      "calls that straddle a move": 1,
      "buckets of several ranges": 1,
      "scans through a move": 1,
    },
  });
  t.equal(throughMoves(history, [], counts).kind, "vacuous");
  t.end();
});
