/**
 * The types of key/value answers, and the error that each failure is.
 *
 * Invariants: 1. Every type that is no result has an error; an unknown one is `protocol`.
 */
import { KvType } from "../../base/result-types.js";
import { InvalidInputError, ServerError, type SvcError } from "../values/errors.js";
import { aborted, mustRetry } from "../sequences/sequence-answers.js";

/** `doubtful`: an earlier try of the call may have taken effect. */
export function kvFailure(type: number, key: string, doubtful: boolean): SvcError {
  switch (type) {
    case KvType.invalidInput:
      return new InvalidInputError(`the arguments for "${key}" are not acceptable`, {
        outcome: doubtful ? "unknown" : "none",
      });
    case KvType.mustRetry:
      return mustRetry();
    case KvType.aborted:
      return aborted();
    case KvType.errored:
      return new ServerError("the service failed unexpectedly; its log has the cause");
    default:
      return new ServerError(`the answer has the unexpected type ${type}`, {}, "protocol");
  }
}
