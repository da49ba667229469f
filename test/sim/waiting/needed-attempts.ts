/**
 * What of a history an order of a lock's answers has to be searched for in, where all its grants are
 * known from what was applied and told.
 *
 * Pure. Invariants: 1. What has an answer stays. 2. A grant that no answer explains is explained by
 * the earliest try of its owner that nobody knows the end of, its release by the earliest such
 * release; more of them could explain nothing more. 3. A release that is repeated counts from its first try:
 * the next holder may have been told upon that one (Q15).
 */
import {
  type Attempt,
  type LockOperation,
  type LockResult,
  objectOf,
} from "../../judge/history.js";

/** The tokens that an owner was granted. */
export type GrantsOf = (lock: string, owner: string) => ReadonlySet<bigint>;

interface OfOwner {
  readonly grants: ReadonlySet<bigint>;
  readonly attempts: Attempt[];
}

export function neededAttempts(attempts: readonly Attempt[], grantsOf: GrantsOf): Attempt[] {
  const owners = new Map<string, OfOwner>();
  const needed: Attempt[] = [];
  for (const attempt of attempts) {
    const { operation } = attempt;
    const isOfOwner =
      (operation.kind === "try-lock" || operation.kind === "try-unlock") && !operation.ephemeral;
    if (!isOfOwner) {
      needed.push(attempt);
      continue;
    }
    const lock = objectOf(operation) ?? "";
    const name = `${lock} ${operation.owner}`;
    let known = owners.get(name);
    if (known === undefined) {
      known = { grants: grantsOf(lock, operation.owner), attempts: [] };
      owners.set(name, known);
    }
    known.attempts.push(attempt);
  }
  for (const known of owners.values()) needed.push(...ofOwner(known));
  return needed.sort((one, other) => one.callOrder - other.callOrder);
}

function isOpen({ outcome }: Attempt): boolean {
  return outcome === null || outcome.kind === "unknown";
}

function ofOwner({ grants, attempts }: OfOwner): Attempt[] {
  const isTry = ({ operation }: Attempt): boolean => operation.kind === "try-lock";
  const tries = attempts.filter(isTry);
  const releases = attempts.filter((attempt) => !isTry(attempt));
  return [
    ...tries.filter((attempt) => !isOpen(attempt)),
    // Also of grants that a later try was told of: others may have seen them before.
    ...tries.filter(isOpen).slice(0, grants.size),
    ...releasesOf(grants, releases),
  ];
}

function releasesOf(grants: ReadonlySet<bigint>, releases: readonly Attempt[]): Attempt[] {
  const kept: Attempt[] = [];
  const open = releases.filter((attempt) => isOpen(attempt) && !isForced(attempt));
  const answered = new Set<bigint | null>();
  for (const attempt of releases) {
    if (isForced(attempt)) kept.push(attempt);
    else if (!isOpen(attempt)) {
      const token = tokenOf(attempt, "Unlocked");
      answered.add(token);
      kept.push(token === null ? attempt : fromItsFirst(attempt, token, open));
    }
  }
  for (const token of grants) {
    if (answered.has(token)) continue;
    // By its owner, or by the service, which nobody is bound by.
    for (const isByService of [false, true]) {
      const first = open.find((one) => isGiveBack(one) === isByService && mayMean(one, token));
      if (first !== undefined && !kept.includes(first)) kept.push(first);
    }
  }
  return kept;
}

/** A release with an answer, from its first try on; its answer is due when it was. */
function fromItsFirst(attempt: Attempt, token: bigint, open: readonly Attempt[]): Attempt {
  const first = open.find((one) => !isGiveBack(one) && mayMean(one, token));
  if (first === undefined || first.callOrder > attempt.callOrder) return attempt;
  const { callOrder, callMs } = first;
  const boundMs = attempt.boundMs === null ? null : attempt.boundMs + attempt.callMs - callMs;
  return { ...attempt, callOrder, callMs, boundMs };
}

function isGiveBack({ operation }: Attempt): boolean {
  return (operation as LockOperation).isGiveBack === true;
}

function isForced({ operation }: Attempt): boolean {
  return (operation as LockOperation).isForced === true;
}

function mayMean({ operation }: Attempt, token: bigint): boolean {
  const { fencingToken } = operation as LockOperation;
  return fencingToken === undefined || BigInt(fencingToken) === token;
}

/** Of an answer of that type; null: it is none. */
function tokenOf({ outcome }: Attempt, type: LockResult["type"]): bigint | null {
  if (outcome?.kind !== "ok") return null;
  const result = outcome.result as LockResult;
  return result.type === type ? result.token : null;
}
