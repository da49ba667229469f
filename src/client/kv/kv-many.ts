/**
 * Many-calls of any length: cut to the server's bound, items repeated on their own.
 *
 * Invariants: 1. Results come in the order of the items. 2. Only items that the service asked to
 * repeat are repeated, and only while that is safe and the deadline allows it. 3. Once the service
 * answered for any item, the call gives one result per item: a part that failed is told by its
 * items' errors, with what is known about them.
 */
import { Backoff } from "../time/backoff.js";
import { doubted, SvcError, TimeoutError } from "../values/errors.js";
import type { ManyAnswers } from "./kv-many-operations.js";
import type { KvManyResult } from "./kv-shapes.js";
import type { Caller, Operation } from "../call/operation.js";
import { checkDeadline, type CallOptions } from "../values/options.js";

const ITEMS_MAX = 1024;
/** Rounds of repeats: with the longest waits far beyond any deadline of data. */
const ROUNDS_MAX = 64;

/** How one item is judged and whether it may be repeated when its outcome is unknown. */
export interface ItemRules<Request, Answer, Result> {
  settle(answer: Answer, request: Request, doubtful: boolean): Result;
  repeat(request: Request): boolean;
}

type Many<Request, Answer> = Operation<
  readonly Request[],
  readonly Answer[],
  ManyAnswers<readonly Answer[]>
>;

/** One many-call under way: what is known about each of its items. */
class ManyCall<Request extends { readonly key: string }, Answer, Result> {
  private readonly caller: Caller;
  private readonly operation: Many<Request, Answer>;
  private readonly requests: readonly Request[];
  private readonly rules: ItemRules<Request, Answer, Result>;
  private readonly results: (Result | null)[];
  private readonly errors: (SvcError | null)[];
  /** Items that an unanswered or unclear try may have changed. */
  private readonly doubtful: boolean[];
  private answered = false;

  constructor(
    caller: Caller,
    operation: Many<Request, Answer>,
    requests: readonly Request[],
    rules: ItemRules<Request, Answer, Result>,
  ) {
    this.caller = caller;
    this.operation = operation;
    this.requests = requests;
    this.rules = rules;
    this.results = requests.map(() => null);
    this.errors = requests.map(() => null);
    this.doubtful = requests.map(() => false);
  }

  async run(options: CallOptions): Promise<KvManyResult<Result>[]> {
    const { deadlineMs = this.caller.deadlineMs } = options;
    const durationMs = checkDeadline(deadlineMs);
    const { platform } = this.caller;
    const untilMs = platform.nowMs() + durationMs;
    const backoff = new Backoff(platform);
    let open = this.requests.map((_, at) => at);
    for (let round = 0; open.length > 0; round++) {
      open = await this.round(open, options, untilMs);
      if (open.length === 0 || round === ROUNDS_MAX) break;
      const waitMs = backoff.nextMs(0);
      if (platform.nowMs() + waitMs >= untilMs) break;
      try {
        await this.caller.pause(waitMs, options.signal);
      } catch (error) {
        for (const at of open) this.failed(at, error);
        break;
      }
    }
    return this.requests.map(({ key }, at) => {
      const error = this.errors[at] as SvcError | null;
      if (error !== null) return { key, result: null, error };
      return { key, result: this.results[at] as Result, error };
    });
  }

  /** Sends `open` in parts; returns the items to repeat. */
  private async round(
    open: readonly number[],
    options: CallOptions,
    untilMs: number,
  ): Promise<number[]> {
    const again: number[] = [];
    for (let from = 0; from < open.length; from += ITEMS_MAX) {
      const part = open.slice(from, from + ITEMS_MAX);
      try {
        await this.part(part, options, untilMs, again);
      } catch (error) {
        // Nothing was answered yet and this is all there is: the call as a whole says why.
        if (!this.answered && part.length === this.requests.length) throw error;
        for (const at of part) this.failed(at, error);
      }
    }
    if (!this.answered) throw this.wholeFailure();
    return again;
  }

  private async part(
    part: readonly number[],
    options: CallOptions,
    untilMs: number,
    again: number[],
  ): Promise<void> {
    const deadlineMs = untilMs - this.caller.platform.nowMs();
    if (deadlineMs <= 0) throw new TimeoutError(`${this.operation.name}: not sent in time`);
    const items = part.map((at) => this.requests[at] as Request);
    const calling = { ...options, deadlineMs };
    const { answers, doubtful } = await this.caller.call(this.operation, items, calling);
    this.answered = true;
    for (const [offset, at] of part.entries()) {
      if (doubtful) this.doubtful[at] = true;
      if (this.settle(at, answers[offset] as Answer)) again.push(at);
    }
  }

  /** Takes one answer; true when the item is to be repeated. */
  private settle(at: number, answer: Answer): boolean {
    const request = this.requests[at] as Request;
    try {
      this.results[at] = this.rules.settle(answer, request, this.doubtful[at] as boolean);
      this.errors[at] = null;
      return false;
    } catch (error) {
      this.failed(at, error);
      const { retryable, outcome } = this.errors[at] as SvcError;
      return retryable && (outcome === "none" || this.rules.repeat(request));
    }
  }

  private failed(at: number, error: unknown): void {
    if (!(error instanceof SvcError)) throw error;
    if (error.outcome !== "none") this.doubtful[at] = true;
    this.errors[at] = this.doubtful[at] === true ? doubted(error) : error;
  }

  /** Every part failed: the first error, in doubt when any part is. */
  private wholeFailure(): SvcError {
    const first = this.errors[0] as SvcError;
    return this.doubtful.includes(true) ? doubted(first) : first;
  }
}

/**
 * Runs one many-call. Rejects only when the service answered for none of the items; otherwise every
 * item has its result or its error.
 */
export async function manyResults<Request extends { readonly key: string }, Answer, Result>(
  caller: Caller,
  operation: Many<Request, Answer>,
  requests: readonly Request[],
  options: CallOptions,
  rules: ItemRules<Request, Answer, Result>,
): Promise<KvManyResult<Result>[]> {
  return new ManyCall(caller, operation, requests, rules).run(options);
}
