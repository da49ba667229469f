/**
 * The Backups service. In this version every call ends in a refusal of the operation, told as a
 * status.
 *
 * Invariants: 1. A failed call carries the trailer `svc-backup-outcome` with the outcome's name,
 * unless there is no outcome (a malformed id). 2. The map from outcome to status is closed.
 */
import { status, type ServiceError } from "@grpc/grpc-js";
import type {
  BackupOutcome,
  BackupRefusal,
  BackupRequest,
  OperationsPort,
} from "../../operations/api/requests.js";
import { lanesToBigInt, type MessageCodec } from "../../proto/codec.js";
import * as proto from "../../proto/generated/backups.js";
import { adminMethod, type AdminMethod } from "../calls/unary.js";
import { callError } from "../calls/runtime.js";

/** Status of each outcome. */
const BACKUP_STATUS: Readonly<Record<BackupOutcome, status>> = {
  Ok: status.OK,
  NotConfigured: status.UNAVAILABLE,
  ParentMissing: status.NOT_FOUND,
  NeedsFull: status.FAILED_PRECONDITION,
  CorruptChain: status.FAILED_PRECONDITION,
  CorruptArtifact: status.FAILED_PRECONDITION,
  TargetConflict: status.ALREADY_EXISTS,
  TargetOutsideCoverage: status.FAILED_PRECONDITION,
  Cancelled: status.CANCELLED,
  IoError: status.INTERNAL,
  RetryableLeadershipLoss: status.UNAVAILABLE,
  ExactCheckpointUnavailable: status.FAILED_PRECONDITION,
  UnsupportedFormat: status.FAILED_PRECONDITION,
  TopologyChanged: status.FAILED_PRECONDITION,
  NotBackupCoordinator: status.UNAVAILABLE,
  InsecureRoot: status.UNAVAILABLE,
  RestrictedCoverage: status.FAILED_PRECONDITION,
};

/** The status of a refusal. A refusal without outcome is a malformed argument. */
function backupError(refusal: BackupRefusal): ServiceError {
  const { outcome, message } = refusal;
  if (outcome === null) return callError(status.INVALID_ARGUMENT, message);
  return callError(BACKUP_STATUS[outcome], message, { "svc-backup-outcome": outcome });
}

/** The calls of the service. */
export function backupMethods(operations: OperationsPort): AdminMethod[] {
  const method = <Q, P>(
    name: string,
    request: MessageCodec<Q>,
    response: MessageCodec<P>,
    toRequest: (message: Q) => BackupRequest,
  ): AdminMethod =>
    adminMethod({
      path: `/Backups/${name}`,
      role: "admin",
      request,
      response,
      run: (message, context, _done, fail) =>
        operations.backup(toRequest(message), context, (refusal) => fail(backupError(refusal))),
    });
  const info = proto.GrpcBackupInfoResponse;
  const list = proto.GrpcListBackupsResponse;
  return [
    method("TakeFullBackup", proto.GrpcTakeFullBackupRequest, info, () => ({ kind: "full" })),
    method("TakeIncrementalBackup", proto.GrpcTakeIncrementalBackupRequest, info, (message) => ({
      kind: "incremental",
      parentBackupId: message.ParentBackupId,
    })),
    method("TakeCoordinatedBackup", proto.GrpcTakeCoordinatedBackupRequest, info, () => ({
      kind: "coordinated",
    })),
    method("ListBackups", proto.GrpcListBackupsRequest, list, () => ({ kind: "list" })),
    method("GetBackupChain", proto.GrpcGetBackupChainRequest, list, (message) => ({
      kind: "chain",
      leafBackupId: message.LeafBackupId,
    })),
    method("ValidateChain", proto.GrpcValidateChainRequest, list, (message) => ({
      kind: "validate-chain",
      leafBackupId: message.LeafBackupId,
    })),
    method("Restore", proto.GrpcRestoreRequest, proto.GrpcRestoreResponse, (message) => ({
      kind: "restore",
      leafBackupId: message.LeafBackupId,
      targetDir: message.TargetDir,
      targetTimeMs: lanesToBigInt(message.TargetTimeMs),
    })),
    method(
      "RunBackupGarbageCollection",
      proto.GrpcBackupGcRequest,
      proto.GrpcBackupGcResponse,
      (message) => ({ kind: "gc", dryRun: message.DryRun }),
    ),
  ];
}
