/** What the leader of a placed group does next, as tables: each line of a move, and what it waits for. */
import t, { type Test } from "tap";
import { configIndex, placementGeneration } from "../../../src/base/ids.js";
import {
  type PlacedPlanFacts,
  dueReport,
  nextListingStep,
  nextPlacedChange,
} from "../../../src/control/placed-plan.js";
import { GROUP_WAITS } from "../../../src/control/placement-reasons.js";
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { placed } from "../../doubles/control/placement-view.js";

function membership(
  voters: number[],
  learners: number[] = [],
  outgoing: number[] = [],
): Membership {
  return {
    ...{ voters, learners, votersOutgoing: outgoing, learnersNext: [] },
    autoLeave: outgoing.length > 0,
  };
}

interface Scene {
  readonly self?: number;
  /** Index of the configuration, and the generation that it rests on. */
  readonly at?: number;
  readonly restsOn?: number;
  readonly dead?: readonly number[];
  readonly behind?: readonly number[];
  readonly paused?: boolean;
}

/** The record is of generation 5 and was reported at 9. */
function factsOf(record: PartitionRecord, config: Membership, scene: Scene = {}): PlacedPlanFacts {
  const { self = 1, at = 9, restsOn = 5, dead = [], behind = [], paused = false } = scene;
  return {
    ...{ self, record, membership: config, isPaused: paused, configIndex: configIndex(at) },
    placedGeneration: placementGeneration(restsOn),
    isLinked: (node) => !dead.includes(node),
    isLive: (node) => !dead.includes(node),
    isCaughtUp: (node) => !behind.includes(node),
  };
}

/** "addVoter 4", "transfer 2", "report 12 1,2,3|4 on 5", "wait joint", "settled". */
function stepOf(facts: PlacedPlanFacts): string {
  const report = dueReport(facts);
  const step = nextPlacedChange(facts);
  if (report !== null) {
    t.match(step, { kind: "wait", reason: "not-told" });
    return `report ${report.configIndex} ${nodesOf(report)} on ${report.restsOn}`;
  }
  switch (step.kind) {
    case "change":
      return step.change.operations.map(({ kind, node }) => `${kind} ${node}`).join(", ");
    case "transfer":
      return `transfer ${step.to}`;
    case "wait":
      return `wait ${step.reason}${/, node( \d+)$/.exec(step.why)?.[1] ?? ""}`;
    case "settled":
      return "settled";
  }
}

function nodesOf({ voters, learners }: Pick<Membership, "voters" | "learners">): string {
  return `${voters.join()}|${learners.join()}`;
}

type Row = readonly [
  name: string,
  replicas: string,
  config: Membership,
  expected: string,
  scene?: Scene,
];

function check(t: Test, rows: readonly Row[]): void {
  for (const [name, replicas, config, expected, scene] of rows) {
    t.equal(stepOf(factsOf(placed(1, replicas), config, scene)), expected, name);
  }
}

const COMES = "1, 2, 3, 4 learner for 3";

t.test("P-091 P-092 a move, line by line", (t) => {
  check(t, [
    ["nothing to do", "1, 2, 3", membership([1, 2, 3]), "settled"],
    ["2: a learner", COMES, membership([1, 2, 3]), "addLearner 4"],
    [
      "3: it is behind",
      COMES,
      membership([1, 2, 3], [4]),
      "wait replica-behind 4",
      { behind: [4] },
    ],
    [
      "an entry that changed no role is not reported",
      COMES,
      membership([1, 2, 3], [4]),
      "wait replica-behind 4",
      { behind: [4], at: 11 },
    ],
    ["it is silent", COMES, membership([1, 2, 3], [4]), "wait replica-silent 4", { dead: [4] }],
    ["its node is", COMES, membership([1, 2, 3]), "wait replica-silent 4", { dead: [4] }],
    ["4: a voter", COMES, membership([1, 2, 3], [4]), "addVoter 4"],
    ["4 with a dead one to go", COMES, membership([1, 2, 3], [4]), "addVoter 4", { dead: [3] }],
    ["5: told to meta", COMES, membership([1, 2, 3, 4]), "report 12 1,2,3,4| on 5", { at: 12 }],
    ["6: the leader goes", "1 removing, 2, 3, 4", membership([1, 2, 3, 4]), "transfer 3"],
    ["7: another does", "1, 2, 3 removing, 4", membership([1, 2, 3, 4]), "remove 3"],
    [
      "7: a dead one needs no consent",
      "1, 2, 3 removing, 4",
      membership([1, 2, 3, 4]),
      "remove 3",
      { dead: [3] },
    ],
    [
      "8: told to meta",
      "1, 2, 3 removing, 4",
      membership([1, 2, 4]),
      "report 12 1,2,4| on 5",
      { at: 12 },
    ],
    [
      "10: a learner that was cancelled",
      "1, 2, 3, 4 removing",
      membership([1, 2, 3], [4]),
      "remove 4",
    ],
    ["one that votes already", "1, 2, 3, 4 removing", membership([1, 2, 3, 4]), "remove 4"],
  ]);
  const heirs = [0, 1, 2, 3].map((partitionId) => {
    const record = { ...placed(1, "1 removing, 2, 3, 4"), partitionId };
    return stepOf(factsOf(record, membership([1, 2, 3, 4])));
  });
  t.equal(new Set(heirs).size, 3, "leaderships do not all go to one node");
  t.end();
});

