/**
 * A group of the kernel's controllers for one pod: what its processes may use of memory, and of processor time where it is told.
 *
 * Version 1 and 2 of control groups; needs root. Invariants: 1. Only groups that were made here are changed; their names begin
 * with `svcT`. 2. A group is gone when its pod is.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";
const PERIOD_US = 100_000;

export interface MemoryUse {
  /** Not of files: what no reclaim gives back. */
  readonly ownBytes: number;
  /** Processes that were ended for want of memory. */
  readonly kills: number;
}

/** Below which folder groups are made, by version; null: they cannot be made here. */
function parentOf(): {
  readonly version: 1 | 2;
  readonly memory: string;
  readonly cpu: string;
} | null {
  const own = readFileSync("/proc/self/cgroup", "utf8");
  const pathOf = (controller: string): string =>
    new RegExp(`^\\d+:${controller}:(.*)$`, "m").exec(own)?.[1] ?? "/";
  if (existsSync(join(ROOT, "memory", "memory.limit_in_bytes"))) {
    // Below the own group: its limit stays in force.
    const memory = join(ROOT, "memory", pathOf("memory"));
    return { version: 1, memory, cpu: join(ROOT, "cpu", pathOf("cpu")) };
  }
  const control = join(ROOT, "cgroup.subtree_control");
  const given = existsSync(control) ? readFileSync(control, "utf8") : "";
  if (!/\bmemory\b/.test(given) || !/\bcpu\b/.test(given)) return null;
  return { version: 2, memory: ROOT, cpu: ROOT };
}

export class MemoryGroup {
  private readonly memory: string;
  private readonly cpu: string;

  private constructor(
    private readonly version: 1 | 2,
    parent: { readonly memory: string; readonly cpu: string },
    name: string,
  ) {
    this.memory = join(parent.memory, name);
    this.cpu = join(parent.cpu, name);
    for (const path of new Set([this.memory, this.cpu])) mkdirSync(path);
  }

  /** null where this machine lets nobody make one. `share`: of one processor; absent: no bound. */
  static make(name: string, limitBytes: number, share?: number): MemoryGroup | null {
    const parent = parentOf();
    if (parent === null) return null;
    let group: MemoryGroup;
    try {
      group = new MemoryGroup(parent.version, parent, name);
    } catch {
      return null;
    }
    const isFirst = parent.version === 1;
    group.write(group.memory, isFirst ? "memory.limit_in_bytes" : "memory.max", limitBytes);
    if (share !== undefined) {
      const quota = Math.round(share * PERIOD_US);
      if (isFirst) {
        group.write(group.cpu, "cpu.cfs_period_us", PERIOD_US);
        group.write(group.cpu, "cpu.cfs_quota_us", quota);
      } else group.write(group.cpu, "cpu.max", `${quota} ${PERIOD_US}`);
    }
    return group;
  }

  /** Shell commands by which a process enters it. */
  get entry(): readonly string[] {
    const folders = [...new Set([this.memory, this.cpu])];
    return folders.map((folder) => `echo 0 > '${folder}/cgroup.procs'`);
  }

  use(): MemoryUse {
    const read = (file: string, line: RegExp): number => {
      return Number(line.exec(readFileSync(join(this.memory, file), "utf8"))?.[1] ?? 0);
    };
    return this.version === 1
      ? {
          ownBytes: read("memory.stat", /^total_rss (\d+)$/m),
          kills: read("memory.oom_control", /^oom_kill (\d+)$/m),
        }
      : {
          ownBytes: read("memory.stat", /^anon (\d+)$/m),
          kills: read("memory.events", /^oom_kill (\d+)$/m),
        };
  }

  remove(): void {
    for (const path of new Set([this.memory, this.cpu])) rmdirSync(path);
  }

  private write(folder: string, file: string, value: number | string): void {
    writeFileSync(join(folder, file), String(value));
  }
}
