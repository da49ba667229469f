/**
 * What a seed decides about those who wait for locks: how many there are, for which locks, and what
 * they are like.
 *
 * Pure. Invariant: it is drawn from a generator of its own.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HeirPlan } from "./heirworld.js";

export interface WaitPlan {
  readonly clients: number;
  readonly locks: number;
  /** Of a hundred acquires, those of ephemeral locks. */
  readonly ephemeralPercent: number;
  readonly thinkMs: number;
  readonly leasesMs: readonly number[];
  readonly waitsMs: readonly number[];
  /** Of a hundred waits, those that are cancelled, and those whose client goes away. */
  readonly cancelPercent: number;
  readonly closePercent: number;
  /** Of a hundred acts, tries that do not wait, and looks at a lock. */
  readonly newcomerPercent: number;
  readonly readerPercent: number;
  /** How long a holder works between two steps, at most (ms). */
  readonly workMs: number;
  /** Of a hundred holders, those that forget to let go, and those that stand still for long. */
  readonly forgetPercent: number;
  readonly freezePercent: number;
  /** Mean time between two leaderships that are given away (ms); null: none is. */
  readonly handOverMs: number | null;
  /** null: locks have no heirs. */
  readonly heirs: HeirPlan | null;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

export function waitPlan(prng: Prng): WaitPlan {
  return {
    clients: pick(prng, [12, 20, 30]),
    locks: pick(prng, [1, 2, 3]),
    ephemeralPercent: pick(prng, [0, 30, 100]),
    thinkMs: pick(prng, [100, 400, 1000]),
    leasesMs: pick(prng, [
      [300, 800, 2000],
      [200, 300],
      [1000, 5000],
    ]),
    waitsMs: pick(prng, [[1000, 4000, 9000], [300, 9000], [9000]]),
    cancelPercent: pick(prng, [0, 10, 30]),
    closePercent: pick(prng, [0, 10, 30]),
    newcomerPercent: pick(prng, [5, 20]),
    readerPercent: pick(prng, [10, 25]),
    workMs: pick(prng, [20, 100, 400]),
    forgetPercent: pick(prng, [0, 10, 40]),
    freezePercent: pick(prng, [0, 5, 20]),
    handOverMs: pick(prng, [null, null, 2000, 6000]),
    heirs: null,
  };
}
