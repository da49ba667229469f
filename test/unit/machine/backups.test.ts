/** What apply makes of the commands that backups and restores use: marks, holds, refounding. */
import t from "tap";
import { NOT_BORN, level, membershipVersion, placementGeneration } from "../../../src/base/ids.js";
import { MARKS_KEPT, PLANNER_HOLDS_MAX, PLANNER_HOLD_MAX_MS } from "../../../src/base/limits.js";
import type { Command, Member } from "../../../src/machine/commands/command.js";
import { encodeCluster, encodePartition } from "../../../src/machine/meta/meta-rows.js";
import { RowKind, uint32Key } from "../../../src/machine/store/keys.js";
import { Bench, lock } from "../../doubles/machine/bench.js";
import { newMember } from "../../doubles/machine/members.js";
import { MetaBench } from "../../doubles/machine/placement.js";

const ID = "0123456789abcdef0123456789abcdef";

function mark(round: number): Command {
  return { kind: "mark", backupId: ID, round };
}

t.test("P-132 a replica notes position, stamp and digest of the last marks", (t) => {
  const [one, other] = [new Bench(), new Bench()];
  for (const bench of [one, other]) {
    bench.apply(5, lock("r", "o", 10));
    t.strictSame(bench.apply(6, mark(1)), [{ kind: "done" }]);
  }
  const { machine } = one;
  const [noted] = machine.marks;
  t.strictSame(noted, {
    ...{ backupId: ID, round: 1, index: 2, term: 1, chain: machine.chainDigest },
    stamp: machine.lastStamp,
  });
  t.strictSame(machine.marks, other.machine.marks, "as every replica does");
  const { stateDigest } = machine;
  one.apply(7, mark(2));
  t.equal(machine.stateDigest, stateDigest, "a mark has no effect");
  t.not(machine.marks[0]?.chain, machine.marks[1]?.chain, "but a place in the chain");
  for (let round = 3; round < 40; round++) one.apply(round, mark(round));
  t.strictSame(
    machine.marks.map(({ round }) => round),
    Array.from({ length: MARKS_KEPT }, (_, at) => 40 - MARKS_KEPT + at),
  );
  t.end();
});

t.test("a hold of the planners is renewed, released, bounded, and ends by itself", (t) => {
  const bench = new MetaBench(3, 0);
  const hold = (leaseMs: number, holder: string, forMs: number): string => {
    const outcome = bench.one(leaseMs, { kind: "hold-planner", holder, forMs });
    return outcome.kind === "meta" ? outcome.status : outcome.kind;
  };
  const { meta } = bench.machine;
  t.equal(meta.isPlannerHeld(0), false);
  t.equal(hold(100, "a", 60), "done");
  t.ok(meta.isPlannerHeld(159) && !meta.isPlannerHeld(160));
  t.equal(hold(120, "b", 10), "done");
  t.equal(hold(130, "a", 60), "done", "renewed");
  t.ok(meta.isPlannerHeld(189) && !meta.isPlannerHeld(190));
  t.equal(hold(140, "a", 0), "done");
  t.equal(meta.isPlannerHeld(140), false, "released; the other one was over");
  t.equal(hold(140, "a", 0), "unchanged");
  for (const [holder, forMs] of [
    ["", 5],
    ["x".repeat(2000), 5],
    ["a", -1],
    ["a", 0.5],
    ["a", PLANNER_HOLD_MAX_MS + 1],
  ] as const) {
    t.equal(hold(141, holder, forMs), "invalid");
  }
  for (let at = 0; at < PLANNER_HOLDS_MAX; at++) t.equal(hold(150, `h${at}`, 1000), "done");
  t.equal(hold(150, "more", 1000), "busy");
  t.equal(hold(150, "h3", 1000), "done", "who holds may renew");
  t.equal(hold(1150, "more", 1000), "done", "those that are over make room");
  t.end();
});

/** A cluster of three nodes as a restore leaves it: records, and nobody. */
function restored(factor: number): MetaBench {
  const bench = new MetaBench(3, factor, 2);
  bench.one(0, { kind: "set-level", level: level(2) });
  const { meta } = bench.machine;
  const cluster = meta.cluster();
  if (cluster === null) throw new Error("founded");
  const members = meta.members();
  const none = { clusterId: "new", membershipVersion: membershipVersion(0) };
  bench.machine.rewrite(({ rows }) => {
    rows.put(RowKind.cluster, "", encodeCluster({ ...cluster, ...none }));
    for (const { nodeId } of members) rows.delete(RowKind.member, uint32Key(nodeId));
    for (const record of meta.partitions()) {
      const emptied = { ...record, founders: [], replicas: [], bornVersion: NOT_BORN };
      rows.put(RowKind.partition, uint32Key(record.partitionId), encodePartition(emptied));
    }
  });
  return bench;
}

function refound(clusterId: string, nodeId = 7): Command {
  return {
    kind: "refound-cluster",
    clusterId,
    member: newMember(nodeId, `n${nodeId}:1`, `s${nodeId}`),
  };
}

t.test("P-138 a restored cluster is refounded once, by one node, under its new id", (t) => {
  const ask = (bench: Bench, command: Command): string => {
    const outcome = bench.one(0, command);
    return outcome.kind === "meta" ? outcome.status : outcome.kind;
  };
  t.equal(ask(new Bench(), refound("new")), "not-founded");
  t.equal(ask(new MetaBench(3, 0), refound("new")), "unchanged", "a cluster with members");
  for (const factor of [0, 2]) {
    const bench = restored(factor);
    const { meta } = bench.machine;
    const before = meta.cluster();
    t.equal(ask(bench, refound("old")), "invalid", "the id is the one that the restore made");
    t.equal(ask(bench, refound("new", 0)), "invalid");
    t.strictSame(meta.members(), []);
    t.equal(ask(bench, refound("new")), "done");
    const line: Member = {
      ...newMember(7, "n7:1", "s7"),
      ...{ role: "voter", joinedVersion: membershipVersion(1), evicted: false },
    };
    t.strictSame(meta.members(), [line]);
    t.match(meta.cluster(), {
      ...{ membershipVersion: 1, mapVersion: (before?.mapVersion ?? 0) + 1 },
      topologyVersion: before?.topologyVersion,
    });
    const record = meta.partition(1);
    t.equal(record?.mode, factor === 0 ? "full" : "placed");
    const replica = { nodeId: 7, role: "voter", incarnation: 0, replaces: 0 };
    t.match(record?.replicas, factor === 0 ? [] : [replica]);
    t.strictSame(record?.founders, factor === 0 ? [] : [7]);
    t.equal(record?.generation, placementGeneration(factor === 0 ? 1 : 2));
    t.equal(ask(bench, refound("new", 8)), "unchanged", "nobody else takes it");
    t.equal(meta.members().length, 1);
  }
  t.end();
});
