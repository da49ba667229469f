/**
 * Property P-134: what a coordinated backup has is closed under "before": if A was answered, or seen by an answered read,
 * before B was asked for, and B is in it, then A is.
 *
 * Read off from what the restored cluster shows first of each key and lock: writes up to that revision or token are in
 * the backup, those above it are not. Invariant: an object that shows nothing (never used, or its lease is over) says
 * nothing.
 */
import type { Attempt, History, KvResult, LockResult } from "../../history.js";
import { objectOf } from "../../operation.js";
import { Findings, type Verdict } from "../verdict.js";
import type { CutTimes } from "./carried-on.js";

/** The revision or token that an answer shows, and whether it gave it; null: none. */
function shown({ operation, outcome }: Attempt): { number: bigint; isWrite: boolean } | null {
  if (outcome?.kind !== "ok" || !("type" in outcome.result)) return null;
  const { type } = outcome.result;
  if ("key" in operation && !operation.ephemeral) {
    const { revision } = outcome.result as KvResult;
    if (operation.kind === "kv-set" && type === "Set") return { number: revision, isWrite: true };
    const isRead = operation.kind === "kv-get" && operation.revision === -1n && type === "Got";
    return isRead ? { number: revision, isWrite: false } : null;
  }
  if (!("resource" in operation) || operation.ephemeral) return null;
  const { token } = outcome.result as LockResult;
  if (token === null) return null;
  if (operation.kind === "try-lock" && type === "Locked") return { number: token, isWrite: true };
  return operation.kind === "get-lock" && type === "Got" ? { number: token, isWrite: false } : null;
}

/** First answered look at each object. */
function firstLooks(restored: History): Map<string, bigint> {
  const looks = new Map<string, bigint>();
  const done = new Set<string>();
  for (const attempt of restored.attempts) {
    const object = objectOf(attempt.operation);
    if (object === null || done.has(object) || attempt.outcome?.kind !== "ok") continue;
    done.add(object);
    const seen = shown(attempt);
    if (seen !== null && !seen.isWrite) looks.set(object, seen.number);
  }
  return looks;
}

export function checkCausalCut(
  old: History,
  cut: CutTimes,
  restored: History,
  minimum = { included: 10, excluded: 1 },
): Verdict {
  const findings = new Findings("a coordinated backup is closed under before", minimum);
  const looks = firstLooks(restored);
  // Whoever asks again for a lock that it holds is shown its token, and writes nothing.
  const written = new Set<string>();
  let lastCall: Attempt | null = null;
  let firstSight: Attempt | null = null;
  for (const attempt of old.attempts) {
    const object = objectOf(attempt.operation);
    const edge = object === null ? undefined : looks.get(object);
    const seen = edge === undefined ? null : shown(attempt);
    if (edge === undefined || seen === null) continue;
    if (seen.number > edge) {
      findings.count("excluded");
      const returnMs = attempt.returnMs ?? Infinity;
      if (returnMs < (firstSight?.returnMs ?? Infinity)) firstSight = attempt;
      if (returnMs <= cut.calledMs) {
        findings.violation("answered before the backup was asked for, and not in it", [attempt]);
      }
    } else if (seen.isWrite && !written.has(`${object} ${seen.number}`)) {
      written.add(`${object} ${seen.number}`);
      findings.count("included");
      if (attempt.callMs > cut.calledMs) findings.count("included beside the call");
      if (attempt.callMs > (lastCall?.callMs ?? -Infinity)) lastCall = attempt;
      if (attempt.callMs >= cut.answeredMs) {
        findings.violation("asked for after the backup was taken, and in it", [attempt]);
      }
    }
  }
  if (lastCall !== null && (firstSight?.returnMs ?? Infinity) < lastCall.callMs) {
    const events = firstSight === null ? [lastCall] : [firstSight, lastCall];
    findings.violation(
      "the first is not in the backup, and the second, which came after it, is",
      events,
    );
  }
  return findings.verdict();
}
