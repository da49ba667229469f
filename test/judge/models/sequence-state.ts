/**
 * The state of one sequence in the model: numbering, open block, remembered keys. Plain data and the arithmetic on it.
 *
 * Invariants: 1. `served` is the last value handed out, `blockEnd` the end of what is durably reserved; both lie on the
 * increment's grid from the incarnation's first value. 2. Remembered keys are a list that is shared and never changed;
 * equal lists are one object, so that its number names it.
 */
import type { SequenceSeen, UpdateOperation } from "../history.js";

export const INT64_MAX = 2n ** 63n - 1n;
export const INT64_MIN = -(2n ** 63n);

/**
 * Leaders that one keyless allocation may lose before it is answered, each with the block that it had reserved for it.
 *
 * A leader that is deposed says that nothing was done (`endMoved`) also when the reservation is committed later: nobody
 * got a value. The node that took the call in asks the next one by itself, 32 times at most (`TRIES_MAX` of the
 * forwarder), and no client repeats anything; so the program allows 31. What bounds it is time: each of them must win an
 * election, prove itself, have its reservation committed, and be deposed within one call, which is 5 seconds in chaos and
 * mostly 3 in simulated worlds, with elections of half a second and more. A planned move waits until what was proposed is
 * answered, and loses nothing. Two were too few for five seconds. An answer names its revision, so that a larger bound
 * opens no second way to explain it; it only lets searches in vain go on for longer.
 */
export const LOST_TRIES_MAX = 8;

export interface RememberedKey {
  readonly number: number;
  /** The next older one that has a name. */
  readonly olderNamed: RememberedKey | null;
  /** How many are older. */
  readonly depth: number;
  readonly key: string;
  readonly count: number;
  readonly start: bigint;
  readonly end: bigint;
  readonly revision: bigint;
  /** Bounds of the true time at which it was remembered. */
  readonly fromMs: number;
  readonly toMs: number;
}

export interface SequenceState {
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly incarnation: bigint;
  readonly revision: bigint;
  readonly served: bigint;
  readonly blockEnd: bigint;
  /** Order of the first answer with a value of the open block: who called before it may share its reservation. */
  readonly blockSharedUntil: number;
  readonly keys: RememberedKey | null;
}

export function limitOf(state: SequenceState): bigint {
  return state.maxValue ?? INT64_MAX;
}

/** Values that may still be allocated above `base`. */
export function roomAbove(state: SequenceState, base: bigint): bigint {
  const limit = limitOf(state);
  return limit <= base ? 0n : (limit - base) / state.increment;
}

/** True when `seen` describes the state with `current` as its current value. */
export function isSeenAs(state: SequenceState, seen: SequenceSeen, current: bigint): boolean {
  return (
    seen.currentValue === current &&
    seen.initialValue === state.initialValue &&
    seen.increment === state.increment &&
    seen.maxValue === state.maxValue &&
    seen.blockSize === state.blockSize &&
    seen.incarnation === state.incarnation &&
    seen.revision === state.revision
  );
}

/** One table of lists, so that equal lists of remembered keys are one object. */
export class RememberedKeys {
  private readonly known = new Map<string, RememberedKey>();
  private count = 0;

  add(
    older: RememberedKey | null,
    entry: Omit<RememberedKey, "number" | "olderNamed" | "depth">,
  ): RememberedKey {
    const { key, count, start, end, revision, fromMs, toMs } = entry;
    const text = [older?.number ?? 0, count, start, end, revision, fromMs, toMs, key].join(" ");
    let made = this.known.get(text);
    if (made === undefined) {
      const olderNamed = older === null || older.key !== "" ? older : older.olderNamed;
      const depth = older === null ? 0 : older.depth + 1;
      made = { ...entry, olderNamed, depth, number: ++this.count };
      this.known.set(text, made);
    }
    return made;
  }
}

/** The entry of a key, and how many newer ones there are. */
export function findKey(
  keys: RememberedKey | null,
  key: string,
): { readonly entry: RememberedKey | null; readonly newer: number } {
  for (let entry = keys; entry !== null; entry = entry.olderNamed) {
    if (entry.key === key) return { entry, newer: (keys?.depth ?? 0) - entry.depth };
  }
  return { entry: null, newer: 0 };
}

/** The sequence after an update; null when it may not be made. */
export function merged(
  state: SequenceState,
  operation: UpdateOperation,
  current: bigint,
): SequenceState | null {
  const maxValue = operation.removeMaxValue ? null : (operation.maxValue ?? state.maxValue);
  if (maxValue !== null && maxValue < current) return null;
  return {
    initialValue: operation.initialValue ?? state.initialValue,
    increment: operation.increment ?? state.increment,
    maxValue,
    blockSize: operation.removeBlockSize ? null : (operation.blockSize ?? state.blockSize),
    incarnation: state.incarnation + 1n,
    revision: state.revision + 1n,
    served: current,
    blockEnd: current,
    blockSharedUntil: Number.NEGATIVE_INFINITY,
    keys: null,
  };
}
