/**
 * From an operation to its code, loaded on demand: a one-shot `--get` loads nothing of backups or
 * ranges.
 *
 * Invariants: 1. Every operation of the table of commands is found in its module (held by a test).
 */
import { present } from "../../base/assert.js";
import type { CommandSpec, RunModule } from "../commands/command.js";
import type { RunOperation, RunTable } from "../invocation/context.js";

async function loadModule(name: RunModule): Promise<RunTable> {
  switch (name) {
    case "kv":
      return (await import("./kv.js")).KV_RUN;
    case "locks":
      return (await import("./locks.js")).LOCKS_RUN;
    case "sequences":
      return (await import("./sequences.js")).SEQUENCES_RUN;
    case "watches":
      return (await import("./watches.js")).WATCHES_RUN;
    case "cluster":
      return (await import("./cluster.js")).CLUSTER_RUN;
    case "status":
      return (await import("./status.js")).STATUS_RUN;
    case "ranges":
      return (await import("./ranges.js")).RANGES_RUN;
    case "backups":
      return (await import("./backups.js")).BACKUPS_RUN;
    case "check":
      return (await import("./check.js")).CHECK_RUN;
    case "lock-admin":
      return (await import("./lock-admin.js")).LOCK_ADMIN_RUN;
    case "bundle":
      return (await import("./bundle.js")).BUNDLE_RUN;
  }
}

/** The code of `command`. */
export async function loadOperation(command: CommandSpec): Promise<RunOperation> {
  const table = await loadModule(command.module);
  return present(table[command.name], `${command.name} is in its module`);
}
