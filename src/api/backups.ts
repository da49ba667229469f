/**
 * Backups, restore and the collection of old backups, described.
 *
 * Plain data. Invariants: 1. The outcomes are in wire order: the place is the number. 2. A call
 * ends in an answer or in a refusal with one of these outcomes; a refusal without one is a
 * malformed argument. 3. What writes is not repeated after a lost answer: read the catalogue first.
 * 4. An empty text over gRPC is a null.
 */
import { call } from "./call.js";
import {
  asking,
  bareMessage,
  bool,
  boolArgument,
  ignored,
  inField,
  inPath,
  inQuery,
  int32,
  int32OrNull,
  int64,
  int64Argument,
  int64OrNull,
  int64OrUnsentNull,
  later,
  list,
  message,
  numbered,
  safeInt64,
  text,
  textArgument,
  textOrNull,
  texts,
  uint32OrNull,
  unread,
} from "./members.js";

export const BACKUP_OUTCOMES = [
  "Ok",
  "NotConfigured",
  "ParentMissing",
  "NeedsFull",
  "CorruptChain",
  "CorruptArtifact",
  "TargetConflict",
  "TargetOutsideCoverage",
  "Cancelled",
  "IoError",
  "RetryableLeadershipLoss",
  "ExactCheckpointUnavailable",
  "UnsupportedFormat",
  "TopologyChanged",
  "NotBackupCoordinator",
  "InsecureRoot",
  "RestrictedCoverage",
] as const;
export type BackupOutcome = (typeof BACKUP_OUTCOMES)[number];
export interface BackupRefusal {
  readonly outcome: BackupOutcome | null;
  /** Without an outcome: what is wrong with the arguments. */
  readonly message: string;
}

const cut = { flag: "HasSnapshotTime" } as const;
const coverage = { flag: "HasCoverage" } as const;

export const BACKUP_INFO = message("GrpcBackupInfoResponse", {
  backupId: text,
  formatVersion: int32,
  /** `Full` or `Incremental`. */
  type: text,
  createdAtUtc: text,
  parentBackupId: textOrNull("empty"),
  partitionCount: int32,
  clusterId: textOrNull("empty"),
  coordinatorNode: textOrNull("empty"),
  /** The cut of a coordinated backup. */
  clusterSnapshotNode: inField("SnapshotNode", int32OrNull(cut)),
  clusterSnapshotPhysical: inField("SnapshotPhysical", int64OrNull(cut)),
  clusterSnapshotCounter: inField("SnapshotCounter", uint32OrNull(cut)),
  requestedKind: textOrNull("empty"),
  actualKind: textOrNull("empty"),
  substitutionReason: textOrNull("empty"),
  isInvalid: bool,
  isIncomplete: bool,
  invalidReason: textOrNull("empty"),
  minRecoverablePhysicalMs: int64OrNull(coverage),
  maxRecoverablePhysicalMs: int64OrNull(coverage),
});
const BACKUP_LIST = bareMessage("GrpcListBackupsResponse", { backups: list(BACKUP_INFO) });

export const BACKUP_DELETION = message("GrpcBackupGcDeletion", {
  backupId: text,
  type: text,
  createdAtUtc: text,
  bytes: int64,
  reason: text,
});
export const BACKUP_ORPHAN = message("GrpcBackupGcOrphan", {
  name: text,
  isDirectory: bool,
  reason: text,
});
export const BACKUP_COLLECTION = message("GrpcBackupGcResponse", {
  /** False for a dry run. */
  applied: bool,
  bytesReclaimed: int64,
  retentionDeletions: list(BACKUP_DELETION),
  orphanReclamations: list(BACKUP_ORPHAN),
});
export const RESTORED = message("GrpcRestoreResponse", {
  targetDir: text,
  partitionsRestored: int32,
  entriesApplied: int64,
  lastAppliedPhysicalMs: int64,
  chain: list(BACKUP_INFO),
  outcome: unread(numbered("json", BACKUP_OUTCOMES)),
  minRecoverablePhysicalMs: int64OrUnsentNull,
  maxRecoverablePhysicalMs: int64OrUnsentNull,
  /** Sequences that had reserved more at the chain's end than they have now: the first names. */
  sequencesAhead: later(texts),
  sequencesAheadCount: later(int64),
});

