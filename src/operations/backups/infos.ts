/**
 * Backups as the calls tell them.
 *
 * Pure. Invariants: 1. Ids are UUIDs to the world. 2. Of a chain the root alone carries what can be
 * recovered. 3. What cannot be read is told with its reason, not left out.
 */
import type { AnswerNamed } from "../../api/calls.js";
import type { CatalogueEntry } from "../../backup/catalogue.js";
import { type Coverage, coverageOf } from "../../backup/chain.js";
import { MANIFEST_VERSION, type Manifest, utcText } from "../../backup/manifest.js";
import { uuidOf } from "../../backup/names.js";
import type { Restored } from "../../host/restoring/restore-types.js";
import type { TakenBackup } from "../../host/backups/backup-taking.js";

export type BackupInfo = AnswerNamed<"backups.full">;

const NOTHING = {
  formatVersion: 0,
  type: "",
  parentBackupId: null,
  partitionCount: 0,
  clusterId: null,
  coordinatorNode: null,
  clusterSnapshotNode: null,
  clusterSnapshotPhysical: null,
  clusterSnapshotCounter: null,
  requestedKind: null,
  actualKind: null,
  substitutionReason: null,
  isInvalid: false,
  isIncomplete: false,
  invalidReason: null,
  minRecoverablePhysicalMs: null,
  maxRecoverablePhysicalMs: null,
} as const;

function recoverable(
  coverage: Coverage | null,
): Pick<BackupInfo, "minRecoverablePhysicalMs" | "maxRecoverablePhysicalMs"> {
  if (coverage === null) return { minRecoverablePhysicalMs: null, maxRecoverablePhysicalMs: null };
  return {
    minRecoverablePhysicalMs: BigInt(coverage.minMs),
    maxRecoverablePhysicalMs: BigInt(coverage.maxMs),
  };
}

function manifestInfo(manifest: Manifest, coverage: Coverage | null): BackupInfo {
  const { clusterSnapshot: cut, parentBackupId: parent } = manifest;
  return {
    ...NOTHING,
    backupId: uuidOf(manifest.backupId),
    formatVersion: MANIFEST_VERSION,
    type: manifest.type,
    createdAtUtc: utcText(manifest.createdAtMs),
    parentBackupId: parent === null ? null : uuidOf(parent),
    partitionCount: manifest.partitionRanges.length,
    clusterId: manifest.clusterId === "" ? null : manifest.clusterId,
    coordinatorNode: manifest.coordinatorNode === "" ? null : manifest.coordinatorNode,
    clusterSnapshotNode: cut?.n ?? null,
    clusterSnapshotPhysical: cut === null ? null : BigInt(cut.l),
    clusterSnapshotCounter: cut?.c ?? null,
    ...recoverable(coverage),
  };
}

/** A backup that was just taken. */
export function takenInfo({
  manifest,
  requestedKind,
  actualKind,
  substitutionReason,
}: TakenBackup): BackupInfo {
  const coverage = manifest.type === "Full" ? coverageOf(manifest, manifest) : null;
  return {
    ...manifestInfo(manifest, coverage),
    requestedKind,
    actualKind,
    substitutionReason,
  };
}

export function entryInfo({
  id,
  manifest,
  fault,
  createdAtMs,
  isIncomplete,
  told,
  coverage,
}: CatalogueEntry): BackupInfo {
  const parent = told?.parent ?? null;
  const bare = {
    ...NOTHING,
    backupId: uuidOf(id),
    createdAtUtc: utcText(createdAtMs),
    parentBackupId: parent === null ? null : uuidOf(parent),
  };
  const known = manifest === null ? bare : manifestInfo(manifest, coverage);
  if (fault === null) return known;
  return { ...known, isInvalid: true, isIncomplete, invalidReason: fault.message };
}

/** Root first. */
export function chainInfos(chain: readonly Manifest[]): BackupInfo[] {
  const [root, leaf] = [chain[0], chain.at(-1)];
  if (root === undefined || leaf === undefined) return [];
  const coverage = coverageOf(root, leaf);
  return chain.map((manifest) => manifestInfo(manifest, manifest === root ? coverage : null));
}

export function restoredAnswer({ chain, ...restored }: Restored): AnswerNamed<"backups.restore"> {
  return {
    targetDir: restored.targetDir,
    partitionsRestored: restored.partitionsRestored,
    entriesApplied: BigInt(restored.entriesApplied),
    lastAppliedPhysicalMs: BigInt(restored.lastAppliedPhysicalMs),
    chain: chainInfos(chain),
    outcome: "Ok",
    minRecoverablePhysicalMs: BigInt(restored.minRecoverablePhysicalMs),
    maxRecoverablePhysicalMs: BigInt(restored.maxRecoverablePhysicalMs),
    sequencesAhead: restored.sequencesAhead,
    sequencesAheadCount: BigInt(restored.sequencesAheadCount),
  };
}
