/**
 * The data directory: layout, identity, and the lock held for life.
 *
 * | Path | What |
 * |---|---|
 * | `{path}/{revision}/identity.json` | kind, format version, storage id, cluster id, node id |
 * | `{path}/{revision}/level.json` | the highest level of anything there (`level-file.ts`); absent = 1 |
 * | `{path}/{revision}/restored.json` | what a restore made of it: adopted while there is no identity |
 * | `{path}/{revision}/forcing.json` | a cluster is being forced out of it; gone when that has ended |
 * | `{path}/{revision}/differed.json` | replicas of it were found to differ (`differed-file.ts`) |
 * | `{path}/{revision}/complete.json` | written when the first start had made everything |
 * | `{path}/{revision}/state/` | the LMDB environment |
 * | `{path}/wal/`, or the path of the log | the segments |
 *
 * Owns the identity file. It runs before the service does, so it uses the synchronous calls.
 *
 * Invariants: 1. A file or directory is used only after its name is durable (P-112). 2. The
 * identity is written once, aside and then renamed, and never changed. 3. A newer format is
 * refused, and so is a directory that another process uses (P-124, P-131).
 */
import * as fs from "node:fs";
import { dirname } from "node:path";
import { type Failure, type Result, failure, ok } from "../base/result.js";
import type { LogIdentity } from "./log/records.js";

export const STORAGE_FORMAT_VERSION = 2;
const IDENTITY_KIND = "svc-storage";
const IDENTITY_MAX_BYTES = 16_384;
/** As a restore writes it. */
const RESTORED_KIND = "svc-restored";
const RESTORED_VERSION = 1;

/**
 * "storage-unreadable": the system refused. "storage-damaged": the identity is not what was
 * written. "storage-newer": written by a newer version.
 */
export type DataDirectoryCode = "storage-unreadable" | "storage-damaged" | "storage-newer";

function refused(action: string, path: string, error: unknown): Failure<"storage-unreadable"> {
  const why = error instanceof Error ? error.message : String(error);
  return failure("storage-unreadable", `cannot ${action} ${path}: ${why}`);
}

