/**
 * The checkers of moves of key ranges: each passes, fires, and is vacuous where it saw too little.
 */
import t from "tap";
import { CutAfterClose } from "../checkers/ranges/cut-after-close.js";
import { IdsOnce } from "../checkers/ranges/ids-once.js";
import { LeaseNeverShorter } from "../checkers/ranges/lease-never-shorter.js";
import { MovesSeen } from "../checkers/ranges/moves-seen.js";
import { NoOpenAfterCut } from "../checkers/ranges/no-open-after-cut.js";
import { OneOwner } from "../checkers/ranges/one-owner.js";
import { Ends, NoLeftOvers, leftOver, unended } from "../checkers/ranges/peace-of-ranges.js";
import type { RangeState, SeenKey } from "../checkers/ranges/range-state.js";
import { SameState } from "../checkers/ranges/same-state.js";
import type { SeenMove, SeenRange } from "../checkers/ranges/seen-moves.js";
import { holds } from "../checkers/ranges/seen-moves.js";
import { Tiling } from "../checkers/ranges/tiling.js";
import { WindowBounded } from "../checkers/ranges/window-bounded.js";

const INTERVAL = { keySpace: "b", startKey: "b/m", endKey: null };
const SPLIT: SeenMove = { ...INTERVAL, moveId: 7, kind: "split", source: 1, target: 4 };
const FIRST = { ...INTERVAL, moveId: 7, attempt: 1 };
const SECOND = { ...FIRST, attempt: 2 };

t.test("an interval is of its key space alone, its end left out", (t) => {
  const interval = { keySpace: "b", startKey: "b/c", endKey: "b/f" };
  t.ok(holds(interval, "b/c"));
  t.ok(holds(interval, "b/e/x") === false, "a deeper bucket");
  t.notOk(holds(interval, "b/f"));
  t.notOk(holds(interval, "b/b"));
  t.ok(holds({ keySpace: "b", startKey: null, endKey: "b/a" }, "b"), "a key that is a bucket");
  t.end();
});

t.test("a cut comes after freeze and close", (t) => {
  const checker = new CutAfterClose({ cuts: 1 });
  checker.frozen(1, FIRST);
  checker.closed(4, FIRST);
  t.equal(checker.verdict().kind, "vacuous");
  checker.cut(SPLIT, 1);
  t.equal(checker.verdict().kind, "pass");
  checker.cut(SPLIT, 2);
  t.equal(checker.verdict().violationCount, 2, "neither in this attempt");
  checker.frozen(1, SECOND);
  checker.closed(9, SECOND);
  checker.cut(SPLIT, 2);
  t.equal(checker.verdict().violationCount, 3, "another partition closed it");
  const undone = new CutAfterClose({});
  undone.frozen(1, FIRST);
  undone.closed(4, FIRST);
  undone.undone(FIRST, "source");
  undone.cut(SPLIT, 1);
  t.equal(undone.verdict().kind, "fail", "the source has it open again");
  undone.frozen(1, SECOND);
  undone.closed(4, SECOND);
  undone.undone(SECOND, "target");
  undone.cut(SPLIT, 2);
  t.equal(undone.verdict().violationCount, 2, "the target has dropped it");
  const early = new CutAfterClose({});
  early.followed(SPLIT, "target");
  t.equal(early.verdict().violationCount, 1, "adopted before the cut");
  early.followed(SPLIT, "source");
  t.equal(early.verdict().violationCount, 2, "let go of before the cut");
  const late = new CutAfterClose({});
  late.frozen(1, FIRST);
  late.closed(4, FIRST);
  late.cut(SPLIT, 1);
  late.followed(SPLIT, "target");
  late.followed(SPLIT, "source");
  t.equal(late.verdict().kind, "pass");
  t.end();
});

t.test("what was cut is not opened again, in either order", (t) => {
  const checker = new NoOpenAfterCut({ cuts: 1, unfrozen: 1 });
  checker.over(7, 1);
  checker.unfrozen(7, 1);
  t.equal(checker.verdict().kind, "vacuous");
  checker.cut(7, 2);
  t.equal(checker.verdict().kind, "pass");
  checker.unfrozen(7, 2);
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 });
  const late = new NoOpenAfterCut({});
  late.over(8, 1);
  late.unfrozen(8, 1);
  t.equal(late.verdict().kind, "pass");
  late.cut(8, 1);
  t.equal(late.verdict().kind, "fail", "the cut is learned of later");
  t.end();
});

