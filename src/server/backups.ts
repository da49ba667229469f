/**
 * The directory of backups, its key, and who hears of what is done there, put together from the
 * flags.
 *
 * Invariants: 1. A key that cannot be used stops the start. 2. A directory that is not there is
 * made, private, when the one above it is there; whatever else is wrong with it, each call finds
 * and tells, and the node serves all the same.
 */
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { type Result, failure, ok } from "../base/result.js";
import { RealArchive, signatures } from "../disk/archive.js";
import type { BackupWitness, BackupWorld } from "../operations/api/backup-world.js";
import type { BackupTaking } from "../host/backups/backup-taking.js";
import type { Node } from "../host/node.js";
import type { ArchivePort, LoggerPort, SignaturePort } from "../ports.js";
import type { ServerConfig } from "./flags/config.js";
import type { Metrics } from "./metrics/metrics.js";
import type { AuditLog } from "./security/audit.js";
import { RestoreProcess } from "./restoring/restore-process.js";
import { readSecretBytes } from "./security/secret-file.js";

const KEY_MIN_BYTES = 32;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** The key of manifests: the file without the line break at its end. */
export function readKey(path: string | null): Result<Uint8Array | null, "usage"> {
  if (path === null) return ok(null);
  const flag = "--pitr-backup-mac-key-file";
  const read = readSecretBytes(path, flag);
  if (!read.ok) return read;
  let end = read.value.length;
  if (read.value[end - 1] === NEWLINE) end--;
  if (read.value[end - 1] === RETURN) end--;
  if (end >= KEY_MIN_BYTES) return ok(Uint8Array.from(read.value.subarray(0, end)));
  return failure("usage", `${flag} ${path} has ${end} bytes; it must be at least ${KEY_MIN_BYTES}`);
}

function makeDirectory(path: string, logger: LoggerPort): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    logger.log("warn", "the directory of backups cannot be made", { path, cause: code });
  }
}

function witness(metrics: Metrics, audit: AuditLog): BackupWitness {
  return {
    ended(event) {
      metrics.backups.ended(event);
      const { kind, outcome, wasAsked, fields } = event;
      audit.happened(kind === "restore" || kind === "gc" ? kind : "backup", {
        ...{ kind, outcome, by: wasAsked ? "a caller" : "the node" },
        ...fields,
      });
    },
    reclaimed: (sizeBytes) => metrics.backups.reclaimed(sizeBytes),
    catalogueSeen: (invalid) => metrics.backups.catalogueSeen(invalid),
  };
}

/** null where no restore may write, or there is nothing to restore from. */
function restoring(
  config: ServerConfig,
  key: Uint8Array | null,
  logger: LoggerPort,
): RestoreProcess | null {
  const { restoreRoot, backupDir, storage, storagePath, walPath } = config;
  const { storageMaxBytes: storeMaxBytes, kernels, nodeName } = config;
  if (restoreRoot === null || backupDir === null) return null;
  const storagePaths = [storagePath, ...(walPath === null ? [] : [walPath])];
  const settings = {
    // The program that runs: a child of it restores.
    ...{ programPath: process.argv[1] ?? "", restoreRoot: resolve(restoreRoot), backupDir },
    ...{ storagePaths: storage === "memory" ? [] : storagePaths, key, storeMaxBytes },
    ...{ kernels, nodeName },
  };
  return new RestoreProcess(settings, logger);
}

/** Who takes backups of the node's cluster into the directory; null: nobody. */
function takingOf(
  config: ServerConfig,
  node: Node,
  archive: ArchivePort | null,
  signed: SignaturePort,
): BackupTaking | null {
  if (archive === null) return null;
  const { backupClusterId: clusterId, storageRevision } = config;
  const of = { clusterId, storageRevision };
  return node.backupTaking({ archive, signatures: signed, ...of });
}

/** `key`: by `readKey`. */
export function backupWorld(
  config: ServerConfig,
  node: Node,
  key: Uint8Array | null,
  logger: LoggerPort,
  metrics: Metrics,
  audit: AuditLog,
): BackupWorld {
  const { backupDir, backupMaxChains, backupMaxAgeMs, backupMaxBytes } = config;
  if (backupDir !== null) makeDirectory(backupDir, logger);
  const archive = backupDir === null ? null : new RealArchive(backupDir);
  const signed = signatures(key);
  return {
    archive,
    signatures: signed,
    retention: { maxChains: backupMaxChains, maxAgeMs: backupMaxAgeMs, maxBytes: backupMaxBytes },
    collectEveryMs: config.backupGcIntervalMs,
    taking: takingOf(config, node, archive, signed),
    restoring: restoring(config, key, logger),
    witness: witness(metrics, audit),
  };
}
