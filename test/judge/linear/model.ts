/**
 * What the linearizability checker needs to know of an object: a sequential model that says which states an operation
 * with a given answer may lead to.
 *
 * Invariants: 1. `step` is pure. 2. No state in the answer of `step` means that the operation cannot have happened there
 * with that result. 3. `step` answers with the very state that it was given only when an operation with that result never
 * changes anything, wherever it is placed. 4. `key` is equal for two states exactly when no later operation can tell them apart.
 */
import type { Attempt, Operation, OperationResult } from "../history.js";

/** One operation, taken to happen at one instant of true time in [fromMs, toMs]. */
export interface Step {
  readonly operation: Operation;
  /** null: not known; every effect that the operation may have had is possible. */
  readonly result: OperationResult | null;
  /** When it was asked: a lease begins when the leader stamps it, which is before it takes effect. */
  readonly askedMs?: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly callOrder: number;
  /** Infinity for an operation without an answer. */
  readonly returnOrder: number;
  /** Term of the leader that decided; null when it is not known. */
  readonly term: number | null;
}

export interface Model<State> {
  readonly initial: State;
  step(state: State, step: Step): readonly State[];
  key(state: State): string;
  /** True when the operation never changes anything: without an answer it says nothing. */
  isRead(operation: Operation): boolean;
  /** Unknown attempts with the same signature are interchangeable: only the oldest that is left need be tried. */
  signature(attempt: Attempt): string;
  describe(state: State): string;
  /**
   * What must still happen after `state` before an operation can have had its result: alternatives. Empty: nothing that is
   * known. Absent in models that cannot tell.
   */
  missing?(state: State, operation: Operation, result: OperationResult): readonly Need[];
  /**
   * Whether a result tells anything of `last`, an operation without an answer that led to `state`. Where no open result
   * does, it need not have happened before them.
   */
  shows?(state: State, last: Operation, operation: Operation, result: OperationResult): boolean;
  /** What `attempt` may do to bring that result about. */
  helpOf?(attempt: Attempt, operation: Operation, result: OperationResult): Help;
}

/** All of it is needed: each of these kinds of change, and so many steps. */
export interface Need extends Help {
  /** The object must end and begin anew. */
  readonly isAnew: boolean;
}

/** Kinds of change, as bits of the model's own, and steps at most. */
export interface Help {
  readonly kinds: number;
  readonly steps: number;
}
