/**
 * What clients of the world ask for, each in two forms: as the service takes it and as the history
 * records it; and what a client remembers between two of them.
 *
 * Types, and the small draws that several kinds of requests share. Invariants: 1. An ask holds
 * nothing that changes: it may be asked again. 2. Every value ever written is unique, so that a
 * read names its write.
 */
import { INT64_MAX, INT64_MIN } from "../../../src/base/int64.js";
import type { Prng } from "../../../src/base/prng.js";
import type { DataRequest } from "../../../src/operations/api/requests.js";
import type { FencedStore } from "../../judge/checkers/clients/fenced-store.js";
import type { Operation } from "../../judge/operation.js";
import type { WorkloadKind } from "../plan/workplan.js";

/** A change of the key ranges, as the administration takes it. */
export type RangeRequest =
  | { readonly kind: "register-range" | "unregister-range"; readonly keySpace: string }
  | { readonly kind: "split-range"; readonly keySpace: string; readonly splitKey: string }
  | { readonly kind: "merge-ranges" };

export interface Ask {
  readonly kind: WorkloadKind;
  readonly request: DataRequest | RangeRequest;
  /** One attempt of the history each: a call for many keys has one per item. */
  readonly operations: readonly Operation[];
}

/** What all clients of a world share. */
export interface SharedWork {
  /** Number of the next unique value, key or scan. */
  unique: number;
  /** Large values that were drawn. */
  large: number;
  /** Stands outside of the service and takes writes with fencing tokens. */
  readonly store: FencedStore;
}

/** What a client remembers, so that its next operations make sense. */
export interface ClientMemory {
  readonly owner: string;
  /** Asks that ended unknown, to be tried again. */
  readonly unfinished: Ask[];
  /** Allocations with a key, answered or not, to be asked again much later; bounded. */
  readonly keyed: Ask[];
  /** What was last seen of a key; bounded. */
  readonly seen: Map<string, { readonly value: string | null; readonly revision: bigint }>;
}

export const PERSISTENT = 1;
export const EPHEMERAL = 0;
/** A name that is a byte too long. */
export const OVERLONG = "n".repeat(1025);

const LEASES_MS = [50, 300, 1000, 5000, 60_000];
const MEMORY_MAX = 64;

export function leaseMs(prng: Prng): number {
  return LEASES_MS[prng.below(LEASES_MS.length)] as number;
}

/** Mostly small, now and then at the edges of int64 or below zero. */
export function wholeNumber(prng: Prng): bigint {
  if (prng.chance(1, 12)) return INT64_MAX - BigInt(prng.below(50));
  if (prng.chance(1, 24)) return INT64_MIN + BigInt(prng.below(50));
  if (prng.chance(1, 24)) return -BigInt(prng.below(1000));
  return BigInt(prng.below(1000));
}

export function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

export function remember(memory: ClientMemory, ask: Ask): void {
  if (memory.keyed.length >= MEMORY_MAX) memory.keyed.shift();
  memory.keyed.push(ask);
}

export function see(
  memory: ClientMemory,
  key: string,
  value: string | null,
  revision: bigint,
): void {
  const { seen } = memory;
  seen.delete(key);
  seen.set(key, { value, revision });
  for (const oldest of seen.keys()) {
    if (seen.size <= MEMORY_MAX) break;
    seen.delete(oldest);
  }
}
