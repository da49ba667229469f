/**
 * The signals of `lock-run`, from its first moment to its last: they stop it while there is no
 * command yet, and reach the command from its start on.
 *
 * Owns the handlers of the signals it takes. Invariants: 1. Between `begin` and `end` none of them
 * ends the process by its default action. The first one that stops is never lost; SIGUSR1, SIGUSR2
 * and SIGWINCH are dropped while there is no command, to which alone they could mean something. 2.
 * What the terminal sends to the whole foreground group is not passed on a second time, except in
 * the instant of the start, when the command may not have been there to get it. 3. Stopped from the
 * keyboard, both stop: a command does not go on while nobody watches its lock.
 */
import type { CommandGroup } from "./command-group.js";

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
  private readonly suspend = (): void => this.suspended();
  private readonly resume = (): void => this.resumed();
  private group: CommandGroup | null = null;
  private beforeResume: () => void = () => undefined;
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

  /**
   * From now on signals go to `group`. To be called in the turn in which it was started.
   * `beforeResume`: called before a stopped group goes on.
   */
  passTo(group: CommandGroup, beforeResume: () => void): void {
    this.group = group;
    this.beforeResume = beforeResume;
    this.isStarting = true;
    // What was raised before the start is told in the next round of the event loop, which is over
    // only with the second of these.
    setImmediate(() => setImmediate(() => (this.isStarting = false)));
    if (!group.isSeparate) return;
    process.on("SIGTSTP", this.suspend);
    process.on("SIGCONT", this.resume);
  }

  /** The group has ended: what comes from now on stops what goes on after it. */
  passNoMore(): void {
    this.group = null;
    process.off("SIGTSTP", this.suspend);
    process.off("SIGCONT", this.resume);
  }

  end(): void {
    for (const signal of PASSED_ON) process.off(signal, this.take);
    this.passNoMore();
  }

  private suspended(): void {
    // A session without a terminal ignores SIGTSTP.
    this.group?.signal("SIGSTOP");
    process.kill(process.pid, "SIGSTOP");
  }

  private resumed(): void {
    this.beforeResume();
    this.group?.signal("SIGCONT");
  }

  private taken(signal: NodeJS.Signals): void {
    const { group } = this;
    if (group === null) {
      if (!STOPPING.has(signal) || this.first !== null) return;
      this.first = signal;
      this.stop.abort();
      return;
    }
    const gotIt = FROM_KEYBOARD.has(signal) && !group.isSeparate && !this.isStarting;
    if (!gotIt) group.signal(signal);
  }
}
