/** Names of answer types for metrics: the members of the contract's tables, in upper camel case. */
import { KvType, LockType, SequenceType } from "../../machine/commands/command.js";

function namesOf(table: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const [name, number] of Object.entries(table)) {
    names.set(number, `${name.charAt(0).toUpperCase()}${name.slice(1)}`);
  }
  return names;
}

const NAMES = {
  // The contract calls it so for locks alone.
  locks: new Map([...namesOf(LockType), [LockType.doesNotExist, "LockDoesNotExist"]]),
  sequences: namesOf(SequenceType),
  kv: namesOf(KvType),
} as const;

/** The name of an answer's `type` in its API; the number itself where the table has none. */
export function outcomeName(api: keyof typeof NAMES, type: number): string {
  return NAMES[api].get(type) ?? String(type);
}
