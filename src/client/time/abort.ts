/**
 * Listening to the AbortSignals of callers.
 *
 * Invariants: 1. One signal may end any number of calls at once without a warning.
 */
import { setMaxListeners } from "node:events";

/** Calls `listener` when `signal` aborts; the returned function ends that. */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  // Node warns of a leak from the eleventh listener on; here each call removes its own.
  if (signal instanceof EventTarget) setMaxListeners(0, signal);
  signal.addEventListener("abort", listener, { once: true });
  return () => signal.removeEventListener("abort", listener);
}
