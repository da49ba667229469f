/**
 * The documents that `--format json` prints, as JSON Schema (draft 2020-12, the part of it that is
 * needed).
 *
 * Owns the schemas. They are shown by `--help <operation>` and held against real answers by tests.
 *
 * Invariants: 1. Every member that is written is listed and required; nothing else is written. 2.
 * "integer" means exact over the whole int64 range: readers need a JSON parser that keeps large
 * integers.
 */

import { BACKUP_COLLECTION, BACKUP_INFO, RESTORED } from "../../api/backups.js";
import { LEAVE, MEMBERSHIP, PLACEMENT, REPLICATION_FACTOR } from "../../api/cluster.js";
import type { Member, Message } from "../../api/members.js";
import { MERGED, RANGES, SPLIT, UNREGISTERED } from "../../api/ranges.js";
import { present } from "../../base/assert.js";

export interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly (string | number)[];
}

const TEXT: Schema = { type: "string" };
const TEXT_OR_NULL: Schema = { type: ["string", "null"] };
const INTEGER: Schema = { type: "integer" };
const INTEGER_OR_NULL: Schema = { type: ["integer", "null"] };
const BOOLEAN: Schema = { type: "boolean" };
const NULL: Schema = { type: "null" };

function object(properties: Readonly<Record<string, Schema>>): Schema {
  return {
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

function list(items: Schema): Schema {
  return { type: "array", items };
}

function either(...choices: readonly Schema[]): Schema {
  return { anyOf: choices };
}

function describedMember({ kind, nulls, choice, items }: Member): Schema {
  const mayBeNull = nulls !== null && nulls !== "unsent";
  switch (kind) {
    case "bool":
      return BOOLEAN;
    case "text":
      return mayBeNull ? TEXT_OR_NULL : TEXT;
    case "choice":
      return choice?.numberOn === "json" ? INTEGER : TEXT;
    case "list":
      return list(described(present(items, "a list has items")));
    default:
      return mayBeNull ? INTEGER_OR_NULL : INTEGER;
  }
}

function membersOf({ members }: Message): Readonly<Record<string, Schema>> {
  const schemas = Object.entries(members).map(([name, member]) => [name, describedMember(member)]);
  return Object.fromEntries(schemas) as Record<string, Schema>;
}

/** The answer of an administrative call as a document. */
function described(message: Message): Schema {
  return object(membersOf(message));
}

/** A hybrid timestamp: node, Unix milliseconds, counter. */
const STAMP = object({ n: INTEGER, l: INTEGER, c: INTEGER });

const KV_ITEM = { revision: INTEGER, value: TEXT_OR_NULL, valueBase64: TEXT_OR_NULL };
const KV_GET = { key: TEXT, success: BOOLEAN, ...KV_ITEM, durability: INTEGER };

export const KV_WRITE_DOCUMENT = object({
  key: TEXT,
  success: BOOLEAN,
  type: INTEGER,
  revision: INTEGER,
  durability: INTEGER,
});
export const KV_GET_DOCUMENT = object(KV_GET);
export const KV_ENTRY_DOCUMENT = object({ ...KV_GET, expires: STAMP, lastModified: STAMP });
export const KV_LIST_DOCUMENT = list(
  either(
    object({ key: TEXT, value: TEXT_OR_NULL, valueBase64: TEXT_OR_NULL, revision: INTEGER }),
    object({ key: TEXT, revision: INTEGER }),
  ),
);

export const LOCK_DOCUMENT = object({
  resource: TEXT,
  isAcquired: BOOLEAN,
  fencingToken: INTEGER,
  owner: TEXT,
});
export const LOCK_EXTEND_DOCUMENT = object({
  resource: TEXT,
  extended: BOOLEAN,
  fencingToken: INTEGER,
  owner: TEXT,
});
export const UNLOCK_DOCUMENT = object({ resource: TEXT, unlocked: BOOLEAN, type: INTEGER });
export const LOCK_INFO_DOCUMENT = either(
  object({ resource: TEXT, owner: TEXT_OR_NULL, fencingToken: INTEGER, expires: STAMP }),
  NULL,
);

const SEQUENCE = object({
  name: TEXT,
  currentValue: INTEGER,
  initialValue: INTEGER,
  increment: INTEGER,
  maxValue: INTEGER_OR_NULL,
  blockSize: INTEGER_OR_NULL,
  incarnation: INTEGER,
  revision: INTEGER,
  durability: TEXT,
  createdAt: STAMP,
  updatedAt: STAMP,
});
const SEQUENCE_REFUSAL = object({ name: TEXT, type: TEXT });
export const SEQUENCE_WRITE_DOCUMENT = either(SEQUENCE, SEQUENCE_REFUSAL);
export const SEQUENCE_GET_DOCUMENT = either(SEQUENCE, NULL);
export const ALLOCATION_DOCUMENT = either(
  object({ name: TEXT, start: INTEGER, end: INTEGER, count: INTEGER, revision: INTEGER }),
  SEQUENCE_REFUSAL,
);
export const SEQUENCE_DELETE_DOCUMENT = object({ name: TEXT, deleted: BOOLEAN });

export const MEMBERS_DOCUMENT = described(MEMBERSHIP);
export const STATUS_DOCUMENT = object({
  healthy: BOOLEAN,
  unseen: list(TEXT),
  problems: list(TEXT),
  initialized: BOOLEAN,
  membershipVersion: INTEGER,
  replicationFactor: INTEGER,
  rebalancerEnabled: BOOLEAN,
  nodes: list(
    object({
      nodeId: INTEGER_OR_NULL,
      endpoint: TEXT_OR_NULL,
      clientEndpoint: TEXT_OR_NULL,
      role: TEXT_OR_NULL,
      state: {
        type: "string",
        enum: ["ready", "not-ready", "unreachable", "failed", "not-asked"],
      },
      reason: TEXT_OR_NULL,
      leaderships: INTEGER,
      hostedPartitions: INTEGER_OR_NULL,
      membershipVersion: INTEGER_OR_NULL,
      version: TEXT_OR_NULL,
      uptimeMs: INTEGER_OR_NULL,
    }),
  ),
  partitions: object({
    total: INTEGER,
    withoutLeader: list(INTEGER),
    disputed: list(INTEGER),
    underReplicated: list(INTEGER),
    withoutMajority: list(INTEGER),
  }),
});
export const LEAVE_DOCUMENT = described(LEAVE);
export const PLACEMENT_DOCUMENT = described(PLACEMENT);
export const FACTOR_DOCUMENT = described(REPLICATION_FACTOR);

export const RANGES_DOCUMENT = described(RANGES);
/** Every endpoint answers for itself. */
const REGISTRATION = membersOf(UNREGISTERED);
export const REGISTER_DOCUMENT = list(object({ endpoint: TEXT, seeded: BOOLEAN, ...REGISTRATION }));
export const UNREGISTER_DOCUMENT = list(object({ endpoint: TEXT, ...REGISTRATION }));
export const SPLIT_DOCUMENT = described(SPLIT);
export const MERGE_DOCUMENT = described(MERGED);

const BACKUP = described(BACKUP_INFO);
const BACKUP_FAILURE = object({ outcome: TEXT, message: TEXT });
export const BACKUP_DOCUMENT = either(BACKUP, BACKUP_FAILURE);
export const BACKUP_LIST_DOCUMENT = either(list(BACKUP), BACKUP_FAILURE);
export const BACKUP_GC_DOCUMENT = either(described(BACKUP_COLLECTION), BACKUP_FAILURE);
export const RESTORE_DOCUMENT = either(described(RESTORED), BACKUP_FAILURE);

const ERROR = { code: TEXT, message: TEXT, endpoint: TEXT_OR_NULL };

/** What goes to stderr with exit codes 2, 3 and 4. */
export const ERROR_DOCUMENT = object({
  error: either(object(ERROR), object({ ...ERROR, idempotencyKey: TEXT })),
});
