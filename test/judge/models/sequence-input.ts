/**
 * What a request on a sequence must be like, by rules S1, S2, S4, S10 and S12 of the contract.
 */
import type { AllocateOperation, CreateOperation, UpdateOperation } from "../history.js";
import { INT64_MAX, INT64_MIN } from "./sequence-state.js";

const COUNT_MAX = 2 ** 31 - 1;
const NAME_BYTES_MAX = 1024;

function isInt64(value: bigint | null): boolean {
  return value === null || (value >= INT64_MIN && value <= INT64_MAX);
}

function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

function isName(name: string): boolean {
  const trimmed = name.trim();
  const bytes = bytesOf(trimmed);
  return bytes >= 1 && bytes <= NAME_BYTES_MAX && !trimmed.startsWith("__svc:");
}

function isBlockSize(size: number | null): boolean {
  return size === null || (Number.isInteger(size) && size >= 1 && size <= COUNT_MAX);
}

/** S12 as far as it can be said without the sequence. */
export function isUpdate(operation: UpdateOperation): boolean {
  const { name, currentValue, increment, initialValue, maxValue, blockSize } = operation;
  if (!isName(name)) return false;
  const given = [currentValue, increment, initialValue, maxValue, blockSize];
  const changes = given.some((value) => value !== null);
  if (!changes && !operation.removeMaxValue && !operation.removeBlockSize) return false;
  if (maxValue !== null && operation.removeMaxValue) return false;
  if (blockSize !== null && operation.removeBlockSize) return false;
  if (increment !== null && increment < 1n) return false;
  return (
    isBlockSize(blockSize) && given.every((value) => typeof value !== "bigint" || isInt64(value))
  );
}

/** S2. */
export function isCreate(operation: CreateOperation): boolean {
  const { name, initialValue, increment, maxValue, blockSize } = operation;
  return (
    isName(name) &&
    isInt64(initialValue) &&
    isInt64(maxValue) &&
    increment >= 1n &&
    increment <= INT64_MAX &&
    (maxValue === null || maxValue >= initialValue) &&
    isBlockSize(blockSize)
  );
}

/** S4, S10. `key`: trimmed. */
export function isAllocation({ name, count }: AllocateOperation, key: string): boolean {
  return isName(name) && count >= 1 && count <= COUNT_MAX && bytesOf(key) <= NAME_BYTES_MAX;
}
