/**
 * Request members of the key/value paths that several tables share: of one key and of many keys.
 *
 * Invariants: 1. Transactional members are accepted where the contract lists them and must say
 * nothing. 2. Items of a many-call are independent: a number that does not fit spoils its own item,
 * by a value that the operation refuses.
 */
import type { KvDeleteRequest, KvGetRequest, KvSetRequest } from "../../operations/api/requests.js";
import {
  base64,
  durability,
  int32,
  int64,
  items,
  tableOf,
  text,
  transactionalTableOf,
} from "../json/members.js";

/**
 * Stand-ins for numbers of an item that do not fit; each is InvalidInput by the rules of section 4.
 */
const INVALID_FLAGS = 1 << 30;
const INVALID_REVISION = -2n;
const INVALID_DURABILITY = -1;

export const key = text("key", "1 to 1024 bytes");
const revision = int64("revision", -1n, "-1 or omitted = latest, 0 and more = exactly that one");
export const setTable = transactionalTableOf(
  key,
  base64("value", "null stores an entry that holds nothing"),
  base64("compareValue", "for flag 16"),
  int64("compareRevision", 0n, "for flag 32"),
  int32("expiresMs", "lease in milliseconds; 0 = none"),
  int32("flags", "bits: 1 set, 2 no revision, 4 if exists, 8 if not, 16 if value, 32 if revision"),
  durability(),
);
export const deleteTable = transactionalTableOf(key, durability());
export const getTable = transactionalTableOf(key, revision, durability());
const getItemTable = tableOf(key, revision, durability());
export const setManyTable = tableOf(
  items(
    "items",
    setTable,
    ([key, value, compareValue, compareRevision, expiresMs, flags, durability], decoded) => {
      const request: KvSetRequest = {
        kind: "kv-set",
        key,
        value,
        compareValue,
        compareRevision,
        expiresMs,
        flags: decoded.misfit === null ? flags : INVALID_FLAGS,
        durability,
        plain: decoded.plain,
      };
      return request;
    },
    "1 to 1024 entries to set",
  ),
);
export const deleteManyTable = transactionalTableOf(
  items(
    "items",
    deleteTable,
    ([key, durability], { misfit, plain }) => {
      const accepted = misfit === null ? durability : INVALID_DURABILITY;
      return { kind: "kv-delete", key, durability: accepted, plain } satisfies KvDeleteRequest;
    },
    "1 to 1024 keys to delete",
  ),
);
function readManyTable<K extends "kv-get" | "kv-exists">(kind: K) {
  return transactionalTableOf(
    items(
      "items",
      getItemTable,
      ([key, sent, durability], { misfit, plain }) => {
        const revision = misfit === null ? sent : INVALID_REVISION;
        return { kind, key, revision, durability, plain } satisfies KvGetRequest;
      },
      "1 to 1024 keys to read",
    ),
  );
}
export const getManyTable = readManyTable("kv-get");
export const existsManyTable = readManyTable("kv-exists");
