/**
 * What clients saw: every attempt of every operation with its call and its end. The simulator and the tests with real
 * processes both record into this, and the checkers read nothing else about clients.
 *
 * Invariants: 1. Every attempt is an event of its own; a repeat is another attempt (P-169). 2. An attempt that was not
 * answered with a result stays open to the end of the history: it may have happened at any time after its call, or
 * never. 3. `order` numbers are a total order of all calls and returns in real time; `ms` is true time (of the simulated
 * universe, or the monotonic clock that the recording process shares with the clients). 4. int64 values are bigint.
 * 5. The history is bounded by its capacity: when it is full the workload has to stop, nothing is dropped silently.
 */

import type { Operation, OperationResult } from "./operation.js";

export * from "./attempt-lines.js";
export * from "./merge-histories.js";
export * from "./operation.js";

export type Outcome =
  /** The service decided; InvalidInput and NotFound included. */
  | { readonly kind: "ok"; readonly result: OperationResult }
  /** Certainly not executed: overload with 503, Aborted, a connection that could not be made. */
  | { readonly kind: "refused"; readonly reason: string }
  /** MustRetry, Errored, a timeout, a lost connection. */
  | { readonly kind: "unknown"; readonly reason: string };

export interface Attempt {
  readonly id: number;
  /** The client that made it. */
  readonly process: string;
  /** The node that was asked; 0 when that is not known. */
  readonly node: number;
  readonly operation: Operation;
  readonly callOrder: number;
  readonly callMs: number;
  /** The answer is due this long after the call (true time, with the tester's slack); null = not bounded. */
  readonly boundMs: number | null;
  /** When the client got an answer of any kind; null = never. */
  readonly returnOrder: number | null;
  readonly returnMs: number | null;
  /** null while nothing is known: counts as unknown. */
  readonly outcome: Outcome | null;
  /** The term in which the answering leader decided, where the recorder can know it; null = not known. */
  readonly term: number | null;
  /** How many answers the client received; more than one breaks a promise of the service. */
  readonly answers: number;
  /** Why no answer can come (asked node ended, connection broken, client gone); null = one is due. */
  readonly lost: string | null;
  /** Of a try that nobody was told of: the id of the attempt that was carried on, and that it happened before, if at all. */
  readonly earlierTryOf?: number;
}

interface OpenAttempt extends Attempt {
  returnOrder: number | null;
  returnMs: number | null;
  outcome: Outcome | null;
  term: number | null;
  answers: number;
  lost: string | null;
}

export interface History {
  readonly attempts: readonly Attempt[];
  /** True time when recording ended. */
  readonly endMs: number;
}

export class HistoryRecorder {
  private readonly recorded: OpenAttempt[] = [];
  private readonly capacity: number;
  private order = 0;
  private latestMs = 0;

  /** `capacity`: attempts that are kept at most. */
  constructor(capacity = 1_000_000) {
    this.capacity = capacity;
  }

  get size(): number {
    return this.recorded.length;
  }

  isFull(): boolean {
    return this.recorded.length >= this.capacity;
  }

  /** Records a call and returns the attempt's id. Throws when the history is full. */
  call(
    process: string,
    node: number,
    operation: Operation,
    nowMs: number,
    boundMs: number | null = null,
  ): number {
    if (this.isFull()) throw new Error(`the history holds ${this.capacity} attempts and is full`);
    const id = this.recorded.length;
    this.recorded.push({
      id,
      process,
      node,
      operation,
      callOrder: this.tick(nowMs),
      callMs: nowMs,
      boundMs,
      returnOrder: null,
      returnMs: null,
      outcome: null,
      term: null,
      answers: 0,
      lost: null,
    });
    return id;
  }

  /** Records the answer of attempt `id`. A second answer is counted and changes nothing else. */
  answered(id: number, outcome: Outcome, nowMs: number, term: number | null = null): void {
    const attempt = this.at(id);
    const order = this.tick(nowMs);
    attempt.answers += 1;
    if (attempt.answers > 1) return;
    attempt.returnOrder = order;
    attempt.returnMs = nowMs;
    attempt.outcome = outcome;
    attempt.term = term;
  }

  /** Records that no answer can come any more: the attempt stays unknown. */
  lost(id: number, reason: string, nowMs: number): void {
    const attempt = this.at(id);
    this.tick(nowMs);
    if (attempt.answers > 0 || attempt.lost !== null) return;
    attempt.lost = reason;
    attempt.outcome = { kind: "unknown", reason };
  }

  history(endMs: number = this.latestMs): History {
    return { attempts: this.recorded, endMs: Math.max(endMs, this.latestMs) };
  }

  private at(id: number): OpenAttempt {
    const attempt = this.recorded[id];
    if (attempt === undefined) throw new Error(`no attempt ${id} was recorded`);
    return attempt;
  }

  private tick(nowMs: number): number {
    if (nowMs > this.latestMs) this.latestMs = nowMs;
    return ++this.order;
  }
}
