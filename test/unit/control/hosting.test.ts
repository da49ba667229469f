/**
 * When a replica comes to a node and when it goes, by the partition map; and what the leader of a
 * placed group does about its record.
 */
import t from "tap";
import { NO_CONFIG, configIndex, incarnation, placementGeneration } from "../../../src/base/ids.js";
import { type KnownLife, hostingStep } from "../../../src/control/hosting.js";
import { type PlacedPlanFacts, nextPlacedChange } from "../../../src/control/placed-plan.js";
import type { PartitionRecord, ReplicaRecord } from "../../../src/machine/commands/command.js";
import { foundedPartition } from "../../../src/machine/meta/meta-placement.js";
import type { Membership } from "../../../src/raft/state/types.js";

function replica(nodeId: number, role: ReplicaRecord["role"] = "voter", life = 0): ReplicaRecord {
  const lived = { incarnation: incarnation(life), since: placementGeneration(life) };
  return { nodeId, role, ...lived, replaces: 0 };
}

function placed(generation: number, replicas: readonly ReplicaRecord[]): PartitionRecord {
  const founded = foundedPartition(1, [1, 2, 3], 3);
  return { ...founded, generation: placementGeneration(generation), replicas };
}

function lived(life: number, isLive = true): KnownLife {
  return { incarnation: incarnation(life), isLive };
}

t.test("P-097 a replica comes by the map alone, and each life once", (t) => {
  const full = foundedPartition(1, [1, 2, 3], 0);
  t.strictSame(hostingStep(null, 1, null), { kind: "stay" }, "unknown is not placed");
  t.strictSame(hostingStep(full, 9, null), { kind: "come", incarnation: 0 }, "full: everywhere");
  t.strictSame(hostingStep(full, 9, lived(0)), { kind: "stay" });
  const record = placed(5, [replica(1), replica(4, "learner", 5)]);
  t.strictSame(hostingStep(record, 1, null), { kind: "come", incarnation: 0 });
  t.strictSame(hostingStep(record, 4, null), { kind: "come", incarnation: 5 });
  t.strictSame(hostingStep(record, 4, lived(3, false)), { kind: "come", incarnation: 5 });
  t.strictSame(hostingStep(record, 4, lived(5, false)), { kind: "stay" }, "that life is over");
  t.strictSame(hostingStep(record, 4, lived(8, false)), { kind: "stay" }, "the map is old");
  t.strictSame(hostingStep(record, 2, null), { kind: "stay" });
  t.end();
});

t.test("P-097 a replica goes when a newer record is without its life", (t) => {
  const record = placed(5, [replica(1), replica(4, "removing", 3)]);
  t.strictSame(hostingStep(null, 2, lived(0)), { kind: "stay" }, "unknown is not removed");
  t.strictSame(hostingStep(record, 2, lived(0)), { kind: "drop" });
  t.strictSame(hostingStep(record, 2, lived(4)), { kind: "drop" });
  t.strictSame(hostingStep(record, 2, lived(5)), { kind: "stay" }, "the record is not newer");
  t.strictSame(hostingStep(record, 2, lived(7)), { kind: "stay" }, "nor is an older one");
  t.strictSame(
    hostingStep(record, 4, lived(3)),
    { kind: "stay" },
    "it goes when it is off the list",
  );
  t.strictSame(hostingStep(record, 4, lived(2)), { kind: "drop" }, "a former life of it");
  t.strictSame(hostingStep({ ...record, state: "Removed" }, 1, lived(0)), { kind: "drop" });
  t.end();
});

function membershipOf(voters: number[], learners: number[] = []): Membership {
  return { voters, learners, votersOutgoing: [], learnersNext: [], autoLeave: false };
}

function facts(
  record: PartitionRecord,
  membership: Membership,
  more: Partial<PlacedPlanFacts> = {},
): PlacedPlanFacts {
  const placedGeneration = placementGeneration(0);
  const all = { isLive: () => true, isCaughtUp: () => true, isLinked: () => true };
  const rest = { configIndex: NO_CONFIG, isPaused: false };
  return { ...rest, self: 1, record, membership, placedGeneration, ...all, ...more };
}

t.test(
  "P-092 the leader of a placed group brings in whom its record lists, one step at a time",
  (t) => {
    const record = placed(5, [replica(1), replica(2), replica(4, "learner", 5)]);
    const change = (kind: string, node: number) => ({ change: { operations: [{ kind, node }] } });
    t.match(nextPlacedChange(facts(record, membershipOf([1, 2]))), change("addLearner", 4));
    t.match(nextPlacedChange(facts(record, membershipOf([1, 2], [4]))), change("addVoter", 4));
    const behind = { isCaughtUp: () => false };
    t.match(nextPlacedChange(facts(record, membershipOf([1, 2], [4]), behind)), { kind: "wait" });
    const dead = { isLive: (node: number) => node === 1 };
    t.match(nextPlacedChange(facts(record, membershipOf([1, 2], [4]), dead)), { kind: "wait" });
    const untold = { configIndex: configIndex(9), placedGeneration: placementGeneration(5) };
    const done = nextPlacedChange(facts(record, membershipOf([1, 2, 4]), untold));
    t.match(done, { kind: "wait", reason: "not-told" });
    const newer = { placedGeneration: placementGeneration(6) };
    t.match(nextPlacedChange(facts(record, membershipOf([1, 2]), newer)), { kind: "wait" });
    t.end();
  },
);

t.test("P-097 nobody goes for being absent from the record; a removal is always an entry", (t) => {
  const absent = placed(9, [replica(1), replica(2)]);
  t.match(nextPlacedChange(facts(absent, membershipOf([1, 2, 3], [4]))), { kind: "settled" });
  const record = placed(9, [replica(1), replica(2), replica(3, "removing", 4)]);
  const removal = { change: { operations: [{ kind: "remove", node: 3 }] } };
  t.match(nextPlacedChange(facts(record, membershipOf([1, 2, 3]))), removal);
  t.match(nextPlacedChange(facts(record, membershipOf([1, 2]))), removal, "never came, or not yet");
  const known = { placedGeneration: placementGeneration(9), configIndex: configIndex(9) };
  const gone = nextPlacedChange(facts(record, membershipOf([1, 2]), known));
  t.match(gone, { kind: "wait", reason: "not-told" });
  const own = placed(9, [replica(1, "removing"), replica(2)]);
  t.match(nextPlacedChange(facts(own, membershipOf([1, 2]))), { kind: "transfer", to: 2 });
  const behind = { isCaughtUp: () => false };
  t.match(nextPlacedChange(facts(own, membershipOf([1, 2]), behind)), { kind: "wait" });
  const alone = { isLive: (node: number) => node === 1 };
  const other = placed(9, [replica(1), replica(2, "removing"), replica(3)]);
  t.match(nextPlacedChange(facts(other, membershipOf([1, 2, 3]), alone)), { kind: "wait" });
  t.end();
});
