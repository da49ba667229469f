/**
 * The commands that a log entry carries and the outcomes that apply gives them: the vocabulary of
 * the state machine.
 *
 * One file for each family of commands: types, and the codecs that turn them into versioned bytes.
 * Invariants: 1. Everything that can change an outcome (retention, default sizes) is inside the
 * command: apply reads no flag. 2. Names are well-formed text, already checked and trimmed at the
 * border and checked again in apply. 3. An outcome is data for exactly one command.
 */
import type { Hlc } from "../../base/hlc.js";
import type { CollectOutcome, DoneOutcome, GroupCommand, LevelOutcome } from "./group-commands.js";
import type { HeirCommand, HeirsOutcome } from "./heir-commands.js";
import type { KvCommand, KvOutcome, MovedOutcome } from "./kv-commands.js";
import type {
  ForcedOutcome,
  ForceUnlockCommand,
  LockCommand,
  LockOutcome,
} from "./lock-commands.js";
import type { MetaCommand, MetaOutcome } from "./meta-command.js";
import type { RangeCommand, RangeOutcome } from "./range-commands.js";
import type { AllocationOutcome, SequenceCommand, SequenceOutcome } from "./sequence-commands.js";

export { KvType, LockType, SequenceType } from "../../base/result-types.js";
export * from "./group-commands.js";
export * from "./heir-commands.js";
export * from "./kv-commands.js";
export * from "./lock-commands.js";
export type * from "./meta-command.js";
export type * from "./placement-commands.js";
export * from "./range-commands.js";
export type * from "./range-meta-commands.js";
export * from "./sequence-commands.js";

/** What every command of one log entry shares; set by the leader when the batch is cut. */
export interface EntryStamp {
  /** Lease clock of the group (ms), never below that of the entry before. */
  readonly leaseMs: number;
  readonly stamp: Hlc;
}

/** Where an entry stands in the group's log. */
export interface EntryPosition {
  readonly index: number;
  readonly term: number;
}

/** Position and stamp of a normal entry. */
export interface AppliedEntry extends EntryPosition, EntryStamp {}

export type Command =
  | LockCommand
  | HeirCommand
  | ForceUnlockCommand
  | SequenceCommand
  | KvCommand
  | RangeCommand
  | MetaCommand
  | GroupCommand;
export type Outcome =
  | LockOutcome
  | HeirsOutcome
  | ForcedOutcome
  | SequenceOutcome
  | AllocationOutcome
  | KvOutcome
  | MovedOutcome
  | RangeOutcome
  | MetaOutcome
  | CollectOutcome
  | LevelOutcome
  | DoneOutcome;
