/**
 * When attempts happened, for the checkers: orders of calls and answers, attempts by object, and the stretches in which
 * a sequence may have begun a new incarnation.
 *
 * Invariant: an attempt without a result reaches to the end of the history.
 */
import { type AllocationResult, type Attempt, type History, objectOf } from "../history.js";

/** Order of the answer with a result; Infinity when there is none. */
export function endOrder(attempt: Attempt): number {
  if (attempt.outcome?.kind !== "ok" || attempt.returnOrder === null) return Infinity;
  return attempt.returnOrder;
}

export function mayHaveHappened(attempt: Attempt): boolean {
  return attempt.outcome?.kind !== "refused";
}

/** Attempts by object, in call order; those that certainly did not happen are left out. */
export function byObject(history: History): Map<string, Attempt[]> {
  const objects = new Map<string, Attempt[]>();
  for (const attempt of history.attempts) {
    if (!mayHaveHappened(attempt)) continue;
    const object = objectOf(attempt.operation);
    if (object === null) continue;
    const list = objects.get(object);
    if (list === undefined) objects.set(object, [attempt]);
    else list.push(attempt);
  }
  for (const list of objects.values()) list.sort((a, b) => a.callOrder - b.callOrder);
  return objects;
}

export interface Allocated {
  readonly attempt: Attempt;
  readonly name: string;
  readonly key: string | null;
  readonly result: AllocationResult;
}

/** The attempt as a successful allocation; null for everything else. */
export function allocatedBy(attempt: Attempt): Allocated | null {
  const { operation, outcome } = attempt;
  if (operation.kind !== "allocate" || outcome?.kind !== "ok") return null;
  const result = outcome.result as AllocationResult;
  if (result.type !== "Success") return null;
  const key = operation.idempotencyKey?.trim() ?? "";
  return { attempt, name: operation.name, key: key === "" ? null : key, result };
}

/** True when the attempt may have begun or ended an incarnation. */
export function mayChangeIncarnation(attempt: Attempt): boolean {
  const { operation, outcome } = attempt;
  const { kind } = operation;
  if (kind !== "create-sequence" && kind !== "update-sequence" && kind !== "delete-sequence") {
    return false;
  }
  if (outcome?.kind !== "ok") return mayHaveHappened(attempt);
  return (outcome.result as { readonly type: string }).type === "Success";
}

/** Whether an incarnation may have begun between two points of one sequence's history. */
export class IncarnationChanges {
  private readonly changes: readonly Attempt[];

  constructor(attempts: readonly Attempt[]) {
    this.changes = attempts.filter((attempt) => mayChangeIncarnation(attempt));
  }

  /** True when a change may lie between the call of `earlier` and the answer of `later`. */
  mayLieBetween(earlier: Attempt, later: Attempt): boolean {
    return this.changes.some(
      (change) => change.callOrder < endOrder(later) && endOrder(change) > earlier.callOrder,
    );
  }
}
