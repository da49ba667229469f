/**
 * Update of a sequence (S12, S13): merges what is given, checks the result as a whole, begins a new
 * incarnation.
 *
 * Pure decision over the rows of the context. Invariants: 1. Absent and given are told apart by
 * null, never by 0. 2. The merged record is checked before anything is written. 3. A new
 * incarnation has a new life: no entry of the former one can be recalled.
 */
import { isInt64 } from "../../base/int64.js";
import { allocationBase } from "./allocation.js";
import {
  SequenceType,
  type SequenceOutcome,
  type UpdateSequenceCommand,
} from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { sequenceKey } from "../store/names.js";
import {
  isBlockSize,
  isIncrement,
  loadSequence,
  sequenceRecord,
  sequenceRefusal,
  storeSequence,
} from "./sequences.js";

function isGivenInt64(value: bigint | null): boolean {
  return value === null || isInt64(value);
}

/** S12 as far as it can be said without the record. */
function isAcceptable(command: UpdateSequenceCommand): boolean {
  const { currentValue, increment, initialValue, maxValue, blockSize } = command;
  const given = [currentValue, increment, initialValue, maxValue, blockSize];
  const changes = given.some((value) => value !== null);
  if (!changes && !command.removeMaxValue && !command.removeBlockSize) return false;
  if (maxValue !== null && command.removeMaxValue) return false;
  if (blockSize !== null && (command.removeBlockSize || !isBlockSize(blockSize))) return false;
  if (increment !== null && !isIncrement(increment)) return false;
  return isGivenInt64(currentValue) && isGivenInt64(initialValue) && isGivenInt64(maxValue);
}

export function updateSequence(
  context: DecisionContext,
  command: UpdateSequenceCommand,
): SequenceOutcome {
  const key = sequenceKey(command.name);
  if (key === null || !isAcceptable(command)) return sequenceRefusal(SequenceType.invalidInput);
  const row = loadSequence(context.rows, key);
  if (row === null) return sequenceRefusal(SequenceType.notFound);
  const currentValue = command.currentValue ?? allocationBase(row, command.cursor);
  const maxValue = command.removeMaxValue ? null : (command.maxValue ?? row.maxValue);
  if (maxValue !== null && maxValue < currentValue) {
    return sequenceRefusal(SequenceType.invalidInput);
  }
  row.currentValue = currentValue;
  row.before = currentValue;
  row.increment = command.increment ?? row.increment;
  row.initialValue = command.initialValue ?? row.initialValue;
  row.maxValue = maxValue;
  row.blockSize = command.removeBlockSize ? null : (command.blockSize ?? row.blockSize);
  row.incarnation++;
  row.revision++;
  row.updatedAt = context.stamp;
  row.life = context.nextLife++;
  row.firstOrdinal = 0;
  row.nextOrdinal = 0;
  row.entries = 0;
  storeSequence(context, key, row);
  const record = sequenceRecord(command.name, row);
  return { kind: "sequence", type: SequenceType.success, record };
}
