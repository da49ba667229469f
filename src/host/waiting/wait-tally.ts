/**
 * What is counted of waits for locks on one node: plain numbers, read when somebody scrapes.
 *
 * Owns its counts. Invariant: counters only grow, gauges are what is there now.
 */
import { Distribution } from "../requests/distribution.js";

const WAIT_ENDS = ["granted", "busy", "aborted", "moved", "unknown", "refused", "failed"] as const;
const HANDOFF_PATHS = ["entry", "heir", "lapse", "forced", "ephemeral"] as const;
export type HandoffPath = (typeof HANDOFF_PATHS)[number];

/** Upper bounds of the buckets (ms); one more is without bound. */
const WAIT_BOUNDS_MS: readonly number[] = [
  1, 5, 10, 50, 100, 500, 1000, 5000, 10_000, 60_000, 600_000,
];
const HANDOFF_BOUNDS_MS: readonly number[] = [0.1, 0.5, 1, 2.5, 5, 10, 25, 100, 1000];

export class WaitTally {
  /** Requests that wait in queues of this node. */
  waiters = 0;
  /** Places without a request that are kept for who may come back. */
  placesLeft = 0;
  givenBack = 0;
  /** Grants that were ended by administrators. */
  forced = 0;
  /** Lists of former leaders that bind who waits here. */
  orphanedLists = 0;
  readonly ends = new Map<string, number>(WAIT_ENDS.map((end) => [end, 0]));
  readonly handoffs = new Map<string, number>(HANDOFF_PATHS.map((path) => [path, 0]));
  /** In milliseconds, as `handoffTimes`. */
  readonly waits = new Distribution(WAIT_BOUNDS_MS);
  readonly handoffTimes = new Distribution(HANDOFF_BOUNDS_MS);

  ended(kind: string, waitedMs: number): void {
    this.ends.set(kind, (this.ends.get(kind) ?? 0) + 1);
    this.waits.observe(waitedMs);
  }

  handedOn(path: HandoffPath, durationMs: number): void {
    this.handoffs.set(path, (this.handoffs.get(path) ?? 0) + 1);
    this.handoffTimes.observe(durationMs);
  }
}
