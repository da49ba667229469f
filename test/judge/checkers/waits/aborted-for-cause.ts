/**
 * Property Q5: a wait is told that it was aborted only if somebody had it end, or its time was over:
 * whoever hears it does not ask again. A leader that is lost, or a node that was cut off, is no cause.
 *
 * Invariant: of owners that asked more than once nothing is claimed: a later try makes an earlier one
 * void, and a place has room for few requests (Q7, Q14).
 */
import { Findings, type Verdict } from "../verdict.js";

export const ABORTED_WAITS = { "aborted, of one request": 5 };

/** A wait that was told that it was aborted. */
export interface AbortedWait {
  readonly lock: string;
  readonly owner: string;
  readonly askedMs: number;
  readonly toldMs: number;
  /** Its client cancelled it, its node was about to stop, or it was told at its deadline. */
  readonly isExplained: boolean;
}

/** A forced release that sends away all who wait. */
export interface Dropping {
  readonly lock: string;
  readonly sentMs: number;
  /** Infinity: nobody knows whether it is over. */
  readonly toldMs: number;
}

/** `hasOne`: that owner asked once. */
export function checkAborted(
  aborted: readonly AbortedWait[],
  dropped: readonly Dropping[],
  hasOne: (owner: string) => boolean,
  minimum: Readonly<Record<string, number>> = ABORTED_WAITS,
): Verdict {
  const findings = new Findings("a wait is aborted for a cause", minimum);
  for (const { lock, owner, askedMs, toldMs, isExplained } of aborted) {
    findings.count("aborted");
    if (!hasOne(owner)) continue;
    findings.count("aborted, of one request");
    const isDropped = dropped.some((one) => {
      return one.lock === lock && one.sentMs <= toldMs && one.toldMs >= askedMs;
    });
    if (isDropped) findings.count("sent away");
    if (isExplained || isDropped) continue;
    findings.violation(
      `${lock}: ${owner}, who asked at ${askedMs} ms, was told so at ${toldMs} ms`,
    );
  }
  return findings.verdict();
}
