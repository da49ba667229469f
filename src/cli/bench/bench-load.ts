/**
 * The load of `bench`: what one operation is, and how operations are started.
 *
 * Owns the names it makes in the service until `clean`. Invariants: 1. With a rate, operation i is
 * planned at i / rate and its latency counts from there, however late it starts (no coordinated
 * omission). 2. A failed operation is counted by its code and never as a latency.
 */
import { randomBytes } from "node:crypto";
import type { SvcClient } from "../../client/mod.js";
import { Latencies } from "../terminal/latency.js";

export interface LoadPlan {
  readonly durationMs: number;
  /** Operations per second, null = as fast as answers come. */
  readonly rate: number | null;
  readonly inflight: number;
}

export interface LoadResult {
  readonly latencies: Latencies;
  readonly failures: ReadonlyMap<string, number>;
  readonly elapsedMs: number;
  readonly cpuMicros: number;
}

/** What is measured. */
export interface Subject {
  prepare(client: SvcClient, signal: AbortSignal): Promise<void>;
  /** One operation of worker `worker`, its `turn`-th. */
  operate(client: SvcClient, worker: number, turn: number): Promise<unknown>;
  /** Deletes what was made, or may have been; nothing is sent when nothing was. */
  clean(client: SvcClient): Promise<void>;
}

const LEASE_MS = 30_000;
const VALUE = Buffer.alloc(100, 0x76);
const KEYS_PER_WORKER = 16;
/** Deletions under way at a time. */
const CLEAN_AT_A_TIME = 1000;
/** After the end was asked for, answers are waited for so long (ms). */
const STOP_WAIT_MS = 1000;

function sequenceSubject(name: string): Subject {
  let isMade = false;
  return {
    prepare: async (client, signal) => {
      isMade = true;
      await client.sequences.create(name, {}, { signal }).catch((error: unknown) => {
        isMade = !(error instanceof Error && "outcome" in error && error.outcome === "none");
        throw error;
      });
    },
    operate: (client) => client.sequences.next(name),
    clean: async (client) => {
      if (isMade) await client.sequences.delete(name);
    },
  };
}

async function forAll(
  names: Iterable<string>,
  clear: (name: string) => Promise<unknown>,
): Promise<void> {
  const all = [...names];
  for (let at = 0; at < all.length; at += CLEAN_AT_A_TIME) {
    await Promise.all(all.slice(at, at + CLEAN_AT_A_TIME).map(clear));
  }
}

function lockSubject(name: string): Subject {
  const owner = Buffer.from(name);
  const used = new Set<string>();
  return {
    prepare: () => Promise.resolve(),
    operate: (client, worker, turn) => {
      const resource = `${name}-${worker}`;
      if (turn % 2 === 1) return client.locks.unlock(resource, { owner });
      used.add(resource);
      return client.locks.tryLock(resource, { owner, leaseMs: LEASE_MS });
    },
    clean: (client) => forAll(used, (resource) => client.locks.unlock(resource, { owner })),
  };
}

function kvSubject(name: string): Subject {
  const keys = new Set<string>();
  return {
    prepare: () => Promise.resolve(),
    operate: (client, worker, turn) => {
      const key = `${name}/${worker}-${turn % KEYS_PER_WORKER}`;
      keys.add(key);
      return client.kv.set(key, VALUE);
    },
    clean: (client) => forAll(keys, (key) => client.kv.delete(key)),
  };
}

export function makeSubject(kind: string): Subject {
  const name = `svc-bench-${randomBytes(6).toString("hex")}`;
  if (kind === "locks") return lockSubject(name);
  return kind === "kv" ? kvSubject(name) : sequenceSubject(name);
}

function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Resolves some time after `signal` aborted; `end` forgets it. */
function whenStopped(signal: AbortSignal): { readonly stopped: Promise<void>; end(): void } {
  let timer: NodeJS.Timeout | null = null;
  let begin = (): void => undefined;
  const stopped = new Promise<void>((resolve) => {
    begin = (): void => void (timer = setTimeout(resolve, STOP_WAIT_MS));
    if (signal.aborted) begin();
    else signal.addEventListener("abort", begin, { once: true });
  });
  const end = (): void => {
    signal.removeEventListener("abort", begin);
    if (timer !== null) clearTimeout(timer);
  };
  return { stopped, end };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unexpected";
}

/** Runs the load. `signal` ends it early: late answers are then not waited for much longer. */
export async function runLoad(
  subject: Subject,
  clients: readonly SvcClient[],
  plan: LoadPlan,
  signal: AbortSignal,
  onProgress: (share: number, done: number) => void,
): Promise<LoadResult> {
  const latencies = new Latencies();
  const failures = new Map<string, number>();
  const startMs = performance.now();
  const endMs = startMs + plan.durationMs;
  const cpu = process.cpuUsage();
  let started = 0;
  /** When the next operation is due; null when the time is over. */
  const nextDueMs = (): number | null => {
    const now = performance.now();
    const due = plan.rate === null ? now : startMs + (started * 1000) / plan.rate;
    if (due >= endMs || now >= endMs + plan.durationMs || signal.aborted) return null;
    started += 1;
    return due;
  };
  const work = async (worker: number): Promise<void> => {
    const client = clients[worker % clients.length] as SvcClient;
    for (let turn = 0; ; turn++) {
      const dueMs = nextDueMs();
      if (dueMs === null) return;
      const early = dueMs - performance.now();
      if (early > 0.5) await sleep(early);
      if (signal.aborted) return;
      // A timer may fire a little early: such an operation counts from when it was sent.
      const fromMs = Math.min(dueMs, performance.now());
      try {
        await subject.operate(client, worker, turn);
        latencies.record(performance.now() - fromMs);
      } catch (error) {
        const code = codeOf(error);
        failures.set(code, (failures.get(code) ?? 0) + 1);
      }
    }
  };
  const timer = setInterval(() => {
    onProgress((performance.now() - startMs) / plan.durationMs, latencies.count);
  }, 200);
  const { stopped, end } = whenStopped(signal);
  try {
    const all = Promise.all(Array.from({ length: plan.inflight }, (_, worker) => work(worker)));
    await Promise.race([all, stopped]);
  } finally {
    clearInterval(timer);
    end();
  }
  const used = process.cpuUsage(cpu);
  const elapsedMs = performance.now() - startMs;
  return { latencies, failures, elapsedMs, cpuMicros: used.user + used.system };
}
