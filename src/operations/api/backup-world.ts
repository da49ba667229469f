/**
 * What the backup calls need beside the node: the catalogue, who takes backups and who restores
 * them, and who hears what came of it. Types only.
 *
 * Invariants: 1. `done` comes exactly once, also after `cancel`, and never in the turn of the call.
 * 2. A failure has an outcome of the contract, and is told without paths above the catalogue.
 */
import type { BackupOutcome } from "../../api/backups.js";
import type { RetentionRules } from "../../backup/gc-plan.js";
import type { RestoreEnd, RestoreRequest } from "../../host/restoring/restore-types.js";
import type { BackupTaking } from "../../host/backups/backup-taking.js";
import type { ArchivePort, LogFields, SignaturePort } from "../../ports.js";

export type FailedOutcome = Exclude<BackupOutcome, "Ok">;

/** How far a backup or a restore has come. */
export interface BackupProgress {
  /** A word for what is being done. */
  readonly phase: string;
  readonly partitionsDone: number;
  /** 0: not known yet. */
  readonly partitionsTotal: number;
  readonly bytesDone: number;
  /** 0: not known. */
  readonly bytesTotal: number;
}

/** Something that goes on until it is done or cancelled; then it ends in Cancelled. */
export interface BackupRun {
  cancel(): void;
}

/** Restores backups into new directories of this node, one at a time. */
export interface BackupRestoring {
  restore(
    request: RestoreRequest,
    operation: string,
    progress: (progress: BackupProgress) => void,
    done: (end: RestoreEnd) => void,
  ): BackupRun;
}

/** What an operation was, as metrics count it and the audit log tells it. */
export interface BackupEvent {
  readonly kind: "full" | "coordinated" | "incremental" | "restore" | "gc";
  /** Of contract 7.6. */
  readonly outcome: BackupOutcome;
  /** False: the node did it by itself. */
  readonly wasAsked: boolean;
  readonly fields: LogFields;
}

export interface BackupWitness {
  ended(event: BackupEvent): void;
  /** Bytes that a pass of the collection took away. */
  reclaimed(sizeBytes: number): void;
  /** Backups in the catalogue that cannot be used, when it was read last. */
  catalogueSeen(invalid: number): void;
}

export interface BackupWorld {
  /** null: no directory of backups is configured. */
  readonly archive: ArchivePort | null;
  readonly signatures: SignaturePort;
  readonly retention: RetentionRules;
  /** Pause between two passes of the collection on the leader of meta (ms); 0 = none. */
  readonly collectEveryMs: number;
  readonly taking: BackupTaking | null;
  /** null: no restore root is configured. */
  readonly restoring: BackupRestoring | null;
  readonly witness: BackupWitness;
}
