/**
 * One command to its decision. Total: every command gets an outcome, whatever its fields hold.
 *
 * Pure over the rows of the context. Invariant: nothing here or below reads anything but context
 * and command.
 */
import { collectRows } from "./collect.js";
import type {
  Command,
  KvCommand,
  KvOutcome,
  LockCommand,
  LockOutcome,
  MovedOutcome,
  Outcome,
} from "./commands/command.js";
import type { DecisionContext, Rule, Rules } from "./decision/context.js";
import { setLevel } from "./decision/level.js";
import { KV_RULES } from "./kv/kv.js";
import { forceUnlock } from "./locks/force-unlock.js";
import { HEIR_LIST_RULES } from "./locks/heirs.js";
import { LOCK_RULES, tryLock } from "./locks/locks.js";
import { META_RULES } from "./meta/meta.js";
import type { MetaContext } from "./meta/meta-context.js";
import { RANGE_RULES } from "./ranges/ranges.js";
import { updateSequence } from "./sequences/sequence-update.js";
import { SEQUENCE_RULES } from "./sequences/sequences.js";

/** What a decision in memory comes to. */
export type EphemeralOutcome = LockOutcome | KvOutcome | MovedOutcome;

/** Locks and key/value: the commands that ephemeral tables know too. */
const EPHEMERAL_RULES: Rules<LockCommand | KvCommand, EphemeralOutcome> = {
  ...LOCK_RULES,
  ...KV_RULES,
};

const RULES: Rules<Command, Outcome, MetaContext> = {
  ...EPHEMERAL_RULES,
  "force-unlock": forceUnlock,
  "lock-heir": tryLock,
  ...HEIR_LIST_RULES,
  ...RANGE_RULES,
  ...SEQUENCE_RULES,
  "update-sequence": updateSequence,
  ...META_RULES,
  "advance-clock": () => ({ kind: "done" }),
  collect: collectRows,
  "set-level": setLevel,
  // What the machine notes of it is no state.
  mark: () => ({ kind: "done" }),
};

export function applyEphemeral(
  context: DecisionContext,
  command: LockCommand | KvCommand,
): EphemeralOutcome {
  const rule: Rule<LockCommand | KvCommand, EphemeralOutcome> = EPHEMERAL_RULES[command.kind];
  return rule(context, command);
}

export function applyCommand(context: MetaContext, command: Command): Outcome {
  const rule: Rule<Command, Outcome, MetaContext> = RULES[command.kind];
  return rule(context, command);
}
