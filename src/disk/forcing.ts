/**
 * The files of a data directory out of which a new cluster is forced (contract 7.7).
 *
 * Owns `forcing.json` while that goes on: it is there from before anything is changed until
 * everything is, and while it is there no node starts on the directory. Invariants: 1. Each step is
 * durable before the next, and can be done again: whatever a crash leaves, the same act brings to
 * its end. 2. What is left in the end is what a restore leaves: rows without an identity, an empty
 * log, `restored.json`. 3. Only segments of the log are deleted.
 */
import { existsSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { type Result, failure, ok } from "../base/result.js";
import type { StorePort, LogPort } from "../ports.js";
import {
  type DataDirectoryCode,
  readIdentity,
  readRestored,
  replaceFile,
  syncNames,
} from "./data-directory.js";
import { LevelFile } from "./level-file.js";
import { type DirectoryLock, lockDirectory } from "./lock.js";
import { openLog } from "./log/recovery.js";
import { UNFINISHED_SUFFIX, segmentSequence } from "./log/records.js";
import { BudgetedFiles } from "./budget.js";
import { RealFiles } from "./files.js";
import { COMPLETE_MARK, FORCING_NAME, IDENTITY_NAME, RESTORED_NAME } from "./names.js";
import type { DiskOptions, DiskPorts } from "./open.js";
import { openStore } from "./store/store.js";
import { SEGMENT_BYTES } from "../base/limits.js";

const KIND = "svc-forcing";
const VERSION = 1;
const FIRST_MAP_BYTES = 1024 * 1024 * 1024;
const SPACE_RETRY_MS = 1000;

/** What is being done, as it was decided when it was begun. */
export interface Forcing {
  /** Of the cluster that there was. */
  readonly fromClusterId: string;
  /** Of the cluster that there will be. */
  readonly clusterId: string;
  /** 1 + how many times a cluster was forced out of this directory. */
  readonly ordinal: number;
  /** "lifting": rows are being changed. "lifted": they are; files follow. */
  readonly phase: "lifting" | "lifted";
}

export interface ForcedDirectory {
  readonly home: string;
  readonly walPath: string;
  readonly store: StorePort;
  /** null when the rows are changed already. */
  readonly log: LogPort | null;
  /** What an earlier try left; null: there was none. */
  readonly forcing: Forcing | null;
  readonly nodeId: number | null;
  /** Closes what is open, and gives the directory back. */
  close(done: () => void): void;
}

/** Which cluster a directory is of, without opening or changing anything. */
export interface ForcedIdentity {
  readonly clusterId: string;
  /** null: no node was started on it yet, or the act was begun and the identity is gone. */
  readonly nodeId: number | null;
}

type Options = Pick<
  DiskOptions,
  "path" | "revision" | "walPath" | "maxBytes" | "kernels" | "program"
>;

function homeOf({ path, revision }: Pick<Options, "path" | "revision">): string {
  return `${path}/${revision}`;
}

function readForcing(home: string): Result<Forcing | null, DataDirectoryCode> {
  const path = `${home}/${FORCING_NAME}`;
  if (!existsSync(path)) return ok(null);
  const damaged = failure("storage-damaged", `${path} is damaged`);
  try {
    const fields = new Map(Object.entries(JSON.parse(readFileSync(path, "utf8")) as object));
    if (fields.get("kind") !== KIND) return damaged;
    if (fields.get("version") !== VERSION) {
      return failure(
        "storage-newer",
        `${path} is of another version: use the program that made it`,
      );
    }
    const forcing = Object.fromEntries(fields) as unknown as Forcing;
    const { fromClusterId, clusterId, ordinal, phase } = forcing;
    const isWhole =
      typeof fromClusterId === "string" &&
      typeof clusterId === "string" &&
      Number.isSafeInteger(ordinal) &&
      (phase === "lifting" || phase === "lifted");
    return isWhole ? ok({ fromClusterId, clusterId, ordinal, phase }) : damaged;
  } catch {
    return damaged;
  }
}

export function forcedIdentity(
  options: Pick<Options, "path" | "revision">,
): Result<ForcedIdentity | null, DataDirectoryCode> {
  const home = homeOf(options);
  const forcing = readForcing(home);
  if (!forcing.ok) return forcing;
  const identity = readIdentity(`${home}/${IDENTITY_NAME}`);
  if (!identity.ok) return identity;
  const nodeId = identity.value?.nodeId ?? null;
  if (forcing.value !== null) return ok({ clusterId: forcing.value.fromClusterId, nodeId });
  if (identity.value !== null) return ok({ clusterId: identity.value.clusterId, nodeId });
  const restored = readRestored(`${home}/${RESTORED_NAME}`);
  if (!restored.ok) return restored;
  return ok(restored.value === null ? null : { clusterId: restored.value, nodeId });
}

/** Locks the directory and opens what is in it. */
export function openForced(
  options: Options,
  ports: DiskPorts,
  done: (result: Result<ForcedDirectory, string>) => void,
): void {
  const home = homeOf(options);
  const walPath = options.walPath ?? `${options.path}/wal`;
  const directories = [home, ...(existsSync(walPath) ? [walPath] : [])];
  const locks: DirectoryLock[] = [];
  const release = (next: () => void): void => {
    const lock = locks.pop();
    if (lock === undefined) return next();
    lock.release(() => release(next));
  };
  const lockNext = (): void => {
    const directory = directories.shift();
    if (directory === undefined) return openLocked(options, ports, walPath, release, done);
    lockDirectory(directory, (locked) => {
      if (!locked.ok) return release(() => done(locked));
      locks.push(locked.value);
      lockNext();
    });
  };
  lockNext();
}

function openLocked(
  options: Options,
  ports: DiskPorts,
  walPath: string,
  release: (next: () => void) => void,
  done: (result: Result<ForcedDirectory, string>) => void,
): void {
  const home = homeOf(options);
  const refuse = (refusal: Result<never, string>): void => release(() => done(refusal));
  const forcing = readForcing(home);
  if (!forcing.ok) return refuse(forcing);
  const identity = readIdentity(`${home}/${IDENTITY_NAME}`);
  if (!identity.ok) return refuse(identity);
  const files = new BudgetedFiles(new RealFiles());
  LevelFile.open(home, options.program, files, false, (judged) => {
    if (!judged.ok) return refuse(judged);
    const { maxBytes } = options;
    const stored = openStore({ path: `${home}/state`, maxBytes, mapBytes: FIRST_MAP_BYTES }, ports);
    if (!stored.ok) return refuse(stored);
    const store = stored.value;
    const nodeId = identity.value?.nodeId ?? null;
    const opened = (log: (LogPort & { readonly isClosed: boolean }) | null): void => {
      const closeLog = (next: () => void): void => {
        if (log === null || log.isClosed) next();
        else log.close(next);
      };
      const close = (next: () => void): void => {
        closeLog(() => (store.isClosed ? release(next) : store.close(() => release(next))));
      };
      done(ok({ home, walPath, store, log, forcing: forcing.value, nodeId, close }));
    };
    // A restored directory that no node was started on has no log, and lacks none.
    if (identity.value === null || forcing.value?.phase === "lifted") return opened(null);
    const logOptions = {
      ...{ directory: walPath, identity: identity.value, segmentBytes: SEGMENT_BYTES },
      ...{ spaceRetryMs: SPACE_RETRY_MS, mayCreate: false },
    };
    openLog(logOptions, { ...ports, files }, options.kernels, (log) => {
      if (log.ok) return opened(log.value);
      store.close(() => refuse(log));
    });
  });
}

/** From here on no node starts on the directory before the act has ended. */
export function noteForcing(home: string, forcing: Forcing): Result<null, DataDirectoryCode> {
  const file = { kind: KIND, version: VERSION, ...forcing };
  return replaceFile(`${home}/${FORCING_NAME}`, `${JSON.stringify(file)}\n`);
}

/**
 * Makes the directory what a restore leaves; store and log are closed. `mark`: the content of
 * `restored.json`.
 */
export function finishForced(
  { home, walPath }: Pick<ForcedDirectory, "home" | "walPath">,
  mark: string,
): Result<null, DataDirectoryCode> {
  const restored = replaceFile(`${home}/${RESTORED_NAME}`, mark);
  if (!restored.ok) return restored;
  try {
    rmSync(`${home}/${COMPLETE_MARK}`, { force: true });
    rmSync(`${home}/${IDENTITY_NAME}`, { force: true });
    const unsynced = syncNames(home);
    if (!unsynced.ok) return unsynced;
    if (existsSync(walPath)) {
      for (const name of readdirSync(walPath)) {
        const whole = name.endsWith(UNFINISHED_SUFFIX)
          ? name.slice(0, -UNFINISHED_SUFFIX.length)
          : name;
        if (segmentSequence(whole) !== null) rmSync(`${walPath}/${name}`, { force: true });
      }
      const emptied = syncNames(walPath);
      if (!emptied.ok) return emptied;
    }
    rmSync(`${home}/${FORCING_NAME}`, { force: true });
    return syncNames(home);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return failure("storage-unreadable", `cannot change ${home}: ${why}`);
  }
}
