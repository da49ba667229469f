/**
 * The checkers of where replicas are: each passes, fires, and is vacuous where it saw too little.
 */
import t from "tap";
import { configIndex, incarnation, placementGeneration } from "../../../src/base/ids.js";
import { membershipOfVoters } from "../../../src/host/replication/config-entries.js";
import type { PartitionRecord, ReplicaRecord } from "../../../src/machine/commands/command.js";
import { foundedPartition } from "../../../src/machine/meta/meta-placement.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { AtRest } from "../checkers/replicas/at-rest.js";
import { ARRIVING_MAX } from "../../../src/base/limits.js";
import { BoundedImages } from "../checkers/replicas/bounded-images.js";
import { ComesToWhoStays } from "../checkers/replicas/comes-to-who-stays.js";
import { ConfigInMap } from "../checkers/replicas/config-in-map.js";
import { Converged, unconverged } from "../checkers/replicas/converged.js";
import { DrainedMeansSafe } from "../checkers/replicas/drained-means-safe.js";
import { LeadersSpread, unspread } from "../checkers/replicas/leaders-spread.js";
import { GoesByOrder } from "../checkers/replicas/goes-by-order.js";
import { LegalEdges, edgeOf } from "../checkers/replicas/legal-edges.js";
import { MajorityKept } from "../checkers/replicas/majority-kept.js";
import { NeverBelowFactor } from "../checkers/replicas/never-below-factor.js";
import { NoLiveEviction } from "../checkers/replicas/no-live-eviction.js";
import { SingleMover } from "../checkers/replicas/single-mover.js";
import { WhyTold } from "../checkers/replicas/why-told.js";

function replica(nodeId: number, role: ReplicaRecord["role"], life: number, since: number) {
  const lived = { incarnation: incarnation(life), since: placementGeneration(since) };
  return { nodeId, role, ...lived, replaces: 0 };
}

function voter(nodeId: number, life = 0, since = life): ReplicaRecord {
  return replica(nodeId, "voter", life, since);
}

function learner(nodeId: number, life: number, replaces = 0): ReplicaRecord {
  return { ...replica(nodeId, "learner", life, life), replaces };
}

function removing(nodeId: number, life = 0, since = 5): ReplicaRecord {
  return replica(nodeId, "removing", life, since);
}

/** A record of partition 1, which is placed. */
function record(
  generation: number,
  replicas: readonly ReplicaRecord[],
  more: Partial<PartitionRecord> = {},
): PartitionRecord {
  const founded = foundedPartition(1, [1, 2], 2);
  return { ...founded, generation: placementGeneration(generation), replicas, ...more };
}

function config(voters: readonly number[], learners: readonly number[] = []): Membership {
  return { ...membershipOfVoters(voters), learners };
}

t.test("P-205 members are in the map", (t) => {
  const checker = new ConfigInMap({ configurations: 2, "of moves": 1 });
  checker.membership(2, 0, config([7, 8]));
  checker.record(record(1, [voter(1), voter(2)]));
  t.equal(checker.verdict().kind, "vacuous");
  checker.membership(1, 0, config([1, 2]));
  checker.record(record(2, [voter(1), voter(2), learner(3, 2)]));
  checker.membership(1, 5, config([1, 2], [3]));
  t.equal(checker.verdict().kind, "pass");
  checker.membership(1, 4, config([1, 9]));
  checker.record(record(1, [voter(1)]));
  t.equal(checker.verdict().kind, "pass", "what is older says nothing");
  checker.record(record(3, [voter(1), voter(2)]));
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 }, "off the list too early");
  checker.membership(1, 6, config([1, 2, 4]));
  t.equal(checker.verdict().violationCount, 2, "in the group too early");
  const full = new ConfigInMap({});
  full.record(foundedPartition(1, [1, 2], 0));
  full.membership(1, 3, config([1, 2, 3]));
  t.equal(full.verdict().kind, "pass", "in full mode there is no list");
  t.end();
});

