/**
 * The answers that the shell words differently from the one-shot form (contract 8.5).
 *
 * Invariants: 1. They are made from the document of the operation, so that both forms tell the
 * same.
 */
import type { ShellCommand } from "../commands/command.js";
import type { Outcome } from "../invocation/context.js";

interface KvMembers {
  readonly revision: bigint;
  readonly value: string | null;
  readonly valueBase64: string | null;
}

interface LockMembers {
  readonly fencingToken: bigint;
  readonly owner: string;
}

function valueForm({ value, valueBase64 }: KvMembers): string {
  if (valueBase64 === null) return "(null)";
  if (value === "") return "(empty str)";
  return value ?? `base64:${valueBase64}`;
}

function kvAnswer(words: string, isDone: boolean, members: KvMembers, elapsedMs: number): string {
  const { revision } = members;
  switch (words) {
    case "get":
      return isDone ? `r${revision} ${valueForm(members)} ${elapsedMs}ms` : "not found";
    case "set":
      return `r${revision} ${isDone ? "set" : "not set"} ${elapsedMs}ms`;
    case "delete":
      return isDone ? `r${revision} deleted ${elapsedMs}ms` : "not found";
    case "exists":
      return isDone ? "exists" : "not found";
    default:
      return isDone ? "extended" : "not found";
  }
}

/** The line for `spec`, or null when it is that of the operation. */
export function shellAnswer(spec: ShellCommand, result: Outcome, elapsedMs: number): string | null {
  const isDone = result.exit === 0;
  switch (spec.answer) {
    case "kv":
      // The documents of key/value operations have these members (schemas.ts).
      return kvAnswer(spec.words, isDone, result.document as unknown as KvMembers, elapsedMs);
    case "lock": {
      const { fencingToken, owner } = result.document as unknown as LockMembers;
      return isDone ? `f${fencingToken} acquired ${owner}` : "not acquired";
    }
    case "session-lock": {
      if (!isDone) return "not acquired";
      if (spec.operation === "--unlock") return "unlocked";
      const { fencingToken, owner } = result.document as unknown as LockMembers;
      return `f${fencingToken} extended ${owner}`;
    }
    case "as-operation":
    case "update-sequence":
    case "builtin":
      return null;
  }
}
