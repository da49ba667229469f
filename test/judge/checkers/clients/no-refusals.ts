/**
 * Property C12, C13: where leaderships move only as planned, nobody is refused, and nothing of the memory of leaders is
 * lost: ephemeral locks and keys behave as under one leadership.
 *
 * Invariants: 1. What a client did not wait for is no refusal. 2. Too few moves are no evidence. 3. What was called
 * before `fromMs` (the cluster elects its first leaders) is not judged.
 */
import type { History } from "../../history.js";
import { type LinearizabilityOptions, checkLinearizability } from "./linearizability.js";
import { Findings, type Verdict, attemptText } from "../verdict.js";

export function checkNoRefusals(history: History, fromMs: number, moves: number): Verdict {
  const findings = new Findings("nothing is refused by planned moves", { moves: 1, answers: 100 });
  findings.count("moves", moves);
  for (const attempt of history.attempts) {
    const { outcome, callMs } = attempt;
    if (outcome === null || callMs < fromMs) continue;
    const isRefused =
      outcome.kind === "refused" || (outcome.kind === "unknown" && /^type /.test(outcome.reason));
    if (isRefused) findings.violation(`refused: ${attemptText(attempt)}`, [attempt]);
    else findings.count("answers");
  }
  return findings.verdict();
}

/** Judges ephemeral locks and keys as if one leader had answered all the time. */
export function checkNothingLost(history: History, options: LinearizabilityOptions): Verdict[] {
  const attempts = history.attempts.map((attempt) => ({ ...attempt, term: 1 }));
  return checkLinearizability({ ...history, attempts }, options).filter(({ property }) =>
    property.includes("ephemeral"),
  );
}
