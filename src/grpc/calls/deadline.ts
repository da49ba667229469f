/**
 * The deadline that a call carries in its headers.
 *
 * Invariants: 1. A well-formed deadline is never made later.
 */
import type { IncomingHttpHeaders } from "node:http2";

const TIMEOUT = /^([0-9]{1,8})([HMSmun])$/;
const UNIT_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/**
 * Sets the call's deadline to `boundMs` unless it is earlier. A malformed one is left to the
 * library to refuse.
 */
export function boundDeadline(headers: IncomingHttpHeaders, boundMs: number): void {
  const given = headers["grpc-timeout"];
  if (typeof given === "string") {
    const match = TIMEOUT.exec(given);
    if (match === null) return;
    if (Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 0) <= boundMs) return;
  }
  headers["grpc-timeout"] = `${Math.ceil(boundMs)}m`;
}
