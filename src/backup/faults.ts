/**
 * Why an operation on backups does not succeed: the contract's outcomes, as the codes of results.
 *
 * Invariants: 1. A code is the name of an outcome of contract 7.6. 2. What is wrong with a file
 * that should be there and whole is CorruptArtifact; what the system could not do is IoError. 3. A
 * message names a path below the root of the catalogue, never the root.
 */
import { type Failure, type Result, failure } from "../base/result.js";
import type { ArchiveErrorCode } from "../ports.js";

export type BackupFaultCode =
  | "CorruptChain"
  | "CorruptArtifact"
  | "UnsupportedFormat"
  | "RestrictedCoverage"
  | "InsecureRoot"
  | "IoError"
  | "Cancelled";

export type BackupFault = Failure<BackupFaultCode>;
export type BackupResult<T> = Result<T, BackupFaultCode>;
/** How every call of this folder that reaches the disk answers. */
export type BackupDone<T> = (result: BackupResult<T>) => void;

/** A fault of the system while something is written, or while the catalogue itself is read. */
export function systemFault(fault: Failure<ArchiveErrorCode>): BackupFault {
  return failure("IoError", fault.message);
}

/** A fault of a file that a manifest names: one that is not there was there, and is damage. */
export function artifactFault(fault: Failure<ArchiveErrorCode>): BackupFault {
  const isDamage = fault.code === "missing" || fault.code === "link";
  return failure(isDamage ? "CorruptArtifact" : "IoError", fault.message);
}

/** What is wrong with the bytes of a file, and where. */
export function damage(path: string, offset: number, what: string): BackupFault {
  return failure("CorruptArtifact", `"${path}" at byte ${offset}: ${what}`);
}

export function cancelled(): BackupFault {
  return failure("Cancelled", "The call was cancelled.");
}
