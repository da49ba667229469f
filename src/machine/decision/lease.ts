/**
 * Lease time: the one place where an end is compared with now. Pure.
 *
 * Invariants: 1. A lease has ended when end ≤ now, for locks, keys, idempotency entries and
 * retention alike. 2. Lease times are safe integers of milliseconds; an end beyond them is cut to
 * LEASE_END_MAX_MS.
 */
import { LEASE_MAX_MS } from "../../base/limits.js";

/** Latest lease time that can be stored. */
const LEASE_END_MAX_MS = Number.MAX_SAFE_INTEGER;

/** True when a lease with this end is over at `nowMs`. */
export function ended(endMs: number, nowMs: number): boolean {
  return endMs <= nowMs;
}

/** `fromMs` + `durationMs`, kept within the safe integers. */
export function leaseEnd(fromMs: number, durationMs: number): number {
  return Math.min(fromMs + durationMs, LEASE_END_MAX_MS);
}

/** True for a lease duration of 1 ms to the largest that any flag allows. */
export function isLeaseDuration(durationMs: number): boolean {
  return Number.isInteger(durationMs) && durationMs >= 1 && durationMs <= LEASE_MAX_MS;
}
