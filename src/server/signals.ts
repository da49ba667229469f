/**
 * What signals do to the process, from its first moment on.
 *
 * Owns the handlers: process 1 of a container has no others, and would go on through a SIGTERM that
 * comes before them. Invariants: 1. A signal during the start ends the process at once: nothing was
 * accepted. 2. The first SIGTERM or SIGINT after it stops gracefully, the second ends at once. 3.
 * SIGHUP never ends the process.
 */
import { EXIT_CLEAN } from "./flags/exit-codes.js";

/** What is told of signals once it runs. */
export interface Signalled {
  stop(done: () => void): void;
  reload(): void;
}

/**
 * Signals within this time of the first are the same one, when `npm start` stands in between: the
 * terminal sends it to both processes, and the outer one passes it on (ms).
 */
const SAME_SIGNAL_MS = 500;
const SIGNAL_EXIT_CODE = 128;

export class Signals {
  private server: Signalled | null = null;
  private passedOn = false;
  private stoppingSinceMs: number | null = null;

  constructor() {
    process.on("SIGTERM", () => this.stop(15));
    process.on("SIGINT", () => this.stop(2));
    process.on("SIGHUP", () => this.server?.reload());
  }

  /** The start is over. `passedOn`: another process passes signals on that came here already. */
  attach(server: Signalled, passedOn: boolean): void {
    this.server = server;
    this.passedOn = passedOn;
  }

  private stop(signal: number): void {
    if (this.server === null) process.exit(EXIT_CLEAN);
    const nowMs = performance.now();
    if (this.stoppingSinceMs !== null) {
      if (this.passedOn && nowMs - this.stoppingSinceMs < SAME_SIGNAL_MS) return;
      process.exit(SIGNAL_EXIT_CODE + signal);
    }
    this.stoppingSinceMs = nowMs;
    this.server.stop(() => process.exit(EXIT_CLEAN));
  }
}
