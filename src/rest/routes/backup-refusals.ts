/**
 * How backup and restore calls fail (contract 7.6).
 *
 * Invariants: 1. Every failed call carries its outcome in the header X-Svc-Backup-Outcome and in
 * the member `outcome`; a malformed id or an empty target has none and is 400.
 */
import type { BackupOutcome, BackupRefusal } from "../../api/backups.js";
import type { CallName } from "../../api/calls.js";
import type { Exchange } from "../http/exchange.js";

const OUTCOME_STATUSES: Readonly<Record<BackupOutcome, number>> = {
  Ok: 500,
  NotConfigured: 503,
  ParentMissing: 404,
  NeedsFull: 422,
  CorruptChain: 422,
  CorruptArtifact: 422,
  TargetConflict: 409,
  TargetOutsideCoverage: 422,
  Cancelled: 499,
  IoError: 500,
  RetryableLeadershipLoss: 503,
  ExactCheckpointUnavailable: 422,
  UnsupportedFormat: 422,
  TopologyChanged: 422,
  NotBackupCoordinator: 503,
  InsecureRoot: 503,
  RestrictedCoverage: 422,
};

export function answerBackupRefusal(
  exchange: Exchange,
  name: CallName,
  { outcome, message }: BackupRefusal,
): void {
  if (outcome === null) {
    exchange.problem(400, "invalid-argument", message);
    return;
  }
  const notPermitted = name === "backups.restore" && outcome === "NotConfigured";
  const status = notPermitted ? 403 : OUTCOME_STATUSES[outcome];
  const headers = { "x-svc-backup-outcome": outcome };
  exchange.problem(status, "backup-failed", message, headers, `{"outcome":"${outcome}"}`);
}
