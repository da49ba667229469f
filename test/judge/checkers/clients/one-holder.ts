/**
 * Property: at most one holder of a lock at any instant of true time (L3, T3, T4); of an ephemeral one within each
 * leadership (C10), as far as answers are known to be of it.
 *
 * A holder believes from the answer to its grant until expiresMs after it sent the request, less the declared drift, or
 * until it sends its release. Who waited counts what was left from when it asked, by the time that it
 * waited (Q6). Invariants: 1. Belief is never longer than a correct holder's: where an attempt without an
 * answer may have shortened the lease, it did. 2. What was granted in a leadership that is not known is not judged.
 */
import type { Attempt, History, LockOperation, LockResult } from "../../history.js";
import { byObject } from "../intervals.js";
import { shownToken } from "./tokens-grow.js";
import { Findings, type Verdict } from "../verdict.js";

export interface HolderOptions {
  readonly minimum: number;
  /** How much faster than true time any clock may run. */
  readonly drift: number;
}
export const HOLDER: HolderOptions = { minimum: 20, drift: 0 };

interface Belief {
  readonly owner: string;
  readonly token: bigint;
  /** The answer that made it believe. */
  readonly attempt: Attempt;
  readonly fromMs: number;
  untilMs: number;
}

export function checkOneHolder(history: History, options: HolderOptions = HOLDER): Verdict {
  const minimum = { beliefs: options.minimum, handovers: options.minimum === 0 ? 0 : 1 };
  const findings = new Findings("one holder per lease", minimum);
  for (const [object, attempts] of byObject(history)) {
    if (object.startsWith("lock ")) checkLock(findings, object, attempts, options);
    if (!object.startsWith("ephemeral-lock ")) continue;
    for (const [term, beliefs] of byTerm(beliefsOf(attempts, options.drift))) {
      findings.count("ephemeral beliefs", beliefs.length);
      checkBeliefs(findings, `${object} in term ${term}`, beliefs);
    }
  }
  return findings.verdict();
}

function checkLock(
  findings: Findings,
  object: string,
  attempts: readonly Attempt[],
  options: HolderOptions,
): void {
  const beliefs = beliefsOf(attempts, options.drift);
  findings.count("beliefs", beliefs.length);
  checkBeliefs(findings, object, beliefs);
}

/** Beliefs in grants of one leadership each. */
function byTerm(beliefs: readonly Belief[]): Map<number, Belief[]> {
  const terms = new Map<number, Belief[]>();
  for (const belief of beliefs) {
    const { term } = belief.attempt;
    if (term === null) continue;
    const list = terms.get(term);
    if (list === undefined) terms.set(term, [belief]);
    else list.push(belief);
  }
  return terms;
}

function checkBeliefs(findings: Findings, object: string, unsorted: readonly Belief[]): void {
  const beliefs = [...unsorted].sort((a, b) => a.fromMs - b.fromMs);
  let longest: Belief | null = null;
  for (const belief of beliefs) {
    if (longest !== null && longest.token !== belief.token) {
      if (longest.owner !== belief.owner) findings.count("handovers");
      if (longest.untilMs > belief.fromMs && longest.owner !== belief.owner) {
        const text = `${object}: ${longest.owner} held it until ${longest.untilMs.toFixed(1)} ms, and`;
        findings.violation(`${text} ${belief.owner} from ${belief.fromMs.toFixed(1)} ms`, [
          longest.attempt,
          belief.attempt,
        ]);
      }
    }
    if (longest === null || belief.untilMs > longest.untilMs) longest = belief;
  }
}

