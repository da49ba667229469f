/**
 * The lock paths (contract 3.1).
 *
 * Invariants: 1. `type` and `durability` are integers. 2. Without a lock to describe the members
 * are 0, null and zeros; the operations see to that, this file only writes.
 */
import { Int64 } from "../../base/int64.js";
import { LOCK_REST_WAIT_MAX_MS } from "../../base/limits.js";
import type {
  GetLockRequest,
  LockAnswer,
  TryExtendLockRequest,
  TryLockRequest,
  TryUnlockRequest,
} from "../../operations/api/requests.js";
import { dataRoute } from "./data-route.js";
import { ownerText, servedText, stampText } from "../json/json-text.js";
import {
  durability,
  int32,
  optionalInt64,
  optionalOwner,
  owner,
  tableOf,
  text,
  uint64,
} from "../json/members.js";
import type { Route } from "../http/route.js";
import { SERVED, type Schema } from "../http/schemas.js";

const resource = text("resource", "name of what is locked, 1 to 1024 bytes");
const holder = owner("owner", "text that identifies the holder, or `base64:` and base64");
const lease = int32("expiresMs", "lease duration in milliseconds");

const waitMs = int32("waitMs", "how long to wait while the lock is held (milliseconds)");
const waitId = uint64("waitId", "random number of the acquire, the same in its repeats");
const tryNumber = uint64("try", "rises with each repeat of the acquire");
const note = optionalOwner("note", "text that belongs to the grant, at most 1024 bytes");
const token = optionalInt64("fencingToken", "the one grant that is meant; omitted = any");
const waiter = optionalOwner("owner", "whose place among those who wait is wanted");

const tryTable = tableOf(resource, holder, lease, durability(), waitMs, waitId, tryNumber, note);
const extendTable = tableOf(resource, holder, lease, durability(), token, note);
const releaseTable = tableOf(resource, holder, lease, durability(), token);
const readTable = tableOf(resource, durability(), waiter);

const TOKEN: Schema = { object: { type: "int32", fencingToken: "int64", ...SERVED } };
const TRIED: Schema = {
  object: {
    type: "int32",
    fencingToken: "int64",
    leaseLeftMs: "int64-or-null",
    waitedMs: "int64-or-null",
    position: "int32",
    waiters: "int32",
    ...SERVED,
  },
};
const EXTENDED: Schema = {
  object: {
    type: "int32",
    fencingToken: "int64",
    leaseLeftMs: "int64-or-null",
    waiters: "int32",
    ...SERVED,
  },
};
const INFO: Schema = {
  object: {
    type: "int32",
    owner: "text-or-null",
    fencingToken: "int64",
    expires: "stamp",
    expiresInMs: "int64",
    note: "text-or-null",
    waiters: "int32",
    position: "int32",
    ...SERVED,
  },
};

function tokenText(answer: LockAnswer): string {
  const token = answer.fencingToken.toString();
  return `{"type":${answer.type},"fencingToken":${token},${servedText(answer)}}`;
}

function triedText(answer: LockAnswer): string {
  return (
    `{"type":${answer.type},"fencingToken":${answer.fencingToken.toString()},` +
    `"leaseLeftMs":${answer.leaseLeftMs},"waitedMs":${answer.waitedMs},` +
    `"position":${answer.position},"waiters":${answer.waiters},${servedText(answer)}}`
  );
}

function extendedText(answer: LockAnswer): string {
  return (
    `{"type":${answer.type},"fencingToken":${answer.fencingToken.toString()},` +
    `"leaseLeftMs":${answer.leaseLeftMs},"waiters":${answer.waiters},${servedText(answer)}}`
  );
}

/** Bits of an uint64, as the requests have them. */
function toLanes(given: bigint): Int64 {
  return given === 0n ? Int64.ZERO : Int64.fromBigInt(BigInt.asIntN(64, given));
}

function tokenOrNull(given: bigint | null): Int64 | null {
  return given === null ? null : Int64.fromBigInt(given);
}

function infoText(answer: LockAnswer): string {
  return (
    `{"type":${answer.type},"owner":${ownerText(answer.owner)},` +
    `"fencingToken":${answer.fencingToken.toString()},"expires":${stampText(answer.expires)},` +
    `"expiresInMs":${answer.expiresInMs},"note":${ownerText(answer.note)},` +
    `"waiters":${answer.waiters},"position":${answer.position},${servedText(answer)}}`
  );
}

export const LOCK_ROUTES: readonly Route[] = [
  dataRoute<TryLockRequest, typeof tryTable.members>({
    path: "/v1/locks/try-lock",
    kind: "try-lock",
    access: "writer",
    tag: "locks",
    summary: "Acquire a lock if it is free, or wait for it",
    table: tryTable,
    answer: TRIED,
    build: ([resource, owner, expiresMs, durability, waitMs, waitId, tryNumber, note]) => {
      // Whoever wants to wait longer asks again: proxies cut what is silent for long.
      if (waitMs > LOCK_REST_WAIT_MAX_MS) return null;
      const wait = { waitMs, waitId: toLanes(waitId), tryNumber: toLanes(tryNumber) };
      return { kind: "try-lock", resource, owner, expiresMs, durability, ...wait, note };
    },
    write: triedText,
  }),
  dataRoute<TryExtendLockRequest, typeof extendTable.members>({
    path: "/v1/locks/try-extend",
    kind: "try-extend",
    access: "writer",
    tag: "locks",
    summary: "Give a held lock a new lease",
    table: extendTable,
    answer: EXTENDED,
    build: ([resource, owner, expiresMs, durability, token, note]) => {
      const fencingToken = tokenOrNull(token);
      return { kind: "try-extend", resource, owner, expiresMs, durability, fencingToken, note };
    },
    write: extendedText,
  }),
  dataRoute<TryUnlockRequest, typeof releaseTable.members>({
    path: "/v1/locks/try-unlock",
    kind: "try-unlock",
    access: "writer",
    tag: "locks",
    summary: "Release a held lock",
    table: releaseTable,
    answer: TOKEN,
    build: ([resource, owner, , durability, token]) => {
      const fencingToken = tokenOrNull(token);
      return { kind: "try-unlock", resource, owner, durability, fencingToken };
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
    build: ([resource, durability, owner]) => ({ kind: "get-lock", resource, durability, owner }),
    write: infoText,
  }),
];
