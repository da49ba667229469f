/**
 * Property Q6, T4, P-184: the lease of a waited grant begins when it is granted. Nobody believes it
 * longer than it was granted, and the service does not end it earlier.
 *
 * Invariants: 1. A holder counts what was left from when it asked, by WaitedMs, with the slowest clock
 * that there may be. 2. A lease runs at least from when its try was proposed; it is judged where
 * nobody extended or released it.
 */
import type { Attempt, History, LockOperation, LockResult } from "../../history.js";
import { objectOf } from "../../operation.js";
import { shownToken } from "../clients/tokens-grow.js";
import { Findings, type Verdict } from "../verdict.js";
import type { TermBetween } from "./never-free.js";

export const LEASE_FROM_GRANT = {
  "waited grants": 50,
  "grants after a wait": 20,
  "whole leases": 5,
};

/** Times of answers are whole milliseconds, and those of leases too. */
const ROUNDING_MS = 2;
/** What is told of a lease that has begun before is rounded each time that it is passed on. */
const PASSED_ON_MS = 5;

/** A grant, as the leader decided it. */
export interface SeenGrant {
  readonly lock: string;
  readonly partition: number;
  readonly owner: string;
  readonly token: bigint;
  readonly leaseMs: number;
  readonly proposedMs: number;
  readonly decidedMs: number;
}

/** Who had a grant, and since when at the latest. */
interface Taken {
  readonly owner: string;
  atMs: number;
}

export function checkLeaseFromGrant(
  history: History,
  grants: readonly SeenGrant[],
  drift: number,
  termBetween: TermBetween,
  minimum: Readonly<Record<string, number>> = LEASE_FROM_GRANT,
): Verdict {
  const findings = new Findings("a waited lease begins with its grant", minimum);
  const byToken = new Map(grants.map((grant) => [`${grant.lock} ${grant.token}`, grant]));
  /** Whatever may have moved the end of an owner's lease. */
  const changed = new Map<string, number>();
  const known = new Map<string, Map<bigint, Taken>>();
  const took = (lock: string, token: bigint, owner: string, atMs: number): void => {
    const ofLock = known.get(lock) ?? new Map<bigint, Taken>();
    known.set(lock, ofLock);
    const before = ofLock.get(token);
    if (before === undefined) ofLock.set(token, { owner, atMs });
    else before.atMs = Math.min(before.atMs, atMs);
  };
  for (const { lock, token, owner, decidedMs } of grants) took(lock, token, owner, decidedMs);
  for (const { operation, outcome, callMs } of history.attempts) {
    if (operation.kind !== "try-extend" && operation.kind !== "try-unlock") continue;
    const name = `${objectOf(operation) ?? ""} ${operation.owner}`;
    if (outcome?.kind !== "refused" && !changed.has(name)) changed.set(name, callMs);
  }
  for (const attempt of history.attempts) {
    const { operation, returnMs } = attempt;
    if (operation.kind !== "try-lock") continue;
    const lock = objectOf(operation) ?? "";
    const shown = shownToken(attempt);
    if (shown === null || returnMs === null) continue;
    took(lock, shown.token, shown.owner, returnMs);
    const grant = byToken.get(`${lock} ${shown.token}`);
    // Who found itself to be the holder (L2) may have been told of an extended lease.
    const isChanged = (changed.get(`${lock} ${shown.owner}`) ?? Infinity) <= returnMs;
    const isWaited = (operation.waitMs ?? 0) > 0;
    if (isWaited && grant !== undefined && !isChanged && isOfOne(grant, returnMs, termBetween)) {
      believed(findings, attempt, operation, grant, drift);
    }
  }
  const following = nextOnes(known);
  for (const grant of grants) {
    const { lock, owner, token, proposedMs, leaseMs } = grant;
    const next = following.get(`${lock} ${token}`) ?? null;
    const endMs = proposedMs + (leaseMs - ROUNDING_MS) / (1 + drift);
    if (next === null || (changed.get(`${lock} ${owner}`) ?? Infinity) < next.atMs) continue;
    findings.count("whole leases");
    if (next.atMs >= endMs) continue;
    const what = `${lock}: token ${token} of ${owner}, proposed at ${proposedMs.toFixed(1)} ms for ${leaseMs} ms`;
    findings.violation(`${what}: ${next.owner} had the lock at ${next.atMs.toFixed(1)} ms`);
  }
  return findings.verdict();
}

/** By lock and token: the next grant that anybody heard of; with heirs there are gaps (Q15). */
function nextOnes(known: ReadonlyMap<string, ReadonlyMap<bigint, Taken>>): Map<string, Taken> {
  const next = new Map<string, Taken>();
  for (const [lock, ofLock] of known) {
    const grants = [...ofLock].sort(([one], [other]) => (one < other ? -1 : 1));
    grants.forEach(([token], at) => {
      const following = grants[at + 1];
      if (following === undefined) return;
      // Ephemeral ones have none, but where a lock was lost with its leader (L15).
      const isGap = following[0] !== token + 1n;
      if (!isGap || lock.startsWith("lock ")) next.set(`${lock} ${token}`, following[1]);
    });
  }
  return next;
}

/** A lease stands still while a leader is missing: whoever asks then is told of a longer one (T3). */
function isOfOne(
  { partition, decidedMs }: SeenGrant,
  untilMs: number,
  between: TermBetween,
): boolean {
  return between(partition, Math.min(decidedMs, untilMs), untilMs) !== null;
}

function believed(
  findings: Findings,
  attempt: Attempt,
  { owner }: LockOperation,
  grant: SeenGrant,
  drift: number,
): void {
  const result = (attempt.outcome as { readonly result: LockResult }).result;
  const leftMs = result.leaseLeftMs ?? null;
  const beforeMs = result.waitedMs ?? null;
  if (leftMs === null || beforeMs === null || grant.owner !== owner) return;
  findings.count("waited grants");
  if (beforeMs > 0) findings.count("grants after a wait");
  if (leftMs > grant.leaseMs) {
    findings.violation(`${leftMs} ms are left of a lease of ${grant.leaseMs}`, [attempt]);
  }
  // Who asked again later was told what was left by a clock that may have run slowly until then.
  const goneMs = (grant.leaseMs - leftMs) * (1 + drift) + PASSED_ON_MS;
  const untilMs = attempt.callMs + (beforeMs + leftMs) / (1 + drift);
  const endMs = grant.decidedMs + goneMs + leftMs / (1 + drift);
  if (untilMs <= endMs) return;
  const text = `believed until ${untilMs.toFixed(1)} ms, granted until ${endMs.toFixed(1)} ms`;
  findings.violation(text, [attempt]);
}
