/**
 * How backup and restore calls fail over gRPC.
 *
 * Invariants: 1. A failed call carries the trailer `svc-backup-outcome` with the
 * outcome's name, unless there is no outcome (a malformed id). 2. The map from outcome to status is
 * closed.
 */
import type { BackupOutcome, BackupRefusal } from "../../api/backups.js";
import { Status } from "../h2/constants.js";
import { type Failure, failureOf } from "../h2/failure.js";

/** Status of each outcome. */
const BACKUP_STATUS: Readonly<Record<BackupOutcome, number>> = {
  Ok: Status.OK,
  NotConfigured: Status.UNAVAILABLE,
  ParentMissing: Status.NOT_FOUND,
  NeedsFull: Status.FAILED_PRECONDITION,
  CorruptChain: Status.FAILED_PRECONDITION,
  CorruptArtifact: Status.FAILED_PRECONDITION,
  TargetConflict: Status.ALREADY_EXISTS,
  TargetOutsideCoverage: Status.FAILED_PRECONDITION,
  Cancelled: Status.CANCELLED,
  IoError: Status.INTERNAL,
  RetryableLeadershipLoss: Status.UNAVAILABLE,
  ExactCheckpointUnavailable: Status.FAILED_PRECONDITION,
  UnsupportedFormat: Status.FAILED_PRECONDITION,
  TopologyChanged: Status.FAILED_PRECONDITION,
  NotBackupCoordinator: Status.UNAVAILABLE,
  InsecureRoot: Status.UNAVAILABLE,
  RestrictedCoverage: Status.FAILED_PRECONDITION,
};

/** The status of a refusal. A refusal without outcome is a malformed argument. */
export function backupFailure(refusal: BackupRefusal): Failure {
  const { outcome, message } = refusal;
  if (outcome === null) return failureOf(Status.INVALID_ARGUMENT, message);
  return failureOf(BACKUP_STATUS[outcome], message, { "svc-backup-outcome": outcome });
}
