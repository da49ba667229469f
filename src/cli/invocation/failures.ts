/**
 * What can go wrong, as the tool reports it: exit code, code, message, endpoint (contract 8.3,
 * 8.4).
 *
 * Invariants: 1. An unknown outcome is never exit code 0 or 1, and its message says that it is
 * unknown. 2. One line on stderr, nothing on stdout.
 */
import {
  CancelledError,
  InvalidInputError,
  NotAtLevelError,
  SvcError,
  SvcRangeError,
  TimeoutError,
  UnavailableError,
  UnknownOutcomeError,
  type CallOutcome,
} from "../../client/values/errors.js";
import {
  EXIT_REFUSED,
  EXIT_UNEXPECTED,
  EXIT_UNREACHABLE,
  EXIT_USAGE,
  type ExitCode,
} from "./exit-codes.js";
import { jsonText } from "../terminal/format.js";
import type { Format } from "./settings.js";
import { visibleText } from "../terminal/text-width.js";

export interface Failure {
  readonly exit: ExitCode;
  readonly code: string;
  readonly message: string;
  readonly endpoint: string | null;
  /** The key of an allocation whose outcome is unknown; null for everything else. */
  readonly idempotencyKey: string | null;
}

/** A failure that the tool itself found. */
export class CliError extends Error {
  readonly exit: ExitCode;
  readonly code: string;

  constructor(exit: ExitCode, code: string, message: string) {
    super(message);
    this.exit = exit;
    this.code = code;
  }
}

/**
 * True for what the service or the library refused and certainly did not do. After a doubt (an
 * earlier try whose answer was lost) the same error is none: nobody knows whether it was done.
 */
export function isRefusal(error: unknown): boolean {
  const isInvalid =
    error instanceof InvalidInputError ||
    error instanceof SvcRangeError ||
    error instanceof NotAtLevelError;
  return isInvalid && error.outcome === "none";
}

/**
 * An answer that does not tell whether an earlier try, whose own answer was lost, had an effect.
 */
export function doubt(message: string): SvcError {
  return new UnknownOutcomeError(message);
}

export function usageError(message: string): CliError {
  return new CliError(EXIT_USAGE, "usage", message);
}

/** Codes of UnavailableError that name a fault rather than a place that cannot be reached. */
function exitOf(error: SvcError): ExitCode {
  if (error instanceof TimeoutError) return EXIT_UNREACHABLE;
  if (error instanceof UnavailableError) {
    return error.code === "aborted" ? EXIT_UNEXPECTED : EXIT_UNREACHABLE;
  }
  return isRefusal(error) ? EXIT_REFUSED : EXIT_UNEXPECTED;
}

const explanations = new WeakMap<Error, string>();

/** Sets what is known about why the service did not answer; it replaces the chain of causes. */
export function explainFailure(error: Error, explanation: string): void {
  if (error instanceof TimeoutError || error instanceof UnavailableError) {
    explanations.set(error, explanation);
  }
}

const keys = new WeakMap<Error, string>();

/** Sets the idempotency key that a failed allocation travelled with. */
export function noteKey(error: unknown, key: string): void {
  if (error instanceof SvcError && error.outcome === "unknown") keys.set(error, key);
}

/** The chain of causes in one line: the last one usually says what really happened. */
function fullMessage(error: Error): string {
  const explanation = explanations.get(error);
  if (explanation !== undefined) {
    // The last failure may stand in the message too: what was found says it better.
    const last = error.cause instanceof Error ? ` (${error.cause.message})` : "";
    return `${error.message.replace(last, "")}: ${explanation}`;
  }
  const parts = [error.message];
  let cause = error.cause;
  for (let depth = 0; depth < 4 && cause instanceof Error; depth++) {
    if (!parts.some((part) => part.includes((cause as Error).message))) parts.push(cause.message);
    cause = cause.cause;
  }
  return parts.filter((part) => part !== "").join(": ");
}

const EFFECTS: Readonly<Record<CallOutcome, string>> = {
  none: "",
  done: " (it was done)",
  unknown: " (the outcome is unknown: it may have been done)",
};

export function describeFailure(error: unknown, endpoint: string | null): Failure {
  if (error instanceof CliError) {
    const { exit, code, message } = error;
    return { exit, code, message, endpoint, idempotencyKey: null };
  }
  if (error instanceof SvcError) {
    const interrupted = error instanceof CancelledError ? "interrupted: " : "";
    const idempotencyKey = keys.get(error) ?? null;
    const repeat =
      idempotencyKey === null
        ? ""
        : `; a repeat with the idempotency key ${idempotencyKey} gives the same values`;
    const message = interrupted + fullMessage(error) + EFFECTS[error.outcome] + repeat;
    return { exit: exitOf(error), code: error.code, message, endpoint, idempotencyKey };
  }
  const message = error instanceof Error ? fullMessage(error) : String(error);
  return { exit: EXIT_UNEXPECTED, code: "unexpected", message, endpoint, idempotencyKey: null };
}

/** The line for stderr. */
export function failureText(failure: Failure, format: Format): string {
  if (format === "json") {
    const { code, message, endpoint, idempotencyKey } = failure;
    const key = idempotencyKey === null ? {} : { idempotencyKey };
    return `${jsonText({ error: { code, message, endpoint, ...key } })}\n`;
  }
  return `error: ${visibleText(failure.message)}\n`;
}
