/**
 * What must happen to a sequence before an answer can be true: revisions and values only grow within a life and an
 * incarnation of it, so that an answer that lies behind needs a new life, or an update.
 *
 * Invariant: whatever is said to be missing is needed by rules S5 to S8, S12, S14 and S16; what may not be needed is not
 * named.
 */
import type {
  AllocationResult,
  Attempt,
  CreateOperation,
  Operation,
  OperationResult,
  SequenceResult,
  SequenceSeen,
} from "../history.js";
import type { Help, Need } from "../linear/model.js";
import { isReplay } from "./sequence-answers.js";
import { LOST_TRIES_MAX, type SequenceState, findKey } from "./sequence-state.js";

const CREATED = 1;
const DELETED = 2;
/** An update: another incarnation. */
const RENEWED = 4;
/** An update that sets a smaller value. */
const LOWERED = 8;
/** The values may begin where they lead to those that were allocated. */
const BELOW = 16;

const NO_HELP: Help = { kinds: 0, steps: 0 };
const ONE_REVISION: Help = { kinds: 0, steps: 1 };
/** Its leader may have gone before it could answer, with what it had reserved (S8). */
const SEVERAL_REVISIONS: Help = { kinds: 0, steps: 1 + LOST_TRIES_MAX };
const RENEWAL: Help = { kinds: RENEWED, steps: 1 };
const LOWERING: Help = { kinds: RENEWED | LOWERED | BELOW, steps: 1 };
const CREATION: Help = { kinds: CREATED, steps: 0 };
const CREATION_BELOW: Help = { kinds: CREATED | BELOW, steps: 0 };
const DELETION: Help = { kinds: DELETED, steps: 0 };

const NOTHING: readonly Need[] = [];
const NEEDS_CREATION: readonly Need[] = [{ ...CREATION, isAnew: false }];
const NEEDS_DELETION: readonly Need[] = [{ ...DELETION, isAnew: false }];

type Result = SequenceResult | AllocationResult;

/** What an attempt may do to the sequence that helps an answer to be true; steps are revisions. */
export function helpOfAttempt(
  { operation, outcome }: Attempt,
  wanted: Operation,
  result: OperationResult,
): Help {
  if (outcome?.kind === "ok" && (outcome.result as Result).type !== "Success") return NO_HELP;
  switch (operation.kind) {
    case "delete-sequence":
      return DELETION;
    case "create-sequence":
      return helpOfCreation(operation, wanted, result as Result);
    case "update-sequence": {
      const { currentValue } = operation;
      const mayLower = currentValue !== null && mayLeadTo(currentValue, result as Result);
      return mayLower ? LOWERING : RENEWAL;
    }
    case "allocate":
      return outcome?.kind === "ok" ? ownRevisions(operation) : ONE_REVISION;
    default:
      return NO_HELP;
  }
}

function keyOf(operation: Operation): string {
  return operation.kind === "allocate" ? (operation.idempotencyKey?.trim() ?? "") : "";
}

function ownRevisions(operation: Operation): Help {
  return keyOf(operation) === "" ? SEVERAL_REVISIONS : ONE_REVISION;
}

function helpOfCreation(operation: CreateOperation, wanted: Operation, result: Result): Help {
  const seen = "sequence" in result ? result.sequence : null;
  if (seen !== null && seen.incarnation === 0n) {
    return isShapedAs(operation, seen) ? CREATION : NO_HELP;
  }
  return isBeginningOf(operation, wanted, result) ? CREATION_BELOW : CREATION;
}

/** Whether values that begin with a creation lead to those that were allocated. */
function isBeginningOf(
  { initialValue, increment }: CreateOperation,
  wanted: Operation,
  result: Result,
): boolean {
  if (!("start" in result) || result.type !== "Success") return true;
  const distance = result.start - initialValue;
  // The first revision is the first allocation's: no update lies between. With a key nothing else shares it.
  if (result.revision > 1n) return distance > 0n;
  return distance === increment || (keyOf(wanted) === "" && isOnGrid(distance, increment));
}

function isOnGrid(distance: bigint, increment: bigint): boolean {
  // A creation by nothing is refused: its values lead nowhere.
  return increment !== 0n && distance > 0n && distance % increment === 0n;
}

interface Shape {
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
}

function isShapedAs(one: Shape, other: Shape): boolean {
  return (
    one.initialValue === other.initialValue &&
    one.increment === other.increment &&
    one.maxValue === other.maxValue &&
    one.blockSize === other.blockSize
  );
}

/** Values only grow from there, until an update. */
function mayLeadTo(value: bigint, result: Result): boolean {
  return !("start" in result) || result.type !== "Success" || result.start > value;
}

/** See `shows` of a model. What changes numbers only is of no account once they are gone, and to who does not look. */
export function showsLast(
  state: SequenceState | null,
  last: Operation,
  operation: Operation,
  result: OperationResult,
): boolean {
  if (state === null || (last.kind !== "allocate" && last.kind !== "update-sequence")) return true;
  const { type } = result as Result;
  switch (operation.kind) {
    case "allocate":
      if (type === "Success") return showsAllocated(state, last, operation, result as Result);
      if (type === "InvalidInput") return showsKey(state, last, operation);
      return type === "MaxValueExceeded";
    case "update-sequence":
      return type === "Success" || type === "InvalidInput";
    case "get-sequence":
      return type === "Success";
    default:
      return false;
  }
}

