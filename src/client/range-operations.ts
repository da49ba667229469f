/**
 * Key-range operations, as the client sends and reads them.
 *
 * Owns no state. May call the codec. Invariants: 1. Refusals are results. 2. Split and merge are
 * not repeated after a lost answer: read the ranges first.
 */
import * as cluster from "../proto/generated/cluster.js";
import * as keyvalues from "../proto/generated/keyvalues.js";
import { plain, type NoRequest, type Plain } from "./cluster-operations.js";
import { bigintOf, boolOf, intOf, jsonText, listOf, textOf, textOrNull } from "./json.js";
import { fromLanes } from "./numbers.js";
import type {
  MergeResult,
  RangeMap,
  RegisterResult,
  SplitResult,
  UnregisterResult,
} from "./range-shapes.js";
import { keySpaceQuery, type KeySpaceRequest } from "./routing-operation.js";

export interface SplitRequest extends KeySpaceRequest {
  readonly splitKey: string;
}

export const readRanges: Plain<KeySpaceRequest, RangeMap> = {
  ...plain,
  name: "ranges.list",
  path: "/Cluster/GetRanges",
  rest: {
    method: "GET",
    path: (request) => keySpaceQuery("/v1/ranges", request),
    body: () => null,
  },
  write({ keySpace }, writer) {
    cluster.GrpcGetRangesRequest.encode({ KeySpace: keySpace }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = cluster.GrpcGetRangesResponse.decode(reader, lengthBytes);
    return {
      initialized: message.Initialized,
      localEndpoint: message.LocalEndpoint,
      keySpaces: message.KeySpaces.map((space) => ({
        keySpace: space.KeySpace,
        routingMode: space.RoutingMode,
        descriptors: space.Descriptors.map((one) => ({
          startKey: one.StartKey,
          endKey: one.EndKey,
          partitionId: one.PartitionId,
          generation: fromLanes(one.Generation),
        })),
      })),
    };
  },
  fromRest(body) {
    return {
      initialized: boolOf(body, "initialized"),
      localEndpoint: textOf(body, "localEndpoint"),
      keySpaces: listOf(body, "keySpaces").map((space) => ({
        keySpace: textOf(space, "keySpace"),
        routingMode: textOf(space, "routingMode"),
        descriptors: listOf(space, "descriptors").map((one) => ({
          startKey: textOrNull(one, "startKey"),
          endKey: textOrNull(one, "endKey"),
          partitionId: intOf(one, "partitionId"),
          generation: bigintOf(one, "generation"),
        })),
      })),
    };
  },
};

export const registerRange: Plain<KeySpaceRequest, RegisterResult> = {
  ...plain,
  name: "ranges.register",
  path: "/KeyValuer/RegisterKeyRange",
  rest: {
    method: "POST",
    path: () => "/v1/ranges/register",
    body: (request) => jsonText(request),
    marker: "success",
  },
  write({ keySpace }, writer) {
    keyvalues.GrpcRegisterKeyRangeRequest.encode({ KeySpace: keySpace }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = keyvalues.GrpcRegisterKeyRangeResponse.decode(reader, lengthBytes);
    return {
      success: message.Success,
      status: message.Status,
      seeded: message.Seeded,
      routingMode: message.RoutingMode,
      descriptorCount: message.DescriptorCount,
      reason: message.Reason,
    };
  },
  fromRest(body) {
    return {
      success: boolOf(body, "success"),
      status: textOf(body, "status"),
      seeded: boolOf(body, "seeded"),
      routingMode: textOf(body, "routingMode"),
      descriptorCount: intOf(body, "descriptorCount"),
      reason: textOrNull(body, "reason") ?? "",
    };
  },
};

export const unregisterRange: Plain<KeySpaceRequest, UnregisterResult> = {
  ...plain,
  name: "ranges.unregister",
  path: "/KeyValuer/RemoveKeyRange",
  rest: {
    method: "POST",
    path: () => "/v1/ranges/unregister",
    body: (request) => jsonText(request),
    marker: "success",
  },
  write({ keySpace }, writer) {
    keyvalues.GrpcRemoveKeyRangeRequest.encode({ KeySpace: keySpace }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = keyvalues.GrpcRemoveKeyRangeResponse.decode(reader, lengthBytes);
    return {
      success: message.Success,
      status: message.Status,
      routingMode: message.RoutingMode,
      descriptorCount: message.DescriptorCount,
      reason: message.Reason,
    };
  },
  fromRest(body) {
    return {
      success: boolOf(body, "success"),
      status: textOf(body, "status"),
      routingMode: textOf(body, "routingMode"),
      descriptorCount: intOf(body, "descriptorCount"),
      reason: textOrNull(body, "reason") ?? "",
    };
  },
};

export const splitRange: Plain<SplitRequest, SplitResult> = {
  ...plain,
  repeat: () => false,
  name: "ranges.split",
  path: "/Cluster/SplitRange",
  rest: {
    method: "POST",
    path: () => "/v1/ranges/split",
    body: (request) => jsonText(request),
    marker: "success",
  },
  write({ keySpace, splitKey }, writer) {
    cluster.GrpcSplitRangeRequest.encode({ KeySpace: keySpace, SplitKey: splitKey }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = cluster.GrpcSplitRangeResponse.decode(reader, lengthBytes);
    return {
      success: message.Success,
      status: message.Status,
      determinate: message.Determinate,
      newPartitionId: message.NewPartitionId,
      newGeneration: fromLanes(message.NewGeneration),
      leaderHint: message.LeaderHint,
      reason: message.Reason,
    };
  },
  fromRest(body) {
    return {
      success: boolOf(body, "success"),
      status: textOf(body, "status"),
      determinate: boolOf(body, "determinate"),
      newPartitionId: intOf(body, "newPartitionId"),
      newGeneration: bigintOf(body, "newGeneration"),
      leaderHint: textOrNull(body, "leaderHint") ?? "",
      reason: textOrNull(body, "reason") ?? "",
    };
  },
};

export const mergeRanges: Plain<NoRequest, MergeResult> = {
  ...plain,
  repeat: () => false,
  name: "ranges.merge",
  path: "/Cluster/MergeRanges",
  rest: { method: "POST", path: () => "/v1/ranges/merge", body: () => null, marker: "success" },
  write: (_request, writer) => void cluster.GrpcMergeRangesRequest.encode({}, writer),
  fromGrpc(reader, lengthBytes) {
    const message = cluster.GrpcMergeRangesResponse.decode(reader, lengthBytes);
    return {
      success: message.Success,
      status: message.Status,
      determinate: message.Determinate,
      merges: message.Merges,
      leaderHint: message.LeaderHint,
      reason: message.Reason,
    };
  },
  fromRest(body) {
    return {
      success: boolOf(body, "success"),
      status: textOf(body, "status"),
      determinate: boolOf(body, "determinate"),
      merges: intOf(body, "merges"),
      leaderHint: textOrNull(body, "leaderHint") ?? "",
      reason: textOrNull(body, "reason") ?? "",
    };
  },
};
