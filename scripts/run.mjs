/** Runs a program of node_modules/.bin or any other, with its output on this process's streams. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "./build.mjs";

/** The path of a locally installed program. */
export function localBin(name) {
  return join(root, "node_modules", ".bin", name);
}

/** Where a check keeps what it found of unchanged files. */
export function cachePath(name) {
  return join(root, "node_modules", ".cache", "svc", name);
}

/** Runs `command` and returns its exit code; a missing program or a signal counts as 1. */
export function run(command, args) {
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit" });
  return result.status ?? 1;
}

/** Runs steps [title, command, args] in order, all of them, and ends the process with 1 if one failed. */
export function runSteps(steps) {
  const failed = [];
  for (const [title, command, args] of steps) {
    process.stderr.write(`— ${title}\n`);
    if (run(command, args) !== 0) failed.push(title);
  }
  if (failed.length > 0) {
    process.stderr.write(`failed: ${failed.join(", ")}\n`);
    process.exit(1);
  }
}
