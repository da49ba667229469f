/**
 * The early end of the program: its terminal hung up, the reader of its output went away, or a
 * signal asked for it.
 *
 * Owns the end of the process from the first such reason on. Invariants: 1. What was registered as
 * last work runs once, and for a bounded time. 2. After a hang-up nothing is asked and nothing is
 * read. 3. The process then dies of SIGHUP, which shells show as 129: an ordinary exit restores the
 * modes of the terminal, and Node aborts when that is impossible.
 */

/** Longest time for the last work (ms): nobody watches any more, or somebody waits for the end. */
const LAST_WORK_MS = 3000;

let lastWork: (() => Promise<unknown>) | null = null;
let isEnding = false;
let isDeferred = false;
let isHungUp = false;
let stdinEnd: Promise<void> | null = null;

/** Sets what is done before an early end; null = nothing. */
export function setLastWork(work: (() => Promise<unknown>) | null): void {
  lastWork = work;
}

/** True for a program that must do something before it ends. */
export function hasLastWork(): boolean {
  return lastWork !== null;
}

/** True when nothing more can come from stdin: it ended, or reading it failed. */
export function stdinIsGone(): boolean {
  const { stdin } = process;
  return isHungUp || stdin.readableEnded || stdin.destroyed || stdin.errored !== null;
}

/** Resolves when stdin is gone. From the first call on its errors are handled. */
export function whenStdinGone(): Promise<void> {
  stdinEnd ??= new Promise((resolve) => {
    for (const name of ["end", "close", "error"]) process.stdin.on(name, () => resolve());
    if (stdinIsGone()) resolve();
  });
  return stdinEnd;
}

function dieOfHangUp(): void {
  // A terminal that is still there (the signal came alone) is left as it was found.
  if (process.stdin.isTTY && !stdinIsGone()) {
    void whenStdinGone();
    process.stdin.setRawMode(false);
  }
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
}

/** From now on output may be lost and the program goes on: it has something to see to its end. */
export function deferEarlyEnd(): void {
  isDeferred = true;
}

/** The ordinary end of the process, with `code`; as hung up when it is. */
export function exitProcess(code: number): void {
  if (isHungUp) dieOfHangUp();
  else process.exit(code);
}

/** Never resolves when an early end has begun: it alone ends the process. */
export function unlessEnding(): Promise<void> {
  return new Promise((resolve) => {
    if (!isEnding) resolve();
  });
}

/** Does the last work and ends the process. Only the first call does anything. */
export function endEarly(code: number): void {
  if (isEnding || isDeferred) return;
  isEnding = true;
  const work = lastWork === null ? Promise.resolve() : lastWork();
  const limit = new Promise((resolve) => setTimeout(resolve, LAST_WORK_MS));
  const end = (): void => exitProcess(code);
  Promise.race([work, limit]).then(end, end);
}

/** As `endEarly`, for a terminal that is gone. Never resolves: the process ends instead. */
export function hangUp(): Promise<never> {
  isHungUp = true;
  endEarly(0);
  return new Promise(() => undefined);
}

/** What reading or writing a terminal that hung up fails with. */
export function isHangUpError(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EIO";
}
