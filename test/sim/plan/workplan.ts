/**
 * What a seed decides about its clients: which operations they ask for and how often, their habits,
 * and the bounds of the service that they run into.
 *
 * Pure. Invariant: kinds that came later are drawn from a generator of their own, so that what is
 * drawn elsewhere stays.
 */
import type { Prng } from "../../../src/base/prng.js";

export const OPERATION_KINDS = [
  "lock",
  "extend",
  "unlock",
  "get-lock",
  "ephemeral-lock",
  "create",
  "update",
  "delete",
  "get-sequence",
  "next",
  "next-keyed",
  "reserve",
  "set",
  "set-conditional",
  "set-expiring",
  "kv-extend",
  "kv-delete",
  "get",
  "exists",
  "ephemeral-set",
  "ephemeral-get",
  "bucket",
] as const;
/** Drawn from a generator of their own: see `laterWeights`. */
const LATER_KINDS = [
  "set-flags",
  "get-revision",
  "ephemeral-delete",
  "replay",
  "hold",
  "hold-ephemeral",
  "scan-all",
  "scan-local",
  "range",
  "set-many",
  "delete-many",
  "get-many",
  "exists-many",
  "ranges",
  "batch",
  "odd",
] as const;
/** Off, but in profiles that name them. */
const SPECIAL_KINDS = ["churn", "ends", "readers"] as const;
export const WORKLOAD_KINDS = [...OPERATION_KINDS, ...LATER_KINDS, ...SPECIAL_KINDS] as const;
export type WorkloadKind = (typeof WORKLOAD_KINDS)[number];

/** Habits of the clients, and the bounds of the service that they run into. */
export interface WorkSettings {
  /** Of a thousand asks, those in whose middle the client goes away. */
  readonly vanishPerMille: number;
  /** Nobody has a deadline of its own; else one ask of eight has. */
  readonly isPatient?: boolean;
  /** Of a hundred asks with an unknown end, those that are asked again. */
  readonly retryPercent: number;
  /** Of a hundred asks, those that may not be forwarded. */
  readonly forwardedPercent: number;
  readonly keysRetainedMax: number;
  readonly keysRetainedMs: number;
  readonly revisionsRetained: number;
  readonly pageBytes: number;
  readonly responseMaxBytes: number;
  readonly valueMaxBytes: number;
  readonly lockMaxLeaseMs: number;
  /** Of two hundred values in a row, so many are large. */
  readonly largeValues: number;
  readonly largeBytes: number;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

/** Of the first kinds. */
export function weights(prng: Prng): Record<WorkloadKind, number> {
  const drawn = {} as Record<WorkloadKind, number>;
  for (const kind of OPERATION_KINDS) {
    drawn[kind] = prng.chance(1, 4) ? 0 : 1 + prng.below(10);
  }
  // Nothing can be looked at that nobody makes.
  drawn.create = Math.max(2, drawn.create);
  drawn.next = Math.max(1, drawn.next);
  drawn.set = Math.max(1, drawn.set);
  drawn.lock = Math.max(1, drawn.lock);
  return drawn;
}

export function laterWeights(prng: Prng): Record<WorkloadKind, number> {
  const drawn = {} as Record<WorkloadKind, number>;
  for (const kind of SPECIAL_KINDS) drawn[kind] = 0;
  for (const kind of LATER_KINDS) drawn[kind] = prng.chance(1, 3) ? 1 + prng.below(6) : 0;
  return drawn;
}

export function workSettings(prng: Prng): WorkSettings {
  return {
    vanishPerMille: pick(prng, [0, 5, 5, 50]),
    retryPercent: pick(prng, [0, 30, 90]),
    forwardedPercent: pick(prng, [0, 0, 10]),
    keysRetainedMax: pick(prng, [3, 256, 256, 0]),
    keysRetainedMs: pick(prng, [3000, 30_000, 600_000, 0]),
    revisionsRetained: pick(prng, [1, 3, 16]),
    pageBytes: pick(prng, [300, 5000, 2 << 20]),
    responseMaxBytes: pick(prng, [8000, 16 << 20, 16 << 20]),
    valueMaxBytes: pick(prng, [4000, 12_000]),
    lockMaxLeaseMs: pick(prng, [5000, 86_400_000]),
    largeValues: 0,
    largeBytes: 0,
  };
}
