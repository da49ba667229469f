/**
 * Is the history of one object linearizable? Depth-first search after Wing and Gong ("Testing and Verifying Concurrent
 * Objects", 1993) with the memory of visited configurations and the just-in-time order of Lowe ("Testing for
 * linearizability", 2017): an operation is given its place only when the next answer asks for it.
 *
 * Invariants: 1. Operations without an answer may be placed anywhere after their call, or never. 2. The budget counts
 * steps and remembered configurations, not time, so that a verdict is reproducible; when it is used up the verdict is
 * "undecided" (P-176). 3. Configurations are remembered by 64 random bits of their set; before "not linearizable" is
 * said the search is made once more with other bits. 4. An answered operation that may be placed now without changing
 * the state is placed now, and nothing else is tried there: every order that has it later also has it here.
 */
import { Prng } from "../../../src/base/prng.js";
import type { Attempt } from "../history.js";
import type { Model, Step } from "./model.js";

export interface SearchBudget {
  readonly stepsMax: number;
  /** Remembered configurations. */
  readonly memoryMax: number;
}
export const BUDGET: SearchBudget = { stepsMax: 3_000_000, memoryMax: 500_000 };

export type SearchVerdict =
  | { readonly kind: "linearizable"; readonly steps: number }
  | { readonly kind: "undecided"; readonly steps: number }
  | {
      readonly kind: "violation";
      readonly steps: number;
      /** The answer that found no place in the longest attempt at an order. */
      readonly stuck: Attempt;
      /** Operations that overlapped it and had no place yet. */
      readonly open: readonly Attempt[];
      /** Placed last before it, oldest first. */
      readonly before: readonly Attempt[];
      readonly state: string;
    };

/** One position of the search: the next answer that is due, and the way that is being tried there. */
interface Frame<State> {
  readonly due: number;
  readonly state: State;
  /** Latest call of all placed operations: the present is not before it. */
  readonly nowMs: number;
  /** The operation being placed, and what it may lead to. */
  operation: number;
  branches: readonly State[];
  branch: number;
  /** Next operation to try from the list of open ones; -1 before the due one itself was tried. */
  cursor: number;
  /** The one operation to be placed here was found. */
  isSettled: boolean;
  tried: Set<string> | null;
}

const NONE = -1;
const SHOWN_BEFORE = 8;
const SHOWN_OPEN = 12;

class Search<State> {
  private readonly operations: readonly Attempt[];
  /** Operations by the order of their answers. */
  private readonly returns: readonly number[];
  private readonly placed: Uint8Array;
  /** The open operations in call order, as a list whose members can leave and come back. */
  private readonly following: Int32Array;
  private readonly preceding: Int32Array;
  private readonly high: Uint32Array;
  private readonly low: Uint32Array;
  private setHigh = 0;
  private setLow = 0;
  private readonly visited = new Set<string>();
  private readonly signatures: readonly string[];
  private steps = 0;
  private farthest = -1;
  private farthestState: State;
  private farthestOpen: readonly Attempt[] = [];
  private farthestBefore: readonly Attempt[] = [];

  constructor(
    private readonly model: Model<State>,
    attempts: readonly Attempt[],
    seed: number,
  ) {
    this.operations = attempts;
    const count = attempts.length;
    this.returns = attempts
      .map((_, at) => at)
      .filter((at) => isAnswered(attempts[at] as Attempt))
      .sort((a, b) => returnOrder(attempts[a] as Attempt) - returnOrder(attempts[b] as Attempt));
    this.placed = new Uint8Array(count);
    this.following = new Int32Array(count + 1);
    this.preceding = new Int32Array(count + 1);
    for (let at = 0; at <= count; at++) {
      this.following[at] = at === count ? 0 : at + 1;
      this.preceding[at] = at === 0 ? count : at - 1;
    }
    const prng = new Prng(seed);
    this.high = Uint32Array.from({ length: count }, () => prng.nextUint32());
    this.low = Uint32Array.from({ length: count }, () => prng.nextUint32());
    this.signatures = attempts.map((attempt) =>
      isAnswered(attempt) ? "" : ` ${model.signature(attempt)}`,
    );
    this.farthestState = model.initial;
  }

