/**
 * The signals of `lock-run`, from its first moment to its last: they stop it while there is no
 * command yet, and reach the command from its start on.
 *
 * Owns the handlers of the signals it takes. Invariants: 1. Between `begin` and `end` none of them
 * ends the process by its default action. The first one that stops is never lost; SIGUSR1, SIGUSR2
 * and SIGWINCH are dropped while there is no command, to which alone they could mean something. 2.
 * What the terminal sends to the whole foreground group is not passed on a second time, except in
 * the instant of the start, when the command may not have been there to get it.
 */
import type { ChildProcess } from "node:child_process";

const PASSED_ON: readonly NodeJS.Signals[] = [
  "SIGINT",
  "SIGTERM",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
];
const STOPPING: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);
const FROM_KEYBOARD: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT", "SIGWINCH"]);

export class SignalRelay {
  private readonly stop = new AbortController();
  private readonly take = (signal: NodeJS.Signals): void => this.taken(signal);
  private first: NodeJS.Signals | null = null;
  private child: ChildProcess | null = null;
  private isStarting = false;

  /** Aborts at the first signal that stops what goes on before there is a command. */
  get signal(): AbortSignal {
    return this.stop.signal;
  }

  /** The signal that came before there was a command, or null. */
  get stoppedBy(): NodeJS.Signals | null {
    return this.first;
  }

  begin(): void {
    for (const signal of PASSED_ON) process.on(signal, this.take);
  }

  /** From now on signals go to `child`. To be called in the turn in which it was started. */
  passTo(child: ChildProcess): void {
    this.child = child;
    this.isStarting = true;
    // What was raised before the start is told in the next round of the event loop, which is over
    // only with the second of these.
    setImmediate(() => setImmediate(() => (this.isStarting = false)));
  }

  end(): void {
    for (const signal of PASSED_ON) process.off(signal, this.take);
  }

  private taken(signal: NodeJS.Signals): void {
    if (this.child === null) {
      if (!STOPPING.has(signal) || this.first !== null) return;
      this.first = signal;
      this.stop.abort();
      return;
    }
    const gotIt = FROM_KEYBOARD.has(signal) && process.stdin.isTTY && !this.isStarting;
    if (!gotIt) this.child.kill(signal);
  }
}
