/**
 * Property Q10, P-181: extend and unlock of a holder are not refused because others wait for its
 * lock, however many.
 */
import type { History, LockOperation } from "../../history.js";
import { objectOf } from "../../operation.js";
import { Findings, type Verdict } from "../verdict.js";
import type { SeenQueue } from "./seen-queues.js";

export const HOLDER_FIRST = { "extends while others wait": 10, "unlocks while others wait": 30 };

export function checkHolderFirst(
  history: History,
  queues: readonly SeenQueue[],
  /** Some disk took nothing, or little: everybody may be refused then. */
  isTroubled: (fromMs: number, toMs: number) => boolean = () => false,
  minimum: Readonly<Record<string, number>> = HOLDER_FIRST,
): Verdict {
  const findings = new Findings("holders go before waiters", minimum);
  const byLock = new Map<string, SeenQueue[]>();
  for (const queue of queues) {
    const list = byLock.get(queue.lock) ?? [];
    list.push(queue);
    byLock.set(queue.lock, list);
  }
  for (const attempt of history.attempts) {
    const { operation, outcome, callMs, returnMs } = attempt;
    if (operation.kind !== "try-extend" && operation.kind !== "try-unlock") continue;
    const { isGiveBack, isForced } = operation as LockOperation;
    if (isGiveBack === true || isForced === true) continue;
    const isWaited = (byLock.get(objectOf(operation) ?? "") ?? []).some(({ stretches }) => {
      return stretches.some(({ fromMs, toMs }) => fromMs <= callMs && toMs > callMs);
    });
    if (!isWaited) continue;
    const what = operation.kind === "try-extend" ? "extends" : "unlocks";
    findings.count(`${what} while others wait`);
    if (outcome?.kind === "refused" && outcome.reason === "overloaded") {
      if (isTroubled(callMs, returnMs ?? callMs)) {
        findings.count("refused like everybody");
        continue;
      }
      findings.violation(`a holder is refused while others wait`, [attempt]);
    }
  }
  return findings.verdict();
}
