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

import type { Member, Message } from "../../api/members.js";
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

export const TEXT: Schema = { type: "string" };
const TEXT_OR_NULL: Schema = { type: ["string", "null"] };
const INTEGER: Schema = { type: "integer" };
const INTEGER_OR_NULL: Schema = { type: ["integer", "null"] };
export const BOOLEAN: Schema = { type: "boolean" };
const NULL: Schema = { type: "null" };
const VERDICT: Schema = { type: "string", enum: ["ok", "warning", "failed", "unknown"] };

export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return {
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

export function list(items: Schema): Schema {
  return { type: "array", items };
}

export function either(...choices: readonly Schema[]): Schema {
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
    case "texts":
      return list(TEXT);
    case "list":
      return list(described(present(items, "a list has items")));
    default:
      return mayBeNull ? INTEGER_OR_NULL : INTEGER;
  }
}

/** The members of an answer, for documents that hold more. */
export function membersOf({ members }: Message): Readonly<Record<string, Schema>> {
  const schemas = Object.entries(members).map(([name, member]) => [name, describedMember(member)]);
  return Object.fromEntries(schemas) as Record<string, Schema>;
}

/** The answer of an administrative call as a document. */
export function described(message: Message): Schema {
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

export const LOCK_LIST_DOCUMENT = list(
  object({
    resource: TEXT,
    owner: TEXT_OR_NULL,
    fencingToken: INTEGER,
    held: BOOLEAN,
    expires: STAMP,
    expiresInMs: INTEGER,
    waiters: INTEGER,
    note: TEXT_OR_NULL,
  }),
);
export const FORCED_DOCUMENT = object({
  resource: TEXT,
  type: INTEGER,
  fencingToken: INTEGER,
  owner: TEXT_OR_NULL,
  auditId: INTEGER,
});
export const LOCK_AUDIT_DOCUMENT = list(
  object({
    auditId: INTEGER,
    partitionId: INTEGER,
    resource: TEXT,
    durability: INTEGER,
    owner: TEXT,
    fencingToken: INTEGER,
    stamp: STAMP,
    actor: TEXT,
    reason: TEXT,
    requestId: TEXT,
    nodeId: INTEGER,
    waitersDropped: INTEGER,
  }),
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
/** One batch of a watch; a line of its own each. */
export const WATCH_DOCUMENT = object({
  events: list(
    object({
      type: TEXT,
      name: TEXT,
      value: TEXT_OR_NULL,
      revision: INTEGER,
      stamp: STAMP,
      fencingToken: INTEGER,
      owner: TEXT_OR_NULL,
      note: TEXT_OR_NULL,
      sequence: either(SEQUENCE, NULL),
      forced: BOOLEAN,
    }),
  ),
  cursor: TEXT_OR_NULL,
  initial: BOOLEAN,
  merged: BOOLEAN,
  reset: BOOLEAN,
  more: BOOLEAN,
  staleMs: INTEGER,
  servedFrom: TEXT_OR_NULL,
});
const SEQUENCE_REFUSAL = object({ name: TEXT, type: TEXT });
export const SEQUENCE_WRITE_DOCUMENT = either(SEQUENCE, SEQUENCE_REFUSAL);
export const SEQUENCE_GET_DOCUMENT = either(SEQUENCE, NULL);
export const ALLOCATION_DOCUMENT = either(
  object({ name: TEXT, start: INTEGER, end: INTEGER, count: INTEGER, revision: INTEGER }),
  SEQUENCE_REFUSAL,
);
export const SEQUENCE_DELETE_DOCUMENT = object({ name: TEXT, deleted: BOOLEAN });

export const STATUS_DOCUMENT = object({
  healthy: BOOLEAN,
  unseen: list(TEXT),
  problems: list(TEXT),
  alarms: list(TEXT),
  initialized: BOOLEAN,
  membershipVersion: INTEGER,
  replicationFactor: INTEGER,
  rebalancerEnabled: BOOLEAN,
  level: object({ level: INTEGER, possible: INTEGER, behind: list(INTEGER) }),
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
    moving: list(INTEGER),
    withoutMajority: list(INTEGER),
  }),
});
export const CHECK_DOCUMENT = object({
  verdict: VERDICT,
  checks: list(
    object({
      check: TEXT,
      nodeId: INTEGER_OR_NULL,
      endpoint: TEXT_OR_NULL,
      verdict: VERDICT,
      value: { type: ["number", "null"] },
      found: TEXT,
      wanted: TEXT,
    }),
  ),
});
export const BUNDLE_DOCUMENT = object({
  file: TEXT,
  bytes: INTEGER,
  nodes: list(
    object({
      endpoint: TEXT_OR_NULL,
      nodeId: INTEGER_OR_NULL,
      ok: BOOLEAN,
      reason: TEXT_OR_NULL,
    }),
  ),
});
const ERROR = { code: TEXT, message: TEXT, endpoint: TEXT_OR_NULL };

/** What goes to stderr with exit codes 2, 3 and 4. */
export const ERROR_DOCUMENT = object({
  error: either(object(ERROR), object({ ...ERROR, idempotencyKey: TEXT })),
});
