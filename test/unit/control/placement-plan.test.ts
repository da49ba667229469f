/** The allocator as tables: what is ordered, in which class, and why nothing is where nothing is. */
import t, { type Test } from "tap";
import {
  ARRIVING_MAX,
  ARRIVING_PLACES,
  BALANCE_ARRIVING_MAX,
  BALANCE_MOVES_MAX,
  BALANCE_PLACES,
  FEEDING_MAX,
  FEEDING_PLACES,
  MOVES_MAX,
  PARTITIONS_MAX,
  SNAPSHOT_PLACE_BYTES,
} from "../../../src/base/limits.js";
import { planPlacement } from "../../../src/control/placement-plan.js";
import { wishedReplicas } from "../../../src/control/placement.js";
import { PLACEMENT_REASONS } from "../../../src/control/placement-reasons.js";
import {
  idlePasses,
  IDLE_PASSES_ALARM,
  restAfter,
  restKey,
  type MemberView,
  type PlacementView,
} from "../../../src/control/placement-view.js";
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import { measured, measuredNode } from "../../../perf/micro/placement.js";
import {
  NOW_MS,
  dead,
  evicted,
  group,
  inWords,
  leaving,
  line,
  lines,
  nodeReport,
  placed,
  silent,
  viewOf,
} from "../../doubles/control/placement-view.js";

type Row = readonly [
  name: string,
  factor: number,
  members: readonly MemberView[],
  partitions: readonly PartitionRecord[],
  expected: readonly string[],
  more?: Partial<PlacementView>,
];

function check(t: Test, rows: readonly Row[]): void {
  for (const [name, factor, members, partitions, expected, more] of rows) {
    t.strictSame(inWords(planPlacement(viewOf(factor, members, partitions, more))), expected, name);
  }
}

const five = lines(5);
/** Node `id` of `of` with something else about it. */
function but(of: readonly MemberView[], id: number, more: Partial<MemberView>): MemberView[] {
  return of.map((member) => (member.nodeId === id ? { ...member, ...more } : member));
}

t.test("5.4 the factor: of the cluster, of the partition, never more than voters", (t) => {
  const wished = (mode: "full" | "placed", override: number, factor: number, voters: number) =>
    wishedReplicas({ mode, replicationOverride: override }, factor, voters);
  t.equal(wished("full", 0, 0, 5), 0, "full replication stays");
  t.equal(wished("full", 3, 0, 5), 3);
  t.equal(wished("placed", 0, 3, 5), 3);
  t.equal(wished("placed", 1, 3, 5), 1, "the override wins");
  t.equal(wished("placed", 9, 0, 5), 5, "nine says every voter");
  t.equal(wished("placed", 0, 0, 5), 5, "a cleared one without a factor: every voter");
  t.equal(wished("placed", 5, 3, 2), 2, "more than there are");
  t.end();
});

t.test("5.4 RF 5 to 3 to 1 and back: one step a pass, the leader last, the fullest first", (t) => {
  const all = "1, 2, 3, 4, 5";
  const others = [placed(2, "4, 1, 5"), placed(3, "5, 2, 4")];
  check(t, [
    ["five are five", 5, five, [placed(1, all)], []],
    ["five to three", 3, five, [placed(1, all), ...others], ["1 trim -5", "balance: others-first"]],
    ["four to three", 3, five, [placed(1, "1, 2, 3, 4"), ...others], ["1 trim -4"]],
    ["a backup is taken", 3, five, [placed(1, all)], ["1 trim: held"], { isHeld: true }],
    [
      "a dead one goes",
      3,
      [line(1), line(2), line(3), line(4, { isDead: true })],
      [placed(1, "1, 2, 3, 4")],
      ["1 trim: held"],
      { isHeld: true },
    ],
    ["growth waits, too", 3, five, [placed(1, "1")], ["1 grow: held"], { isHeld: true }],
    ["an even factor", 4, five, [placed(1, all)], ["1 trim -5"]],
    ["three to one", 1, five, [placed(1, "1, 2, 3")], ["1 trim -3"]],
    ["two to one: not the leader", 1, five, [placed(1, "1, 2")], ["1 trim -2"]],
    [
      "not the leader, though it is the fullest",
      1,
      five,
      [placed(1, "1, 2"), placed(2, "2")],
      ["1 trim -1", "balance: others-first"],
      { groups: new Map([[1, group(2)]]) },
    ],
    ["one to three", 3, five, [placed(1, "1")], ["1 grow +2"]],
    ["to the one with least", 2, five, [placed(1, "1"), placed(2, "2, 3")], ["1 grow +4"]],
    ["RF above the nodes", 5, lines(3), [placed(1, "1, 2, 3")], []],
    ["one node", 3, lines(1), [placed(1, "1")], []],
    ["the cluster grew", 5, five, [placed(1, "1, 2, 3")], ["1 grow +4"]],
    ["an override", 3, five, [placed(1, "1, 2, 3", { replicationOverride: 1 })], ["1 trim -3"]],
    [
      "an override of nine: every voter",
      3,
      five,
      [placed(1, "1, 2, 3", { replicationOverride: 9 })],
      ["1 grow +4"],
    ],
    ["cleared, and no factor", 0, five, [placed(1, "1")], ["1 grow +2"]],
    ["full replication", 0, five, [placed(1, "")], []],
    [
      "from full mode to a list: its leader first",
      0,
      five,
      [placed(1, "", { replicationOverride: 3 })],
      ["1 place: not-listed"],
    ],
    ["a removed partition", 3, five, [placed(1, "1", { state: "Removed" })], []],
  ]);
  t.end();
});

