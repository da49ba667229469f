/** Backups of a sample cluster on the real disk, and restores of them in real processes. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { hashPartition } from "../../../src/base/routing.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { RestoreEnd } from "../../../src/host/restoring/restore-types.js";
import { RestoreProcess } from "../../../src/server/restoring/restore-process.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import { foundSample } from "../../doubles/backup/restore-bench.js";
import { SampleCluster, sampleId } from "../../doubles/backup/sample-backup.js";
import { create, lock, set } from "../../doubles/machine/bench.js";
import { serverMain } from "../cluster/server-process.js";

const POOL = 2;

/** A cluster whose keys lie where a node looks for them, and its backups on the disk. */
export class DiskCatalogue {
  readonly bench = new ArchiveBench();
  readonly cluster = new SampleCluster(this.bench, [0, 1, 2]);
  readonly backupDir: string;
  readonly restoreRoot: string;
  private keys = 0;

  constructor(readonly path: string) {
    this.backupDir = join(path, "backups");
    this.restoreRoot = join(path, "restores");
    foundSample(this.cluster);
    for (const directory of [path, this.backupDir, this.restoreRoot]) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
    }
  }

  private at(name: string, command: Command): void {
    this.cluster.groups[hashPartition(name, POOL)]?.apply([command]);
  }

  /** Keys, a lock and a sequence. */
  write(count: number, valueBytes = 20): void {
    for (let at = 0; at < count; at++) {
      const key = `key ${this.keys++}`;
      this.at(key, set(key, "v".repeat(valueBytes)));
    }
    this.at("held", lock("held", "somebody", 3_600_000));
    this.at("numbers", create("numbers"));
  }

  /** Takes a backup, and writes the whole catalogue to the disk. */
  take(number: number, parent: number | null = null): void {
    this.cluster.take(number, parent);
    for (const [name, bytes] of this.bench.disk.files()) {
      const path = join(this.backupDir, name);
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(path, bytes, { mode: 0o600 });
    }
  }

  restoring(programPath = serverMain): RestoreProcess {
    const { restoreRoot, backupDir } = this;
    const settings = {
      ...{ programPath, restoreRoot, backupDir, storagePaths: [join(this.path, "live")] },
      ...({ key: null, storeMaxBytes: 1 << 30, kernels: "wasm", nodeName: "test" } as const),
    };
    return new RestoreProcess(settings, { log: () => undefined });
  }

  restore(leaf: number, name: string): Promise<RestoreEnd> {
    const request = {
      ...{ leafId: sampleId(leaf), targetDir: join(this.restoreRoot, name) },
      ...{ targetTimeMs: 0, sequenceSkip: 0n },
    };
    return new Promise((resolve) => {
      this.restoring().restore(request, "0123456789ab", () => undefined, resolve);
    });
  }
}
