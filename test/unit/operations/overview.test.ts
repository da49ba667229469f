/** All members at a glance, by what they reported (contract 5.7). */
import t from "tap";
import { VERSION } from "../../../src/base/generated/version.js";
import { PROGRAM } from "../../../src/base/levels.js";
import type { NodeReport } from "../../../src/host/reports/node-report.js";
import { World } from "../../doubles/host/world.js";
import { newMember } from "../../doubles/machine/members.js";
import { place } from "../../doubles/machine/placement.js";
import { view } from "../../doubles/operations/administration.js";
import { Bench } from "../../doubles/operations/fixture.js";
import { Trio } from "../../doubles/operations/trio.js";
import type { Command } from "../../../src/machine/commands/command.js";

function report(more: Partial<NodeReport> = {}): NodeReport {
  const none = { arrivals: [], waits: [], snapshotsIn: 0, snapshotsOut: 0, unlinked: [] };
  const disk = { logBytes: 1, storeBytes: 1, storeMaxBytes: 0, isFull: false };
  const pace = { writesPerSecond: 1, loopLagP99Ms: 0, logSyncP99Ms: 0 };
  return {
    ...{ ...none, ...disk, ...pace, bootNumber: 1, metaIndex: 9, learners: 0 },
    ...{ isReady: true, reason: "", uptimeMs: 70_000, replicas: 3, leading: [0, 2] },
    wallMs: null,
    placement: null,
    ...{ requestsPerSecond: 12.4, failedPerSecond: 0.6 },
    ...more,
  };
}

function members(): Trio {
  const trio = new Trio();
  const decide = (command: Command): void => {
    trio.host.metaGroup().propose(command, 200, 1e9, () => undefined);
    trio.world.settle();
  };
  for (const nodeId of [2, 3, 4]) {
    const line = { ...newMember(nodeId, `n${nodeId}:8084`, `d${nodeId}`), version: "0.9" };
    decide({ kind: "add-member", ...line });
    decide({ kind: "set-member-role", nodeId, role: "voter" });
  }
  decide({ kind: "set-replication-factor", partitionId: 1, replicationFactor: 3 });
  decide(place(2, 5, [1, 2, 3]));
  return trio;
}

const overview = (trio: Trio, node: number) => view(trio.node(node), "cluster.overview", {});

t.test("5.7: a node that founds nothing yet stands alone", async (t) => {
  const early = new Bench({}, new World(), false);
  t.match(view(early.operations, "cluster.overview", {}), {
    initialized: false,
    membershipVersion: 0,
    localNodeId: 1,
    partitions: 0,
    nodes: [{ nodeId: 1, role: "not-member", ready: false, ageMs: 0 }],
  });
  const alone = new Bench({ clientEndpoint: "http://n1" });
  t.match(view(alone.operations, "cluster.overview", {}), {
    initialized: true,
    level: PROGRAM.levels.max,
    metaLeaderNodeId: 1,
    partitions: 4,
    partitionsWithoutLeader: 0,
    partitionsUnderReplicated: 0,
    nodes: [
      {
        ...{ nodeId: 1, endpoint: "127.0.0.1:8084", clientEndpoint: "http://n1", role: "voter" },
        ...{ ready: true, reason: "", version: VERSION, ageMs: 0 },
        ...{ hostedPartitions: 4, leadingPartitions: 4 },
      },
    ],
    alarms: { length: 0 },
  });
});

t.test(
  "5.7: others are what they last reported; of who said nothing, nothing is claimed",
  async (t) => {
    const trio = members();
    trio.reports.set(1, { report: report(), ageMs: 0 });
    trio.reports.set(2, { report: report({ leading: [1] }), ageMs: 4321.7 });
    trio.reports.set(3, { report: report({ isReady: false, reason: "leaving" }), ageMs: 200 });
    const { nodes, alarms } = overview(trio, 1);
    t.match(nodes[1], {
      ...{ nodeId: 2, endpoint: "n2:8084", clientEndpoint: "http://n2", role: "voter" },
      ...{ ready: true, version: "0.9", uptimeMs: 70_000, ageMs: 4322 },
      ...{ hostedPartitions: 4, leadingPartitions: 1 },
      ...{ requestsPerSecond: 12, failedPerSecond: 1 },
    });
    t.same(nodes[3], {
      ...{ nodeId: 4, endpoint: "n4:8084", clientEndpoint: "", role: "voter" },
      ...{ ready: false, reason: "", version: "", levelMin: 0, levelMax: 0, uptimeMs: 0 },
      ...{ ageMs: null, hostedPartitions: 0, leadingPartitions: 0 },
      ...{ requestsPerSecond: 0, failedPerSecond: 0 },
    });
    t.same(alarms, [
      "Node 3 (n3:8084) is not ready: leaving.",
      "Node 4 (n4:8084) has not been heard.",
    ]);
  },
);

t.test("5.7 P-093 alarms: the most urgent first, with what partitions wait for", async (t) => {
  const trio = members();
  for (const node of [1, 2, 3, 4]) trio.reports.set(node, { report: report(), ageMs: 0 });
  t.same(overview(trio, 2).alarms, []);
  trio.reports.set(3, { report: report(), ageMs: 61_000 });
  trio.reports.set(4, { report: report({ isFull: true }), ageMs: 0 });
  trio.dead.add(3);
  trio.move(2, 0);
  trio.waits.push({ partition: 1, why: "no node may take the replica" });
  t.same(overview(trio, 1).alarms, [
    "1 partition (2) has no leader that this node knows of.",
    "Node 3 (n3:8084) was heard 61 s ago.",
    "Node 4 (n4:8084) takes no writes: its log or store is full.",
    "1 partition (1) has fewer live voters than the replication factor.",
    "Partition 1 waits: no node may take the replica.",
  ]);
  t.match(overview(trio, 1), { partitionsWithoutLeader: 1, partitionsUnderReplicated: 1 });
  trio.dead.add(2);
  t.match(overview(trio, 1).alarms[1], /^1 partition \(1\) has no majority of live voters/);
  for (let at = 0; at < 200; at++) trio.waits.push({ partition: 1, why: `reason ${at}` });
  t.equal(overview(trio, 1).alarms.length, 64, "bounded");
});

t.test(
  "P-162 a node that closes its rows still says that it stops, and claims nothing more",
  async (t) => {
    const bench = new Bench();
    let stopped = false;
    bench.node.stop(bench.nowMs + 1000, () => (stopped = true));
    bench.world.pass(2000);
    t.ok(stopped && bench.node.closing);
    t.match(view(bench.operations, "cluster.overview", {}), {
      initialized: false,
      partitions: 0,
      nodes: [{ nodeId: 1, ready: false, reason: "shutting-down" }],
    });
    t.match(view(bench.operations, "cluster.placement", {}), { partitions: { length: 0 } });
    t.ok(bench.operations.healthChecks().length > 0);
  },
);

t.test("5.5 U6 an upgrade that nobody finalizes is told after two days", (t) => {
  const trio = members();
  const told = (hours: number): readonly string[] => {
    const levels = { level: 1, levelMax: 2, pendingMs: hours * 3_600_000 };
    Object.assign(trio.host, { levels: () => levels });
    return overview(trio, 1).alarms.filter((alarm) => alarm.includes("finalize"));
  };
  t.same(told(47), []);
  t.same(told(48), ["All members support level 2: finalize the upgrade."]);
  t.end();
});
