/**
 * Property C6: a read of a persistent key that was called after a write was answered sees that write or a later one.
 *
 * The linearizability of keys says more, but may be undecided; this is decided always. Invariants: 1. Revisions that
 * answers show never fall for later calls, as long as no tombstone may have been dropped. 2. A key that was set is found
 * unless a delete or an expiry may lie in between.
 */
import type { Attempt, History, KvResult } from "../../history.js";
import { KV_OPTIONS } from "../../models/kv.js";
import { byObject, endOrder } from "../intervals.js";
import { Findings, type Verdict } from "../verdict.js";

export interface ReadsOptions {
  readonly minimum: number;
  /** --kv-tombstone-retention in true time at least. */
  readonly tombstoneRetentionMs: number;
}
export const READS: ReadsOptions = {
  minimum: 50,
  tombstoneRetentionMs: KV_OPTIONS.tombstoneRetentionMs,
};

export function checkReadsSeeWrites(history: History, options: ReadsOptions = READS): Verdict {
  const findings = new Findings("reads see completed writes", { compared: options.minimum });
  for (const [object, attempts] of byObject(history)) {
    if (object.startsWith("key ")) checkKey(findings, object, attempts, options);
  }
  return findings.verdict();
}

interface Shown {
  readonly attempt: Attempt;
  readonly revision: bigint;
  readonly isWrite: boolean;
}

/** The latest revision that an answer shows; null when it shows none. */
function shownRevision(attempt: Attempt): Shown | null {
  const { operation, outcome } = attempt;
  if (outcome?.kind !== "ok") return null;
  const { type, revision } = outcome.result as KvResult;
  if (operation.kind === "kv-set" && type === "Set") return { attempt, revision, isWrite: true };
  if (operation.kind === "kv-set" && type === "NotSet")
    return { attempt, revision, isWrite: false };
  if (type === "Deleted" || type === "Extended") {
    return { attempt, revision, isWrite: type === "Deleted" };
  }
  const isLatest = "revision" in operation && operation.revision === -1n;
  if ((type === "Got" || type === "Exists") && isLatest) {
    return { attempt, revision, isWrite: false };
  }
  return null;
}

function checkKey(
  findings: Findings,
  object: string,
  attempts: readonly Attempt[],
  options: ReadsOptions,
): void {
  const shown = attempts.map(shownRevision).filter((answer) => answer !== null);
  // A refusal may show the revision of a tombstone that is about to be forgotten: it is judged, and
  // promises nothing.
  const returns = shown
    .filter((answer) => !isRefusal(answer.attempt))
    .sort((a, b) => (a.attempt.returnOrder ?? 0) - (b.attempt.returnOrder ?? 0));
  const byAttempt = new Map(shown.map((answer) => [answer.attempt, answer]));
  const endings = attempts.filter((attempt) => mayEnd(attempt));
  let received = 0;
  let highest: Shown | null = null;
  for (const attempt of attempts) {
    for (; received < returns.length; received++) {
      const earlier = returns[received] as Shown;
      if ((earlier.attempt.returnOrder ?? Infinity) > attempt.callOrder) break;
      const age = attempt.callMs - earlier.attempt.callMs;
      const isOlder = highest !== null && earlier.revision <= highest.revision;
      if (!isOlder && age < options.tombstoneRetentionMs) highest = earlier;
    }
    if (highest === null || attempt.outcome?.kind !== "ok") continue;
    const since = (attempt.returnMs ?? Infinity) - highest.attempt.callMs;
    if (since >= options.tombstoneRetentionMs) {
      highest = null;
      continue;
    }
    judge(findings, object, attempt, byAttempt.get(attempt) ?? null, highest, endings);
  }
}

function judge(
  findings: Findings,
  object: string,
  attempt: Attempt,
  answer: Shown | null,
  highest: Shown,
  endings: readonly Attempt[],
): void {
  if (answer !== null) {
    findings.count("compared");
    const least = answer.isWrite ? highest.revision + 1n : highest.revision;
    if (answer.revision < least) {
      const text = `${object}: revision ${answer.revision} after ${highest.revision} was received`;
      findings.violation(text, [highest.attempt, attempt]);
    }
    return;
  }
  const { operation, outcome } = attempt;
  const isRead = operation.kind === "kv-get" || operation.kind === "kv-exists";
  if (!isRead || operation.revision !== -1n || outcome?.kind !== "ok") return;
  if ((outcome.result as KvResult).type !== "DoesNotExist") return;
  if (!highest.isWrite || highest.attempt.operation.kind !== "kv-set") return;
  const mayHaveEnded = endings.some(
    (ending) =>
      ending.callOrder < endOrder(attempt) && endOrder(ending) > highest.attempt.callOrder,
  );
  if (mayHaveEnded) return;
  findings.count("compared");
  const text = `${object}: not found after revision ${highest.revision} was received`;
  findings.violation(text, [highest.attempt, attempt]);
}

function isRefusal({ outcome }: Attempt): boolean {
  return outcome?.kind === "ok" && outcome.result.type === "NotSet";
}

/** True when the attempt may be the reason that the key is not found: a delete, or an expiry that it set. */
function mayEnd(attempt: Attempt): boolean {
  const { operation } = attempt;
  if (operation.kind === "kv-delete") return true;
  return (operation.kind === "kv-set" || operation.kind === "kv-extend") && operation.expiresMs > 0;
}
