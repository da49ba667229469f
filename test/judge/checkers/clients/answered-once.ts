/**
 * Property C9: every request gets exactly one answer, within its bound.
 *
 * Invariants: 1. An attempt that cannot be answered any more (its node ended, its connection broke) is excused, and
 * counted. 2. An attempt whose answer is not due when the history ends is not judged.
 */
import type { History } from "../../history.js";
import { Findings, type Verdict } from "../verdict.js";

export function checkAnsweredOnce(history: History, minimum = 100): Verdict {
  const findings = new Findings("one answer in time", { judged: minimum });
  for (const attempt of history.attempts) {
    const { boundMs, callMs, returnMs, lost, answers } = attempt;
    if (answers > 1) findings.violation(`answered ${answers} times`, [attempt]);
    if (returnMs === null && lost !== null) {
      findings.count("lost");
      continue;
    }
    if (boundMs === null) continue;
    if (returnMs === null) {
      if (callMs + boundMs > history.endMs) findings.count("not due yet");
      else findings.violation(`no answer within ${boundMs} ms`, [attempt]);
      continue;
    }
    findings.count("judged");
    if (returnMs - callMs > boundMs) {
      findings.violation(`answered after ${(returnMs - callMs).toFixed(0)} ms of ${boundMs}`, [
        attempt,
      ]);
    }
  }
  return findings.verdict();
}
