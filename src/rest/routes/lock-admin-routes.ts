/**
 * The paths for who looks after locks: lists, forced release, and who released what (contract 3.1).
 *
 * Invariant: this file only writes; what a member says without something to describe is the
 * operations' business.
 */
import { Int64 } from "../../base/int64.js";
import type {
  ForceUnlockRequest,
  ForcedAnswer,
  ListLockAuditRequest,
  ListLocksRequest,
  LockAuditAnswer,
  LockAuditEntry,
  LockListItem,
  LockPageAnswer,
} from "../../operations/api/requests.js";
import { SERVED, type Schema } from "../http/schemas.js";
import type { Route } from "../http/route.js";
import {
  listText,
  ownerText,
  quoted,
  quotedOrNull,
  servedText,
  stampText,
} from "../json/json-text.js";
import { bool, durability, int32, int64, optionalText, tableOf, text } from "../json/members.js";
import { dataRoute } from "./data-route.js";

const prefix = text("prefix", "what the resources begin with; empty = all");
const limit = int32("limit", "items of a page, 1 to 10000; 0 or omitted = 1000");
const cursor = optionalText("cursor", "nextCursor of the page before");

const listTable = tableOf(
  prefix,
  durability(),
  bool("heldOnly", "leave out records that nobody holds"),
  limit,
  cursor,
);
const forceTable = tableOf(
  text("resource", "name of what is locked"),
  durability(),
  int64("fencingToken", -1n, "the grant that is ended; any other stays"),
  text("reason", "why, 1 to 1024 bytes; it is kept"),
  bool("dropWaiters", "abort whoever waits, and leave the lock free"),
);
const auditTable = tableOf(prefix, limit, cursor);

const LIST: Schema = {
  object: {
    type: "int32",
    items: {
      list: {
        object: {
          resource: "text",
          owner: "text-or-null",
          fencingToken: "int64",
          held: "bool",
          expires: "stamp",
          expiresInMs: "int64",
          waiters: "int32",
          note: "text-or-null",
        },
      },
    },
    nextCursor: "text-or-null",
    hasMore: "bool",
  },
};
const FORCED: Schema = {
  object: {
    type: "int32",
    fencingToken: "int64",
    owner: "text-or-null",
    auditId: "int64",
    ...SERVED,
  },
};
const AUDIT: Schema = {
  object: {
    type: "int32",
    items: {
      list: {
        object: {
          auditId: "int64",
          partitionId: "int32",
          resource: "text",
          durability: "int32",
          owner: "text-or-null",
          fencingToken: "int64",
          stamp: "stamp",
          actor: "text",
          reason: "text",
          requestId: "text",
          nodeId: "int32",
          waitersDropped: "int32",
        },
      },
    },
    nextCursor: "text-or-null",
    hasMore: "bool",
  },
};

function lockText(item: LockListItem): string {
  return (
    `{"resource":${quoted(item.resource)},"owner":${ownerText(item.owner)},` +
    `"fencingToken":${item.fencingToken.toString()},"held":${item.held},` +
    `"expires":${stampText(item.expires)},"expiresInMs":${item.expiresInMs},` +
    `"waiters":${item.waiters},"note":${ownerText(item.note)}}`
  );
}

function auditText(item: LockAuditEntry): string {
  return (
    `{"auditId":${item.auditId},"partitionId":${item.partitionId},` +
    `"resource":${quoted(item.resource)},"durability":${item.durability},` +
    `"owner":${ownerText(item.owner)},"fencingToken":${item.fencingToken.toString()},` +
    `"stamp":${stampText(item.stamp)},"actor":${quoted(item.actor)},` +
    `"reason":${quoted(item.reason)},"requestId":${quoted(item.requestId)},` +
    `"nodeId":${item.nodeId},"waitersDropped":${item.waitersDropped}}`
  );
}

function pageText<Item>(
  answer: {
    readonly type: number;
    readonly items: readonly Item[];
    readonly nextCursor: string | null;
    readonly hasMore: boolean;
  },
  write: (item: Item) => string,
): string {
  return (
    `{"type":${answer.type},"items":${listText(answer.items, write)},` +
    `"nextCursor":${quotedOrNull(answer.nextCursor)},"hasMore":${answer.hasMore}}`
  );
}

function forcedText(answer: ForcedAnswer): string {
  return (
    `{"type":${answer.type},"fencingToken":${answer.fencingToken.toString()},` +
    `"owner":${ownerText(answer.owner)},"auditId":${answer.auditId},${servedText(answer)}}`
  );
}

export const LOCK_ADMIN_ROUTES: readonly Route[] = [
  dataRoute<ListLocksRequest, typeof listTable.members>({
    path: "/v1/locks/list",
    kind: "list-locks",
    access: "reader",
    tag: "locks",
    summary: "List the locks of the cluster that begin with a text, page by page",
    table: listTable,
    answer: LIST,
    build: ([prefix, durability, heldOnly, limit, cursor]) => {
      return { kind: "list-locks", prefix, durability, heldOnly, limit, cursor };
    },
    write: (answer: LockPageAnswer) => pageText(answer, lockText),
  }),
  dataRoute<ForceUnlockRequest, typeof forceTable.members>({
    path: "/v1/locks/force-unlock",
    kind: "force-unlock",
    access: "admin",
    tag: "locks",
    summary: "End one grant of a lock, whoever has it; who did it and why is kept",
    table: forceTable,
    answer: FORCED,
    build: ([resource, durability, token, reason, dropWaiters]) => {
      const fencingToken = Int64.fromBigInt(token);
      const asked = { resource, durability, fencingToken, reason, dropWaiters };
      return { kind: "force-unlock", ...asked, actor: "", nodeId: 0 };
    },
    write: forcedText,
  }),
  dataRoute<ListLockAuditRequest, typeof auditTable.members>({
    path: "/v1/locks/audit",
    kind: "list-lock-audit",
    access: "admin",
    tag: "locks",
    summary: "List who released locks by force, the newest first, page by page",
    table: auditTable,
    answer: AUDIT,
    build: ([prefix, limit, cursor]) => ({ kind: "list-lock-audit", prefix, limit, cursor }),
    write: (answer: LockAuditAnswer) => pageText(answer, auditText),
  }),
];
