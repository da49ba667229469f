/**
 * Whether the answers that have no place yet can still get one: a model tells what an answer is in need of, and this looks
 * whether anything is left that could bring it about; and whether they show anything of what happened last.
 *
 * Invariants: 1. A state is called hopeless only when no order of the open operations leads from it to an order of all.
 * 2. An operation counts as able to come before another one unless it was called after the other's answer.
 */
import type { Attempt, Operation, Outcome } from "../history.js";
import type { Model, Need } from "./model.js";
import type { OpenOperations } from "./open-operations.js";
import type { Reach } from "./reaches.js";

export function isAnswered(attempt: Attempt): boolean {
  return attempt.outcome?.kind === "ok";
}

/** Infinity when there is no result: it may happen until the end. */
export function returnOrder(attempt: Attempt): number {
  if (!isAnswered(attempt) || attempt.returnOrder === null) return Number.POSITIVE_INFINITY;
  return attempt.returnOrder;
}

/** Answers that are looked at beyond those that may have their place next. */
const AHEAD_MAX = 8;

/** Where a search stands. */
export interface Standing<State> {
  readonly state: State;
  /** Latest call of the placed operations. */
  readonly nowMs: number;
  /** Operations without an answer that were placed since the last answered one. */
  readonly inGap: number;
  /** The one of them that was placed last; null for none. */
  readonly last: Operation | null;
}

export class Outlook<State> {
  /** Operations that were looked at. */
  looks = 0;

  constructor(
    private readonly model: Model<State>,
    private readonly operations: readonly Attempt[],
    private readonly open: OpenOperations,
  ) {}

  /** `limit`: order up to which operations were called that are looked at. */
  isHopeless(standing: Standing<State>, limit: number, reach: Reach): boolean {
    const { model, open } = this;
    if (model.missing === undefined) return false;
    const { state, last } = standing;
    let isShown = last === null || model.shows === undefined;
    let ahead = 0;
    for (let at = open.first; at !== open.end && ahead < AHEAD_MAX; at = open.after(at)) {
      const attempt = this.operations[at] as Attempt;
      this.looks++;
      const { outcome } = attempt;
      if (outcome?.kind !== "ok") continue;
      const isAhead = attempt.callOrder > limit;
      if (isAhead && !isShown) break;
      if (isAhead) ahead++;
      const { operation } = attempt;
      const missing = model.missing(state, operation, outcome.result);
      const isNarrow = !isAhead && reach.isRestricted;
      if (missing.length > 0 && !this.canCome(missing, at, standing, reach, isNarrow)) return true;
      if (isShown || model.shows?.(state, last as Operation, operation, outcome.result) !== true) {
        continue;
      }
      const direct = missing.filter(({ isAnew }) => !isAnew);
      isShown = missing.length === 0 || this.canCome(direct, at, standing, reach, isNarrow);
    }
    return !isShown;
  }

  /** Whether one of the alternatives may come before operation `before`. */
  private canCome(
    alternatives: readonly Need[],
    before: number,
    { nowMs, inGap }: Standing<State>,
    reach: Reach,
    isNarrow: boolean,
  ): boolean {
    const { open, operations } = this;
    const wanted = operations[before] as Attempt;
    const { result } = wanted.outcome as Outcome & { readonly kind: "ok" };
    const limit = returnOrder(wanted);
    let kinds = 0;
    let answeredKinds = 0;
    let steps = 0;
    let unknownSteps = 0;
    let unknownMax = reach.gapMax - inGap;
    for (let at = open.first; at !== open.end; at = open.after(at)) {
      const attempt = operations[at] as Attempt;
      if (attempt.callOrder > limit) break;
      this.looks++;
      if (at === before) continue;
      const answered = isAnswered(attempt);
      if (answered) unknownMax += reach.gapMax;
      else if (nowMs > attempt.callMs + reach.withinMs) continue;
      const help = this.model.helpOf?.(attempt, wanted.operation, result);
      if (help === undefined) continue;
      kinds |= help.kinds;
      if (answered) {
        answeredKinds |= help.kinds;
        steps += help.steps;
      } else unknownSteps += help.steps;
    }
    steps += Math.min(unknownSteps, unknownMax);
    // What operations without an answer made since the last answer was hardly ended by another one of them.
    const anewKinds = isNarrow && inGap > 0 ? answeredKinds : kinds;
    return alternatives.some((need) => {
      const left = need.isAnew ? anewKinds : kinds;
      return (need.kinds & ~left) === 0 && need.steps <= steps;
    });
  }
}
