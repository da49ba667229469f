/**
 * The door of this folder: opens directory, lock, identity, log and state store of a node, or says
 * why not.
 *
 * Invariants: 1. On failure nothing stays open or locked. 2. The lock is taken before anything is
 * read and given back after everything is closed; only whether this program may use the data at all
 * is looked at before, so that nothing is touched where it may not (contract 5.5 U4).
 *
 * A failure's message names the file and the remedy. All but "storage-no-space" and
 * "storage-in-use" mean that an operator must look before the node can start.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { type Failure, type Result, failure, ok } from "../base/result.js";
import type { Program } from "../base/levels.js";
import { SEGMENT_BYTES } from "../base/limits.js";
import type { LevelPort, LogPort, StorePort } from "../ports.js";
import type { Kernels } from "../wasm/kernels.js";
import { BudgetedFiles } from "./budget.js";
import { RealFiles } from "./files.js";
import { LevelFile, type LevelFileCode, MemoryLevel } from "./level-file.js";
import { type DirectoryLock, type LockCode, lockDirectory } from "./lock.js";
import { MemoryLog } from "./log/memorylog.js";
import { MemoryStore } from "./store/memorystore.js";
import type { LogIdentity } from "./log/records.js";
import { openLog } from "./log/recovery.js";
import type { LogOpenCode } from "./log/refusals.js";
import type { LogPorts } from "./log/segment.js";
import { COMPLETE_MARK, FORCING_NAME, IDENTITY_NAME, RESTORED_NAME } from "./names.js";
import { VolumeSpace } from "./space.js";
import { type StoreFigures, openStore } from "./store/store.js";
import {
  type DataDirectoryCode,
  makeDirectory,
  readIdentity,
  readRestored,
  syncNames,
  writeIdentity,
  writeMark,
} from "./data-directory.js";

export interface DiskOptions {
  readonly adapter: "lmdb" | "memory";
  /** Absolute. Unused with "memory". */
  readonly path: string;
  /** Name of the storage format's directory below the path. */
  readonly revision: string;
  /** Directory of the log; null = `{path}/wal`. */
  readonly walPath: string | null;
  /** Bound of the state file, bytes. */
  readonly maxBytes: number;
  /** Tells in words where a row of the state store belongs. */
  readonly placeOfRow?: (key: Uint8Array) => string;
  /**
   * For a new directory. An existing one keeps its cluster id; another node id than its own is
   * refused.
   */
  readonly identity: { readonly clusterId: string; readonly nodeId: number };
  /** Kernels of its own for the log: they share no memory with any other user. */
  readonly kernels: Kernels;
  /** What is supported of what lies there. */
  readonly program: Program;
  /** Default SEGMENT_BYTES. */
  readonly segmentBytes?: number;
}

export type DiskPorts = Omit<LogPorts, "files">;

export type DiskCode =
  | DataDirectoryCode
  | LevelFileCode
  | LockCode
  | LogOpenCode
  | "store-unreadable"
  | "storage-foreign";

export interface Disk {
  readonly log: LogPort;
  readonly store: StorePort;
  readonly level: LevelPort;
  /** storageId is "" with the memory adapter. */
  readonly identity: LogIdentity;
  /** True when the directory was made by this call. */
  readonly isNew: boolean;
  /** A restore made it, or a cluster was forced out of it; a node may have run on it since. */
  readonly isRestored: boolean;
  /** null: nothing lies on a volume. */
  readonly space: VolumeSpace | null;
  figures(): StoreFigures;
  /** Closes store and log, unless their user did and was called back, and gives the lock back. */
  close(done: () => void): void;
}

/** First size of the state store's map; it doubles when it is full. */
const FIRST_MAP_BYTES = 1024 * 1024 * 1024;
const SPACE_RETRY_MS = 1000;

type Done = (result: Result<Disk, DiskCode>) => void;

/** The cluster of an existing directory, without opening it; null when there is none yet. */
export function storedCluster(
  options: Pick<DiskOptions, "adapter" | "path" | "revision">,
): Result<string | null, DiskCode> {
  if (options.adapter === "memory") return ok(null);
  const home = `${options.path}/${options.revision}`;
  const identity = readIdentity(`${home}/${IDENTITY_NAME}`);
  if (!identity.ok) return identity;
  return identity.value === null
    ? readRestored(`${home}/${RESTORED_NAME}`)
    : ok(identity.value.clusterId);
}

/** A directory out of which a cluster is being forced is nobody's until that has ended. */
function forcingFault(home: string): Failure<"storage-damaged"> | null {
  const path = `${home}/${FORCING_NAME}`;
  if (!existsSync(path)) return null;
  const remedy = "run --force-new-cluster again, with the id that it was given";
  return failure("storage-damaged", `${path}: a cluster is being forced out of this: ${remedy}`);
}

export function openDisk(options: DiskOptions, ports: DiskPorts, done: Done): void {
  if (options.adapter === "memory") return openMemory(options, ports, done);
  const home = `${options.path}/${options.revision}`;
  const refuse = (refusal: Failure<DiskCode>): void => ports.timers.soon(() => done(refusal));
  const forcing = forcingFault(home);
  if (forcing !== null) return refuse(forcing);
  const cluster = storedCluster(options);
  if (!cluster.ok) return refuse(cluster);
  const files = new BudgetedFiles(new RealFiles());
  LevelFile.open(home, options.program, files, cluster.value === null, (judged) => {
    if (judged.ok) lockAndOpen(options, ports, files, home, done);
    else done(judged);
  });
}

