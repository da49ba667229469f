/**
 * Changes of leader, planned and not: what callers, leases and the data in the leader's memory see
 * of them.
 */
import t from "tap";
import { type LockOutcome, LockType } from "../../src/machine/command.js";
import type { ProposalResult } from "../../src/host/group.js";
import { encodeText } from "../../src/base/bytes.js";
import { partitionId } from "../../src/base/ids.js";
import { Cluster } from "./peerworld.js";

const PARTITION = partitionId(1);
const LEASE_MS = 60_000;

function groupOf(cluster: Cluster, node: number) {
  const group = cluster.node(node).group(PARTITION);
  if (group === null) throw new Error("the partition is hosted");
  return group;
}

function serverOf(cluster: Cluster): number {
  const server = cluster.serverOf(PARTITION);
  if (server === null) throw new Error("somebody leads");
  return server;
}

function lock(cluster: Cluster, owner: string): LockOutcome {
  let result: ProposalResult | null = null;
  groupOf(cluster, serverOf(cluster)).propose(
    { kind: "try-lock", resource: "r", owner: encodeText(owner), expiresMs: LEASE_MS },
    100,
    cluster.nowMs + 10_000,
    (ended) => (result = ended),
  );
  cluster.passUntil(() => result !== null);
  const { outcome } = result as unknown as Extract<ProposalResult, { status: "applied" }>;
  return outcome as LockOutcome;
}

for (const awake of [false, true]) {
  void t.test(
    `P-196 T1 T3 a lease runs on over changes of leader, ${awake ? "awake" : "asleep"}`,
    (t) => {
      const quiesceAfterMs = awake ? 0 : 1500;
      const cluster = new Cluster(3, {
        initialPartitions: 1,
        leaderBalanceEveryMs: 0,
        quiesceAfterMs,
      });
      cluster.ready();
      t.equal(lock(cluster, "dead").type, LockType.locked);
      const grantedMs = cluster.nowMs;
      let leaderlessMs = 0;
      while (cluster.nowMs - grantedMs < LEASE_MS - 20_000) {
        cluster.pass(20_000, 50);
        const old = serverOf(cluster);
        const clockMs = groupOf(cluster, old).leaseNowMs();
        cluster.kill(old);
        leaderlessMs += cluster.passUntil(() => cluster.serverOf(PARTITION) !== null);
        t.ok(
          groupOf(cluster, serverOf(cluster)).leaseNowMs() <= clockMs,
          "never ahead of the old one",
        );
        cluster.start(old);
        cluster.ready();
      }
      while (cluster.nowMs < grantedMs + LEASE_MS - 100) cluster.pass(50, 50);
      t.equal(lock(cluster, "next").type, LockType.busy, "never too early");
      const latestMs = grantedMs + LEASE_MS + leaderlessMs + 1000;
      while (cluster.nowMs < latestMs) cluster.pass(50, 50);
      t.equal(lock(cluster, "next").type, LockType.locked, "and not much too late");
      t.end();
    },
  );
}
