/**
 * Every way in which the program touches the world, as types only. The real ones live in `disk/`,
 * `net/` and `sys.ts`; the false ones belong to tests and the simulator. One conformance suite per
 * port runs against both.
 *
 * Invariants: 1. A callback is never called in the turn of the call that took it, and exactly once.
 * 2. Bytes are immutable once handed to a port. 3. No port decides anything. 4. Promises do not
 * appear here.
 */
import type { PartitionId } from "./base/ids.js";
import type { Result } from "./base/result.js";
import type { JoinAnswer, JoinRequest, PeerIdentity } from "./peerports.js";

export type * from "./archiveports.js";
export type * from "./peerports.js";

// Time --------------------------------------------------------------------------------------------

export interface ClockPort {
  /** Milliseconds since an arbitrary start, with fractions; never goes back. */
  monotonicMs(): number;
  /** Unix milliseconds; may jump. Informative stamps only. */
  wallMs(): number;
}

export interface TimerHandle {
  cancel(): void;
}

export interface TimerPort {
  /**
   * Calls `callback` once, `delayMs` from now or later. Delays beyond the platform's maximum are
   * sliced inside.
   */
  after(delayMs: number, callback: () => void): TimerHandle;
  /** Calls `callback` once, after the current turn and before new input is read. */
  soon(callback: () => void): void;
}

// The write-ahead log of a node -------------------------------------------------------------------

export interface HardState {
  readonly term: number;
  /** Node voted for in `term`, 0 = none. */
  readonly vote: number;
  readonly commit: number;
}

export interface LogPosition {
  readonly term: number;
  readonly index: number;
}

/** 0 = normal entry; the numbers are the core's entry kinds and are stored as they are. */
export type EntryKindNumber = number;

export interface LogEntry {
  readonly index: number;
  readonly term: number;
  readonly kind: EntryKindNumber;
  readonly payload: Uint8Array;
}

/** From `firstIndex` on, entries have `term`, until the next run. */
export interface TermRun {
  readonly term: number;
  readonly firstIndex: number;
}

/**
 * Entries from `firstIndex` on, until the next run, have payloads of `sizeBytes` together: at most
 * SIZE_RUN_MAX_BYTES, unless it is a single entry.
 */
export interface SizeRun {
  readonly firstIndex: number;
  readonly sizeBytes: number;
}

/** What the log knows of one group after recovery. */
export interface RecoveredGroupLog {
  readonly group: PartitionId;
  readonly hardState: HardState;
  /**
   * Position just below the first entry; its term is known although its entry is gone. (0, 0) at
   * first.
   */
  readonly floor: LogPosition;
  /** Equals floor.index when there are no entries. */
  readonly lastIndex: number;
  readonly termRuns: readonly TermRun[];
  /** Indexes above the floor whose entry kind is not 0, with the kind, ascending. */
  readonly specialEntries: readonly { readonly index: number; readonly kind: EntryKindNumber }[];
  /** Payload sizes of all entries above the floor, ascending; empty when there are none. */
  readonly sizeRuns: readonly SizeRun[];
}

/** One write of one group: everything in it becomes durable together. */
export interface LogWrite {
  readonly group: PartitionId;
  /** Term, vote and commit, written as one record before the entries; null = unchanged. */
  readonly hardState: HardState | null;
  /** Contiguous. The first voids every earlier-written entry of the group at or above its index. */
  readonly entries: readonly LogEntry[];
  /**
   * Called when the write is durable. The log never fails a write and goes on: a failing disk ends
   * the process through FatalPort, and a full one parks the write until there is space.
   */
  readonly done: () => void;
}

export type LogSpace = "available" | "full";

