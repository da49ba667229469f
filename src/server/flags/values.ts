/**
 * Reading single flag values: durations, sizes, numbers, ports, booleans.
 *
 * Invariants: 1. A value is read whole or refused; nothing is guessed. 2. Results are safe
 * integers.
 */
import { failure, ok, type Result } from "../../base/result.js";

export type ValueResult<T> = Result<T, "bad-value">;

const DURATION_UNITS_MS: Readonly<Record<string, number>> = {
  "": 1,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
};
const SIZE_UNITS_BYTES: Readonly<Record<string, number>> = {
  "": 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};

function withUnit(
  text: string,
  pattern: RegExp,
  units: Readonly<Record<string, number>>,
  wanted: string,
): ValueResult<number> {
  const match = pattern.exec(text);
  const unit = units[match?.[2] ?? ""];
  const value = match === null || unit === undefined ? Number.NaN : Number(match[1]) * unit;
  return Number.isSafeInteger(value) ? ok(value) : failure("bad-value", wanted);
}

/** Milliseconds from `250`, `250ms`, `10s`, `5m`, `24h`. */
export function readDurationMs(text: string): ValueResult<number> {
  return withUnit(
    text,
    /^(\d+)(ms|s|m|h)?$/,
    DURATION_UNITS_MS,
    "a duration such as 250ms, 10s, 5m or 24h",
  );
}

/** Bytes from `1024`, `64KiB`, `2MiB`, `1GiB`. */
export function readSizeBytes(text: string): ValueResult<number> {
  return withUnit(
    text,
    /^(\d+)(KiB|MiB|GiB)?$/,
    SIZE_UNITS_BYTES,
    "a size such as 4096, 64KiB, 2MiB or 1GiB",
  );
}

export function readInteger(text: string): ValueResult<number> {
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? ok(value) : failure("bad-value", "a whole number");
}

/** A whole number, or `ordinal` as it is. */
export function readNodeId(text: string): ValueResult<number | "ordinal"> {
  if (text === "ordinal") return ok(text);
  const number = readInteger(text);
  return number.ok ? number : failure("bad-value", "a whole number, or ordinal");
}

/** A TCP port; 0 means any free one. */
export function readPort(text: string): ValueResult<number> {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return value <= 65_535 ? ok(value) : failure("bad-value", "a port from 0 to 65535");
}

/** A TCP port, or null for `off`. */
export function readPortOrOff(text: string): ValueResult<number | null> {
  if (text === "off") return ok(null);
  const port = readPort(text);
  return port.ok ? port : failure("bad-value", "a port from 0 to 65535, or off");
}

export function readBoolean(text: string): ValueResult<boolean> {
  if (text === "true") return ok(true);
  if (text === "false") return ok(false);
  return failure("bad-value", "true or false");
}
