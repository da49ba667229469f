/**
 * What goes into and comes out of sequence calls.
 *
 * Invariants: 1. 64-bit numbers leave as bigint.
 */
import type { Int64Input, Timestamp } from "../values/numbers.js";

/** Parameters of a new sequence. */
export interface SequenceParameters {
  /** Value at creation; it is not handed out itself (default 0: the first `next` gives 1). */
  readonly initialValue?: Int64Input | undefined;
  /** Step between values, at least 1 (default 1). */
  readonly increment?: Int64Input | undefined;
  /** Upper bound; null or omitted = none. */
  readonly maxValue?: Int64Input | null | undefined;
  /** Values the leader reserves at a time; 1 = none skipped; null = the server's default. */
  readonly blockSize?: number | null | undefined;
}

/** Changes of `update`; at least one. Omitted members keep their value, null removes the bound. */
export interface SequenceUpdate {
  readonly currentValue?: Int64Input | undefined;
  readonly increment?: Int64Input | undefined;
  readonly initialValue?: Int64Input | undefined;
  readonly maxValue?: Int64Input | null | undefined;
  readonly blockSize?: number | null | undefined;
}

/** A sequence as the service describes it. */
export interface SequenceInfo {
  readonly name: string;
  /** The last value handed out, or the end of a block that a restart left behind. */
  readonly currentValue: bigint;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  /** Grows with every update; values are unique within one incarnation. */
  readonly incarnation: bigint;
  readonly revision: bigint;
  readonly durability: "persistent";
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
}

/** Answer of delete. */
export interface SequenceDelete {
  /** Whether this call found the sequence and deleted it. */
  readonly deleted: boolean;
  /** An earlier try of this call may have deleted it. */
  readonly doubtful: boolean;
}

/** Values handed out by one call: `count` values from `start` to `end` in equal steps. */
export interface SequenceRange {
  readonly name: string;
  readonly start: bigint;
  readonly end: bigint;
  readonly count: number;
  readonly revision: bigint;
}