t.test("P-091 P-093 class 0: nothing beside a replica on its way; a lost one goes", (t) => {
  const coming = "1, 2, 3, 4 learner for 3";
  const stalled = { groups: new Map([[1, group(1, { advancedMs: NOW_MS - 600_000 })]]) };
  const nearly = { groups: new Map([[1, group(1, { advancedMs: NOW_MS - 599_999 })]]) };
  const waits = ["1 finish: replica-on-its-way"];
  const stays = ["1 finish =3"];
  const goes = [placed(1, "1, 2, 3 removing")];
  const off = { isEnabled: false };
  const unled = { groups: new Map([[1, group(0)]]) };
  const wide = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10 removing";
  const halfDead = [6, 7, 8, 9, 5].reduce((members, id) => but(members, id, dead), lines(11));
  const keeps: readonly Row[] = [
    ["one goes, and a voter that stays is dead", 2, but(five, 2, dead), goes, stays],
    ["is evicted", 2, but(five, 2, evicted), goes, stays],
    ["it leaves, too", 2, but(but(five, 2, dead), 3, leaving), goes, stays],
    ["is only silent: it may come back", 2, but(five, 2, silent), goes, waits],
    ["it is dead itself", 2, but(but(five, 2, dead), 3, dead), goes, waits],
    [
      "the rest decides without it",
      3,
      but(five, 1, dead),
      [placed(1, "1, 2, 3 removing, 4")],
      waits,
    ],
    ["there is no leader: it does not vote", 2, but(five, 2, dead), goes, waits, unled],
    ["nothing is moved", 2, but(five, 2, dead), goes, waits, off],
    ["nobody votes beside nine", 9, halfDead, [placed(1, wide)], waits],
  ];
  check(t, [
    ["it comes", 3, five, [placed(1, coming)], waits],
    ["one goes", 3, five, [placed(1, "1, 2, 3, 4 removing")], waits],
    ["though there are too few", 5, five, [placed(1, "1, 2 learner")], waits],
    ["its host is dead", 3, but(five, 4, dead), [placed(1, coming)], ["1 finish x4"]],
    ["is evicted", 3, but(five, 4, evicted), [placed(1, coming)], ["1 finish x4"]],
    ["leaves", 3, but(five, 4, leaving), [placed(1, coming)], ["1 finish x4"]],
    ["has left", 3, lines(3), [placed(1, coming)], ["1 finish x4"]],
    ...keeps,
    ["is silent: it may come back", 3, but(five, 4, silent), [placed(1, coming)], waits],
    ["10 minutes without progress", 3, five, [placed(1, coming)], ["1 finish x4"], stalled],
    ["a little less", 3, five, [placed(1, coming)], waits, nearly],
    [
      "a group of which nothing is known",
      3,
      five,
      [placed(1, coming)],
      waits,
      { groups: new Map() },
    ],
    ["nobody needs it", 3, five, [placed(1, "1, 2, 3, 4 learner")], ["1 finish x4"]],
    [
      "several, one after the other",
      2,
      five,
      [placed(1, "1, 2, 3 learner, 4 learner")],
      ["1 finish x3"],
    ],
    [
      "also without the rebalancer",
      3,
      but(five, 4, dead),
      [placed(1, coming)],
      ["1 finish x4"],
      { isEnabled: false },
    ],
    [
      "it is needed while a dead one is listed",
      2,
      but(five, 3, dead),
      [placed(1, "1, 2 learner, 3")],
      waits,
    ],
    [
      "who goes is left to the group",
      3,
      but(five, 4, dead),
      [placed(1, "1, 2, 3, 4 removing")],
      waits,
    ],
  ]);
  t.end();
});

