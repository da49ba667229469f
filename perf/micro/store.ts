/**
 * The state store: a million keys of 100 bytes, opening, reads, scans, and the loop's lag during a
 * flush.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { type LmdbStore, openStore } from "../../src/disk/store/store.js";
import type { StoreChange } from "../../src/ports.js";
import { diskPorts } from "../../test/doubles/disk/realports.js";

const KEYS = 1_000_000;
const FLUSH_ROWS = 10_000;

function open(path: string): LmdbStore {
  const opened = openStore({ path, maxBytes: 2 ** 36, mapBytes: 2 ** 30 }, diskPorts());
  if (!opened.ok) throw new Error(opened.message);
  return opened.value;
}

/** A key of 100 bytes that sorts by number. */
function key(number: number): Uint8Array {
  const text = "k".repeat(90) + String(number).padStart(10, "0");
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

function write(store: LmdbStore, changes: readonly StoreChange[]): Promise<void> {
  return new Promise((resolve, reject) => {
    store.write(changes, (result) => {
      if (result.ok) resolve();
      else reject(new Error(result.message));
    });
  });
}

function changesFrom(first: number, step: number, count: number): StoreChange[] {
  const value = new Uint8Array(100).fill(first & 255);
  const list: StoreChange[] = [];
  for (let at = 0; at < count; at++) list.push({ key: key(first + at * step), value });
  return list;
}

async function flushes(store: LmdbStore, rows: number): Promise<void> {
  const batches: StoreChange[][] = [];
  const spread = Math.floor(KEYS / rows);
  for (let round = 0; round < 10; round++) batches.push(changesFrom(round, spread, rows));
  const lag = monitorEventLoopDelay({ resolution: 1 });
  const calls: number[] = [];
  const times: number[] = [];
  for (const batch of batches) {
    lag.enable();
    const startedMs = performance.now();
    const done = write(store, batch);
    calls.push(performance.now() - startedMs);
    await done;
    times.push(performance.now() - startedMs);
    lag.disable();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const middle = (list: number[]): string => (list.sort((a, b) => a - b)[5] ?? 0).toFixed(1);
  const worst = (lag.max / 1e6).toFixed(1);
  const text = `p50 ${middle(times)} ms, call itself ${middle(calls)} ms, loop lag max ${worst} ms`;
  console.log(`store  flush of ${String(rows)} random rows of 200 bytes  ${text}`);
}

function reads(store: LmdbStore): void {
  const count = 100_000;
  const keys = Array.from({ length: count }, (_, at) => key((at * 7919) % KEYS));
  let startedMs = performance.now();
  for (const wanted of keys) store.get(wanted);
  const getRate = count / (performance.now() - startedMs);
  startedMs = performance.now();
  let rows = 0;
  store.scan(new Uint8Array(0), null, () => ++rows < count);
  const scanRate = count / (performance.now() - startedMs);
  const text = `${getRate.toFixed(0)}k gets/s  ${scanRate.toFixed(0)}k rows scanned/s`;
  console.log(`store  ${text}`);
}

const path = mkdtempSync(join(tmpdir(), "svc-perf-store-"));
try {
  let store = open(path);
  let startedMs = performance.now();
  for (let first = 0; first < KEYS; first += 20_000) {
    await write(store, changesFrom(first, 1, 20_000));
  }
  const fillMs = performance.now() - startedMs;
  const size = (store.sizeBytes() / 1e6).toFixed(0);
  console.log(
    `store  ${String(KEYS)} keys of 100 bytes  ${fillMs.toFixed(0)} ms to fill  ${size} MB`,
  );
  await new Promise<void>((done) => store.close(done));
  startedMs = performance.now();
  store = open(path);
  store.get(key(5));
  console.log(`store  open and first get  ${(performance.now() - startedMs).toFixed(1)} ms`);
  reads(store);
  for (const rows of [1000, 4000, FLUSH_ROWS]) await flushes(store, rows);
  await new Promise<void>((done) => store.close(done));
} finally {
  rmSync(path, { recursive: true });
}
