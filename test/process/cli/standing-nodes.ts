/** What stand-in nodes of one cluster say of it to whoever asks how it is. */
import * as cluster from "../../../src/proto/generated/cluster.js";
import { HealthCheckResponse, ServingStatus } from "../../../src/proto/generated/health.js";
import { reply, type StandIn } from "../../doubles/server/stand-in.js";

const PARTITIONS = [1, 2, 3, 4, 5, 6];
/** Who leads partitions 0 to 6 on a good day. */
export const LEADERS = [0, 0, 1, 2, 0, 1, 2];
export const VOTER = 1;
export const LEARNER = 0;

export interface Day {
  /** Index of the leader of each partition, as this node says; null = not known. */
  readonly leaders?: readonly (number | null)[];
  readonly ready?: boolean;
  readonly version?: number;
  readonly roles?: readonly number[];
  /** Indexes of the nodes with a replica of each partition 1 to 6; none = full replication. */
  readonly replicas?: readonly (readonly number[])[];
  /** Indexes of nodes that get a replica, by partition. */
  readonly arriving?: Readonly<Record<number, number>>;
  /** Indexes of nodes of which it tells where their clients go. */
  readonly listed?: readonly number[];
  /** What the node tells of all others. */
  readonly alarms?: readonly string[];
}

const peer = (index: number): string => `127.0.0.1:${9001 + index}`;

/** Sets what the node of `nodes` at `index` says on such a day. */
export function tellNode(nodes: readonly StandIn[], index: number, day: Day = {}): void {
  const { leaders = LEADERS, ready = true, version = 7, roles = [VOTER, VOTER, VOTER] } = day;
  const node = nodes[index] as StandIn;
  node.answers.set(
    "Check",
    reply(HealthCheckResponse, {
      status: ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING,
    }),
  );
  node.answers.set(
    "GetMembership",
    reply(cluster.GrpcGetMembershipResponse, {
      MembershipVersion: version,
      LocalRole: roles[index] ?? VOTER,
      Initialized: true,
      Members: roles.map((Role, at) => ({ Endpoint: peer(at), NodeId: at + 1, Role })),
    }),
  );
  node.answers.set(
    "GetPlacement",
    reply(cluster.GrpcGetPlacementResponse, {
      ReplicationFactor: day.replicas === undefined ? 0 : 3,
      RebalancerEnabled: day.replicas !== undefined,
      Initialized: true,
      LocalEndpoint: peer(index),
      HostedPartitionCount: 6,
      Partitions: PARTITIONS.map((id, at) => ({
        PartitionId: id,
        State: "Active",
        Generation: 1,
        EffectiveReplicationFactor: day.replicas === undefined ? 0 : 3,
        HostedLocally: true,
        Replicas: [
          ...(day.replicas?.[at] ?? []).map((who) => ({ Endpoint: peer(who), Role: 0 })),
          ...[day.arriving?.[id]].flatMap((who) => {
            return who === undefined ? [] : [{ Endpoint: peer(who), Role: 1 }];
          }),
        ],
      })),
    }),
  );
  const listed = day.listed?.map((at) => {
    return { NodeId: at + 1, Endpoint: peer(at), ClientEndpoint: nodes[at]?.endpoint ?? "" };
  });
  if (day.alarms === undefined && listed === undefined) node.answers.delete("GetOverview");
  else {
    const own = { NodeId: index + 1, Version: "0.7", UptimeMs: 61_000, Reason: "catching-up" };
    node.answers.set(
      "GetOverview",
      reply(cluster.GrpcGetOverviewResponse, {
        LocalNodeId: index + 1,
        Nodes: listed ?? [{ NodeId: 77 }, own],
        Alarms: day.alarms ?? [],
      }),
    );
  }
  node.answers.set(
    "GetRoutingMetadata",
    reply(cluster.GrpcGetRoutingMetadataResponse, {
      Initialized: true,
      SchemaVersion: 1,
      LocalEndpoint: node.endpoint,
      SnapshotVersion: 4,
      Coherent: true,
      Leaders: leaders.map((who, id) => ({
        PartitionId: id,
        Endpoint: who === null ? "" : (nodes[who]?.endpoint ?? ""),
      })),
    }),
  );
}
