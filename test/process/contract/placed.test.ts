/**
 * Contract 2.6, 5.3, 5.4 and 8.2 on five real nodes with a factor of three: factors of partitions, and every outcome of a
 * leave that a placed cluster has.
 */
import t, { type Test } from "tap";
import { runCli } from "../cli/programs.js";
import { endAll } from "../cluster/server-process.js";
import { type PartitionPlacement, PlacedNodes, eventually } from "../placement/placed-nodes.js";
import { PlacedCallers } from "./placed-callers.js";
import type { Json, Reply } from "./wire.js";

t.setTimeout(240_000);
t.teardown(endAll);

/** Nobody takes a replica before it has been live for half a minute: a drain that begins earlier is late. */
const FLAGS = [
  "--raft-replication-factor=3",
  "--initial-cluster-partitions=5",
  "--raft-placement-pass-interval=1s",
  "--raft-decommission-drain-timeout=5s",
];
const LEAVER = 5;

async function leaves(t: Test, callers: PlacedCallers): Promise<void> {
  await t.test("5.3 rule 3: who is alive, unknown or no id", async (t) => {
    const alive = await callers.leave(1, { nodeId: LEAVER });
    t.equal(alive.status, 409);
    t.match(alive.body, {
      ...{ left: false, drained: false, outcome: "RefusedStillAlive", retryable: false },
      ...{ code: "refused", status: 409, membershipVersion: 5, reason: /\.$/ },
    });
    const rpc = await callers.rpc(2, "Leave", { NodeId: LEAVER });
    t.match(rpc, { Left: false, Outcome: 8, Retryable: false, Reason: alive.body["reason"] });
    t.match(await callers.leave(2, { nodeId: 77 }), { status: 200, body: { left: true } });
    t.match(await callers.rpc(3, "Leave", { NodeId: 77 }), { Left: true, Outcome: 1 });
    t.match(await callers.leave(3, { nodeId: -1 }), {
      status: 400,
      body: { code: "invalid-argument" },
    });
    t.match(await callers.grpc.get(3)?.call("Cluster", "Leave", { NodeId: -1 }), { code: 3 });
  });

  await t.test("5.3 a drain that is late gives the role back; another one waits", async (t) => {
    const late = callers.leave(LEAVER);
    const roleOf = async (): Promise<string> => {
      const { body } = await callers.get(1, "/v1/cluster/membership");
      return (body["members"] as Json[]).find(({ nodeId }) => nodeId === LEAVER)?.[
        "role"
      ] as string;
    };
    // The node itself hears of it a moment later than who leads.
    const health = (): Promise<Reply> => callers.get(LEAVER, "/v1/cluster/health");
    const isLeaving = async (): Promise<boolean> => (await health()).status === 503;
    await eventually("it is leaving", isLeaving, roleOf);
    t.match(await health(), { body: { ready: false, reason: "leaving", localRole: "Leaving" } });
    // So does the one that is asked here, if it leads no more.
    await eventually("node 1 says so", async () => (await roleOf()) === "Leaving", roleOf);
    const other = await callers.leave(4);
    t.equal(other.status, 503);
    t.match(other.body, {
      ...{ left: false, outcome: "RefusedDrainInProgress", retryable: true, drained: false },
      ...{ code: "unavailable", reason: /\.$/ },
    });
    const ended = await late;
    t.equal(ended.status, 504);
    t.match(ended.body, {
      ...{ left: false, outcome: "DrainTimedOut", retryable: true, drained: false },
      ...{ code: "timeout", reason: /\.$/ },
    });
    t.equal(await roleOf(), "Voter");
  });

  await t.test("5.3 the same call again goes on until all are moved: drained", async (t) => {
    let ended: Reply | null = null;
    const isOut = async (): Promise<boolean> => {
      ended = await callers.leave(LEAVER);
      return ended.status === 200;
    };
    await eventually("it leaves", isOut, () => ended?.text ?? "");
    t.match(ended, {
      body: { left: true, outcome: "Committed", drained: true, retryable: false, reason: /\.$/ },
    });
    const again = { Left: true, Outcome: 1, Drained: false };
    t.match(await callers.rpc(LEAVER, "Leave", {}), again, "NotAMember");
    await callers.nodes.kill(LEAVER);
    await callers.nodes.settled(1, 3, [1, 2, 3, 4]);
  });
}

