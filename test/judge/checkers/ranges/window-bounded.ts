/**
 * Property: nobody serves an interval for two seconds at most, from the freeze to the adoption, beside
 * the time in which something that is needed for it has no leader or is troubled.
 *
 * Invariant: time counts as clear only while it was so at both of two looks.
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenAttempt, attemptName, intervalText } from "./seen-moves.js";

/** From the freeze to the adoption (ms). */
const WINDOW_MAX_MS = 2000;

interface Window {
  readonly attempt: SeenAttempt;
  readonly fromMs: number;
  /** Since when all was clear without a break; null = it is not. */
  clearSinceMs: number | null;
  isTold: boolean;
}

export class WindowBounded {
  private readonly findings: Findings;
  private readonly open = new Map<string, Window>();

  /** `slackMs`: how much longer it may take until a trouble that is over is known to be so. */
  constructor(
    private readonly slackMs: number,
    minimum: Readonly<Record<string, number>> = { windows: 10 },
  ) {
    this.findings = new Findings("an interval is frozen for a moment", minimum);
  }

  frozen(attempt: SeenAttempt, atMs: number): void {
    this.open.set(attemptName(attempt), {
      attempt,
      fromMs: atMs,
      clearSinceMs: null,
      isTold: false,
    });
  }

  /** Adopted by the target, or opened again by the source. */
  over(attempt: Pick<SeenAttempt, "moveId" | "attempt">, atMs: number): void {
    const name = attemptName(attempt);
    const window = this.open.get(name);
    if (window === undefined) return;
    this.open.delete(name);
    this.findings.count("windows");
    this.findings.count("ms frozen", Math.round(atMs - window.fromMs));
  }

  /** `isClear`: all that the move needs is led, and nothing troubles it. */
  look(atMs: number, isClear: (attempt: SeenAttempt) => boolean): void {
    for (const window of this.open.values()) {
      if (!isClear(window.attempt)) {
        window.clearSinceMs = null;
        continue;
      }
      window.clearSinceMs ??= atMs;
      const clearMs = atMs - window.clearSinceMs;
      if (window.isTold || clearMs <= WINDOW_MAX_MS + this.slackMs) continue;
      window.isTold = true;
      const { attempt, fromMs } = window;
      const name = `attempt ${attemptName(attempt)} of ${intervalText(attempt)}`;
      const text = `${name} is frozen since ${fromMs.toFixed(0)} ms, for ${clearMs.toFixed(0)} ms`;
      this.findings.violation(`${text} without any trouble`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