export interface LogPort {
  /**
   * Snapshots of all groups that recovery found, as it found them, but for those that were
   * forgotten since: a group that comes back begins anew.
   */
  recovered(): ReadonlyMap<PartitionId, RecoveredGroupLog>;
  /** Queues a write. Writes of all groups share the next disk write; order is kept. */
  write(write: LogWrite): void;
  /**
   * The entries first..last of a group, or as many from `first` on as fit `maxBytes` (at least
   * one). `done` gets "compacted" when `first` is at or below the floor. Entries are read from the
   * disk, after they are durable; what lies above the last index is left out, so that the answer
   * may be empty when entries were voided meanwhile.
   */
  read(
    group: PartitionId,
    first: number,
    last: number,
    maxBytes: number,
    done: (result: Result<readonly LogEntry[], "compacted">) => void,
  ): void;
  /**
   * Raises the floor of a group: entries at or below `floor.index` are no longer needed by anyone,
   * because a durable flush of the state store (or a snapshot) covers them. Segments that no group
   * needs are deleted.
   */
  raiseFloor(group: PartitionId, floor: LogPosition): void;
  /**
   * Replaces all entries of a group by a floor (an installed snapshot). Durable when `done` is
   * called.
   */
  resetGroup(group: PartitionId, floor: LogPosition, hardState: HardState, done: () => void): void;
  /** Voids everything about a group that left this node for good. Durable when `done` is called. */
  forgetGroup(group: PartitionId, done: () => void): void;
  /** "full": new proposals are to be refused as overload; reads go on. */
  space(): LogSpace;
  /** Bytes of all segments now on disk. */
  sizeBytes(): number;
  /**
   * The groups whose oldest needed entry pins the oldest segments, most urgent first, when the log
   * is larger than it should be: the host flushes (and then raises the floors of) these.
   */
  pinningGroups(): readonly PartitionId[];
  /** Ends after what is queued is durable. */
  close(done: () => void): void;
}

/** The disk of the log. */
export interface DiskPort {
  /** What is free on it, as it was asked last; Infinity while that is not known. */
  freeBytes(): number;
  /** So little is free, of the log's volume or the state's, that no writes are to be taken. */
  isShort(): boolean;
}

// Files, for the log ------------------------------------------------------------------------------

/**
 * "no-space": the disk or the quota is full. "no-descriptors": the process or the system may open
 * no further file now. "failed": anything else, an input/output error first of all.
 */
export type FileErrorCode = "no-space" | "no-descriptors" | "missing" | "exists" | "failed";

/** An open file. Only the port that made it looks inside. */
export interface OpenFile {
  readonly path: string;
}

export interface FileListing {
  readonly name: string;
  readonly sizeBytes: number;
}

/** Paths are joined with "/". A result's message names the path and what the system said. */
export interface FilesPort {
  /**
   * "read": reads only. "durable": reads, and writes that are durable when their callback comes.
   */
  open(
    path: string,
    access: "read" | "durable",
    done: (result: Result<OpenFile, FileErrorCode>) => void,
  ): void;
  /**
   * Makes a new file of `sizeBytes`: `head` and then zeros, all of it really allocated, and synced.
   * Its directory entry is durable only after syncDirectory. Nothing is left behind on failure.
   */
  allocate(
    path: string,
    sizeBytes: number,
    head: Uint8Array,
    done: (result: Result<null, FileErrorCode>) => void,
  ): void;
  /**
   * Fills `target` from `offset` on; the value is the number of bytes read, less than asked only at
   * the file's end.
   */
  read(
    file: OpenFile,
    offset: number,
    target: Uint8Array,
    done: (result: Result<number, FileErrorCode>) => void,
  ): void;
  /** Writes all of `bytes` at `offset`. `bytes` must not change until `done`. */
  write(
    file: OpenFile,
    offset: number,
    bytes: Uint8Array,
    done: (result: Result<null, FileErrorCode>) => void,
  ): void;
  /** Makes durable what was written, whoever wrote it. */
  sync(file: OpenFile, done: (result: Result<null, FileErrorCode>) => void): void;
  truncate(
    file: OpenFile,
    sizeBytes: number,
    done: (result: Result<null, FileErrorCode>) => void,
  ): void;
  close(file: OpenFile, done: (result: Result<null, FileErrorCode>) => void): void;
  rename(from: string, to: string, done: (result: Result<null, FileErrorCode>) => void): void;
  remove(path: string, done: (result: Result<null, FileErrorCode>) => void): void;
  /** The plain files of a directory, in no order. */
  list(path: string, done: (result: Result<readonly FileListing[], FileErrorCode>) => void): void;
  /** Makes the directory's entries durable. */
  syncDirectory(path: string, done: (result: Result<null, FileErrorCode>) => void): void;
}

/** The highest level that anything in log or state store of this node may be of. */
export interface LevelPort {
  /** As it is durable. */
  readonly level: number;
  /**
   * Makes a higher one durable. Once at a time. "failed": the system refused for good; anything
   * else passes.
   */
  raise(level: number, done: (result: Result<null, FileErrorCode>) => void): void;
}

// The state store ---------------------------------------------------------------------------------

/**
 * `value` null deletes. Keys are 1 to STORE_KEY_MAX_BYTES bytes of any content; order is byte
 * order.
 */
