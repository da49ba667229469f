/**
 * What key-range calls answer. Member names and texts are those of the REST interface.
 *
 * Invariants: 1. 64-bit numbers are bigint. 2. A refusal is data: `success` false and a `status`.
 */

export interface RangeDescriptor {
  /** null = open. */
  readonly startKey: string | null;
  readonly endKey: string | null;
  readonly partitionId: number;
  readonly generation: bigint;
}

export interface KeySpaceRanges {
  readonly keySpace: string;
  readonly routingMode: string;
  readonly descriptors: readonly RangeDescriptor[];
}

export interface RangeMap {
  readonly initialized: boolean;
  readonly localEndpoint: string;
  readonly keySpaces: readonly KeySpaceRanges[];
}

export interface RegisterResult {
  readonly success: boolean;
  readonly status: string;
  readonly seeded: boolean;
  readonly routingMode: string;
  readonly descriptorCount: number;
  readonly reason: string;
}

export interface UnregisterResult {
  readonly success: boolean;
  readonly status: string;
  readonly routingMode: string;
  readonly descriptorCount: number;
  readonly reason: string;
}

export interface SplitResult {
  readonly success: boolean;
  readonly status: string;
  /** False: the map may still change; read the ranges again. */
  readonly determinate: boolean;
  readonly newPartitionId: number;
  readonly newGeneration: bigint;
  readonly leaderHint: string;
  readonly reason: string;
}

export interface MergeResult {
  readonly success: boolean;
  readonly status: string;
  readonly determinate: boolean;
  /** Folded pairs. */
  readonly merges: number;
  readonly leaderHint: string;
  readonly reason: string;
}
