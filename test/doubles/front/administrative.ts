/**
 * What the operations double of the front ends answers when a test says nothing: made-up,
 * recognisable contents.
 *
 * Plain data.
 */
import type { HealthAnswer } from "../../../src/operations/api/requests.js";
import type { Administrative } from "./operations.js";

export const READY: HealthAnswer = {
  ready: true,
  initialized: true,
  reason: null,
  localRole: "voter",
  hostedPartitions: 17,
  partitionsWithoutLeader: 0,
  version: "0.1.0",
  uptimeMs: 1234.5,
};

/** An open end and an empty one differ. */
const RANGES = [
  { startKey: null, endKey: "m", partitionId: 1, generation: 1 },
  { startKey: "m", endKey: "", partitionId: 2, generation: 2 },
];

const registered = {
  success: true,
  status: "Seeded",
  seeded: true,
  routingMode: "KeyRange",
  descriptorCount: 3,
  reason: "",
} as const;

export const ADMINISTRATIVE: Administrative = {
  "cluster.membership": {
    membershipVersion: 7,
    members: [
      { endpoint: "a:1", nodeId: 1, role: "voter", joinedVersion: 1 },
      { endpoint: "b:2", nodeId: 2, role: "learner", joinedVersion: 6 },
      { endpoint: "c:3", nodeId: 3, role: "leaving", joinedVersion: 2 },
    ],
    localRole: "voter",
    initialized: true,
  },
  "cluster.overview": {
    initialized: true,
    membershipVersion: 7,
    level: 1,
    localNodeId: 1,
    metaLeaderNodeId: 2,
    partitions: 17,
    partitionsWithoutLeader: 1,
    partitionsUnderReplicated: 2,
    nodes: [
      {
        nodeId: 1,
        endpoint: "a:1",
        clientEndpoint: "http://a:8083",
        role: "voter",
        ready: true,
        reason: "",
        version: "0.1.0",
        levelMin: 1,
        levelMax: 1,
        uptimeMs: 5000,
        ageMs: 0,
        hostedPartitions: 17,
        leadingPartitions: 6,
        requestsPerSecond: 12,
        failedPerSecond: 1,
      },
      {
        nodeId: 3,
        endpoint: "c:3",
        clientEndpoint: "",
        role: "leaving",
        ready: false,
        reason: "",
        version: "",
        levelMin: 0,
        levelMax: 0,
        uptimeMs: 0,
        ageMs: null,
        hostedPartitions: 0,
        leadingPartitions: 0,
        requestsPerSecond: 0,
        failedPerSecond: 0,
      },
    ],
    alarms: ["1 partition (4) has no leader.", "Node 3 (c:3) has not been heard."],
  },
  "cluster.placement": {
    replicationFactor: 3,
    rebalancerEnabled: true,
    initialized: true,
    localEndpoint: "a:1",
    hostedPartitionCount: 2,
    partitions: [
      {
        partitionId: 1,
        state: "Active",
        generation: 9,
        effectiveReplicationFactor: 3,
        hostedLocally: true,
        replicas: [
          { endpoint: "a:1", role: "Voter" },
          { endpoint: "b:2", role: "Learner" },
          { endpoint: "c:3", role: "Removing" },
        ],
      },
    ],
  },
  "cluster.finalize": {
    success: false,
    status: "RefusedMembers",
    level: 1,
    blockers: [{ nodeId: 3, endpoint: "c:3", version: "0.1.0", levelMin: 1, levelMax: 1 }],
    reason: "1 of 3 members do not support level 2.",
  },
  "cluster.routing": {
    initialized: true,
    schemaVersion: 1,
    hashAlgorithm: "svc.bucket-jump-xxh32-v1",
    prefixSeparator: "/",
    groupSeparator: "|",
    hashPoolSize: 16,
    hashPartitionOffset: 1,
    sequenceStorageKeyFormat: "__svc:sequences:{0}",
    reservedKeyPrefix: "__svc:",
    localEndpoint: "http://a",
    snapshotVersion: 12,
    coherent: true,
    keySpaces: [{ keySpace: "orders", routingMode: "KeyRange", ranges: RANGES }],
    leaders: [{ partitionId: 1, endpoint: "http://a" }],
  },
  "cluster.leave": {
    left: true,
    drained: false,
    outcome: "Committed",
    membershipVersion: 3,
    retryable: false,
    reason: "removal committed",
  },
  "cluster.setReplicationFactor": {
    success: true,
    status: "Success",
    generation: 5,
    reason: "",
  },
  "ranges.list": {
    initialized: true,
    localEndpoint: "http://a",
    keySpaces: [
      {
        keySpace: "orders",
        routingMode: "KeyRange",
        descriptors: RANGES.map((range, at) => ({ ...range, keys: at === 0 ? null : 41 })),
        moves: [
          {
            ...{ moveId: 12, kind: "split", startKey: "m", endKey: "", source: 2, target: 17 },
            ...{ phase: "copying", attempt: 3, reason: "none" },
          },
        ],
        leaving: true,
      },
    ],
  },
  "ranges.register": registered,
  "ranges.unregister": registered,
  "ranges.split": {
    success: true,
    status: "Succeeded",
    determinate: true,
    newPartitionId: 17,
    newGeneration: 3,
    leaderHint: "http://a",
    reason: "",
  },
  "ranges.merge": {
    success: true,
    status: "Completed",
    determinate: false,
    merges: 2,
    leaderHint: "h",
    reason: "r",
  },
};
