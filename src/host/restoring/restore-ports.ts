/**
 * What a restore touches: the directory of backups, the one below which it writes, and the state
 * stores that it makes there.
 *
 * Types only. Invariant: everything that a restore leaves goes through these, so that the same code
 * runs in a process of its own and in a simulated world.
 */
import type { Program } from "../../base/levels.js";
import type { Result } from "../../base/result.js";
import type { EntrySorter } from "../../machine/store/row-table.js";
import type {
  ArchivePort,
  ClockPort,
  EntropyPort,
  LoggerPort,
  SignaturePort,
  StorePort,
  TimerPort,
} from "../../ports.js";

/** State stores of storage directories that are being made. Paths are below the restore root. */
export interface RestoreStores {
  /** The state store in an existing directory: a new one when the directory is empty. */
  open(path: string, done: (result: Result<StorePort, "IoError">) => void): void;
  /** Notes in the directory of a storage revision what level its rows may be of; durable. */
  noteLevel(path: string, level: number, done: (result: Result<null, "IoError">) => void): void;
}

export interface RestorePorts {
  readonly backups: ArchivePort;
  readonly signatures: SignaturePort;
  /** Its root is the restore root. */
  readonly targets: ArchivePort;
  readonly stores: RestoreStores;
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
  readonly sorter?: EntrySorter;
  /** Told before anything is made: what is to be removed if the restore dies with its process. */
  readonly staged?: (staged: StagedRestore) => void;
}

/** Paths below the restore root. */
export interface StagedRestore {
  readonly staging: string;
  readonly target: string;
  /** The file that names the cluster, below either of them. */
  readonly mark: string;
  readonly clusterId: string;
}

export interface RestoreSettings {
  /** Absolute and normal: below it restores may write, and `targets` has it as root. */
  readonly restoreRoot: string;
  /** The same directory with every link on the way to it resolved. */
  readonly realRestoreRoot: string;
  /**
   * Directories that no target may overlap, as they are configured and with links resolved: of
   * backups, of the state and of the log of the node that runs.
   */
  readonly occupied: readonly string[];
  readonly program: Program;
  /** Who restores, for claims and logs. */
  readonly nodeName: string;
}
