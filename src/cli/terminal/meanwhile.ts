/**
 * Says while an operation runs how far it is, to whoever waits at a terminal.
 *
 * Invariants: 1. Nothing is asked where nobody sees it. 2. A look that fails, or finds nothing to
 * tell, leaves the last words as they are: the operation itself says how it ends. 3. It ends with
 * the operation, and never outlives it.
 */
/** Pause between two looks (ms), and the bound of each. */
const STEP_MS = 1000;
const LOOK_MS = 3000;

/** Shows how far it is; null where nobody sees that. */
export interface Showing {
  readonly show: ((text: string) => void) | null;
}

/** What a call gets that is made to look. */
export interface Looking {
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, STEP_MS);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Carries `work` out, and shows meanwhile what each look finds. */
export async function tellMeanwhile<Value>(
  { show }: Showing,
  look: (calling: Looking) => Promise<string | null>,
  work: () => Promise<Value>,
): Promise<Value> {
  if (show === null) return work();
  const over = new AbortController();
  const { signal } = over;
  const tell = async (): Promise<void> => {
    for (;;) {
      await pause(signal);
      if (signal.aborted) return;
      const text = await look({ signal, deadlineMs: LOOK_MS }).catch(() => null);
      if (text !== null) show(text);
    }
  };
  const telling = tell();
  try {
    return await work();
  } finally {
    over.abort();
    await telling;
  }
}
