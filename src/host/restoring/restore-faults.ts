/**
 * How the steps of a restore say why they do not succeed.
 *
 * Invariant: a code is the name of an outcome of contract 7.6.
 */
import { type Failure, type Result, failure } from "../../base/result.js";
import type { RestoreFaultCode } from "./restore-types.js";

export type RestoreFault = Failure<RestoreFaultCode>;
export type RestoreResult<T> = Result<T, RestoreFaultCode>;
export type RestoreDone<T> = (result: RestoreResult<T>) => void;

/** Something that is to be tried, and answers once. */
export type RestoreStep = (done: RestoreDone<unknown>) => void;

export function conflict(what: string): RestoreFault {
  return failure("TargetConflict", what);
}

/** Runs the steps one after the other, up to the first that fails. */
export function stepwise(steps: readonly RestoreStep[], done: RestoreDone<null>): void {
  const next = (at: number): void => {
    const step = steps[at];
    if (step === undefined) return done({ ok: true, value: null });
    step((result) => {
      if (!result.ok) return done(result);
      next(at + 1);
    });
  };
  next(0);
}
