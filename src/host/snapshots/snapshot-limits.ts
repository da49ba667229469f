/**
 * The bounds of snapshot transfers.
 *
 * Invariants: 1. Times are of the monotonic clock. 2. What a transfer holds in memory is bounded by
 * `windowChunks` chunks at either end and `heldBytesMax` at the sender.
 */

export interface SnapshotSettings {
  /**
   * Size at which a chunk is full; one row more may be in it (bytes). Making or taking one stalls
   * the loop: small rows cost some microseconds each, and 32 KiB hold about 700 of them.
   */
  readonly chunkBytes: number;
  /** Chunks on their way that were not acknowledged. */
  readonly windowChunks: number;
  /**
   * Old rows kept for a snapshot while writes go on (bytes); beyond it the snapshot starts anew.
   */
  readonly heldBytesMax: number;
  /** Snapshots that this node sends at the same time. */
  readonly sendersMax: number;
  /** Snapshots that this node takes at the same time. */
  readonly receiversMax: number;
  /** What all snapshots sent may take of the disk and the network (bytes per second). */
  readonly bytesPerSecond: number;
  /** And those of them that are sent for balance alone. */
  readonly balanceBytesPerSecond: number;
  /** What those for a drain take while the node is behind with its work. */
  readonly drainLeastBytesPerSecond: number;
  /** And those for balance, of which few are under way: they are to end too. */
  readonly balanceLeastBytesPerSecond: number;
  /** A node whose ticks come so late on average is behind. */
  readonly behindMs: number;
  /** Silence after which the sender asks where the receiver is. */
  readonly askAfterMs: number;
  /** Longest time without progress. */
  readonly progressMs: number;
  /** A transfer that took so long goes on only while it keeps to the pace below. */
  readonly totalMs: number;
  /** Slowest pace of a long transfer, on average: a snapshot may be larger than any fixed time. */
  readonly leastBytesPerSecond: number;
  /** Fresh snapshots that one transfer may begin. */
  readonly snapshotsMax: number;
  /** Pause after a failure; doubled with each further one. */
  readonly retryMs: number;
  readonly retryMaxMs: number;
  /** Rows of former states deleted in one go. */
  readonly sweepRows: number;
  /**
   * Groups that are looked at for such rows in one go (two scans each): a node does not rest until
   * all are through.
   */
  readonly sweepGroups: number;
}

export const DEFAULT_SNAPSHOT_SETTINGS: SnapshotSettings = {
  chunkBytes: 32 << 10,
  windowChunks: 8,
  heldBytesMax: 32 << 20,
  sendersMax: 2,
  receiversMax: 4,
  bytesPerSecond: 64 << 20,
  balanceBytesPerSecond: 16 << 20,
  drainLeastBytesPerSecond: 2 << 20,
  balanceLeastBytesPerSecond: 4 << 20,
  behindMs: 2,
  askAfterMs: 500,
  progressMs: 10_000,
  totalMs: 600_000,
  leastBytesPerSecond: 64 << 10,
  snapshotsMax: 5,
  retryMs: 1000,
  retryMaxMs: 30_000,
  sweepRows: 500,
  sweepGroups: 16,
};

/** Whether a transfer that began `elapsedMs` ago and moved `bytes` is not worth going on. */
export function isTooSlow(settings: SnapshotSettings, elapsedMs: number, bytes: number): boolean {
  if (elapsedMs < settings.totalMs) return false;
  return bytes * 1000 < settings.leastBytesPerSecond * elapsedMs;
}
