/** Whoever takes a backup holds a lease on it: no node collects what is being written, and a lost lease ends it. */
import t from "tap";
import { type CollectionResult, collect } from "../../../../src/backup/collection.js";
import { BACKUP_BARRIER_MS, LEASE_TOUCH_MS, ORPHAN_AGE_MS } from "../../../../src/base/limits.js";
import { TakingCluster } from "../../../doubles/backup/taking-world.js";
import { UNSIGNED } from "../../../doubles/backup/sample-backup.js";

function leaseOf(cluster: TakingCluster): string {
  return cluster.names().find((name) => name.startsWith(".lease_")) ?? "";
}

/** A pass of another node than the one that takes a backup. */
function pass(
  cluster: TakingCluster,
  node: number,
  rules = { maxChains: 0, maxAgeMs: 0, maxBytes: 0 },
): CollectionResult {
  const timer = cluster.worlds.get(node)?.timer;
  if (timer === undefined) throw new Error(`no node ${node}`);
  let result: CollectionResult | null = null;
  const order = {
    ...{ rules, isDry: false, node: "other" },
    ...{ tag: "00000001", waitMs: 0, wallMs: () => cluster.disk.nowMs, isCancelled: () => false },
  };
  collect({ archive: cluster.archive(node), timer, signatures: UNSIGNED }, order, (end) => {
    result = end;
  });
  cluster.stepUntil(() => result !== null);
  return result ?? { ok: false, code: "busy", message: "" };
}

for (const kind of ["full", "coordinated"] as const) {
  t.test(`P-141 ${kind}: what is written for more than an hour stays on every node`, (t) => {
    const cluster = new TakingCluster(3).ready();
    cluster.write(1, "first");
    const keeper = cluster.serverOf(0) ?? 0;
    const asked = cluster.ask(keeper, { kind });
    cluster.stepUntil(() => asked.phases.at(-1) === "checking");
    // It waits for the others, and for an hour nothing comes but the touches of the lease.
    cluster.network.cutOff(keeper);
    cluster.disk.nowMs += ORPHAN_AGE_MS + 1;
    const lease = cluster.disk.find(leaseOf(cluster));
    if (lease === undefined) throw new Error("it has no lease");
    lease.modifiedMs = cluster.disk.nowMs;
    const passed = pass(cluster, keeper === 3 ? 1 : 3);
    t.match(passed, { ok: true, value: { orphans: [] } }, JSON.stringify(passed));
    cluster.network.healAll();
    cluster.passUntil(() => asked.end !== null, 60_000);
    t.equal(asked.said, "taken", asked.message);
    cluster.verified(asked.manifest.backupId);
    t.equal(leaseOf(cluster), "", "it is let go");
    t.end();
  });

  t.test(`P-141 ${kind}: whoever lost its lease ends at once, and publishes nothing`, (t) => {
    const cluster = new TakingCluster(3).ready();
    cluster.write(1, "first");
    const keeper = cluster.serverOf(0) ?? 0;
    const asked = cluster.ask(keeper, { kind });
    cluster.stepUntil(() => asked.phases.at(-1) === "marks");
    // Alone it would wait for the others for much longer than a lease is without its touch.
    cluster.network.cutOff(keeper);
    cluster.disk.drop(leaseOf(cluster));
    const sinceMs = cluster.nowMs;
    cluster.passUntil(() => asked.end !== null, 2 * BACKUP_BARRIER_MS);
    t.equal(asked.said, "IoError", asked.message);
    t.ok(cluster.nowMs - sinceMs < 2 * LEASE_TOUCH_MS, `after ${cluster.nowMs - sinceMs} ms`);
    t.same(cluster.names(), []);
    t.end();
  });
}

t.test("P-141 an incremental keeps its parent from the first look at it, on every node", (t) => {
  const cluster = new TakingCluster(3).ready();
  cluster.write(1, "first");
  const keeper = cluster.serverOf(0) ?? 0;
  const parent = cluster.take(keeper, { kind: "full" }).manifest;
  for (const id of [1, 2, 3]) cluster.world(id).wallMs += 1000;
  const second = cluster.take(keeper, { kind: "full" }).manifest;
  t.ok(second.createdAtMs > parent.createdAtMs, "the parent is of the older chain");
  const asked = cluster.ask(keeper, { kind: "incremental", parentId: parent.backupId });
  cluster.stepUntil(() => asked.phases.at(-1) === "holding");
  const leases = cluster.names().filter((name) => name.startsWith(".lease_"));
  t.equal(leases.length, 1, "one lease does");
  const rules = { maxChains: 1, maxAgeMs: 0, maxBytes: 0 };
  const passed = pass(cluster, keeper === 3 ? 1 : 3, rules);
  t.match(passed, { ok: true, value: { deletions: [] } }, JSON.stringify(passed));
  cluster.passUntil(() => asked.end !== null);
  cluster.verified(asked.manifest.backupId);
  cluster.verified(second.backupId);
  t.end();
});
