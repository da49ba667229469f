/**
 * Property Q9, P-182: whoever was told that its wait is cancelled holds nothing, and a wait whose
 * connection its leader saw closed before it handed the grant over does so for no longer than it
 * takes to give the grant back.
 *
 * Judged by whoever reads the lock later. Invariants: 1. An owner that asked again may hold the lock
 * for that. 2. A closed connection is judged where its node led the lock all the time and could give
 * back what it had granted. 3. Who is cancelled may be named in a list and is given back what that
 * grants it; by a list that outlives its leader it holds the lock to the end of that (Q15). 4. What
 * was on its way to a list's heir when it went is given back once it is decided.
 */
import type { History, LockOperation, LockResult } from "../../history.js";
import { objectOf } from "../../operation.js";
import { Findings, type Verdict } from "../verdict.js";
import type { TermBetween } from "./never-free.js";

export const GONE = { "cancelled waits": 10, "closed waits": 5, "reads after a cancel": 5 };

/** To give a grant back takes a commit; of a disk of the world that is slow, a long one (ms). */
const GIVE_BACK_MS = 2500;

export interface GoneWait {
  readonly lock: string;
  readonly owner: string;
  readonly partition: number;
  readonly askedMs: number;
  /** The answer to the cancel came, or the node saw the connection closed. */
  readonly goneMs: number;
  readonly how: "cancelled" | "closed";
  /** The node that was asked led the lock when it was asked, and when the client had gone. */
  readonly isAtLeader: boolean;
}

export interface GoneHeirs {
  /** By then a list that outlived its leader had made the owner the holder, whatever became of its wait. */
  readonly isPresumed: (lock: string, owner: string, atMs: number) => boolean;
  /** When the command that made the owner the holder last was proposed, and when it was applied (ms). */
  readonly heldBy: (
    lock: string,
    owner: string,
  ) => { proposedMs: number; appliedMs: number } | null;
}

export function checkGone(
  history: History,
  gone: readonly GoneWait[],
  /** Owners that asked more than once, or whose grant could not be given back. */
  isOpen: (owner: string) => boolean,
  termBetween: TermBetween,
  /** Locks may have heirs; null: they have none. */
  heirs: GoneHeirs | null = null,
  minimum: Readonly<Record<string, number>> = GONE,
): Verdict {
  const findings = new Findings("who is gone holds nothing", minimum);
  const byOwner = new Map(gone.map((wait) => [`${wait.lock} ${wait.owner}`, wait]));
  for (const { how } of gone) findings.count(`${how} waits`);
  for (const attempt of history.attempts) {
    const { operation, outcome, callMs, returnMs } = attempt;
    if (operation.kind !== "get-lock" || outcome?.kind !== "ok" || returnMs === null) continue;
    const { type, owner } = outcome.result as LockResult;
    const lock = objectOf(operation as LockOperation) ?? "";
    if (operation.owner !== "") {
      const asker = byOwner.get(`${lock} ${operation.owner}`);
      if (asker !== undefined && asker.goneMs <= callMs) findings.count("reads after a cancel");
    }
    const wait = type === "Got" ? byOwner.get(`${lock} ${owner ?? ""}`) : undefined;
    if (wait === undefined || isOpen(wait.owner)) continue;
    const held = heirs?.heldBy(lock, wait.owner) ?? null;
    const wasOnItsWay = held !== null && held.proposedMs <= wait.goneMs;
    const sinceMs = callMs - (wasOnItsWay ? Math.max(wait.goneMs, held.appliedMs) : wait.goneMs);
    const isExact = wait.how === "cancelled" && heirs === null;
    if (sinceMs < (isExact ? 0 : GIVE_BACK_MS)) continue;
    if (heirs?.isPresumed(lock, wait.owner, returnMs) === true) continue;
    if (wait.how === "closed") {
      const isOne = termBetween(wait.partition, wait.askedMs, returnMs) !== null;
      if (!wait.isAtLeader || !isOne) continue;
    }
    const text = `${wait.owner} was ${wait.how} ${sinceMs.toFixed(0)} ms before, and holds ${lock}`;
    findings.violation(text, [attempt]);
  }
  return findings.verdict();
}
