/**
 * What backup calls answer. Member names and texts are those of the REST interface.
 *
 * Invariants: 1. 64-bit numbers are bigint. 2. What does not apply is null.
 */

export interface BackupInfo {
  readonly backupId: string;
  readonly formatVersion: number;
  /** `Full` or `Incremental`. */
  readonly type: string;
  readonly createdAtUtc: string;
  readonly parentBackupId: string | null;
  readonly partitionCount: number;
  readonly clusterId: string | null;
  readonly coordinatorNode: string | null;
  /** The cut of a coordinated backup. */
  readonly clusterSnapshotNode: number | null;
  readonly clusterSnapshotPhysical: bigint | null;
  readonly clusterSnapshotCounter: number | null;
  readonly requestedKind: string | null;
  readonly actualKind: string | null;
  readonly substitutionReason: string | null;
  readonly isInvalid: boolean;
  readonly isIncomplete: boolean;
  readonly invalidReason: string | null;
  readonly minRecoverablePhysicalMs: bigint | null;
  readonly maxRecoverablePhysicalMs: bigint | null;
}

export interface BackupDeletion {
  readonly backupId: string;
  readonly type: string;
  readonly createdAtUtc: string;
  readonly bytes: bigint;
  readonly reason: string;
}

export interface BackupOrphan {
  readonly name: string;
  readonly isDirectory: boolean;
  readonly reason: string;
}

export interface BackupCollection {
  /** False for a dry run. */
  readonly applied: boolean;
  readonly bytesReclaimed: bigint;
  readonly retentionDeletions: readonly BackupDeletion[];
  readonly orphanReclamations: readonly BackupOrphan[];
}

export interface RestoreResult {
  readonly targetDir: string;
  readonly partitionsRestored: number;
  readonly entriesApplied: bigint;
  readonly lastAppliedPhysicalMs: bigint;
  readonly chain: readonly BackupInfo[];
  readonly minRecoverablePhysicalMs: bigint;
  readonly maxRecoverablePhysicalMs: bigint;
}
