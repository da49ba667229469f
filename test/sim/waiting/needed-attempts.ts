/**
 * What of a history an order of a lock's answers has to be searched for in, where all its grants are
 * known from what was applied and told.
 *
 * Pure. Invariants: 1. What has an answer stays. 2. A grant that no answer tells of, or that a try
 * was made for before that one, is explained by the earliest try of its owner that nobody knows the
 * end of, under the token that it has: so grants have one order, that of their tokens. Its release
 * is explained likewise; the first one that its holder sent stays beside one of the service's own,
 * as the holder believes until then. More of them could explain nothing more. 3. A release that is
 * repeated, by its holder or by force, counts from the holder's first try where the next holder was
 * told upon that one, ahead of what is durable (Q15); elsewhere each counts for itself. 4. How much of a
 * lease is left a reader is told as of his answer: of a grant that was handed on ahead of what is
 * durable that may be less than when it was the last one, and is never more.
 */
import {
  type Attempt,
  type LockOperation,
  type LockResult,
  objectOf,
} from "../../judge/history.js";

/** What was applied and told of the lock. */
export interface KnownGrants {
  /** The tokens that an owner was granted. */
  readonly of: (lock: string, owner: string) => ReadonlySet<bigint>;
  /** The holder behind the grant `token` was told before the release of it was applied. */
  readonly isHandedOn: (lock: string, token: bigint) => boolean;
}

interface OfOwner {
  readonly lock: string;
  readonly grants: ReadonlySet<bigint>;
  readonly attempts: Attempt[];
}

export function neededAttempts(attempts: readonly Attempt[], known: KnownGrants): Attempt[] {
  const owners = new Map<string, OfOwner>();
  const needed: Attempt[] = [];
  for (const attempt of attempts) {
    const { operation } = attempt;
    const isOfOwner =
      (operation.kind === "try-lock" || operation.kind === "try-unlock") && !operation.ephemeral;
    if (!isOfOwner) {
      needed.push(readAhead(attempt, known));
      continue;
    }
    const lock = objectOf(operation) ?? "";
    const name = `${lock} ${operation.owner}`;
    let owner = owners.get(name);
    if (owner === undefined) {
      owner = { lock, grants: known.of(lock, operation.owner), attempts: [] };
      owners.set(name, owner);
    }
    owner.attempts.push(attempt);
  }
  for (const owner of owners.values()) {
    needed.push(...triesOf(owner), ...releasesOf(owner, known));
  }
  return needed.sort((one, other) => one.callOrder - other.callOrder);
}

function readAhead(attempt: Attempt, known: KnownGrants): Attempt {
  const { operation, outcome } = attempt;
  const token = operation.kind === "get-lock" ? tokenOf(attempt, "Got") : null;
  if (token === null || outcome?.kind !== "ok") return attempt;
  if (!known.isHandedOn(objectOf(operation) ?? "", token)) return attempt;
  const result = { ...(outcome.result as LockResult), isAtLeast: true };
  return { ...attempt, outcome: { ...outcome, result } };
}

function isOpen({ outcome }: Attempt): boolean {
  return outcome === null || outcome.kind === "unknown";
}

function triesOf({ grants, attempts }: OfOwner): Attempt[] {
  const tries = attempts.filter(({ operation }) => operation.kind === "try-lock");
  const kept = tries.filter((attempt) => !isOpen(attempt));
  // The earliest one: whatever a later one could explain, it does.
  const first = tries.find(isOpen);
  if (first === undefined) return kept;
  for (const token of grants) {
    const told = kept.find((attempt) => tokenOf(attempt, "Locked") === token);
    // Also of a grant that a later try was told of: others may have seen it before.
    if (told !== undefined && told.callOrder < first.callOrder) continue;
    const operation = { ...(first.operation as LockOperation), knownToken: `${token}` };
    kept.push({ ...first, operation });
  }
  return kept;
}

function releasesOf({ lock, grants, attempts }: OfOwner, known: KnownGrants): Attempt[] {
  const releases = attempts.filter(({ operation }) => operation.kind === "try-unlock");
  const open = releases.filter((attempt) => isOpen(attempt) && !isForced(attempt));
  const kept: Attempt[] = [];
  const answered = new Set<bigint>();
  for (const attempt of releases) {
    if (isOpen(attempt)) {
      if (isForced(attempt)) kept.push(attempt);
      continue;
    }
    const token = tokenOf(attempt, "Unlocked");
    if (token !== null) answered.add(token);
    const isEarly = token !== null && known.isHandedOn(lock, token);
    kept.push(isEarly ? fromItsFirst(attempt, token, releases) : attempt);
  }
  for (const token of grants) {
    if (answered.has(token)) continue;
    // By its owner, or by the service, which nobody is bound by.
    const meant = open.filter((one) => mayMean(one, token));
    const ofHolder = meant.find((one) => !isGiveBack(one));
    for (const attempt of new Set([meant[0], ofHolder])) {
      if (attempt === undefined) continue;
      const operation = { ...(attempt.operation as LockOperation), fencingToken: `${token}` };
      kept.push({ ...attempt, operation });
    }
  }
  return kept;
}

/** A release with an answer, from the first try of its holder on; its answer is due when it was. */
function fromItsFirst(attempt: Attempt, token: bigint, releases: readonly Attempt[]): Attempt {
  const first = releases.find((one) => isOfHolder(one, token) && mayMean(one, token));
  if (first === undefined || first.callOrder > attempt.callOrder) return attempt;
  const { callOrder, callMs } = first;
  const boundMs = attempt.boundMs === null ? null : attempt.boundMs + attempt.callMs - callMs;
  return { ...attempt, callOrder, callMs, boundMs };
}

/** The holder of the grant may have sent it: whoever was told otherwise may have been heard before. */
function isOfHolder(attempt: Attempt, token: bigint): boolean {
  if (isGiveBack(attempt) || isForced(attempt) || attempt.outcome?.kind === "refused") return false;
  return (tokenOf(attempt, "Unlocked") ?? token) === token;
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
