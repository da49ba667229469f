/**
 * From what the caller gives to the requests of sequence operations.
 *
 * Invariants: 1. A number that does not fit throws SvcRangeError, a value of the wrong type
 * InvalidInputError, before anything is sent.
 */
import { membersOf, optionsOf, textOf } from "../values/arguments.js";
import { int32Of, int64Of, type Int64Input } from "../values/numbers.js";
import type { CreateRequest, UpdateRequest } from "./sequence-operations.js";
import type { SequenceParameters, SequenceUpdate } from "./sequence-shapes.js";

function int64OrNull(name: string, value: Int64Input | null | undefined): bigint | null {
  return value === undefined || value === null ? null : int64Of(name, value);
}

function blockSizeOf(value: number | null | undefined): number | null {
  return value === undefined || value === null ? null : int32Of("blockSize", value, 1);
}

export function createRequest(name: string, parameters: SequenceParameters): CreateRequest {
  const given = optionsOf(parameters, "parameters");
  const { initialValue = 0n, increment = 1n, maxValue, blockSize } = given;
  return {
    name: textOf("name", name),
    initialValue: int64Of("initialValue", initialValue),
    increment: int64Of("increment", increment),
    maxValue: int64OrNull("maxValue", maxValue),
    blockSize: blockSizeOf(blockSize),
  };
}

export function updateRequest(name: string, changes: SequenceUpdate): UpdateRequest {
  const given = membersOf("changes", changes);
  const { currentValue, increment, initialValue, maxValue, blockSize } = given;
  const changed = (member: string, value: Int64Input | undefined): bigint | null =>
    value === undefined ? null : int64Of(member, value);
  return {
    name: textOf("name", name),
    currentValue: changed("currentValue", currentValue),
    increment: changed("increment", increment),
    initialValue: changed("initialValue", initialValue),
    maxValue: int64OrNull("maxValue", maxValue),
    removeMaxValue: maxValue === null,
    blockSize: blockSizeOf(blockSize),
    removeBlockSize: blockSize === null,
  };
}
