/**
 * Asks every node for what a check needs beyond its state: timed reads, and its node debug.
 *
 * Owns one client per node while it reads. Invariants: 1. Nothing is written and nothing stored is
 * looked at: what is read is a key that nobody needs to have. 2. All nodes are asked at the same
 * time, each in bounded time. 3. What cannot be had is null, with its reason.
 */
import { BackupError, SvcClient, type BackupInfo, type NodeDebug } from "../../client/mod.js";
import type { RunContext } from "../invocation/context.js";
import { askNode } from "../status/status-gather.js";
import { Latencies } from "../terminal/latency.js";

const KEY = "svc-check";
const READ_MS = 5000;
const READS_MS = 8000;
/** Failures in a row after which no further read is tried. */
const FAILURES_MAX = 3;
const DEBUG_MS = 40_000;
const CATALOGUE_MS = 5000;

export interface ReadSample {
  readonly done: number;
  readonly failed: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface DebugSample {
  readonly debug: NodeDebug;
  /** Of this machine's clock: when it was asked for, and when it was there (Unix ms). */
  readonly askedMs: number;
  readonly hadMs: number;
}

export interface NodeSample {
  readonly url: string;
  readonly reads: ReadSample;
  readonly debug: DebugSample | null;
  /** Why there is none. */
  readonly problem: string;
}

/** null = backups are not configured, or the caller may not list them. */
export type Catalogue = readonly BackupInfo[] | null;

async function timedReads(url: string, context: RunContext, wanted: number): Promise<ReadSample> {
  const latencies = new Latencies();
  let failed = 0;
  let inRow = 0;
  const options = context.clients.options([url], 1);
  // A read that goes straight to its leader says nothing of this node.
  const client = new SvcClient({ ...options, followRoutes: false });
  const endMs = performance.now() + Math.min(READS_MS, context.leftMs());
  const read = (): Promise<unknown> => {
    return client.kv.get(KEY, { signal: context.signal, deadlineMs: READ_MS });
  };
  try {
    // The first one makes the connection.
    await read().catch(() => null);
    while (latencies.count + failed < wanted && inRow < FAILURES_MAX) {
      const beginMs = performance.now();
      if (beginMs >= endMs || context.signal.aborted) break;
      try {
        await read();
        latencies.record(performance.now() - beginMs);
        inRow = 0;
      } catch {
        failed += 1;
        inRow += 1;
      }
    }
  } finally {
    await client.close();
  }
  const p50Ms = latencies.percentileMs(0.5);
  return { done: latencies.count, failed, p50Ms, p99Ms: latencies.percentileMs(0.99) };
}

async function debugOf(url: string, context: RunContext): Promise<[DebugSample | null, string]> {
  const { answers, problem } = await askNode(url, context, DEBUG_MS, async (calling) => {
    const client = await context.clientOf(url);
    const askedMs = Date.now();
    const debug = await client.cluster.nodeDebug(calling);
    return { debug, askedMs, hadMs: Date.now() };
  });
  return [answers, problem];
}

export async function sampleNode(
  url: string,
  context: RunContext,
  reads: number,
): Promise<NodeSample> {
  const [timed, [debug, problem]] = await Promise.all([
    timedReads(url, context, reads),
    debugOf(url, context),
  ]);
  return { url, reads: timed, debug, problem };
}

/** The catalogue as the node at `url` knows it. */
export async function catalogueFrom(url: string, context: RunContext): Promise<Catalogue> {
  const { answers } = await askNode(url, context, CATALOGUE_MS, async (calling) => {
    const client = await context.clientOf(url);
    try {
      return await client.backups.list(calling);
    } catch (error) {
      if (error instanceof BackupError) return null;
      throw error;
    }
  });
  return answers;
}
