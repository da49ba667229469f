/**
 * The history of a cluster that was restored from a backup, as one with that of the cluster that it comes from, so that
 * the checkers of any history judge both.
 *
 * The instant of the backup lies between the call for it and its answer. What was answered before is in it; what was
 * called later is not; of the rest nobody knows. Leases stand still from there until the restored cluster begins, so that
 * its times are moved to the answer. Invariants: 1. What may not be in the backup counts as unknown, and has no effect
 * after the first look at its object. 2. A restored sequence has another incarnation, which rises; its model is told the
 * one before.
 */
import type { Attempt, History, SequenceResult } from "../../history.js";
import { mergeHistories } from "../../merge-histories.js";
import { objectOf } from "../../operation.js";

export interface CutTimes {
  readonly calledMs: number;
  readonly answeredMs: number;
}

export interface Restored {
  readonly history: History;
  /** When the first node of it was started. */
  readonly beganMs: number;
}

/** What a restore adds to every incarnation at least. */
export const INCARNATION_LIFT = 1n << 20n;

function isAnswered({ outcome }: Attempt): boolean {
  return outcome?.kind === "ok";
}

/** The old attempts as whoever was restored knows of them. */
function carried({ attempts, endMs }: History, { calledMs, answeredMs }: CutTimes): History {
  const kept = attempts.filter(({ callMs }) => callMs < answeredMs);
  return {
    endMs: Math.min(endMs, answeredMs),
    attempts: kept.map((attempt): Attempt => {
      const { returnMs } = attempt;
      if (returnMs !== null && returnMs <= calledMs && isAnswered(attempt)) return attempt;
      // What was certainly not carried out stays so.
      if (attempt.outcome?.kind === "refused") return attempt;
      const outcome = { kind: "unknown", reason: "beside the backup" } as const;
      const lost = attempt.lost ?? outcome.reason;
      return { ...attempt, returnMs: null, returnOrder: null, answers: 0, outcome, lost };
    }),
  };
}

function withoutLift(attempt: Attempt): Attempt {
  const { outcome, operation } = attempt;
  if (outcome?.kind !== "ok" || operation.kind !== "get-sequence") return attempt;
  const result = outcome.result as SequenceResult;
  const { sequence } = result;
  if (sequence === null || sequence.incarnation < INCARNATION_LIFT) return attempt;
  const before = { ...sequence, incarnation: sequence.incarnation % INCARNATION_LIFT };
  return { ...attempt, outcome: { kind: "ok", result: { ...result, sequence: before } } };
}

/** Both as one. */
export function carriedOn(old: History, cut: CutTimes, { history, beganMs }: Restored): History {
  const moved = (ms: number): number => ms - beganMs + cut.answeredMs;
  const restored = {
    endMs: moved(history.endMs),
    attempts: history.attempts.map((attempt) => ({
      ...withoutLift(attempt),
      callMs: moved(attempt.callMs),
      returnMs: attempt.returnMs === null ? null : moved(attempt.returnMs),
    })),
  };
  const before = carried(old, cut);
  const merged = mergeHistories([before, restored]);
  const firstLooks = new Map<string | null, number>();
  for (const attempt of merged.attempts.slice(before.attempts.length)) {
    const object = objectOf(attempt.operation);
    if (isAnswered(attempt) && !firstLooks.has(object)) firstLooks.set(object, attempt.id);
  }
  const attempts = merged.attempts.map((attempt, at): Attempt => {
    if (at >= before.attempts.length || isAnswered(attempt)) return attempt;
    const earlierTryOf = firstLooks.get(objectOf(attempt.operation));
    return earlierTryOf === undefined ? attempt : { ...attempt, earlierTryOf };
  });
  return { ...merged, attempts };
}
