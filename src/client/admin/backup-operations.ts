/**
 * Backup operations, as the client sends and reads them.
 *
 * Invariants: 1. A failed call is a BackupError made by the transport; what arrives here is a
 * success. 2. What writes is not repeated after a lost answer: read the catalogue first. 3. Empty
 * texts of the one wire are the nulls of the other.
 */
import type { ProtoReader } from "../../proto/codec.js";
import * as messages from "../../proto/generated/backups.js";
import type { BackupCollection, BackupInfo, RestoreResult } from "./backup-shapes.js";
import { plain, type NoRequest, type Plain } from "../metadata/cluster-operations.js";
import {
  bigintOf,
  bigintOrNull,
  boolOf,
  intOf,
  intOrNull,
  jsonText,
  listOf,
  textOf,
  textOrNull,
  type JsonObject,
} from "../values/json.js";
import { fromLanes, toLanes } from "../values/numbers.js";

export interface BackupIdRequest {
  readonly backupId: string;
}
export interface CollectRequest {
  readonly dryRun: boolean;
}
export interface RestoreRequest {
  readonly leafBackupId: string;
  readonly targetDir: string;
  readonly targetTimeMs: bigint;
}

const orNull = (text: string): string | null => (text === "" ? null : text);

function infoFromGrpc(info: messages.GrpcBackupInfoResponse): BackupInfo {
  const cut = info.HasSnapshotTime;
  return {
    backupId: info.BackupId,
    formatVersion: info.FormatVersion,
    type: info.Type,
    createdAtUtc: info.CreatedAtUtc,
    parentBackupId: orNull(info.ParentBackupId),
    partitionCount: info.PartitionCount,
    clusterId: orNull(info.ClusterId),
    coordinatorNode: orNull(info.CoordinatorNode),
    clusterSnapshotNode: cut ? info.SnapshotNode : null,
    clusterSnapshotPhysical: cut ? fromLanes(info.SnapshotPhysical) : null,
    clusterSnapshotCounter: cut ? info.SnapshotCounter : null,
    requestedKind: orNull(info.RequestedKind),
    actualKind: orNull(info.ActualKind),
    substitutionReason: orNull(info.SubstitutionReason),
    isInvalid: info.IsInvalid,
    isIncomplete: info.IsIncomplete,
    invalidReason: orNull(info.InvalidReason),
    minRecoverablePhysicalMs: info.HasCoverage ? fromLanes(info.MinRecoverablePhysicalMs) : null,
    maxRecoverablePhysicalMs: info.HasCoverage ? fromLanes(info.MaxRecoverablePhysicalMs) : null,
  };
}

function infoFromRest(body: JsonObject): BackupInfo {
  return {
    backupId: textOf(body, "backupId"),
    formatVersion: intOf(body, "formatVersion"),
    type: textOf(body, "type"),
    createdAtUtc: textOf(body, "createdAtUtc"),
    parentBackupId: textOrNull(body, "parentBackupId"),
    partitionCount: intOf(body, "partitionCount"),
    clusterId: textOrNull(body, "clusterId"),
    coordinatorNode: textOrNull(body, "coordinatorNode"),
    clusterSnapshotNode: intOrNull(body, "clusterSnapshotNode"),
    clusterSnapshotPhysical: bigintOrNull(body, "clusterSnapshotPhysical"),
    clusterSnapshotCounter: intOrNull(body, "clusterSnapshotCounter"),
    requestedKind: textOrNull(body, "requestedKind"),
    actualKind: textOrNull(body, "actualKind"),
    substitutionReason: textOrNull(body, "substitutionReason"),
    isInvalid: boolOf(body, "isInvalid"),
    isIncomplete: boolOf(body, "isIncomplete"),
    invalidReason: textOrNull(body, "invalidReason"),
    minRecoverablePhysicalMs: bigintOrNull(body, "minRecoverablePhysicalMs"),
    maxRecoverablePhysicalMs: bigintOrNull(body, "maxRecoverablePhysicalMs"),
  };
}

const oneInfo = {
  fromGrpc: (reader: ProtoReader, lengthBytes: number): BackupInfo =>
    infoFromGrpc(messages.GrpcBackupInfoResponse.decode(reader, lengthBytes)),
  fromRest: infoFromRest,
};
const infoList = {
  fromGrpc: (reader: ProtoReader, lengthBytes: number): readonly BackupInfo[] =>
    messages.GrpcListBackupsResponse.decode(reader, lengthBytes).Backups.map(infoFromGrpc),
  // The transport hands an array over as the member "list".
  fromRest: (body: JsonObject): readonly BackupInfo[] => listOf(body, "list").map(infoFromRest),
};

export const backupFull: Plain<NoRequest, BackupInfo> = {
  ...plain,
  ...oneInfo,
  repeat: () => false,
  name: "backups.full",
  path: "/Backups/TakeFullBackup",
  rest: { method: "POST", path: () => "/v1/backups/full", body: () => null },
  write: (_request, writer) => void messages.GrpcTakeFullBackupRequest.encode({}, writer),
};

export const backupCoordinated: Plain<NoRequest, BackupInfo> = {
  ...plain,
  ...oneInfo,
  repeat: () => false,
  name: "backups.coordinated",
  path: "/Backups/TakeCoordinatedBackup",
  rest: { method: "POST", path: () => "/v1/backups/coordinated", body: () => null },
  write: (_request, writer) => void messages.GrpcTakeCoordinatedBackupRequest.encode({}, writer),
};

