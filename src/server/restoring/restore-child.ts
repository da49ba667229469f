/**
 * The process in which a backup is restored: one job from the server that made it, at low priority.
 *
 * Owns the process. Invariants: 1. It ends with its job, and gives the job up when its server is
 * gone. 2. Whatever goes wrong in a way that nobody meant is an IoError, and the end of the
 * process.
 */
import { setPriority } from "node:os";
import { PROGRAM } from "../../base/levels.js";
import { failure } from "../../base/result.js";
import { RealArchive, signatures } from "../../disk/archive.js";
import type { RestoreEnd } from "../../host/restoring/restore-types.js";
import { Restore } from "../../host/restoring/restore.js";
import { KernelSorter } from "../../machine/store/kernel-sorter.js";
import type { LoggerPort } from "../../ports.js";
import { EXIT_FATAL, systemClock, systemEntropy, systemTimers } from "../../sys.js";
import { createKernels } from "../../wasm/kernels.js";
import { realStores } from "./real-stores.js";
import type { RestoreJob, ToChild, ToServer } from "./restore-wire.js";

/** As `nice` has it: below what serves, above what may starve. */
const PRIORITY = 10;

function tell(message: ToServer, sent: () => void = () => undefined): void {
  if (!process.connected) return sent();
  process.send?.(message, undefined, {}, () => sent());
}

function leave(end: RestoreEnd): void {
  tell({ kind: "end", end }, () => process.exit(end.ok ? 0 : EXIT_FATAL));
}

function begin(job: RestoreJob): Restore {
  const { settings, backupDir, key, storeMaxBytes, kernels } = job;
  const logger: LoggerPort = {
    log: (level, event) => {
      if (level !== "debug") tell({ kind: "log", level: level === "info" ? level : "warn", event });
    },
  };
  const fatal = {
    fatal: (reason: string): void => leave(failure("IoError", reason)),
  };
  const targets = new RealArchive(settings.restoreRoot);
  const ports = {
    ...{ backups: new RealArchive(backupDir), signatures: signatures(key), targets },
    stores: realStores(settings.restoreRoot, targets, storeMaxBytes, { logger, fatal }),
    ...{ clock: systemClock, timer: systemTimers, entropy: systemEntropy, logger },
    sorter: new KernelSorter(createKernels({ mode: kernels }).compact),
    staged: (staged: Extract<ToServer, { kind: "staged" }>["staged"]): void => {
      tell({ kind: "staged", staged });
    },
  };
  const restore = new Restore({ ...settings, program: PROGRAM }, ports, job.request, (progress) => {
    tell({ kind: "progress", progress });
  });
  restore.run(leave);
  return restore;
}

/** Waits for its job and carries it out. */
export function runRestoreChild(): void {
  process.umask(0o077);
  setPriority(PRIORITY);
  process.on("uncaughtException", (error) => {
    process.stderr.write(`${String(error.stack ?? error)}\n`);
    leave(failure("IoError", "The restore came upon a fault of the program."));
  });
  // The server decides when it ends, by what it says and by being there.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => undefined);
  let restore: Restore | null = null;
  process.on("message", (message: ToChild) => {
    if (message.kind === "job") restore ??= begin(message.job);
    else restore?.cancel();
  });
  process.on("disconnect", () => {
    if (restore === null) process.exit(EXIT_FATAL);
    restore.cancel();
  });
}
