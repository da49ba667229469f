/**
 * One command to its decision. Total: every command gets an outcome, whatever its fields hold.
 *
 * Pure over the rows of the context. Invariant: nothing here or below reads anything but context
 * and command.
 */
import { unreachable } from "../base/assert.js";
import { collectRows } from "./collect.js";
import type {
  Command,
  KvCommand,
  KvOutcome,
  LockCommand,
  LockOutcome,
  Outcome,
  SequenceCommand,
} from "./commands/command.js";
import type { DecisionContext } from "./decision/context.js";
import { setLevel } from "./decision/level.js";
import { kvDelete, kvExtend, kvSet } from "./kv/kv.js";
import { tryExtend, tryLock, tryUnlock } from "./locks/locks.js";
import { applyMeta } from "./meta/meta.js";
import { updateSequence } from "./sequences/sequence-update.js";
import {
  allocate,
  createSequence,
  deleteSequence,
  reserveBlock,
  returnBlock,
} from "./sequences/sequences.js";

/** Locks and key/value: the commands that ephemeral tables know too. */
export function applyEphemeral(
  context: DecisionContext,
  command: LockCommand | KvCommand,
): LockOutcome | KvOutcome {
  switch (command.kind) {
    case "try-lock":
      return tryLock(context, command);
    case "try-extend":
      return tryExtend(context, command);
    case "try-unlock":
      return tryUnlock(context, command);
    case "kv-set":
      return kvSet(context, command);
    case "kv-extend":
      return kvExtend(context, command);
    case "kv-delete":
      return kvDelete(context, command);
    default:
      return unreachable(command);
  }
}

function applySequence(context: DecisionContext, command: SequenceCommand): Outcome {
  switch (command.kind) {
    case "create-sequence":
      return createSequence(context, command);
    case "update-sequence":
      return updateSequence(context, command);
    case "delete-sequence":
      return deleteSequence(context, command);
    case "allocate":
      return allocate(context, command);
    case "reserve-block":
      return reserveBlock(context, command);
    case "return-block":
      return returnBlock(context, command);
    default:
      return unreachable(command);
  }
}

export function applyCommand(context: DecisionContext, command: Command): Outcome {
  switch (command.kind) {
    case "try-lock":
    case "try-extend":
    case "try-unlock":
    case "kv-set":
    case "kv-extend":
    case "kv-delete":
      return applyEphemeral(context, command);
    case "create-sequence":
    case "update-sequence":
    case "delete-sequence":
    case "allocate":
    case "reserve-block":
    case "return-block":
      return applySequence(context, command);
    case "advance-clock":
      return { kind: "done" };
    case "collect":
      return collectRows(context, command);
    case "set-level":
      return setLevel(context, command);
    case "found-cluster":
    case "update-member":
    case "add-member":
    case "set-member-role":
    case "remove-member":
    case "set-replication-factor":
    case "register-range":
    case "unregister-range":
    case "raise-level":
      return applyMeta(context, command);
    default:
      return unreachable(command);
  }
}