/** One belief per owner and token. */
function beliefsOf(attempts: readonly Attempt[], drift: number): Belief[] {
  const byOwner = new Map<string, Attempt[]>();
  for (const attempt of attempts) {
    const { owner, kind } = attempt.operation as LockOperation;
    if (kind === "get-lock") continue;
    const list = byOwner.get(owner);
    if (list === undefined) byOwner.set(owner, [attempt]);
    else list.push(attempt);
  }
  const beliefs: Belief[] = [];
  for (const [owner, own] of byOwner) {
    const tokens = new Map<bigint, Attempt>();
    for (const attempt of own) {
      const shown = shownToken(attempt);
      if (attempt.operation.kind !== "try-lock" || shown === null) continue;
      const known = tokens.get(shown.token);
      if (known === undefined || (known.returnMs ?? 0) > (attempt.returnMs ?? 0)) {
        tokens.set(shown.token, attempt);
      }
    }
    for (const [token, answered] of tokens) {
      const untilMs = believedUntil(own, token, answered, drift);
      const fromMs = answered.returnMs ?? 0;
      if (untilMs > fromMs) beliefs.push({ owner, token, attempt: answered, fromMs, untilMs });
    }
  }
  return beliefs;
}

/**
 * The end of a lease whose holder was told how long it had waited, and what was left then (Q6); null:
 * it was not.
 */
function waitedUntil(answered: Attempt, drift: number): number | null {
  const { operation, outcome, callMs } = answered;
  if (operation.kind !== "try-lock" || operation.waitMs === undefined) return null;
  if (outcome?.kind !== "ok") return null;
  const { waitedMs, leaseLeftMs } = outcome.result as LockResult;
  // Whoever is not told what is left believes nothing.
  return callMs + ((waitedMs ?? 0) + (leaseLeftMs ?? 0) - 1) / (1 + drift);
}

/** The earliest end that any way of seeing the owner's attempts gives the lease of `token`. */
function believedUntil(
  own: readonly Attempt[],
  token: bigint,
  answered: Attempt,
  drift: number,
): number {
  const after = (attempt: Attempt): number => {
    const leaseMs = (attempt.operation as LockOperation).expiresMs;
    return attempt.callMs + (leaseMs - 1) / (1 + drift);
  };
  // Any of the attempts up to the answer that have this token, or no answer, may be the one that was granted.
  let untilMs = Infinity;
  const waited = waitedUntil(answered, drift);
  for (const attempt of own) {
    // What is left of a waited grant was told, whichever try was granted.
    if (attempt.operation.kind !== "try-lock" || waited !== null) continue;
    if (attempt.callOrder > (answered.returnOrder ?? 0)) continue;
    const shown = shownToken(attempt);
    const isSame = shown !== null && shown.token === token;
    if (isSame || attempt.outcome?.kind !== "ok") untilMs = Math.min(untilMs, after(attempt));
  }
  if (waited !== null) untilMs = waited;
  const extensions = own.filter((attempt) => attempt.operation.kind === "try-extend");
  let settled = answered.returnOrder ?? 0;
  for (const attempt of extensions) {
    if (shownToken(attempt)?.token !== token) continue;
    if ((attempt.returnMs ?? Infinity) >= untilMs) {
      // It is not heard of in time, and may have shortened the lease long before.
      untilMs = Math.min(untilMs, after(attempt));
      continue;
    }
    // Of two that overlapped nobody knows which came last.
    const isOnly = attempt.callOrder > settled;
    untilMs = isOnly ? after(attempt) : Math.min(untilMs, after(attempt));
    settled = Math.max(settled, attempt.returnOrder ?? 0);
  }
  for (const attempt of extensions) {
    if (attempt.outcome?.kind !== "ok") untilMs = Math.min(untilMs, after(attempt));
  }
  for (const attempt of own) {
    if (attempt.operation.kind !== "try-unlock") continue;
    // What somebody was told of is never given back (P-182).
    if ((attempt.operation as LockOperation).isGiveBack === true) continue;
    // A release that may still be under way ends the belief when it is sent, also one sent before the grant.
    const isOver = (attempt.returnOrder ?? Infinity) < answered.callOrder;
    const isDecided = attempt.outcome?.kind === "ok";
    if (isDecided && isOver) continue;
    untilMs = Math.min(untilMs, attempt.callMs);
  }
  return untilMs;
}
