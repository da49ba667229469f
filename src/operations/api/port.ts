/**
 * The port between the front ends and the operations of a node. Types only.
 *
 * Invariants: 1. Every `done` is called exactly once, within the context's deadline, and never in
 * the turn of the call.
 */
import type { Administration, HealthAnswer, HealthCheck } from "./administration.js";
import type { DataAnswer, Refusal } from "./answers.js";
import type { RequestContext, WaitControl } from "./context.js";
import type { DataRequest, DataRequestKind } from "./data-requests.js";
import type { AnswerOf } from "./kinds.js";
import type { Watches } from "./watching/watches.js";

/**
 * What the front ends see of a node. Every `done` is called exactly once, within the context's
 * deadline, never in the turn of the call (so also every refusal).
 */
export interface OperationsPort {
  /**
   * Executes one data request. One that may wait for a lock gives the thread by which it is told to
   * wait no more; its end comes by `done` all the same.
   */
  execute<R extends DataRequest>(
    request: R,
    context: RequestContext,
    done: (answer: AnswerOf<R>) => void,
  ): WaitControl | null;
  /**
   * The answer of type InvalidInput for a request of this kind that could not even be expressed
   * (REST numbers).
   */
  invalidInput(kind: DataRequestKind): DataAnswer;
  /**
   * The MustRetry answer, for what a front end itself must turn away: frame items beyond the bound,
   * refusals.
   */
  mustRetry(kind: DataRequestKind, refusal: Refusal | null): DataAnswer;

  /** Local and immediate. */
  health(): HealthAnswer;
  healthChecks(): readonly HealthCheck[];
  /** No request is taken any more; a node that is about to stop may be unready long before. */
  isStopping(): boolean;
  /** null while the process works, else the fatal fault. */
  fatalFault(): string | null;

  /** Streams of changes. */
  readonly watches: Watches;

  /** The administrative calls, by their names. */
  readonly administration: Administration;
}
