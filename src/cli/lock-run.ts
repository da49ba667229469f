/**
 * `lock-run`: a command that runs only while a lock is held.
 *
 * Owns the child process it starts. Invariants: 1. The child is started only after the lock was
 * granted, and only while it is held. 2. When the lock may be lost, which is before its lease can
 * have ended, the child gets SIGTERM at once and SIGKILL after the grace time. 3. Signals are
 * passed on; one that comes before the child is there ends the wait for it. 4. A lost lock never
 * ends with exit code 0. 5. stdout belongs to the child. 6. What may be held at the end is
 * released.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import type { LockHandle } from "../client/mod.js";
import { OPERATION_TIMEOUT_DEFAULT_S } from "./commands/options.js";
import { Clients, durabilityOf } from "./context.js";
import { EXIT_REFUSED, EXIT_UNEXPECTED } from "./exit-codes.js";
import { deferEarlyEnd } from "./hang-up.js";
import { Progress } from "./progress.js";
import { newOwner, ownerBytes } from "./owners.js";
import type { Settings } from "./settings.js";
import { SignalRelay } from "./signal-relay.js";
import type { OptionValues } from "./values.js";

const GRACE_DEFAULT_MS = 5000;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;
const RELEASE_WAIT_MS = 5000;

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
  const progress = new Progress(waiting);
  const reachability = clients.watch(limitMs, (text) => progress.update(`${waiting}: ${text}`));
  try {
    const client = await clients.open(settings.endpoints);
    const handle = await client.locks.acquire(resource, {
      leaseMs: values.requiredNumber("--expires"),
      waitMs,
      owner: ownerBytes(owner),
      durability: durabilityOf(values),
      renew: true,
      signal: signals.signal,
      deadlineMs: limitMs,
    });
    if (handle.acquired) return handle;
    progress.end();
    process.stderr.write(`f0 not acquired ${owner}\n`);
    return EXIT_REFUSED;
  } catch (error) {
    reachability.explain(error);
    if (signals.stoppedBy === null) throw error;
    return 128 + signalNumber(signals.stoppedBy);
  } finally {
    reachability.end();
    progress.end();
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

/**
 * Ends the child when the lock is lost; the returned function stops watching and says whether it
 * was.
 */
function watchLock(handle: LockHandle, child: ChildProcess, graceMs: number): () => boolean {
  let lost = false;
  let killer: NodeJS.Timeout | null = null;
  const onLoss = (): void => {
    lost = true;
    const reason: unknown = handle.signal.reason;
    const why = reason instanceof Error ? reason.message : String(reason);
    say(`${why}: ending the command (SIGTERM, SIGKILL after ${graceMs} ms)`);
    child.kill("SIGTERM");
    killer = setTimeout(() => child.kill("SIGKILL"), graceMs);
  };
  if (handle.signal.aborted) onLoss();
  else handle.signal.addEventListener("abort", onLoss, { once: true });
  return () => {
    handle.signal.removeEventListener("abort", onLoss);
    if (killer !== null) clearTimeout(killer);
    return lost;
  };
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
  const [program, ...rest] = words as [string, ...string[]];
  const child = spawn(program, rest, {
    stdio: "inherit",
    env: {
      ...process.env,
      SVC_FENCING_TOKEN: String(handle.fencingToken),
      SVC_LOCK_RESOURCE: resource,
      SVC_LOCK_OWNER: owner,
    },
  });
  signals.passTo(child);
  const ended = childEnd(child);
  const stopWatching = watchLock(handle, child, values.number("--grace") ?? GRACE_DEFAULT_MS);
  const { code, error } = await ended;
  const wasLost = stopWatching();
  if (error !== null) say(`${program}: ${error.message}`);
  if (!wasLost) await release(handle);
  return wasLost && code === 0 ? EXIT_UNEXPECTED : code;
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
