/**
 * Log throughput: records of 200 bytes from 1, 64 and 1,024 producers. Each producer is a group; it
 * keeps one record outstanding (a caller that waits for each answer) or four (a leader that
 * pipelines its entries).
 *
 * A closed loop can never be faster than (records outstanding) / (latency of one disk write), since
 * all of them share each write. So the disk's own write of as many bytes as such a batch has is
 * measured in turns with the log, and the bound stands beside each rate. Everything is measured
 * through the cache (O_DSYNC) and past it (O_DIRECT), in turns.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { partitionId } from "../../src/base/ids.js";
import type { Result } from "../../src/base/result.js";
import { RealFiles } from "../../src/disk/files.js";
import { SECTOR_BYTES } from "../../src/disk/log/records.js";
import { openLog } from "../../src/disk/log/recovery.js";
import type { LogPorts } from "../../src/disk/log/segment.js";
import type { WriteAheadLog } from "../../src/disk/log/wal.js";
import type { FileErrorCode, OpenFile } from "../../src/ports.js";
import { createKernels, frameBytes } from "../../src/wasm/kernels.js";
import { diskPorts } from "../../test/doubles/disk/realports.js";
import { median, phaseSeconds, printMachine, printTable, thousands } from "../load/report.js";

const RECORD_BYTES = 200;
const ROUNDS = 5;
const ROUND_MS = phaseSeconds(1) * 1000;
const PROBES = 250;
const PROBE_FILE_BYTES = 32 * 1024 * 1024;
const FLOOR_EVERY = 20_000;

interface Load {
  readonly producers: number;
  /** Records outstanding of each. */
  readonly window: number;
}

const LOADS: readonly Load[] = [
  { producers: 1, window: 1 },
  { producers: 64, window: 1 },
  { producers: 64, window: 4 },
  { producers: 1024, window: 1 },
];

let syncs = 0;
const ports: Omit<LogPorts, "files"> = {
  ...diskPorts(),
  meter: { logSyncMs: () => void syncs++ },
};

type Opened = (error: NodeJS.ErrnoException | null, descriptor: number) => void;

/** Real files that are opened without some flags; null as `without` refuses what has O_DIRECT. */
function filesWith(change: (flags: number) => number | null): RealFiles {
  const open = (path: string, flags: number, mode: number | Opened, done?: Opened): void => {
    const changed = change(flags);
    const end = typeof mode === "function" ? mode : (done as Opened);
    if (changed === null) {
      const refusal = Object.assign(new Error("refused"), { code: "EINVAL" });
      setImmediate(() => end(refusal, -1));
    } else fs.open(path, changed, typeof mode === "number" ? mode : 0o600, end);
  };
  return new RealFiles({ ...fs, open: open as typeof fs.open });
}

const { O_DSYNC, O_DIRECT } = fs.constants;
const withoutDirect = (flags: number): number | null => ((flags & O_DIRECT) !== 0 ? null : flags);
/** Ends in the system's memory: what the log's own work allows at most. */
const withoutSync = (flags: number): number | null => {
  const kept = withoutDirect(flags);
  return kept === null ? null : kept & ~O_DSYNC;
};

function call<T>(start: (done: (result: Result<T, FileErrorCode>) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    start((result) => {
      if (result.ok) resolve(result.value);
      else reject(new Error(result.message));
    });
  });
}

function percentile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** A log of its own, and a file beside it on which the disk alone is measured. */
class Subject {
  private nextGroup = 1;
  private probeAt = 0;

  private constructor(
    readonly name: string,
    private readonly directory: string,
    private readonly files: RealFiles,
    private readonly log: WriteAheadLog,
    private readonly probe: OpenFile,
    private readonly bytes: Uint8Array,
  ) {}

  static async open(name: string, files: RealFiles): Promise<Subject> {
    const directory = fs.mkdtempSync(join(tmpdir(), "svc-perf-log-"));
    const identity = { storageId: "perf", clusterId: "perf", nodeId: 1 };
    const segmentBytes = 64 * 1024 * 1024;
    const options = { directory, identity, segmentBytes, spaceRetryMs: 1000, mayCreate: true };
    const kernels = createKernels({ mode: "wasm" });
    const log = await new Promise<WriteAheadLog>((resolve, reject) => {
      openLog(options, { ...ports, files }, kernels, (result) => {
        if (result.ok) resolve(result.value);
        else reject(new Error(result.message));
      });
    });
    const path = join(directory, "probe");
    await call<null>((done) => files.allocate(path, PROBE_FILE_BYTES, new Uint8Array(0), done));
    const probe = await call<OpenFile>((done) => files.open(path, "durable", done));
    // Like the log's batches, in memory whose pages are the system's pages: of no other kernel use.
    const { window } = createKernels({ mode: "wasm" }).scanner;
    return new Subject(name, directory, files, log, probe, window.subarray(0, 1024 * 1024).fill(7));
  }