t.test("P-092 repair: by a majority that lives, the most endangered first", (t) => {
  const d3 = but(five, 3, dead);
  const two = but(d3, 4, dead);
  check(t, [
    ["a dead voter", 3, d3, [placed(1, "1, 2, 3")], ["1 repair +4 for 3"]],
    ["an evicted one", 3, but(five, 3, evicted), [placed(1, "1, 2, 3")], ["1 repair +4 for 3"]],
    ["one that is no member", 3, lines(4), [placed(1, "1, 2, 9")], ["1 repair +3 for 9"]],
    ["two dead of five", 5, two, [placed(1, "1, 2, 3, 4, 5")], ["1 repair: no-node"]],
    [
      "two dead of five, and nodes",
      5,
      but(but(lines(7), 3, dead), 4, dead),
      [placed(1, "1, 2, 3, 4, 5")],
      ["1 repair +6 for 3"],
    ],
    ["two dead of three", 3, two, [placed(1, "1, 3, 4")], ["1 repair: no-majority"]],
    ["two of four", 4, two, [placed(1, "1, 2, 3, 4")], ["1 repair: no-majority"]],
    ["a silent one is not dead", 3, but(five, 3, silent), [placed(1, "1, 2, 3")], []],
    [
      "no leader is known",
      3,
      d3,
      [placed(1, "1, 2, 3")],
      ["1 repair: no-leader"],
      {
        groups: new Map([[1, group(0)]]),
      },
    ],
    [
      "the leader that is known is silent",
      3,
      but(d3, 1, silent),
      [placed(1, "1, 2, 3, 4, 5")],
      ["1 trim: no-leader"],
    ],
    [
      "who can lose least, first",
      5,
      but(but(lines(7), 3, dead), 4, dead),
      [placed(1, "1, 2, 3, 5, 6"), placed(2, "1, 2, 3, 4, 5")],
      ["2 repair +7 for 3", "1 repair +7 for 3"],
    ],
    ["before the factor grew", 5, d3, [placed(1, "1, 2, 3")], ["1 repair +4 for 3"]],
    [
      "without the rebalancer",
      3,
      d3,
      [placed(1, "1, 2, 3")],
      ["1 repair: disabled"],
      { isEnabled: false },
    ],
    ["enough without it: it goes", 2, d3, [placed(1, "1, 2, 3")], ["1 trim -3"]],
  ]);
  t.end();
});

t.test("P-095 who is removed by force and has no successor goes all the same", (t) => {
  const lost = (sixth: Partial<MemberView>): MemberView[] => {
    return but(but(lines(6), 4, evicted), 6, sixth);
  };
  const all = [placed(1, "1, 2, 3, 4, 5")];
  check(t, [
    ["the other one is dead, too", 5, lost(dead), all, ["1 repair -4"]],
    ["one that is silent may stay so", 5, lost(silent), all, ["1 repair -4"]],
    [
      "one that lives may soon take it",
      5,
      lost({ report: null }),
      all,
      ["1 repair: nodes-not-ready"],
    ],
    ["one takes it", 5, lost({}), all, ["1 repair +6 for 4"]],
    ["who is but dead may come back", 5, but(lines(5), 4, dead), all, ["1 repair: no-node"]],
  ]);
  t.end();
});

