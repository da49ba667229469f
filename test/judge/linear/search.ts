/**
 * Is the history of one object linearizable? Depth-first search after Wing and Gong ("Testing and Verifying Concurrent
 * Objects", 1993) with the memory of visited configurations and the just-in-time order of Lowe ("Testing for
 * linearizability", 2017): an operation is given its place only when the next answer asks for it.
 *
 * Invariants: 1. Operations without an answer may be placed anywhere after their call, or never. 2. The budget counts
 * steps and remembered configurations, not time, so that a verdict is reproducible; when it is used up the verdict is
 * "undecided" (P-176). 3. Configurations are remembered by 64 random bits of their set; before "not linearizable" is
 * said the search is made once more with other bits. 4. An answered operation that may be placed now without changing
 * the state is placed now, and nothing else is tried there: every order that has it later also has it here. 5. Operations
 * without an answer are tried soon after their call and few between two answers first, then later and more; only the
 * search that allows any number of them at any time says "not linearizable". 6. A state after which an open answer has
 * become impossible is left at once (`outlook.ts`).
 */
import type { Attempt } from "../history.js";
import type { Model, Step } from "./model.js";
import { OpenOperations } from "./open-operations.js";
import { Outlook, type Standing, isAnswered, returnOrder } from "./outlook.js";
import { Reaches, UNRESTRICTED } from "./reaches.js";
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
  /** Those with an answer were tried: it is the others' turn. */
  isUnknownsTurn: boolean;
  /** The one operation to be placed here was found. */
  isSettled: boolean;
  tried: Set<string> | null;
}

const NONE = -1;
const SHOWN_BEFORE = 8;
const SHOWN_OPEN = 12;
/** What looking at operations costs of the budget. */
const LOOKS_PER_STEP = 256;
/** Of the steps of the budget, for searches that find an order and cannot say that there is none. */
const RESTRICTED_SHARE = 0.75;
class Search<State> {
  /** Operations by the order of their answers. */
  private readonly returns: readonly number[];
  private readonly open: OpenOperations;
  private readonly visited = new Visited();
  private readonly signatures: readonly string[];
  /** Ids of attempts that others must come before: see `earlierTryOf`. */
  private readonly bounds: ReadonlySet<number | undefined>;
  /** Of attempts, by id: those with an answer. */
  private readonly positions = new Map<number, number>();
  private steps = 0;
  private farthest = -1;
  private farthestStep = 0;
  private farthestState: State;
  private farthestOpen: readonly Attempt[] = [];
  private farthestBefore: readonly Attempt[] = [];
  private readonly outlook: Outlook<State>;

  constructor(
    private readonly model: Model<State>,
    private readonly operations: readonly Attempt[],
    seed: number,
    private readonly reaches: Pick<Reaches, "at">,
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
    this.bounds = new Set(operations.map(({ earlierTryOf }) => earlierTryOf));
    for (const at of this.returns) this.positions.set((operations[at] as Attempt).id, at);
    this.farthestState = model.initial;
    this.outlook = new Outlook(model, operations, this.open);
  }

  /** The answer that found no place in the longest attempt at an order. */
  get stuckAt(): number {
    return this.farthest;
  }

