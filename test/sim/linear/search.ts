/**
 * Is the history of one object linearizable? Depth-first search after Wing and Gong ("Testing and Verifying Concurrent
 * Objects", 1993) with the memory of visited configurations and the just-in-time order of Lowe ("Testing for
 * linearizability", 2017): an operation is given its place only when the next answer asks for it.
 *
 * Invariants: 1. Operations without an answer may be placed anywhere after their call, or never. 2. The budget counts
 * steps and remembered configurations, not time, so that a verdict is reproducible; when it is used up the verdict is
 * "undecided" (P-176). 3. Configurations are remembered by 64 random bits of their set; before "not linearizable" is
 * said the search is made once more with other bits. 4. An answered operation that may be placed now without changing
 * the state is placed now, and nothing else is tried there: every order that has it later also has it here. 5. Few
 * operations without an answer are tried between two answers first, then more; only the search that allows any number of
 * them says "not linearizable".
 */
import type { Attempt } from "../history.js";
import type { Model, Step } from "./model.js";
import { OpenOperations } from "./open-operations.js";
import { Visited } from "./visited.js";

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
  /** Operations without an answer that were placed since the last answered one. */
  readonly inGap: number;
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
/** Operations without an answer between two answers, search by search. */
const GAPS = [1, 3, Infinity];

class Search<State> {
  /** Operations by the order of their answers. */
  private readonly returns: readonly number[];
  private readonly open: OpenOperations;
  private readonly visited = new Visited();
  private readonly signatures: readonly string[];
  private steps = 0;
  private farthest = -1;
  private farthestState: State;
  private farthestOpen: readonly Attempt[] = [];
  private farthestBefore: readonly Attempt[] = [];

  /** `gapMax`: operations without an answer between two answered ones, at most. */
  constructor(
    private readonly model: Model<State>,
    private readonly operations: readonly Attempt[],
    seed: number,
    private readonly gapMax: number,
  ) {
    this.returns = operations
      .map((_, at) => at)
      .filter((at) => isAnswered(operations[at] as Attempt))
      .sort(
        (a, b) => returnOrder(operations[a] as Attempt) - returnOrder(operations[b] as Attempt),
      );
    this.open = new OpenOperations(
      operations.map((operation) => !isAnswered(operation)),
      seed,
    );
    this.signatures = operations.map((attempt) =>
      isAnswered(attempt) ? "" : ` ${model.signature(attempt)}`,
    );
    this.farthestState = model.initial;
  }

  run(budget: SearchBudget): SearchVerdict {
    const stack: Frame<State>[] = [];
    if (this.enter(stack, 0, this.model.initial, Number.NEGATIVE_INFINITY, 0)) {
      return { kind: "linearizable", steps: 0 };
    }
    while (stack.length > 0) {
      if (this.steps >= budget.stepsMax || this.visited.size >= budget.memoryMax) {
        return { kind: "undecided", steps: this.steps };
      }
      const frame = stack[stack.length - 1] as Frame<State>;
      if (frame.branch < frame.branches.length) {
        const state = frame.branches[frame.branch++] as State;
        this.open.leave(frame.operation);
        const attempt = this.operations[frame.operation] as Attempt;
        // What changes nothing may have happened earlier or later: it says nothing about the time of the others.
        const same = state === frame.state;
        const nowMs = same ? frame.nowMs : Math.max(frame.nowMs, attempt.callMs);
        const inGap = isAnswered(attempt) ? 0 : frame.inGap + 1;
        if (this.enter(stack, frame.due, state, nowMs, inGap)) {
          return { kind: "linearizable", steps: this.steps };
        }
        continue;
      }
      if (!this.nextCandidate(frame)) {
        stack.pop();
        const below = stack[stack.length - 1];
        if (below !== undefined) this.open.comeBack(below.operation);
      }
    }
    return {
      kind: "violation",
      steps: this.steps,
      stuck: this.operations[this.returns[this.farthest] as number] as Attempt,
      open: this.farthestOpen,
      before: this.farthestBefore,
      state: this.model.describe(this.farthestState),
    };
  }

  /** Goes on from a configuration unless that is superfluous. True when nothing is due any more. */
  private enter(
    stack: Frame<State>[],
    from: number,
    state: State,
    nowMs: number,
    inGap: number,
  ): boolean {
    let due = from;
    while (due < this.returns.length && !this.open.has(this.returns[due] as number)) due++;
    if (due === this.returns.length) return true;
    const name = `${due} ${this.open.name} ${this.model.key(state)}`;
    if (!this.visited.enter(name, this.open.unknownLeft(), inGap)) {
      const below = stack[stack.length - 1];
      if (below !== undefined) this.open.comeBack(below.operation);
      return false;
    }
    if (due > this.farthest) this.note(stack, due, state);
    const fresh = { operation: NONE, branches: [], branch: 0, cursor: NONE, tried: null };
    const frame: Frame<State> = { due, state, nowMs, inGap, isSettled: false, ...fresh };
    this.settle(frame);
    stack.push(frame);
    return false;
  }

  /** Looks for an answered operation that changes nothing here. */
  private settle(frame: Frame<State>): void {
    const { open } = this;
    const dueAttempt = this.operations[this.returns[frame.due] as number] as Attempt;
    const limit = returnOrder(dueAttempt);
    for (let at = open.first; at !== open.end; at = open.after(at)) {
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
    const { open } = this;
    const due = this.returns[frame.due] as number;
    const dueAttempt = this.operations[due] as Attempt;
    for (;;) {
      let operation: number;
      if (frame.cursor === NONE) {
        operation = due;
        frame.cursor = open.first;
      } else {
        operation = frame.cursor;
        if (operation === open.end) return false;
        const attempt = this.operations[operation] as Attempt;
        if (attempt.callOrder > returnOrder(dueAttempt)) return false;
        frame.cursor = open.after(operation);
        if (operation === due) continue;
        if (!isAnswered(attempt)) {
          if (frame.inGap >= this.gapMax || !this.isFirstOfKind(frame, operation)) continue;
        }
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

  /** Keeps what is to be told of the longest order. */
  private note(stack: readonly Frame<State>[], due: number, state: State): void {
    this.farthest = due;
    this.farthestState = state;
    this.farthestBefore = stack
      .slice(-SHOWN_BEFORE)
      .map((frame) => this.operations[frame.operation] as Attempt);
    const { open } = this;
    const limit = returnOrder(this.operations[this.returns[due] as number] as Attempt);
    const shown: Attempt[] = [];
    for (let at = open.first; at !== open.end && shown.length < SHOWN_OPEN; at = open.after(at)) {
      const attempt = this.operations[at] as Attempt;
      if (attempt.callOrder > limit) break;
      if (at !== this.returns[due]) shown.push(attempt);
    }
    this.farthestOpen = shown;
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
  const unknown = relevant.filter((attempt) => !isAnswered(attempt)).length;
  let steps = 0;
  for (const gapMax of GAPS) {
    const isLast = gapMax === Infinity || unknown <= gapMax;
    const share = isLast ? budget.stepsMax - steps : Math.floor(budget.stepsMax / 3);
    const bounded = { ...budget, stepsMax: share };
    const first = new Search(model, relevant, 1, isLast ? Infinity : gapMax).run(bounded);
    steps += first.steps;
    if (first.kind === "linearizable") return { kind: "linearizable", steps };
    if (!isLast) continue;
    if (first.kind !== "violation") return { kind: "undecided", steps };
    const second = new Search(model, relevant, 2, Infinity).run(budget);
    return second.kind === "violation" ? { ...first, steps } : second;
  }
  return { kind: "undecided", steps };
}