  run(budget: SearchBudget): SearchVerdict {
    const stack: Frame<State>[] = [];
    if (this.enter(stack, 0, this.model.initial, Number.NEGATIVE_INFINITY)) {
      return { kind: "linearizable", steps: 0 };
    }
    while (stack.length > 0) {
      if (this.steps >= budget.stepsMax || this.visited.size >= budget.memoryMax) {
        return { kind: "undecided", steps: this.steps };
      }
      const frame = stack[stack.length - 1] as Frame<State>;
      if (frame.branch < frame.branches.length) {
        const state = frame.branches[frame.branch++] as State;
        this.place(frame.operation);
        const { callMs } = this.operations[frame.operation] as Attempt;
        // What changes nothing may have happened earlier or later: it says nothing about the time of the others.
        const nowMs = state === frame.state ? frame.nowMs : Math.max(frame.nowMs, callMs);
        if (this.enter(stack, frame.due, state, nowMs)) {
          return { kind: "linearizable", steps: this.steps };
        }
        continue;
      }
      if (!this.nextCandidate(frame)) {
        stack.pop();
        const below = stack[stack.length - 1];
        if (below !== undefined) this.displace(below.operation);
      }
    }
    const stuck = this.operations[this.returns[this.farthest] as number] as Attempt;
    return {
      kind: "violation",
      steps: this.steps,
      stuck,
      open: this.farthestOpen,
      before: this.farthestBefore,
      state: this.model.describe(this.farthestState),
    };
  }

  /** Goes on from a configuration unless it was visited. True when nothing is due any more. */
  private enter(stack: Frame<State>[], from: number, state: State, nowMs: number): boolean {
    let due = from;
    while (due < this.returns.length && this.placed[this.returns[due] as number] === 1) due++;
    if (due === this.returns.length) return true;
    const key = `${due} ${this.setHigh} ${this.setLow} ${this.model.key(state)}`;
    if (this.visited.has(key)) {
      const below = stack[stack.length - 1];
      if (below !== undefined) this.displace(below.operation);
      return false;
    }
    this.visited.add(key);
    if (due > this.farthest) {
      this.farthest = due;
      this.farthestState = state;
      this.farthestBefore = stack
        .slice(-SHOWN_BEFORE)
        .map((frame) => this.operations[frame.operation] as Attempt);
      this.farthestOpen = this.openAt(due);
    }
    const fresh = { operation: NONE, branches: [], branch: 0, cursor: NONE, tried: null };
    const frame: Frame<State> = { due, state, nowMs, isSettled: false, ...fresh };
    this.settle(frame);
    stack.push(frame);
    return false;
  }

  /** Looks for an answered operation that changes nothing here. */
  private settle(frame: Frame<State>): void {
    const dueAttempt = this.operations[this.returns[frame.due] as number] as Attempt;
    const limit = returnOrder(dueAttempt);
    const count = this.operations.length;
    let at = this.following[count] as number;
    for (; at !== count; at = this.following[at] as number) {
      if (this.signatures[at] !== "") continue;
      const attempt = this.operations[at] as Attempt;
      if (attempt.callOrder > limit) return;
      this.steps++;
      const branches = this.model.step(frame.state, this.stepOf(frame, at, dueAttempt));
      if (branches.length !== 1 || branches[0] !== frame.state) continue;
      frame.operation = at;
      frame.branches = branches;
      frame.isSettled = true;
      return;
    }
  }

