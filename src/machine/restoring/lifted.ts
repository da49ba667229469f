/**
 * By how much a restored group begins above everything that was ever handed out: by the old cluster
 * after the backup, and by every earlier restore of the same catalogue.
 *
 * Pure arithmetic. Invariants: 1. What is lifted is above the state that was restored, the end of
 * the backup's chain, and what earlier restores set (L14, L15). 2. The margins cover what could be
 * handed out since: 2^44 tokens of a lock, 2^16 changes of leader, 2^20 updates of a sequence. 3. A
 * floor above FLOOR_MAX is none: the restore is refused.
 */
import { EPHEMERAL_TOKENS_PER_TERM } from "../../base/limits.js";

const TOKEN_MARGIN = 1n << 44n;
const TERM_MARGIN = 1n << 16n;
const INCARNATION_MARGIN = 2 ** 20;
const FLOOR_MAX = 1n << 62n;

/** What restores set, each the largest over all partitions; a claim of a restore tells it. */
export interface RestoredFloors {
  readonly tokenFloor: bigint;
  readonly ephemeralFloor: bigint;
  readonly incarnation: number;
}

/** Where the chain of the backup ends for one partition, which may be behind what is restored. */
export interface ChainEnd {
  /** Above every token of a persistent lock, with a row or without. */
  readonly tokenFloor: bigint;
  readonly ephemeralFloor: bigint;
  /** Highest of any sequence. */
  readonly incarnation: number;
  /** Of the last entry. */
  readonly term: number;
}

function largest(first: bigint, ...others: readonly bigint[]): bigint {
  return others.reduce((most, one) => (one > most ? one : most), first);
}

function bounded(floor: bigint): bigint | null {
  return floor > FLOOR_MAX ? null : floor;
}

/** `highestToken`: of the lock rows; -1 = there is none. null: too large. */
export function liftedTokenFloor(
  highestToken: bigint,
  tokenFloor: bigint,
  end: ChainEnd,
  earlier: RestoredFloors,
): bigint | null {
  const above = largest(highestToken + 1n, tokenFloor, end.tokenFloor, earlier.tokenFloor);
  return bounded(above + TOKEN_MARGIN);
}

/** null: too large. */
export function liftedEphemeralFloor(
  ephemeralFloor: bigint,
  end: ChainEnd,
  earlier: RestoredFloors,
): bigint | null {
  const above = largest(ephemeralFloor, end.ephemeralFloor, earlier.ephemeralFloor);
  return bounded(above + (BigInt(end.term) + TERM_MARGIN) * EPHEMERAL_TOKENS_PER_TERM);
}

/** null: too large. */
export function liftedIncarnation(
  incarnation: number,
  end: ChainEnd,
  earlier: RestoredFloors,
): number | null {
  const above = Math.max(incarnation, end.incarnation, earlier.incarnation);
  const lifted = above + INCARNATION_MARGIN;
  return Number.isSafeInteger(lifted) ? lifted : null;
}
