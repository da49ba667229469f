/**
 * A command that runs only while something is held: a lock, a leadership.
 *
 * Owns the command it starts. Invariants: 1. It is started only while that is held. 2. When it may
 * be lost, which is before its lease can have ended, the command and all that it started get
 * SIGTERM at once, and whatever of it is left SIGKILL after the grace time. 3. Signals are passed
 * on from its start to its end. 4. What may be held at the end is released.
 */
import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { CommandGroup } from "./command-group.js";
import { EXIT_UNEXPECTED } from "../invocation/exit-codes.js";
import type { SignalRelay } from "./signal-relay.js";

export const GRACE_DEFAULT_MS = 5000;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;
const RELEASE_WAIT_MS = 5000;
/** How often it is looked whether anything of an ended command is left (ms). */
const LEFT_POLL_MS = 20;

/** What the command runs under. */
export interface Holding {
  /** Aborts before it can be somebody else's. */
  readonly signal: AbortSignal;
  readonly held: boolean;
  release(options: { readonly deadlineMs: number }): Promise<boolean>;
}

/** The command, and what it finds in its environment. */
export interface HeldCommand {
  readonly words: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly graceMs: number;
  /** What it runs under, in messages: "the lock". */
  readonly under: string;
}

export interface CommandEnd {
  readonly code: number;
  /** True: what it ran under was lost before it ended. */
  readonly isLost: boolean;
}

/** The exit code of a process that a signal ended. */
export function signalExit(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

export function say(text: string): void {
  process.stderr.write(`svc-cli: ${text}\n`);
}

interface Ended {
  readonly code: number;
  readonly error: NodeJS.ErrnoException | null;
}

function childEnd(child: ChildProcess): Promise<Ended> {
  return new Promise((resolve) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      const code = error.code === "ENOENT" ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
      if (child.pid === undefined) resolve({ code, error });
    });
    child.once("exit", (code, signal) => {
      resolve({ code: signal === null ? (code ?? 0) : signalExit(signal), error: null });
    });
  });
}

/** Ends the command when what it runs under is lost. */
class LossWatch {
  isLost = false;
  private readonly holding: Holding;
  private readonly group: CommandGroup;
  private readonly graceMs: number;
  private killAtMs = Number.POSITIVE_INFINITY;
  private killer: NodeJS.Timeout | null = null;
  private readonly onLoss = (): void => this.end();

  constructor(holding: Holding, group: CommandGroup, graceMs: number) {
    this.holding = holding;
    this.group = group;
    this.graceMs = graceMs;
    if (holding.signal.aborted) this.end();
    else holding.signal.addEventListener("abort", this.onLoss, { once: true });
  }

  private end(): void {
    this.isLost = true;
    const reason: unknown = this.holding.signal.reason;
    const why = reason instanceof Error ? reason.message : String(reason);
    say(`${why}: ending the command (SIGTERM, SIGKILL after ${this.graceMs} ms)`);
    this.group.signal("SIGTERM");
    // What was stopped could not take it.
    this.group.signal("SIGCONT");
    this.killAtMs = performance.now() + this.graceMs;
    this.killer = setTimeout(() => this.group.signal("SIGKILL"), this.graceMs);
  }

  /** The command itself ended. Waits for what it left behind, if all is lost. */
  async stop(): Promise<void> {
    this.holding.signal.removeEventListener("abort", this.onLoss);
    if (!this.isLost) return;
    while (this.group.isAlive && performance.now() < this.killAtMs) await pause(LEFT_POLL_MS);
    if (this.killer !== null) clearTimeout(this.killer);
    this.group.signal("SIGKILL");
  }
}

/** Gives it up; what could not be done is said. */
export async function release(holding: Holding, under: string): Promise<void> {
  try {
    await holding.release({ deadlineMs: RELEASE_WAIT_MS });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(`${under} could not be released and ends with its lease: ${why}`);
  }
}

/** Runs the command while `holding` lasts, and releases it. */
export async function runHolding(
  { words, environment, graceMs, under }: HeldCommand,
  holding: Holding,
  signals: SignalRelay,
): Promise<CommandEnd> {
  if (signals.stoppedBy !== null || !holding.held) {
    await release(holding, under);
    if (signals.stoppedBy !== null) return { code: signalExit(signals.stoppedBy), isLost: false };
    say(`${under} ran out before the command could be started: nothing was run`);
    return { code: EXIT_UNEXPECTED, isLost: true };
  }
  const group = new CommandGroup(words as [string, ...string[]], environment);
  // Looking at the signal notices a lease that ended while this process was stopped.
  signals.passTo(group, () => void holding.signal.aborted);
  const ended = childEnd(group.child);
  const watch = new LossWatch(holding, group, graceMs);
  const { code, error } = await ended;
  await watch.stop();
  signals.passNoMore();
  if (error !== null) say(`${words[0] ?? ""}: ${error.message}`);
  if (!watch.isLost) await release(holding, under);
  return { code: watch.isLost && code === 0 ? EXIT_UNEXPECTED : code, isLost: watch.isLost };
}
