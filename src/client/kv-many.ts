/**
 * Many-calls of any length: cut to the server's bound, items repeated on their own.
 *
 * Owns no state. May call the engine. Invariants: 1. Results come in the order of the items. 2.
 * Only items that the service asked to repeat are repeated, and only while that is safe and the
 * deadline allows it.
 */
import { Backoff } from "./backoff.js";
import { SvcError } from "./errors.js";
import type { KvManyResult } from "./kv-shapes.js";
import type { Caller, Operation } from "./operation.js";
import type { CallOptions } from "./options.js";
import { pause } from "./pause.js";

const ITEMS_MAX = 1024;
/** Rounds of repeats: with the longest waits far beyond any deadline of data. */
const ROUNDS_MAX = 64;
const DEADLINE_MS = 30_000;

/** How one item is judged and whether it may be repeated when its outcome is unknown. */
export interface ItemRules<Request, Answer, Result> {
  settle(answer: Answer, request: Request, doubtful: boolean): Result;
  repeat(request: Request): boolean;
}

export async function manyResults<Request extends { readonly key: string }, Answer, Result>(
  caller: Caller,
  operation: Operation<readonly Request[], readonly Answer[], readonly Answer[]>,
  requests: readonly Request[],
  options: CallOptions,
  rules: ItemRules<Request, Answer, Result>,
): Promise<KvManyResult<Result>[]> {
  const results = new Map<number, KvManyResult<Result>>();
  const doubtful = new Set<number>();
  const untilMs = performance.now() + (options.deadlineMs ?? DEADLINE_MS);
  const backoff = new Backoff();
  let open = requests.map((_, at) => at);
  for (let round = 0; open.length > 0; round++) {
    const again: number[] = [];
    for (let from = 0; from < open.length; from += ITEMS_MAX) {
      const part = open.slice(from, from + ITEMS_MAX);
      const items = part.map((at) => requests[at] as Request);
      const deadlineMs = Math.max(1, untilMs - performance.now());
      const answers = await caller.call(operation, items, { ...options, deadlineMs });
      for (const [offset, at] of part.entries()) {
        const request = requests[at] as Request;
        const { key } = request;
        try {
          const result = rules.settle(answers[offset] as Answer, request, doubtful.has(at));
          results.set(at, { key, result, error: null });
        } catch (error) {
          if (!(error instanceof SvcError)) throw error;
          results.set(at, { key, result: null, error });
          if (!error.retryable) continue;
          if (error.outcome !== "none") doubtful.add(at);
          if (error.outcome === "none" || rules.repeat(request)) again.push(at);
        }
      }
    }
    const waitMs = backoff.nextMs(0);
    if (round === ROUNDS_MAX || performance.now() + waitMs >= untilMs) break;
    open = again;
    if (open.length > 0) await pause(waitMs, options.signal);
  }
  return requests.map((_, at) => results.get(at) as KvManyResult<Result>);
}
