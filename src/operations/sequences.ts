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
import type { GroupAccess } from "./api/host-view.js";
import type { AllocationAnswer, SequenceAnswer } from "./api/answers.js";
import { trimKey } from "./admission/input.js";
import type {
  CreateSequenceRequest,
  NextSequenceRequest,
  ReserveSequenceRequest,
  SequenceRequest,
  UpdateSequenceRequest,
} from "./api/requests.js";
import type { Fail, SequencePlace, Serving } from "./serving.js";
import { NOWHERE, allocationAnswer, sequenceAnswer, sequenceView } from "./api/shapes.js";

type RecordRequest = Exclude<SequenceRequest, NextSequenceRequest | ReserveSequenceRequest>;
type Done = (answer: SequenceAnswer) => void;

/** Bytes of a create command beside its name, at most. */
const CREATE_BYTES = 64;

/** Carries out create, update, get or delete of the sequence at `place`. */
export function executeSequence(
  serving: Serving,
  { group, name }: SequencePlace,
  request: RecordRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  switch (request.kind) {
    case "create-sequence":
      return createSequence(serving, group, request, name, deadlineMs, fail, done);
    case "update-sequence":
      return updateSequence(serving, group, request, name, deadlineMs, fail, done);
    case "get-sequence":
      return getSequence(serving, group, name, deadlineMs, fail, done);
    case "delete-sequence":
      return deleteSequence(serving, group, name, deadlineMs, fail, done);
  }
}

function createSequence(
  serving: Serving,
  group: GroupAccess,
  request: CreateSequenceRequest,
  name: string,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const { initialValue, increment, maxValue, blockSize } = request;
  group.propose(
    { kind: "create-sequence", name, initialValue, increment, maxValue, blockSize },
    CREATE_BYTES + textSizeBytes(name),
    deadlineMs,
    (result) => {
      const outcome = serving.outcomeOf(group, result, fail);
      if (outcome === null) return;
      assert(outcome.kind === "sequence", "a create has a sequence outcome");
      done(recordAnswer(serving, group, outcome.type, outcome.record));
    },
  );
}

function updateSequence(
  serving: Serving,
  group: GroupAccess,
  request: UpdateSequenceRequest,
  name: string,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
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
  serving.blocks(group).update(command, deadlineMs, (result) => {
    if (result === "busy") return fail("mustRetry", null, group);
    const outcome = serving.outcomeOf(group, result, fail);
    if (outcome === null) return;
    assert(outcome.kind === "sequence", "an update has a sequence outcome");
    done(recordAnswer(serving, group, outcome.type, outcome.record));
  });
}

/**
 * A success shows the record after the change; its block is gone, so nothing beyond it was handed
 * out.
 */
function recordAnswer(
  serving: Serving,
  group: GroupAccess,
  type: number,
  record: SequenceRecord | null,
): SequenceAnswer {
  const origin = serving.origin(group);
  if (type !== SequenceType.success) return sequenceAnswer(type, null, -1, origin);
  assert(record !== null, "a successful create or update has its record");
  return sequenceAnswer(type, sequenceView(record, record.currentValue), record.revision, origin);
}

function getSequence(
  serving: Serving,
  group: GroupAccess,
  name: string,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  serving.confirm(group, deadlineMs, fail, () => {
    const origin = serving.origin(group);
    const record = group.machine.reads.getSequence(name);
    if (record === null) return done(sequenceAnswer(SequenceType.notFound, null, -1, origin));
    const blocks = serving.blocks(group);
    const currentValue = blocks.currentValue(record);
    if (currentValue !== "unsettled") {
      const view = sequenceView(record, currentValue);
      return done(sequenceAnswer(SequenceType.success, view, record.revision, origin));
    }
    if (serving.ports.clock.monotonicMs() >= deadlineMs) return fail("mustRetry", null, group);
    blocks.settle(name, deadlineMs, () => {
      getSequence(serving, group, name, deadlineMs, fail, done);
    });
  });
}

function deleteSequence(
  serving: Serving,
  group: GroupAccess,
  name: string,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  serving.blocks(group).remove(name, deadlineMs, (result) => {
    const outcome = serving.outcomeOf(group, result, fail);
    if (outcome === null) return;
    assert(outcome.kind === "sequence", "a delete has a sequence outcome");
    const revision = outcome.type === SequenceType.success ? 0 : -1;
    done(sequenceAnswer(outcome.type, null, revision, serving.origin(group)));
  });
}

/** Carries out next or reserve on the sequence at `place`. */
export function executeAllocation(
  serving: Serving,
  { group, name }: SequencePlace,
  request: NextSequenceRequest | ReserveSequenceRequest,
  deadlineMs: number,
  fail: Fail,
  done: (answer: AllocationAnswer) => void,
): void {
  const count = request.kind === "next-sequence" ? 1 : request.count;
  const key = trimKey(request.idempotencyKey);
  const blocks = serving.blocks(group);
  if (key !== null) {
    blocks.allocateKeyed(name, count, key, deadlineMs, (result) => {
      if (result === "busy") return fail("mustRetry", null, group);
      const outcome = serving.outcomeOf(group, result, fail);
      if (outcome === null) return;
      assert(outcome.kind === "allocation", "an allocation has an allocation outcome");
      done(keyedAnswer(serving, group, name, outcome));
    });
    return;
  }
  blocks.allocate(name, count, deadlineMs, (type, start, end, revision, refusal) => {
    if (refusal === "moved") return fail("moved", null, group);
    const retry = type === SequenceType.mustRetry;
    const executed = retry ? serving.retryOrigin(group) : serving.origin(group);
    const origin = refusal === null ? executed : NOWHERE;
    const allocation = type === SequenceType.success ? { name, start, end, count, revision } : null;
    done(allocationAnswer(type, allocation, origin, refusal));
  });
}

function keyedAnswer(
  serving: Serving,
  group: GroupAccess,
  name: string,
  outcome: AllocationOutcome,
): AllocationAnswer {
  const origin = serving.origin(group);
  const { type, before, increment, count, revision } = outcome;
  if (type !== SequenceType.success) return allocationAnswer(type, null, origin);
  serving.ports.meter.sequenceValues(count);
  const start = Int64.fromBigInt(before + increment);
  const end = Int64.fromBigInt(before + increment * BigInt(count));
  return allocationAnswer(type, { name, start, end, count, revision }, origin);
}
