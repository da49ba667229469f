/**
 * Compares a sequence that exists with the parameters that were asked for.
 *
 * Pure. Invariants: 1. Only parameters that were given are compared.
 */
import { SequenceMismatchError } from "../values/errors.js";
import type { SequenceInfo, SequenceParameters } from "./sequence-shapes.js";

/** `info` when it is as `wanted`; throws SequenceMismatchError otherwise. */
export function checked(info: SequenceInfo, wanted: SequenceParameters): SequenceInfo {
  const differences: string[] = [];
  const compare = (label: string, is: bigint | number | null, want: unknown): void => {
    if (want === undefined) return;
    const exact = typeof want === "number" && typeof is === "bigint" ? BigInt(want) : want;
    if (is !== exact) differences.push(`${label} is ${String(is)}, not ${String(exact)}`);
  };
  const exact = (value: SequenceParameters["maxValue"]): unknown =>
    value === undefined || value === null ? value : BigInt(value);
  compare("initialValue", info.initialValue, exact(wanted.initialValue));
  compare("increment", info.increment, exact(wanted.increment));
  compare("maxValue", info.maxValue, exact(wanted.maxValue));
  compare("blockSize", info.blockSize, wanted.blockSize);
  if (differences.length === 0) return info;
  const message = `the sequence "${info.name}" has other parameters: ${differences.join("; ")}`;
  throw new SequenceMismatchError(message, differences);
}