t.test("P-096 drain: a replica in place of the leaver's, or none where the rest is enough", (t) => {
  const l3 = but(five, 3, leaving);
  const off = { isEnabled: false };
  const evictedOff = but(five, 3, evicted);
  check(t, [
    ["a replica comes first", 3, l3, [placed(1, "1, 2, 3")], ["1 drain +4 for 3"]],
    ["RF 1", 1, l3, [placed(1, "3")], ["1 drain +1 for 3"]],
    ["the rest is enough", 2, l3, [placed(1, "1, 2, 3")], ["1 drain -3"]],
    [
      "three nodes, one leaves",
      3,
      but(lines(3), 3, leaving),
      [placed(1, "1, 2, 3")],
      ["1 drain -3"],
    ],
    ["RF 1 of two nodes", 1, but(lines(2), 2, leaving), [placed(1, "2")], ["1 drain +1 for 2"]],
    [
      "nobody can take it",
      3,
      but(but(lines(4), 3, leaving), 4, silent),
      [placed(1, "1, 2, 3")],
      ["1 drain: nodes-not-ready"],
    ],
    [
      "a dead one that is too many goes meanwhile",
      3,
      but(but(lines(5), 3, leaving), 4, dead),
      [placed(1, "1, 2, 3, 4, 5", { replicationOverride: 4 })],
      ["1 trim -4"],
    ],
    [
      "the smallest first",
      3,
      l3,
      [placed(1, "1, 2, 3"), placed(2, "1, 2, 3"), placed(4, "1, 2, 3")],
      [
        ...["2 drain +4 for 3", "4 drain +5 for 3", "1 drain: leader-busy"],
        "balance: others-first",
      ],
      {
        groups: new Map([
          [1, group(1, { sizeBytes: 5 * SNAPSHOT_PLACE_BYTES })],
          [2, group(1, { sizeBytes: 2 * SNAPSHOT_PLACE_BYTES })],
          [4, group(1, { sizeBytes: 3 * SNAPSHOT_PLACE_BYTES })],
        ]),
      },
    ],
    ["rebalancer off: it goes", 3, l3, [placed(1, "1, 2, 3")], ["1 drain -3"], off],
    ["off: not the last one", 1, l3, [placed(1, "3")], ["1 drain: majority-at-risk"], off],
    [
      "off: not the majority",
      3,
      but(l3, 2, silent),
      [placed(1, "1, 2, 3")],
      ["1 drain: majority-at-risk"],
      off,
    ],
    ["off: the others rest", 3, l3, [placed(1, "1, 2")], ["1 grow: disabled"], off],
    [
      "off: who was removed by force goes",
      3,
      evictedOff,
      [placed(1, "1, 2, 3")],
      ["1 repair -3"],
      off,
    ],
  ]);
  t.end();
});

t.test("P-092 trim: dead ones first, then leaving, silent, full ones; a majority stays", (t) => {
  check(t, [
    ["the dead one", 3, but(five, 2, dead), [placed(1, "1, 2, 3, 4")], ["1 trim -2"]],
    [
      "the dead one of two too many",
      2,
      but(five, 4, dead),
      [placed(1, "1, 2, 3, 4")],
      ["1 trim -4"],
    ],
    ["then who leaves", 2, but(five, 2, leaving), [placed(1, "1, 2, 3, 4")], ["1 drain -2"]],
    ["then who is silent", 3, but(five, 2, silent), [placed(1, "1, 2, 3, 4")], ["1 trim -2"]],
    [
      "then the fullest",
      3,
      five,
      [placed(1, "1, 2, 3, 4"), placed(2, "2, 5, 1"), placed(3, "2, 5, 1")],
      ["1 trim -2", "balance: others-first"],
    ],
    [
      "never so that no majority of the rest lives",
      1,
      but(but(five, 2, silent), 3, silent),
      [placed(1, "1, 2, 3, 4, 5")],
      ["1 trim -3"],
    ],
    [
      "not the one that a majority rests on, though it leaves",
      2,
      [line(1), line(2, leaving), line(3, silent)],
      [placed(1, "1, 2, 3")],
      ["1 drain -3"],
    ],
    [
      "nor with the ones that live",
      1,
      but(five, 2, silent),
      [placed(1, "1, 2")],
      ["1 trim: no-majority"],
    ],
  ]);
  t.end();
});

