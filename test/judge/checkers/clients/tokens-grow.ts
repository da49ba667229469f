/**
 * Property L12, L15: fencing tokens of one lock grow with every grant, across release, expiry, failover and restart, and
 * never belong to two owners.
 *
 * Invariant: an answer that was called for after another one had been received never shows a smaller token.
 */
import type { Attempt, History, LockOperation, LockResult } from "../../history.js";
import { byObject } from "../intervals.js";
import { Findings, type Verdict } from "../verdict.js";

export function checkTokensGrow(history: History, minimum = 50): Verdict {
  const findings = new Findings("fencing tokens grow", { compared: minimum, grants: 2 });
  for (const [object, attempts] of byObject(history)) {
    if (object.startsWith("lock ") || object.startsWith("ephemeral-lock ")) {
      checkLock(findings, object, attempts);
    }
  }
  return findings.verdict();
}

interface Shown {
  readonly attempt: Attempt;
  readonly token: bigint;
  readonly owner: string;
}

/** The token that an answer shows, and whose it is. */
export function shownToken(attempt: Attempt): Shown | null {
  if (attempt.outcome?.kind !== "ok") return null;
  const operation = attempt.operation as LockOperation;
  const { type, token, owner } = attempt.outcome.result as LockResult;
  if (token === null) return null;
  if (type === "Got") return { attempt, token, owner: owner ?? "" };
  if (type !== "Locked" && type !== "Extended" && type !== "Unlocked") return null;
  return { attempt, token, owner: operation.owner };
}

function checkLock(findings: Findings, object: string, attempts: readonly Attempt[]): void {
  const owners = new Map<bigint, Shown>();
  const shown = attempts.map(shownToken).filter((answer) => answer !== null);
  for (const answer of shown) {
    const known = owners.get(answer.token);
    if (known === undefined) {
      owners.set(answer.token, answer);
      findings.count("grants");
    } else if (known.owner !== answer.owner) {
      const text = `${object}: token ${answer.token} belongs to two owners`;
      findings.violation(text, [known.attempt, answer.attempt]);
    }
  }
  const returns = shown
    .slice()
    .sort((a, b) => (a.attempt.returnOrder ?? 0) - (b.attempt.returnOrder ?? 0));
  let received = 0;
  let highest: Shown | null = null;
  let released: Shown | null = null;
  for (const answer of shown) {
    for (; received < returns.length; received++) {
      const earlier = returns[received] as Shown;
      if ((earlier.attempt.returnOrder ?? Infinity) > answer.attempt.callOrder) break;
      if (highest === null || earlier.token > highest.token) highest = earlier;
      const isRelease = earlier.attempt.operation.kind === "try-unlock";
      if (isRelease && (released === null || earlier.token > released.token)) released = earlier;
    }
    if (highest === null) continue;
    findings.count("compared");
    // A token that was given back never comes again, not even to the same owner.
    const isGrant = answer.attempt.operation.kind === "try-lock";
    if (isGrant && released !== null) {
      findings.count("after a release");
      if (answer.token <= released.token) {
        const text = `${object}: token ${answer.token} was granted again`;
        findings.violation(text, [released.attempt, answer.attempt]);
      }
    }
    if (isGrant && highest.token < answer.token && released?.token !== highest.token) {
      findings.count("after an expiry");
    }
    if (answer.token < highest.token) {
      const text = `${object}: token ${answer.token} after ${highest.token} was received`;
      findings.violation(text, [highest.attempt, answer.attempt]);
    }
  }
}