function lockAndOpen(
  options: DiskOptions,
  ports: DiskPorts,
  files: BudgetedFiles,
  home: string,
  done: Done,
): void {
  const walPath = options.walPath ?? `${options.path}/wal`;
  for (const directory of [`${home}/state`, walPath]) {
    const made = makeDirectory(directory);
    if (!made.ok) return ports.timers.soon(() => done(made));
  }
  lockDirectory(home, (homeLock) => {
    if (!homeLock.ok) return done(homeLock);
    const giveUp = (refusal: Failure<DiskCode>): void => {
      homeLock.value.release(() => done(refusal));
    };
    lockDirectory(walPath, (walLock) => {
      if (!walLock.ok) return giveUp(walLock);
      const locks = [walLock.value, homeLock.value];
      openLocked(options, { ...ports, files }, home, walPath, locks, (result) => {
        if (result.ok) return done(result);
        walLock.value.release(() => giveUp(result));
      });
    });
  });
}

function openMemory(options: DiskOptions, ports: DiskPorts, done: Done): void {
  const log = new MemoryLog(ports.timers);
  const store = new MemoryStore(ports.timers, options.maxBytes);
  const level = new MemoryLevel(ports.timers);
  const identity = { storageId: "", ...options.identity };
  const close = closer([store, log], []);
  ports.timers.soon(() => {
    const figures = (): StoreFigures => store.figures();
    done(
      ok({
        log,
        store,
        level,
        identity,
        isNew: true,
        isRestored: false,
        space: null,
        figures,
        close,
      }),
    );
  });
}

/** The directory's identity; made when it has none. */
function identify(
  options: DiskOptions,
  home: string,
): Result<{ identity: LogIdentity; isNew: boolean; isRestored: boolean }, DiskCode> {
  const path = `${home}/${IDENTITY_NAME}`;
  const found = readIdentity(path);
  if (!found.ok) return found;
  const restored = readRestored(`${home}/${RESTORED_NAME}`);
  if (!restored.ok) return restored;
  const isRestored = restored.value !== null;
  if (found.value !== null) {
    const { nodeId } = options.identity;
    if (found.value.nodeId === nodeId)
      return ok({ identity: found.value, isNew: false, isRestored });
    const owner = `node ${String(found.value.nodeId)}, not to node ${String(nodeId)}`;
    const remedy = "give this node the id or the path that belongs to it";
    return failure("storage-foreign", `${home} belongs to ${owner}: ${remedy}`);
  }
  const storageId = randomBytes(16).toString("hex");
  const clusterId = restored.value ?? options.identity.clusterId;
  const identity = { storageId, ...options.identity, clusterId };
  const written = writeIdentity(path, identity);
  return written.ok ? ok({ identity, isNew: true, isRestored }) : written;
}

function openLocked(
  options: DiskOptions,
  ports: LogPorts & { readonly files: BudgetedFiles },
  home: string,
  walPath: string,
  locks: readonly DirectoryLock[],
  done: Done,
): void {
  const identified = identify(options, home);
  if (!identified.ok) return done(identified);
  const { identity, isNew, isRestored } = identified.value;
  const { maxBytes, kernels, placeOfRow } = options;
  const storeOptions = { path: `${home}/state`, maxBytes, mapBytes: FIRST_MAP_BYTES };
  const stored = openStore(
    placeOfRow === undefined ? storeOptions : { ...storeOptions, placeOfRow },
    ports,
  );
  if (!stored.ok) return done(stored);
  const store = stored.value;
  // LMDB makes its files without making their names durable, and a start may have been killed
  // between renaming a file of `home` and making that durable.
  for (const directory of [`${home}/state`, home]) {
    const named = syncNames(directory);
    if (!named.ok) return store.close(() => done(named));
  }
  const mark = `${home}/${COMPLETE_MARK}`;
  const logOptions = {
    directory: walPath,
    identity,
    segmentBytes: options.segmentBytes ?? SEGMENT_BYTES,
    spaceRetryMs: SPACE_RETRY_MS,
    mayCreate: !existsSync(mark),
  };
  // Its name is durable now, and nobody else raises it any more.
  LevelFile.open(home, options.program, ports.files, isNew && !isRestored, (judged) => {
    if (!judged.ok) return store.close(() => done(judged));
    const level = judged.value;
    openLog(logOptions, ports, kernels, (opened) => {
      if (!opened.ok) return store.close(() => done(opened));
      const log = opened.value;
      const marked = existsSync(mark) ? ok(null) : writeMark(mark);
      if (!marked.ok) return store.close(() => log.close(() => done(marked)));
      const space = spaceOf(home, walPath, ports);
      const closed = closer([store, log], locks);
      const close = (then: () => void): void => {
        space.close();
        closed(then);
      };
      const figures = (): StoreFigures => store.figures();
      done(ok({ log, store, level, identity, isNew, isRestored, space, figures, close }));
    });
  });
}

function spaceOf(
  state: string,
  log: string,
  { files, timers, logger }: LogPorts & { readonly files: BudgetedFiles },
): VolumeSpace {
  const paths = new Map([
    ["log", log],
    ["state", state],
  ] as const);
  return new VolumeSpace(paths, (path, done) => files.volume(path, done), timers, logger);
}

interface Closable {
  readonly isClosed: boolean;
  close(done: () => void): void;
}

/** Closes what its user did not close yet, and then gives the locks back. */
function closer(
  parts: readonly Closable[],
  locks: readonly DirectoryLock[],
): (done: () => void) => void {
  return (done) => {
    const release = (at: number): void => {
      const lock = locks[at];
      if (lock === undefined) done();
      else lock.release(() => release(at + 1));
    };
    const closeNext = (at: number): void => {
      const part = parts[at];
      if (part === undefined) release(0);
      else if (part.isClosed) closeNext(at + 1);
      else part.close(() => closeNext(at + 1));
    };
    closeNext(0);
  };
}