t.test("P-100 what was frozen is opened after meta ended its attempt", (t) => {
  const checker = new NoOpenAfterCut({});
  checker.over(7, 1);
  checker.unfrozen(7, 1);
  checker.over(8, Infinity);
  checker.unfrozen(8, 3);
  t.equal(checker.verdict().kind, "pass", "the next attempt, and a move that was given up");
  checker.unfrozen(7, 2);
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 }, "its attempt counts still");
  checker.unfrozen(9, 1);
  t.equal(checker.verdict().violationCount, 2, "nothing was ever said of the move");
  t.end();
});

function key(text: string, more: Partial<SeenKey> = {}): SeenKey {
  return {
    text,
    isTombstone: false,
    endMs: null,
    history: 1,
    historyBytes: 9,
    stamp: 5,
    ...more,
  };
}

function state(
  keys: Readonly<Record<string, SeenKey>>,
  more: Partial<RangeState> = {},
): RangeState {
  return { keys: new Map(Object.entries(keys)), leaseMs: 1000, proposedMs: 100, ...more };
}

t.test("P-102 the target has what the source had", (t) => {
  const held = { "b/m": key("v1 r3"), "b/n": key("dead r4", { isTombstone: true, endMs: 7 }) };
  const checker = new SameState({ moves: 1, keys: 2, "history rows": 2, tombstones: 1 });
  checker.frozen(FIRST, state(held));
  t.equal(checker.verdict().kind, "vacuous");
  checker.closed(FIRST, state(held));
  checker.adopted(FIRST, state({ "b/m": key("v1 r3") }));
  t.match(checker.verdict(), { kind: "pass", seen: { adopted: 1 } }, "a tombstone was collected");
  const other = { ...held, "b/m": key("v1 r2") };
  const broken = [
    { "b/m": key("v1 r3") },
    other,
    { ...held, "b/o": key("v9 r0") },
    { "b/n": held["b/n"] },
  ];
  for (const found of broken) {
    const fires = new SameState({});
    fires.frozen(FIRST, state(held));
    fires.closed(FIRST, state(found));
    t.equal(fires.verdict().kind, "fail", Object.keys(found).join());
  }
  for (const found of [other, {}, { ...held, "b/o": key("v9 r0") }]) {
    const lost = new SameState({});
    lost.frozen(FIRST, state(held));
    lost.closed(FIRST, state(held));
    lost.adopted(FIRST, state(found));
    t.equal(lost.verdict().kind, "fail", `adopted: ${Object.keys(found).join()}`);
  }
  const alarm = new SameState({});
  alarm.frozen(FIRST, state(held));
  t.equal(alarm.verdict().kind, "pass");
  alarm.mismatched(FIRST, state(other));
  t.equal(alarm.verdict().kind, "fail", "the copy was wrong");
  alarm.mismatched(FIRST, state(held));
  t.equal(alarm.verdict().violationCount, 2, "or its count");
  const unknown = new SameState({});
  unknown.adopted(FIRST, state(held));
  t.equal(unknown.verdict().kind, "fail", "adopted without a close");
  unknown.closed(SECOND, state(held));
  t.equal(unknown.verdict().violationCount, 2, "closed without a freeze");
  t.end();
});

t.test("T3 no lease is shorter for a move", (t) => {
  const times = { tookMs: 200, underWayMs: 100 };
  /** 900 ms were left at the freeze; 50 ms later there are `left` by another clock. */
  const moved = (left: number, more: Partial<SeenKey> = {}): LeaseNeverShorter => {
    const checker = new LeaseNeverShorter(0.05, { leases: 1 });
    checker.frozen(FIRST, state({ "b/m": key("v", { endMs: 1900, ...more }) }));
    const there = key("v", { endMs: 70_000 + left, ...more });
    checker.closed(FIRST, state({ "b/m": there }, { leaseMs: 70_000, proposedMs: 150 }), times);
    return checker;
  };
  for (const left of [850, 1850, 2400]) t.equal(moved(left).verdict().kind, "pass", `${left}`);
  for (const left of [800, 0, 3000]) t.equal(moved(left).verdict().kind, "fail", `${left}`);
  const dead = (age: number): string => {
    const checker = new LeaseNeverShorter(0.05, { "retained tombstones": 1 });
    const tombstone = { isTombstone: true };
    checker.frozen(FIRST, state({ "b/m": key("d", { ...tombstone, endMs: 600 }) }));
    const there = key("d", { ...tombstone, endMs: 70_000 - age });
    checker.closed(FIRST, state({ "b/m": there }, { leaseMs: 70_000, proposedMs: 150 }), times);
    return checker.verdict().kind;
  };
  t.equal(dead(450), "pass", "the tombstone is as old");
  t.equal(dead(10), "pass", "kept longer");
  t.equal(dead(500), "fail", "dropped earlier");
  const none = new LeaseNeverShorter(0, { leases: 1 });
  none.frozen(FIRST, state({ "b/m": key("v") }));
  none.closed(FIRST, state({ "b/m": key("v") }), times);
  t.equal(none.verdict().kind, "vacuous", "no lease moved");
  none.frozen(SECOND, state({ "b/m": key("v", { endMs: 1900 }) }));
  none.closed(SECOND, state({ "b/m": key("v", { endMs: 1900, stamp: 4 }) }), times);
  t.match(none.verdict(), { kind: "fail" }, "the stamp falls");
  t.end();
});

