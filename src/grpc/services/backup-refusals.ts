/**
 * How backup and restore calls fail over gRPC.
 *
 * Invariants: 1. A failed call carries the trailer `svc-backup-outcome` with the
 * outcome's name, unless there is no outcome (a malformed id). 2. The map from outcome to status is
 * closed.
 */
import { status, type ServiceError } from "@grpc/grpc-js";
import type { BackupOutcome, BackupRefusal } from "../../api/backups.js";
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
export function backupError(refusal: BackupRefusal): ServiceError {
  const { outcome, message } = refusal;
  if (outcome === null) return callError(status.INVALID_ARGUMENT, message);
  return callError(BACKUP_STATUS[outcome], message, { "svc-backup-outcome": outcome });
}
