/**
 * What a call rejects with: small classes with a stable `code`, whether a repeat may succeed, and
 * what is known about the effect.
 *
 * Invariants: 1. Everything that the client rejects or aborts with is a SvcError.
 * 2. `outcome` is "none" only when the service certainly did nothing; doubt is "unknown". 3. A code
 * never changes its meaning; messages may.
 */
import type { BACKUP_OUTCOMES } from "../../api/backups.js";

/**
 * What is known about the effect of a failed call: `none` = certainly nothing was done, `done` = it
 * was done but its result cannot be handed out, `unknown` = it may have been done.
 */
export type CallOutcome = "none" | "done" | "unknown";

/** What is known about a failure beside its message. */
export interface ErrorFacts {
  readonly outcome?: CallOutcome;
  readonly retryable?: boolean;
  readonly cause?: unknown;
  /** The connection was refused: nobody listens there. @internal */
  readonly refused?: boolean;
}

/**
 * The root of all errors of this library.
 *
 * @example
 * try {
 *   await client.sequences.next("orders");
 * } catch (error) {
 *   if (error instanceof SvcError && error.outcome === "unknown") reconcile();
 * }
 */
export class SvcError extends Error {
  override readonly name: string = "SvcError";
  /** Stable machine-readable code, for example `timeout` or `not-found`. */
  readonly code: string;
  /** What is known about the effect of the call. */
  readonly outcome: CallOutcome;
  /** True when the same call may succeed later; says nothing about whether a repeat is safe. */
  readonly retryable: boolean;

  constructor(code: string, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.outcome = facts.outcome ?? "none";
    this.retryable = facts.retryable ?? false;
  }
}

/**
 * The same error after an earlier try whose outcome is unknown: then the call's is unknown too.
 * @internal
 */
export function doubted<Failure extends SvcError>(error: Failure): Failure {
  return error.outcome === "none" ? withOutcome(error, "unknown") : error;
}

/** The same error about something that only read: nothing can have been done. @internal */
export function effectless<Failure extends SvcError>(error: Failure): Failure {
  return error.outcome === "unknown" ? withOutcome(error, "none") : error;
}

/** A copy: calls that fail together may share their error. */
function withOutcome<Failure extends SvcError>(error: Failure, outcome: CallOutcome): Failure {
  const facts = Object.getOwnPropertyDescriptors(error);
  const copy = Object.create(Object.getPrototypeOf(error) as object, facts) as Failure;
  return Object.defineProperty(copy, "outcome", { value: outcome, enumerable: true });
}

/** `invalid-input`: the service or the library refuses the arguments. Nothing was done. */
export class InvalidInputError extends SvcError {
  override readonly name = "InvalidInputError";
  constructor(message: string, facts?: ErrorFacts) {
    super("invalid-input", message, facts);
  }
}

/**
 * `out-of-range`: a number is no safe integer or leaves its range. In an answer (`outcome` is
 * `done` for what changes something) `value` holds the exact number.
 */
export class SvcRangeError extends SvcError {
  override readonly name = "SvcRangeError";
  /** The exact value that does not fit, when there is one. */
  readonly value: bigint | null;
  constructor(message: string, value: bigint | null = null, facts?: ErrorFacts) {
    super("out-of-range", message, facts);
    this.value = value;
  }
}

/** `not-found`: there is no such sequence. */
export class NotFoundError extends SvcError {
  override readonly name = "NotFoundError";
  constructor(message: string, facts?: ErrorFacts) {
    super("not-found", message, facts);
  }
}

/**
 * `already-exists`: a sequence of that name exists. With `outcome` `unknown` an earlier try of the
 * same call may have created it.
 */
export class AlreadyExistsError extends SvcError {
  override readonly name = "AlreadyExistsError";
  constructor(message: string, facts?: ErrorFacts) {
    super("already-exists", message, facts);
  }
}

/** `max-value-exceeded`: the allocation would pass maxValue or int64. Nothing was consumed. */
export class MaxValueExceededError extends SvcError {
  override readonly name = "MaxValueExceededError";
  constructor(message: string, facts?: ErrorFacts) {
    super("max-value-exceeded", message, facts);
  }
}

/** `sequence-mismatch`: `ensure` found other parameters; `differences` lists them. */
export class SequenceMismatchError extends SvcError {
  override readonly name = "SequenceMismatchError";
  /** One sentence per parameter that differs. */
  readonly differences: readonly string[];
  constructor(message: string, differences: readonly string[]) {
    super("sequence-mismatch", message);
    this.differences = differences;
  }
}

/**
 * `timeout`: the deadline of the call passed. `outcome` is `unknown` when a try was sent and not
 * answered (or answered with "must retry"), `none` when nothing was ever sent. `cause` is the last
 * failure before.
 */
export class TimeoutError extends SvcError {
  override readonly name = "TimeoutError";
  constructor(message: string, facts?: ErrorFacts) {
    super("timeout", message, { retryable: true, ...facts });
  }
}

