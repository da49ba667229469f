/**
 * Five real nodes with a factor of three: who has what from the founding on, the same on every node and through every
 * front end, and that a node answers for what it does not host.
 */
import t from "tap";
import { SvcClient } from "../../../src/client/mod.js";
import { runCli } from "../cli/programs.js";
import { endAll } from "../cluster/server-process.js";
import { GrpcCaller, type Json } from "../contract/wire.js";
import { callUntil } from "../net/processes.js";
import { type Placement, PlacedNodes, eventually } from "./placed-nodes.js";

t.setTimeout(240_000);
t.teardown(endAll);

const PARTITIONS = 10;
const SIZE = `--initial-cluster-partitions=${PARTITIONS}`;
const ROLES = ["Voter", "Learner", "Removing"];

/** Of JSON and of the client library, whose generations are bigints. */
type Said = Pick<Placement, "replicationFactor" | "rebalancerEnabled"> & {
  readonly partitions: readonly {
    readonly partitionId: number;
    readonly generation: number | bigint;
    readonly replicas: readonly object[];
  }[];
};

/** What every node says alike. */
function common(answer: Said): object {
  const { replicationFactor, rebalancerEnabled, partitions } = answer;
  const lists = partitions.map(({ partitionId, generation, replicas }) => {
    return { partitionId, generation: Number(generation), replicas };
  });
  return { replicationFactor, rebalancerEnabled, lists };
}

/** A REST answer of the same members, from the fields of gRPC. */
function fromGrpc(fields: Json): object {
  const partitions = fields["Partitions"] as Json[];
  const lists = partitions.map((partition) => ({
    partitionId: partition["PartitionId"],
    generation: Number(partition["Generation"]),
    replicas: (partition["Replicas"] as Json[]).map((replica) => ({
      endpoint: replica["Endpoint"],
      role: ROLES[Number(replica["Role"] ?? 0)],
    })),
  }));
  const { ReplicationFactor: replicationFactor, RebalancerEnabled: rebalancerEnabled } = fields;
  return { replicationFactor, rebalancerEnabled, lists };
}

t.test("5.4 a cluster is founded with a factor of three", async (t) => {
  const nodes = await PlacedNodes.start(5, 0, ["--raft-replication-factor=3", SIZE]);
  t.teardown(() => nodes.end());

  await t.test("the founders take turns, and every front end of every node says so", async (t) => {
    const first = await nodes.placement(1);
    t.match(first, { replicationFactor: 3, rebalancerEnabled: true });
    t.equal(first.partitions.length, PARTITIONS);
    for (const { effectiveReplicationFactor, replicas } of first.partitions) {
      t.equal(effectiveReplicationFactor, 3);
      t.equal(new Set(replicas.map(({ endpoint }) => endpoint)).size, 3, "on three nodes");
      t.ok(replicas.every(({ role }) => role === "Voter"));
    }
    t.same([...(await nodes.counts(1)).values()], [6, 6, 6, 6, 6], "as many on each");
    const wanted = common(first);
    for (const id of nodes.running) {
      const placement = await nodes.placement(id);
      t.same(common(placement), wanted, `REST at node ${id}`);
      t.equal(placement.hostedPartitionCount, 6);
      const hosted = placement.partitions.filter(({ hostedLocally }) => hostedLocally);
      const own = nodes.endpointOf(id);
      const listed = placement.partitions.filter(({ replicas }) => {
        return replicas.some(({ endpoint }) => endpoint === own);
      });
      t.same(hosted, listed, "what is listed is hosted");
      const { grpc } = await nodes.addresses(id);
      const caller = new GrpcCaller(grpc);
      t.same(fromGrpc((await caller.call("Cluster", "GetPlacement", {})).fields), wanted);
      caller.close();
      t.match(await nodes.call(id, "/v1/cluster/health"), {
        reason: null,
        ready: true,
        hostedPartitions: 7,
      });
    }
    const { grpc } = await nodes.addresses(4);
    const client = new SvcClient({ endpoints: `http://${grpc}` });
    t.same(common(await client.cluster.placement()), wanted, "the client library");
    await client.close();
    const shown = await runCli(["-c", `http://${grpc}`, "--format", "json", "--cluster-placement"]);
    t.same(common(JSON.parse(shown.stdout) as Placement), wanted, "svc-cli");
    const table = await runCli(["-c", `http://${grpc}`], {}, "cluster placement\n");
    t.match(
      table.stdout,
      /\nReplication factor 3 \(per-partition placement\) {2}Rebalancer enabled {2}Node \S+ hosts 6 of 10 partitions\n/,
    );
    for (const id of nodes.running) {
      t.match(
        table.stdout,
        new RegExp(`\n${nodes.endpointOf(id)} +6 +6 +0 +0\n`),
        "counts by node",
      );
    }
    const ask = () => runCli(["-c", `http://${grpc}`, "--cluster-status"]);
    let status = await ask();
    // Until all have heard of each other it says what is missing.
    for (let tries = 0; tries < 30 && status.exit !== 0; tries++) status = await ask();
    t.match(status, {
      exit: 0,
      stdout: /Replication: 3 replicas of each partition; rebalancer enabled/,
    });
  });

  await t.test("a node answers for partitions that it does not host", async (t) => {
    const { partitions } = await nodes.placement(1);
    const asked = new Map<number, number>();
    for (let at = 0; asked.size < PARTITIONS && at < 500; at++) {
      const key = `key/${at}/x`;
      const got = (await nodes.call(1, "/v1/kv/try-get", { key })) as {
        readonly route?: { readonly partitionId: number };
      };
      const id = got.route?.partitionId ?? 0;
      const placed = partitions.find(({ partitionId }) => partitionId === id);
      if (placed === undefined || asked.has(id)) continue;
      const hosts = placed.replicas.map(({ endpoint }) => nodes.idOf(endpoint));
      const strangers = nodes.running.filter((node) => !hosts.includes(node));
      const [writer = 0, reader = 0] = strangers;
      const set = await callUntil(nodes.node(writer), "/v1/kv/try-set", { key, value: "AQ==" }, 0);
      t.equal(set.type, 0, `partition ${id} written through node ${writer}`);
      const read = await callUntil(nodes.node(reader), "/v1/kv/try-get", { key }, 3);
      t.match(read, { type: 3, value: "AQ==", route: { partitionId: id } });
      asked.set(id, writer);
    }
    t.equal(asked.size, PARTITIONS, "every partition was asked for elsewhere");
  });

  await t.test("a node that is started with another factor tells so, and goes on", async (t) => {
    await nodes.kill(5);
    const again = nodes.launch(5, ["--raft-replication-factor=2", SIZE]);
    const { http } = await again.ready();
    const said = async (): Promise<string> => (await fetch(`http://${http}/readyz?verbose`)).text();
    const words = /--raft-replication-factor is 2, that of the cluster is 3/;
    await eventually("it is told", async () => words.test(await said()), said);
    t.match(again.log, /"?given"?[=:]"?2"?.*committed"?[=:]"?3/);
    t.match(await nodes.placement(5), { replicationFactor: 3, hostedPartitionCount: 6 });
  });
});