  /** Undecided also when it is stuck for longer than its reach allows. */
  run(budget: SearchBudget): SearchVerdict {
    const stack: Frame<State>[] = [];
    const begin = { nowMs: Number.NEGATIVE_INFINITY, inGap: 0, last: null };
    if (this.enter(stack, 0, { state: this.model.initial, ...begin })) {
      return { kind: "linearizable", steps: 0 };
    }
    while (stack.length > 0) {
      this.steps += Math.floor(this.outlook.looks / LOOKS_PER_STEP);
      this.outlook.looks %= LOOKS_PER_STEP;
      const isUsedUp = this.steps >= budget.stepsMax || this.visited.size >= budget.memoryMax;
      const stuckMax = this.reaches.at(Math.max(0, this.farthest)).stepsMax;
      if (isUsedUp || this.steps - this.farthestStep > stuckMax) {
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
        const last = inGap === 0 ? null : attempt.operation;
        if (this.enter(stack, frame.due, { state, nowMs, inGap, last })) {
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
  private enter(stack: Frame<State>[], from: number, standing: Standing<State>): boolean {
    const { state, nowMs, inGap } = standing;
    let due = from;
    while (due < this.returns.length && !this.open.has(this.returns[due] as number)) due++;
    if (due === this.returns.length) return true;
    const name = `${due} ${this.open.name} ${this.model.key(state)}`;
    const limit = returnOrder(this.operations[this.returns[due] as number] as Attempt);
    const isNew = this.visited.enter(name, this.open.unknownLeft(), inGap);
    if (due > this.farthest) this.note(stack, due, state);
    if (!isNew || this.outlook.isHopeless(standing, limit, this.reaches.at(due))) {
      const below = stack[stack.length - 1];
      if (below !== undefined) this.open.comeBack(below.operation);
      return false;
    }
    const fresh = { operation: NONE, branches: [], branch: 0, cursor: NONE, tried: null };
    const flags = { isUnknownsTurn: false, isSettled: false };
    const frame: Frame<State> = { due, state, nowMs, inGap, ...flags, ...fresh };
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
      // What it has to come after may change something yet.
      if (this.bounds.has(attempt.id)) continue;
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
    const limit = returnOrder(dueAttempt);
    const { gapMax, withinMs } = this.reaches.at(frame.due);
    for (;;) {
      let operation: number;
      if (frame.cursor === NONE) {
        operation = due;
        frame.cursor = open.first;
      } else {
        operation = frame.cursor;
        const attempt = operation === open.end ? null : (this.operations[operation] as Attempt);
        if (attempt === null || attempt.callOrder > limit) {
          if (frame.isUnknownsTurn || frame.inGap >= gapMax) return false;
          frame.isUnknownsTurn = true;
          frame.cursor = open.first;
          continue;
        }
        frame.cursor = open.after(operation);
        if (operation === due || isAnswered(attempt) === frame.isUnknownsTurn) continue;
        if (frame.isUnknownsTurn) {
          if (frame.nowMs > attempt.callMs + withinMs || this.isTooLate(attempt)) continue;
          if (!this.isFirstOfKind(frame, operation)) continue;
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

  /** An earlier try of an attempt that has its place. */
  private isTooLate({ earlierTryOf }: Attempt): boolean {
    if (earlierTryOf === undefined) return false;
    return !this.open.has(this.positions.get(earlierTryOf) as number);
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
    this.farthestStep = this.steps;
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
  const restricted = searchRestricted(model, relevant, budget);
  if (restricted.isFound) return { kind: "linearizable", steps: restricted.steps };
  const left = { ...budget, stepsMax: budget.stepsMax - restricted.steps };
  const first = new Search(model, relevant, 1, UNRESTRICTED).run(left);
  const steps = restricted.steps + first.steps;
  if (first.kind !== "violation") return { ...first, steps };
  const second = new Search(model, relevant, 2, UNRESTRICTED).run(budget);
  return second.kind === "violation" ? { ...first, steps } : second;
}

/** Looks for an order in which most operations without an answer happened soon after their call or never. */
function searchRestricted<State>(
  model: Model<State>,
  attempts: readonly Attempt[],
  budget: SearchBudget,
): { readonly isFound: boolean; readonly steps: number } {
  let steps = 0;
  if (attempts.every(isAnswered)) return { isFound: false, steps };
  const stepsMax = Math.floor(budget.stepsMax * RESTRICTED_SHARE);
  const reaches = new Reaches(attempts.filter(isAnswered).length);
  while (steps < stepsMax) {
    const search = new Search(model, attempts, 1, reaches);
    const { kind, steps: used } = search.run({ ...budget, stepsMax: stepsMax - steps });
    steps += Math.max(1, used);
    if (kind === "linearizable") return { isFound: true, steps };
    if (!reaches.widen(search.stuckAt)) break;
  }
  return { isFound: false, steps };
}
