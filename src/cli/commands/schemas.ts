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

export const MEMBERS_DOCUMENT = object({
  membershipVersion: INTEGER,
  members: list(object({ endpoint: TEXT, nodeId: INTEGER, role: TEXT, joinedVersion: INTEGER })),
  localRole: TEXT,
  initialized: BOOLEAN,
});
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
export const LEAVE_DOCUMENT = object({
  left: BOOLEAN,
  drained: BOOLEAN,
  outcome: TEXT,
  membershipVersion: INTEGER,
  retryable: BOOLEAN,
  reason: TEXT,
});
export const PLACEMENT_DOCUMENT = object({
  replicationFactor: INTEGER,
  rebalancerEnabled: BOOLEAN,
  initialized: BOOLEAN,
  localEndpoint: TEXT,
  hostedPartitionCount: INTEGER,
  partitions: list(
    object({
      partitionId: INTEGER,
      state: TEXT,
      generation: INTEGER,
      effectiveReplicationFactor: INTEGER,
      hostedLocally: BOOLEAN,
      replicas: list(object({ endpoint: TEXT, role: TEXT })),
    }),
  ),
});
export const FACTOR_DOCUMENT = object({
  success: BOOLEAN,
  status: TEXT,
  generation: INTEGER,
  reason: TEXT,
});

const RANGE = object({
  startKey: TEXT_OR_NULL,
  endKey: TEXT_OR_NULL,
  partitionId: INTEGER,
  generation: INTEGER,
});
export const RANGES_DOCUMENT = object({
  initialized: BOOLEAN,
  localEndpoint: TEXT,
  keySpaces: list(object({ keySpace: TEXT, routingMode: TEXT, descriptors: list(RANGE) })),
});
const REGISTRATION = {
  success: BOOLEAN,
  status: TEXT,
  routingMode: TEXT,
  descriptorCount: INTEGER,
  reason: TEXT,
};
export const REGISTER_DOCUMENT = list(object({ endpoint: TEXT, seeded: BOOLEAN, ...REGISTRATION }));
export const UNREGISTER_DOCUMENT = list(object({ endpoint: TEXT, ...REGISTRATION }));
const MOVE = { success: BOOLEAN, status: TEXT, determinate: BOOLEAN };
export const SPLIT_DOCUMENT = object({
  ...MOVE,
  newPartitionId: INTEGER,
  newGeneration: INTEGER,
  leaderHint: TEXT,
  reason: TEXT,
});
export const MERGE_DOCUMENT = object({
  ...MOVE,
  merges: INTEGER,
  leaderHint: TEXT,
  reason: TEXT,
});

const BACKUP = object({
  backupId: TEXT,
  formatVersion: INTEGER,
  type: TEXT,
  createdAtUtc: TEXT,
  parentBackupId: TEXT_OR_NULL,
  partitionCount: INTEGER,
  clusterId: TEXT_OR_NULL,
  coordinatorNode: TEXT_OR_NULL,
  clusterSnapshotNode: INTEGER_OR_NULL,
  clusterSnapshotPhysical: INTEGER_OR_NULL,
  clusterSnapshotCounter: INTEGER_OR_NULL,
  requestedKind: TEXT_OR_NULL,
  actualKind: TEXT_OR_NULL,
  substitutionReason: TEXT_OR_NULL,
  isInvalid: BOOLEAN,
  isIncomplete: BOOLEAN,
  invalidReason: TEXT_OR_NULL,
  minRecoverablePhysicalMs: INTEGER_OR_NULL,
  maxRecoverablePhysicalMs: INTEGER_OR_NULL,
});
const BACKUP_FAILURE = object({ outcome: TEXT, message: TEXT });
export const BACKUP_DOCUMENT = either(BACKUP, BACKUP_FAILURE);
export const BACKUP_LIST_DOCUMENT = either(list(BACKUP), BACKUP_FAILURE);
export const BACKUP_GC_DOCUMENT = either(
  object({
    applied: BOOLEAN,
    bytesReclaimed: INTEGER,
    retentionDeletions: list(
      object({ backupId: TEXT, type: TEXT, createdAtUtc: TEXT, bytes: INTEGER, reason: TEXT }),
    ),
    orphanReclamations: list(object({ name: TEXT, isDirectory: BOOLEAN, reason: TEXT })),
  }),
  BACKUP_FAILURE,
);
export const RESTORE_DOCUMENT = either(
  object({
    targetDir: TEXT,
    partitionsRestored: INTEGER,
    entriesApplied: INTEGER,
    lastAppliedPhysicalMs: INTEGER,
    chain: list(BACKUP),
    outcome: INTEGER,
    minRecoverablePhysicalMs: INTEGER,
    maxRecoverablePhysicalMs: INTEGER,
  }),
  BACKUP_FAILURE,
);

const ERROR = { code: TEXT, message: TEXT, endpoint: TEXT_OR_NULL };

/** What goes to stderr with exit codes 2, 3 and 4. */
export const ERROR_DOCUMENT = object({
  error: either(object(ERROR), object({ ...ERROR, idempotencyKey: TEXT })),
});