t.test("P-096 O-2 targets: who may, is ready, has room, does not rest; the nearest reason", (t) => {
  const need = [placed(1, "1, 2")];
  const rested = (untilMs: number): Partial<PlacementView> => ({
    rests: new Map([[restKey(1, 3), { untilMs, lengthMs: 300_000 }]]),
  });
  const four = (more: Partial<MemberView>): MemberView[] => [...lines(2), line(3, more), line(4)];
  const row = (
    name: string,
    more: Partial<MemberView>,
    said: string,
    view?: Partial<PlacementView>,
  ): Row => [name, 3, [...lines(2), line(3, more), line(9, silent)], need, [said], view ?? {}];
  check(t, [
    [
      "O-2 a learner of the list that has caught up",
      3,
      four({ role: "learner" }),
      need,
      ["1 grow +3"],
    ],
    ["one that has not", 3, four({ role: "learner", isCaughtUp: false }), need, ["1 grow +4"]],
    [
      "P-096 not who leaves",
      3,
      [...lines(2), line(3, leaving), line(4), line(5)],
      need,
      ["1 grow +4"],
    ],
    [
      "nor who is evicted",
      3,
      [...lines(2), line(3, evicted), line(4), line(5)],
      need,
      ["1 grow +4"],
    ],
    ["nor who is dead", 3, four(dead), need, ["1 grow +4"]],
    ["back since half a minute", 3, four({ liveSinceMs: NOW_MS - 30_000 }), need, ["1 grow +3"]],
    row("back too shortly", { liveSinceMs: NOW_MS - 29_999 }, "1 grow: nodes-not-ready"),
    row("no report", { report: null }, "1 grow: nodes-not-ready"),
    row(
      "an old one",
      { report: nodeReport({ receivedMs: NOW_MS - 15_001 }) },
      "1 grow: nodes-not-ready",
    ),
    row("a full store", { report: nodeReport({ storeBytes: 80 }) }, "1 grow: nodes-full"),
    row("a full disk", { report: nodeReport({ isFull: true }) }, "1 grow: nodes-full"),
    row("four on their way", { report: nodeReport({ snapshotsIn: 4 }) }, "1 grow: nodes-busy"),
    row("three on their way", { report: nodeReport({ snapshotsIn: 3 }) }, "1 grow +3"),
    row("it rests", {}, "1 grow: resting", rested(NOW_MS + 1)),
    row("it rested", {}, "1 grow +3", rested(NOW_MS)),
    [
      "all full",
      3,
      five.map((one) => ({ ...one, report: nodeReport({ isFull: true }) })),
      need,
      ["1 grow: nodes-full"],
    ],
    [
      "fewer bytes, then the lower id",
      3,
      [...lines(2), line(3, { report: nodeReport({ storeBytes: 20 }) }), line(4), line(5)],
      need,
      ["1 grow +4"],
    ],
  ]);
  t.end();
});

