/**
 * Backup and restore calls: arguments are checked as they will always be, then refused, for this
 * version takes none.
 *
 * Invariants: 1. A malformed id or target has no outcome and comes first. 2. Every other call ends
 * in NotConfigured; nothing is ever reported as done.
 */
import type { BACKUP_CALLS, BackupRefusal } from "../../api/backups.js";
import type { RequestNamed } from "../../api/calls.js";
import type { EntropyPort } from "../../ports.js";
import type { Administration } from "../api/administration.js";
import type { Serving } from "../serving/serving.js";

const BACKUP_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** A text of 12 hexadecimal digits under which one call is logged. */
function operationId(entropy: EntropyPort): string {
  const hex = (value: number): string => value.toString(16).padStart(8, "0");
  return (hex(entropy.uint32()) + hex(entropy.uint32())).slice(0, 12);
}

function parentFault(request: RequestNamed<"backups.incremental">): string | null {
  return BACKUP_ID.test(request.parentBackupId) ? null : "The parent backup id is not a UUID.";
}

function leafFault(request: RequestNamed<"backups.chain">): string | null {
  return BACKUP_ID.test(request.leafBackupId) ? null : "The leaf backup id is not a UUID.";
}

function restoreFault(request: RequestNamed<"backups.restore">): string | null {
  if (!BACKUP_ID.test(request.leafBackupId)) return "The leaf backup id is not a UUID.";
  if (request.targetDir === "") return "The target directory is empty.";
  if (!request.targetDir.startsWith("/")) return "The target directory is not absolute.";
  return request.targetTimeMs < 0n ? "The target time is negative." : null;
}

const noFault = (): null => null;

/** The backup and restore calls of a node. */
export function backupCalls({
  settings,
  ports,
}: Serving): Pick<Administration, keyof typeof BACKUP_CALLS> {
  const refuse = (kind: string, fault: string | null): BackupRefusal => {
    const operation = operationId(ports.entropy);
    const restoring = kind === "restore";
    const configured = restoring ? settings.restoreConfigured : settings.backupsConfigured;
    const missing = restoring
      ? "No restore root is configured."
      : "No backup directory is configured.";
    const cause = fault ?? (configured ? "This version of the server takes no backups." : missing);
    ports.logger.log("info", "backup call refused", { operation, kind, cause });
    return {
      outcome: fault === null ? "NotConfigured" : null,
      message: `${cause} (operation ${operation})`,
    };
  };
  /** `kind`: as the log names the call; `fault`: what is wrong with its arguments. */
  const refused =
    <Request>(kind: string, fault: (request: Request) => string | null) =>
    (
      request: Request,
      _context: unknown,
      done: (end: { readonly refusal: BackupRefusal }) => void,
    ): void => {
      const refusal = refuse(kind, fault(request));
      ports.timer.soon(() => done({ refusal }));
    };
  return {
    "backups.full": refused("full", noFault),
    "backups.coordinated": refused("coordinated", noFault),
    "backups.incremental": refused("incremental", parentFault),
    "backups.list": refused("list", noFault),
    "backups.chain": refused("chain", leafFault),
    "backups.validateChain": refused("validate-chain", leafFault),
    "backups.collectGarbage": refused("gc", noFault),
    "backups.restore": refused("restore", restoreFault),
  };
}
