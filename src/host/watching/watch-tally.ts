/**
 * What is counted of the watches of one node: plain numbers, read when somebody scrapes.
 *
 * Owns its counts. Invariant: counters only grow, gauges are what is there now.
 */
import { WatchEventType, WatchKind } from "../../base/result-types.js";
import { Distribution } from "../requests/distribution.js";

/** Why the state was compared where each change could not be told (W6). */
const MERGE_REASONS = ["behind", "resumed", "image", "moved"] as const;
export type MergeReason = (typeof MERGE_REASONS)[number];

/** Upper bounds of the buckets (ms); one more is without bound. */
const DELAY_BOUNDS_MS: readonly number[] = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 1000, 5000];

/** Zeros for the numbers of a table but the one of "none". */
function zeros(table: Readonly<Record<string, number>>): number[] {
  return Array.from({ length: Object.keys(table).length }, () => 0);
}

export class WatchTally {
  /** By `WatchKind`. */
  readonly watchers = zeros(WatchKind);
  streams = 0;
  /** Watches that are set back to their cursors. */
  behind = 0;
  historyBytes = 0;
  /** Made, by `WatchEventType`; each counts once, whoever watches. */
  readonly events = zeros(WatchEventType);
  readonly merged = new Map<string, number>(MERGE_REASONS.map((reason) => [reason, 0]));
  resets = 0;
  sentBytes = 0;
  bufferBytes = 0;
  /** From when a change was applied to when the front end had it (ms). */
  readonly delays = new Distribution(DELAY_BOUNDS_MS);

  /** So many more of the kind watch, or fewer. */
  watching(kind: number, change: number): void {
    this.watchers[kind] = (this.watchers[kind] ?? 0) + change;
  }

  mergedBy(reason: MergeReason): void {
    this.merged.set(reason, (this.merged.get(reason) ?? 0) + 1);
  }

  /** For front ends: so much went to sockets. */
  sent(sizeBytes: number): void {
    this.sentBytes += sizeBytes;
  }

  /** For front ends: what is unsent grew by so much. */
  buffered(changeBytes: number): void {
    this.bufferBytes += changeBytes;
  }
}
