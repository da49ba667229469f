/**
 * Attempts as lines of text, and back.
 *
 * Invariant: int64 values survive, also those beyond what a JSON number holds.
 */
import type { Attempt } from "./history.js";

const INT64_TAG = "int64:";
const TEXT_TAG = "text:";

/** One line of JSON: process, call, return, operation with its arguments, outcome; int64 as tagged decimal text. */
export function attemptLine(attempt: Attempt): string {
  return JSON.stringify(attempt, (_name, value: unknown) => {
    if (typeof value === "bigint") return INT64_TAG + value.toString();
    if (typeof value === "string" && (value.startsWith(INT64_TAG) || value.startsWith(TEXT_TAG))) {
      return TEXT_TAG + value;
    }
    return value;
  });
}

/** The inverse of attemptLine. Throws on a line that is no attempt. */
export function attemptOfLine(line: string): Attempt {
  const attempt = JSON.parse(line, (_name, value: unknown) => {
    if (typeof value !== "string") return value;
    if (value.startsWith(INT64_TAG)) return BigInt(value.slice(INT64_TAG.length));
    return value.startsWith(TEXT_TAG) ? value.slice(TEXT_TAG.length) : value;
  }) as Attempt;
  if (typeof attempt.id !== "number" || typeof attempt.operation?.kind !== "string") {
    throw new Error(`not an attempt: ${line.slice(0, 80)}`);
  }
  return attempt;
}
