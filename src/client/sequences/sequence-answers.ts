/**
 * The types of sequence answers, and the error that each failure is.
 *
 * Invariants: 1. Every type that is no success has an error; an unknown one is `protocol`.
 */
import {
  AlreadyExistsError,
  InvalidInputError,
  MaxValueExceededError,
  NotFoundError,
  ServerError,
  UnavailableError,
  type SvcError,
} from "../values/errors.js";

export const SUCCESS = 0;
const MAX_VALUE_EXCEEDED = 4;

/** Names (REST) → numbers (gRPC). */
export const SequenceType: ReadonlyMap<string, number> = new Map([
  ["Success", SUCCESS],
  ["NotFound", 1],
  ["AlreadyExists", 2],
  ["InvalidInput", 3],
  ["MaxValueExceeded", MAX_VALUE_EXCEEDED],
  ["MustRetry", 5],
  ["Aborted", 6],
  ["Error", 99],
]);

/** `doubtful`: an earlier try of the call may have taken effect. */
export function sequenceFailure(type: number, name: string, doubtful: boolean): SvcError {
  const outcome = doubtful ? "unknown" : "none";
  switch (type) {
    case 1:
      return new NotFoundError(`there is no sequence "${name}"`, { outcome });
    case 2:
      return new AlreadyExistsError(`a sequence "${name}" exists already`, { outcome });
    case 3:
      return new InvalidInputError(`the arguments for the sequence "${name}" are not acceptable`, {
        outcome,
      });
    case MAX_VALUE_EXCEEDED:
      return new MaxValueExceededError(`the sequence "${name}" has no so many values left`, {
        outcome,
      });
    case 5:
      return mustRetry();
    case 6:
      return aborted();
    case 99:
      return new ServerError("the service failed unexpectedly; its log has the cause");
    default:
      return new ServerError(`the answer has the unknown type ${type}`, {}, "protocol");
  }
}

/** MustRetry: says nothing about the effect. */
export function mustRetry(): UnavailableError {
  return new UnavailableError("must-retry", "the service asks to try again", {
    outcome: "unknown",
  });
}

/** Aborted: stopped before it was proposed. */
export function aborted(): UnavailableError {
  return new UnavailableError("aborted", "the service stopped the call before it began");
}
