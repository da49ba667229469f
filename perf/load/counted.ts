/**
 * What servers did while they were loaded, counted: processor time, system calls, and of our own
 * nodes turns of the event loop, frames between nodes and durable writes of the log.
 *
 * Owns the process that counts system calls (`perf`, where it is installed and may). Invariants: 1.
 * Counting begins and ends around the same operations for all figures. 2. What cannot be counted
 * here is null, never zero.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { LocalNodes } from "./local-nodes.js";
import { processorMs } from "./processor.js";

/** Between the start of `perf` and the moment from which it counts (ms). */
const ATTACH_MS = 400;

export interface Counts {
  readonly processorUs: number;
  readonly systemCalls: number | null;
  readonly turns: number | null;
  readonly frames: number | null;
  readonly durableWrites: number | null;
}

/** Counts the system calls of processes until it is stopped. */
class SystemCalls {
  private text = "";
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;

  constructor(pids: readonly number[]) {
    const flags = ["stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-p", pids.join(",")];
    this.child = spawn("perf", flags, { stdio: ["ignore", "ignore", "pipe"] });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => (this.text += text));
    this.ended = new Promise((resolve) => {
      this.child.once("error", () => resolve());
      this.child.once("close", () => resolve());
    });
  }

  async stop(): Promise<number | null> {
    this.child.kill("SIGINT");
    await this.ended;
    const count = Number(this.text.split(",")[0]?.trim());
    return Number.isFinite(count) && count > 0 ? count : null;
  }
}

const OWN = {
  turns: "nodejs_event_loop_turns_total",
  frames: "svc_peer_sent_frames_total",
  durableWrites: "svc_wal_sync_duration_seconds_count",
} as const;

type Sums = Record<keyof typeof OWN, number>;

async function sumsOf(nodes: LocalNodes): Promise<Sums> {
  const sums: Sums = { turns: 0, frames: 0, durableWrites: 0 };
  for (const id of nodes.ids) {
    const metrics = await nodes.metrics(id);
    for (const [name, family] of Object.entries(OWN)) {
      sums[name as keyof Sums] += metrics.get(family) ?? 0;
    }
  }
  return sums;
}

/** Carries `load` out, and says what the processes did for each of the operations it returns. */
export async function counted<T>(
  pids: readonly number[],
  nodes: LocalNodes | null,
  load: () => Promise<T>,
  operationsOf: (done: T) => number,
): Promise<readonly [T, Counts]> {
  const calls = new SystemCalls(pids);
  await new Promise((resolve) => setTimeout(resolve, ATTACH_MS));
  const before = nodes === null ? null : await sumsOf(nodes);
  const beforeMs = processorMs(pids);
  const done = await load();
  const usedMs = processorMs(pids) - beforeMs;
  const after = nodes === null ? null : await sumsOf(nodes);
  const systemCalls = await calls.stop();
  const operations = operationsOf(done);
  const each = (name: keyof Sums): number | null =>
    before === null || after === null ? null : (after[name] - before[name]) / operations;
  const counts = {
    processorUs: (usedMs * 1000) / operations,
    systemCalls: systemCalls === null ? null : systemCalls / operations,
    turns: each("turns"),
    frames: each("frames"),
    durableWrites: each("durableWrites"),
  };
  return [done, counts];
}
