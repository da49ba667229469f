/**
 * What those who look after locks ask for: lists, forced release, and who released what.
 *
 * Invariants: 1. A missing grant and another one are results; everything else that is no success is
 * an error. 2. A page is a read: it may always be repeated.
 */
import { decodeText } from "../../base/bytes.js";
import * as messages from "../../proto/generated/locks.js";
import { bigintOf, boolOf, intOf, jsonText, listOf, textOf, textOrNull } from "../values/json.js";
import { fromHalves, stampFromJson, stampOf } from "../values/numbers.js";
import type { Operation } from "../call/operation.js";
import { type WireDurability, lockFailure, toHalves } from "./lock-operations.js";
import { ownerFromRest } from "../values/owner-text.js";
import type { ForcedRelease, ListedLock, LockAuditRecord } from "./lock-shapes.js";

export interface ListRequest {
  readonly prefix: string;
  readonly durability: WireDurability;
  readonly heldOnly: boolean;
  readonly limit: number;
  readonly cursor: string | null;
}
export interface ForceRequest {
  readonly resource: string;
  readonly durability: WireDurability;
  readonly fencingToken: bigint;
  readonly reason: string;
  readonly dropWaiters: boolean;
}
export interface AuditRequest {
  readonly prefix: string;
  readonly limit: number;
  readonly cursor: string | null;
}

export interface Paged<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}
interface PageAnswer<Item> extends Paged<Item> {
  readonly type: number;
}
interface ForcedAnswer {
  readonly type: number;
  readonly fencingToken: bigint;
  readonly owner: Uint8Array | null;
  readonly auditId: number;
}

const Type = messages.GrpcLockResponseType;

function textOrNone(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : decodeText(bytes);
}

function ownBytes(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : Uint8Array.from(bytes);
}

/** A member of bytes in the text form of REST. */
function bytesFromRest(text: string | null): Uint8Array | null {
  return text === null ? null : Uint8Array.from(ownerFromRest(text));
}

function settlePage<Item>(
  { type, items, nextCursor, hasMore }: PageAnswer<Item>,
  prefix: string,
): Paged<Item> {
  if (type !== Type.LOCK_RESPONSE_TYPE_GOT) throw lockFailure(type, prefix, false);
  return { items, nextCursor, hasMore };
}

export const listLocks: Operation<ListRequest, PageAnswer<ListedLock>, Paged<ListedLock>> = {
  name: "locks.list",
  reads: true,
  path: "/Locker/ListLocks",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/locks/list",
    body: (request) => jsonText(request),
  },
  write({ prefix, durability, heldOnly, limit, cursor }, writer) {
    messages.GrpcListLocksRequest.encode(
      { Prefix: prefix, Durability: durability, HeldOnly: heldOnly, Limit: limit, Cursor: cursor },
      writer,
    );
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcListLocksResponse.decode(reader, lengthBytes);
    const items = message.Items.map((item): ListedLock => {
      const owner = ownBytes(item.Owner);
      const note = ownBytes(item.Note);
      return {
        resource: item.Resource,
        owner,
        ownerText: textOrNone(owner),
        fencingToken: fromHalves(item.FencingToken),
        held: item.Held,
        expires: stampOf(item.ExpiresNode, item.ExpiresPhysical, item.ExpiresCounter),
        expiresInMs: Number(fromHalves(item.ExpiresInMs)),
        waiters: item.Waiters,
        note,
        noteText: textOrNone(note),
      };
    });
    const { Type: type, NextCursor: nextCursor, HasMore: hasMore } = message;
    return { type, items, nextCursor, hasMore };
  },
  fromRest(body) {
    const items = listOf(body, "items").map((item): ListedLock => {
      const owner = bytesFromRest(textOrNull(item, "owner"));
      const note = bytesFromRest(textOrNull(item, "note"));
      return {
        resource: textOf(item, "resource"),
        owner,
        ownerText: textOrNone(owner),
        fencingToken: bigintOf(item, "fencingToken"),
        held: boolOf(item, "held"),
        expires: stampFromJson(item, "expires"),
        expiresInMs: Number(bigintOf(item, "expiresInMs")),
        waiters: intOf(item, "waiters"),
        note,
        noteText: textOrNone(note),
      };
    });
    const nextCursor = textOrNull(body, "nextCursor");
    return { type: intOf(body, "type"), items, nextCursor, hasMore: boolOf(body, "hasMore") };
  },
  repeat: () => true,
  settle: (answer, { prefix }) => settlePage(answer, prefix),
};