t.test("P-106 budgets: 64 in the cluster; to and from a node by bytes, and by number", (t) => {
  const large = { sizeBytes: SNAPSHOT_PLACE_BYTES };
  const ids = (count: number, first = 1): number[] =>
    Array.from({ length: count }, (_, at) => first + at);
  const plan = (
    factor: number,
    members: MemberView[],
    partitions: PartitionRecord[],
    groups = new Map(),
  ) => planPlacement(viewOf(factor, members, partitions, { groups }));
  const spread = new Map(ids(200).map((id) => [id, group(1 + (id % 40))]));
  const wide = lines(45);
  const trims = plan(
    1,
    wide,
    ids(100).map((id) => placed(id, `${1 + (id % 40)}, ${1 + ((id + 1) % 40)}`)),
    spread,
  );
  t.equal(trims.steps.length, MOVES_MAX, "in the cluster");
  t.equal(trims.waits.filter(({ reason }) => reason === "cluster-busy").length, 36);
  const inFlight = plan(
    1,
    wide,
    [
      ...ids(60).map((id) => placed(id, `${1 + (id % 40)}, 41 removing`)),
      ...ids(10, 61).map((id) => placed(id, `${1 + (id % 40)}, ${1 + ((id + 1) % 40)}`)),
    ],
    spread,
  );
  t.equal(inFlight.steps.length, 4, "with those on their way");
  const behind = { report: nodeReport({ loopLagP99Ms: 201 }) };
  const toOne = (sizeBytes: number, more: Partial<MemberView> = {}) =>
    plan(
      2,
      [...lines(40).map((one) => ({ ...one, report: null })), line(41, more)],
      ids(20).map((id) => placed(id, `${1 + (id % 40)}`)),
      new Map(ids(20).map((id) => [id, group(1 + (id % 40), { sizeBytes })])),
    );
  const crowd = toOne(SNAPSHOT_PLACE_BYTES);
  t.equal(crowd.steps.length, ARRIVING_PLACES, "to one node");
  t.equal(crowd.waits.filter(({ reason }) => reason === "nodes-busy").length, 16);
  t.equal(toOne(100 * SNAPSHOT_PLACE_BYTES).steps.length, ARRIVING_PLACES, "a place at most");
  t.equal(toOne(SNAPSHOT_PLACE_BYTES / 2).steps.length, 2 * ARRIVING_PLACES, "half a place");
  t.equal(toOne(0).steps.length, ARRIVING_MAX, "near-empty ones by number alone");
  t.equal(toOne(0, behind).steps.length, ARRIVING_PLACES, "few to a node that is behind");
  const fromOne = (sizeBytes: number, members = lines(9)) =>
    plan(
      2,
      members,
      ids(20).map((id) => placed(id, "1")),
      new Map(ids(20).map((id) => [id, group(1, { sizeBytes })])),
    );
  t.equal(fromOne(SNAPSHOT_PLACE_BYTES).steps.length, FEEDING_PLACES, "from one node");
  t.match(fromOne(SNAPSHOT_PLACE_BYTES).waits, [{ reason: "leader-busy" }, {}, {}, {}]);
  t.equal(fromOne(1000).steps.length, FEEDING_MAX);
  t.equal(fromOne(1000, but(lines(9), 1, behind)).steps.length, FEEDING_PLACES);
  const one = (hasSnapshot: boolean) =>
    new Map(ids(4).map((id) => [id, group(1, { hasSnapshot, ...large })]));
  const feeding = [placed(1, "1, 2 learner"), placed(2, "1, 2 learner"), placed(3, "1")];
  t.ok(inWords(plan(2, five, feeding, one(false))).includes("3 grow: leader-busy"));
  t.strictSame(inWords(plan(2, five, feeding, one(true)))[0], "3 grow +3", "they have theirs");
  const toSilent = plan(2, but(five, 2, silent), feeding, one(false));
  t.strictSame(inWords(toSilent)[0], "3 grow +3", "nobody is fed who is not heard");
  const catchingUp = (hasSnapshot: boolean): readonly string[] => {
    const led = new Map(ids(5).map((id) => [id, group(id, { hasSnapshot, ...large })]));
    const four = [3, 4, 5, 6].map((node, at) => placed(at + 1, `${node}, 2 learner`));
    const members = lines(6).map((each) => (each.nodeId === 2 ? each : { ...each, report: null }));
    return inWords(plan(2, members, [...four, placed(5, "1")], led));
  };
  t.ok(catchingUp(false).includes("5 grow: nodes-busy"));
  t.strictSame(catchingUp(true)[0], "5 grow +2", "who has its snapshot leaves its place to others");
  const known = new Map([...one(false), [3, group(0, { sizeBytes: 0 })] as const]);
  const unknown = [placed(1, "1, 2 learner"), placed(3, "4, 2 learner"), placed(4, "1")];
  t.strictSame(inWords(plan(2, five, unknown, known))[0], "4 grow +3", "led by nobody now");
  t.end();
});