function range(
  startKey: string | null,
  endKey: string | null,
  partitionId: number,
  generation = 1,
): SeenRange {
  return { keySpace: "b", startKey, endKey, partitionId, generation };
}

t.test("P-104 ranges tile their key spaces", (t) => {
  const whole = [range(null, "b/m", 1, 2), range("b/m", null, 4, 2)];
  const checker = new Tiling({ maps: 2, "of several ranges": 1 });
  checker.map(1, new Map([["b", [range(null, null, 1)]]]));
  t.equal(checker.verdict().kind, "vacuous");
  checker.map(2, new Map([["b", whole]]));
  checker.map(1, new Map([["b", []]]));
  t.equal(checker.verdict().kind, "pass", "what is older says nothing");
  const broken: readonly (readonly SeenRange[])[] = [
    [],
    [range("b/a", null, 1)],
    [range(null, "b/m", 1)],
    [range(null, "b/m", 1), range("b/n", null, 4)],
    [range(null, "b/n", 1), range("b/m", null, 4)],
    [range(null, "b/m", 1), range("b/m", "b/m", 4), range("b/m", null, 5)],
    [range(null, "b/m", 1), range("b/z", "b/m", 4), range("b/m", null, 5)],
    [range(null, null, 1), range(null, null, 4)],
  ];
  for (const ranges of broken) {
    const fires = new Tiling({});
    fires.map(1, new Map([["b", ranges]]));
    t.equal(fires.verdict().kind, "fail", JSON.stringify(ranges));
  }
  checker.map(3, new Map([["b", [range(null, "b/m", 1, 2), range("b/m", null, 4, 3)]]]));
  t.equal(checker.verdict().kind, "pass");
  const merge = { ...SPLIT, kind: "merge", source: 4, target: 1 } as const;
  checker.began(merge);
  checker.began({ ...SPLIT, target: 9 });
  t.match(checker.verdict(), { kind: "pass", seen: { merges: 1 } });
  checker.map(5, new Map([["b", whole]]));
  t.equal(checker.verdict().violationCount, 1, "a generation that goes back");
  checker.began({ ...merge, target: 5 });
  t.equal(checker.verdict().violationCount, 2, "no range of that partition is beside it");
  const anew = new Tiling({});
  anew.map(1, new Map([["b", [range(null, "b/m", 1, 7), range("b/m", null, 4, 7)]]]));
  anew.map(2, new Map());
  anew.map(3, new Map([["b", [range(null, null, 1)]]]));
  anew.map(4, new Map([["b", whole]]));
  t.equal(anew.verdict().kind, "pass", "who registers anew begins anew");
  t.end();
});

t.test("no partition id has two lives", (t) => {
  const checker = new IdsOnce({ "new ids": 1, removed: 1 });
  const one = { partitionId: 1, state: "Active" };
  const two = { partitionId: 2, state: "Splitting" };
  checker.map(1, [one]);
  t.equal(checker.verdict().kind, "vacuous", "those of the founding are not new");
  checker.map(2, [one, two]);
  checker.map(3, [one, { ...two, state: "Removed" }]);
  checker.map(2, [one, two]);
  checker.map(4, [one]);
  t.equal(checker.verdict().kind, "pass");
  checker.map(5, [one, two]);
  t.equal(checker.verdict().violationCount, 1, "again");
  checker.map(6, [{ partitionId: 3, state: "Splitting" }, two]);
  t.equal(checker.verdict().violationCount, 2, "one of before has no record");
  const low = new IdsOnce({});
  low.map(1, [{ partitionId: 5, state: "Active" }]);
  low.map(2, [
    { partitionId: 3, state: "Splitting" },
    { partitionId: 5, state: "Active" },
  ]);
  t.equal(low.verdict().kind, "fail", "a new id that is not above the others");
  t.end();
});

