/**
 * Which answers on sequences fit a state, by rules S4, S11 and S14 of the contract.
 */
import type { AllocationResult, SequenceResult, SequenceSeen } from "../history.js";
import { type RememberedKey, type SequenceState, isSeenAs } from "./sequence-state.js";

/** null: there is no such sequence. */
type State = SequenceState | null;

export function isReplay(entry: RememberedKey, result: AllocationResult): boolean {
  return isAllocated(result, entry.start, entry.end, entry.count, entry.revision);
}

export function isAllocated(
  result: AllocationResult,
  start: bigint,
  end: bigint,
  count: number,
  revision: bigint,
): boolean {
  return (
    result.type === "Success" &&
    result.start === start &&
    result.end === end &&
    result.count === count &&
    result.revision === revision
  );
}

export function unallocated(
  state: State,
  result: AllocationResult | null,
  type: AllocationResult["type"],
): readonly State[] {
  if (result === null || result.type !== type) return [];
  const { start, end, count, revision } = result;
  return start === 0n && end === 0n && count === 0 && revision === 0n ? [state] : [];
}

export function refusedAs(
  state: State,
  result: SequenceResult | null,
  type: SequenceResult["type"],
  deletedRevision: bigint | null = null,
): readonly State[] {
  if (result === null || result.type !== type || result.sequence !== null) return [];
  // Answers without success carry -1; delete carries 0, which is also accepted for its refusals (S14).
  const isRevision = result.revision === -1n || result.revision === deletedRevision;
  return isRevision ? [state] : [];
}

export function isAnsweredAs(
  state: SequenceState,
  result: SequenceResult,
  current: bigint,
): boolean {
  if (result.type !== "Success" || result.revision !== state.revision) return false;
  return result.sequence !== null && isSeenAs(state, result.sequence as SequenceSeen, current);
}
