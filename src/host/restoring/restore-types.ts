/**
 * What a restore is asked for, how far it is, and what came of it.
 *
 * Types only; plain data, so that it crosses processes.
 */
import type { BackupFaultCode } from "../../backup/faults.js";
import type { Manifest } from "../../backup/manifest.js";
import type { Result } from "../../base/result.js";

export interface RestoreRequest {
  /** 32 hexadecimal digits: the newest backup of the chain. */
  readonly leafId: string;
  /** As the caller wrote it; not empty. */
  readonly targetDir: string;
  /** Unix milliseconds; 0 = the end of the chain. */
  readonly targetTimeMs: number;
  /** Increments by which every sequence moves on, at least 0. */
  readonly sequenceSkip: bigint;
}

export interface RestoreProgress {
  readonly phase: "verifying" | "replaying" | "lifting" | "publishing";
  readonly partitionsDone: number;
  readonly partitionsTotal: number;
  /** Of artifacts, read in this phase and in all. */
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly bytesPerSecond: number;
  /** Of this phase; null while it cannot be told. */
  readonly timeLeftMs: number | null;
}

/** Names of outcomes of contract 7.6. */
export type RestoreFaultCode = BackupFaultCode | "TargetConflict" | "TargetOutsideCoverage";

export interface Restored {
  readonly targetDir: string;
  /** The meta partition included. */
  readonly partitionsRestored: number;
  /** Entries of logs that were replayed. */
  readonly entriesApplied: number;
  /** Largest stamp that was applied. */
  readonly lastAppliedPhysicalMs: number;
  /** Root first. */
  readonly chain: readonly Manifest[];
  readonly minRecoverablePhysicalMs: number;
  readonly maxRecoverablePhysicalMs: number;
  /** Sequences whose reserved end at the chain's end lies above the one at the target: the first. */
  readonly sequencesAhead: readonly string[];
  /** How many there are in all. */
  readonly sequencesAheadCount: number;
}

export type RestoreEnd = Result<Restored, RestoreFaultCode>;
