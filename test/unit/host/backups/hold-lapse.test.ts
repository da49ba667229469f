/**
 * A keeper that dies, or is not heard any more, in the middle of a backup: what others hold for it lapses, their logs go
 * on as if it had never asked, and whoever goes on from the parent is told the truth.
 */
import t, { type Test } from "tap";
import { HOLD_LAPSES_MS } from "../../../../src/base/limits.js";
import { isBackupFrame } from "../../../../src/host/backups/backup-messages.js";
import { TakingCluster } from "../../../doubles/backup/taking-world.js";

// A loaded machine takes its time for five nodes.
t.setTimeout(240_000);

const EAGER = {
  ...{ compactKeepEntries: 0, compactEveryEntries: 10, flushAgeMs: 100, pitrWindowMs: 0 },
  initialPartitions: 4,
};

/** Where the log of each replica of a partition begins, by node. */
function floors(cluster: TakingCluster, partition: number, but: number): Map<number, number> {
  const group = cluster.groupAt(cluster.hosts(partition)[0] ?? 1, partition).partition;
  const found = new Map<number, number>();
  for (const id of cluster.hosts(partition)) {
    const log = cluster.world(id).log.durable.get(group);
    if (id !== but) found.set(id, log?.floor.index ?? 0);
  }
  return found;
}

function holders(cluster: TakingCluster): number[] {
  const holding = [...cluster.nodes].filter(([, node]) => node.facts().backupLog.holds > 0);
  return holding.map(([id]) => id);
}

/** Enough that every log could be let go of several times. */
function writeMuch(cluster: TakingCluster): void {
  for (let at = 0; at < 100; at++) cluster.write(1 + (at % 4), `key-${at}`);
  cluster.pass(1000);
}

function lapses(t: Test, lose: (cluster: TakingCluster, keeper: number) => void): void {
  const cluster = new TakingCluster(5, 3, EAGER).ready();
  for (let at = 0; at < 8; at++) cluster.write(1 + (at % 4), `key-${at}`, "x".repeat(20_000));
  const keeper = 1;
  const parent = cluster.take(keeper, { kind: "full" }).manifest;
  const ends = new Map(parent.partitionRanges.map((range) => [range.partition, range.toIndex]));
  const asked = cluster.ask(keeper, { kind: "incremental", parentId: parent.backupId });
  cluster.stepUntil(() => asked.phases.at(-1) === "marks");
  const held = holders(cluster).filter((id) => id !== keeper);
  t.ok(held.length > 0, "other nodes hold their logs for it");
  const foreign = [1, 2, 3, 4].filter((partition) => !cluster.hosts(partition).includes(keeper));
  lose(cluster, keeper);
  writeMuch(cluster);
  const keeps = (partition: number): boolean => {
    const kept = [...floors(cluster, partition, keeper).values()];
    return kept.some((floor) => floor <= (ends.get(partition) ?? 0));
  };
  t.ok(foreign.length > 0 && foreign.every(keeps), "from the parent's end on it is all there");
  cluster.pass(HOLD_LAPSES_MS + 2000, 100);
  t.same(
    holders(cluster).filter((id) => id !== keeper),
    [],
    "whatever was held for it has lapsed",
  );
  writeMuch(cluster);
  for (const partition of foreign) {
    for (const [id, floor] of floors(cluster, partition, keeper)) {
      t.ok(floor > (ends.get(partition) ?? 0), `node ${id} let go of partition ${partition}`);
    }
  }
  cluster.network.filter = (_from, bytes) => bytes;
  const other = held[0] ?? 2;
  const next = cluster.take(other, { kind: "incremental", parentId: parent.backupId }, 120_000);
  t.equal(next.manifest.type, "Full", next.message);
  t.match(next.end, { substitutionReason: "ParentLogCompacted" });
  cluster.verified(next.manifest.backupId);
  cluster.verified(parent.backupId);
  cluster.pass(1000);
  t.same(holders(cluster), [], "and nothing is held in the end");
  t.end();
}

t.test("P-135 a keeper that dies: its holds lapse, and the parent's log is gone", (t) => {
  lapses(t, (cluster, keeper) => cluster.kill(keeper));
});

t.test("P-135 a keeper that is not heard any more: the same, and it publishes nothing", (t) => {
  lapses(t, (cluster, keeper) => {
    cluster.network.filter = (from, bytes) => {
      return from === keeper && isBackupFrame(bytes) ? null : bytes;
    };
  });
});
