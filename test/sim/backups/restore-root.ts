/**
 * Where clusters are restored to: a directory that all machines reach, with the state stores that
 * restores make in it, and the restoring of one life.
 *
 * Invariants: 1. What a restore does is what ships; only its ports are false. 2. A store belongs to
 * the directory that it was made in, under whatever name that is found.
 */
import { ok } from "../../../src/base/result.js";
import { PROGRAM } from "../../../src/base/levels.js";
import type { RestorePorts, RestoreStores } from "../../../src/host/restoring/restore-ports.js";
import { Restore } from "../../../src/host/restoring/restore.js";
import type { RestoreRequest } from "../../../src/host/restoring/restore-types.js";
import {
  type RestoredMark,
  RESTORED_NAME,
  decodeRestoredMark,
} from "../../../src/host/restoring/restored-mark.js";
import { KernelSorter } from "../../../src/machine/store/kernel-sorter.js";
import type { BackupRestoring } from "../../../src/operations/api/backup-world.js";
import type { LoggerPort, SignaturePort } from "../../../src/ports.js";
import { SimRows } from "../disk/store.js";
import { sharedKernels } from "../world/kernelpool.js";
import type { Life } from "../world/process.js";
import type { World } from "../world/world.js";
import { OF_BACKUPS } from "./backup-ports.js";
import { DirectoryPort, SharedDirectory } from "./shared-directory.js";

export const RESTORE_ROOT = "/restores";

/** A restore that has ended well. */
export interface Restored {
  readonly target: string;
  readonly request: RestoreRequest;
  readonly mark: RestoredMark;
  readonly rows: SimRows;
}

export class RestoreRoot {
  readonly directory: SharedDirectory;
  /** By the path of their first directory. */
  private readonly stores = new Map<string, SimRows>();
  /** Names that restores were asked for. */
  readonly targets = new Set<string>();
  /** Staging directory that became a target. */
  private readonly stagings = new Map<string, string>();
  private made = 0;

  constructor(
    private readonly world: World,
    private readonly backups: SharedDirectory,
    private readonly signatures: SignaturePort,
    callMs: number,
    private readonly commitMs: number,
  ) {
    this.directory = new SharedDirectory(world, "restores", callMs);
  }

  restoring(life: Life, logger: LoggerPort): BackupRestoring {
    return {
      restore: (request, _operation, progress, done) => {
        const { world } = this;
        const prng = world.prng(`restore ${life.node} ${life.number} ${++this.made}`);
        const ports: RestorePorts = {
          backups: new DirectoryPort(this.backups, life),
          signatures: this.signatures,
          targets: new DirectoryPort(this.directory, life),
          stores: this.storesOf(life),
          ...{ clock: life.clock, timer: life, logger },
          entropy: { uint32: () => prng.nextUint32() },
          sorter: new KernelSorter(sharedKernels().compact),
          staged: ({ staging, target }) => void this.stagings.set(target, staging),
        };
        const settings = {
          ...{ restoreRoot: RESTORE_ROOT, realRestoreRoot: RESTORE_ROOT },
          ...{ occupied: ["/backups", "/data"], program: PROGRAM, nodeName: `n${life.node}` },
        };
        this.targets.add(request.targetDir.slice(RESTORE_ROOT.length + 1));
        const restore = new Restore(settings, ports, request, progress);
        restore.run(done);
        return { cancel: () => restore.cancel() };
      },
    };
  }

  private storesOf(life: Life): RestoreStores {
    const { world, commitMs } = this;
    return {
      open: (path, done) => {
        let rows = this.stores.get(path);
        if (rows === undefined) {
          rows = new SimRows(world, life.node, world.prng(`store ${path}`), { commitMs });
          this.stores.set(path, rows);
        }
        const fatal = {
          fatal: (reason: string): void => {
            throw new Error(`a restore met a fatal fault: ${reason}`);
          },
        };
        const port = rows.port(life, fatal);
        life.soon(() => done(ok(port)));
      },
      noteLevel: (_path, _level, done) => life.soon(() => done(ok(null))),
    };
  }

  isThere(target: string): boolean {
    return this.directory.find(target) !== undefined;
  }

  /** What a restore left under the name of its target; null: nothing that a node may start on. */
  found(target: string, request: RestoreRequest): Restored | null {
    const path = `${target}/${OF_BACKUPS.storageRevision}/${RESTORED_NAME}`;
    const bytes = this.directory.find(path)?.bytes;
    const staging = this.stagings.get(target);
    if (bytes === undefined || staging === undefined) return null;
    const mark = decodeRestoredMark(path, bytes);
    const rows = this.stores.get(`${staging}/${OF_BACKUPS.storageRevision}/state`);
    return mark.ok && rows !== undefined ? { target, request, mark: mark.value, rows } : null;
  }
}
