/**
 * Waiting: a wait that an AbortSignal ends, a promise that a time limit ends, and what a signal is
 * listened to with.
 *
 * Owns its timers. Invariants: 1. Timer and listener are gone when the wait is over. 2. A wait
 * longer than a timer can be is made of several. 3. One signal may end any number of calls at once
 * without a warning.
 */
import { setMaxListeners } from "node:events";
import { CancelledError, SvcError } from "../values/errors.js";

/** setTimeout fires at once when it is given more (ms). */
const TIMER_MAX_MS = 2_147_483_647;

/** Calls `listener` when `signal` aborts; the returned function ends that. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Node warns of a leak from the eleventh listener on; here each call removes its own.
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** What `promise` gives, unless that takes longer than `limitMs`: then it rejects. */
export async function inTime<Value>(
  promise: Promise<Value>,
  limitMs: number,
  message: string,
): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new SvcError("local", message)), limitMs);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Waits `ms`. When `signal` aborts first it rejects: with the reason if that is a SvcError, else
 * with CancelledError.
 */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let leftMs = ms;
    let timer: NodeJS.Timeout | null = null;
    const cancelled = (): void => {
      if (timer !== null) clearTimeout(timer);
      const reason: unknown = signal?.reason;
      if (reason instanceof SvcError) reject(reason);
      else reject(new CancelledError("the wait was cancelled", { cause: reason }));
    };
    const slice = (): void => {
      if (leftMs <= 0) {
        signal?.removeEventListener("abort", cancelled);
        resolve();
        return;
      }
      const sliceMs = Math.min(leftMs, TIMER_MAX_MS);
      leftMs -= sliceMs;
      timer = setTimeout(slice, sliceMs);
    };
    if (signal?.aborted === true) return cancelled();
    signal?.addEventListener("abort", cancelled, { once: true });
    slice();
  });
}
