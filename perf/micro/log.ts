/**
 * Log throughput: records of 200 bytes from 1, 64 and 1,024 producers, each with one write at a
 * time.
 *
 * Prints records/s, latency and records per disk write, beside the disk's own synchronous write.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partitionId } from "../../src/base/ids.js";
import type { Result } from "../../src/base/result.js";
import { RealFiles } from "../../src/disk/files.js";
import { openLog } from "../../src/disk/recovery.js";
import type { LogPorts } from "../../src/disk/segment.js";
import type { WriteAheadLog } from "../../src/disk/wal.js";
import type { FileErrorCode, OpenFile } from "../../src/ports.js";
import { createKernels } from "../../src/wasm/kernels.js";
import { diskPorts } from "../../test/disk/realports.js";

const RECORD_BYTES = 200;
const ROUND_MS = 2000;
const FLOOR_EVERY = 20_000;

let syncs = 0;
const ports: LogPorts = {
  ...diskPorts(),
  files: new RealFiles(),
  meter: { logSyncMs: () => void syncs++ },
};

/** Files whose writes end in the system's memory: what the log's own work allows at most. */
function withoutSync(): RealFiles {
  type Opened = (error: NodeJS.ErrnoException | null, descriptor: number) => void;
  const open = (path: string, flags: number, mode: number | Opened, done?: Opened): void => {
    const buffered = flags & ~fs.constants.O_DSYNC;
    if (typeof mode === "function") fs.open(path, buffered, mode);
    else if (done !== undefined) fs.open(path, buffered, mode, done);
  };
  return new RealFiles({ ...fs, open: open as typeof fs.open });
}

function open(directory: string, files: RealFiles): Promise<WriteAheadLog> {
  const identity = { storageId: "perf", clusterId: "perf", nodeId: 1 };
  const segmentBytes = 64 * 1024 * 1024;
  const options = { directory, identity, segmentBytes, spaceRetryMs: 1000, mayCreate: true };
  const kernels = createKernels({ mode: "wasm" });
  return new Promise((resolve, reject) => {
    openLog(options, { ...ports, files }, kernels, (result) => {
      if (result.ok) resolve(result.value);
      else reject(new Error(result.message));
    });
  });
}

function percentile(sorted: Float64Array, share: number): string {
  return (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(2);
}

/** Each producer is a group that writes its next entry when the last one is durable. */
function round(
  log: WriteAheadLog,
  name: string,
  producers: number,
  firstGroup: number,
): Promise<string> {
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
        `${name}  ${String(producers)} producers  ${rate} records/s  ${times}  ${perWrite}/write`,
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

/** The disk's own durable write of one sector, in place, one after the other. */
async function disk(directory: string): Promise<string> {
  const files = new RealFiles();
  const path = join(directory, "raw");
  const sizeBytes = 32 * 1024 * 1024;
  const call = <T>(start: (done: (result: Result<T, FileErrorCode>) => void) => void): Promise<T> =>
    new Promise((resolve, reject) => {
      start((result) => {
        if (result.ok) resolve(result.value);
        else reject(new Error(result.message));
      });
    });
  await call<null>((done) => files.allocate(path, sizeBytes, new Uint8Array(0), done));
  const file = await call<OpenFile>((done) => files.open(path, "durable", done));
  const bytes = new Uint8Array(4096).fill(1);
  const times: number[] = [];
  const startedMs = performance.now();
  for (let at = 0; at + 4096 <= sizeBytes && performance.now() - startedMs < 1000; at += 4096) {
    const beforeMs = performance.now();
    await call<null>((done) => files.write(file, at, bytes, done));
    times.push(performance.now() - beforeMs);
  }
  await call<null>((done) => files.close(file, done));
  await call<null>((done) => files.remove(path, done));
  const sorted = Float64Array.from(times).sort();
  const found = `p50 ${percentile(sorted, 0.5)} ms, p99 ${percentile(sorted, 0.99)} ms`;
  return `disk  durable write of 4 KiB  ${found}`;
}

async function rounds(name: string, files: RealFiles, counts: readonly number[]): Promise<void> {
  const directory = fs.mkdtempSync(join(tmpdir(), "svc-perf-log-"));
  try {
    console.log(await disk(directory));
    const log = await open(directory, files);
    let group = 1;
    for (const producers of counts) {
      console.log(await round(log, name, producers, group));
      group += producers;
    }
    console.log(`${name}  size ${String(Math.round(log.sizeBytes() / 1e6))} MB at the end`);
    await new Promise<void>((resolve) => log.close(resolve));
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

await rounds("log", new RealFiles(), [1, 64, 1024]);
await rounds("log without sync", withoutSync(), [64, 1024]);