  /** Durations of durable writes of `sizeBytes`, one after the other, in ms. */
  async disk(sizeBytes: number): Promise<number[]> {
    const times: number[] = [];
    for (let at = 0; at < PROBES; at++) {
      if (this.probeAt + sizeBytes > PROBE_FILE_BYTES) this.probeAt = 0;
      const bytes = this.bytes.subarray(0, sizeBytes);
      const beforeMs = performance.now();
      await call<null>((done) => this.files.write(this.probe, this.probeAt, bytes, done));
      times.push(performance.now() - beforeMs);
      this.probeAt += sizeBytes;
    }
    return times;
  }

  async run(load: Load): Promise<{ rate: number; times: number[]; perWrite: number }> {
    const { log } = this;
    const startedMs = performance.now();
    const startedSyncs = syncs;
    const times: number[] = [];
    const group = this.nextGroup;
    this.nextGroup += load.producers;
    await Promise.all(
      Array.from({ length: load.producers }, (_, at) =>
        produce(log, group + at, load, startedMs + ROUND_MS, times),
      ),
    );
    const rate = times.length / ((performance.now() - startedMs) / 1000);
    return { rate, times, perWrite: times.length / (syncs - startedSyncs) };
  }

  async close(): Promise<void> {
    await call<null>((done) => this.files.close(this.probe, done));
    await new Promise<void>((resolve) => this.log.close(resolve));
    fs.rmSync(this.directory, { recursive: true });
  }
}

/** Writes entries of one group, `window` of them at a time, until `endMs`. */
function produce(
  log: WriteAheadLog,
  groupNumber: number,
  { producers, window }: Load,
  endMs: number,
  times: number[],
): Promise<void> {
  const payload = new Uint8Array(RECORD_BYTES).fill(7);
  const group = partitionId(groupNumber);
  let index = 0;
  let durable = 0;
  let sinceFloor = groupNumber * 17;
  return new Promise((resolve) => {
    const write = (): void => {
      const issuedMs = performance.now();
      const entries = [{ index: ++index, term: 1, kind: 0, payload }];
      const done = (): void => {
        const nowMs = performance.now();
        durable++;
        times.push(nowMs - issuedMs);
        if (++sinceFloor >= FLOOR_EVERY / producers + 200) {
          sinceFloor = 0;
          log.raiseFloor(group, { index: durable, term: 1 });
        }
        if (nowMs < endMs) write();
        else if (durable === index) resolve();
      };
      log.write({ group, hardState: null, entries, done });
    };
    for (let at = 0; at < window; at++) write();
  });
}

/** What one batch of all outstanding records takes on the disk. */
function batchBytes({ producers, window }: Load): number {
  const bytes = producers * window * frameBytes(RECORD_BYTES);
  return Math.ceil(bytes / SECTOR_BYTES) * SECTOR_BYTES;
}

interface Found {
  rates: number[];
  times: number[];
  perWrite: number[];
  disk: number[];
}

async function measure(subjects: readonly Subject[], rounds: number): Promise<void> {
  for (const load of LOADS) {
    const found = new Map<Subject, Found>();
    for (let round = -1; round < rounds; round++) {
      for (const subject of round % 2 === 0 ? subjects : [...subjects].reverse()) {
        const disk = await subject.disk(batchBytes(load));
        const { rate, times, perWrite } = await subject.run(load);
        disk.push(...(await subject.disk(batchBytes(load))));
        // The first round is for the compiler.
        if (round < 0) continue;
        const all = found.get(subject) ?? { rates: [], times: [], perWrite: [], disk: [] };
        found.set(subject, all);
        all.rates.push(rate);
        for (const time of times) all.times.push(time);
        all.perWrite.push(perWrite);
        all.disk.push(...disk);
      }
    }
    for (const subject of subjects) rows.push(rowOf(subject.name, load, found.get(subject)));
  }
}

function rowOf(name: string, load: Load, found: Found | undefined): string[] {
  if (found === undefined) return [];
  const { rates, times, perWrite, disk } = found;
  const tail = percentile(disk, 0.99);
  const bound = (1000 * load.producers * load.window) / mean(disk);
  return [
    `${name}, ${String(load.producers)} x ${String(load.window)}`,
    thousands(median(rates)),
    `${thousands(Math.min(...rates))} - ${thousands(Math.max(...rates))}`,
    median(perWrite).toFixed(0),
    percentile(times, 0.5).toFixed(2),
    percentile(times, 0.99).toFixed(2),
    [mean(disk).toFixed(3), percentile(disk, 0.5).toFixed(3), tail.toFixed(1)].join(" / "),
    thousands(bound),
    `${((100 * median(rates)) / bound).toFixed(0)} %`,
  ];
}

const HEADER = [
  "producers x outstanding",
  "records/s",
  "lowest - highest",
  "a write",
  "p50 ms",
  "p99 ms",
  "disk alone, mean / p50 / p99 ms",
  "bound",
  "of it",
];
const rows: string[][] = [];

printMachine();
const durable = [
  await Subject.open("O_DSYNC", filesWith(withoutDirect)),
  await Subject.open("O_DIRECT", new RealFiles()),
];
await measure(durable, ROUNDS);
for (const subject of durable) await subject.close();
const buffered = [await Subject.open("without sync", filesWith(withoutSync))];
await measure(buffered, 2);
for (const subject of buffered) await subject.close();
printTable(HEADER, rows);
