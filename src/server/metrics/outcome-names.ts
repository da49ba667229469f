/** Names of answer types for metrics: the members of the contract's tables, in upper camel case. */
import { KvType, LockType, SequenceType, typeNames } from "../../base/result-types.js";

const NAMES = {
  // The contract calls it so for locks alone.
  locks: new Map([...typeNames(LockType), [LockType.doesNotExist, "LockDoesNotExist"]]),
  sequences: typeNames(SequenceType),
  kv: typeNames(KvType),
} as const;

/** The name of an answer's `type` in its API; the number itself where the table has none. */
export function outcomeName(api: keyof typeof NAMES, type: number): string {
  return NAMES[api].get(type) ?? String(type);
}
