/** Groups whose members had not changed when the backup's image was made, and have changed since. */
import t from "tap";
import { RESTORE_ROOT, RestoreBench } from "../../../doubles/backup/restore-bench.js";
import { TakingCluster } from "../../../doubles/backup/taking-world.js";

/** Restores out of the directory of a cluster: "ok", or code and message of the failure. */
function restoreOf(cluster: TakingCluster, leafId: string): string {
  const bench = new RestoreBench();
  Object.assign(bench.backups.disk, { root: cluster.disk.root });
  return bench.said({ leafId, targetDir: `${RESTORE_ROOT}/new` });
}

// A loaded machine takes its time for five nodes.
t.setTimeout(240_000);

/** A founder leaves, for good. */
function leave(cluster: TakingCluster, id: number): unknown {
  let said: unknown = null;
  cluster.node(id).leave(cluster.nowMs + 90_000, 60_000, (outcome) => (said = outcome));
  cluster.passUntil(() => said !== null, 120_000);
  cluster.kill(id);
  return said;
}

t.test("P-132 founders that left after the image was made are part of what is replayed", (t) => {
  const cluster = new TakingCluster(5).ready();
  for (let at = 0; at < 6; at++) cluster.write(at % 3, `key-${at}`);
  const full = cluster.take(1, { kind: "full" }).manifest;
  t.equal(restoreOf(cluster, full.backupId), "ok");
  for (const id of [5, 4]) t.equal(leave(cluster, id), "Committed");
  for (let at = 0; at < 6; at++) t.ok(cluster.write(at % 3, `key-${at}`, "later"));
  const leaf = cluster.take(1, { kind: "incremental", parentId: full.backupId }).manifest;
  t.equal(leaf.type, "Incremental");
  t.equal(restoreOf(cluster, leaf.backupId), "ok");
  t.end();
});
