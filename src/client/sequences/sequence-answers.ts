/**
 * The types of sequence answers, and the error that each failure is.
 *
 * Invariants: 1. Every type that is no success has an error; an unknown one is `protocol`.
 */
import { SequenceType, typeNames } from "../../base/result-types.js";
import {
  AlreadyExistsError,
  InvalidInputError,
  MaxValueExceededError,
  NotFoundError,
  ServerError,
  UnavailableError,
  type SvcError,
} from "../values/errors.js";

/** Numbers (gRPC) by names (REST). */
const NUMBERS = new Map([...typeNames(SequenceType)].map(([number, name]) => [name, number]));

/** The number of a type's name; -1 for an unknown one. */
export function sequenceTypeOf(name: string): number {
  return NUMBERS.get(name) ?? -1;
}

/** `doubtful`: an earlier try of the call may have taken effect. */
export function sequenceFailure(type: number, name: string, doubtful: boolean): SvcError {
  const outcome = doubtful ? "unknown" : "none";
  switch (type) {
    case SequenceType.notFound:
      return new NotFoundError(`there is no sequence "${name}"`, { outcome });
    case SequenceType.alreadyExists:
      return new AlreadyExistsError(`a sequence "${name}" exists already`, { outcome });
    case SequenceType.invalidInput:
      return new InvalidInputError(`the arguments for the sequence "${name}" are not acceptable`, {
        outcome,
      });
    case SequenceType.maxValueExceeded:
      return new MaxValueExceededError(`the sequence "${name}" has no so many values left`, {
        outcome,
      });
    case SequenceType.mustRetry:
      return mustRetry();
    case SequenceType.aborted:
      return aborted();
    case SequenceType.error:
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
