/**
 * `lock-run`: a command that runs only while a lock is held.
 *
 * Owns the child process it starts. Invariants: 1. The child is started only after the lock was
 * granted. 2. When the lock may be lost, which is before its lease can have ended, the child gets
 * SIGTERM at once and SIGKILL after the grace time. 3. Signals are passed on. 4. A lost lock never
 * ends with exit code 0. 5. stdout belongs to the child.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import type { LockHandle } from "../client/mod.js";
import { OPERATION_TIMEOUT_DEFAULT_S } from "./commands/options.js";
import { Clients, durabilityOf } from "./context.js";
import { EXIT_REFUSED, EXIT_UNEXPECTED } from "./exit-codes.js";
import { deferEarlyEnd } from "./hang-up.js";
import { Progress } from "./progress.js";
import { newOwner, ownerBytes } from "./run/locks.js";
import type { Settings } from "./settings.js";
import type { OptionValues } from "./values.js";

const GRACE_DEFAULT_MS = 5000;
const EXIT_NOT_EXECUTABLE = 126;
const EXIT_NOT_FOUND = 127;
const RELEASE_WAIT_MS = 5000;

const PASSED_ON: readonly NodeJS.Signals[] = [
  "SIGINT",
  "SIGTERM",
  "SIGHUP",
  "SIGQUIT",
  "SIGUSR1",
  "SIGUSR2",
  "SIGWINCH",
];

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
): Promise<LockHandle | number> {
  const { resource, values, settings } = run;
  const waitMs = values.number("--wait") ?? 0;
  const limitMs = settings.timeoutMs ?? waitMs + OPERATION_TIMEOUT_DEFAULT_S * 1000;
  const controller = new AbortController();
  let stoppedBy: NodeJS.Signals | null = null;
  const stop = (signal: NodeJS.Signals): void => {
    stoppedBy = signal;
    controller.abort();
  };
  const stops: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of stops) process.on(signal, stop);
  const progress = new Progress(`waiting for the lock ${resource}`);
  try {
    const client = await clients.open(settings.endpoints);
    const handle = await client.locks.acquire(resource, {
      leaseMs: values.requiredNumber("--expires"),
      waitMs,
      owner: ownerBytes(owner),
      durability: durabilityOf(values),
      renew: true,
      signal: controller.signal,
      deadlineMs: limitMs,
    });
    if (handle.acquired) return handle;
    progress.end();
    process.stderr.write(`f0 not acquired ${owner}\n`);
    return EXIT_REFUSED;
  } catch (error) {
    if (stoppedBy === null) throw error;
    return 128 + signalNumber(stoppedBy);
  } finally {
    progress.end();
    for (const signal of stops) process.off(signal, stop);
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
 * Passes signals on until the returned function is called. On a terminal Ctrl+C and Ctrl+\ already
 * reach the child, which is in the same foreground group: passing them on would deliver them twice.
 */
function passSignals(child: ChildProcess): () => void {
  const pass = (signal: NodeJS.Signals): void => {
    const fromKeyboard = signal === "SIGINT" || signal === "SIGQUIT" || signal === "SIGWINCH";
    if (!(fromKeyboard && process.stdin.isTTY)) child.kill(signal);
  };
  for (const signal of PASSED_ON) process.on(signal, pass);
  return () => {
    for (const signal of PASSED_ON) process.off(signal, pass);
  };
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

/** Runs `run.words` under the lock. Returns the exit code. */
export async function runUnderLock(run: LockRun): Promise<number> {
  const { resource, words, values, settings } = run;
  const owner = values.text("--owner") ?? newOwner();
  const clients = new Clients(settings);
  const handle = await acquire(run, owner, clients);
  if (typeof handle === "number") return handle;
  // Without a terminal the child must still be ended in time when the lock is lost.
  deferEarlyEnd();
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
  const ended = childEnd(child);
  const stopPassing = passSignals(child);
  const stopWatching = watchLock(handle, child, values.number("--grace") ?? GRACE_DEFAULT_MS);
  const { code, error } = await ended;
  stopPassing();
  const wasLost = stopWatching();
  if (error !== null) say(`${program}: ${error.message}`);
  if (!wasLost) await release(handle);
  await clients.close();
  return wasLost && code === 0 ? EXIT_UNEXPECTED : code;
}
