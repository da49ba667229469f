/**
 * Taking a backup, as whoever asks a node for one sees it (`Node.backupTaking`); types only.
 *
 * Invariants: 1. `done` comes exactly once, in no turn of a call, also after `cancel`. 2. What ends
 * in a fault has published nothing, and its files are removed as far as the system lets. 3. How
 * many are taken at a time is for whoever asks to bound.
 */
import type { Manifest } from "../../backup/manifest.js";
import type { ArchivePort, SignaturePort } from "../../ports.js";

export type BackupRequest =
  | { readonly kind: "full" | "coordinated" }
  /** `parentId`: 32 hexadecimal digits. */
  | { readonly kind: "incremental"; readonly parentId: string };

/** What is being done; in this order, and back to "images" where a replica was lost. */
export type BackupPhase =
  "beginning" | "holding" | "images" | "marks" | "logs" | "checking" | "publishing";

export interface BackupProgress {
  readonly phase: BackupPhase;
  /** Partitions that the phase is through with. */
  readonly partitionsDone: number;
  readonly partitions: number;
  /** Bytes of artifacts written so far, those of given up ones included. */
  readonly bytes: number;
}

/** Why a Full was taken where an Incremental was asked for. */
export type SubstitutionReason = "ParentLogCompacted" | "TopologyChangedSinceParent";

/** Outcomes of contract 7.6 that taking may have. */
export type TakingFaultCode =
  | "ParentMissing"
  | "NeedsFull"
  | "CorruptChain"
  | "CorruptArtifact"
  | "UnsupportedFormat"
  | "InsecureRoot"
  | "IoError"
  | "Cancelled"
  | "ExactCheckpointUnavailable"
  | "TopologyChanged"
  | "RetryableLeadershipLoss"
  | "NotBackupCoordinator"
  | "RestrictedCoverage";

export interface TakingFault {
  readonly ok: false;
  readonly code: TakingFaultCode;
  /** One sentence, or several; without the id of an operation. */
  readonly message: string;
  /** NotBackupCoordinator: who leads the meta partition; null: nobody knows, or another fault. */
  readonly leader: {
    readonly nodeId: number;
    /** Advertised peer endpoint, and base URL for clients; "" while unknown. */
    readonly endpoint: string;
    readonly clientEndpoint: string;
  } | null;
}

export interface TakenBackup {
  readonly ok: true;
  /** As published. */
  readonly manifest: Manifest;
  readonly requestedKind: "Full" | "Incremental";
  readonly actualKind: "Full" | "Incremental";
  readonly substitutionReason: SubstitutionReason | null;
}

export type BackupTaken = TakenBackup | TakingFault;

/** Where backups go, and of what they say that they are. */
export interface BackupCatalogue {
  readonly archive: ArchivePort;
  readonly signatures: SignaturePort;
  /** As configured; the same on all nodes. */
  readonly clusterId: string;
  readonly storageRevision: string;
}

export interface BackupTaking {
  /** `progress` is told of changes, a few times a second at most. */
  take(
    request: BackupRequest,
    progress: (progress: BackupProgress) => void,
    done: (end: BackupTaken) => void,
  ): {
    /** Ends it with Cancelled, unless it is being published. Safe to call again. */
    cancel(): void;
  };
}
