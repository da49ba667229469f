/**
 * What the flags of backups have to do with each other and with the paths of the node.
 *
 * Pure. Invariants: 1. A directory of backups, one of restores and the directories of the node are
 * apart from each other; only what is restored may lie beside the others below one root. 2. Paths
 * are compared as text here; links are looked at when something is done with them.
 */
import { isAbsolute, resolve } from "node:path";
import { BACKUP_CLUSTER_ID_MAX_BYTES } from "../../base/limits.js";
import { textSizeBytes } from "../../base/bytes.js";
import { type Check, firstOf, outside } from "./relation.js";
import type { ServerConfig } from "./server-config.js";

const HOUR_MS = 3_600_000;
const YEAR_MS = 366 * 24 * HOUR_MS;

/** `inner` is `outer`, or lies below it. */
function isWithin(inner: string, outer: string): boolean {
  const [below, above] = [resolve(inner), resolve(outer)];
  return below === above || below.startsWith(above === "/" ? "/" : `${above}/`);
}

/** The paths of a node that a directory of backups or restores must not be mixed up with. */
function ownPaths(config: ServerConfig): readonly (readonly [flag: string, path: string])[] {
  if (config.storage === "memory") return [];
  const paths: (readonly [string, string])[] = [["--storage-path", config.storagePath]];
  if (config.walPath !== null) paths.push(["--wal-path", config.walPath]);
  return paths;
}

function checkPath(
  flag: string,
  path: string | null,
  others: readonly (readonly [flag: string, path: string])[],
  isAlone: boolean,
): string | null {
  if (path === null) return null;
  if (!isAbsolute(path)) return `${flag} is ${path}; it must be an absolute path`;
  for (const [other, taken] of others) {
    if (isWithin(path, taken)) {
      return `${flag} is ${path}; it must not be ${other} (${taken}) nor lie in it`;
    }
    if (isAlone && isWithin(taken, path)) {
      return `${flag} is ${path}; ${other} (${taken}) must not lie in it`;
    }
  }
  return null;
}

/** Relations of the backup flags. */
export const checkBackups: Check = (config) => {
  const { backupDir, restoreRoot, backupClusterId: id } = config;
  const own = ownPaths(config);
  const apart = backupDir === null ? own : [...own, ["--pitr-backup-dir", backupDir] as const];
  const idBytes = textSizeBytes(id);
  return firstOf(
    checkPath("--pitr-backup-dir", backupDir, own, true),
    checkPath("--pitr-restore-root", restoreRoot, apart, false),
    outside("--pitr-backup-cluster-id (bytes)", idBytes, 0, BACKUP_CLUSTER_ID_MAX_BYTES),
    outside("--pitr-window (ms)", config.pitrWindowMs, 0, 6 * HOUR_MS),
    outside("--backup-retention-max-chains", config.backupMaxChains, 0, 1_000_000),
    outside("--backup-retention-max-age (ms)", config.backupMaxAgeMs, 0, 100 * YEAR_MS),
    outside("--backup-retention-max-bytes", config.backupMaxBytes, 0, Number.MAX_SAFE_INTEGER),
    config.backupGcIntervalMs === 0
      ? null
      : outside("--backup-gc-interval (ms)", config.backupGcIntervalMs, 1000, YEAR_MS),
  );
};
