/**
 * The Locker service: its messages to requests, answers to its messages.
 *
 * Invariants: 1. A missing owner and an empty one go
 * down alike: as no bytes, which the operation refuses. 2. Unset durability is 0, Ephemeral, as the
 * contract has it for gRPC.
 */
import { assert } from "../../base/assert.js";
import { EMPTY_BYTES } from "../../base/bytes.js";
import { Int64 } from "../../base/int64.js";
import { LockType } from "../../base/result-types.js";
import type { DataAnswer, LockAnswer } from "../../operations/api/requests.js";
import type { Encodable, Int64Halves } from "../../proto/codec.js";
import * as proto from "../../proto/generated/locks.js";
import type { BatchOperation, BatchStreamKind, DataMethod } from "../calls/method.js";
import { dataMethod, ownBytes, ownBytesOrNull, routeOf } from "../calls/method.js";

function lockAnswer(answer: DataAnswer): LockAnswer {
  assert(answer.kind === "lock", "a lock call gets a lock answer");
  return answer;
}

function tryLockResponse(answer: DataAnswer): Encodable<proto.GrpcTryLockResponse> {
  const lock = lockAnswer(answer);
  return {
    ServedFrom: lock.servedFrom,
    Type: lock.type,
    FencingToken: lock.fencingToken,
    Route: routeOf(lock.route),
    LeaseLeftMs: lock.leaseLeftMs,
    WaitedMs: lock.waitedMs,
    Position: lock.position,
    Waiters: lock.waiters,
  };
}

function uint64({ high, low }: Int64Halves): Int64 {
  return high === 0 && low === 0 ? Int64.ZERO : new Int64(high, low);
}

/** The node that takes a forced release in says who asks. */
const NOBODY = { actor: "", nodeId: 0 } as const;

function tokenOrNull(token: Int64Halves | null): Int64 | null {
  return token === null ? null : new Int64(token.high, token.low);
}

const tryLock = dataMethod({
  path: "/Locker/TryLock",
  role: "writer",
  kind: "try-lock",
  request: proto.GrpcTryLockRequest,
  response: proto.GrpcTryLockResponse,
  toRequest: (message) => ({
    kind: "try-lock",
    resource: message.Resource,
    owner: ownBytes(message.Owner),
    expiresMs: message.ExpiresMs,
    durability: message.Durability,
    waitMs: message.WaitMs,
    waitId: uint64(message.WaitId),
    tryNumber: uint64(message.Try),
    note: ownBytesOrNull(message.Note),
  }),
  toResponse: tryLockResponse,
});

const extend = dataMethod({
  path: "/Locker/TryExtendLock",
  role: "writer",
  kind: "try-extend",
  request: proto.GrpcExtendLockRequest,
  response: proto.GrpcExtendLockResponse,
  toRequest: (message) => ({
    kind: "try-extend",
    resource: message.Resource,
    owner: ownBytesOrNull(message.Owner) ?? EMPTY_BYTES,
    expiresMs: message.ExpiresMs,
    durability: message.Durability,
    fencingToken: tokenOrNull(message.FencingToken),
    note: ownBytesOrNull(message.Note),
  }),
  toResponse: (answer) => {
    const { servedFrom, type, fencingToken, route, leaseLeftMs, waiters } = lockAnswer(answer);
    return {
      ServedFrom: servedFrom,
      Type: type,
      FencingToken: fencingToken,
      Route: routeOf(route),
      LeaseLeftMs: leaseLeftMs,
      Waiters: waiters,
    };
  },
});

const unlock = dataMethod({
  path: "/Locker/Unlock",
  role: "writer",
  kind: "try-unlock",
  request: proto.GrpcUnlockRequest,
  response: proto.GrpcUnlockResponse,
  toRequest: (message) => ({
    kind: "try-unlock",
    resource: message.Resource,
    owner: ownBytesOrNull(message.Owner) ?? EMPTY_BYTES,
    durability: message.Durability,
    fencingToken: tokenOrNull(message.FencingToken),
  }),
  toResponse: (answer) => {
    const { servedFrom, type, route, fencingToken } = lockAnswer(answer);
    const token = type === LockType.unlocked ? fencingToken : null;
    return { ServedFrom: servedFrom, Type: type, Route: routeOf(route), FencingToken: token };
  },
});

const getLock = dataMethod({
  path: "/Locker/GetLock",
  role: "reader",
  kind: "get-lock",
  request: proto.GrpcGetLockRequest,
  response: proto.GrpcGetLockResponse,
  toRequest: (message) => ({
    kind: "get-lock",
    resource: message.Resource,
    durability: message.durability,
    owner: ownBytesOrNull(message.Owner),
  }),
  toResponse: (answer) => {
    const lock = lockAnswer(answer);
    const { servedFrom, type, owner, expires, fencingToken, route } = lock;
    return {
      ServedFrom: servedFrom,
      Type: type,
      Owner: owner,
      ExpiresNode: expires.n,
      ExpiresPhysical: expires.l,
      ExpiresCounter: expires.c,
      FencingToken: fencingToken,
      Route: routeOf(route),
      Note: lock.note,
      Waiters: lock.waiters,
      Position: lock.position,
      ExpiresInMs: type === LockType.got ? lock.expiresInMs : null,
    };
  },
});

