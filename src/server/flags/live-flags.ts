/**
 * Flags that a file may stand for, and whose values change with it while the node runs (contract
 * 10.8).
 *
 * Invariants: 1. A value is read and checked as that of any flag, at the start and later. 2. The
 * content of a file is the value, without white space around it.
 */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Result, failure, ok } from "../../base/result.js";

export const LIVE_FLAGS = [
  "--log-level",
  "--slow-request-threshold",
  "--caller-rate-limit",
] as const;
export type LiveFlag = (typeof LIVE_FLAGS)[number];

const NUMBER_MAX = 1_000_000_000;

/** Path of the file that `text`, given for the flag, stands for; null: it is the value itself. */
export function liveFileOf(flag: string, text: string): string | null {
  const isLive = (LIVE_FLAGS as readonly string[]).includes(flag);
  return isLive && text.startsWith("@") ? resolve(text.slice(1)) : null;
}

/** The content of such a file, to be read as the value. */
export function liveText(path: string): Result<string, "bad-value"> {
  try {
    return ok(readFileSync(path, "utf8").trim());
  } catch (error) {
    return failure("bad-value", (error as Error).message);
  }
}

/** What is wrong with a value of its kind; null: nothing. */
export function liveMistake(flag: LiveFlag, value: string | number): string | null {
  if (typeof value === "string" || (value >= 0 && value <= NUMBER_MAX)) return null;
  return `${flag} ${value} must be from 0 to ${NUMBER_MAX}`;
}
