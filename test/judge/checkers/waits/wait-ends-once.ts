/**
 * Property Q5: a wait ends exactly once, with Busy not before its time is over, and by then at the
 * latest, with the time of a request on top.
 *
 * Invariant: that an answer comes once and in time is for the checker of all answers; this one looks
 * at the ends within the leaders, and at the waits that were told to be over.
 */
import type { History, LockOperation, LockResult } from "../../history.js";
import { type Attempt } from "../../history.js";
import { Findings, type Verdict } from "../verdict.js";
import type { SeenEnd, SeenRequest } from "./seen-queues.js";

export const WAIT_ENDS = {
  ...{ "granted at a leader": 50, "busy at a leader": 10, "aborted at a leader": 5 },
  ...{ "told Busy": 10, "told Locked": 50 },
};
/** Times of answers are whole milliseconds. */
const ROUNDING_MS = 1;

export class WaitEndsOnce {
  private readonly findings: Findings;

  /** `drift`: how much faster than true time any clock may run. */
  constructor(
    private readonly drift: number,
    minimum: Readonly<Record<string, number>> = WAIT_ENDS,
  ) {
    this.findings = new Findings("a wait ends once, and in its time", minimum);
  }

  /** A leader ended a request that waited there. */
  ended(request: SeenRequest, end: SeenEnd, atMs: number): void {
    this.findings.count(`${end} at a leader`);
    if (++request.ends <= 1) return;
    const { owner, queue } = request.place;
    const text = `${queue.lock} at node ${queue.node}: the wait of ${owner} of ${request.askedMs} ms`;
    this.findings.violation(`${text} ended again at ${atMs} ms, as ${end}`);
  }

  /** What clients were told. */
  judge(history: History): void {
    for (const attempt of history.attempts) {
      const { operation, outcome, returnMs } = attempt;
      if (operation.kind !== "try-lock" || (operation.waitMs ?? 0) === 0) continue;
      if (outcome?.kind !== "ok" || returnMs === null) continue;
      const { type } = outcome.result as LockResult;
      this.findings.count(`told ${type}`);
      if (type === "Busy") this.busy(attempt, operation, outcome.result as LockResult);
    }
  }

  private busy(attempt: Attempt, { waitMs = 0 }: LockOperation, { waitedMs }: LockResult): void {
    const tookMs = (attempt.returnMs ?? 0) - attempt.callMs;
    if ((waitedMs ?? 0) < waitMs - ROUNDING_MS) {
      this.findings.violation(`told Busy after ${waitedMs} ms of a wait of ${waitMs}`, [attempt]);
    }
    if (tookMs < (waitMs - ROUNDING_MS) / (1 + this.drift)) {
      this.findings.violation(`Busy ${tookMs} ms after a wait of ${waitMs} began`, [attempt]);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