function syncDirectory(path: string): void {
  const descriptor = fs.openSync(path, fs.constants.O_RDONLY);
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** What this user may not even open is none of the directories that a start of it made. */
function syncIfPermitted(path: string): void {
  try {
    syncDirectory(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EIO") throw error;
  }
}

/** Another node of this machine that starts now may be quicker. */
function makeOne(path: string): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/**
 * Makes `path` and its missing parents, mode 0700, each name durable; those that are there too, for
 * an earlier start may have been killed before it came to that.
 */
export function makeDirectory(path: string): Result<null, DataDirectoryCode> {
  try {
    const missing: string[] = [];
    let there = path;
    for (; !fs.existsSync(there); there = dirname(there)) missing.push(there);
    for (; there !== dirname(there); there = dirname(there)) syncIfPermitted(dirname(there));
    for (const directory of missing.reverse()) {
      makeOne(directory);
      syncDirectory(dirname(directory));
    }
    if (!fs.statSync(path).isDirectory()) {
      return failure("storage-unreadable", `${path} is not a directory`);
    }
    return ok(null);
  } catch (error) {
    return refused("make the directory", path, error);
  }
}

/** Makes the names in a directory durable that others created there. */
export function syncNames(path: string): Result<null, DataDirectoryCode> {
  try {
    syncDirectory(path);
    return ok(null);
  } catch (error) {
    return refused("sync the directory", path, error);
  }
}

/** Writes aside, syncs, renames, syncs the directory. */
export function replaceFile(path: string, text: string): Result<null, DataDirectoryCode> {
  const draft = `${path}.new`;
  try {
    const descriptor = fs.openSync(draft, "w", 0o600);
    try {
      fs.writeFileSync(descriptor, text);
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    fs.renameSync(draft, path);
    syncDirectory(dirname(path));
    return ok(null);
  } catch (error) {
    return refused("write", path, error);
  }
}

/** A small file of the directory, or null when there is none. */
export function readSmallFile(path: string): Result<string | null, DataDirectoryCode> {
  try {
    if (!fs.existsSync(path)) return ok(null);
    if (fs.statSync(path).size > IDENTITY_MAX_BYTES) return damaged(path, "it is too large");
    return ok(fs.readFileSync(path, "utf8"));
  } catch (error) {
    return refused("read", path, error);
  }
}

/** The identity in `path`, or null when there is none yet. */
export function readIdentity(path: string): Result<LogIdentity | null, DataDirectoryCode> {
  const read = readSmallFile(path);
  if (!read.ok) return read;
  return read.value === null ? ok(null) : parseIdentity(path, read.value);
}

function damaged(path: string, what: string): Failure<"storage-damaged"> {
  const remedy = "restore the file from a copy, or start this node empty";
  return failure("storage-damaged", `${path} is damaged: ${what}; ${remedy}`);
}

/** The cluster that a restore made the directory for; null where no restore made it. */
export function readRestored(path: string): Result<string | null, DataDirectoryCode> {
  const read = readSmallFile(path);
  if (!read.ok) return read;
  if (read.value === null) return ok(null);
  let fields: ReadonlyMap<string, unknown>;
  try {
    fields = new Map(Object.entries(JSON.parse(read.value) as object));
  } catch {
    return damaged(path, "it is no object of JSON");
  }
  const version = fields.get("version");
  if (fields.get("kind") !== RESTORED_KIND || typeof version !== "number") {
    return damaged(path, "it is of another kind");
  }
  if (version > RESTORED_VERSION) {
    const message = `${path} has format version ${String(version)}: use a newer program`;
    return failure("storage-newer", message);
  }
  const clusterId = fields.get("clusterId");
  const isId = typeof clusterId === "string" && clusterId.length > 0;
  return isId ? ok(clusterId) : damaged(path, "no clusterId");
}

/** Checks what an identity file says. */
export function parseIdentity(path: string, text: string): Result<LogIdentity, DataDirectoryCode> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return damaged(path, "it is no JSON");
  }
  if (typeof parsed !== "object" || parsed === null) return damaged(path, "it is no object");
  const fields = new Map<string, unknown>(Object.entries(parsed));
  const version = fields.get("version");
  if (fields.get("kind") !== IDENTITY_KIND || typeof version !== "number") {
    return damaged(path, "it is of another kind");
  }
  if (version > STORAGE_FORMAT_VERSION) {
    const own = `this program knows ${String(STORAGE_FORMAT_VERSION)}`;
    const message = `${path} has format version ${String(version)}, ${own}: use a newer program`;
    return failure("storage-newer", message);
  }
  if (version < STORAGE_FORMAT_VERSION) {
    return damaged(path, `format version ${String(version)} was never released`);
  }
  const storageId = fields.get("storageId");
  const clusterId = fields.get("clusterId");
  const nodeId = fields.get("nodeId");
  if (typeof storageId !== "string" || storageId.length === 0) return damaged(path, "no storageId");
  if (typeof clusterId !== "string") return damaged(path, "no clusterId");
  if (typeof nodeId !== "number" || !Number.isInteger(nodeId)) return damaged(path, "no nodeId");
  return ok({ storageId, clusterId, nodeId });
}

export function writeIdentity(
  path: string,
  identity: LogIdentity,
): Result<null, DataDirectoryCode> {
  const file = { kind: IDENTITY_KIND, version: STORAGE_FORMAT_VERSION, ...identity };
  return replaceFile(path, `${JSON.stringify(file, null, 2)}\n`);
}

/** Marks that everything of a new directory was made. */
export function writeMark(path: string): Result<null, DataDirectoryCode> {
  const file = { kind: `${IDENTITY_KIND}-complete`, version: STORAGE_FORMAT_VERSION };
  return replaceFile(path, `${JSON.stringify(file)}\n`);
}
