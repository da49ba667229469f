/** What taking backups came to on a node, as metrics tell it. Types, and the bounds of counts. */

/** Bounds of the histogram of how long coordinated cuts paused the groups (seconds). */
export const PAUSE_SECONDS_BOUNDS: readonly number[] = [0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 1, 2];

export interface Histogram {
  /** By the bounds; the last is for all above. */
  readonly counts: readonly number[];
  readonly sum: number;
}

export interface BackupFacts {
  /** By phase: how long it took in all, and how often it came. */
  readonly phases: ReadonlyMap<string, { readonly seconds: number; readonly count: number }>;
  /** By "image" and "log". */
  readonly bytes: ReadonlyMap<string, number>;
  /** Of coordinated cuts, by how they ended. */
  readonly rounds: ReadonlyMap<string, number>;
  readonly substitutions: ReadonlyMap<string, number>;
  readonly pauses: Histogram;
  /** How far the wall clocks of the leaders were apart in the last backup that was taken here. */
  readonly clockSkewSeconds: number;
}