export const backupIncremental: Plain<BackupIdRequest, BackupInfo> = {
  ...plain,
  ...oneInfo,
  repeat: () => false,
  name: "backups.incremental",
  path: "/Backups/TakeIncrementalBackup",
  rest: {
    method: "POST",
    path: () => "/v1/backups/incremental",
    body: ({ backupId }) => jsonText({ parentBackupId: backupId }),
  },
  write({ backupId }, writer) {
    messages.GrpcTakeIncrementalBackupRequest.encode({ ParentBackupId: backupId }, writer);
  },
};

export const listBackups: Plain<NoRequest, readonly BackupInfo[]> = {
  ...plain,
  ...infoList,
  name: "backups.list",
  reads: true,
  path: "/Backups/ListBackups",
  rest: { method: "GET", path: () => "/v1/backups", body: () => null },
  write: (_request, writer) => void messages.GrpcListBackupsRequest.encode({}, writer),
};

export const backupChain: Plain<BackupIdRequest, readonly BackupInfo[]> = {
  ...plain,
  ...infoList,
  name: "backups.chain",
  reads: true,
  path: "/Backups/GetBackupChain",
  rest: {
    method: "GET",
    path: ({ backupId }) => `/v1/backups/${encodeURIComponent(backupId)}/chain`,
    body: () => null,
  },
  write({ backupId }, writer) {
    messages.GrpcGetBackupChainRequest.encode({ LeafBackupId: backupId }, writer);
  },
};

export const validateChain: Plain<BackupIdRequest, readonly BackupInfo[]> = {
  ...plain,
  ...infoList,
  name: "backups.validateChain",
  reads: true,
  path: "/Backups/ValidateChain",
  rest: {
    method: "POST",
    path: () => "/v1/backups/validate-chain",
    body: ({ backupId }) => jsonText({ leafBackupId: backupId }),
  },
  write({ backupId }, writer) {
    messages.GrpcValidateChainRequest.encode({ LeafBackupId: backupId }, writer);
  },
};

export const collectBackups: Plain<CollectRequest, BackupCollection> = {
  ...plain,
  repeat: ({ dryRun }) => dryRun,
  name: "backups.collectGarbage",
  path: "/Backups/RunBackupGarbageCollection",
  rest: {
    method: "POST",
    path: ({ dryRun }) => `/v1/backups/gc?dryRun=${String(dryRun)}`,
    body: () => null,
  },
  write({ dryRun }, writer) {
    messages.GrpcBackupGcRequest.encode({ DryRun: dryRun }, writer);
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcBackupGcResponse.decode(reader, lengthBytes);
    return {
      applied: message.Applied,
      bytesReclaimed: fromLanes(message.BytesReclaimed),
      retentionDeletions: message.RetentionDeletions.map((one) => ({
        backupId: one.BackupId,
        type: one.Type,
        createdAtUtc: one.CreatedAtUtc,
        bytes: fromLanes(one.Bytes),
        reason: one.Reason,
      })),
      orphanReclamations: message.OrphanReclamations.map((one) => ({
        name: one.Name,
        isDirectory: one.IsDirectory,
        reason: one.Reason,
      })),
    };
  },
  fromRest(body) {
    return {
      applied: boolOf(body, "applied"),
      bytesReclaimed: bigintOf(body, "bytesReclaimed"),
      retentionDeletions: listOf(body, "retentionDeletions").map((one) => ({
        backupId: textOf(one, "backupId"),
        type: textOf(one, "type"),
        createdAtUtc: textOf(one, "createdAtUtc"),
        bytes: bigintOf(one, "bytes"),
        reason: textOf(one, "reason"),
      })),
      orphanReclamations: listOf(body, "orphanReclamations").map((one) => ({
        name: textOf(one, "name"),
        isDirectory: boolOf(one, "isDirectory"),
        reason: textOf(one, "reason"),
      })),
    };
  },
};

export const restoreBackup: Plain<RestoreRequest, RestoreResult> = {
  ...plain,
  repeat: () => false,
  name: "backups.restore",
  path: "/Backups/Restore",
  rest: { method: "POST", path: () => "/v1/restore", body: (request) => jsonText(request) },
  write({ leafBackupId, targetDir, targetTimeMs }, writer) {
    messages.GrpcRestoreRequest.encode(
      { LeafBackupId: leafBackupId, TargetDir: targetDir, TargetTimeMs: toLanes(targetTimeMs) },
      writer,
    );
  },
  fromGrpc(reader, lengthBytes) {
    const message = messages.GrpcRestoreResponse.decode(reader, lengthBytes);
    return {
      targetDir: message.TargetDir,
      partitionsRestored: message.PartitionsRestored,
      entriesApplied: fromLanes(message.EntriesApplied),
      lastAppliedPhysicalMs: fromLanes(message.LastAppliedPhysicalMs),
      chain: message.Chain.map(infoFromGrpc),
      minRecoverablePhysicalMs: fromLanes(message.MinRecoverablePhysicalMs),
      maxRecoverablePhysicalMs: fromLanes(message.MaxRecoverablePhysicalMs),
    };
  },
  fromRest(body) {
    return {
      targetDir: textOf(body, "targetDir"),
      partitionsRestored: intOf(body, "partitionsRestored"),
      entriesApplied: bigintOf(body, "entriesApplied"),
      lastAppliedPhysicalMs: bigintOf(body, "lastAppliedPhysicalMs"),
      chain: listOf(body, "chain").map(infoFromRest),
      minRecoverablePhysicalMs: bigintOf(body, "minRecoverablePhysicalMs"),
      maxRecoverablePhysicalMs: bigintOf(body, "maxRecoverablePhysicalMs"),
    };
  },
};
