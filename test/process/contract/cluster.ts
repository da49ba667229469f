/** Contract 3.5, 5, 6.1 and 6.4 on a cluster of one: health, membership, leave, placement, routing. */
import type { Test } from "tap";
import { VERSION } from "../../../src/base/generated/version.js";
import type { Node } from "./node.js";
import { http1, post } from "./wire.js";

/** Partition (of 16) of each routed key, from the vectors of 6.1. */
const VECTORS: readonly (readonly ["kv" | "lock" | "sequence", string, number])[] = [
  ["kv", "a", 15],
  ["kv", "a/1", 15],
  ["kv", "abc", 3],
  ["kv", "orders/42/7", 9],
  ["kv", "users|eu/1", 8],
  ["kv", "café/x", 14],
  ["kv", "日本/東京/x", 16],
  ["kv", `${"a".repeat(40)}|x/1`, 8],
  ["lock", "orders/42", 9],
  ["lock", "日本/東京", 16],
  ["sequence", "orders", 14],
];

export async function cluster(t: Test, node: Node): Promise<void> {
  const { http, grpc } = node;
  const get = (path: string) => http1(http, path);

  await t.test("5.1 health", async (t) => {
    const health = await get("/v1/cluster/health");
    t.equal(health.status, 200);
    t.same(Object.keys(health.body).sort(), [
      "hostedPartitions",
      "initialized",
      "localRole",
      "partitionsWithoutLeader",
      "ready",
      "reason",
      "uptimeMs",
      "version",
    ]);
    t.match(health.body, {
      ready: true,
      initialized: true,
      reason: null,
      localRole: "Voter",
      hostedPartitions: 17,
      partitionsWithoutLeader: 0,
      version: VERSION,
      uptimeMs: Number,
    });
  });

  await t.test("5.2 membership, 5.3 leave", async (t) => {
    const membership = (await get("/v1/cluster/membership")).body;
    t.same(Object.keys(membership).sort(), [
      "initialized",
      "localRole",
      "members",
      "membershipVersion",
    ]);
    t.match(membership, {
      membershipVersion: 1,
      localRole: "Voter",
      initialized: true,
      members: [{ endpoint: /^127\.0\.0\.1:\d+$/, nodeId: 1, role: "Voter", joinedVersion: 1 }],
    });
    const leave = await post(http, "/v1/cluster/leave", {});
    t.equal(leave.status, 409);
    t.match(leave.body, {
      code: "refused",
      type: "urn:svc:problem:refused",
      status: 409,
      left: false,
      drained: false,
      outcome: "RefusedInsufficientVoters",
      membershipVersion: 1,
      retryable: false,
      reason: /\.$/,
    });
    t.match(await grpc.call("Cluster", "Leave", {}), {
      code: 0,
      fields: {
        Left: false,
        Outcome: 2,
        MembershipVersion: "1",
        Retryable: false,
        Reason: leave.body["reason"],
      },
    });
    t.match((await grpc.call("Cluster", "GetMembership", {})).fields, {
      MembershipVersion: "1",
      Members: [{ Endpoint: /^127\.0\.0\.1:\d+$/, NodeId: 1, Role: 1, JoinedVersion: "1" }],
      LocalRole: 1,
      Initialized: true,
    });
    t.equal((await get("/v1/cluster/health")).status, 200, "it serves on");
  });

  await t.test("5.4 placement and replication factor", async (t) => {
    const placement = (await get("/v1/cluster/placement")).body;
    t.match(placement, {
      replicationFactor: 0,
      rebalancerEnabled: false,
      initialized: true,
      localEndpoint: /^127\.0\.0\.1:\d+$/,
      hostedPartitionCount: 16,
    });
    const partitions = placement["partitions"] as Record<string, unknown>[];
    t.equal(partitions.length, 16);
    t.match(partitions[0], {
      partitionId: 1,
      state: "Active",
      generation: Number,
      effectiveReplicationFactor: 0,
      hostedLocally: true,
      replicas: [],
    });
    const factor = (body: object | string) => post(http, "/v1/cluster/replication-factor", body);
    const set = await factor({ partitionId: 3, replicationFactor: 3 });
    t.equal(set.status, 200);
    t.same(Object.keys(set.body).sort(), ["generation", "reason", "status", "success"]);
    t.match(set.body, {
      success: true,
      status: "Success",
      generation: (partitions[2]?.["generation"] as number) + 1,
    });
    const one = ((await get("/v1/cluster/placement")).body["partitions"] as unknown[])[2];
    t.match(one, { effectiveReplicationFactor: 1 }, "min(override, voters)");
    const setAt = Number(set.body["generation"]);
    // The partition is listed next, which is one more change of its record.
    const within = (generation: unknown, from: number): void => {
      t.ok([from, from + 1].includes(Number(generation)), `${String(generation)} after ${from}`);
    };
    within((one as Record<string, unknown>)["generation"], setAt);
    t.match(one, { replicas: [{ endpoint: placement["localEndpoint"], role: "Voter" }] });
    const again = (await factor({ partitionId: 3, replicationFactor: 3 })).body;
    t.match(again, { success: true }, "the present value");
    within(again["generation"], setAt);
    t.match((await grpc.call("Cluster", "GetPlacement", {})).fields, {
      Partitions: [{}, {}, { EffectiveReplicationFactor: 1, Replicas: [{ Role: 0 }] }],
    });
    const most = { PartitionId: 3, ReplicationFactor: 9 };
    const raised = (await grpc.call("Cluster", "SetReplicationFactor", most)).fields;
    t.match(raised, { Success: true, Status: "Success" });
    within(raised["Generation"], setAt + 1);
    t.match((await factor({ partitionId: 3, replicationFactor: 0 })).body, { success: true });
    const cleared = ((await get("/v1/cluster/placement")).body["partitions"] as unknown[])[2];
    t.match(cleared, { effectiveReplicationFactor: 0, replicas: { length: 0 } }, "0 clears");
    for (const [partitionId, replicationFactor] of [
      [0, 1],
      [-1, 1],
      [17, 1],
      [1, 10],
      [1, -1],
    ]) {
      const refused = await factor({ partitionId, replicationFactor });
      t.equal(refused.status, 409);
      t.match(refused.body, {
        success: false,
        status: "InvalidInput",
        generation: 0,
        code: "refused",
        reason: /./,
      });
    }
    t.match(await factor('{"partitionId":1.5}'), { status: 400, body: { code: "invalid-number" } });
    t.match(await factor('{"partitionId":"1"}'), { status: 400, body: { code: "wrong-type" } });
    t.match((await grpc.call("Cluster", "SetReplicationFactor", { PartitionId: 99 })).fields, {
      Success: false,
      Status: "InvalidInput",
    });
    const placed = (await grpc.call("Cluster", "GetPlacement", {})).fields;
    t.match(placed, {
      HostedPartitionCount: 16,
      Partitions: [{ PartitionId: 1, State: "Active" }],
    });
  });

  await t.test("5.7 overview", async (t) => {
    const { status, body } = await get("/v1/cluster/overview");
    t.equal(status, 200);
    t.same(Object.keys(body), [
      ...["initialized", "membershipVersion", "level", "localNodeId", "metaLeaderNodeId"],
      ...["partitions", "partitionsWithoutLeader", "partitionsUnderReplicated", "nodes", "alarms"],
    ]);
    t.match(body, {
      ...{ initialized: true, level: 2, localNodeId: 1, metaLeaderNodeId: 1, partitions: 17 },
      ...{ partitionsWithoutLeader: 0, partitionsUnderReplicated: 0, alarms: { length: 0 } },
    });
    const [node] = body["nodes"] as Record<string, unknown>[];
    t.same(Object.keys(node ?? {}), [
      ...["nodeId", "endpoint", "clientEndpoint", "role", "ready", "reason", "version"],
      ...["levelMin", "levelMax", "uptimeMs", "ageMs", "hostedPartitions", "leadingPartitions"],
      ...["requestsPerSecond", "failedPerSecond"],
    ]);
    t.match(node, {
      ...{ nodeId: 1, endpoint: /^127\.0\.0\.1:\d+$/, role: "Voter", ready: true, reason: "" },
      ...{ version: /^\d+\.\d+\.\d+/, levelMin: 1, levelMax: 2, uptimeMs: Number, ageMs: 0 },
      ...{ hostedPartitions: 17, leadingPartitions: 17 },
    });
    t.match((await grpc.call("Cluster", "GetOverview", {})).fields, {
      ...{ Initialized: true, LocalNodeId: 1, Partitions: 17 },
      Nodes: [{ NodeId: 1, Role: 1, Ready: true, AgeMs: "0", LeadingPartitions: 17 }],
    });
  });

  await t.test("6.1 vectors by route hint", async (t) => {
    const paths = {
      kv: "/v1/kv/try-get",
      lock: "/v1/locks/get-info",
      sequence: "/v1/sequences/get",
    };
    const member = { kv: "key", lock: "resource", sequence: "name" };
    for (const [api, name, partitionId] of VECTORS) {
      const answer = await post(http, paths[api], { [member[api]]: name });
      t.match(answer.body["route"], { partitionId, generation: 0 }, `${api} ${name}`);
    }
  });

  await t.test("6.4 routing metadata", async (t) => {
    const routing = (await get("/v1/cluster/routing")).body;
    t.match(routing, {
      initialized: true,
      schemaVersion: 1,
      hashAlgorithm: "svc.bucket-jump-xxh32-v1",
      prefixSeparator: "/",
      groupSeparator: "|",
      hashPoolSize: 16,
      hashPartitionOffset: 1,
      sequenceStorageKeyFormat: "__svc:sequences:{0}",
      reservedKeyPrefix: "__svc:",
      localEndpoint: node.grpcUrl,
      snapshotVersion: Number,
      coherent: true,
      keySpaces: [],
    });
    t.equal(Object.keys(routing).length, 14);
    const leaders = routing["leaders"] as object[];
    t.equal(leaders.length, 17);
    t.match(leaders[16], { partitionId: 16, endpoint: node.grpcUrl });
    t.match((await grpc.call("Cluster", "GetRoutingMetadata", {})).fields, {
      Initialized: true,
      HashPoolSize: 16,
      GroupSeparator: "|",
      Leaders: Array.from({ length: 17 }, (_, id) => ({ PartitionId: id, Endpoint: node.grpcUrl })),
    });
    t.match(await get("/v1/cluster/routing?keyspace=x"), {
      status: 400,
      body: { code: "invalid-argument" },
    });
  });
}
