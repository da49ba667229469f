/** What moves of ranges came to on this node, since the process began. */
import type { MoveEnd, MoveKind } from "../../machine/commands/command.js";

/** Bounds of the histogram of how long intervals were frozen (seconds). */
export const FROZEN_SECONDS_BOUNDS: readonly number[] = [
  0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.3, 1, 2,
];

/** Bounds of the histogram of how long the steps of moves took (seconds). */
export const PHASE_SECONDS_BOUNDS: readonly number[] = [0.005, 0.02, 0.05, 0.15, 0.5, 2, 10, 60];

/** What one step of moves took: counts by the bounds, the last is for all above. */
export interface PhaseSeconds {
  readonly counts: readonly number[];
  readonly sum: number;
}

export interface RangeFacts {
  /** By step of the mover; steps that were never taken are absent. */
  readonly phases: ReadonlyMap<string, PhaseSeconds>;
  /** Live keys by partition that is led here, of those of its ranges that were counted. */
  readonly keys: ReadonlyMap<number, number>;
  /** Intervals that left partitions led here, and whose rows are still being deleted. */
  readonly purges: number;
  /** Moves that ended while this node led meta. */
  readonly ended: readonly {
    readonly kind: MoveKind;
    readonly result: "cut" | "aborted";
    readonly count: number;
  }[];
  /** Attempts that were given up where they were made, by why. */
  readonly attempts: ReadonlyMap<MoveEnd, number>;
  readonly movedKeys: number;
  readonly movedBytes: number;
  /** Copies that differed from what was copied. */
  readonly verifyFailures: number;
  /** Splits that were due, and not begun for want of room for another partition. */
  readonly refusedSplits: number;
  /** How long intervals were frozen, by the bounds; the last is for all above. */
  readonly frozenCounts: readonly number[];
  readonly frozenSecondsSum: number;
}

/** Counts a duration in the slot of its bound; seconds. */
function observe(counts: number[], bounds: readonly number[], forMs: number): number {
  const seconds = forMs / 1000;
  const at = bounds.findIndex((bound) => seconds <= bound);
  const slot = at < 0 ? bounds.length : at;
  counts[slot] = (counts[slot] ?? 0) + 1;
  return seconds;
}

/** What is read where it is, at the time of asking. */
export type RangeFactsNow = Pick<RangeFacts, "keys" | "purges">;

export class RangeTally {
  verifyFailures = 0;
  refusedSplits = 0;
  private readonly attempts = new Map<MoveEnd, number>();
  private readonly ended = new Map<string, number>();
  private movedKeys = 0;
  private movedBytes = 0;
  private readonly frozenCounts = new Array<number>(FROZEN_SECONDS_BOUNDS.length + 1).fill(0);
  private frozenSecondsSum = 0;
  private readonly phases = new Map<string, { readonly counts: number[]; sum: number }>();

  attemptEnded(reason: MoveEnd): void {
    this.attempts.set(reason, (this.attempts.get(reason) ?? 0) + 1);
  }

  moveEnded(kind: MoveKind, result: "cut" | "aborted"): void {
    const name = `${kind} ${result}`;
    this.ended.set(name, (this.ended.get(name) ?? 0) + 1);
  }

  moved(keys: number, sizeBytes: number): void {
    this.movedKeys += keys;
    this.movedBytes += sizeBytes;
  }

  frozen(forMs: number): void {
    this.frozenSecondsSum += observe(this.frozenCounts, FROZEN_SECONDS_BOUNDS, forMs);
  }

  phaseTook(phase: string, forMs: number): void {
    let known = this.phases.get(phase);
    if (known === undefined) {
      known = { counts: new Array<number>(PHASE_SECONDS_BOUNDS.length + 1).fill(0), sum: 0 };
      this.phases.set(phase, known);
    }
    known.sum += observe(known.counts, PHASE_SECONDS_BOUNDS, forMs);
  }

  facts(now: RangeFactsNow): RangeFacts {
    const kinds: readonly MoveKind[] = ["split", "merge", "home"];
    const results = ["cut", "aborted"] as const;
    const ended = kinds.flatMap((kind) =>
      results.map((result) => {
        return { kind, result, count: this.ended.get(`${kind} ${result}`) ?? 0 };
      }),
    );
    const { attempts, movedKeys, movedBytes, verifyFailures, refusedSplits } = this;
    const frozenCounts = [...this.frozenCounts];
    const phases = [...this.phases].map(([phase, { counts, sum }]) => {
      return [phase, { counts: [...counts], sum }] as const;
    });
    return {
      ...now,
      phases: new Map(phases),
      ended,
      attempts: new Map(attempts),
      movedKeys,
      movedBytes,
      verifyFailures,
      refusedSplits,
      frozenCounts,
      frozenSecondsSum: this.frozenSecondsSum,
    };
  }
}
