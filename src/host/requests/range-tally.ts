/** What moves of ranges came to on this node, since the process began. */
import type { MoveEnd, MoveKind } from "../../machine/commands/command.js";

/** Bounds of the histogram of how long intervals were frozen (seconds). */
export const FROZEN_SECONDS_BOUNDS: readonly number[] = [
  0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.3, 1, 2,
];

export interface RangeFacts {
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

export class RangeTally {
  verifyFailures = 0;
  refusedSplits = 0;
  private readonly attempts = new Map<MoveEnd, number>();
  private readonly ended = new Map<string, number>();
  private movedKeys = 0;
  private movedBytes = 0;
  private readonly frozenCounts = new Array<number>(FROZEN_SECONDS_BOUNDS.length + 1).fill(0);
  private frozenSecondsSum = 0;

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
    const seconds = forMs / 1000;
    const at = FROZEN_SECONDS_BOUNDS.findIndex((bound) => seconds <= bound);
    const slot = at < 0 ? FROZEN_SECONDS_BOUNDS.length : at;
    this.frozenCounts[slot] = (this.frozenCounts[slot] ?? 0) + 1;
    this.frozenSecondsSum += seconds;
  }

  facts(): RangeFacts {
    const kinds: readonly MoveKind[] = ["split", "merge", "home"];
    const results = ["cut", "aborted"] as const;
    const ended = kinds.flatMap((kind) =>
      results.map((result) => {
        return { kind, result, count: this.ended.get(`${kind} ${result}`) ?? 0 };
      }),
    );
    const { attempts, movedKeys, movedBytes, verifyFailures, refusedSplits } = this;
    const frozenCounts = [...this.frozenCounts];
    return {
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
