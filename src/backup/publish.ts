/**
 * How a backup comes into the catalogue: filled aside, made durable, named, and published last.
 *
 * Invariants: 1. The manifest gets its name after every file, every directory and the name of the
 * backup's directory are durable: whatever has a manifest is whole, after any crash (P-140). 2.
 * After a fault nothing is published, and what was written is removed as far as the system lets;
 * what stays is a leftover by its name. 3. A manifest that the system does not let go keeps its
 * files: it is whole.
 */
import { assert } from "../base/assert.js";
import { failure, ok } from "../base/result.js";
import type { ArchivePort, SignaturePort } from "../ports.js";
import { checkRoot } from "./catalogue.js";
import { type BackupDone, systemFault } from "./faults.js";
import { type Manifest, encodeManifest } from "./manifest.js";
import { IMAGE_FOLDER, LOG_FOLDER, manifestName, passingName } from "./names.js";
import { type Step, inOrder, writeFile } from "./steps.js";

/** A backup that is being written. Made by `beginBackup`. */
export class StagedBackup {
  private readonly staging: string;

  constructor(
    private readonly archive: ArchivePort,
    private readonly id: string,
    private readonly tag: string,
    private readonly folders: readonly string[],
  ) {
    this.staging = passingName(id, "staging", tag);
  }

  /** Makes the directories. */
  begin(done: BackupDone<this>): void {
    const { archive, staging } = this;
    const make = (path: string): Step => {
      return (made) => archive.makeDirectory(path, made);
    };
    const steps = [make(staging), ...this.folders.map((folder) => make(`${staging}/${folder}`))];
    inOrder(steps, (result) => {
      if (result.ok) return done(ok(this));
      this.discard(() => done(systemFault(result)));
    });
  }

  /** Where a file of the backup is written; `name`: by `imageName` or `logName`. */
  path(name: string): string {
    return `${this.staging}/${name}`;
  }

  /**
   * Publishes the backup; all of its files are finished. Ends it: after a fault nothing of it is
   * left but what could not be removed.
   */
  publish(manifest: Manifest, signatures: SignaturePort, done: BackupDone<null>): void {
    const { archive, id, staging } = this;
    assert(manifest.backupId === id, "a backup is published with its own manifest");
    const name = manifestName(id);
    const passing = passingName(name, "tmp", this.tag);
    const sync = (path: string): Step => {
      return (synced) => archive.syncDirectory(path, synced);
    };
    const artifacts: Step[] = [
      ...this.folders.map((folder) => sync(`${staging}/${folder}`)),
      sync(staging),
      (renamed) => archive.rename(staging, id, renamed),
      sync(""),
    ];
    const publication: Step[] = [
      (written) => writeFile(archive, passing, encodeManifest(manifest, signatures), written),
      (renamed) => archive.rename(passing, name, renamed),
      sync(""),
    ];
    inOrder([...artifacts, ...publication], (result) => {
      if (result.ok) return done(ok(null));
      this.withdraw((isKept) => {
        const fault = systemFault(result);
        if (!isKept) return done(fault);
        done(failure(fault.code, `${fault.message}; it may be in the catalogue all the same`));
      });
    });
  }

  /** Gives the backup up before it is published. */
  discard(done: () => void): void {
    this.archive.removeTree(this.staging, () => done());
  }

  /**
   * Takes back whatever is there already, the manifest first: while it may be there, or come back
   * with a crash, its files stay. Without it they are a leftover. `done`: whether it may be there.
   */
  private withdraw(done: (isKept: boolean) => void): void {
    const { archive, id, staging } = this;
    const name = manifestName(id);
    archive.remove(passingName(name, "tmp", this.tag), () => {
      archive.remove(name, (removed) => {
        if (!removed.ok && removed.code !== "missing") return done(true);
        archive.syncDirectory("", (synced) => {
          if (!synced.ok) return done(removed.ok);
          archive.removeTree(id, () => archive.removeTree(staging, () => done(false)));
        });
      });
    });
  }
}

/**
 * Begins a new backup. `id`: 32 hexadecimal digits, never used before; `tag`: 8 hexadecimal digits
 * by chance.
 */
export function beginBackup(
  archive: ArchivePort,
  { id, tag, type }: { readonly id: string; readonly tag: string; readonly type: Manifest["type"] },
  done: BackupDone<StagedBackup>,
): void {
  checkRoot(archive, (root) => {
    if (!root.ok) return done(root);
    archive.examine(id, (there) => {
      if (there.ok) return done(failure("IoError", `"${id}" exists`));
      const folders = type === "Full" ? [IMAGE_FOLDER, LOG_FOLDER] : [LOG_FOLDER];
      new StagedBackup(archive, id, tag, folders).begin(done);
    });
  });
}
