/**
 * Property Q3: while somebody waits for a lock, nobody who does not wait is granted it, and nobody
 * finds it free.
 *
 * Judged are answers whose whole time lies within one leadership, at whose leader somebody waited all
 * of that time. Invariant: newcomers have an owner of their own for each try, so that none holds the
 * lock before.
 */
import type { History, LockOperation, LockResult } from "../../history.js";
import { objectOf } from "../../operation.js";
import { Findings, type Verdict } from "../verdict.js";
import type { SeenQueue } from "./seen-queues.js";

export const NEVER_FREE = { "newcomers refused": 20, "readers who saw a holder": 20 };

/** The term of the one leadership of a partition between two times; null: there were several. */
export type TermBetween = (partition: number, fromMs: number, toMs: number) => number | null;

export function checkNeverFree(
  history: History,
  queues: readonly SeenQueue[],
  termBetween: TermBetween,
  isNewcomer: (owner: string) => boolean,
  minimum: Readonly<Record<string, number>> = NEVER_FREE,
): Verdict {
  const findings = new Findings("a lock that is waited for is never free", minimum);
  const byLock = new Map<string, SeenQueue[]>();
  for (const queue of queues) {
    const list = byLock.get(queue.lock) ?? [];
    list.push(queue);
    byLock.set(queue.lock, list);
  }
  for (const attempt of history.attempts) {
    const { operation, outcome, callMs, returnMs } = attempt;
    const isTry = operation.kind === "try-lock" && isNewcomer(operation.owner);
    if ((!isTry && operation.kind !== "get-lock") || outcome?.kind !== "ok") continue;
    if (returnMs === null) continue;
    const waited = (byLock.get(objectOf(operation as LockOperation) ?? "") ?? []).find((queue) => {
      const { stretches, term, partition } = queue;
      const isWhole = stretches.some(({ fromMs, toMs }) => fromMs <= callMs && toMs >= returnMs);
      return isWhole && termBetween(partition, callMs, returnMs) === term;
    });
    if (waited === undefined) continue;
    const { type } = outcome.result as LockResult;
    if (type === "Locked" || type === "LockDoesNotExist") {
      const where = `node ${waited.node}, term ${waited.term}`;
      findings.violation(`somebody waited for ${waited.lock} all the time at ${where}`, [attempt]);
    } else findings.count(isTry ? "newcomers refused" : "readers who saw a holder");
  }
  return findings.verdict();
}
