/**
 * The lock paths (contract 3.1).
 *
 * Invariants: 1. `type` and `durability` are integers. 2. Without a lock to describe the members
 * are 0, null and zeros; the operations see to that, this file only writes.
 */
import type {
  GetLockRequest,
  LockAnswer,
  TryExtendLockRequest,
  TryLockRequest,
  TryUnlockRequest,
} from "../../operations/api/requests.js";
import { dataRoute } from "./data-route.js";
import { ownerText, servedText, stampText } from "../json/json-text.js";
import { durability, int32, owner, tableOf, text } from "../json/members.js";
import type { Route } from "../http/route.js";
import { SERVED, type Schema } from "../http/schemas.js";

const resource = text("resource", "name of what is locked, 1 to 1024 bytes");
const holder = owner("owner", "text that identifies the holder, or `base64:` and base64");
const lease = int32("expiresMs", "lease duration in milliseconds");

const heldTable = tableOf(resource, holder, lease, durability());
const releaseTable = tableOf(resource, holder, lease, durability());
const readTable = tableOf(resource, durability());

const TOKEN: Schema = { object: { type: "int32", fencingToken: "int64", ...SERVED } };
const INFO: Schema = {
  object: {
    type: "int32",
    owner: "text-or-null",
    fencingToken: "int64",
    expires: "stamp",
    expiresInMs: "int64",
    ...SERVED,
  },
};

function tokenText(answer: LockAnswer): string {
  const token = answer.fencingToken.toString();
  return `{"type":${answer.type},"fencingToken":${token},${servedText(answer)}}`;
}

function infoText(answer: LockAnswer): string {
  return (
    `{"type":${answer.type},"owner":${ownerText(answer.owner)},` +
    `"fencingToken":${answer.fencingToken.toString()},"expires":${stampText(answer.expires)},` +
    `"expiresInMs":${answer.expiresInMs},${servedText(answer)}}`
  );
}

export const LOCK_ROUTES: readonly Route[] = [
  dataRoute<TryLockRequest, typeof heldTable.members>({
    path: "/v1/locks/try-lock",
    kind: "try-lock",
    access: "writer",
    tag: "locks",
    summary: "Acquire a lock if it is free",
    table: heldTable,
    answer: TOKEN,
    build: ([resource, owner, expiresMs, durability]) => {
      return { kind: "try-lock", resource, owner, expiresMs, durability };
    },
    write: tokenText,
  }),
  dataRoute<TryExtendLockRequest, typeof heldTable.members>({
    path: "/v1/locks/try-extend",
    kind: "try-extend",
    access: "writer",
    tag: "locks",
    summary: "Give a held lock a new lease",
    table: heldTable,
    answer: TOKEN,
    build: ([resource, owner, expiresMs, durability]) => {
      return { kind: "try-extend", resource, owner, expiresMs, durability };
    },
    write: tokenText,
  }),
  dataRoute<TryUnlockRequest, typeof releaseTable.members>({
    path: "/v1/locks/try-unlock",
    kind: "try-unlock",
    access: "writer",
    tag: "locks",
    summary: "Release a held lock",
    table: releaseTable,
    answer: TOKEN,
    build: ([resource, owner, , durability]) => {
      return { kind: "try-unlock", resource, owner, durability };
    },
    write: tokenText,
  }),
  dataRoute<GetLockRequest, typeof readTable.members>({
    path: "/v1/locks/get-info",
    kind: "get-lock",
    access: "reader",
    tag: "locks",
    summary: "Read who holds a lock",
    table: readTable,
    answer: INFO,
    build: ([resource, durability]) => ({ kind: "get-lock", resource, durability }),
    write: infoText,
  }),
];