t.test("P-092 RF 1: the new voter takes over, and removes the old one", (t) => {
  check(t, [
    ["it comes", "1, 2 learner for 1", membership([1], [2]), "addVoter 2"],
    ["it votes", "1, 2 learner for 1", membership([1, 2]), "report 12 1,2| on 5", { at: 12 }],
    ["the old one leads", "1 removing, 2", membership([1, 2]), "transfer 2"],
    ["the new one leads", "1 removing, 2", membership([1, 2]), "remove 1", { self: 2 }],
    [
      "the new one is behind",
      "1 removing, 2",
      membership([1, 2]),
      "wait no-heir 1",
      { behind: [2] },
    ],
    ["the last one stays", "1 removing", membership([1]), "wait majority-at-risk 1"],
    [
      "the old one died",
      "1 removing, 2",
      membership([1, 2]),
      "wait no-majority 1",
      { self: 2, dead: [1] },
    ],
  ]);
  t.end();
});

t.test("P-092 majorities are those of the configuration", (t) => {
  const wide = membership([1, 2, 3, 4, 5]);
  check(t, [
    [
      "the rest would have none",
      "1, 2 removing, 3",
      membership([1, 2, 3]),
      "wait majority-at-risk 2",
      { dead: [3] },
    ],
    [
      "there is none",
      "1, 2, 3 removing",
      membership([1, 2, 3]),
      "wait no-majority 3",
      { dead: [2, 3] },
    ],
    [
      "a learner comes where there is none",
      COMES,
      membership([1, 2, 3]),
      "wait no-majority 4",
      { dead: [2, 3] },
    ],
    ["four with two that live", COMES, membership([1, 2, 3], [4]), "addVoter 4", { dead: [2] }],
    [
      "the record lists fewer",
      "1, 2, 3 removing",
      wide,
      "wait majority-at-risk 3",
      { dead: [4, 5] },
    ],
    [
      "two of five dead, one comes",
      "1, 2, 3, 4, 5, 6 learner for 5",
      membership([1, 2, 3, 4, 5], [6]),
      "addVoter 6",
      { dead: [4, 5] },
    ],
    ["joint", "1, 2, 3 removing", membership([1, 2], [], [1, 2, 3]), "wait joint"],
    ["paused", "1, 2, 3 removing", membership([1, 2, 3]), "wait paused", { paused: true }],
    ["who votes is not added again", COMES, membership([1, 2, 3, 4]), "wait older-record 4"],
  ]);
  t.end();
});

t.test("P-205 a leader with an older record than an entry rests on does nothing", (t) => {
  const newer = { restsOn: 6 };
  check(t, [
    ["nobody comes", COMES, membership([1, 2, 3]), "wait older-record", newer],
    ["nobody rises", COMES, membership([1, 2, 3], [4]), "wait older-record", newer],
    ["nobody goes", "1, 2, 3 removing", membership([1, 2, 3]), "wait older-record", newer],
    [
      "nothing is told",
      "1, 2, 3 removing",
      membership([1, 2]),
      "wait older-record",
      { restsOn: 6, at: 12 },
    ],
    ["its own generation is enough", "1, 2, 3 removing", membership([1, 2, 3]), "remove 3"],
  ]);
  t.end();
});

t.test("P-097 P-205 only who is to go goes, by an entry, also when it never came", (t) => {
  const cancelled = placed(1, "1, 2, 3, 4 removing");
  const life = cancelled.replicas.map((one) =>
    one.nodeId === 4 ? { ...one, incarnation: 2 as typeof one.incarnation } : one,
  );
  const record = { ...cancelled, replicas: life };
  const three = membership([1, 2, 3]);
  const says = (scene: Scene): string => stepOf(factsOf(record, three, scene));
  t.equal(says({ restsOn: 3 }), "remove 4", "no entry knew of it");
  t.equal(says({ restsOn: 3, at: 12 }), "remove 4", "nor the one that is not told yet");
  t.equal(says({ restsOn: 5, at: 12 }), "report 12 1,2,3| on 5", "one did");
  t.equal(says({ restsOn: 5, at: 9 }), "remove 4", "what was told did not end it: once more");
  check(t, [
    [
      "who is absent from the record stays, and is told",
      "1, 2, 3",
      membership([1, 2, 3, 9]),
      "report 12 1,2,3,9| on 5",
      { at: 12 },
    ],
    ["told already", "1, 2, 3", membership([1, 2, 3, 9]), "settled"],
  ]);
  t.end();
});

