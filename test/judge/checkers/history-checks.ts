/**
 * All checkers that need nothing but the history of the clients, in the order in which they are reported.
 */
import type { History } from "../history.js";
import { leaseTime } from "../models/lease-time.js";
import { checkAllocationOrder } from "./clients/allocation-order.js";
import { checkAnsweredOnce } from "./clients/answered-once.js";
import {
  LINEARIZABILITY,
  type LinearizabilityOptions,
  checkLinearizability,
} from "./clients/linearizability.js";
import { checkOneHolder } from "./clients/one-holder.js";
import { checkReadsSeeWrites } from "./clients/reads-see-writes.js";
import { checkReplay } from "./clients/replay.js";
import { type ScanMinimum, checkScans } from "./clients/scans.js";
import { checkTokensGrow } from "./clients/tokens-grow.js";
import { checkValuesUnique } from "./clients/values-unique.js";
import type { Verdict } from "./verdict.js";

export interface HistoryCheckOptions {
  readonly linearizability: LinearizabilityOptions;
  /** How much faster than true time a clock may run: must be what `linearizability.time` was made from. */
  readonly drift: number;
  /** Least evidence by checker; 0 for what the workload does not do. */
  readonly minimum: {
    readonly answers: number;
    readonly allocations: number;
    readonly orders: number;
    readonly replays: number;
    readonly tokens: number;
    readonly beliefs: number;
    readonly reads: number;
    readonly scans: ScanMinimum;
  };
}

export const HISTORY_CHECKS: HistoryCheckOptions = {
  linearizability: LINEARIZABILITY,
  drift: 0,
  minimum: {
    answers: 100,
    allocations: 100,
    orders: 100,
    replays: 10,
    tokens: 50,
    beliefs: 20,
    reads: 50,
    scans: { pages: 0, rows: 0, untouched: 0 },
  },
};

/** Options for clocks of which the fastest runs by `drift` too fast, otherwise as `base`. */
export function withDrift(
  drift: number,
  base: HistoryCheckOptions = HISTORY_CHECKS,
): HistoryCheckOptions {
  const linearizability = { ...base.linearizability, time: leaseTime(drift) };
  return { ...base, drift, linearizability };
}

export function checkHistory(
  history: History,
  options: HistoryCheckOptions = HISTORY_CHECKS,
): Verdict[] {
  const { minimum, drift, linearizability } = options;
  const { keysRetainedMax, keysRetainedMs } = linearizability.sequence;
  const { tombstoneRetentionMs } = linearizability.kv;
  const forEver = tombstoneRetentionMs === 0 ? Infinity : tombstoneRetentionMs / (1 + drift);
  return [
    checkAnsweredOnce(history, minimum.answers),
    ...checkLinearizability(history, linearizability),
    checkValuesUnique(history, minimum.allocations),
    checkAllocationOrder(history, minimum.orders),
    checkReplay(history, {
      minimum: minimum.replays,
      keysRetainedMax,
      keysRetainedMs,
      time: linearizability.time,
    }),
    checkTokensGrow(history, minimum.tokens),
    checkOneHolder(history, { minimum: minimum.beliefs, drift }),
    checkReadsSeeWrites(history, {
      minimum: minimum.reads,
      tombstoneRetentionMs: forEver,
    }),
    checkScans(history, minimum.scans),
  ];
}