/** Who repeats a key that is remembered sees nothing but the allocation that it was given for. */
function showsKey(state: SequenceState, last: Operation, operation: Operation): boolean {
  const key = keyOf(operation);
  return key === "" || key === keyOf(last) || findKey(state.keys, key).entry === null;
}

/** A key may be forgotten: what is no replay of its allocation is another one, and shows the rest. */
function showsAllocated(
  state: SequenceState,
  last: Operation,
  operation: Operation,
  result: Result,
): boolean {
  const isReplayed = isRemembered(state, operation, result as AllocationResult);
  return !isReplayed || keyOf(operation) === keyOf(last);
}

function isRemembered(
  state: SequenceState,
  operation: Operation,
  result: AllocationResult,
): boolean {
  const key = keyOf(operation);
  if (key === "") return false;
  const { entry } = findKey(state.keys, key);
  return entry !== null && isReplay(entry, result);
}

/** See `missing` of a model; `state` null: there is no such sequence. */
export function missingFor(
  state: SequenceState | null,
  operation: Operation,
  result: OperationResult,
): readonly Need[] {
  const { type } = result as Result;
  if (type === "InvalidInput") return NOTHING;
  if (state === null) return missingForNone(operation, result as Result);
  if (type === "NotFound") return NEEDS_DELETION;
  if (type !== "Success") return NOTHING;
  switch (operation.kind) {
    case "create-sequence":
      return NEEDS_DELETION;
    case "get-sequence":
    case "update-sequence":
      return missingForSeen(state, operation, result as SequenceResult);
    case "allocate":
      return missingForAllocated(state, operation, result as AllocationResult);
    default:
      return NOTHING;
  }
}

function missingForNone(operation: Operation, result: Result): readonly Need[] {
  const { type } = result;
  if (type === "NotFound") return NOTHING;
  const { kind } = operation;
  if (type !== "Success" || kind === "delete-sequence") return NEEDS_CREATION;
  if (kind === "create-sequence") return NOTHING;
  return [{ ...newLife(operation, result), kinds: kindsOfLife(operation), isAnew: false }];
}

/** Revisions that others must make between `revision` and the answer. */
function stepsBefore(operation: Operation, result: Result, revision: bigint): number {
  let own = 0;
  if (operation.kind === "update-sequence") own = 1;
  else if (operation.kind === "allocate") own = ownRevisions(operation).steps;
  return Math.max(0, Number(result.revision - revision) - own);
}

function newLife(operation: Operation, result: Result): Need {
  const steps = stepsBefore(operation, result, 0n);
  return { kinds: DELETED | kindsOfLife(operation), steps, isAnew: true };
}

function kindsOfLife(operation: Operation): number {
  return operation.kind === "allocate" ? CREATED | BELOW : CREATED;
}

function missingForSeen(
  state: SequenceState,
  operation: Operation,
  result: SequenceResult,
): readonly Need[] {
  const { sequence } = result;
  if (sequence === null) return NOTHING;
  // An update is seen with the incarnation and the revision that it makes.
  const own = operation.kind === "update-sequence" ? 1n : 0n;
  const incarnation = sequence.incarnation - own;
  const revision = sequence.revision - own;
  if (incarnation < state.incarnation || revision < state.revision) {
    return [newLife(operation, result)];
  }
  const steps = stepsBefore(operation, result, state.revision);
  const isRenewed = incarnation > state.incarnation;
  if (!isRenewed && !isSeenOf(state, operation, sequence)) return [newLife(operation, result)];
  if (!isRenewed && steps === 0) return NOTHING;
  return [{ kinds: isRenewed ? RENEWED : 0, steps, isAnew: false }, newLife(operation, result)];
}

/** Whether what was seen, by a read or after an update, can be of the state's incarnation. */
function isSeenOf(state: SequenceState, operation: Operation, seen: SequenceSeen): boolean {
  if (operation.kind !== "update-sequence") {
    return seen.currentValue >= state.served && isShapedAs(state, seen);
  }
  const { currentValue, initialValue, increment, maxValue, blockSize } = operation;
  const keepsMax = maxValue === null && !operation.removeMaxValue;
  const keepsSize = blockSize === null && !operation.removeBlockSize;
  return (
    (currentValue !== null || seen.currentValue >= state.served) &&
    (initialValue !== null || seen.initialValue === state.initialValue) &&
    (increment !== null || seen.increment === state.increment) &&
    (!keepsMax || seen.maxValue === state.maxValue) &&
    (!keepsSize || seen.blockSize === state.blockSize)
  );
}

function missingForAllocated(
  state: SequenceState,
  operation: Operation,
  result: AllocationResult,
): readonly Need[] {
  if (isRemembered(state, operation, result)) return NOTHING;
  const { revision, start } = result;
  const isBehind = start <= state.served;
  const isOld = revision === state.revision && !isOnGrid(start - state.served, state.increment);
  if (revision < state.revision || isOld) {
    return [newLife(operation, result)];
  }
  const steps = stepsBefore(operation, result, state.revision);
  const isAhead = isOnGrid(start - state.served, state.increment);
  if (isAhead && steps === 0) return NOTHING;
  let kinds = isAhead ? 0 : RENEWED;
  if (isBehind) kinds = LOWERED;
  return [{ kinds, steps, isAnew: false }, newLife(operation, result)];
}
