/**
 * `lock-run`: a command that runs only while a lock is held.
 *
 * Invariants: 1. The command is started only after the lock was granted. 2. A signal that comes
 * before the command is there ends the wait for it. 3. A lost lock never ends with exit code 0. 4.
 * stdout belongs to the command.
 */
import type { LockHandle } from "../../client/mod.js";
import { GRACE_DEFAULT_MS, runHolding, signalExit } from "./held-command.js";
import { OPERATION_TIMEOUT_DEFAULT_S } from "../commands/options.js";
import { Clients, durabilityOf } from "../invocation/context.js";
import { EXIT_REFUSED } from "../invocation/exit-codes.js";
import { deferEarlyEnd } from "../invocation/hang-up.js";
import { newOwner, noteBytes, ownerBytes } from "./owners.js";
import { tellPlace } from "./place.js";
import type { Progress } from "../terminal/progress.js";
import type { Settings } from "../invocation/settings.js";
import { SignalRelay } from "./signal-relay.js";
import type { OptionValues } from "../commands/values.js";

export interface LockRun {
  readonly resource: string;
  readonly words: readonly string[];
  readonly values: OptionValues;
  readonly settings: Settings;
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
  const asked = { owner: ownerBytes(owner), durability: durabilityOf(values) };
  const attempt = async (progress: Progress): Promise<LockHandle> => {
    const client = await clients.open(settings.endpoints);
    const acquire = (): Promise<LockHandle> =>
      client.locks.acquire(resource, {
        ...asked,
        leaseMs: values.requiredNumber("--expires"),
        waitMs,
        note: noteBytes(values),
        renew: true,
        signal: signals.signal,
        deadlineMs: limitMs,
      });
    return tellPlace(progress, client, resource, asked, acquire);
  };
  try {
    const handle = await clients.whileWaiting(limitMs, attempt, waiting, waiting);
    if (handle.acquired) return handle;
    process.stderr.write(`f0 not acquired ${owner}\n`);
    return EXIT_REFUSED;
  } catch (error) {
    if (signals.stoppedBy === null) throw error;
    return signalExit(signals.stoppedBy);
  }
}

/** Runs `run.words` under the lock. Returns the exit code. */
export async function runUnderLock(run: LockRun): Promise<number> {
  const { resource, words, values } = run;
  const owner = values.text("--owner") ?? newOwner();
  const clients = new Clients(run.settings);
  const signals = new SignalRelay();
  signals.begin();
  try {
    const handle = await acquire(run, owner, clients, signals);
    if (typeof handle === "number") return handle;
    // Without a terminal the child must still be ended in time when the lock is lost.
    deferEarlyEnd();
    const environment = {
      SVC_FENCING_TOKEN: String(handle.fencingToken),
      SVC_LOCK_RESOURCE: resource,
      SVC_LOCK_OWNER: owner,
    };
    const graceMs = values.number("--grace") ?? GRACE_DEFAULT_MS;
    const command = { words, environment, graceMs, under: "the lock" };
    return (await runHolding(command, handle, signals)).code;
  } finally {
    // Also ends what a failed acquire left behind: a lock that may have been granted is released.
    await clients.close();
    signals.end();
  }
}
