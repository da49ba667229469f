/**
 * Property 7.5: what a restored cluster grants lies above all that was granted before by the clusters that it comes from
 * and by those that were restored before it: tokens of locks, persistent and ephemeral, and incarnations of sequences.
 */
import type { History, SequenceResult } from "../../history.js";
import { objectOf } from "../../operation.js";
import { shownToken } from "../clients/tokens-grow.js";
import { Findings, type Verdict } from "../verdict.js";

function raise(into: Map<string, bigint>, object: string, number: bigint): void {
  const known = into.get(object);
  if (known === undefined || known < number) into.set(object, number);
}

/** Highest token of every lock, and highest incarnation of every sequence. */
function highest(histories: readonly History[]): Map<string, bigint> {
  const numbers = new Map<string, bigint>();
  for (const { attempts } of histories) {
    for (const attempt of attempts) {
      const { operation, outcome } = attempt;
      const object = objectOf(operation);
      if (object === null || outcome?.kind !== "ok") continue;
      const token = "resource" in operation ? shownToken(attempt)?.token : undefined;
      if (token !== undefined) raise(numbers, object, token);
      if (operation.kind !== "get-sequence") continue;
      const { sequence } = outcome.result as SequenceResult;
      if (sequence !== null) raise(numbers, object, sequence.incarnation);
    }
  }
  return numbers;
}

/** `before`: histories of whoever came before. */
export function checkAboveBefore(
  before: readonly History[],
  restored: History,
  minimum = { grants: 5, sequences: 5 },
): Verdict {
  const findings = new Findings("what a restored cluster grants lies above all before", minimum);
  const known = highest(before);
  for (const attempt of restored.attempts) {
    const { operation, outcome } = attempt;
    const object = objectOf(operation);
    if (object === null || outcome?.kind !== "ok") continue;
    const least = known.get(object) ?? -1n;
    if (operation.kind === "get-sequence") {
      const { sequence } = outcome.result as SequenceResult;
      // One that was not in the backup is made anew.
      if (sequence === null || sequence.incarnation === 0n) continue;
      findings.count("sequences");
      if (sequence.incarnation > least) continue;
      findings.violation(`${object}: incarnation ${sequence.incarnation} after ${least}`, [
        attempt,
      ]);
    }
    const token = operation.kind === "try-lock" ? shownToken(attempt)?.token : undefined;
    if (token === undefined) continue;
    findings.count("grants");
    if (token <= least) findings.violation(`${object}: ${token} after ${least}`, [attempt]);
  }
  return findings.verdict();
}
