/**
 * The sequence operations: create, update, get, delete, and next and reserve with and without
 * idempotency key.
 *
 * Invariants: 1. Keyless allocations come from the leader's blocks; everything else is decided in
 * apply. 2. Names and keys go down trimmed. 3. `currentValue` is the last value handed out while
 * the same leader answers (S9).
 */
import { assert } from "../base/assert.js";
import { textSizeBytes } from "../base/bytes.js";
import { Int64 } from "../base/int64.js";
import {
  type AllocationOutcome,
  type SequenceRecord,
  SequenceType,
} from "../machine/commands/command.js";
import type { AllocationAnswer, SequenceAnswer } from "./api/answers.js";
import { trimKey } from "./api/names.js";
import type {
  CreateSequenceRequest,
  NextSequenceRequest,
  ReserveSequenceRequest,
  SequenceRequest,
  UpdateSequenceRequest,
} from "./api/requests.js";
import type { SequenceDone } from "../host/sequences/blocks.js";
import type { ProposalDone } from "../host/requests/results.js";
import type { Attempt } from "./serving/attempt.js";
import { NOWHERE, allocationAnswer, sequenceAnswer, sequenceView } from "./api/shapes.js";

type RecordRequest = Exclude<SequenceRequest, NextSequenceRequest | ReserveSequenceRequest>;
type SequenceAttempt = Attempt<SequenceAnswer>;

/** Bytes of a create command beside its name, at most. */
const CREATE_BYTES = 64;

/** Carries out create, update, get or delete of the sequence `name`, which is trimmed. */
export function executeSequence(
  attempt: SequenceAttempt,
  name: string,
  request: RecordRequest,
): void {
  switch (request.kind) {
    case "create-sequence":
      return createSequence(attempt, name, request);
    case "update-sequence":
      return updateSequence(attempt, name, request);
    case "get-sequence":
      return getSequence(attempt, name);
    case "delete-sequence":
      return deleteSequence(attempt, name);
  }
}

function createSequence(
  attempt: SequenceAttempt,
  name: string,
  request: CreateSequenceRequest,
): void {
  const { initialValue, increment, maxValue, blockSize } = request;
  attempt.decide(
    { kind: "create-sequence", name, initialValue, increment, maxValue, blockSize },
    CREATE_BYTES + textSizeBytes(name),
    "sequence",
    ({ type, record }) => attempt.done(recordAnswer(attempt, type, record)),
  );
}

function updateSequence(
  attempt: SequenceAttempt,
  name: string,
  request: UpdateSequenceRequest,
): void {
  const { serving, group, deadlineMs } = attempt;
  const command = {
    kind: "update-sequence",
    name,
    currentValue: request.currentValue,
    increment: request.increment,
    initialValue: request.initialValue,
    maxValue: request.maxValue,
    removeMaxValue: request.removeMaxValue,
    blockSize: request.blockSize,
    removeBlockSize: request.removeBlockSize,
    cursor: null,
  } as const;
  const done: SequenceDone = (result) => {
    if (result === "busy") return attempt.retry();
    const outcome = attempt.outcomeOf(result, "sequence");
    if (outcome !== null) attempt.done(recordAnswer(attempt, outcome.type, outcome.record));
  };
  serving.blocks(group).update(command, deadlineMs, done, attempt.marks);
}

/**
 * A success shows the record after the change; its block is gone, so nothing beyond it was handed
 * out.
 */
function recordAnswer(
  { origin }: SequenceAttempt,
  type: number,
  record: SequenceRecord | null,
): SequenceAnswer {
  if (type !== SequenceType.success) return sequenceAnswer(type, null, -1, origin);
  assert(record !== null, "a successful create or update has its record");
  return sequenceAnswer(type, sequenceView(record, record.currentValue), record.revision, origin);
}

function getSequence(attempt: SequenceAttempt, name: string): void {
  const { serving, group, origin, deadlineMs } = attempt;
  attempt.confirm(() => {
    const record = group.machine.reads.getSequence(name);
    if (record === null) {
      return attempt.done(sequenceAnswer(SequenceType.notFound, null, -1, origin));
    }
    const blocks = serving.blocks(group);
    const currentValue = blocks.currentValue(record);
    if (currentValue !== "unsettled") {
      const view = sequenceView(record, currentValue);
      return attempt.done(sequenceAnswer(SequenceType.success, view, record.revision, origin));
    }
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return attempt.retry();
    blocks.settle(name, deadlineMs, () => getSequence(attempt, name));
  });
}

function deleteSequence(attempt: SequenceAttempt, name: string): void {
  const { serving, group, origin, deadlineMs } = attempt;
  const done: ProposalDone = (result) => {
    const outcome = attempt.outcomeOf(result, "sequence");
    if (outcome === null) return;
    const revision = outcome.type === SequenceType.success ? 0 : -1;
    attempt.done(sequenceAnswer(outcome.type, null, revision, origin));
  };
  serving.blocks(group).remove(name, deadlineMs, done, attempt.marks);
}

/** Carries out next or reserve on the sequence `name`, which is trimmed. */
export function executeAllocation(
  attempt: Attempt<AllocationAnswer>,
  name: string,
  request: NextSequenceRequest | ReserveSequenceRequest,
): void {
  const { serving, group, deadlineMs } = attempt;
  const count = request.kind === "next-sequence" ? 1 : request.count;
  const key = trimKey(request.idempotencyKey);
  const blocks = serving.blocks(group);
  if (key !== null) {
    const done: SequenceDone = (result) => {
      if (result === "busy") return attempt.retry();
      const outcome = attempt.outcomeOf(result, "allocation");
      if (outcome !== null) attempt.done(keyedAnswer(attempt, name, outcome));
    };
    blocks.allocateKeyed(name, count, key, deadlineMs, done, attempt.marks);
    return;
  }
  blocks.allocate(name, count, deadlineMs, (type, start, end, revision, refusal) => {
    if (refusal === "moved") return attempt.moved();
    const retry = type === SequenceType.mustRetry;
    const executed = retry ? serving.origins.retry(group) : attempt.origin;
    const origin = refusal === null ? executed : NOWHERE;
    const allocation = type === SequenceType.success ? { name, start, end, count, revision } : null;
    attempt.done(allocationAnswer(type, allocation, origin, refusal));
  });
}

function keyedAnswer(
  { serving, origin }: Attempt<AllocationAnswer>,
  name: string,
  outcome: AllocationOutcome,
): AllocationAnswer {
  const { type, before, increment, count, revision } = outcome;
  if (type !== SequenceType.success) return allocationAnswer(type, null, origin);
  serving.ports.meter.sequenceValues(count);
  const start = Int64.fromBigInt(before + increment);
  const end = Int64.fromBigInt(before + increment * BigInt(count));
  return allocationAnswer(type, { name, start, end, count, revision }, origin);
}