t.test("P-106 balance: at a difference of two, cheapest first, behind everything else", (t) => {
  const uneven = [placed(1, "1, 2"), placed(2, "1, 2"), placed(3, "2, 1")];
  const three = lines(3);
  const lag = { report: nodeReport({ loopLagP99Ms: 51 }) };
  const large = { sizeBytes: SNAPSHOT_PLACE_BYTES };
  const big = new Map([
    [1, group(1, { sizeBytes: 5000 })],
    [2, group(1, { sizeBytes: 50 })],
    [3, group(2)],
  ]);
  check(t, [
    ["even", 2, three, [placed(1, "1, 2"), placed(2, "2, 3"), placed(3, "1, 3")], []],
    ["a difference of one", 1, three, [placed(1, "1"), placed(2, "2")], []],
    ["two", 1, lines(2), [placed(1, "1"), placed(2, "1")], ["1 balance +2 for 1"]],
    ["not led by the giver first", 2, three, uneven, ["1 balance +3 for 2", "3 balance +3 for 1"]],
    [
      "then the smallest",
      2,
      three,
      uneven,
      ["2 balance +3 for 2", "3 balance +3 for 1"],
      { groups: big },
    ],
    [
      "three to a node at a time",
      1,
      lines(4),
      Array.from({ length: 18 }, (_, at) => placed(at + 1, `${1 + (at % 3)}`)),
      ["3 balance +4 for 3", "2 balance +4 for 2", "1 balance +4 for 1"],
      {
        groups: new Map(
          Array.from({ length: 18 }, (_, at) => [at + 1, group(1 + (at % 3), large)] as const),
        ),
      },
    ],
    [
      "two that one leader feeds",
      1,
      lines(2),
      Array.from({ length: 9 }, (_, at) => placed(at + 1, "1")),
      ["1 balance +2 for 1", "2 balance +2 for 1"],
      { groups: new Map(Array.from({ length: 9 }, (_, at) => [at + 1, group(1, large)] as const)) },
    ],
    ["a giver that lags", 2, but(three, 2, lag), uneven, ["3 balance +3 for 1"]],
    ["a taker that lags", 2, but(three, 3, lag), uneven, ["balance: nodes-lagging"]],
    [
      "a taker that is full",
      2,
      but(three, 3, { report: nodeReport({ storeBytes: 90 }) }),
      uneven,
      [],
    ],
    ["off", 2, three, uneven, [], { isEnabled: false }],
    [
      "not while a repair is under way",
      1,
      but(lines(4), 4, dead),
      [placed(1, "1"), placed(2, "1"), placed(3, "1"), placed(4, "1, 2 learner for 4")],
      ["4 finish: replica-on-its-way", "balance: others-first"],
    ],
    [
      "not while one is planned",
      3,
      but(lines(6), 3, dead),
      [placed(1, "1, 2, 3"), placed(2, "1, 2, 4"), placed(3, "1, 2, 4"), placed(4, "1, 2, 4")],
      ["1 repair +5 for 3", "balance: others-first"],
    ],
    [
      "groups whose voters are not all live stay",
      2,
      [...lines(3), line(4, silent)],
      [placed(1, "1, 4"), placed(2, "1, 4"), placed(3, "1, 4")],
      ["balance: groups-not-ready"],
    ],
  ]);
  const many = Array.from({ length: 60 }, (_, at) => placed(at + 1, `${1 + (at % 6)}`));
  const grow = (sizeBytes: number) => {
    const groups = new Map(many.map((_, at) => [at + 1, group(1 + (at % 6), { sizeBytes })]));
    return planPlacement(viewOf(1, lines(16), many, { groups }));
  };
  const grown = grow(0);
  t.equal(grown.steps.length, BALANCE_MOVES_MAX);
  t.ok(new Set(grown.steps.map(({ order }) => order.change.nodeId)).size === BALANCE_MOVES_MAX);
  t.equal(grow(SNAPSHOT_PLACE_BYTES).steps.length, BALANCE_PLACES);

  const toOne = planPlacement(viewOf(1, lines(7), many));
  t.equal(toOne.steps.length, BALANCE_ARRIVING_MAX, "to one node");
  t.end();
});

t.test("P-106 balance ends: the sum of the squares falls by two or more with each move", (t) => {
  const nodes = lines(7);
  const records = Array.from({ length: 40 }, (_, at) => [1 + (at % 3), 4 + (at % 2)]);
  const squares = (): number => {
    const counts = nodes.map(({ nodeId }) => records.flat().filter((id) => id === nodeId).length);
    return counts.reduce((sum, count) => sum + count * count, 0);
  };
  let moves = 0;
  while (moves < 200) {
    const partitions = records.map((replicas, at) => placed(at + 1, replicas.join(", ")));
    const { steps, waits } = planPlacement(viewOf(2, nodes, partitions));
    t.equal(waits.length, 0);
    if (steps.length === 0) break;
    for (const { order } of steps) {
      const before = squares();
      const { change, partitionId } = order;
      const record = records[partitionId - 1] as number[];
      if (change.kind !== "add") throw new Error("balance adds");
      record.splice(record.indexOf(change.replaces), 1, change.nodeId);
      if (before - squares() < 2) t.fail(`${before} to ${squares()}`);
      moves++;
    }
  }
  const counts = nodes.map(({ nodeId }) => records.flat().filter((id) => id === nodeId).length);
  t.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join(" "));
  t.ok(moves >= 20 && moves < 60, `${moves} moves`);
  t.end();
});

