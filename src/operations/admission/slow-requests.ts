/**
 * Tells the log of requests that took long, by the id that their callers know.
 *
 * Owns when it told last. Invariants: 1. At most one line per INTERVAL_MS; how many were not told
 * is in the next. 2. A request that was quick costs one comparison.
 */
import type { LoggerPort } from "../../ports.js";
import type { RequestContext } from "../api/context.js";
import type { DataRequestKind } from "../api/data-requests.js";

/** From here on a request is slow (ms): far beyond what a healthy cluster takes. */
const SLOW_MS = 1000;
const INTERVAL_MS = 10_000;

export class SlowRequests {
  private nextMs = -Infinity;
  private untold = 0;
  /** Since the start. */
  count = 0;

  constructor(private readonly logger: LoggerPort) {}

  /** A request of `kind` was answered with `type` at `nowMs`. */
  answered(
    kind: DataRequestKind,
    type: number,
    context: RequestContext,
    durationMs: number,
    nowMs: number,
  ): void {
    if (durationMs < SLOW_MS) return;
    this.count++;
    if (nowMs < this.nextMs) {
      this.untold++;
      return;
    }
    const { untold } = this;
    const { requestId } = context;
    const fields = { requestId, kind, type, durationMs: Math.round(durationMs), untold };
    this.logger.log("warn", "slow request", fields);
    this.nextMs = nowMs + INTERVAL_MS;
    this.untold = 0;
  }
}