t.test("P-092 one replica moves at a time", (t) => {
  const checker = new SingleMover({ moves: 1, "changes of voters": 1 });
  checker.membership(1, 0, config([1, 2]));
  checker.record(record(1, [voter(1), voter(2), learner(5, 0), learner(6, 0)]));
  checker.membership(1, 3, config([1, 2]));
  t.equal(checker.verdict().kind, "vacuous", "what was brought along does not move");
  checker.record(record(2, [voter(1), learner(3, 2, 1), learner(5, 0)]));
  checker.membership(1, 4, config([1, 2, 3]));
  checker.membership(1, 6, config([2, 3]));
  t.equal(checker.verdict().kind, "pass");
  checker.record(record(4, [voter(1), removing(5), removing(6), learner(3, 2)]));
  t.equal(checker.verdict().kind, "pass", "who was brought along may go");
  checker.record(record(3, [removing(1), learner(3, 2)]));
  checker.record(record(3, [removing(1), learner(3, 2)]));
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 });
  checker.membership(1, 9, config([2, 3, 4, 5]));
  checker.membership(1, 5, config([1, 2, 3]));
  t.equal(checker.verdict().violationCount, 2, "two voters came at once");
  const late = new SingleMover({});
  late.record(
    record(
      1,
      [1, 2, 3, 4].map((each) => voter(each)),
      { configIndex: configIndex(30) },
    ),
  );
  late.membership(1, 6, config([1, 2]));
  late.membership(1, 36, config([1, 2, 3, 4]));
  t.equal(late.verdict().violationCount, 0, "a late node applies what was before the list");
  t.end();
});

t.test("P-094 records change by orders and reports", (t) => {
  const two = [voter(1), voter(2)];
  const from = record(4, two, { configIndex: configIndex(7) });
  const later = { configIndex: configIndex(9) };
  const next = (replicas: readonly ReplicaRecord[], more: Partial<PartitionRecord> = {}) =>
    record(5, replicas, { configIndex: from.configIndex, ...more });
  const coming = record(4, [...two, learner(3, 4, 1)], { configIndex: from.configIndex });
  const going = record(4, [voter(1), removing(2, 0, 4)], { configIndex: from.configIndex });
  const full = { ...foundedPartition(1, [1, 2], 0), founders: from.founders };
  const legal: [PartitionRecord, PartitionRecord, string][] = [
    [from, next(two, { replicationOverride: 3 }), "factors"],
    [from, next(two), "factors"],
    [from, next([...two, learner(3, 5)]), "orders"],
    [from, next([...two, learner(3, 5, 2)]), "orders"],
    [from, next([voter(1), removing(2)]), "orders"],
    [coming, next([...two, removing(3, 4)]), "orders"],
    [going, next([voter(1), voter(2, 0, 5)]), "orders"],
    [coming, next([removing(1), voter(2), voter(3, 4, 5)], later), "reports"],
    [going, next([voter(1)], later), "reports"],
    [full, record(2, [voter(1, 0, 2), voter(2, 0, 2)], later), "lists"],
    [from, next(two, { state: "Splitting" }), "moves"],
    [coming, next(coming.replicas, { state: "Draining" }), "moves"],
    [{ ...from, state: "Splitting" }, next(two), "moves"],
    [{ ...from, state: "Draining" }, next(two, { state: "Removed" }), "moves"],
  ];
  for (const [one, other, edge] of legal) t.equal(edgeOf(one, other), edge, JSON.stringify(other));
  const illegal: [PartitionRecord, PartitionRecord, string][] = [
    [from, next([...two, learner(3, 4)]), "a life of the past"],
    [from, next([...two, voter(3, 5)], later), "a voter from nowhere"],
    [from, next([...two, learner(3, 5, 9)]), "for somebody who is not there"],
    [from, next([voter(1)], later), "a voter goes without an order"],
    [from, next([voter(1), removing(2)], later), "a report orders"],
    [record(4, [voter(1)]), record(5, [removing(1)]), "the last voter"],
    [coming, next([...two, learner(3, 4, 1), learner(4, 5)]), "two at once"],
    [coming, next([voter(1), removing(2), learner(3, 4, 1)]), "one goes beside it"],
    [coming, next(two, later), "a learner is off the list before it was told to go"],
    [going, next([voter(1), voter(2)]), "who goes stays, as if it never was to go"],
    [going, next([voter(1), voter(2, 0, 5)], later), "by a report"],
    [coming, next([removing(1), voter(2), voter(3, 4)], later), "a role of the past"],
    [going, next([voter(1)]), "gone without a report"],
    [from, next([voter(1, 5), voter(2)]), "another life"],
    [full, record(2, [removing(1)], later), "listed as going"],
    [from, next(two, { founders: [1] }), "founders change"],
    [from, next(two, { state: "Removed" }), "removed although it is active"],
    [{ ...from, state: "Removed" }, next(two), "a second life"],
    [{ ...from, state: "Splitting" }, next(two, { state: "Draining" }), "from move to move"],
    [from, next([voter(1), removing(2)], { state: "Splitting" }), "two changes in one"],
  ];
  for (const [one, other, what] of illegal) t.equal(edgeOf(one, other), null, what);
  const checker = new LegalEdges({ orders: 1 });
  checker.record(from);
  checker.record(record(9, [voter(1)]));
  t.equal(checker.verdict().kind, "vacuous", "what lies between was not seen");
  checker.record(next([voter(1), removing(2)]));
  checker.ordered(1, 4, 5);
  t.equal(checker.verdict().kind, "pass");
  checker.ordered(1, 3, 5);
  t.equal(checker.verdict().violationCount, 1, "it was too late");
  checker.record(record(6, [voter(1), voter(2)], { configIndex: from.configIndex }));
  checker.record(record(4, [voter(1)], { configIndex: from.configIndex }));
  t.match(checker.verdict(), { kind: "fail", violationCount: 3 });
  t.end();
});

