/**
 * How freely operations without an answer may be placed, answer by answer: in truth most of them happened soon after their
 * call or never, so that few are tried at first, and more where a search got stuck.
 *
 * Invariants: 1. A restricted search finds orders and says nothing when it finds none. 2. Every widening makes some answer's
 * reach larger, until nothing is restricted anywhere.
 */
export interface Reach {
  /** Operations without an answer between two answers, at most. */
  readonly gapMax: number;
  /** They are placed within this time after their call (ms). */
  readonly withinMs: number;
  /** The search is stuck when so many steps bring it no farther. */
  readonly stepsMax: number;
  readonly isRestricted: boolean;
}

const FREE: Reach = {
  gapMax: Infinity,
  withinMs: Infinity,
  stepsMax: Infinity,
  isRestricted: false,
};
const LEVELS: readonly Reach[] = [
  { gapMax: 1, withinMs: 2000, stepsMax: 1500, isRestricted: true },
  { gapMax: 2, withinMs: 4000, stepsMax: 5000, isRestricted: true },
  { gapMax: 4, withinMs: 8000, stepsMax: 15_000, isRestricted: true },
  { gapMax: 8, withinMs: 20_000, stepsMax: 40_000, isRestricted: true },
  { gapMax: Infinity, withinMs: Infinity, stepsMax: 80_000, isRestricted: true },
];
const TOP = LEVELS.length - 1;
/** Answers before the one that found no place whose reach grows with its own. */
const REGION = 24;

export class Reaches {
  private readonly levels: Uint8Array;

  /** `count`: answers. */
  constructor(count: number) {
    this.levels = new Uint8Array(count);
  }

  /** Of the answer that is due. */
  at(due: number): Reach {
    return LEVELS[this.levels[due] as number] as Reach;
  }

  /** The search came as far as answer `due`. False: nothing is restricted there any more. */
  widen(due: number): boolean {
    let isWider = false;
    for (let size = REGION; !isWider; size *= 4) {
      const from = Math.max(0, due - size);
      for (let at = from; at <= due; at++) {
        const level = this.levels[at] as number;
        if (level === TOP) continue;
        this.levels[at] = level + 1;
        isWider = true;
      }
      if (from === 0) break;
    }
    return isWider;
  }
}

/** Nothing is restricted. */
export const UNRESTRICTED: Pick<Reaches, "at"> = { at: () => FREE };