/** `cancelled`: the caller's AbortSignal ended the call; `cause` is its reason. */
export class CancelledError extends SvcError {
  override readonly name = "CancelledError";
  constructor(message: string, facts?: ErrorFacts) {
    super("cancelled", message, facts);
  }
}

/** `client-closed`: the client was closed before or during the call. */
export class ClosedError extends SvcError {
  override readonly name = "ClosedError";
  constructor(facts?: ErrorFacts) {
    super("client-closed", "the client is closed", facts);
  }
}

/**
 * The service could not serve the call: `must-retry` (no leader, overload, an update in progress),
 * `aborted` (stopped before it began), `unreachable`, `connection-lost`, `overloaded`. Always
 * retryable; `outcome` tells whether something may have happened.
 */
export class UnavailableError extends SvcError {
  override readonly name = "UnavailableError";
  /** Wait at least so long before a repeat (ms). */
  readonly retryAfterMs: number;
  /** @internal Nobody listens at the endpoint. */
  readonly refused: boolean;
  constructor(code: string, message: string, facts: ErrorFacts = {}, retryAfterMs = 0) {
    super(code, message, { retryable: true, ...facts });
    this.retryAfterMs = retryAfterMs;
    this.refused = facts.refused === true;
  }
}

/**
 * What failed on this side before anything was sent (a token function, an encoder). @internal
 */
export function localFailure(error: unknown): SvcError {
  if (error instanceof SvcError) return error;
  return new SvcError("local", "the call could not be made", { cause: error });
}

/** The failure of a try whose transport was closed; unknown if it may have left. */
export function goneWith(attempt: { readonly left: boolean }): UnavailableError {
  const outcome = attempt.left ? "unknown" : "none";
  return new UnavailableError("connection-lost", "the connection was closed", { outcome });
}

/**
 * `outcome-unknown`: the call was repeated after a lost answer, and what came back does not tell
 * whether the first try worked (a conditional set that says "not set").
 */
export class UnknownOutcomeError extends SvcError {
  override readonly name = "UnknownOutcomeError";
  constructor(message: string, facts?: ErrorFacts) {
    super("outcome-unknown", message, { outcome: "unknown", ...facts });
  }
}

/** `server-error`: an unexpected fault of the service, logged there; or `protocol`. */
export class ServerError extends SvcError {
  override readonly name = "ServerError";
  constructor(message: string, facts?: ErrorFacts, code = "server-error") {
    super(code, message, { outcome: "unknown", ...facts });
  }
}

/** `unauthenticated` or `forbidden`: the token or certificate is missing, wrong or not allowed. */
export class AccessError extends SvcError {
  override readonly name = "AccessError";
  constructor(code: "unauthenticated" | "forbidden", message: string, facts?: ErrorFacts) {
    super(code, message, facts);
  }
}

/**
 * `not-available-at-level`: the cluster has not been finalized to the level that this needs.
 * Nothing was done; the same call works after that.
 */
export class NotAtLevelError extends SvcError {
  override readonly name = "NotAtLevelError";
  constructor(message: string, facts?: ErrorFacts) {
    super("not-available-at-level", message, facts);
  }
}

/** `too-large`: the request or its answer exceeds a limit of the server. */
export class TooLargeError extends SvcError {
  override readonly name = "TooLargeError";
  constructor(message: string, facts?: ErrorFacts) {
    super("too-large", message, facts);
  }
}

/** `lock-not-acquired`: `withLock` did not get the lock within its wait. */
export class LockNotAcquiredError extends SvcError {
  override readonly name = "LockNotAcquiredError";
  readonly resource: string;
  constructor(resource: string, facts?: ErrorFacts) {
    super("lock-not-acquired", `the lock "${resource}" is held by another owner`, {
      retryable: true,
      ...facts,
    });
    this.resource = resource;
  }
}

/**
 * Why the signal of a lock handle aborted: `lock-lost` (refused or not renewed in time),
 * `lock-released` (by the holder itself) or `lock-not-held` (it was never acquired).
 */
export class LockLostError extends SvcError {
  override readonly name = "LockLostError";
  readonly resource: string;
  constructor(
    code: "lock-lost" | "lock-released" | "lock-not-held",
    resource: string,
    why: string,
  ) {
    super(code, `the lock "${resource}" ${why}`);
    this.resource = resource;
  }
}

/** The ways a backup, restore or catalogue call ends. */
export type BackupOutcome = Exclude<(typeof BACKUP_OUTCOMES)[number], "Ok">;

/** `backup-failed`: a backup, restore or catalogue call was refused or failed. */
export class BackupError extends SvcError {
  override readonly name = "BackupError";
  /** The named outcome, for example `NotConfigured`. */
  readonly backupOutcome: BackupOutcome;
  constructor(backupOutcome: BackupOutcome, message: string, facts?: ErrorFacts) {
    super("backup-failed", message, facts);
    this.backupOutcome = backupOutcome;
  }
}
