/**
 * Answers as the history records them: what was decided, what was refused, and what stays unknown.
 *
 * Invariant: only what certainly had no effect is refused; whatever has no decided answer is
 * unknown.
 */
import { decodeText } from "../../src/base/bytes.js";
import { KvType, LockType, SequenceType } from "../../src/machine/commands/command.js";
import type {
  AllocationAnswer,
  DataAnswer,
  KvAnswer,
  KvManyAnswer,
  KvPageAnswer,
  LockAnswer,
  SequenceAnswer,
} from "../../src/operations/api/answers.js";
import type { Outcome } from "./history.js";
import {
  type AllocationResult,
  type KvManyReadResult,
  type KvResult,
  type LockResult,
  type OperationResult,
  type SequenceResult,
  toldValue,
} from "./operation.js";

/** State of a page's item that is a tombstone. */
const STATE_DELETED = 2;

const LOCK_NAMES: ReadonlyMap<number, LockResult["type"]> = new Map([
  [LockType.locked, "Locked"],
  [LockType.busy, "Busy"],
  [LockType.extended, "Extended"],
  [LockType.unlocked, "Unlocked"],
  [LockType.got, "Got"],
  [LockType.doesNotExist, "LockDoesNotExist"],
  [LockType.invalidOwner, "InvalidOwner"],
  [LockType.invalidInput, "InvalidInput"],
]);
const SEQUENCE_NAMES: ReadonlyMap<number, SequenceResult["type"]> = new Map([
  [SequenceType.success, "Success"],
  [SequenceType.notFound, "NotFound"],
  [SequenceType.alreadyExists, "AlreadyExists"],
  [SequenceType.invalidInput, "InvalidInput"],
  [SequenceType.maxValueExceeded, "MaxValueExceeded"],
]);
const KV_NAMES: ReadonlyMap<number, KvResult["type"]> = new Map([
  [KvType.set, "Set"],
  [KvType.notSet, "NotSet"],
  [KvType.extended, "Extended"],
  [KvType.got, "Got"],
  [KvType.deleted, "Deleted"],
  [KvType.exists, "Exists"],
  [KvType.doesNotExist, "DoesNotExist"],
  [KvType.invalidInput, "InvalidInput"],
]);

const ABORTED: Readonly<Record<DataAnswer["kind"], number>> = {
  lock: LockType.aborted,
  forced: LockType.aborted,
  "lock-page": LockType.aborted,
  "lock-audit": LockType.aborted,
  sequence: SequenceType.aborted,
  allocation: SequenceType.aborted,
  kv: KvType.aborted,
  "kv-many": KvType.aborted,
  "kv-page": KvType.aborted,
};

function text(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : toldValue(decodeText(bytes));
}

/** One outcome for each of the `count` attempts that an ask is recorded as. */
export function outcomesOf(answer: DataAnswer, count: number): Outcome[] {
  if (answer.kind === "kv-many") return manyOutcomes(answer, count);
  const outcomes: Outcome[] = [];
  while (outcomes.length < count) outcomes.push(outcomeOf(answer));
  return outcomes;
}

function outcomeOf(answer: DataAnswer): Outcome {
  if (answer.refusal !== null) return { kind: "refused", reason: answer.refusal };
  if (answer.type === ABORTED[answer.kind]) return { kind: "refused", reason: "aborted" };
  const result = resultOf(answer);
  if (result === null) return { kind: "unknown", reason: `type ${answer.type}` };
  return { kind: "ok", result };
}

function manyOutcomes(answer: KvManyAnswer, count: number): Outcome[] {
  const outcomes: Outcome[] = [];
  for (let at = 0; at < count; at++) {
    const item = answer.items[at];
    const type = item === undefined ? undefined : KV_NAMES.get(item.type);
    if (answer.refusal !== null) outcomes.push({ kind: "refused", reason: answer.refusal });
    else if (item?.type === KvType.aborted) outcomes.push({ kind: "refused", reason: "aborted" });
    else if (item === undefined || type === undefined) {
      outcomes.push({ kind: "unknown", reason: `type ${item?.type ?? answer.type}` });
    } else {
      const { value, revision } = item;
      const result = { type, value: text(value), revision: BigInt(revision) };
      outcomes.push({ kind: "ok", result });
    }
  }
  return outcomes;
}

/** The answer to a change of the key ranges. */
export function rangeOutcome(status: string, descriptorCount: number): Outcome {
  const open = ["Indeterminate", "TransferFailed", "QuiesceFailed", "CutoverFailed"];
  if (open.includes(status)) return { kind: "unknown", reason: status };
  return { kind: "ok", result: { type: status, descriptorCount } };
}

function resultOf(answer: DataAnswer): OperationResult | null {
  switch (answer.kind) {
    case "lock":
      return lockResult(answer);
    case "sequence":
      return sequenceResult(answer);
    case "allocation":
      return allocationResult(answer);
    case "kv":
      return kvResult(answer);
    case "kv-page":
      return pageResult(answer);
    case "kv-many":
    case "forced":
    case "lock-page":
    case "lock-audit":
      return null;
  }
}

function lockResult(answer: LockAnswer): LockResult | null {
  const type = LOCK_NAMES.get(answer.type);
  if (type === undefined) return null;
  const token = answer.fencingToken.toBigInt();
  return { type, token, owner: text(answer.owner), expiresInMs: answer.expiresInMs };
}

function sequenceResult(answer: SequenceAnswer): SequenceResult | null {
  const type = SEQUENCE_NAMES.get(answer.type);
  if (type === undefined) return null;
  const { sequence } = answer;
  if (sequence === null) return { type, sequence: null, revision: BigInt(answer.revision) };
  const seen = {
    currentValue: sequence.currentValue.toBigInt(),
    initialValue: sequence.initialValue.toBigInt(),
    increment: sequence.increment.toBigInt(),
    maxValue: sequence.maxValue?.toBigInt() ?? null,
    blockSize: sequence.blockSize,
    incarnation: BigInt(sequence.incarnation),
    revision: BigInt(sequence.revision),
  };
  return { type, sequence: seen, revision: BigInt(answer.revision) };
}

function allocationResult(answer: AllocationAnswer): AllocationResult | null {
  const type = SEQUENCE_NAMES.get(answer.type);
  if (type === undefined) return null;
  const { allocation } = answer;
  if (allocation === null) return { type, start: 0n, end: 0n, count: 0, revision: 0n };
  const { start, end, count, revision } = allocation;
  return { type, start: start.toBigInt(), end: end.toBigInt(), count, revision: BigInt(revision) };
}

function kvResult(answer: KvAnswer): KvResult | null {
  const type = KV_NAMES.get(answer.type);
  if (type === undefined) return null;
  return { type, value: text(answer.value), revision: BigInt(answer.revision) };
}

function pageResult(answer: KvPageAnswer): KvManyReadResult | null {
  if (answer.tooLarge) return null;
  if (answer.type === KvType.invalidInput) return { type: "InvalidInput", items: [] };
  if (answer.type !== KvType.got) return null;
  const items = answer.items.map((item) => {
    const isTombstone = item.state === STATE_DELETED;
    const revision = BigInt(item.revision);
    return { key: item.key, value: text(item.value), revision, isTombstone };
  });
  return { type: "Got", items, nextCursor: answer.nextCursor };
}
