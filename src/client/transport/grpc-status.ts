/**
 * What the statuses of gRPC mean to a call.
 *
 * Invariants: 1. A failure of the transport is never taken for one of the service.
 * 2. Unless the service certainly did nothing, the outcome is unknown.
 */
import { status, type Metadata } from "@grpc/grpc-js";
import {
  AccessError,
  NotAtLevelError,
  BackupError,
  InvalidInputError,
  ServerError,
  SvcError,
  TooLargeError,
  UnavailableError,
  type BackupOutcome,
} from "../values/errors.js";

const BACKUP_TRAILER = "svc-backup-outcome";

/** The error of a call or stream that ended with `code`. */
export function statusError(code: number, details: string, trailers?: Metadata): SvcError {
  const outcome = trailers?.get(BACKUP_TRAILER)[0];
  if (outcome !== undefined) return backupError(String(outcome), details);
  const http = httpStatus(details);
  if (http !== null) return notSpoken(http, details);
  switch (code) {
    case status.INVALID_ARGUMENT:
      return new InvalidInputError(details);
    case status.UNAUTHENTICATED:
      return new AccessError("unauthenticated", details);
    case status.PERMISSION_DENIED:
      return new AccessError("forbidden", details);
    case status.FAILED_PRECONDITION:
      return new NotAtLevelError(details);
    case status.RESOURCE_EXHAUSTED:
      // The transport reports ENHANCE_YOUR_CALM under this code: it is about the connection.
      if (details.startsWith("Bandwidth exhausted")) return lostConnection(details);
      return new TooLargeError(details);
    case status.UNIMPLEMENTED:
      return new SvcError("unimplemented", `the server does not offer this: ${details}`);
    case status.DEADLINE_EXCEEDED:
      return new UnavailableError("no-answer", details, { outcome: "unknown" });
    case status.UNAVAILABLE:
    case status.CANCELLED:
    case status.OK:
      return lostConnection(details);
    case status.INTERNAL:
      // The transport reports a reset of its stream under this code.
      if (/RST_STREAM|Call ended without/.test(details)) return lostConnection(details);
      return new ServerError(details);
    default:
      return new ServerError(`status ${status[code] ?? code}: ${details}`);
  }
}

/** The HTTP status of an answer that was no gRPC at all (a proxy, another service), or null. */
export function httpStatus(details: string): number | null {
  const found = /^Received HTTP status code (\d{3})/.exec(details)?.[1];
  return found === undefined ? null : Number(found);
}

/** Another endpoint may be the right one. A gateway may have lost the answer of the service. */
function notSpoken(http: number, details: string): UnavailableError {
  const outcome = http >= 500 || http === 408 ? "unknown" : "none";
  const message = `the endpoint answers HTTP ${http} and does not speak gRPC: ${details}`;
  return new UnavailableError("unreachable", message, { outcome });
}

function lostConnection(details: string): UnavailableError {
  return new UnavailableError("connection-lost", details, { outcome: "unknown" });
}

/** Outcomes after which something may have been written. */
const OPEN: ReadonlySet<string> = new Set(["IoError", "Cancelled", "RetryableLeadershipLoss"]);

export function backupError(outcome: string, details: string): BackupError {
  return new BackupError(outcome as BackupOutcome, details, {
    outcome: OPEN.has(outcome) ? "unknown" : "none",
    retryable: outcome === "RetryableLeadershipLoss",
  });
}
