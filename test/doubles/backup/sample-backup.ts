/**
 * Backups of a few sample groups, written through the real files into a false directory: chains of
 * any form, as a keeper would take them.
 */
import {
  type ImageFile,
  type LogFile,
  createImage,
  createLog,
} from "../../../src/backup/artifact-files.js";
import type { LogPlace } from "../../../src/backup/log-file.js";
import type { Manifest, PartitionRange } from "../../../src/backup/manifest.js";
import { imageName, logName } from "../../../src/backup/names.js";
import { type StagedBackup, beginBackup } from "../../../src/backup/publish.js";
import type { Hlc } from "../../../src/base/hlc.js";
import type { ArchiveSum, SignaturePort } from "../../../src/ports.js";
import type { ArchiveBench } from "./archive-bench.js";
import { falseSignatures } from "./false-archive.js";
import { SAMPLE_ORIGIN, SampleGroup } from "./sample-group.js";

export const UNSIGNED: SignaturePort = falseSignatures(null);

/** The id of the backup with this number. */
export function sampleId(number: number): string {
  return number.toString(16).padStart(32, "0");
}

/** A cluster of some partitions, and where each of its backups ended. */
export class SampleCluster {
  readonly groups: readonly SampleGroup[];
  private readonly ends = new Map<string, Map<number, LogPlace>>();
  private createdAtMs = 1_700_000_100_000;

  constructor(
    readonly bench: ArchiveBench,
    partitions: readonly number[] = [0, 1],
    readonly signatures: SignaturePort = UNSIGNED,
  ) {
    this.groups = partitions.map((partition) => new SampleGroup(partition));
    for (const group of this.groups) group.write(3);
  }

  write(count: number): void {
    for (const group of this.groups) group.write(count);
  }

  /** Fills a backup aside; `snapshot`: all marks are stamped so. */
  stage(
    number: number,
    parent: number | null,
    snapshot: Hlc | null = null,
  ): { staged: StagedBackup; manifest: Manifest } {
    const { bench } = this;
    const id = sampleId(number);
    const type = parent === null ? "Full" : "Incremental";
    const tag = number.toString(16).padStart(8, "0");
    const staged = bench.value<StagedBackup>((done) =>
      beginBackup(bench.archive, { id, tag, type }, done),
    );
    const files = new Map<string, ArchiveSum>();
    const ends = new Map<number, LogPlace>();
    const partitionRanges = this.groups.map((group) =>
      this.stagePartition({ group, id, staged, files, ends }, parent, snapshot),
    );
    this.ends.set(id, ends);
    const ids = this.groups.map(({ partition }) => partition);
    this.createdAtMs += 1000;
    const manifest: Manifest = {
      ...{ backupId: id, type, createdAtMs: this.createdAtMs },
      parentBackupId: parent === null ? null : sampleId(parent),
      ...{ partitionRanges, clusterSnapshot: snapshot, coordinatorNode: "a.example:8084" },
      ...{ coordinatorTerm: 4, clusterId: SAMPLE_ORIGIN.clusterId },
      storageType: SAMPLE_ORIGIN.storageType,
      storageRevision: SAMPLE_ORIGIN.storageRevision,
      topologyGeneration: SAMPLE_ORIGIN.topologyGeneration,
      ...{ clusterPartitions: ids, coveredPartitions: ids, files },
    };
    return { staged, manifest };
  }

  private stagePartition(
    to: {
      readonly group: SampleGroup;
      readonly id: string;
      readonly staged: StagedBackup;
      readonly files: Map<string, ArchiveSum>;
      readonly ends: Map<number, LogPlace>;
    },
    parent: number | null,
    snapshot: Hlc | null,
  ): PartitionRange {
    const { bench } = this;
    const { group, id, staged, files, ends } = to;
    const { partition } = group;
    let before = parent === null ? undefined : this.ends.get(sampleId(parent))?.get(partition);
    if (before === undefined) {
      before = group.place();
      const { head, chunks } = group.image(id);
      const name = imageName(partition);
      const file = bench.value<ImageFile>((done) =>
        createImage(bench.archive, staged.path(name), head, done),
      );
      for (const chunk of chunks) bench.value((done) => file.chunks([chunk], done));
      files.set(
        name,
        bench.value<ArchiveSum>((done) => file.finish(done)),
      );
    }
    group.write(2);
    group.mark(id, snapshot ?? undefined);
    const name = logName(partition);
    const head = { origin: group.origin(id), before };
    const file = bench.value<LogFile>((done) =>
      createLog(bench.archive, staged.path(name), head, done),
    );
    const { index } = before;
    bench.value((done) => file.entries(group.since(index), done));
    files.set(
      name,
      bench.value<ArchiveSum>((done) => file.finish(group.trailer(), done)),
    );
    const end = group.place();
    ends.set(partition, end);
    return {
      ...{ partition, fromIndex: before.index + 1, fromStamp: before.stamp },
      ...{ toIndex: end.index, toStamp: end.stamp, toTerm: end.term },
    };
  }

  /** Takes a backup; a Full unless it has a parent. */
  take(number: number, parent: number | null = null, change: Partial<Manifest> = {}): Manifest {
    const { staged, manifest } = this.stage(number, parent);
    const changed = { ...manifest, ...change };
    this.bench.value((done) => staged.publish(changed, this.signatures, done));
    return changed;
  }
}