async function factors(t: Test, callers: PlacedCallers): Promise<void> {
  const { nodes } = callers;
  const path = "/v1/cluster/replication-factor";
  const leader = await nodes.metaLeader(1);
  const [other] = nodes.running.filter((id) => id !== leader) as [number];
  const partition = async (id: number): Promise<PartitionPlacement> => {
    const { partitions } = await nodes.placement(other);
    return partitions[id - 1] as PartitionPlacement;
  };
  /** As another node sees it, a moment later. */
  const effective = (id: number, factor: number): Promise<void> => {
    const check = async (): Promise<boolean> =>
      (await partition(id)).effectiveReplicationFactor === factor;
    return eventually(`partition ${id} is to have ${factor} voters`, check);
  };

  await t.test("5.4 the placement has its members, and lists what there is", async (t) => {
    const { body } = await callers.get(other, "/v1/cluster/placement");
    t.same(Object.keys(body), [
      ...["replicationFactor", "rebalancerEnabled", "initialized", "localEndpoint"],
      ...["hostedPartitionCount", "partitions"],
    ]);
    const [first] = body["partitions"] as Json[];
    t.same(Object.keys(first ?? {}), [
      ...["partitionId", "state", "generation", "effectiveReplicationFactor", "hostedLocally"],
      "replicas",
    ]);
    t.match(body, {
      ...{ replicationFactor: 3, rebalancerEnabled: true, initialized: true },
      ...{ localEndpoint: nodes.endpointOf(other), hostedPartitionCount: 3 },
    });
    t.match(first, {
      ...{ partitionId: 1, state: "Active", effectiveReplicationFactor: 3 },
      replicas: [1, 2, 3].map((id) => ({ endpoint: nodes.endpointOf(id), role: "Voter" })),
    });
    t.match(await callers.rpc(leader, "GetPlacement", {}), {
      ...{ ReplicationFactor: 3, RebalancerEnabled: true, HostedPartitionCount: 3 },
      Partitions: [{ PartitionId: 1, Replicas: [{ Role: 0 }, { Role: 0 }, { Role: 0 }] }],
    });
  });

  await t.test("5.4 who does not lead meta refuses and names who does", async (t) => {
    const refused = await callers.post(other, path, { partitionId: 2, replicationFactor: 1 });
    t.equal(refused.status, 409);
    t.match(refused.body, { success: false, status: "Refused", generation: 0, code: "refused" });
    t.match(refused.body["reason"], nodes.endpointOf(leader));
    for (const [partitionId, replicationFactor] of [
      [0, 3],
      [6, 3],
      [2, 10],
      [2, -1],
    ]) {
      const body = { partitionId, replicationFactor };
      t.match(await callers.post(leader, path, body), {
        status: 409,
        body: { success: false, status: "InvalidInput", generation: 0, reason: /./ },
      });
    }
  });

  await t.test("5.4 8.2 an override moves replicas one at a time; 0 clears it", async (t) => {
    const before = await partition(2);
    const listening = await Promise.all(nodes.running.map((id) => nodes.addresses(id)));
    const endpoints = listening.map(({ grpc }) => `http://${grpc}`).join();
    const words = ["--set-replication-factor", "1", "--partition", "2"];
    const ran = await runCli(["-c", endpoints, ...words]);
    const { generation } = before;
    const said = `Committed: partition 2 replication factor override set to 1 (generation ${generation + 1}).`;
    t.match(ran, { exit: 0, stdout: `${said}\n` });
    let most = 0;
    const isTrimmed = async (): Promise<boolean> => {
      const { replicas } = await partition(2);
      const moving = replicas.filter(({ role }) => role !== "Voter");
      most = Math.max(most, moving.length);
      return replicas.length === 1 && moving.length === 0;
    };
    await eventually("one voter is left", isTrimmed);
    t.ok(most <= 1, "one at a time");
    t.equal((await partition(2)).effectiveReplicationFactor, 1);
    const cleared = { partitionId: 2, replicationFactor: 0 };
    t.match(await callers.post(leader, path, cleared), { status: 200, body: { success: true } });
    await effective(2, 3);
    const most9 = await callers.rpc(leader, "SetReplicationFactor", {
      PartitionId: 3,
      ReplicationFactor: 9,
    });
    t.match(most9, { Success: true, Status: "Success" });
    // No more than there are voters.
    await effective(3, 5);
    const cleared3 = { partitionId: 3, replicationFactor: 0 };
    t.match(await callers.post(leader, path, cleared3), { body: { success: true } });
  });
}

t.test("five nodes, three replicas", async (t) => {
  const nodes = await PlacedNodes.start(5, 0, FLAGS);
  const callers = await new PlacedCallers(nodes).open();
  t.teardown(() => {
    callers.close();
    return nodes.end();
  });
  await t.test("placement (5.4)", (t) => factors(t, callers));
  await t.test("leave (5.3)", (t) => leaves(t, callers));
});
