/**
 * A small file system in memory, for what happens when a disk is full.
 *
 * Invariants: 1. It is gone with its test. 2. Where none can be mounted the test is skipped, visibly.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import type { Test } from "tap";

/** Mounts one at `path` until `t` ends; `options`: as `mount -o` takes them. False: `t` is skipped. */
export function hasSmallDisk(t: Test, path: string, options: string): boolean {
  mkdirSync(path, { recursive: true });
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path]);
  if (mounted.status !== 0) {
    t.pass("needs a mount", { skip: "this process may not mount a small file system" });
    return false;
  }
  t.teardown(() => void spawnSync("umount", ["-l", path]));
  return true;
}
