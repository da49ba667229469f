/** The manifest of a backup all of whose files are written. Pure. */
import { artifactNames, type Manifest, type PartitionRange } from "../../backup/manifest.js";
import { imageName, logName } from "../../backup/names.js";
import { present } from "../../base/assert.js";
import type { Hlc } from "../../base/hlc.js";
import type { ArchiveSum } from "../../ports.js";
import type { TopologyAnswer } from "../backups/backup-messages.js";
import type { BackupCatalogue } from "../backups/backup-taking.js";
import type { Part } from "./keeper-world.js";

interface ManifestFacts {
  readonly backupId: string;
  /** null: of a Full. */
  readonly parentBackupId: string | null;
  /** Of a coordinated one. */
  readonly cutAt: Hlc | null;
  readonly endpoint: string;
  readonly storageType: string;
  readonly createdAtMs: number;
}

export function manifestOf(
  parts: readonly Part[],
  { term, topologyVersion, partitions }: TopologyAnswer,
  { clusterId, storageRevision }: BackupCatalogue,
  { backupId, parentBackupId, cutAt, endpoint, storageType, createdAtMs }: ManifestFacts,
): Manifest {
  const type = parentBackupId === null ? "Full" : "Incremental";
  const partitionRanges = parts.map(rangeOf);
  const sums = new Map<string, ArchiveSum>();
  for (const { partition, image, log } of parts) {
    if (image !== null) sums.set(imageName(partition), image);
    if (log !== null) sums.set(logName(partition), log);
  }
  const files = new Map<string, ArchiveSum>();
  for (const name of artifactNames({ type, partitionRanges })) {
    files.set(name, present(sums.get(name), "every file was written"));
  }
  return {
    ...{ backupId, type, createdAtMs, parentBackupId, partitionRanges },
    ...{ clusterSnapshot: cutAt, clusterId, coordinatorNode: endpoint, coordinatorTerm: term },
    ...{ storageType, storageRevision, topologyGeneration: topologyVersion },
    ...{ clusterPartitions: partitions, coveredPartitions: partitions, files },
  };
}

/** Where a partition's part of the backup begins and ends. */
function rangeOf(part: Part): PartitionRange {
  const before = present(part.before, "every partition has a beginning");
  const mark = present(part.mark, "every partition has a mark");
  return {
    partition: part.partition,
    ...{ fromIndex: before.index + 1, fromStamp: before.stamp },
    ...{ toIndex: mark.index, toStamp: mark.stamp, toTerm: mark.term },
  };
}