t.test("a key has one owner", (t) => {
  const keys = ["b/a", "b/n"];
  const seen = { probes: 2, "of keys that moved": 1, "while nobody owns": 1 };
  const checker = new OneOwner(keys, () => 1, seen);
  const led = (): boolean => true;
  const all = (partition: number) => (): readonly number[] => [partition];
  checker.look(0, all(1), led);
  t.equal(checker.verdict().kind, "vacuous");
  checker.owns(INTERVAL, null);
  const frozen = (key: string): readonly number[] => (key === "b/a" ? [1] : []);
  checker.look(1, frozen, led);
  checker.owns(INTERVAL, 4);
  checker.look(2, (key) => (key === "b/a" ? [1] : [4]), led);
  checker.look(
    3,
    () => [],
    () => false,
  );
  t.equal(checker.verdict().kind, "pass");
  const fires = (accepting: (key: string) => readonly number[], owner: number | null): string => {
    const broken = new OneOwner(keys, () => 1, {});
    broken.owns(INTERVAL, owner);
    broken.look(2, accepting, led);
    return broken.verdict().kind;
  };
  t.equal(
    fires((key) => (key === "b/a" ? [1] : [1, 4]), 4),
    "fail",
    "two accept it",
  );
  t.equal(fires(all(1), 4), "fail", "the former owner does");
  t.equal(fires(all(1), null), "fail", "frozen, and accepted");
  t.equal(fires(frozen, 4), "fail", "adopted, and refused");
  t.equal(fires(frozen, null), "pass");
  t.end();
});

t.test("an interval is frozen for a moment", (t) => {
  const checker = new WindowBounded(500, { windows: 1 });
  checker.frozen(FIRST, 1000);
  checker.look(1000, () => true);
  t.equal(checker.verdict().kind, "vacuous");
  checker.look(3400, () => true);
  checker.over(FIRST, 3450);
  t.match(checker.verdict(), { kind: "pass", seen: { windows: 1, "ms frozen": 2450 } });
  checker.frozen(SECOND, 4000);
  checker.look(4000, () => true);
  checker.look(6000, () => false);
  checker.look(6100, () => true);
  checker.look(8500, () => true);
  t.equal(checker.verdict().kind, "pass", "trouble begins the count anew");
  checker.look(8700, () => true);
  checker.look(8800, () => true);
  t.equal(checker.verdict().violationCount, 1, "told once");
  checker.over(FIRST, 9000);
  t.equal(checker.verdict().seen["windows"], 1, "what is over is over once");
  t.end();
});

t.test("P-042 in peace every move has ended, and nothing is left behind", (t) => {
  const replica = { node: 1, partition: 2, unfinished: [], strange: [] };
  const partitions = [
    { partitionId: 1, state: "Active" },
    { partitionId: 2, state: "Removed" },
  ];
  const peace = { moves: [], leaving: [], partitions, replicas: [replica] };
  t.equal(unended(peace), null);
  t.match(unended({ ...peace, moves: ["7"] }), /under way/);
  t.match(unended({ ...peace, leaving: ["b"] }), /leave/);
  t.match(unended({ ...peace, partitions: [{ partitionId: 1, state: "Splitting" }] }), /Splitting/);
  t.match(unended({ ...peace, replicas: [{ ...replica, unfinished: ["arriving"] }] }), /arriving/);
  t.match(leftOver({ replicas: [{ ...replica, strange: ["b/m"] }] }), /b\/m/);
  const ends = new Ends({ "times of peace": 1 });
  const left = new NoLeftOvers({ replicas: 1 });
  t.same([ends.verdict().kind, left.verdict().kind], ["vacuous", "vacuous"]);
  ends.settled(peace);
  left.settled(peace);
  t.same([ends.verdict().kind, left.verdict().kind], ["pass", "pass"]);
  const bad = { ...peace, replicas: [{ ...replica, unfinished: ["left"], strange: ["b/m"] }] };
  ends.settled(bad);
  left.settled(bad);
  t.same([ends.verdict().kind, left.verdict().kind], ["fail", "fail"]);
  t.end();
});

t.test("what ranges went through is counted", (t) => {
  const seen = new MovesSeen();
  seen.cut(SPLIT);
  seen.aborted("deadline");
  seen.retried();
  seen.leaderChanged("meta");
  seen.metaGone();
  seen.installed();
  seen.imported(3, 1, 20);
  seen.went("backups of it");
  t.match(seen.verdict(), {
    kind: "pass",
    seen: {
      ...{ moves: 1, "split moves": 1, aborted: 1, "aborted: deadline": 1 },
      ...{ "leader changes between freeze and adopt": 1, "tombstones moved": 1 },
      ...{ "bytes of history moved": 20, "freezes with meta's leader gone": 1 },
    },
  });
  t.end();
});
