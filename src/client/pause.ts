/**
 * A wait that an AbortSignal ends.
 *
 * Owns its timer. Invariants: 1. Timer and listener are gone when the wait is over.
 */
import { CancelledError } from "./errors.js";

/** Waits `ms`; rejects with CancelledError when `signal` aborts first. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelled = (): void => {
      clearTimeout(timer);
      reject(new CancelledError("the wait was cancelled", { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", cancelled);
      resolve();
    }, ms);
    if (signal === undefined) return;
    if (signal.aborted) cancelled();
    else signal.addEventListener("abort", cancelled, { once: true });
  });
}
