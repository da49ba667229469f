/** A backup over several nodes, from the question to the manifest, verified as whoever restores would. */
import t from "tap";
import { COUNTER_MAX, compareHlc } from "../../../../src/base/hlc.js";
import type { TopologyAnswer } from "../../../../src/host/backups/backup-messages.js";
import { topologyFault } from "../../../../src/host/keeping/topology.js";
import { TakingCluster } from "../../../doubles/backup/taking-world.js";

t.test("P-132 P-133 a Full has every partition, each exactly at its mark", (t) => {
  const cluster = new TakingCluster(3).ready();
  for (let at = 0; at < 40; at++) cluster.write(at % 3, `key-${at}`);
  const asked = cluster.ask(2, { kind: "full" });
  // Writers go on while the images are made: what they write is in the logs alone.
  let steps = 0;
  cluster.stepUntil(() => {
    if (asked.phases.at(-1) !== "images") return asked.phases.length > 1;
    if (steps++ < 600 && steps % 20 === 0)
      cluster.beginWrite(steps % 3, `key-${steps}`, "meanwhile", () => {});
    return false;
  });
  cluster.passUntil(() => asked.end !== null);
  const { manifest } = asked;
  t.same(asked.phases, ["images", "marks", "logs", "checking", "publishing"]);
  t.equal(manifest.type, "Full");
  t.same(manifest.coveredPartitions, [0, 1, 2]);
  t.equal(manifest.coordinatorNode, "host2:8084");
  const chain = cluster.verified(manifest.backupId);
  t.ok(
    manifest.partitionRanges.some(({ fromIndex, toIndex }) => fromIndex < toIndex),
    "an image was older than its mark",
  );
  for (const { partition, toIndex, toStamp } of manifest.partitionRanges) {
    const leader = cluster.serverOf(partition) ?? 0;
    const mark = cluster.groupAt(leader, partition).machine.marks.at(-1);
    t.equal(mark?.index, toIndex);
    t.equal(toStamp.c, COUNTER_MAX, "the last stamp of its millisecond");
    const log = chain.partitions.get(partition)?.logs[0];
    t.equal(log?.trailer.end.chain, mark?.chain, "the leader's digest");
  }
  t.same(cluster.names(), [manifest.backupId, `${manifest.backupId}.manifest`]);
  cluster.pass(1000);
  for (const id of [1, 2, 3])
    t.equal(cluster.node(id).facts().backupLog.holds, 0, "no hold is left");
  const { reads } = { reads: cluster.node(1).metaGroup().machine.meta };
  t.notOk(reads.isPlannerHeld(cluster.node(1).metaGroup().committedLeaseMs()));
  t.end();
});

t.test("P-134 a coordinated backup ends every partition at one stamp", (t) => {
  const cluster = new TakingCluster(3).ready();
  for (let at = 0; at < 20; at++) cluster.write(at % 3, `key-${at}`);
  const leader = cluster.serverOf(0) ?? 0;
  const other = leader === 1 ? 2 : 1;
  const refused = cluster.take(other, { kind: "coordinated" });
  t.equal(refused.said, "NotBackupCoordinator");
  t.match(refused.end, { leader: { nodeId: leader, endpoint: `host${leader}:8084` } });
  const { manifest } = cluster.take(leader, { kind: "coordinated" });
  t.ok(manifest.clusterSnapshot !== null);
  for (const { toStamp } of manifest.partitionRanges) t.same(toStamp, manifest.clusterSnapshot);
  cluster.verified(manifest.backupId);
  t.ok(cluster.write(1, "after"), "the groups go on");
  const after = cluster.groupAt(cluster.serverOf(1) ?? 0, 1).lastStamp;
  t.ok(compareHlc(after, manifest.clusterSnapshot ?? after) > 0);
  t.end();
});

t.test("P-135 an Incremental goes on where its parent ended", (t) => {
  const cluster = new TakingCluster(3).ready();
  cluster.write(1, "first");
  const full = cluster.take(1, { kind: "full" }).manifest;
  cluster.write(1, "second");
  const asked = cluster.take(2, { kind: "incremental", parentId: full.backupId });
  t.equal(asked.manifest.type, "Incremental");
  t.same(asked.phases, ["holding", "marks", "logs", "checking", "publishing"]);
  const next = cluster.take(3, { kind: "incremental", parentId: asked.manifest.backupId }).manifest;
  const chain = cluster.verified(next.backupId);
  t.equal(chain.chain.length, 3);
  for (const [partition, { logs }] of chain.partitions) {
    t.equal(logs.length, 3, `every partition has its part, also ${partition}`);
  }
  t.equal(cluster.take(1, { kind: "incremental", parentId: "f".repeat(32) }).said, "ParentMissing");
  t.end();
});

t.test("P-132 P-138 an Incremental never goes on from a backup of another cluster", (t) => {
  // Restored or forced ones may be alike in everything but their history and their own id.
  const [first, other] = ["first", "other"].map((clusterId) => {
    const cluster = new TakingCluster(1, 0, { clusterId }).ready();
    for (let at = 0; at < 6; at++) cluster.write(at % 3, `key-${at}`, clusterId);
    return cluster;
  }) as [TakingCluster, TakingCluster];
  const theirs = first.take(1, { kind: "full" }).manifest;
  const own = other.take(1, { kind: "full" }).manifest;
  const endsOf = ({ partitionRanges }: typeof own): unknown[] => {
    return partitionRanges.map(({ partition, toIndex, toTerm }) => [partition, toIndex, toTerm]);
  };
  t.same(endsOf(theirs), endsOf(own), "they cannot be told apart by where they end");
  t.equal(theirs.topologyGeneration, own.topologyGeneration);
  for (const [name, file] of first.disk.root.names) other.disk.root.names.set(name, file);
  const asked = other.take(1, { kind: "incremental", parentId: theirs.backupId });
  t.equal(asked.manifest.type, "Full");
  t.match(asked.end, { substitutionReason: "TopologyChangedSinceParent" });
  other.verified(asked.manifest.backupId);
  t.end();
});

t.test("P-132 what changed between two reads of meta makes no backup", (t) => {
  const before: TopologyAnswer = {
    ...{ kind: "topology", term: 3, topologyVersion: 7, level: 2, lineage: "a" },
    ...{ partitions: [0, 1], isMoving: false },
  };
  const said = (
    change: Partial<TopologyAnswer>,
    kind: "full" | "coordinated" = "full",
    isLed = true,
  ): string | undefined => topologyFault(before, { ...before, ...change }, kind, isLed)?.code;
  t.equal(said({}), undefined);
  t.equal(said({ term: 4 }), undefined, "a Full outlives a leader of meta");
  t.equal(said({ topologyVersion: 8 }), "TopologyChanged");
  t.equal(said({ lineage: "b" }), "TopologyChanged");
  t.equal(said({}, "coordinated"), undefined);
  t.equal(said({ term: 4 }, "coordinated"), "RetryableLeadershipLoss");
  t.equal(said({}, "coordinated", false), "RetryableLeadershipLoss");
  t.end();
});
