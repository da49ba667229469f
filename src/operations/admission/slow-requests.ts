/**
 * Tells the log of requests that took long, by the id that their callers know.
 *
 * Owns what it told in this second. Invariants: 1. At most SLOW_LINES_PER_SECOND lines in a second;
 * how many were not told is in the next. 2. A request that was quick costs one comparison.
 */
import { SLOW_LINES_PER_SECOND } from "../../base/limits.js";
import type { LoggerPort } from "../../ports.js";
import type { RequestContext } from "../api/context.js";
import type { DataRequestKind } from "../api/data-requests.js";

const SECOND_MS = 1000;

export class SlowRequests {
  private secondMs = -Infinity;
  private told = 0;
  private untold = 0;
  private thresholdMs = Infinity;
  /** Since the start. */
  count = 0;

  /** `thresholdMs`: from here on a request is slow; 0 = none is. */
  constructor(
    private readonly logger: LoggerPort,
    thresholdMs: number,
  ) {
    this.change(thresholdMs);
  }

  change(thresholdMs: number): void {
    this.thresholdMs = thresholdMs === 0 ? Infinity : thresholdMs;
  }

  /** A request of `kind` was answered with `type` at `nowMs`. */
  answered(
    kind: DataRequestKind,
    type: number,
    { requestId, caller }: RequestContext,
    durationMs: number,
    nowMs: number,
  ): void {
    if (durationMs < this.thresholdMs) return;
    this.count++;
    if (nowMs >= this.secondMs + SECOND_MS) {
      this.secondMs = nowMs;
      this.told = 0;
    }
    if (this.told >= SLOW_LINES_PER_SECOND) {
      this.untold++;
      return;
    }
    this.told++;
    const { untold } = this;
    this.untold = 0;
    const who = caller === undefined ? {} : { caller: caller.name };
    const fields = { requestId, ...who, kind, type, durationMs: Math.round(durationMs), untold };
    this.logger.log("warn", "slow request", fields);
  }
}
