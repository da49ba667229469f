/**
 * Moves of key ranges as the checkers of ranges are told of them: what the world saw when the first
 * replica applied it, each step once.
 *
 * Types, and what an interval of keys is. Pure. Invariant: order is byte order, null is open.
 */
import { compareText } from "../../../../src/base/bytes.js";
import { keySpaceOf } from "../../../../src/base/routing.js";

/** Start inclusive, end exclusive; null = open. */
export interface SeenInterval {
  readonly keySpace: string;
  readonly startKey: string | null;
  readonly endKey: string | null;
}

export interface SeenMove extends SeenInterval {
  readonly moveId: number;
  readonly kind: "split" | "merge" | "home";
  readonly source: number;
  readonly target: number;
}

/** One try of a move. */
export interface SeenAttempt extends SeenInterval {
  readonly moveId: number;
  readonly attempt: number;
}

/** A range of the map. */
export interface SeenRange extends SeenInterval {
  readonly partitionId: number;
  readonly generation: number;
}

/** The name of a try, as a key of maps. */
export function attemptName({ moveId, attempt }: Pick<SeenAttempt, "moveId" | "attempt">): string {
  return `${moveId}/${attempt}`;
}

export function holds({ keySpace, startKey, endKey }: SeenInterval, key: string): boolean {
  if (keySpaceOf(key) !== keySpace) return false;
  if (startKey !== null && compareText(key, startKey) < 0) return false;
  return endKey === null || compareText(key, endKey) < 0;
}

export function intervalText({ keySpace, startKey, endKey }: SeenInterval): string {
  return `${keySpace} [${startKey ?? ""}, ${endKey ?? ""})`;
}
