/** Silence, death, removal by force and leaving where partitions are placed: decisions as tables. */
import t from "tap";
import { membershipVersion } from "../../../src/base/ids.js";
import { arrivalsFor, decideDrain, drainLeft, isDrained } from "../../../src/control/drain.js";
import { nextMemberChange } from "../../../src/control/membership.js";
import { planPlacement } from "../../../src/control/placement-plan.js";
import type { MemberView, PlacementView } from "../../../src/control/placement-view.js";
import { deadMembers, decideEviction, partitionsAtRisk } from "../../../src/control/silence.js";
import type { Member, MemberRole, PartitionRecord } from "../../../src/machine/commands/command.js";
import {
  dead,
  leaving,
  line,
  lines,
  nodeReport,
  placed,
  silent,
  viewOf,
} from "../../doubles/control/placement-view.js";
import { member } from "../../doubles/machine/members.js";

function listed(...roles: MemberRole[]): Member[] {
  return roles.map((role, at) => member(at + 1, { role, joinedVersion: membershipVersion(1) }));
}

const MINUTE_MS = 60_000;

t.test("P-095 dead: silent to the leader of meta and to a majority, for as long", (t) => {
  const five = listed("voter", "voter", "voter", "voter", "voter");
  const deadOf = (
    silences: Record<string, number>,
    more: { leadingForMs?: number; deadAfterMs?: number; members?: Member[] } = {},
  ): string => {
    const { leadingForMs = 99 * MINUTE_MS, deadAfterMs = 5 * MINUTE_MS, members = five } = more;
    const silenceMs = (by: number, of: number) => {
      const minutes = silences[`${by}-${of}`];
      return minutes === undefined ? null : minutes * MINUTE_MS;
    };
    return [...deadMembers({ self: 1, members, deadAfterMs, leadingForMs, silenceMs })].join();
  };
  const all = { "1-5": 5, "2-5": 5, "3-5": 6 };
  t.equal(deadOf(all), "5");
  t.equal(deadOf({ ...all, "4-5": 0 }), "5", "a minority hears it: its replicas are made anew");
  t.equal(deadOf({ ...all, "3-5": 4.99 }), "", "two of five");
  t.equal(deadOf({ "1-5": 9, "2-5": 9 }), "", "the others have not told");
  t.equal(deadOf({ ...all, "1-5": 4.99 }), "", "the leader of meta has heard it");
  t.equal(deadOf({ ...all, "1-5": 0, "4-5": 9 }), "", "it hears it now");
  t.equal(deadOf(all, { leadingForMs: 4.99 * MINUTE_MS }), "", "a new leader counts anew");
  t.equal(deadOf(all, { deadAfterMs: 0 }), "", "never by itself");
  const pair = listed("voter", "voter");
  t.equal(deadOf({ "1-2": 99 }, { members: pair }), "", "one of two is no majority");
  const learners = listed("voter", "voter", "voter", "learner", "learner");
  t.equal(deadOf({ "1-5": 9, "2-5": 9, "4-5": 0 }, { members: learners }), "5", "voters are asked");
  t.equal(deadOf({ "1-5": 9, "4-5": 9, "5-5": 9 }, { members: learners }), "");
  t.end();
});

t.test(
  "P-095 removal by force: not of who is heard by anybody, not where a vote is needed",
  (t) => {
    const members = listed("voter", "voter", "voter");
    const facts = { members, nodeId: 3, servesMeta: true, heardBy: [], isNeeded: false };
    t.equal(decideEviction(facts), "remove");
    t.equal(decideEviction({ ...facts, members: null }), "NotInitialized");
    t.equal(decideEviction({ ...facts, nodeId: 9 }), "NotAMember");
    t.equal(decideEviction({ ...facts, servesMeta: false }), "NoLeader");
    t.equal(decideEviction({ ...facts, heardBy: [1] }), "RefusedStillAlive");
    t.equal(decideEviction({ ...facts, heardBy: [2] }), "RefusedStillAlive", "linked to another");
    const others = listed("voter", "leaving", "voter");
    t.equal(decideEviction({ ...facts, members: others }), "RefusedDrainInProgress");
    t.equal(decideEviction({ ...facts, isNeeded: true }), "RefusedInsufficientVoters");
    const last = listed("learner", "learner", "voter");
    t.equal(decideEviction({ ...facts, members: last }), "RefusedInsufficientVoters");
    const marked = listed("voter", "voter", "leaving");
    t.equal(decideEviction({ ...facts, members: marked }), "remove", "a repeat goes on");
    t.end();
  },
);

t.test("P-092 removal by force: partitions that would decide nothing without it", (t) => {
  const atRisk = (replicas: string, silentNodes: number[], nodeId = 3): boolean =>
    partitionsAtRisk([placed(1, replicas)], nodeId, (node) => !silentNodes.includes(node)).length >
    0;
  t.notOk(atRisk("1, 2, 3", [3]));
  t.ok(atRisk("1, 2, 3", [2, 3]));
  t.ok(atRisk("3", [3]), "the only one");
  t.ok(atRisk("2, 3", [3]), "half of two");
  t.notOk(atRisk("1, 2", [1, 2, 3]), "it is not named");
  t.notOk(atRisk("", [1, 2, 3]), "full mode is told elsewhere");
  t.notOk(atRisk("1, 2, 3, 4 learner for 3", [3]));
  t.ok(atRisk("1, 2, 3, 4 learner for 3", [3, 4]), "a silent replica on its way may vote");
  t.notOk(atRisk("1, 2, 3, 4, 5 removing", [3]));
  t.ok(atRisk("1, 2, 3, 4 removing", [3, 4]));
  t.end();
});

