/** What records say about replicas: effective factors, lists, and partitions that are not in order. */
import t from "tap";
import {
  FIRST_LEVEL,
  mapVersion,
  membershipVersion,
  topologyVersion,
} from "../../../src/base/ids.js";
import { placedPartitions, replicationFacts } from "../../../src/control/placement.js";
import type {
  ClusterRecord,
  Member,
  PartitionRecord,
  ReplicaRecord,
} from "../../../src/machine/commands/command.js";
import { foundedPartition } from "../../../src/machine/meta/meta-placement.js";
import { member } from "../../doubles/machine/members.js";

function cluster(replicationFactor: number): ClusterRecord {
  return {
    clusterId: "c",
    dataPartitions: 3,
    nextPartitionId: 4,
    replicationFactor,
    membershipVersion: membershipVersion(4),
    mapVersion: mapVersion(4),
    topologyVersion: topologyVersion(1),
    level: FIRST_LEVEL,
  };
}

const MEMBERS: readonly Member[] = [1, 2, 3, 4].map((nodeId) => member(nodeId));

/** Partition 1, placed, with these roles by node. */
function placed(
  roles: Readonly<Record<number, ReplicaRecord["role"]>>,
  more: Partial<PartitionRecord> = {},
): PartitionRecord {
  const founded = foundedPartition(1, [1, 2, 3], 3);
  const [sample] = founded.replicas;
  const replicas = Object.entries(roles).map(([nodeId, role]) => {
    return { ...(sample as ReplicaRecord), nodeId: Number(nodeId), role };
  });
  return { ...founded, replicas, ...more };
}

t.test("5.4: the effective factor is the smaller of what is wanted and the voters", (t) => {
  const effective = (factor: number, override: number): number | undefined => {
    const record = placed({ 1: "voter" }, { replicationOverride: override });
    return placedPartitions(cluster(factor), MEMBERS, [record])[0]?.effectiveFactor;
  };
  t.equal(effective(3, 0), 3, "an override of 0 is none");
  t.equal(effective(3, 5), 4);
  t.equal(effective(0, 0), 0, "full replication");
  t.equal(effective(0, 2), 2);
  const leaving = MEMBERS.map((each) => {
    return each.nodeId === 4 ? { ...each, role: "leaving" as const } : each;
  });
  const nine = placed({ 1: "voter" }, { replicationOverride: 9 });
  t.equal(placedPartitions(cluster(3), MEMBERS, [nine])[0]?.effectiveFactor, 4);
  t.equal(placedPartitions(cluster(3), leaving, [nine])[0]?.effectiveFactor, 3, "who leaves not");
  t.end();
});

t.test("5.4: lists are those of the records; without a factor there is none", (t) => {
  const listed = (factor: number, record: PartitionRecord): string => {
    const [found] = placedPartitions(cluster(factor), MEMBERS, [record]);
    return (found?.replicas ?? []).map(({ nodeId, role }) => `${nodeId} ${role}`).join(", ");
  };
  const full = foundedPartition(1, [], 0);
  t.equal(listed(0, full), "");
  t.equal(
    listed(0, { ...full, replicationOverride: 2 }),
    "1 voter, 2 voter, 3 voter, 4 voter",
    "a factor that is news has changed nothing yet",
  );
  t.equal(listed(2, placed({ 1: "voter", 3: "learner" })), "1 voter, 3 learner");
  t.equal(listed(0, placed({ 1: "voter", 3: "voter" })), "", "every voter is to have it again");
  t.equal(listed(3, placed({ 1: "voter" }, { state: "Removed" })), "", "nobody has it any more");
  t.end();
});

t.test("which partitions are not in order, by who is live", (t) => {
  const facts = (factor: number, record: PartitionRecord, dead: readonly number[] = []) => {
    const all = placedPartitions(cluster(factor), MEMBERS, [record]);
    const { leavingReplicas, ...found } = replicationFacts(all, MEMBERS, (nodeId) => {
      return !dead.includes(nodeId);
    });
    t.equal(leavingReplicas, 0);
    return Object.entries(found).flatMap(([name, ids]: [string, readonly number[]]) => {
      return ids.length === 0 ? [] : [name];
    });
  };
  const three = placed({ 1: "voter", 2: "voter", 3: "voter" });
  t.same(facts(3, three), []);
  t.same(facts(3, three, [2]), ["under"], "a voter that is not live does not count");
  t.same(facts(3, three, [2, 3]), ["under", "withoutMajority"]);
  t.same(facts(2, three), ["over"]);
  t.same(facts(4, three), ["under"]);
  const everywhere = foundedPartition(1, [], 0);
  t.same(facts(0, everywhere, [1, 2, 3]), [], "full replication has no factor to be below");
  t.same(facts(0, three), ["under"], "its factor was taken back: every voter is to have it");
  t.same(facts(0, three, [1, 2]), ["under", "withoutMajority"]);
  const back = placed({ 1: "voter", 2: "voter", 3: "voter", 4: "learner" });
  t.same(facts(0, back), ["under", "moving"], "on its way to every voter");
  const four = placed({ 1: "voter", 2: "voter", 3: "voter", 4: "voter" });
  t.same(facts(0, four), []);
  t.same(facts(3, { ...three, state: "Removed" }, [1, 2, 3]), []);
  const move = placed({ 1: "voter", 2: "voter", 3: "voter", 4: "learner" });
  t.same(facts(3, move), ["moving"]);
  const late = placed({ 1: "removing", 2: "voter", 3: "voter", 4: "voter" });
  t.same(facts(3, late), ["moving"]);
  t.same(facts(3, late, [1, 2]), ["under", "withoutMajority", "moving"], "who goes votes yet");
  const full = { ...foundedPartition(1, [], 0), replicationOverride: 3 };
  t.same(facts(0, full), ["over"], "to be trimmed");
  const out = MEMBERS.map((each) => {
    return each.nodeId === 2 ? { ...each, role: "leaving" as const } : each;
  });
  const { leavingReplicas } = replicationFacts(
    placedPartitions(cluster(3), out, [
      three,
      { ...three, partitionId: 2 },
      { ...three, partitionId: 3, state: "Removed" },
    ]),
    out,
    () => true,
  );
  t.equal(leavingReplicas, 2, "what a drain has left to do");
  t.end();
});
