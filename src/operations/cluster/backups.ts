/**
 * Backup and restore calls: arguments are checked as they will always be, then refused, for this
 * version takes none.
 *
 * Invariants: 1. A malformed id or target has no outcome and comes first. 2. Every other call ends
 * in NotConfigured; nothing is ever reported as done.
 */
import type { EntropyPort, LoggerPort } from "../../ports.js";
import type { BackupRefusal, BackupRequest } from "../api/administration.js";
import type { OperationsSettings } from "../api/settings.js";

const BACKUP_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A text of 12 hexadecimal digits under which one call is logged. */
function operationId(entropy: EntropyPort): string {
  const hex = (value: number): string => value.toString(16).padStart(8, "0");
  return (hex(entropy.uint32()) + hex(entropy.uint32())).slice(0, 12);
}

/** What is wrong with the arguments; null when nothing is. */
function argumentFault(request: BackupRequest): string | null {
  switch (request.kind) {
    case "incremental":
      return BACKUP_ID.test(request.parentBackupId) ? null : "The parent backup id is not a UUID.";
    case "chain":
    case "validate-chain":
      return BACKUP_ID.test(request.leafBackupId) ? null : "The leaf backup id is not a UUID.";
    case "restore":
      if (!BACKUP_ID.test(request.leafBackupId)) return "The leaf backup id is not a UUID.";
      if (request.targetDir === "") return "The target directory is empty.";
      if (!request.targetDir.startsWith("/")) return "The target directory is not absolute.";
      return request.targetTimeMs < 0n ? "The target time is negative." : null;
    default:
      return null;
  }
}

/** The end of one backup or restore call. */
export function refuseBackup(
  request: BackupRequest,
  settings: OperationsSettings,
  entropy: EntropyPort,
  logger: LoggerPort,
): BackupRefusal {
  const operation = operationId(entropy);
  const fault = argumentFault(request);
  const restoring = request.kind === "restore";
  const configured = restoring ? settings.restoreConfigured : settings.backupsConfigured;
  const missing = restoring
    ? "No restore root is configured."
    : "No backup directory is configured.";
  const cause = fault ?? (configured ? "This version of the server takes no backups." : missing);
  logger.log("info", "backup call refused", { operation, kind: request.kind, cause });
  return {
    outcome: fault === null ? "NotConfigured" : null,
    message: `${cause} (operation ${operation})`,
  };
}
