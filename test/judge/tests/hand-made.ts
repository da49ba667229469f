/**
 * Hand-made histories: attempts in the order of their calls, with times that are also their orders.
 *
 * Invariant: times of one history differ, so that the order of calls and answers is what is written.
 */
import { UNCHANGED_SEQUENCE } from "../../doubles/machine/bench.js";
import type {
  AllocationResult,
  Attempt,
  History,
  KvResult,
  LockResult,
  Operation,
  OperationResult,
  Outcome,
  SequenceResult,
  SequenceSeen,
} from "../history.js";

export interface Made {
  readonly operation: Operation;
  readonly result: OperationResult | "unknown" | "refused";
}

/** Call and answer times (ms), the process, and what it did. */
export type Line = readonly [fromMs: number, toMs: number, process: string, made: Made];

export function historyOf(lines: readonly Line[], endMs = 1_000_000): History {
  const attempts = lines.map(([callMs, toMs, process, made], id): Attempt => {
    const { operation, result } = made;
    let outcome: Outcome;
    if (result === "unknown") outcome = { kind: "unknown", reason: "timeout" };
    else if (result === "refused") outcome = { kind: "refused", reason: "overloaded" };
    else outcome = { kind: "ok", result };
    const isAnswered = result !== "unknown";
    return {
      id,
      process,
      node: 1,
      operation,
      callOrder: Math.round(callMs * 1000),
      callMs,
      boundMs: 10_000,
      returnOrder: isAnswered ? Math.round(toMs * 1000) : null,
      returnMs: isAnswered ? toMs : null,
      outcome,
      term: null,
      answers: isAnswered ? 1 : 0,
      lost: isAnswered ? null : "timeout",
    };
  });
  return { attempts, endMs };
}

/** The same history as if each answer came from the leader of the given term (by position; 0 = not known). */
export function withTerms(history: History, terms: readonly number[]): History {
  const attempts = history.attempts.map((attempt, at) => ({
    ...attempt,
    term: terms[at] === undefined || terms[at] === 0 ? null : terms[at],
  }));
  return { ...history, attempts };
}

type LockKind = "try-lock" | "try-extend" | "try-unlock" | "get-lock";

function lockResult(text: string): LockResult {
  const [type, token, owner, remaining] = text.split(" ");
  return {
    type: type as LockResult["type"],
    token: BigInt(token ?? 0),
    owner: owner ?? null,
    expiresInMs: Number(remaining ?? 0),
  };
}

/** A lock operation; the answer as "Locked 3", "Got 3 owner 900", "Busy", or "unknown". */
export function lock(
  kind: LockKind,
  owner: string,
  answer: string,
  expiresMs = 1000,
  more: {
    readonly resource?: string;
    readonly ephemeral?: boolean;
    readonly fencingToken?: string;
  } = {},
): Made {
  const { resource = "r", ephemeral = false, fencingToken } = more;
  const leaseMs = kind === "try-lock" || kind === "try-extend" ? expiresMs : 0;
  const meant = fencingToken === undefined ? {} : { fencingToken };
  const operation: Operation = { kind, resource, ephemeral, owner, expiresMs: leaseMs, ...meant };
  if (answer === "unknown" || answer === "refused") return { operation, result: answer };
  return { operation, result: lockResult(answer) };
}

/** The answer as "5..7 r2" (start, end, revision), the name of a refusal, or "unknown". */
export function allocate(
  count: number,
  answer: string,
  key: string | null = null,
  name = "s",
): Made {
  const operation: Operation = { kind: "allocate", name, count, idempotencyKey: key };
  if (answer === "unknown" || answer === "refused") return { operation, result: answer };
  const match = /^(-?\d+)\.\.(-?\d+) r(\d+)$/.exec(answer);
  const none = { start: 0n, end: 0n, count: 0, revision: 0n };
  if (match === null) return { operation, result: { type: answer, ...none } as AllocationResult };
  const [, start, end, revision] = match as unknown as [string, string, string, string];
  const result: AllocationResult = {
    type: "Success",
    start: BigInt(start),
    end: BigInt(end),
    count,
    revision: BigInt(revision),
  };
  return { operation, result };
}

export function seen(currentValue: bigint, more: Partial<SequenceSeen> = {}): SequenceResult {
  const sequence: SequenceSeen = {
    currentValue,
    initialValue: 0n,
    increment: 1n,
    maxValue: null,
    blockSize: 10,
    incarnation: 0n,
    revision: 0n,
    ...more,
  };
  return { type: "Success", sequence, revision: sequence.revision };
}

export function refused(type: SequenceResult["type"]): SequenceResult {
  return { type, sequence: null, revision: -1n };
}

export function create(
  result: SequenceResult | "unknown",
  more: { readonly maxValue?: bigint; readonly blockSize?: number; readonly initial?: bigint } = {},
): Made {
  const { maxValue = null, blockSize = 10, initial = 0n } = more;
  return {
    operation: {
      kind: "create-sequence",
      name: "s",
      initialValue: initial,
      increment: 1n,
      maxValue,
      blockSize,
    },
    result,
  };
}

export function update(currentValue: bigint | null, result: SequenceResult | "unknown"): Made {
  return {
    operation: {
      kind: "update-sequence",
      name: "s",
      ...UNCHANGED_SEQUENCE,
      currentValue,
      increment: currentValue === null ? 1n : null,
    },
    result,
  };
}

export function getSequence(result: SequenceResult | "unknown"): Made {
  return { operation: { kind: "get-sequence", name: "s" }, result };
}

export function deleteSequence(result: "unknown" | "Success" | "NotFound"): Made {
  const operation: Operation = { kind: "delete-sequence", name: "s" };
  if (result === "unknown") return { operation, result };
  return { operation, result: { type: result, sequence: null, revision: 0n } };
}

/** The answer as "Set 3", "Got 3 value", "Got 3" for the null value, "DoesNotExist 0", or "unknown". */
function kvResult(answer: string): KvResult {
  const [type, revision, value] = answer.split(" ");
  return {
    type: type as KvResult["type"],
    revision: BigInt(revision ?? 0),
    value: value ?? null,
  };
}

export function set(
  value: string | null,
  answer: string,
  more: {
    readonly flags?: number;
    readonly compareValue?: string;
    readonly compareRevision?: bigint;
    readonly expiresMs?: number;
    readonly ephemeral?: boolean;
    readonly key?: string;
  } = {},
): Made {
  const { flags = 0, compareValue = null, compareRevision = 0n, expiresMs = 0 } = more;
  const { ephemeral = false, key = "b/k" } = more;
  const operation: Operation = {
    kind: "kv-set",
    key,
    ephemeral,
    value,
    compareValue,
    compareRevision,
    expiresMs,
    flags,
  };
  if (answer === "unknown" || answer === "refused") return { operation, result: answer };
  return { operation, result: kvResult(answer) };
}

export function onKey(
  kind: "kv-get" | "kv-exists" | "kv-delete" | "kv-extend",
  answer: string,
  more: {
    readonly revision?: bigint;
    readonly expiresMs?: number;
    readonly ephemeral?: boolean;
  } = {},
): Made {
  const { revision = -1n, expiresMs = 0, ephemeral = false } = more;
  const operation: Operation = { kind, key: "b/k", ephemeral, expiresMs, revision };
  if (answer === "unknown" || answer === "refused") return { operation, result: answer };
  return { operation, result: kvResult(answer) };
}
