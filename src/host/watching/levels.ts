/**
 * Waits until filters are level with everything that was answered to anybody before: their
 * partitions, and the map that says which these are (W4, W9).
 *
 * Invariants: 1. No partition of theirs is passed over: those too that the map adds meanwhile are
 * waited for, as the map of a node that was down is old, and its replicas are behind what others
 * have told (W2, W5). 2. The map is asked for where partitions have not what it says that they
 * have: somebody else may have it by now.
 */
import { META_PARTITION } from "../../base/ids.js";
import type { Confirmations } from "./confirmations.js";
import type { Filter } from "./filters.js";

const META_ALONE: ReadonlySet<number> = new Set([META_PARTITION]);

export interface LevelMap {
  /** Filters have from now on the partitions that the map of this node says. */
  followMap(): void;
  /** Keys of the filters are on their way, or the map of this node is old. */
  isInDoubt(filters: readonly Filter[]): boolean;
}

type Done = (isLevel: boolean) => void;

export class Levels {
  constructor(
    private readonly confirmations: Confirmations,
    private readonly map: LevelMap,
  ) {}

  /** `done` when they are; false: not by `untilMs` (monotonic). */
  reach(filters: readonly Filter[], untilMs: number, done: Done): void {
    this.partitions(filters, untilMs, (isLevel) => {
      if (!isLevel || !this.map.isInDoubt(filters)) return done(isLevel);
      this.confirmations.confirm(META_ALONE, untilMs, (isMapLevel) => {
        if (!isMapLevel) return done(false);
        this.map.followMap();
        this.partitions(filters, untilMs, done);
      });
    });
  }

  /** `level`: those that are. */
  private partitions(
    filters: readonly Filter[],
    untilMs: number,
    done: Done,
    level: ReadonlySet<number> = new Set(),
  ): void {
    const open = openOf(filters, level);
    this.confirmations.confirm(open, untilMs, (isLevel) => {
      if (!isLevel) return done(false);
      this.map.followMap();
      const reached = new Set([...level, ...open]);
      if (openOf(filters, reached).size === 0) done(true);
      else this.partitions(filters, untilMs, done, reached);
    });
  }
}

function openOf(filters: readonly Filter[], level: ReadonlySet<number>): ReadonlySet<number> {
  const all = filters.flatMap(({ partitions }) => [...partitions]);
  return new Set(all.filter((each) => !level.has(each)));
}