t.test("P-092 changes leave a live majority", (t) => {
  const checker = new MajorityKept({ changes: 1 });
  checker.membership(1, 0, config([1, 2, 3]));
  checker.membership(1, 4, config([1, 2, 3], [4]));
  t.equal(checker.verdict().kind, "vacuous", "nobody saw it written");
  checker.gone(3, 1000);
  checker.gone(3, 90_000);
  checker.writes(1, 6, 2, 100_000);
  checker.membership(1, 6, config([1, 2]));
  t.equal(checker.verdict().kind, "pass");
  checker.gone(2, 99_000);
  checker.writes(1, 8, 2, 100_000);
  checker.membership(1, 8, config([2, 3]));
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 }, "one of two is gone for long");
  const fresh = new MajorityKept({});
  fresh.membership(1, 0, config([1, 2, 3]));
  fresh.gone(3, 95_000);
  fresh.writes(1, 3, 2, 100_000);
  fresh.membership(1, 3, config([1, 3]));
  t.equal(fresh.verdict().kind, "pass", "nobody could know yet");
  fresh.gone(1, 0);
  fresh.gone(2, 0);
  fresh.writes(1, 5, 2, 200_000);
  fresh.membership(1, 5, config([3]));
  t.equal(fresh.verdict().kind, "pass", "faults had taken it before");
  fresh.back(1);
  fresh.writes(1, 7, 1, 200_000);
  const joint = { ...config([1, 4]), votersOutgoing: [3, 2] };
  fresh.membership(1, 7, joint);
  t.equal(fresh.verdict().kind, "pass", "the one before had none either");
  t.end();
});