export interface StoreChange {
  readonly key: Uint8Array;
  readonly value: Uint8Array | null;
}

export interface StorePort {
  /** The durable value of `key`, copied; null when absent. */
  get(key: Uint8Array): Uint8Array | null;
  /**
   * Visits the durable rows with first ≤ key < last (null: to the end) in byte order until `visit`
   * returns false. Key and value are copies. `keysOnly`: the values need not be read, nor be the
   * rows'.
   */
  scan(
    first: Uint8Array,
    last: Uint8Array | null,
    visit: (key: Uint8Array, value: Uint8Array) => boolean,
    keysOnly?: boolean,
  ): void;
  /**
   * Writes all changes in one durable transaction, off the caller's thread. One at a time
   * (asserted). `changes` is sorted by key without repeats. "full": nothing was written, the caller
   * may try again.
   */
  write(changes: readonly StoreChange[], done: (result: Result<null, "full">) => void): void;
  /** Bytes of the store's file that are in use. */
  sizeBytes(): number;
  close(done: () => void): void;
}

/** Row keys: a group and kind prefix, a name of at most 1,024 bytes twice over, and a revision. */
export const STORE_KEY_MAX_BYTES = 2304;

// Everything else ---------------------------------------------------------------------------------

export interface EntropyPort {
  /** A random 32-bit unsigned integer: seeds, ids. */
  uint32(): number;
}

export type LogLevel = "debug" | "info" | "warn" | "error";
/** What every line of the log has; nothing else may have these names. */
type LineMember = "time" | "level" | "name" | "msg";
export type LogFields = Readonly<Record<string, string | number | boolean | null>> & {
  readonly [Taken in LineMember]?: never;
};

export interface LoggerPort {
  /** `event`: a fixed sentence. No secrets and no payloads in `fields`. */
  log(level: LogLevel, event: string, fields?: LogFields): void;
  /** False: lines of level "debug" go nowhere, and need not be made. Absent: they may be wanted. */
  readonly wantsDebug?: boolean;
}

export interface FatalPort {
  /**
   * Ends the process, at once, with the exit code of a fatal fault. Never returns in production.
   */
  fatal(reason: string, fields?: LogFields): void;
}

/**
 * Measurements that the lower tower hands out; counters that can be read as numbers are read
 * instead.
 */
export interface MeterPort {
  batchEntries(commands: number): void;
  logSyncMs(durationMs: number, records: number, bytes: number): void;
  commitMs(durationMs: number): void;
  flushMs(durationMs: number, rows: number): void;
  lockGranted(): void;
  /** Leases of locks were found to have ended without a release. */
  locksLapsed(count: number): void;
  sequenceValues(count: number): void;
  leaderChanged(group: PartitionId): void;
  /** A candidacy of this node ended. */
  electionEnded(isWon: boolean): void;
  /** Entries of one group were applied in a turn. */
  applyMs(durationMs: number): void;
  /** A round was begun that proves leadership for so many reads. */
  readRound(reads: number): void;
  /** A block of a sequence was reserved, or what was left of it given back. */
  sequenceBlock(how: "reserved" | "returned"): void;
  /** A replica was found to differ from its leader's; kept on return, for the process ends. */
  replicaDigestMismatch(partition: PartitionId, index: number): void;
  /** The wall clock was further ahead than a stamp may jump. */
  stampHeldBack(): void;
}

/** How busy the process is, over the last seconds; measured beside the tower. */
export interface LoadPort {
  /** 99th percentile of how late the event loop comes back (ms). */
  loopLagP99Ms(): number;
  /** 99th percentile of the durable writes of the log (ms). */
  logSyncP99Ms(): number;
  /** Data requests that ended, and those of them that failed. */
  requestsPerSecond(): number;
  failedPerSecond(): number;
}

/** A question that is on its way. */
export interface Question {
  /** No answer is wanted any more: none comes. */
  cancel(): void;
}

/** Single questions to whoever listens at an endpoint, of a node that belongs to no cluster yet. */
export interface AskPort {
  /** Who is there? `done` is called once, in a turn of its own; the failure says why. */
  identify(endpoint: string, done: (answer: Result<PeerIdentity, "no-answer">) => void): Question;
  /** May this node join? As `identify`. */
  join(
    endpoint: string,
    request: JoinRequest,
    done: (answer: Result<JoinAnswer, "no-answer">) => void,
  ): Question;
}
