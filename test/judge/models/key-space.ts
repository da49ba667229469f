/**
 * The registration of one key space by 6.3 of the contract, as a model for the linearizability checker.
 *
 * Invariants: 1. "Seeded" is said only when there was no descriptor. 2. Who asked several times on behalf of one request
 * may find its own first try, and say "AlreadySeeded".
 */
import type { Attempt, Operation, RangeOperation, RangeResult } from "../history.js";
import type { Model, Step } from "../linear/model.js";

interface State {
  /** The key space has descriptors. */
  readonly isRegistered: boolean;
}

const NAME_BYTES_MAX = 1024;

function isKeySpace(name: string): boolean {
  const bytes = new TextEncoder().encode(name).length;
  if (bytes < 1 || bytes > NAME_BYTES_MAX) return false;
  return !name.startsWith("__svc:") && !name.endsWith("/meta");
}

export class KeySpaceModel implements Model<State> {
  readonly initial: State = { isRegistered: false };

  step(state: State, step: Step): readonly State[] {
    const { kind, keySpace } = step.operation as RangeOperation;
    const result = step.result as RangeResult | null;
    if (!isKeySpace(keySpace)) return result?.type === "InvalidInput" ? [state] : [];
    // The cluster is not founded yet.
    if (result?.type === "KeyRangeDisabled") return state.isRegistered ? [] : [state];
    // Nothing was begun, and what moves is registered.
    if (result?.type === "QuiesceWindowOpen") return state.isRegistered ? [state] : [];
    // States are made anew: these answers do not tell whether anything was changed.
    if (kind === "unregister-range") {
      return result === null || result.type === "Removed" ? [{ isRegistered: false }] : [];
    }
    const isSeeded = result?.type === "Seeded" && !state.isRegistered;
    const isDone = result === null || isSeeded || result.type === "AlreadySeeded";
    return isDone ? [{ isRegistered: true }] : [];
  }

  key(state: State): string {
    return state.isRegistered ? "registered" : "plain";
  }

  isRead(_operation: Operation): boolean {
    return false;
  }

  signature(attempt: Attempt): string {
    return attempt.operation.kind;
  }

  describe(state: State): string {
    return this.key(state);
  }
}