t.test("P-096 removals leave as many as there are to be", (t) => {
  const three = [1, 2, 3, 4, 5].map((nodeId) => ({ nodeId, role: "voter" }));
  const voters = [voter(1), voter(2), voter(3)];
  const removal = [voter(1), voter(2), removing(3)];
  const checker = new NeverBelowFactor(true, { removals: 1 });
  checker.cluster(three, 2, 0);
  checker.record(record(1, voters), 0);
  t.equal(checker.verdict().kind, "vacuous");
  checker.record(record(2, removal), 1000);
  checker.record(record(2, removal), 1000);
  t.equal(checker.verdict().kind, "pass");
  checker.record(record(5, voters, { replicationOverride: 3 }), 1000);
  checker.record(record(6, removal, { replicationOverride: 3 }), 1000);
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 });
  checker.record(record(8, voters, { replicationOverride: 3 }), 1000);
  checker.ordered(1, 8);
  checker.record(record(9, removal, { replicationOverride: 3 }), 1000);
  t.equal(checker.verdict().violationCount, 1, "somebody wanted it so");
  const leaving = three.map((line) => (line.nodeId === 3 ? { ...line, role: "leaving" } : line));
  for (const [isMoved, count] of [
    [true, 1],
    [false, 0],
  ] as const) {
    const drain = new NeverBelowFactor(isMoved, {});
    drain.cluster(leaving, 3, 0);
    drain.record(record(1, voters), 0);
    drain.record(record(2, removal), 0);
    t.equal(drain.verdict().violationCount, count, `moved: ${isMoved}`);
  }
  const force = new NeverBelowFactor(true, {});
  force.cluster(
    leaving.map((line) => ({ ...line, evicted: line.role === "leaving" })),
    3,
    0,
  );
  force.record(record(1, voters), 0);
  force.record(record(2, removal), 0);
  t.equal(force.verdict().kind, "pass", "it was removed by force");
  const late = new NeverBelowFactor(true, {});
  late.cluster(three.slice(0, 2), 0, 0);
  late.cluster(three, 0, 5000);
  late.record(record(1, voters), 6000);
  late.record(record(2, removal), 6000);
  t.equal(late.verdict().kind, "pass", "it was decided when there were two");
  late.cluster(three, 0, 40_000);
  late.record(record(4, voters), 41_000);
  late.record(record(5, removal), 41_000);
  t.equal(late.verdict().kind, "fail");
  t.end();
});

t.test("P-096 who has left is not needed", (t) => {
  const checker = new DrainedMeansSafe({ left: 1 });
  checker.settled([1, 2], new Set([1]));
  t.equal(checker.verdict().kind, "vacuous", "nobody left");
  checker.record(record(1, [voter(1), voter(3)]));
  checker.record(record(2, [voter(1), voter(2)]));
  checker.membership(1, 4, config([1, 2]));
  checker.membership(1, 2, config([1, 3]));
  checker.record(record(3, [voter(1), voter(2), learner(3, 0)]));
  checker.left(3, true);
  checker.record(record(2, [voter(3), voter(4)], { partitionId: 9, state: "Removed" }));
  checker.membership(9, 4, config([3, 4]));
  checker.left(4, true);
  checker.settled([1], new Set([1]));
  t.match(checker.verdict(), { kind: "pass", seen: { drained: 2 } }, "what was removed needs none");
  checker.left(2, false);
  t.match(checker.verdict(), { kind: "fail", violationCount: 2 }, "the list and the group");
  checker.settled([1, 2], new Set([1]));
  t.equal(checker.verdict().violationCount, 3);
  t.end();
});

t.test("P-095 nobody who is heard is removed", (t) => {
  /** Looks of twenty seconds: `early` until eight before the end, then `late`. */
  const looked = (
    early: readonly string[],
    late: readonly string[] = early,
    voters: readonly number[] = [1, 2, 3],
  ): NoLiveEviction => {
    const checker = new NoLiveEviction({ removals: 1 });
    checker.voters(voters, 0);
    for (let at = 0; at <= 20; at++) {
      checker.look({ atMs: at * 1000, metaLeader: 1, links: new Set(at < 12 ? early : late) });
    }
    return checker;
  };
  const silent = looked(["1/2", "2/1"]);
  silent.refused();
  t.equal(silent.verdict().kind, "vacuous");
  silent.removed(3, 20_000);
  t.equal(silent.verdict().kind, "pass");
  for (const [early, late] of [
    [["1/3"], []],
    [["2/3"], ["1/2"]],
  ] as const) {
    const heard = looked(early, late);
    heard.removed(3, 20_000);
    t.equal(heard.verdict().kind, "fail", early.join());
  }
  const unasked = looked(["2/3", "1/2"], []);
  unasked.removed(3, 20_000);
  t.equal(unasked.verdict().kind, "pass", "who heard it cannot answer");
  const learner = looked(["2/3"], ["1/2"], [1, 3]);
  learner.removed(3, 20_000);
  t.equal(learner.verdict().kind, "pass", "who heard it has no vote, and is not asked");
  for (const [sinceMs, kind] of [
    [11_000, "fail"],
    [15_000, "pass"],
  ] as const) {
    const risen = looked(["2/3"], ["1/2"], [1, 3]);
    risen.voters([1, 2, 3], sinceMs);
    risen.removed(3, 20_000);
    t.equal(risen.verdict().kind, kind, `who heard it votes since ${sinceMs}`);
  }
  const forgot = looked(["1/3"], []);
  forgot.began(1, 15_000);
  forgot.removed(3, 20_000);
  t.equal(forgot.verdict().kind, "pass", "who heard it was started since");
  const news = looked([], ["1/3"]);
  news.removed(3, 20_000);
  t.equal(news.verdict().kind, "pass", "it came back after it was decided");
  const other = looked(["1/3"], []);
  other.look({ atMs: 20_500, metaLeader: 2, links: new Set() });
  other.removed(3, 21_000);
  t.equal(other.verdict().kind, "pass", "who decided does not lead any more");
  t.end();
});

