/**
 * One task for each of many parts of a backup, some at a time.
 *
 * Invariants: 1. After a failure no further task begins; the end is told when those that run have
 * ended. 2. What is to begin anew is told, and the others go on.
 */
import type { Part, PartEnd, Stepped } from "./keeper-world.js";

export interface PoolOptions {
  readonly atOnce: number;
  /** It may begin now, beside those that run and do not rest. */
  mayBegin(part: Part, running: readonly Part[]): boolean;
  /** `rests`: what is left of it keeps no other from beginning. */
  readonly run: (part: Part, done: (end: PartEnd) => void, rests: () => void) => void;
  /** One has ended well. */
  readonly told: () => void;
  isOver(): boolean;
}

export type PoolDone = (failed: Stepped, isAgain: boolean) => void;

/** `done`: what failed, and whether some are to begin anew. */
export function runPool(parts: readonly Part[], options: PoolOptions, done: PoolDone): void {
  const waiting = [...parts];
  const running: Part[] = [];
  const resting = new Set<Part>();
  let failed: Stepped = null;
  let isAgain = false;
  let isFilling = false;
  const ended = (part: Part, end: PartEnd): void => {
    running.splice(running.indexOf(part), 1);
    resting.delete(part);
    if (end === "again") isAgain = true;
    else if (end === null) options.told();
    else failed ??= end;
    fill();
  };
  const begin = (part: Part): void => {
    running.push(part);
    const rests = (): void => {
      resting.add(part);
      fill();
    };
    options.run(part, (end) => ended(part, end), rests);
  };
  const fill = (): void => {
    // A task that ends at once comes back here; it is seen by the loop that began it.
    if (isFilling) return;
    isFilling = true;
    while (failed === null && !options.isOver() && running.length < options.atOnce) {
      const busy = running.filter((part) => !resting.has(part));
      const at = waiting.findIndex((part) => options.mayBegin(part, busy));
      const [part] = at < 0 ? [] : waiting.splice(at, 1);
      if (part === undefined) break;
      begin(part);
    }
    isFilling = false;
    if (running.length === 0) done(failed, isAgain);
  };
  fill();
}
