/**
 * The commands that a log entry carries and the outcomes that apply gives them: the vocabulary of
 * the state machine.
 *
 * Types only; `codec` files beside it turn them into versioned bytes. Invariants: 1. Everything
 * that can change an outcome (retention, default sizes) is inside the command: apply reads no flag.
 * 2. Names are well-formed text, already checked and trimmed at the border and checked again in
 * apply. 3. An outcome is data for exactly one command.
 */
import type { Hlc } from "../../base/hlc.js";
import type { Level } from "../../base/ids.js";
import type { MetaCommand, MetaOutcome } from "./meta-command.js";

export { KvType, LockType, SequenceType } from "../../base/result-types.js";

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

// Locks (persistent; ephemeral ones never enter the log) --------------------------------

export interface TryLockCommand {
  readonly kind: "try-lock";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
}
export interface TryExtendCommand {
  readonly kind: "try-extend";
  readonly resource: string;
  readonly owner: Uint8Array;
  readonly expiresMs: number;
}
export interface TryUnlockCommand {
  readonly kind: "try-unlock";
  readonly resource: string;
  readonly owner: Uint8Array;
}

export interface LockOutcome {
  readonly kind: "lock";
  readonly type: number;
  readonly token: bigint;
}

// Sequences --------------------------------

export interface CreateSequenceCommand {
  readonly kind: "create-sequence";
  readonly name: string;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
}
/**
 * Where the leader's open block stands: what it handed out last. Ignored unless incarnation and
 * revision are the record's.
 */
export interface BlockCursor {
  readonly incarnation: number;
  readonly revision: number;
  readonly lastHandedOut: bigint;
}
export interface UpdateSequenceCommand {
  readonly kind: "update-sequence";
  readonly name: string;
  readonly currentValue: bigint | null;
  readonly increment: bigint | null;
  readonly initialValue: bigint | null;
  readonly maxValue: bigint | null;
  readonly removeMaxValue: boolean;
  readonly blockSize: number | null;
  readonly removeBlockSize: boolean;
  readonly cursor: BlockCursor | null;
}
export interface DeleteSequenceCommand {
  readonly kind: "delete-sequence";
  readonly name: string;
}
/**
 * A keyed next or reserve (`key` not null), or one that is durable by itself. Ends the open block.
 */
export interface AllocateCommand {
  readonly kind: "allocate";
  readonly name: string;
  readonly count: number;
  readonly key: string | null;
  readonly cursor: BlockCursor | null;
  readonly keysRetainedMax: number;
  readonly keysRetainedMs: number;
}
/**
 * Reserves a block: max(block size, count) values clamped to maxValue and int64, at least `count`
 * or nothing. The block size is the sequence's own or else `defaultBlockSize`. With a valid cursor
 * the unused rest of the old block goes back first.
 */
export interface ReserveBlockCommand {
  readonly kind: "reserve-block";
  readonly name: string;
  readonly count: number;
  readonly defaultBlockSize: number;
  readonly cursor: BlockCursor | null;
}
/**
 * Hands back the unused rest of a block (graceful stop, transfer). No outcome but success or "not
 * the block".
 */
export interface ReturnBlockCommand {
  readonly kind: "return-block";
  readonly name: string;
  readonly cursor: BlockCursor;
}

/**
 * A sequence as it stands in the state; `currentValue` is the end of everything reserved so far.
 */
export interface SequenceRecord {
  readonly name: string;
  readonly currentValue: bigint;
  readonly initialValue: bigint;
  readonly increment: bigint;
  readonly maxValue: bigint | null;
  readonly blockSize: number | null;
  readonly incarnation: number;
  readonly revision: number;
  readonly createdAt: Hlc;
  readonly updatedAt: Hlc;
}
export interface SequenceOutcome {
  readonly kind: "sequence";
  readonly type: number;
  /** After create and update; null otherwise. */
  readonly record: SequenceRecord | null;
}
export interface AllocationOutcome {
  readonly kind: "allocation";
  readonly type: number;
  /**
   * Valid on success. `before` is the value below the first of the range: start = before +
   * increment.
   */
  readonly before: bigint;
  readonly increment: bigint;
  /** Values allocated or reserved: for a block it may exceed what was asked. */
  readonly count: number;
  readonly incarnation: number;
  readonly revision: number;
}

// Key/value (persistent; ephemeral entries never enter the log) --------------------------------

export const KvFlag = {
  set: 1,
  noRevision: 2,
  ifExists: 4,
  ifNotExists: 8,
  ifEqualToValue: 16,
  ifEqualToRevision: 32,
} as const;

export interface KvSetCommand {
  readonly kind: "kv-set";
  readonly key: string;
  /** null = exists and holds nothing. */
  readonly value: Uint8Array | null;
  readonly compareValue: Uint8Array | null;
  readonly compareRevision: bigint;
  readonly flags: number;
  /** 0 = no lease. */
  readonly expiresMs: number;
  readonly revisionsRetained: number;
}
export interface KvExtendCommand {
  readonly kind: "kv-extend";
  readonly key: string;
  readonly expiresMs: number;
}
export interface KvDeleteCommand {
  readonly kind: "kv-delete";
  readonly key: string;
  readonly revisionsRetained: number;
}

export const KvState = { undefined: 0, set: 1, deleted: 2 } as const;

export interface KvOutcome {
  readonly kind: "kv";
  readonly type: number;
  readonly revision: number;
  readonly lastModified: Hlc;
}

// The group itself --------------------------------

/** Advances the lease clock and nothing else: makes an expiry visible to a read. */
export interface AdvanceClockCommand {
  readonly kind: "advance-clock";
}
/**
 * Drops up to `limit` rows that are past their retention by lease time: idle lock records (raising
 * the token floor), tombstones, idempotency entries. A resumable slice: the outcome says where to
 * go on.
 */
export interface CollectCommand {
  readonly kind: "collect";
  readonly after: Uint8Array | null;
  readonly limit: number;
  readonly lockRetentionMs: number;
  /** 0 = keep for ever. */
  readonly tombstoneRetentionMs: number;
}
export interface CollectOutcome {
  readonly kind: "collected";
  readonly dropped: number;
  readonly next: Uint8Array | null;
}
export interface DoneOutcome {
  readonly kind: "done";
}
/** Raises the level of the group in whose log it is; it never falls. */
export interface SetLevelCommand {
  readonly kind: "set-level";
  readonly level: Level;
}
export interface LevelOutcome {
  readonly kind: "level";
  /** "unchanged": the group is at this level, or above. */
  readonly status: "done" | "unchanged" | "invalid";
  /** Of the group, after the command. */
  readonly level: Level;
}

// Meta partition --------------------------------

export type * from "./meta-command.js";

export type LockCommand = TryLockCommand | TryExtendCommand | TryUnlockCommand;
export type SequenceCommand =
  | CreateSequenceCommand
  | UpdateSequenceCommand
  | DeleteSequenceCommand
  | AllocateCommand
  | ReserveBlockCommand
  | ReturnBlockCommand;
export type KvCommand = KvSetCommand | KvExtendCommand | KvDeleteCommand;
export type Command =
  | LockCommand
  | SequenceCommand
  | KvCommand
  | MetaCommand
  | AdvanceClockCommand
  | CollectCommand
  | SetLevelCommand;
export type Outcome =
  | LockOutcome
  | SequenceOutcome
  | AllocationOutcome
  | KvOutcome
  | MetaOutcome
  | CollectOutcome
  | LevelOutcome
  | DoneOutcome;
