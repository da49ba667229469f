/**
 * Key ranges, described: list, register and unregister a key space, split, merge.
 *
 * Plain data. Invariants: 1. A refusal is an answer: `success` false and a `status` of a closed
 * list. 2. Split and merge are not repeated after a lost answer: read the ranges first.
 */
import { call, type ProblemStatus } from "./call.js";
import { KEY_SPACE_FILTER, RANGE_MEMBERS, ROUTING_MODE } from "./cluster.js";
import {
  asking,
  bool,
  int32,
  later,
  list,
  message,
  oneOf,
  remark,
  safeInt64,
  safeInt64OrNull,
  text,
  textArgument,
  textOrNull,
} from "./members.js";

export const RANGE = message("GrpcRangeDescriptor", {
  ...RANGE_MEMBERS,
  /** Live keys; null = not known to the node that answered. */
  keys: safeInt64OrNull("absent"),
});
/** Keys on their way from one partition to another. */
export const RANGE_MOVE = message("GrpcRangeMove", {
  moveId: safeInt64,
  /** `home`: back to the hash partition of a key space that is unregistered. */
  kind: oneOf("split", "merge", "home"),
  /** null = open. */
  startKey: textOrNull("absent"),
  endKey: textOrNull("absent"),
  source: int32,
  target: int32,
  /** `cut`: the keys are the target's, and the source removes its copies. */
  phase: oneOf("copying", "cut", "aborting"),
  attempt: int32,
  /** Why it is aborted. */
  reason: oneOf(
    "none",
    "deadline",
    "no-target",
    "transfer-failed",
    "quiesce-failed",
    "mismatch",
    "cutover-failed",
  ),
});
export const KEY_SPACE_RANGES = message("GrpcKeySpaceRanges", {
  keySpace: text,
  routingMode: ROUTING_MODE,
  descriptors: list(RANGE),
  /** Under way. */
  moves: later(list(RANGE_MOVE)),
  /** It is being unregistered. */
  leaving: later(bool),
});
export const RANGES = message("GrpcGetRangesResponse", {
  initialized: bool,
  localEndpoint: text,
  keySpaces: list(KEY_SPACE_RANGES),
});

/** Of register and unregister; the first three are successes. */
const REGISTER_STATUSES = [
  "Seeded",
  "AlreadySeeded",
  "Removed",
  "InvalidInput",
  "KeyRangeDisabled",
  "QuiesceWindowOpen",
  "Indeterminate",
] as const;
/** The first is the success; after the last five the map may still change. */
const SPLIT_STATUSES = [
  "Succeeded",
  "NotLeader",
  "NoRange",
  "InvalidSplitKey",
  "BelowMinRangeSize",
  "ProbeIndeterminate",
  "PartitionCreationFailed",
  "UnsettledMovingIntents",
  "InvalidInput",
  "KeyRangeDisabled",
  "TransferFailed",
  "QuiesceFailed",
  "CutoverFailed",
  "ConcurrentSplit",
  "Indeterminate",
] as const;
const MERGE_STATUSES = ["Completed", "NotLeader", "Indeterminate"] as const;

export const REGISTERED = message("GrpcRegisterKeyRangeResponse", {
  success: bool,
  status: oneOf(...REGISTER_STATUSES),
  seeded: bool,
  routingMode: ROUTING_MODE,
  descriptorCount: int32,
  reason: remark,
});
export const UNREGISTERED = message("GrpcRemoveKeyRangeResponse", {
  success: bool,
  status: oneOf(...REGISTER_STATUSES),
  routingMode: ROUTING_MODE,
  descriptorCount: int32,
  reason: remark,
});
export const SPLIT = message("GrpcSplitRangeResponse", {
  success: bool,
  status: oneOf(...SPLIT_STATUSES),
  /** False: the map may still change; read the ranges again. */
  determinate: bool,
  newPartitionId: int32,
  newGeneration: safeInt64,
  leaderHint: remark,
  reason: remark,
});
export const MERGED = message("GrpcMergeRangesResponse", {
  success: bool,
  status: oneOf(...MERGE_STATUSES),
  determinate: bool,
  /** Folded pairs. */
  merges: int32,
  leaderHint: remark,
  reason: remark,
});

const keySpace = textArgument("the key space, 1 to 1024 bytes");

/** What the calls that change the map have in common. */
const changing = {
  access: "admin",
  status: (answer: { readonly success: boolean; readonly status: string }): 200 | ProblemStatus => {
    if (answer.success) return 200;
    return answer.status === "InvalidInput" ? 400 : 409;
  },
} as const;

/** @internal */
export const RANGE_CALLS = {
  "ranges.list": call({
    access: "reader",
    grpc: "/Cluster/GetRanges",
    rest: { method: "GET", path: "/v1/ranges", summary: "List the key ranges", statuses: [] },
    request: asking("GrpcGetRangesRequest", KEY_SPACE_FILTER),
    answer: RANGES,
    reads: true,
  }),
  "ranges.register": call({
    ...changing,
    grpc: "/KeyValuer/RegisterKeyRange",
    rest: {
      method: "POST",
      path: "/v1/ranges/register",
      summary: "Route a key space by ranges",
      statuses: [409],
    },
    request: asking("GrpcRegisterKeyRangeRequest", { keySpace }),
    answer: REGISTERED,
  }),
  "ranges.unregister": call({
    ...changing,
    grpc: "/KeyValuer/RemoveKeyRange",
    rest: {
      method: "POST",
      path: "/v1/ranges/unregister",
      summary: "Route a key space by hash again",
      statuses: [409],
    },
    request: asking("GrpcRemoveKeyRangeRequest", { keySpace }),
    answer: UNREGISTERED,
  }),
  "ranges.split": call({
    ...changing,
    grpc: "/Cluster/SplitRange",
    rest: {
      method: "POST",
      path: "/v1/ranges/split",
      summary: "Split a key range",
      statuses: [409],
    },
    request: asking("GrpcSplitRangeRequest", {
      keySpace,
      splitKey: textArgument("first key of the upper range"),
    }),
    answer: SPLIT,
    repeat: () => false,
  }),
  "ranges.merge": call({
    ...changing,
    grpc: "/Cluster/MergeRanges",
    rest: {
      method: "POST",
      path: "/v1/ranges/merge",
      summary: "Merge small neighbouring key ranges",
      statuses: [409],
    },
    request: asking("GrpcMergeRangesRequest", {}),
    answer: MERGED,
    repeat: () => false,
  }),
} as const;