t.test("P-094 a failed pair rests 5 min, doubled to an hour, forgotten when it is over", (t) => {
  const minute = 60_000;
  const lost = placed(1, "1, 2, 3, 4 learner for 3");
  const members = but(five, 4, dead);
  const lengths: number[] = [];
  let rests: PlacementView["rests"] = new Map();
  let nowMs = NOW_MS;
  for (let round = 0; round < 7; round++) {
    const plan = planPlacement({ ...viewOf(3, members, [lost], { rests }), nowMs });
    const rest = plan.rests.get(restKey(1, 4));
    lengths.push((rest?.lengthMs ?? 0) / minute);
    t.equal(rest?.untilMs, nowMs + (rest?.lengthMs ?? 0));
    const again = planPlacement({ ...viewOf(3, members, [lost], plan), nowMs: nowMs + 1 });
    t.strictSame(again.rests, plan.rests, "a repeated cancel is the same failure");
    rests = plan.rests;
    nowMs = (rest?.untilMs ?? 0) + 10;
  }
  t.strictSame(lengths, [5, 10, 20, 40, 60, 60, 60]);
  const left = planPlacement(viewOf(3, but(five, 4, leaving), [lost]));
  t.equal(left.rests.size, 0, "who leaves did not fail");
  const kept = (partitions: PartitionRecord[], atMs: number) =>
    planPlacement({ ...viewOf(3, five, partitions, { rests }), nowMs: atMs }).rests.size;
  t.equal(kept([placed(1, "1, 2, 3")], nowMs), 1);
  t.equal(kept([placed(1, "1, 2, 4")], nowMs), 0, "it votes after all");
  t.equal(kept([placed(2, "1, 2, 3")], nowMs), 0, "no such partition");
  t.equal(kept([placed(1, "1, 2, 3")], nowMs + 61 * minute), 0, "an hour later");
  t.strictSame(restAfter({ untilMs: 5, lengthMs: 3_000_000 }, 10), {
    untilMs: 3_600_010,
    lengthMs: 3_600_000,
  });
  t.ok(restKey(PARTITIONS_MAX, 65_535) < restKey(PARTITIONS_MAX + 1, 1));
  t.end();
});

t.test("the measured passes have to do what their names say", (t) => {
  const steps = measured(25, 200, 1, 1).map(({ plan }) => plan.steps.length);
  t.strictSame(steps, [0, 24, 24, 8, 64, 64]);
  const { passes, commits } = measuredNode(25, 200, 1);
  t.strictSame([passes, commits], [25, 0], "a pass with each report, and no commit");
  t.end();
});

t.test("P-093 passes with work and without movement are counted; codes have sentences", (t) => {
  const stuck = planPlacement(
    viewOf(3, lines(3).slice(0, 2).concat(line(3, silent)), [placed(1, "1, 2")]),
  );
  t.strictSame(inWords(stuck), ["1 grow: nodes-not-ready"]);
  let idle = 0;
  for (let pass = 0; pass < IDLE_PASSES_ALARM; pass++) idle = idlePasses(idle, stuck, false);
  t.equal(idle, IDLE_PASSES_ALARM);
  t.equal(idlePasses(idle, stuck, true), 0, "something moved");
  t.equal(idlePasses(idle, planPlacement(viewOf(3, five, [])), false), 0, "nothing to do");
  const off = planPlacement(viewOf(3, five, [placed(1, "1, 2")], { isEnabled: false }));
  t.equal(idlePasses(idle, off, false), 0, "switched off is no work");
  for (const [code, text] of Object.entries(PLACEMENT_REASONS)) {
    t.match(code, /^[a-z-]+$/);
    t.ok(text.length > 20 && !text.endsWith("."), text);
  }
  t.end();
});
