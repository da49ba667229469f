/**
 * What a seed decides about those who watch: how many they are and what of, how slow they are, how
 * often they go elsewhere, and how little nodes keep for them.
 *
 * Pure. Invariant: it is drawn from a generator of its own.
 */
import type { Prng } from "../../../src/base/prng.js";
import type { HostSettings } from "../../../src/host/settings.js";
import type { OperationsSettings } from "../../../src/operations/api/settings.js";

export interface WatchPlan {
  readonly watchers: number;
  /** Of one watcher, at most. */
  readonly watchesMax: number;
  /** Mean time between two acts of a watcher (ms). */
  readonly actMs: number;
  /** Of a hundred watchers, those who read slowly, and the time that a message takes them (ms). */
  readonly slowPercent: number;
  readonly readMs: number;
  /** Unsent bytes from which on a stream is full. */
  readonly bufferBytes: number;
  /** Of a hundred watches that go on, those that do so from an older cursor, and without any. */
  readonly olderPercent: number;
  readonly anewPercent: number;
  /** Mean time between two acts of whoever ends grants by force (ms); 0: nobody does. */
  readonly forceMs: number;
  /** Mean time between two leaderships that are given away (ms); null: none is. */
  readonly handOverMs: number | null;
  /** In the end nobody watches for longer than anything is kept. */
  readonly endsUnwatched: boolean;
  readonly host: Partial<HostSettings>;
  readonly operations: Partial<OperationsSettings>;
}

function pick<T>(prng: Prng, list: readonly T[]): T {
  return list[prng.below(list.length)] as T;
}

/** So much is kept that nothing is dropped in the time of a world. */
export const AMPLE_HISTORY_BYTES = 32 << 20;

export function watchPlan(prng: Prng): WatchPlan {
  const tombstoneRetentionMs = pick(prng, [700, 5000, 60_000]);
  return {
    watchers: pick(prng, [4, 6, 8]),
    watchesMax: pick(prng, [2, 4]),
    actMs: pick(prng, [300, 800, 2000]),
    slowPercent: pick(prng, [0, 30, 60]),
    readMs: pick(prng, [20, 100]),
    bufferBytes: pick(prng, [300, 2000, 1 << 20]),
    olderPercent: pick(prng, [0, 25, 50]),
    anewPercent: pick(prng, [0, 10, 30]),
    forceMs: pick(prng, [0, 150, 400]),
    handOverMs: pick(prng, [null, null, 1500, 4000]),
    endsUnwatched: prng.chance(1, 8),
    host: {
      initialPartitions: pick(prng, [1, 3, 4]),
      tombstoneRetentionMs,
      lockRecordRetentionMs: pick(prng, [5000, 60_000]),
      collectEveryMs: pick(prng, [200, 1000]),
      compactEveryEntries: pick(prng, [10, 30, 200]),
      compactKeepEntries: pick(prng, [0, 5, 50]),
    },
    operations: {
      watchHistoryBytes: pick(prng, [3000, 20_000, AMPLE_HISTORY_BYTES, AMPLE_HISTORY_BYTES]),
      watchProgressMs: pick(prng, [200, 1000]),
    },
  };
}