  /** Finds the next operation that may be placed at `frame`; false when there is none left. */
  private nextCandidate(frame: Frame<State>): boolean {
    if (frame.isSettled) return false;
    const due = this.returns[frame.due] as number;
    const dueAttempt = this.operations[due] as Attempt;
    const count = this.operations.length;
    for (;;) {
      let operation: number;
      if (frame.cursor === NONE) {
        operation = due;
        frame.cursor = this.following[count] as number;
      } else {
        operation = frame.cursor;
        if (operation === count) return false;
        const attempt = this.operations[operation] as Attempt;
        if (attempt.callOrder > returnOrder(dueAttempt)) return false;
        frame.cursor = this.following[operation] as number;
        if (operation === due) continue;
        if (!isAnswered(attempt) && !this.isFirstOfKind(frame, operation)) continue;
      }
      this.steps++;
      const branches = this.model.step(frame.state, this.stepOf(frame, operation, dueAttempt));
      if (branches.length === 0) continue;
      frame.operation = operation;
      frame.branches = branches;
      frame.branch = 0;
      return true;
    }
  }

  private isFirstOfKind(frame: Frame<State>, operation: number): boolean {
    frame.tried ??= new Set();
    const signature = this.signatures[operation] as string;
    if (frame.tried.has(signature)) return false;
    frame.tried.add(signature);
    return true;
  }

  private stepOf(frame: Frame<State>, operation: number, due: Attempt): Step {
    const attempt = this.operations[operation] as Attempt;
    const { outcome } = attempt;
    return {
      operation: attempt.operation,
      result: outcome?.kind === "ok" ? outcome.result : null,
      askedMs: attempt.callMs,
      fromMs: Math.max(frame.nowMs, attempt.callMs),
      toMs: due.returnMs ?? Number.POSITIVE_INFINITY,
      callOrder: attempt.callOrder,
      returnOrder: returnOrder(attempt),
      term: attempt.term,
    };
  }

  private place(operation: number): void {
    this.placed[operation] = 1;
    const before = this.preceding[operation] as number;
    const after = this.following[operation] as number;
    this.following[before] = after;
    this.preceding[after] = before;
    this.toggle(operation);
  }

  private displace(operation: number): void {
    this.placed[operation] = 0;
    const before = this.preceding[operation] as number;
    const after = this.following[operation] as number;
    this.following[before] = operation;
    this.preceding[after] = operation;
    this.toggle(operation);
  }

  private toggle(operation: number): void {
    this.setHigh = (this.setHigh ^ (this.high[operation] as number)) >>> 0;
    this.setLow = (this.setLow ^ (this.low[operation] as number)) >>> 0;
  }

  private openAt(due: number): Attempt[] {
    const limit = returnOrder(this.operations[this.returns[due] as number] as Attempt);
    const count = this.operations.length;
    const open: Attempt[] = [];
    let at = this.following[count] as number;
    while (at !== count && open.length < SHOWN_OPEN) {
      const attempt = this.operations[at] as Attempt;
      if (attempt.callOrder > limit) break;
      if (at !== this.returns[due]) open.push(attempt);
      at = this.following[at] as number;
    }
    return open;
  }
}

function isAnswered(attempt: Attempt): boolean {
  return attempt.outcome?.kind === "ok";
}

/** Infinity when there is no result: it may happen until the end. */
function returnOrder(attempt: Attempt): number {
  if (!isAnswered(attempt) || attempt.returnOrder === null) return Number.POSITIVE_INFINITY;
  return attempt.returnOrder;
}

/** Checks the attempts on one object; those that certainly did not happen must not be among them. */
export function searchOrder<State>(
  model: Model<State>,
  attempts: readonly Attempt[],
  budget: SearchBudget = BUDGET,
): SearchVerdict {
  const relevant = attempts
    .filter((attempt) => attempt.outcome?.kind !== "refused")
    .filter((attempt) => isAnswered(attempt) || !model.isRead(attempt.operation))
    .sort((a, b) => a.callOrder - b.callOrder);
  const first = new Search(model, relevant, 1).run(budget);
  if (first.kind !== "violation") return first;
  const second = new Search(model, relevant, 2).run(budget);
  return second.kind === "violation" ? first : second;
}