t.test("P-094 replicas come to where they belong", (t) => {
  const two = record(1, [voter(1), voter(2)]);
  const place = { records: [two], factor: 2, voters: 3, able: [1, 2, 3] };
  t.equal(unconverged(place), null);
  t.equal(unconverged({ ...place, records: [] }), null);
  t.match(unconverged({ ...place, factor: 3 }), /of 3/);
  t.match(unconverged({ ...place, able: [1, 3] }), /on node 2/);
  t.match(unconverged({ ...place, records: [record(2, [voter(1), removing(2)])] }), /removing/);
  t.match(unconverged({ ...place, records: [two, { ...two, partitionId: 2 }] }), /by node/);
  t.equal(unconverged({ ...place, factor: 0, voters: 2 }), null, "all voters of the list");
  const checker = new Converged({ settled: 1 });
  checker.settled({ ...place, factor: 3 }, false);
  t.equal(checker.verdict().kind, "vacuous");
  checker.settled(place, true);
  t.equal(checker.verdict().kind, "pass");
  checker.settled({ ...place, factor: 3 }, true);
  t.equal(checker.verdict().kind, "fail");
  t.end();
});

t.test("P-106 what is settled rests", (t) => {
  const checker = new AtRest({ "quiet passes": 20 });
  const versions = { map: 5, members: 2 };
  checker.rested(versions, versions, 19);
  t.equal(checker.verdict().kind, "vacuous");
  checker.rested(versions, { ...versions }, 20);
  t.equal(checker.verdict().kind, "pass");
  checker.rested(versions, { ...versions, map: 6 }, 20);
  checker.rested(versions, { ...versions, members: 3 }, 20);
  t.match(checker.verdict(), { kind: "fail", violationCount: 2 });
  t.end();
});

t.test("P-106 leaders are spread", (t) => {
  const led = (partition: number, leader: number, ...others: number[]) => ({
    ...{ partition, leader, voters: [leader, ...others] },
  });
  t.equal(unspread([led(0, 1, 2), led(1, 1, 2), led(2, 2, 1)]), null, "a difference of one");
  t.equal(unspread([led(0, 1), led(1, 1), led(2, 1)]), null, "nobody else could");
  t.match(unspread([led(0, 1, 2), led(1, 1), led(2, 3, 2)]), /node 1 leads 2 and node 2 0:/);
  const checker = new LeadersSpread({ "led partitions": 2 });
  checker.settled([led(0, 1, 2)]);
  t.equal(checker.verdict().kind, "vacuous");
  checker.settled([led(0, 1, 2), led(1, 2, 1)]);
  t.equal(checker.verdict().kind, "pass");
  checker.settled([led(0, 1, 2), led(1, 1, 2)]);
  t.equal(checker.verdict().kind, "fail");
  t.end();
});

t.test("P-106 few replicas are on their way", (t) => {
  const checker = new BoundedImages(4, 2, { "snapshots on their way": 1, arrivals: 1 });
  checker.transfers(1, 0, 2);
  t.equal(checker.verdict().kind, "vacuous");
  const coming = (count: number): PartitionRecord[] =>
    Array.from({ length: count }, (_, at) => {
      return { ...record(2, [voter(1), learner(3, 2)]), partitionId: at + 1 };
    });
  checker.transfers(1, 4, 2);
  checker.records(coming(ARRIVING_MAX));
  t.equal(checker.verdict().kind, "pass");
  checker.ordered(ARRIVING_MAX + 1, 1);
  checker.records(coming(ARRIVING_MAX + 1));
  t.equal(checker.verdict().kind, "pass", "one was ordered by hand");
  checker.records(coming(ARRIVING_MAX + 2));
  checker.transfers(1, 5, 0);
  checker.transfers(1, 0, 3);
  t.match(checker.verdict(), { kind: "fail", violationCount: 3 });
  const many = Array.from({ length: 65 }, (_, at) => {
    return { ...record(2, [voter(1), learner(100 + at, 2)]), partitionId: at + 1 };
  });
  const crowd = new BoundedImages(4, 2, {});
  crowd.records(many);
  t.match(crowd.verdict(), { kind: "fail", violationCount: 1 }, "in the cluster");
  t.end();
});

