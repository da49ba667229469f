/**
 * Waiting: a wait that an AbortSignal ends, a promise that a time limit ends, and what a signal is
 * listened to with.
 *
 * Owns its timers. Invariants: 1. Timer and listener are gone when the wait is over. 2. One signal
 * may end any number of calls at once without a warning.
 */
import { setMaxListeners } from "node:events";
import { CancelledError, SvcError } from "../values/errors.js";
import type { ClientPlatform, Timer } from "./platform.js";

/** Calls `listener` when `signal` aborts; the returned function ends that. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Node warns of a leak from the eleventh listener on; here each call removes its own.
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}

/** What `promise` gives, unless that takes longer than `limitMs`: then it rejects. */
export async function inTime<Value>(
  platform: ClientPlatform,
  promise: Promise<Value>,
  limitMs: number,
  message: string,
): Promise<Value> {
  let timer: Timer | null = null;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = platform.after(limitMs, () => reject(new SvcError("local", message)));
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    (timer as Timer | null)?.cancel();
  }
}

/**
 * Waits `ms`. When `signal` aborts first it rejects: with the reason if that is a SvcError, else
 * with CancelledError.
 */
export function pause(platform: ClientPlatform, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: Timer | null = null;
    const cancelled = (): void => {
      timer?.cancel();
      const reason: unknown = signal?.reason;
      if (reason instanceof SvcError) reject(reason);
      else reject(new CancelledError("the wait was cancelled", { cause: reason }));
    };
    if (signal?.aborted === true) return cancelled();
    if (ms <= 0) return resolve();
    signal?.addEventListener("abort", cancelled, { once: true });
    timer = platform.after(ms, () => {
      signal?.removeEventListener("abort", cancelled);
      resolve();
    });
  });
}
