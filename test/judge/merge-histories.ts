/**
 * Histories of several recorders made one.
 */
import type { Attempt, History } from "./history.js";

type OpenAttempt = { -readonly [Member in keyof Attempt]: Attempt[Member] };

/** Joins histories whose clocks agree (one machine): orders are given anew by time, calls first where times are equal. */
export function mergeHistories(parts: readonly History[]): History {
  const attempts: OpenAttempt[] = [];
  const ends: { ms: number; isReturn: boolean; order: number; attempt: OpenAttempt }[] = [];
  for (const part of parts) {
    for (const recorded of part.attempts) {
      const attempt: OpenAttempt = { ...recorded, id: attempts.length };
      attempts.push(attempt);
      ends.push({ ms: attempt.callMs, isReturn: false, order: attempt.callOrder, attempt });
      if (attempt.returnMs !== null && attempt.returnOrder !== null) {
        ends.push({ ms: attempt.returnMs, isReturn: true, order: attempt.returnOrder, attempt });
      }
    }
  }
  ends.sort((a, b) => a.ms - b.ms || Number(a.isReturn) - Number(b.isReturn) || a.order - b.order);
  const renumbered = new Map<OpenAttempt, { call: number; end: number | null }>();
  for (const [at, end] of ends.entries()) {
    const known = renumbered.get(end.attempt);
    if (known === undefined) renumbered.set(end.attempt, { call: at + 1, end: null });
    else known.end = at + 1;
  }
  return {
    attempts: attempts.map((attempt) => {
      const orders = renumbered.get(attempt) as { call: number; end: number | null };
      return { ...attempt, callOrder: orders.call, returnOrder: orders.end };
    }),
    endMs: Math.max(0, ...parts.map((part) => part.endMs)),
  };
}
