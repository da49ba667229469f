/**
 * Has backups restored in a process of its own, which ends with the call, so that a restore takes
 * neither the event loop nor the memory of a node that serves.
 *
 * Owns the child. Invariants: 1. `done` is called once, in a turn of its own, when the child is
 * gone. 2. What a child that died left behind is removed: its staging directory, and a target that
 * got its name although nobody heard of it. 3. A child that does not end when it is told to is
 * killed.
 */
import { type ChildProcess, fork } from "node:child_process";
import { realpathSync } from "node:fs";
import { failure } from "../../base/result.js";
import { RealArchive } from "../../disk/archive.js";
import { readFile } from "../../backup/steps.js";
import type { StagedRestore } from "../../host/restoring/restore-ports.js";
import type {
  RestoreEnd,
  RestoreProgress,
  RestoreRequest,
} from "../../host/restoring/restore-types.js";
import { RESTORED_MAX_BYTES, decodeRestoredMark } from "../../host/restoring/restored-mark.js";
import type { LoggerPort } from "../../ports.js";
import { systemTimers } from "../../sys.js";
import { RESTORE_CHILD, type RestoreJob, type ToServer } from "./restore-wire.js";

/** A child that was told to end is killed after this long (ms). */
const END_MS = 10_000;
const STDERR_KEPT = 4000;

export interface RestoreProcessSettings {
  /** The program of the server. */
  readonly programPath: string;
  readonly restoreRoot: string;
  readonly backupDir: string;
  /** Directories of the node that runs: state and log. */
  readonly storagePaths: readonly string[];
  readonly key: Uint8Array | null;
  readonly storeMaxBytes: number;
  readonly kernels: "wasm" | "twin";
  readonly nodeName: string;
}

/** With every link on the way resolved; as it is where that does not lead anywhere. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

export class RestoreProcess {
  constructor(
    private readonly settings: RestoreProcessSettings,
    private readonly logger: LoggerPort,
  ) {}

  /** `operation`: under which it is logged. */
  restore(
    request: RestoreRequest,
    operation: string,
    progress: (progress: RestoreProgress) => void,
    done: (end: RestoreEnd) => void,
  ): { cancel(): void } {
    const { programPath, restoreRoot, backupDir, storagePaths, key } = this.settings;
    const { storeMaxBytes, kernels, nodeName } = this.settings;
    const occupied = [backupDir, ...storagePaths];
    const job: RestoreJob = {
      ...{ request, backupDir, key, storeMaxBytes, kernels },
      settings: {
        ...{ restoreRoot, realRestoreRoot: realPath(restoreRoot), nodeName },
        occupied: [...occupied, ...occupied.map(realPath)],
      },
    };
    const child = fork(programPath, [RESTORE_CHILD], {
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      execArgv: process.execArgv.filter((option) => option.startsWith("--enable-source-maps")),
    });
    const run = new Run(child, restoreRoot, operation, this.logger, progress, done);
    child.send({ kind: "job", job }, (error) => {
      if (error !== null) run.kill();
    });
    return { cancel: () => run.cancel() };
  }
}

class Run {
  private end: RestoreEnd | null = null;
  private staged: StagedRestore | null = null;
  private isCancelled = false;
  private hasEnded = false;
  private errors = "";

  constructor(
    private readonly child: ChildProcess,
    private readonly root: string,
    private readonly operation: string,
    private readonly logger: LoggerPort,
    private readonly progress: (progress: RestoreProgress) => void,
    private readonly done: (end: RestoreEnd) => void,
  ) {
    child.stderr?.setEncoding("utf8");
    child.stderr?.on("data", (text: string) => {
      this.errors = `${this.errors}${text}`.slice(-STDERR_KEPT);
    });
    child.on("message", (message: ToServer) => this.hear(message));
    child.on("error", (error) => {
      this.errors += String(error);
      if (child.pid === undefined) this.gone("it could not be started");
    });
    // All that it said has come by then.
    child.on("close", (code, signal) => this.gone(signal ?? `exit code ${String(code)}`));
  }

  private hear(message: ToServer): void {
    if (message.kind === "progress") this.progress(message.progress);
    else if (message.kind === "staged") this.staged = message.staged;
    else if (message.kind === "end") this.end ??= message.end;
    else this.logger.log(message.level, message.event, { operation: this.operation });
  }

  cancel(): void {
    if (this.isCancelled || this.hasEnded) return;
    this.isCancelled = true;
    this.child.send({ kind: "cancel" }, () => undefined);
    systemTimers.after(END_MS, () => this.kill());
  }

  kill(): void {
    if (!this.hasEnded) this.child.kill("SIGKILL");
  }

  private gone(how: string): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    const { end, operation } = this;
    if (end?.ok === true) return systemTimers.soon(() => this.done(end));
    // A fault of the disk may have ended it before it could remove anything.
    if (end !== null) return this.clear(() => this.done(end));
    const fields = { operation, how, errors: this.errors };
    this.logger.log("error", "the process of a restore ended too early", fields);
    this.clear(() => {
      const text = "The process of the restore ended before the restore did.";
      const cancelled = failure("Cancelled", "The call was cancelled.");
      this.done(this.isCancelled ? cancelled : failure("IoError", text));
    });
  }

  /** Removes what the child left. */
  private clear(done: () => void): void {
    const { staged } = this;
    if (staged === null) return systemTimers.soon(done);
    const targets = new RealArchive(this.root);
    const parent = staged.target.slice(0, Math.max(0, staged.target.lastIndexOf("/")));
    const remove = (): void => {
      targets.removeTree(staged.staging, () => targets.syncDirectory(parent, () => done()));
    };
    readFile(targets, `${staged.target}/${staged.mark}`, RESTORED_MAX_BYTES, (bytes) => {
      const mark = bytes.ok ? decodeRestoredMark(staged.mark, bytes.value) : bytes;
      const isOwn = mark.ok && mark.value.clusterId === staged.clusterId;
      if (!isOwn) return remove();
      targets.rename(staged.target, staged.staging, remove);
    });
  }
}