t.test(
  "P-096 leaving: every partition can do without it, or somebody can take its replica",
  (t) => {
    const otherVoters = [3];
    const says = (
      factor: number,
      members: MemberView[],
      partitions: PartitionRecord[],
      more: Partial<PlacementView> = {},
      nodeId = 1,
    ): string => {
      const roster = members.map(({ nodeId: id, role }) => member(id, { role }));
      const facts = { members: roster, nodeId, metaLed: true, otherVoters };
      return decideDrain(facts, viewOf(factor, members, partitions, more));
    };
    const four = lines(4);
    const off = { isEnabled: false };
    t.equal(says(3, four, [placed(1, "1, 2, 3")]), "remove");
    t.equal(says(3, four, [placed(1, "1, 2, 3")], off), "remove", "without successors");
    t.equal(says(1, four, [placed(1, "1")]), "remove", "RF 1 drains");
    const refused = "RefusedInsufficientVoters";
    t.equal(says(1, four, [placed(1, "1")], off), refused, "but not without the rebalancer");
    t.equal(says(1, four, [placed(2, "2"), placed(1, "1")], off), refused);
    const alone = [line(1), line(2, silent), line(3, silent), line(4, silent)];
    t.equal(says(1, alone, [placed(1, "1")]), refused, "nobody to take it");
    t.equal(says(1, alone, [placed(1, "2")]), "remove", "a partition that does not name it");
    const full = four.map((one) => ({ ...one, report: nodeReport({ storeBytes: 90 }) }));
    t.equal(says(1, full, [placed(1, "1")]), refused, "nobody with room");
    const two = [line(1), line(2, silent), line(3), line(4)];
    t.equal(says(3, two, [placed(1, "1, 2, 3")]), "remove", "the rest has none, but node 4 comes");
    t.equal(says(3, two, [placed(1, "1, 2, 3")], off), refused);
    t.equal(
      says(3, two, [placed(1, "1, 2, 3, 4 learner for 1")]),
      "remove",
      "somebody comes already",
    );
    const lost = [line(1), line(2, silent), line(3, silent), line(4)];
    t.equal(says(3, lost, [placed(1, "1, 2, 3")]), refused, "no majority lives");
    const again = [line(1, leaving), line(2), line(3), line(4)];
    t.equal(says(3, again, [placed(1, "1, 2, 3")]), "remove", "a repeat goes on");
    t.equal(says(3, [line(1), line(2, leaving), line(3)], []), "RefusedDrainInProgress");
    t.end();
  },
);

t.test("P-096 a member is removed when no record names it; drained; what is left and why", (t) => {
  const members = listed("leaving", "voter", "voter", "learner");
  const config = { voters: [2, 3, 4], learners: [], votersOutgoing: [], learnersNext: [] };
  const meta = [{ membership: { ...config, autoLeave: false }, isFresh: true }];
  const due = (...partitions: PartitionRecord[]) => {
    const living = partitions.filter(({ state }) => state !== "Removed");
    const named = living.flatMap(({ replicas }) => replicas.map(({ nodeId }) => nodeId));
    return nextMemberChange(members, { groups: meta, placedOn: new Set(named) });
  };
  t.match(due(), { kind: "remove-member", nodeId: 1 });
  t.match(due(placed(1, "2, 3, 4")), { kind: "remove-member", nodeId: 1 });
  const risen = { kind: "set-member-role", nodeId: 4, role: "voter" };
  t.match(due(placed(1, "1, 2, 3")), risen, "who joins need not wait for who leaves");
  t.match(due(placed(1, "1 removing, 2, 3")), risen, "a configuration may have it yet");
  t.match(due(placed(1, "1", { state: "Removed" })), { kind: "remove-member" });
  t.ok(isDrained(true, true));
  t.notOk(isDrained(false, true), "there was nothing");
  t.notOk(isDrained(true, false), "nothing came in its place");
  const partitions = [placed(1, "1, 2, 3"), placed(2, "1, 2, 4"), placed(3, "2, 3, 4")];
  const nodes = [line(1, leaving), line(2), line(3), line(4, dead)];
  const plan = planPlacement(viewOf(3, nodes, partitions));
  t.strictSame(drainLeft(partitions, 1, plan), [
    { partitionId: 1, reason: "no-node" },
    { partitionId: 2, reason: null },
  ]);
  t.strictSame(arrivalsFor([placed(1, "1, 2, 3 learner for 1"), placed(2, "1, 2, 3 learner")], 1), [
    { partitionId: 1, generation: 5, nodeId: 3, incarnation: 2 },
  ]);
  t.end();
});