t.test("P-093 what waits has a reason", (t) => {
  const members = [1, 2, 3].map((nodeId) => ({ nodeId, role: "voter" }));
  const pass = { node: 1, factor: 2, members, told: new Set<number>() };
  const checker = new WhyTold({ passes: 2, "open partitions": 1 });
  checker.pass({ ...pass, records: [record(1, [voter(1), voter(2)])] });
  checker.pass({ ...pass, records: [foundedPartition(1, [1], 0)] });
  t.equal(checker.verdict().kind, "vacuous", "nothing was to be done");
  const open = [record(2, [voter(1)])];
  checker.pass({ ...pass, records: open, told: new Set([1]) });
  t.equal(checker.verdict().kind, "pass");
  checker.pass({ ...pass, records: open });
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 });
  const leaves = members.map((line) => (line.nodeId === 2 ? { ...line, role: "leaving" } : line));
  checker.pass({ ...pass, members: leaves, records: [record(1, [voter(1), voter(2)])] });
  checker.pass({ ...pass, records: [record(1, [voter(1), removing(2)])] });
  t.equal(checker.verdict().violationCount, 3);
  t.end();
});

t.test("P-096 replicas come to who stays", (t) => {
  const members = ["voter", "learner", "leaving"].map((role, at) => ({ nodeId: at + 1, role }));
  const checker = new ComesToWhoStays({ passes: 3, orders: 2 });
  const pass = (...nodes: readonly number[]): void => {
    const adds = nodes.map((nodeId) => ({ partitionId: 1, nodeId }));
    checker.pass({ node: 1, members, adds });
  };
  pass(1);
  pass();
  t.equal(checker.verdict().kind, "vacuous");
  pass(2);
  t.equal(checker.verdict().kind, "pass");
  pass(3, 2);
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 });
  pass(4);
  t.equal(checker.verdict().violationCount, 2, "who is no member");
  t.end();
});

t.test("P-097 replicas go by order", (t) => {
  const checker = new GoesByOrder({ departures: 2 });
  checker.record(foundedPartition(2, [1, 2], 0));
  checker.membership(2, 1, config([1, 2]));
  checker.membership(2, 5, config([1]));
  checker.record(record(1, [voter(1), voter(2), voter(3)]));
  checker.membership(1, 3, config([1, 2, 3]));
  checker.record(record(2, [voter(1), voter(2), voter(3), learner(4, 2, 3)]));
  checker.membership(1, 4, config([1, 2, 3], [4]));
  t.equal(checker.verdict().kind, "vacuous", "in full mode the member list says who goes");
  checker.membership(1, 5, config([1, 2, 4]));
  t.equal(checker.verdict().kind, "vacuous", "who is replaced may go at once");
  checker.record(record(3, [voter(1), removing(2, 0, 3), voter(4, 2)]));
  checker.record(record(4, [voter(1), voter(2, 0, 4), voter(4, 2)]));
  checker.membership(1, 6, config([1, 4]));
  t.equal(checker.verdict().kind, "pass", "whoever is to stay again may have gone meanwhile");
  checker.membership(1, 6, config([1]));
  checker.membership(1, 7, config([1]));
  t.match(checker.verdict(), { kind: "fail", violationCount: 1 }, "nobody told node 4 to go");
  checker.record(record(9, [voter(1), learner(2, 9)]));
  checker.membership(1, 8, config([1], [2]));
  checker.membership(1, 9, config([1]));
  t.equal(checker.verdict().violationCount, 2, "what was said of a former life does not count");
  t.end();
});
