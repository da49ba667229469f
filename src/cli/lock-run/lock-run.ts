/**
 * `lock-run`: a command that runs only while a lock is held.
 *
 * Owns the command it starts. Invariants: 1. The command is started only after the lock was
 * granted, and only while it is held. 2. When the lock may be lost, which is before its lease can
 * have ended, the command and all that it started get SIGTERM at once, and whatever of it is left
 * SIGKILL after the grace time. 3. Signals are passed on; one that comes before the command is
 * there ends the wait for it. 4. A lost lock never ends with exit code 0. 5. stdout belongs to the
 * command. 6. What may be held at the end is released.
 */
import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import type { LockHandle } from "../../client/mod.js";
import { CommandGroup } from "./command-group.js";
import { OPERATION_TIMEOUT_DEFAULT_S } from "../commands/options.js";
import { Clients, durabilityOf } from "../invocation/context.js";
import { EXIT_REFUSED, EXIT_UNEXPECTED } from "../invocation/exit-codes.js";
import { deferEarlyEnd } from "../invocation/hang-up.js";
import { newOwner, noteBytes, ownerBytes } from "./owners.js";
import type { Settings } from "../invocation/settings.js";
import { SignalRelay } from "./signal-relay.js";
import type { OptionValues } from "../commands/values.js";

const GRACE_DEFAULT_MS = 5000;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;
const RELEASE_WAIT_MS = 5000;
/** How often it is looked whether anything of an ended command is left (ms). */
const LEFT_POLL_MS = 20;

export interface LockRun {
  readonly resource: string;
  readonly words: readonly string[];
  readonly values: OptionValues;
  readonly settings: Settings;
}

function signalNumber(signal: NodeJS.Signals): number {
  return constants.signals[signal];
}

function say(text: string): void {
  process.stderr.write(`svc-cli: ${text}\n`);
}

/** Acquires the lock; a number is the exit code when there is none. */
async function acquire(
  run: LockRun,
  owner: string,
  clients: Clients,
  signals: SignalRelay,
): Promise<LockHandle | number> {
  const { resource, values, settings } = run;
  const waitMs = values.number("--wait") ?? 0;
  const limitMs = settings.timeoutMs ?? waitMs + OPERATION_TIMEOUT_DEFAULT_S * 1000;
  const waiting = `waiting for the lock ${resource}`;
  const attempt = async (): Promise<LockHandle> => {
    const client = await clients.open(settings.endpoints);
    return client.locks.acquire(resource, {
      leaseMs: values.requiredNumber("--expires"),
      waitMs,
      owner: ownerBytes(owner),
      durability: durabilityOf(values),
      note: noteBytes(values),
      renew: true,
      signal: signals.signal,
      deadlineMs: limitMs,
    });
  };
  try {
    const handle = await clients.whileWaiting(limitMs, attempt, waiting, waiting);
    if (handle.acquired) return handle;
    process.stderr.write(`f0 not acquired ${owner}\n`);
    return EXIT_REFUSED;
  } catch (error) {
    if (signals.stoppedBy === null) throw error;
    return 128 + signalNumber(signals.stoppedBy);
  }
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
      resolve({ code: signal === null ? (code ?? 0) : 128 + signalNumber(signal), error: null });
    });
  });
}

/** Ends the command when the lock is lost. */
class LossWatch {
  isLost = false;
  private readonly handle: LockHandle;
  private readonly group: CommandGroup;
  private readonly graceMs: number;
  private killAtMs = Number.POSITIVE_INFINITY;
  private killer: NodeJS.Timeout | null = null;
  private readonly onLoss = (): void => this.end();

  constructor(handle: LockHandle, group: CommandGroup, graceMs: number) {
    this.handle = handle;
    this.group = group;
    this.graceMs = graceMs;
    if (handle.signal.aborted) this.end();
    else handle.signal.addEventListener("abort", this.onLoss, { once: true });
  }

  private end(): void {
    this.isLost = true;
    const reason: unknown = this.handle.signal.reason;
    const why = reason instanceof Error ? reason.message : String(reason);
    say(`${why}: ending the command (SIGTERM, SIGKILL after ${this.graceMs} ms)`);
    this.group.signal("SIGTERM");
    // What was stopped could not take it.
    this.group.signal("SIGCONT");
    this.killAtMs = performance.now() + this.graceMs;
    this.killer = setTimeout(() => this.group.signal("SIGKILL"), this.graceMs);
  }

  /** The command itself ended. Waits for what it left behind, if the lock is lost. */
  async stop(): Promise<void> {
    this.handle.signal.removeEventListener("abort", this.onLoss);
    if (!this.isLost) return;
    while (this.group.isAlive && performance.now() < this.killAtMs) await pause(LEFT_POLL_MS);
    if (this.killer !== null) clearTimeout(this.killer);
    this.group.signal("SIGKILL");
  }
}

async function release(handle: LockHandle): Promise<void> {
  try {
    await handle.release({ deadlineMs: RELEASE_WAIT_MS });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    say(`the lock could not be released and ends with its lease: ${why}`);
  }
}

/** Runs the command while `handle` is held, and releases it. Returns the exit code. */
async function runHolding(
  { resource, words, values }: LockRun,
  owner: string,
  handle: LockHandle,
  signals: SignalRelay,
): Promise<number> {
  if (signals.stoppedBy !== null || !handle.held) {
    await release(handle);
    if (signals.stoppedBy !== null) return 128 + signalNumber(signals.stoppedBy);
    say("the lock ran out before the command could be started: nothing was run");
    return EXIT_UNEXPECTED;
  }
  const group = new CommandGroup(words as [string, ...string[]], {
    SVC_FENCING_TOKEN: String(handle.fencingToken),
    SVC_LOCK_RESOURCE: resource,
    SVC_LOCK_OWNER: owner,
  });
  // Looking at the signal notices a lease that ended while this process was stopped.
  signals.passTo(group, () => void handle.signal.aborted);
  const ended = childEnd(group.child);
  const watch = new LossWatch(handle, group, values.number("--grace") ?? GRACE_DEFAULT_MS);
  const { code, error } = await ended;
  await watch.stop();
  if (error !== null) say(`${words[0] ?? ""}: ${error.message}`);
  if (!watch.isLost) await release(handle);
  return watch.isLost && code === 0 ? EXIT_UNEXPECTED : code;
}

/** Runs `run.words` under the lock. Returns the exit code. */
export async function runUnderLock(run: LockRun): Promise<number> {
  const owner = run.values.text("--owner") ?? newOwner();
  const clients = new Clients(run.settings);
  const signals = new SignalRelay();
  signals.begin();
  try {
    const handle = await acquire(run, owner, clients, signals);
    if (typeof handle === "number") return handle;
    // Without a terminal the child must still be ended in time when the lock is lost.
    deferEarlyEnd();
    return await runHolding(run, owner, handle, signals);
  } finally {
    // Also ends what a failed acquire left behind: a lock that may have been granted is released.
    await clients.close();
    signals.end();
  }
}
