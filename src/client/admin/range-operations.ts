/**
 * Key-range operations, as the client sends and reads them.
 *
 * Invariants: 1. Refusals are results. 2. Split and merge are not repeated after a lost answer:
 * read the ranges first.
 */
import type { MessageCodec } from "../../proto/codec.js";
import * as cluster from "../../proto/generated/cluster.js";
import * as keyvalues from "../../proto/generated/keyvalues.js";
import { plain, type NoRequest, type Plain } from "../metadata/cluster-operations.js";
import {
  bigintOf,
  boolOf,
  intOf,
  jsonText,
  listOf,
  textOf,
  textOrNull,
  type JsonObject,
} from "../values/json.js";
import { fromLanes } from "../values/numbers.js";
import type {
  MergeResult,
  RangeMap,
  RegisterResult,
  SplitResult,
  UnregisterResult,
} from "./range-shapes.js";
import { keySpaceQuery, type KeySpaceRequest } from "../metadata/routing-operation.js";

export interface SplitRequest extends KeySpaceRequest {
  readonly splitKey: string;
}

export const readRanges: Plain<KeySpaceRequest, RangeMap> = {
  ...plain,
  name: "ranges.list",
  reads: true,
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

/** The members that answers of register and unregister have in common. */
interface SwitchMessage {
  readonly Success: boolean;
  readonly Status: string;
  readonly RoutingMode: string;
  readonly DescriptorCount: number;
  readonly Reason: string;
}

/** Register and unregister: the same request, and answers that differ in one member. */
function routingSwitch<Message extends SwitchMessage, More extends object>(
  name: string,
  path: readonly [grpc: string, rest: string],
  request: MessageCodec<{ KeySpace: string }>,
  response: MessageCodec<Message>,
  more: { fromGrpc(message: Message): More; fromRest(body: JsonObject): More },
): Plain<KeySpaceRequest, UnregisterResult & More> {
  return {
    ...plain,
    name,
    path: path[0],
    rest: {
      method: "POST",
      path: () => path[1],
      body: (asked) => jsonText(asked),
      marker: "success",
    },
    write({ keySpace }, writer) {
      request.encode({ KeySpace: keySpace }, writer);
    },
    fromGrpc(reader, lengthBytes) {
      const message = response.decode(reader, lengthBytes);
      return {
        success: message.Success,
        status: message.Status,
        routingMode: message.RoutingMode,
        descriptorCount: message.DescriptorCount,
        reason: message.Reason,
        ...more.fromGrpc(message),
      };
    },
    fromRest(body) {
      return {
        success: boolOf(body, "success"),
        status: textOf(body, "status"),
        routingMode: textOf(body, "routingMode"),
        descriptorCount: intOf(body, "descriptorCount"),
        reason: textOrNull(body, "reason") ?? "",
        ...more.fromRest(body),
      };
    },
  };
}

export const registerRange: Plain<KeySpaceRequest, RegisterResult> = routingSwitch(
  "ranges.register",
  ["/KeyValuer/RegisterKeyRange", "/v1/ranges/register"],
  keyvalues.GrpcRegisterKeyRangeRequest,
  keyvalues.GrpcRegisterKeyRangeResponse,
  {
    fromGrpc: (message) => ({ seeded: message.Seeded }),
    fromRest: (body) => ({ seeded: boolOf(body, "seeded") }),
  },
);

export const unregisterRange: Plain<KeySpaceRequest, UnregisterResult> = routingSwitch(
  "ranges.unregister",
  ["/KeyValuer/RemoveKeyRange", "/v1/ranges/unregister"],
  keyvalues.GrpcRemoveKeyRangeRequest,
  keyvalues.GrpcRemoveKeyRangeResponse,
  { fromGrpc: () => ({}), fromRest: () => ({}) },
);

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
