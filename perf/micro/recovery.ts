/**
 * Recovery of the log: bytes and records per second, resident memory, for a million entries.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partitionId } from "../../src/base/ids.js";
import { RealFiles } from "../../src/disk/files.js";
import { openLog } from "../../src/disk/log/recovery.js";
import type { LogPorts } from "../../src/disk/log/segment.js";
import type { WriteAheadLog } from "../../src/disk/log/wal.js";
import { createKernels } from "../../src/wasm/kernels.js";
import { diskPorts } from "../../test/doubles/disk/realports.js";

const ENTRIES = 1_000_000;
const PAYLOAD_BYTES = 200;
const GROUPS = 16;
const BATCH = 500;

function open(directory: string): Promise<WriteAheadLog> {
  const identity = { storageId: "perf", clusterId: "perf", nodeId: 1 };
  const segmentBytes = 64 * 1024 * 1024;
  const options = { directory, identity, segmentBytes, spaceRetryMs: 1000, mayCreate: true };
  const ports: LogPorts = { ...diskPorts(), files: new RealFiles() };
  return new Promise((resolve, reject) => {
    openLog(options, ports, createKernels({ mode: "wasm" }), (result) => {
      if (result.ok) resolve(result.value);
      else reject(new Error(result.message));
    });
  });
}

async function fill(directory: string): Promise<number> {
  const log = await open(directory);
  const payload = new Uint8Array(PAYLOAD_BYTES).fill(5);
  for (let first = 1; first <= ENTRIES / GROUPS; first += BATCH) {
    const writes: Promise<void>[] = [];
    for (let at = 0; at < GROUPS; at++) {
      const group = partitionId(at);
      const entries = Array.from({ length: BATCH }, (_, next) => {
        return { index: first + next, term: 1 + (first >> 14), kind: 0, payload };
      });
      writes.push(
        new Promise((done) => {
          log.write({ group, hardState: null, entries, done });
        }),
      );
    }
    await Promise.all(writes);
  }
  const bytes = log.sizeBytes();
  await new Promise<void>((done) => log.close(done));
  return bytes;
}

const directory = mkdtempSync(join(tmpdir(), "svc-perf-recovery-"));
try {
  const bytes = await fill(directory);
  for (let round = 0; round < 3; round++) {
    const startedMs = performance.now();
    const log = await open(directory);
    const tookMs = performance.now() - startedMs;
    let found = 0;
    for (const snapshot of log.recovered().values()) found += snapshot.lastIndex;
    const rate = `${(bytes / 1e6 / (tookMs / 1000)).toFixed(0)} MB/s`;
    const records = `${String(found)} records in ${tookMs.toFixed(0)} ms`;
    const resident = `${String(Math.round(process.memoryUsage().rss / 1e6))} MB resident`;
    console.log(`recovery  ${records}  ${(bytes / 1e6).toFixed(0)} MB  ${rate}  ${resident}`);
    await new Promise<void>((done) => log.close(done));
  }
} finally {
  rmSync(directory, { recursive: true });
}