export const forceUnlock: Operation<ForceRequest, ForcedAnswer, ForcedRelease> = {
  name: "locks.forceUnlock",
  path: "/Locker/ForceUnlock",
  stream: null,
  route: { space: "locks", field: 6, name: ({ resource }) => resource },
  rest: {
    method: "POST",
    path: () => "/v1/locks/force-unlock",
    body: (request) => jsonText(request),
  },
  write({ resource, durability, fencingToken, reason, dropWaiters }, writer) {
    messages.GrpcForceUnlockRequest.encode(
      {
        Resource: resource,
        Durability: durability,
        FencingToken: toHalves(fencingToken),
        Reason: reason,
        DropWaiters: dropWaiters,
      },
      writer,
    );
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcForceUnlockResponse.decode(reader, lengthBytes);
    return {
      type: message.Type,
      fencingToken: fromHalves(message.FencingToken),
      owner: ownBytes(message.Owner),
      auditId: Number(fromHalves(message.AuditId)),
    };
  },
  fromRest: (body) => ({
    type: intOf(body, "type"),
    fencingToken: bigintOf(body, "fencingToken"),
    owner: bytesFromRest(textOrNull(body, "owner")),
    auditId: Number(bigintOf(body, "auditId")),
  }),
  repeat: () => true,
  settle({ type, fencingToken, owner, auditId }, { resource }, doubtful) {
    const told = { fencingToken, owner, ownerText: textOrNone(owner), auditId, doubtful };
    switch (type) {
      case Type.LOCK_RESPONSE_TYPE_UNLOCKED:
        return { unlocked: true, refusal: null, ...told };
      case Type.LOCK_RESPONSE_TYPE_LOCK_DOES_NOT_EXIST:
        return { unlocked: false, refusal: "not-held", ...told };
      case Type.LOCK_RESPONSE_TYPE_INVALID_OWNER:
        return { unlocked: false, refusal: "other-grant", ...told };
      default:
        throw lockFailure(type, resource, doubtful);
    }
  },
};

export const listAudit: Operation<
  AuditRequest,
  PageAnswer<LockAuditRecord>,
  Paged<LockAuditRecord>
> = {
  name: "locks.audit",
  reads: true,
  path: "/Locker/ListLockAudit",
  stream: null,
  rest: {
    method: "POST",
    path: () => "/v1/locks/audit",
    body: (request) => jsonText(request),
  },
  write({ prefix, limit, cursor }, writer) {
    const message = { Prefix: prefix, Limit: limit, Cursor: cursor };
    messages.GrpcListLockAuditRequest.encode(message, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcListLockAuditResponse.decode(reader, lengthBytes);
    const items = message.Items.map((item): LockAuditRecord => {
      const owner = ownBytes(item.Owner) ?? new Uint8Array(0);
      return {
        auditId: Number(fromHalves(item.AuditId)),
        partitionId: item.PartitionId,
        resource: item.Resource,
        durability: item.Durability === 1 ? "persistent" : "ephemeral",
        owner,
        ownerText: decodeText(owner),
        fencingToken: fromHalves(item.FencingToken),
        stamp: stampOf(item.StampNode, item.StampPhysical, item.StampCounter),
        actor: item.Actor,
        reason: item.Reason,
        requestId: item.RequestId,
        nodeId: item.NodeId,
        waitersDropped: item.WaitersDropped,
      };
    });
    const { Type: type, NextCursor: nextCursor, HasMore: hasMore } = message;
    return { type, items, nextCursor, hasMore };
  },
  fromRest(body) {
    const items = listOf(body, "items").map((item): LockAuditRecord => {
      const owner = Uint8Array.from(ownerFromRest(textOrNull(item, "owner")));
      return {
        auditId: Number(bigintOf(item, "auditId")),
        partitionId: intOf(item, "partitionId"),
        resource: textOf(item, "resource"),
        durability: intOf(item, "durability") === 1 ? "persistent" : "ephemeral",
        owner,
        ownerText: decodeText(owner),
        fencingToken: bigintOf(item, "fencingToken"),
        stamp: stampFromJson(item, "stamp"),
        actor: textOf(item, "actor"),
        reason: textOf(item, "reason"),
        requestId: textOf(item, "requestId"),
        nodeId: intOf(item, "nodeId"),
        waitersDropped: intOf(item, "waitersDropped"),
      };
    });
    const nextCursor = textOrNull(body, "nextCursor");
    return { type: intOf(body, "type"), items, nextCursor, hasMore: boolOf(body, "hasMore") };
  },
  repeat: () => true,
  settle: (answer, { prefix }) => settlePage(answer, prefix),
};
