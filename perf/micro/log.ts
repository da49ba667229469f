/**
 * Log throughput: records of 200 bytes from 1, 64 and 1,024 producers, each with one write at a time.
 *
 * Prints records/s, latency and records per disk write, beside the disk's own synchronous write.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partitionId } from "../../src/base/ids.js";
import { RealFiles } from "../../src/disk/files.js";
import { openLog } from "../../src/disk/recovery.js";
import type { LogPorts } from "../../src/disk/segments.js";
import type { WriteAheadLog } from "../../src/disk/wal.js";
import { createKernels } from "../../src/wasm/kernels.js";

const RECORD_BYTES = 200;
const ROUND_MS = 2000;
const FLOOR_EVERY = 20_000;

let syncs = 0;
const ports: LogPorts = {
  files: new RealFiles(),
  timers: {
    after(delayMs, callback) {
      const timer = setTimeout(callback, delayMs);
      return { cancel: () => clearTimeout(timer) };
    },
    soon: (callback) => void setImmediate(callback),
  },
  clock: { monotonicMs: () => performance.now(), wallMs: () => Date.now() },
  logger: { log: () => undefined },
  fatal: {
    fatal(reason, fields) {
      throw new Error(`${reason} ${JSON.stringify(fields)}`);
    },
  },
  meter: { logSyncMs: () => void syncs++ },
};

function open(directory: string): Promise<WriteAheadLog> {
  const identity = { storageId: "perf", clusterId: "perf", nodeId: 1 };
  const segmentBytes = 64 * 1024 * 1024;
  const options = { directory, identity, segmentBytes, spaceRetryMs: 1000, mayCreate: true };
  const kernels = createKernels({ mode: "wasm" });
  return new Promise((resolve, reject) => {
    openLog(options, ports, kernels, (result) => {
      if (result.ok) resolve(result.value);
      else reject(new Error(result.message));
    });
  });
}

function percentile(sorted: Float64Array, share: number): string {
  return (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(2);
}

/** Each producer is a group that writes its next entry when the last one is durable. */
function round(log: WriteAheadLog, producers: number, firstGroup: number): Promise<string> {
  const payload = new Uint8Array(RECORD_BYTES).fill(7);
  const latencies: number[] = [];
  const startedMs = performance.now();
  const startedSyncs = syncs;
  let written = 0;
  let running = producers;
  return new Promise((resolve) => {
    const finish = (): void => {
      const seconds = (performance.now() - startedMs) / 1000;
      const sorted = Float64Array.from(latencies).sort();
      const perWrite = (written / (syncs - startedSyncs)).toFixed(1);
      const rate = Math.round(written / seconds).toLocaleString("en");
      const times = `p50 ${percentile(sorted, 0.5)} ms, p99 ${percentile(sorted, 0.99)} ms`;
      resolve(
        `log  ${String(producers).padStart(5)} producers  ${rate} records/s  ${times}  ${perWrite}/write`,
      );
    };
    for (let producer = 0; producer < producers; producer++) {
      const group = partitionId(firstGroup + producer);
      let index = 0;
      let sinceFloor = producer * 17;
      let issuedMs = 0;
      const done = (): void => {
        const nowMs = performance.now();
        if (index > 0) {
          latencies.push(nowMs - issuedMs);
          written++;
        }
        if (nowMs - startedMs > ROUND_MS) {
          if (--running === 0) finish();
          return;
        }
        if (++sinceFloor >= FLOOR_EVERY / producers + 200) {
          sinceFloor = 0;
          log.raiseFloor(group, { index, term: 1 });
        }
        index++;
        issuedMs = nowMs;
        log.write({
          group,
          hardState: null,
          entries: [{ index, term: 1, kind: 0, payload }],
          done,
        });
      };
      done();
    }
  });
}

const directory = mkdtempSync(join(tmpdir(), "svc-perf-log-"));
try {
  const log = await open(directory);
  let group = 1;
  for (const producers of [1, 64, 1024]) {
    console.log(await round(log, producers, group));
    group += producers;
  }
  console.log(`log  size ${String(Math.round(log.sizeBytes() / 1e6))} MB at the end`);
  await new Promise<void>((resolve) => log.close(resolve));
} finally {
  rmSync(directory, { recursive: true });
}
