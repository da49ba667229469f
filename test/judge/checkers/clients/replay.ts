/**
 * Property S11: the same sequence, key and count give the identical allocation, on any node, also after failover.
 *
 * Invariants: 1. Two answers are compared unless an incarnation may have begun between them, or the key may have been
 * dropped by number or by time in between. 2. Another count for a remembered key is InvalidInput.
 */
import type { AllocationResult, Attempt, History } from "../../history.js";
import { type LeaseTime, leaseTime } from "../../models/lease-time.js";
import { SEQUENCE_OPTIONS } from "../../models/sequence.js";
import { type Allocated, IncarnationChanges, allocatedBy, byObject } from "../intervals.js";
import { Findings, type Verdict } from "../verdict.js";

export interface ReplayOptions {
  readonly minimum: number;
  readonly keysRetainedMax: number;
  readonly keysRetainedMs: number;
  readonly time: LeaseTime;
}
export const REPLAY: ReplayOptions = { minimum: 10, ...SEQUENCE_OPTIONS, time: leaseTime(0) };

export function checkReplay(history: History, options: ReplayOptions = REPLAY): Verdict {
  const findings = new Findings("idempotent replay identical", { replays: options.minimum });
  for (const [object, attempts] of byObject(history)) {
    if (object.startsWith("sequence ")) checkSequence(findings, object, attempts, options);
  }
  return findings.verdict();
}

function checkSequence(
  findings: Findings,
  object: string,
  attempts: readonly Attempt[],
  options: ReplayOptions,
): void {
  const changes = new IncarnationChanges(attempts);
  const answers = attempts.filter((attempt) => attempt.outcome?.kind === "ok");
  answers.sort((a, b) => (a.returnOrder ?? 0) - (b.returnOrder ?? 0));
  const first = new Map<string, Allocated>();
  for (const attempt of answers) {
    const key = keyOf(attempt);
    if (key === null) continue;
    const known = first.get(key);
    const comparable =
      known !== undefined &&
      !changes.mayLieBetween(known.attempt, attempt) &&
      !mayBeForgotten(attempts, known, attempt, options);
    if (known !== undefined && comparable) compare(findings, object, known, attempt);
    const allocated = allocatedBy(attempt);
    if (allocated !== null && !comparable) first.set(key, allocated);
  }
}

function keyOf(attempt: Attempt): string | null {
  const { operation } = attempt;
  if (operation.kind !== "allocate") return null;
  const key = operation.idempotencyKey?.trim() ?? "";
  return key === "" ? null : key;
}

function mayBeForgotten(
  attempts: readonly Attempt[],
  known: Allocated,
  later: Attempt,
  options: ReplayOptions,
): boolean {
  const { keysRetainedMax, keysRetainedMs, time } = options;
  const laterMs = later.returnMs ?? Infinity;
  // The record may be that of an earlier attempt, whose answer was lost and given again.
  let { callMs, callOrder } = known.attempt;
  for (const attempt of attempts) {
    const isOpen = attempt.outcome === null || attempt.outcome.kind !== "refused";
    if (!isOpen || keyOf(attempt) !== known.key || attempt.callOrder >= callOrder) continue;
    ({ callMs, callOrder } = attempt);
  }
  const age = time.elapsedMaxMs(callMs, laterMs);
  if (keysRetainedMs > 0 && age + 1 >= keysRetainedMs) return true;
  if (keysRetainedMax === 0) return false;
  const others = new Set<string>();
  for (const attempt of attempts) {
    const key = keyOf(attempt);
    const end = attempt.returnOrder ?? Infinity;
    if (key === null || key === known.key || end < callOrder) continue;
    if (attempt.callOrder < (later.returnOrder ?? Infinity)) others.add(key);
    if (others.size >= keysRetainedMax) return true;
  }
  return false;
}

function compare(findings: Findings, object: string, known: Allocated, attempt: Attempt): void {
  const { operation, outcome } = attempt;
  if (operation.kind !== "allocate" || outcome?.kind !== "ok") return;
  const result = outcome.result as AllocationResult;
  findings.count("replays");
  if (operation.count !== known.result.count) {
    if (result.type === "InvalidInput") return findings.count("other count refused");
    findings.violation(`${object}: another count was accepted for key ${known.key}`, [
      known.attempt,
      attempt,
    ]);
    return;
  }
  const { start, end, count, revision } = known.result;
  const same =
    result.type === "Success" &&
    result.start === start &&
    result.end === end &&
    result.count === count &&
    result.revision === revision;
  if (!same) {
    const text = `${object}: key ${known.key} was answered differently`;
    findings.violation(text, [known.attempt, attempt]);
  }
}
