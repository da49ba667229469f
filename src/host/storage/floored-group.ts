/**
 * A group as those see it who decide how far its log is let go.
 *
 * Types, and what entries weigh. Invariant: entries are weighed by their bytes and by their places
 * in memory (P-163).
 */

/** What an entry costs beside its payload, in the log and in memory, generously (bytes). */
const ENTRY_WEIGHT_BYTES = 512;

export interface FlooredGroup {
  readonly floorIndex: number;
  /** Entries above this are wanted by a node that gets a snapshot; Infinity when none does. */
  readonly keepFrom: number;
  /** Entries above this are not known to be on every linked follower; Infinity when all are. */
  readonly followersFrom: number;
  /** Raises the floor of the group's log to `index`, which is flushed. */
  compact(index: number): void;
  /** Payload bytes of the entries `first` to `last`. */
  payloadBytes(first: number, last: number): number;
}

/** What the entries above `from` up to `last` weigh, as far as the log has them. */
export function weightAbove(group: FlooredGroup, from: number, last: number): number {
  const first = Math.max(from, group.floorIndex) + 1;
  if (first > last) return 0;
  return group.payloadBytes(first, last) + (last - first + 1) * ENTRY_WEIGHT_BYTES;
}