/** What goes on now: a backup, a restore, a collection, or what reads the catalogue. */
export const RUNNING_BACKUP = message("GrpcRunningBackup", {
  /** Under which it is logged. */
  operation: text,
  kind: text,
  phase: text,
  startedAtUtc: text,
  elapsedMs: safeInt64,
  partitionsDone: int32,
  /** 0 = not known yet. */
  partitionsTotal: int32,
  bytesDone: safeInt64,
  /** 0 = not known. */
  bytesTotal: safeInt64,
});
const RUNNING_LIST = bareMessage("GrpcListRunningBackupsResponse", {
  operations: list(RUNNING_BACKUP),
});

const leafBackupId = textArgument("id of the newest backup of the chain");
const targetDir = textArgument("absolute path of the new storage directory on the server");
const targetTimeMs = int64Argument("Unix milliseconds; 0 or omitted = the end of the chain");

const statuses = [403, 404, 409, 422, 499, 500, 503] as const;
const sequenceSkip = int64Argument("increments that every sequence is moved on by; omitted = 0");
const shared = { access: "admin", refusals: true, bound: "backup" } as const;
const taking = { ...shared, answer: BACKUP_INFO, repeat: () => false } as const;
const telling = { ...shared, answer: BACKUP_LIST, reads: true } as const;

/** @internal */
export const BACKUP_CALLS = {
  "backups.full": call({
    ...taking,
    grpc: "/Backups/TakeFullBackup",
    rest: { method: "POST", path: "/v1/backups/full", summary: "Take a full backup", statuses },
    request: asking("GrpcTakeFullBackupRequest", {}),
  }),
  "backups.coordinated": call({
    ...taking,
    grpc: "/Backups/TakeCoordinatedBackup",
    rest: {
      method: "POST",
      path: "/v1/backups/coordinated",
      summary: "Take a full backup of one instant of the whole cluster",
      statuses,
    },
    request: asking("GrpcTakeCoordinatedBackupRequest", {}),
  }),
  "backups.incremental": call({
    ...taking,
    grpc: "/Backups/TakeIncrementalBackup",
    rest: {
      method: "POST",
      path: "/v1/backups/incremental",
      summary: "Take a backup of what changed since another one",
      statuses,
    },
    request: asking("GrpcTakeIncrementalBackupRequest", {
      parentBackupId: textArgument("id of the backup to continue from"),
    }),
  }),
  "backups.list": call({
    ...telling,
    grpc: "/Backups/ListBackups",
    rest: {
      method: "GET",
      path: "/v1/backups",
      summary: "List the backups, oldest first",
      statuses,
    },
    request: asking("GrpcListBackupsRequest", {}),
  }),
  "backups.running": call({
    ...shared,
    reads: true,
    grpc: "/Backups/ListRunningBackups",
    rest: {
      method: "GET",
      path: "/v1/backups/running",
      summary: "What this node does with backups now, and how far it has come",
      statuses,
    },
    request: asking("GrpcListRunningBackupsRequest", {}),
    answer: RUNNING_LIST,
  }),
  "backups.chain": call({
    ...telling,
    grpc: "/Backups/GetBackupChain",
    rest: {
      method: "GET",
      path: "/v1/backups/{id}/chain",
      summary: "List the chain of a backup, root first",
      statuses,
    },
    request: asking("GrpcGetBackupChainRequest", { leafBackupId: inPath(leafBackupId) }),
  }),
  "backups.validateChain": call({
    ...telling,
    grpc: "/Backups/ValidateChain",
    rest: {
      method: "POST",
      path: "/v1/backups/validate-chain",
      summary: "Verify every artifact of a chain",
      statuses,
    },
    request: asking("GrpcValidateChainRequest", {
      leafBackupId,
      targetDir: ignored(targetDir),
      targetTimeMs: ignored(targetTimeMs),
    }),
  }),
  "backups.collectGarbage": call({
    ...shared,
    grpc: "/Backups/RunBackupGarbageCollection",
    rest: {
      method: "POST",
      path: "/v1/backups/gc",
      summary: "Delete what retention no longer keeps",
      statuses,
    },
    request: asking("GrpcBackupGcRequest", {
      dryRun: inQuery(boolArgument("only report; omitted = false")),
    }),
    answer: BACKUP_COLLECTION,
    repeat: ({ dryRun }) => dryRun,
  }),
  "backups.restore": call({
    ...shared,
    grpc: "/Backups/Restore",
    rest: {
      method: "POST",
      path: "/v1/restore",
      summary: "Restore a chain into a new storage directory",
      statuses,
    },
    request: asking("GrpcRestoreRequest", {
      leafBackupId,
      targetDir,
      targetTimeMs,
      sequenceSkip,
    }),
    answer: RESTORED,
    repeat: () => false,
  }),
} as const;
