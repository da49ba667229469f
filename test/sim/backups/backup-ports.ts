/**
 * What the operations of one life need for backups: the directory, who takes them, who restores, and
 * how far each has come.
 */
import type {
  BackupRequest,
  BackupTaken,
  BackupTaking,
} from "../../../src/host/backups/backup-taking.js";
import type { Node } from "../../../src/host/node.js";
import type { BackupRestoring, BackupWorld } from "../../../src/operations/api/backup-world.js";
import type { SignaturePort } from "../../../src/ports.js";
import type { Life } from "../world/process.js";
import type { BackupPlan } from "../plan/backup-plan.js";
import { DirectoryPort, type SharedDirectory } from "./shared-directory.js";

/** As every node of every cluster of a catalogue is configured. */
export const OF_BACKUPS = { clusterId: "simulated backups", storageRevision: "v1" } as const;

/** What nodes are doing about backups, as whoever looks from outside is told. */
export interface TakingWatch {
  /** A node enters a phase of taking one. */
  phase(node: number, request: BackupRequest, phase: string): void;
  /** It has ended. */
  taken(node: number, end: BackupTaken): void;
}

export interface BackupPortParts {
  readonly life: Life;
  readonly node: Node;
  readonly plan: BackupPlan;
  readonly backups: SharedDirectory;
  readonly signatures: SignaturePort;
  readonly restoring: BackupRestoring | null;
  readonly watch: TakingWatch;
}

export function backupPortsOf(parts: BackupPortParts): BackupWorld {
  const { life, node, plan, backups, signatures, restoring, watch } = parts;
  const archive = new DirectoryPort(backups, life);
  const taking = node.backupTaking({ archive, signatures, ...OF_BACKUPS });
  return {
    archive,
    signatures,
    retention: plan.retention,
    collectEveryMs: plan.collectEveryMs,
    taking: watched(taking, life.node, watch),
    restoring,
    witness: {
      ended: () => undefined,
      reclaimed: () => undefined,
      catalogueSeen: () => undefined,
    },
  };
}

function watched(taking: BackupTaking, node: number, watch: TakingWatch): BackupTaking {
  return {
    take(request, progress, done) {
      watch.phase(node, request, "beginning");
      return taking.take(
        request,
        (told) => {
          watch.phase(node, request, told.phase);
          progress(told);
        },
        (end) => {
          watch.taken(node, end);
          done(end);
        },
      );
    },
  };
}
