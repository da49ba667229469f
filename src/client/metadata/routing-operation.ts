/**
 * The routing metadata, as the client asks for it and reads it.
 */
import * as messages from "../../proto/generated/cluster.js";
import { plain, type Plain } from "./cluster-operations.js";
import type { RoutingMetadata } from "./cluster-shapes.js";
import { bigintOf, boolOf, intOf, listOf, textOf, textOrNull } from "../values/json.js";
import { fromLanes } from "../values/numbers.js";

export interface KeySpaceRequest {
  /** "" = all. */
  readonly keySpace: string;
}

/** Query of the paths that take an optional filter. */
export function keySpaceQuery(path: string, { keySpace }: KeySpaceRequest): string {
  return keySpace === "" ? path : `${path}?keySpace=${encodeURIComponent(keySpace)}`;
}

export const readRouting: Plain<KeySpaceRequest, RoutingMetadata> = {
  ...plain,
  name: "cluster.routing",
  reads: true,
  path: "/Cluster/GetRoutingMetadata",
  rest: {
    method: "GET",
    path: (request) => keySpaceQuery("/v1/cluster/routing", request),
    body: () => null,
  },
  write({ keySpace }, writer) {
    messages.GrpcGetRoutingMetadataRequest.encode({ KeySpace: keySpace }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcGetRoutingMetadataResponse.decode(reader, lengthBytes);
    return {
      initialized: message.Initialized,
      schemaVersion: message.SchemaVersion,
      hashAlgorithm: message.HashAlgorithm,
      prefixSeparator: message.PrefixSeparator,
      groupSeparator: message.GroupSeparator,
      hashPoolSize: message.HashPoolSize,
      hashPartitionOffset: message.HashPartitionOffset,
      sequenceStorageKeyFormat: message.SequenceStorageKeyFormat,
      reservedKeyPrefix: message.ReservedKeyPrefix,
      localEndpoint: message.LocalEndpoint,
      snapshotVersion: fromLanes(message.SnapshotVersion),
      coherent: message.Coherent,
      keySpaces: message.KeySpaces.map((space) => ({
        keySpace: space.KeySpace,
        routingMode: space.RoutingMode,
        ranges: space.Ranges.map((range) => ({
          startKey: range.StartKey,
          endKey: range.EndKey,
          partitionId: range.PartitionId,
          generation: fromLanes(range.Generation),
        })),
      })),
      leaders: message.Leaders.map((leader) => ({
        partitionId: leader.PartitionId,
        endpoint: leader.Endpoint,
      })),
    };
  },
  fromRest(body) {
    return {
      initialized: boolOf(body, "initialized"),
      schemaVersion: intOf(body, "schemaVersion"),
      hashAlgorithm: textOf(body, "hashAlgorithm"),
      prefixSeparator: textOf(body, "prefixSeparator"),
      groupSeparator: textOf(body, "groupSeparator"),
      hashPoolSize: intOf(body, "hashPoolSize"),
      hashPartitionOffset: intOf(body, "hashPartitionOffset"),
      sequenceStorageKeyFormat: textOf(body, "sequenceStorageKeyFormat"),
      reservedKeyPrefix: textOf(body, "reservedKeyPrefix"),
      localEndpoint: textOf(body, "localEndpoint"),
      snapshotVersion: bigintOf(body, "snapshotVersion"),
      coherent: boolOf(body, "coherent"),
      keySpaces: listOf(body, "keySpaces").map((space) => ({
        keySpace: textOf(space, "keySpace"),
        routingMode: textOf(space, "routingMode"),
        ranges: listOf(space, "ranges").map((range) => ({
          startKey: textOrNull(range, "startKey"),
          endKey: textOrNull(range, "endKey"),
          partitionId: intOf(range, "partitionId"),
          generation: bigintOf(range, "generation"),
        })),
      })),
      leaders: listOf(body, "leaders").map((leader) => ({
        partitionId: intOf(leader, "partitionId"),
        endpoint: textOf(leader, "endpoint"),
      })),
    };
  },
};
