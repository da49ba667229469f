/**
 * What an operator may read of a node to find out what is wrong with it (contract 5.7): one JSON
 * object, made member by member of what may be told.
 *
 * Invariants: 1. One at a time. 2. What is in it is listed here, and is numbers, states, addresses
 * and paths: no content of files, no environment, no stored data and none of its names. 3. What
 * cannot be had is null, with its reason in `missing`. 4. It has DEBUG_MAX_BYTES at most: the
 * profile goes first, then the oldest lines.
 */
import { Session } from "node:inspector";
import { getHeapStatistics } from "node:v8";
import { NODE_DEBUG_MAX_BYTES } from "../base/limits.js";
import type { NodeDebugPort } from "../operations/api/node-debug.js";

/** Pause between the two texts of metrics (ms). */
const METRICS_PAUSE_MS = 10_000;

/** Where the members come from, by name. Each gives plain data. */
export interface DebugSources {
  /** Those that are at hand. */
  readonly at: Readonly<Record<string, () => unknown>>;
  metrics(): Promise<string>;
  logs(): readonly string[];
  /** The node ends: nothing is begun any more. */
  isEnding(): boolean;
}

export interface DebugPorts {
  after(delayMs: number, callback: () => void): unknown;
  profile(seconds: number): Promise<unknown>;
}

type Missing = Record<string, string>;

export class NodeDebug implements NodeDebugPort {
  private isMaking = false;

  constructor(
    private readonly sources: DebugSources,
    private readonly ports: DebugPorts,
  ) {}

  make(profileSeconds: number, done: (text: string | null) => void): void {
    if (this.isMaking || this.sources.isEnding()) {
      this.ports.after(0, () => done(null));
      return;
    }
    this.isMaking = true;
    const ended = (text: string | null): void => {
      this.isMaking = false;
      done(text);
    };
    this.text(profileSeconds).then(ended, () => ended(null));
  }

  private async text(profileSeconds: number): Promise<string> {
    const missing: Missing = {};
    const profiling = profileSeconds === 0 ? null : this.ports.profile(profileSeconds);
    const profiled = tried("profile", profiling, missing);
    const first = await tried("metrics", this.sources.metrics(), missing);
    await new Promise<void>((resolve) => this.ports.after(METRICS_PAUSE_MS, resolve));
    const second = await tried("metrics", this.sources.metrics(), missing);
    const profile = await profiled;
    // What is read at once is read last: the node may have ended meanwhile.
    const facts = this.facts(missing);
    const logs = [...this.sources.logs()];
    const metrics = [first, second];
    const all = (more: object): string =>
      JSON.stringify({ ...facts, metrics, logs, profile: null, missing, ...more });
    const whole = all({ profile });
    if (Buffer.byteLength(whole) <= NODE_DEBUG_MAX_BYTES) return whole;
    if (profile !== null) missing["profile"] = "it is too large";
    return bounded(logs, all);
  }

  private facts(missing: Missing): Record<string, unknown> {
    const facts: Record<string, unknown> = {};
    for (const [name, read] of Object.entries(this.sources.at)) {
      facts[name] = null;
      try {
        if (this.sources.isEnding()) missing[name] = "the node is stopping";
        else facts[name] = read();
      } catch (error) {
        missing[name] = String(error);
      }
    }
    return facts;
  }
}

/** Leaves the oldest lines out until the rest is small enough. */
function bounded(logs: string[], all: (more: object) => string): string {
  let text = all({});
  while (Buffer.byteLength(text) > NODE_DEBUG_MAX_BYTES && logs.length > 0) {
    logs.splice(0, Math.ceil(logs.length / 2));
    text = all({});
  }
  return text;
}

async function tried<T>(
  name: string,
  wanted: Promise<T> | null,
  missing: Missing,
): Promise<T | null> {
  try {
    return await wanted;
  } catch (error) {
    missing[name] = String(error);
    return null;
  }
}

/** Of the process itself. */
export function processFacts(): object {
  const { node, v8, uv } = process.versions;
  return {
    pid: process.pid,
    wallMs: Date.now(),
    uptimeSeconds: Math.round(process.uptime()),
    versions: { node, v8, uv },
    platform: `${process.platform} ${process.arch}`,
    memory: process.memoryUsage(),
    heap: getHeapStatistics(),
    cpu: process.cpuUsage(),
    resources: process.resourceUsage(),
  };
}

/** What the processor did for so many seconds, as V8 samples it. */
export function cpuProfile(seconds: number): Promise<unknown> {
  const session = new Session();
  session.connect();
  const post = (method: string): Promise<{ readonly profile?: unknown }> =>
    new Promise((resolve, reject) => {
      session.post(method, (error: Error | null, result?: object) => {
        if (error === null) resolve(result ?? {});
        else reject(error);
      });
    });
  const run = async (): Promise<unknown> => {
    await post("Profiler.enable");
    await post("Profiler.start");
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    return (await post("Profiler.stop")).profile ?? null;
  };
  return run().finally(() => session.disconnect());
}