const listLocks = dataMethod({
  path: "/Locker/ListLocks",
  role: "reader",
  kind: "list-locks",
  request: proto.GrpcListLocksRequest,
  response: proto.GrpcListLocksResponse,
  toRequest: (message) => ({
    kind: "list-locks",
    prefix: message.Prefix,
    durability: message.Durability,
    heldOnly: message.HeldOnly,
    limit: message.Limit,
    cursor: message.Cursor,
  }),
  toResponse: (answer) => {
    assert(answer.kind === "lock-page", "a list of locks is answered with a page of them");
    return {
      Type: answer.type,
      Items: answer.items.map((item) => ({
        Resource: item.resource,
        Owner: item.owner,
        FencingToken: item.fencingToken,
        Held: item.held,
        ExpiresNode: item.expires.n,
        ExpiresPhysical: item.expires.l,
        ExpiresCounter: item.expires.c,
        ExpiresInMs: item.expiresInMs,
        Waiters: item.waiters,
        Note: item.note,
      })),
      NextCursor: answer.nextCursor,
      HasMore: answer.hasMore,
    };
  },
});

const forceUnlock = dataMethod({
  path: "/Locker/ForceUnlock",
  role: "admin",
  kind: "force-unlock",
  request: proto.GrpcForceUnlockRequest,
  response: proto.GrpcForceUnlockResponse,
  toRequest: (message) => ({
    kind: "force-unlock",
    resource: message.Resource,
    durability: message.Durability,
    fencingToken: uint64(message.FencingToken),
    reason: message.Reason,
    dropWaiters: message.DropWaiters,
    ...NOBODY,
  }),
  toResponse: (answer) => {
    assert(answer.kind === "forced", "a forced release is answered as one");
    return {
      ServedFrom: answer.servedFrom,
      Type: answer.type,
      FencingToken: answer.fencingToken,
      Owner: answer.owner,
      AuditId: answer.auditId,
      Route: routeOf(answer.route),
    };
  },
});

const listLockAudit = dataMethod({
  path: "/Locker/ListLockAudit",
  role: "admin",
  kind: "list-lock-audit",
  request: proto.GrpcListLockAuditRequest,
  response: proto.GrpcListLockAuditResponse,
  toRequest: (message) => ({
    kind: "list-lock-audit",
    prefix: message.Prefix,
    limit: message.Limit,
    cursor: message.Cursor,
  }),
  toResponse: (answer) => {
    assert(answer.kind === "lock-audit", "a list of forced releases is answered with a page");
    return {
      Items: answer.items.map((item) => ({
        AuditId: item.auditId,
        PartitionId: item.partitionId,
        Resource: item.resource,
        Durability: item.durability,
        Owner: item.owner,
        FencingToken: item.fencingToken,
        StampNode: item.stamp.n,
        StampPhysical: item.stamp.l,
        StampCounter: item.stamp.c,
        Actor: item.actor,
        Reason: item.reason,
        RequestId: item.requestId,
        NodeId: item.nodeId,
        WaitersDropped: item.waitersDropped,
      })),
      NextCursor: answer.nextCursor,
      HasMore: answer.hasMore,
      Type: answer.type,
    };
  },
});

/** The unary calls of the service. */
export const LOCKER_METHODS: readonly DataMethod[] = [
  tryLock,
  extend,
  unlock,
  getLock,
  listLocks,
  forceUnlock,
  listLockAudit,
];

// Payload fields do not follow the types: unlock is type 3 and field 4, extend is type 2 and field
// 5.
const operations = new Map<number, BatchOperation>([
  [
    proto.GrpcLockClientBatchType.TYPE_TRY_LOCK,
    { requestField: 3, responseField: 3, method: tryLock },
  ],
  [
    proto.GrpcLockClientBatchType.TYPE_EXTEND_LOCK,
    { requestField: 5, responseField: 5, method: extend },
  ],
  [
    proto.GrpcLockClientBatchType.TYPE_UNLOCK,
    { requestField: 4, responseField: 4, method: unlock },
  ],
  [
    proto.GrpcLockClientBatchType.TYPE_GET_LOCK,
    { requestField: 6, responseField: 6, method: getLock },
  ],
]);

const CANCEL_FIELD = 8;

/** The batch stream of clients. */
export const LOCKER_STREAM: BatchStreamKind = {
  path: "/Locker/BatchClientLockRequests",
  frames: true,
  forwarded: false,
  operations,
  cancel: { type: proto.GrpcLockClientBatchType.TYPE_CANCEL_WAIT, field: CANCEL_FIELD },
};

/**
 * The batch stream of forwarding servers: same numbers, no frames, every item already forwarded.
 */
export const LOCKER_SERVER_STREAM: BatchStreamKind = {
  path: "/Locker/BatchServerLockRequests",
  frames: false,
  forwarded: true,
  operations,
  cancel: { type: proto.GrpcLockServerBatchType.SERVER_TYPE_CANCEL_WAIT, field: CANCEL_FIELD },
};