t.test("P-092 a voter of the record that the group is without is taken in again, first", (t) => {
  const kept = "1, 2, 3 removing, 4";
  check(t, [
    ["as a learner", "1, 2, 3", membership([1, 2]), "addLearner 3"],
    ["its node is silent", "1, 2, 3", membership([1, 2]), "wait replica-silent 3", { dead: [3] }],
    ["it is behind", "1, 2, 3", membership([1, 2], [3]), "wait replica-behind 3", { behind: [3] }],
    ["as a voter", "1, 2, 3", membership([1, 2], [3]), "addVoter 3"],
    ["nobody goes before", kept, membership([1, 2, 3]), "addLearner 4"],
    ["a dead one holds nobody up", kept, membership([1, 2, 3]), "remove 3", { dead: [4] }],
    [
      "the last voter goes when another one votes",
      "1 removing, 2",
      membership([1], [2]),
      "addVoter 2",
    ],
    [
      "not by a leader whose record is older than its configuration",
      "1, 2, 3",
      membership([1, 2]),
      "wait older-record",
      { restsOn: 6 },
    ],
  ]);
  t.end();
});

t.test("P-092 nine voters: in and out is one joint change, the leader hands over before", (t) => {
  const nine = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const coming = (replaces: number): string => `${nine.join(", ")}, 10 learner for ${replaces}`;
  const config = membership(nine, [10]);
  const cancelled = `${nine.join(", ")}, 10 removing`;
  const joined = membership([1, 2, 3, 4, 5, 6, 7, 8, 10]);
  check(t, [
    ["both", coming(9), config, "addVoter 10, remove 9"],
    ["of a dead one", coming(9), config, "addVoter 10, remove 9", { dead: [9] }],
    ["the leader goes", coming(1), config, "transfer 3"],
    [
      "the first half has no majority",
      coming(9),
      config,
      "wait no-majority 10",
      { dead: [5, 6, 7, 8, 9] },
    ],
    ["nobody goes", coming(0), config, "wait voters-full 10"],
    [
      "told",
      coming(9),
      membership([1, 2, 3, 4, 5, 6, 7, 8, 10]),
      "report 12 1,2,3,4,5,6,7,8,10| on 5",
      { at: 12 },
    ],
    ["cancelled meanwhile: the old one comes again", cancelled, joined, "addLearner 9"],
    ["the new one makes room", cancelled, membership([...joined.voters], [9]), "remove 10"],
    ["and the old one votes", nine.join(", "), membership(nine.slice(0, 8), [9]), "addVoter 9"],
  ]);
  t.end();
});

t.test("P-205 from full mode to a list: first an entry that fences, then the order", (t) => {
  const full = placed(1, "", { replicationOverride: 3 });
  const config = membership([1, 2, 3], [4]);
  const inWords = (facts: PlacedPlanFacts, isWished: boolean): string => {
    const step = nextListingStep(facts, isWished);
    if (step === null) return "the member list rules";
    if (step.kind === "wait") return `wait ${step.reason}`;
    if (step.kind === "place") {
      return `place ${step.item.configIndex} ${nodesOf(step.item)} @${step.item.generation}`;
    }
    t.strictSame(step.change.operations, [{ kind: "update", node: 1 }], "nothing changes");
    return `fence @${step.generation}`;
  };
  const says = (scene: Scene, isWished = true): string =>
    inWords(factsOf(full, config, scene), isWished);
  t.equal(says({ restsOn: 0 }, false), "the member list rules");
  t.equal(says({ restsOn: 5 }, false), "the member list rules", "a fence that is spent");
  t.equal(says({ restsOn: 0 }), "fence @6", "nothing changes, and nobody changes anything");
  t.equal(says({ restsOn: 5 }), "fence @6", "again, when another change came between");
  t.equal(says({ restsOn: 6, at: 12 }), "place 12 1,2,3|4 @5");
  t.equal(says({ restsOn: 6, at: 12, paused: true }), "place 12 1,2,3|4 @5");
  t.equal(says({ restsOn: 7 }), "wait older-record", "a leader that knows too little");
  t.equal(says({ restsOn: 7 }, false), "wait older-record", "it does not add members either");
  t.equal(says({ restsOn: 0, paused: true }), "wait paused");
  const joint = factsOf(full, membership([1, 2], [], [1, 2, 3]), { restsOn: 6 });
  t.equal(inWords(joint, true), "wait joint");
  const early = factsOf(full, membership([1, 2], [], [1, 2, 3]), { restsOn: 0 });
  t.equal(inWords(early, true), "wait joint");
  for (const text of Object.values(GROUP_WAITS)) t.ok(text.length > 20);
  t.end();
});
