/**
 * What waiting for locks needs of the world, and the commands that it proposes.
 *
 * Pure.
 */
import { textSizeBytes } from "../../base/bytes.js";
import type {
  ForceUnlockCommand,
  HeirListCommand,
  LockCommand,
  LockHeirCommand,
} from "../../machine/commands/command.js";
import { heirsBytes } from "../../machine/locks/heirs.js";
import type { ClockPort, TimerPort } from "../../ports.js";
import type { Place } from "./queue.js";

export interface WaitingPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
}

export interface WaitingSettings {
  /** Places of one lock. */
  readonly perLockMax: number;
  /** Time of a try on its way (ms). */
  readonly tryMs: number;
  /** Locks of the group that change hands often have heirs, from now on. */
  hasHeirs(): boolean;
}

/** What could not be proposed is tried again after this (ms). */
export const RETRY_MS = 20;

/** A command of which somebody waits for the outcome. */
export type WaitedCommand = LockCommand | LockHeirCommand | ForceUnlockCommand;

/** Bytes of a command beside resource and owner, at most. */
const COMMAND_BYTES = 64;

export function tryCommand(
  resource: string,
  { owner, expiresMs, note, trial }: Place,
): LockCommand | LockHeirCommand {
  if (trial !== null) return { kind: "lock-heir", resource, owner, expiresMs, note, ...trial };
  if (note === null) return { kind: "try-lock", resource, owner, expiresMs };
  return { kind: "lock-with-note", resource, owner, expiresMs, note };
}

/** An upper bound of what a command takes. */
export function commandBytes(command: WaitedCommand): number {
  const { resource, owner } = command;
  let sizeBytes = COMMAND_BYTES + textSizeBytes(resource) + (owner?.length ?? 0);
  if ("note" in command) sizeBytes += command.note?.length ?? 0;
  if (command.kind !== "force-unlock") return sizeBytes;
  const { actor, reason, requestId } = command;
  return sizeBytes + textSizeBytes(actor) + textSizeBytes(reason) + textSizeBytes(requestId);
}

/** As `commandBytes`. */
export function listBytes({ resource, added }: HeirListCommand): number {
  return COMMAND_BYTES + textSizeBytes(resource) + 2 * heirsBytes(added);
}
