/**
 * What the answers to lock commands of a shell session mean for its list of held locks.
 *
 * May change the list it is given. Invariants: 1. A lock that was granted, or may have been, is in
 * the list until it was certainly released, refused or replaced. 2. A doubt never makes a lease
 * look longer.
 */
import { SvcError, UnknownOutcomeError } from "../../client/values/errors.js";
import type { ShellCommand } from "../commands/command.js";
import { INVALID_INPUT_REMARK, type Outcome } from "../invocation/context.js";
import { EXIT_DONE } from "../invocation/exit-codes.js";
import type { HeldLock, HeldLocks } from "./held-locks.js";
import type { OptionValue } from "../commands/values.js";

/** A lock command that was carried out. */
export interface LockLine {
  readonly spec: ShellCommand;
  readonly values: ReadonlyMap<string, OptionValue>;
  /** The entry of the list that it is about; null when it asks for a lock. */
  readonly lock: HeldLock | null;
  /** performance.now() before it was sent. */
  readonly startedMs: number;
}

export function durabilityIn(values: ReadonlyMap<string, OptionValue>): HeldLock["durability"] {
  return values.get("--durability") === "Ephemeral" ? "ephemeral" : "persistent";
}

/** Gives `values` the owner that the service checks. */
export function addOwner(values: Map<string, OptionValue>, lock: HeldLock): void {
  values.set("--owner", lock.owner);
  values.set("--durability", lock.durability === "ephemeral" ? "Ephemeral" : "Persistent");
}

function endOf({ values, startedMs }: LockLine): number {
  return startedMs + Number(values.get("--expires") ?? 0);
}

/** After an answer. */
export function noteAnswer(held: HeldLocks, line: LockLine, result: Outcome): void {
  const { spec, lock } = line;
  const isDone = result.exit === EXIT_DONE;
  const { fencingToken, owner, resource } = result.document as {
    readonly fencingToken: bigint;
    readonly owner: string;
    readonly resource: string;
  };
  if (spec.answer === "lock") {
    if (!isDone) return;
    const durability = durabilityIn(line.values);
    const token = String(fencingToken);
    held.put({ resource, durability, owner, fencingToken: token, endsMs: endOf(line) });
    return;
  }
  if (lock === null) return;
  if (isDone && spec.operation === "--extend-lock") {
    held.put({ ...lock, fencingToken: String(fencingToken), endsMs: endOf(line) });
    return;
  }
  // What the service refused as not acceptable changed nothing: the lock is held as before.
  if (result.remark !== INVALID_INPUT_REMARK) held.remove(lock);
}

/** After a failure: what may have happened all the same. */
export function noteFailure(held: HeldLocks, line: LockLine, error: unknown): void {
  const { spec, values, lock } = line;
  if (!(error instanceof SvcError) || error.outcome === "none") return;
  if (spec.answer === "lock") {
    held.put({
      resource: String(values.get("--lock")),
      durability: durabilityIn(values),
      owner: String(values.get("--owner")),
      fencingToken: null,
      endsMs: endOf(line),
    });
    return;
  }
  if (lock === null) return;
  if (spec.operation === "--extend-lock") {
    held.put({ ...lock, endsMs: Math.min(lock.endsMs, endOf(line)) });
  } else if (isGoneNow(error)) {
    held.remove(lock);
  }
}

/** True for the doubt about who released a lock: it is certainly not held any more. */
export function isGoneNow(error: unknown): boolean {
  return error instanceof UnknownOutcomeError;
}
