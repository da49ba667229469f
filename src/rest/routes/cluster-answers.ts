/**
 * What is read of a cluster: shapes for the document, writers for the wire (contract 3.5, 3.6,
 * 5.1).
 *
 * Invariants: 1. Health sends its ordinary body also with 503. 2. Shape and writer list the same
 * members.
 */
import type {
  HealthAnswer,
  KeySpaceView,
  LocalRole,
  OperationsPort,
} from "../../operations/api/requests.js";
import type { Exchange } from "../http/exchange.js";
import { listText, quoted, quotedOrNull } from "../json/json-text.js";
import type { Shape } from "../http/shapes.js";

const ROLE_NAMES: Readonly<Record<LocalRole, string>> = {
  learner: "Learner",
  voter: "Voter",
  leaving: "Leaving",
  "not-member": "NotMember",
};

export const RANGE_SHAPE: Shape = {
  object: {
    startKey: "text-or-null",
    endKey: "text-or-null",
    partitionId: "int32",
    generation: "int64",
  },
};

export function rangeText(range: KeySpaceView["ranges"][number]): string {
  return (
    `{"startKey":${quotedOrNull(range.startKey)},"endKey":${quotedOrNull(range.endKey)},` +
    `"partitionId":${range.partitionId},"generation":${range.generation}}`
  );
}

export const HEALTH: Shape = {
  object: {
    ready: "bool",
    initialized: "bool",
    reason: "text-or-null",
    localRole: "text",
    hostedPartitions: "int32",
    partitionsWithoutLeader: "int32",
    version: "text",
    uptimeMs: "int64",
  },
};

/** Of /v1/cluster/health, as JSON. */
export function healthText(answer: HealthAnswer): string {
  return (
    `{"ready":${answer.ready},"initialized":${answer.initialized},` +
    `"reason":${quotedOrNull(answer.reason)},"localRole":"${ROLE_NAMES[answer.localRole]}",` +
    `"hostedPartitions":${answer.hostedPartitions},` +
    `"partitionsWithoutLeader":${answer.partitionsWithoutLeader},` +
    `"version":${quoted(answer.version)},"uptimeMs":${Math.floor(answer.uptimeMs)}}`
  );
}

export function answerHealth(exchange: Exchange, port: OperationsPort): void {
  const answer = port.health();
  exchange.json(answer.ready ? 200 : 503, healthText(answer));
}

export const MEMBERSHIP: Shape = {
  object: {
    membershipVersion: "int64",
    members: {
      list: {
        object: { endpoint: "text", nodeId: "int32", role: "text", joinedVersion: "int64" },
      },
    },
    localRole: "text",
    initialized: "bool",
  },
};

export function answerMembership(exchange: Exchange, port: OperationsPort): void {
  const answer = port.membership();
  const members = listText(
    answer.members,
    (member) =>
      `{"endpoint":${quoted(member.endpoint)},"nodeId":${member.nodeId},` +
      `"role":"${ROLE_NAMES[member.role]}","joinedVersion":${member.joinedVersion}}`,
  );
  exchange.json(
    200,
    `{"membershipVersion":${answer.membershipVersion},"members":${members},` +
      `"localRole":"${ROLE_NAMES[answer.localRole]}","initialized":${answer.initialized}}`,
  );
}

export const PLACEMENT: Shape = {
  object: {
    replicationFactor: "int32",
    rebalancerEnabled: "bool",
    initialized: "bool",
    localEndpoint: "text",
    hostedPartitionCount: "int32",
    partitions: {
      list: {
        object: {
          partitionId: "int32",
          state: "text",
          generation: "int64",
          effectiveReplicationFactor: "int32",
          hostedLocally: "bool",
          replicas: { list: { object: { endpoint: "text", role: "text" } } },
        },
      },
    },
  },
};

export function answerPlacement(exchange: Exchange, port: OperationsPort): void {
  const answer = port.placement();
  const partitions = listText(answer.partitions, (partition) => {
    const replicas = listText(
      partition.replicas,
      (replica) => `{"endpoint":${quoted(replica.endpoint)},"role":"${replica.role}"}`,
    );
    return (
      `{"partitionId":${partition.partitionId},"state":"${partition.state}",` +
      `"generation":${partition.generation},` +
      `"effectiveReplicationFactor":${partition.effectiveReplicationFactor},` +
      `"hostedLocally":${partition.hostedLocally},"replicas":${replicas}}`
    );
  });
  exchange.json(
    200,
    `{"replicationFactor":${answer.replicationFactor},` +
      `"rebalancerEnabled":${answer.rebalancerEnabled},"initialized":${answer.initialized},` +
      `"localEndpoint":${quoted(answer.localEndpoint)},` +
      `"hostedPartitionCount":${answer.hostedPartitionCount},"partitions":${partitions}}`,
  );
}

export const ROUTING: Shape = {
  object: {
    initialized: "bool",
    schemaVersion: "int32",
    hashAlgorithm: "text",
    prefixSeparator: "text",
    groupSeparator: "text",
    hashPoolSize: "int32",
    hashPartitionOffset: "int32",
    sequenceStorageKeyFormat: "text",
    reservedKeyPrefix: "text",
    localEndpoint: "text",
    snapshotVersion: "int64",
    coherent: "bool",
    keySpaces: {
      list: { object: { keySpace: "text", routingMode: "text", ranges: { list: RANGE_SHAPE } } },
    },
    leaders: { list: { object: { partitionId: "int32", endpoint: "text" } } },
  },
};

export function answerRouting(exchange: Exchange, port: OperationsPort, keySpace: string): void {
  const answer = port.routing(keySpace);
  const keySpaces = listText(
    answer.keySpaces,
    (space) =>
      `{"keySpace":${quoted(space.keySpace)},"routingMode":"${space.routingMode}",` +
      `"ranges":${listText(space.ranges, rangeText)}}`,
  );
  const leaders = listText(
    answer.leaders,
    (leader) => `{"partitionId":${leader.partitionId},"endpoint":${quoted(leader.endpoint)}}`,
  );
  exchange.json(
    200,
    `{"initialized":${answer.initialized},"schemaVersion":${answer.schemaVersion},` +
      `"hashAlgorithm":${quoted(answer.hashAlgorithm)},` +
      `"prefixSeparator":${quoted(answer.prefixSeparator)},` +
      `"groupSeparator":${quoted(answer.groupSeparator)},` +
      `"hashPoolSize":${answer.hashPoolSize},"hashPartitionOffset":${answer.hashPartitionOffset},` +
      `"sequenceStorageKeyFormat":${quoted(answer.sequenceStorageKeyFormat)},` +
      `"reservedKeyPrefix":${quoted(answer.reservedKeyPrefix)},` +
      `"localEndpoint":${quoted(answer.localEndpoint)},` +
      `"snapshotVersion":${answer.snapshotVersion},"coherent":${answer.coherent},` +
      `"keySpaces":${keySpaces},"leaders":${leaders}}`,
  );
}
