/**
 * Backups, their catalogue, and restore.
 *
 * Invariants: 1. A refusal is a BackupError with its named outcome. 2. No deadline unless one is
 * given.
 */
import type {
  BACKUP_COLLECTION,
  BACKUP_DELETION,
  BACKUP_INFO,
  BACKUP_ORPHAN,
  RESTORED,
  RUNNING_BACKUP,
} from "../../api/backups.js";
import type { ReadOf } from "../../api/members.js";
import { CALL_OPERATIONS } from "../metadata/calls.js";
import { flagOf, optionsOf, textOf } from "../values/arguments.js";
import { int64Of, type Int64Input } from "../values/numbers.js";
import type { Caller } from "../call/operation.js";
import type { CallOptions } from "../values/options.js";

export type BackupInfo = ReadOf<typeof BACKUP_INFO>;
export type BackupDeletion = ReadOf<typeof BACKUP_DELETION>;
export type BackupOrphan = ReadOf<typeof BACKUP_ORPHAN>;
export type BackupCollection = ReadOf<typeof BACKUP_COLLECTION>;
export type RestoreResult = ReadOf<typeof RESTORED>;
/** Something that a node does with backups now, and how far it has come. */
export type RunningBackup = ReadOf<typeof RUNNING_BACKUP>;

/** Options of `restore`. */
export interface RestoreOptions extends CallOptions {
  /** Unix ms to restore to; 0 or omitted = the end of the chain. */
  readonly targetTimeMs?: Int64Input | undefined;
  /** Moves every sequence on by so many increments; 0 or omitted = by none. */
  readonly sequenceSkip?: Int64Input | undefined;
}

function unhurried(options: CallOptions = {}): CallOptions {
  const { deadlineMs = Number.POSITIVE_INFINITY } = optionsOf(options);
  return { ...options, deadlineMs };
}

/**
 * Backup administration. Calls reject with BackupError (`backupOutcome` names why); they have no
 * deadline unless one is given, and what writes is not repeated after a lost answer.
 *
 * @example
 * try {
 *   const backup = await client.backups.full();
 * } catch (error) {
 *   if (error instanceof BackupError) console.error(error.backupOutcome);
 * }
 */
export class BackupsAdmin {
  private readonly caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.caller = caller;
  }

  /**
   * Takes a full backup through the contacted node.
   *
   * @example
   * const { backupId } = await client.backups.full();
   */
  async full(options?: CallOptions): Promise<BackupInfo> {
    return this.caller.call(CALL_OPERATIONS["backups.full"], {}, unhurried(options));
  }

  /**
   * Takes a full backup of one instant of the whole cluster.
   *
   * @example
   * const { clusterSnapshotPhysical } = await client.backups.coordinated();
   */
  async coordinated(options?: CallOptions): Promise<BackupInfo> {
    return this.caller.call(CALL_OPERATIONS["backups.coordinated"], {}, unhurried(options));
  }

  /**
   * Takes what changed since `parentBackupId`; a full backup when that is gone
   * (`substitutionReason`).
   *
   * @example
   * const { actualKind } = await client.backups.incremental(parent.backupId);
   */
  async incremental(parentBackupId: string, options?: CallOptions): Promise<BackupInfo> {
    const request = { parentBackupId: textOf("parentBackupId", parentBackupId) };
    return this.caller.call(CALL_OPERATIONS["backups.incremental"], request, unhurried(options));
  }

  /**
   * The catalogue, oldest first.
   *
   * @example
   * for (const backup of await client.backups.list()) console.log(backup.backupId);
   */
  async list(options?: CallOptions): Promise<readonly BackupInfo[]> {
    return this.caller.call(CALL_OPERATIONS["backups.list"], {}, unhurried(options));
  }

  /**
   * What the contacted node does with backups now: one backup, restore or collection, and whatever
   * reads the catalogue.
   *
   * @example
   * for (const { kind, partitionsDone } of await client.backups.running()) console.log(kind);
   */
  async running(options?: CallOptions): Promise<readonly RunningBackup[]> {
    return this.caller.call(CALL_OPERATIONS["backups.running"], {}, unhurried(options));
  }

  /**
   * The chain that ends in `leafBackupId`, root first.
   *
   * @example
   * const chain = await client.backups.chain(leaf);
   */
  async chain(leafBackupId: string, options?: CallOptions): Promise<readonly BackupInfo[]> {
    return this.caller.call(
      CALL_OPERATIONS["backups.chain"],
      { leafBackupId: textOf("leafBackupId", leafBackupId) },
      unhurried(options),
    );
  }

  /**
   * As `chain`, after verifying every artifact.
   *
   * @example
   * await client.backups.validateChain(leaf);
   */
  async validateChain(leafBackupId: string, options?: CallOptions): Promise<readonly BackupInfo[]> {
    return this.caller.call(
      CALL_OPERATIONS["backups.validateChain"],
      { leafBackupId: textOf("leafBackupId", leafBackupId) },
      unhurried(options),
    );
  }

  /**
   * Removes what retention and orphan rules give up; with `dryRun` only says what it would remove.
   *
   * @example
   * const { bytesReclaimed } = await client.backups.collectGarbage({ dryRun: true });
   */
  async collectGarbage(
    options: CallOptions & { readonly dryRun?: boolean | undefined } = {},
  ): Promise<BackupCollection> {
    const request = { dryRun: flagOf("dryRun", optionsOf(options).dryRun, false) };
    return this.caller.call(CALL_OPERATIONS["backups.collectGarbage"], request, unhurried(options));
  }

  /**
   * Writes a new storage directory on the server from a chain.
   *
   * @example
   * const { targetDir } = await client.backups.restore(leaf, "/var/lib/svc/restored");
   */
  async restore(
    leafBackupId: string,
    targetDir: string,
    options: RestoreOptions = {},
  ): Promise<RestoreResult> {
    const { targetTimeMs = 0n, sequenceSkip = 0n } = optionsOf(options);
    const request = {
      leafBackupId: textOf("leafBackupId", leafBackupId),
      targetDir: textOf("targetDir", targetDir),
      targetTimeMs: int64Of("targetTimeMs", targetTimeMs),
      sequenceSkip: int64Of("sequenceSkip", sequenceSkip),
    };
    return this.caller.call(CALL_OPERATIONS["backups.restore"], request, unhurried(options));
  }
}
