/**
 * Work that is done in pieces, so that the event loop gets round in between.
 *
 * Invariants: 1. A piece ends with the first step that reaches SLICE_MS. 2. Steps run in order, and
 * never beside each other.
 */
const SLICE_MS = 2;

/** Runs `steps` to their end, in pieces. Rejects with what a step throws. */
export async function inSlices(
  steps: Iterator<void>,
  nowMs: () => number = () => performance.now(),
): Promise<void> {
  for (;;) {
    const endMs = nowMs() + SLICE_MS;
    do {
      if (steps.next().done === true) return;
    } while (nowMs() < endMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
