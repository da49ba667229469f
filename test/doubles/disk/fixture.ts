/**
 * Opens logs over a fake disk and drives them step by step.
 *
 * Invariants: 1. Everything runs in the caller's turn: no real time, no real disk.
 */
import { partitionId } from "../../../src/base/ids.js";
import type { Prng } from "../../../src/base/prng.js";
import type { Result } from "../../../src/base/result.js";
import { type LogIdentity, segmentName } from "../../../src/disk/log/records.js";
import { openLog } from "../../../src/disk/log/recovery.js";
import type { LogOpenCode } from "../../../src/disk/log/refusals.js";
import type { LogPorts } from "../../../src/disk/log/segment.js";
import type { WriteAheadLog } from "../../../src/disk/log/wal.js";
import type { HardState, LogEntry, LogFields } from "../../../src/ports.js";
import { type Kernels, createKernels } from "../../../src/wasm/kernels.js";
import { describeEntry } from "../../conformance/log.js";
import { FakeDisk, Steps } from "./fakedisk.js";

export const IDENTITY: LogIdentity = { storageId: "5709a9e0", clusterId: "cluster", nodeId: 1 };
export const DIRECTORY = "/wal";

export interface Machine {
  readonly steps: Steps;
  readonly disk: FakeDisk;
  readonly kernels: Kernels;
  readonly fatals: { reason: string; fields: LogFields | undefined }[];
  readonly events: { event: string; fields: LogFields | undefined }[];
  readonly segmentBytes: number;
}

/** One set for all machines of a test file: making one costs more than most tests. */
const shared = createKernels({ mode: "twin", checked: true });

export function machine(segmentBytes = 65_536, before?: FakeDisk, kernels?: Kernels): Machine {
  const steps = before?.steps ?? new Steps();
  return {
    steps,
    disk: before ?? new FakeDisk(steps),
    kernels: kernels ?? shared,
    fatals: [],
    events: [],
    segmentBytes,
  };
}

export function portsOf(on: Machine): LogPorts {
  return {
    files: on.disk,
    timers: on.steps,
    clock: { monotonicMs: () => on.steps.nowMs, wallMs: () => 0 },
    logger: { log: (_level, event, fields) => void on.events.push({ event, fields }) },
    fatal: { fatal: (reason, fields) => void on.fatals.push({ reason, fields }) },
    meter: { logSyncMs: () => undefined },
  };
}

/** Opens and runs until the answer is there. */
export function tryOpen(
  on: Machine,
  identity = IDENTITY,
  mayCreate = true,
): Result<WriteAheadLog, LogOpenCode> {
  const options = {
    directory: DIRECTORY,
    identity,
    segmentBytes: on.segmentBytes,
    spaceRetryMs: 1000,
    mayCreate,
  };
  let answer: Result<WriteAheadLog, LogOpenCode> | null = null;
  openLog(options, portsOf(on), on.kernels, (result) => {
    answer = result;
  });
  while (answer === null && !on.steps.run(1)) continue;
  if (answer === null) throw new Error("opening never answered");
  return answer;
}

export function open(on: Machine): WriteAheadLog {
  const result = tryOpen(on);
  if (!result.ok) throw new Error(`${result.code}: ${result.message}`);
  return result.value;
}

export function entry(index: number, term: number, text: string, kind = 0): LogEntry {
  return { index, term, kind, payload: new TextEncoder().encode(text) };
}

/** Entries first..last of `term`, each with `bytes` bytes that tell it from every other. */
export function entries(first: number, last: number, term: number, bytes = 40): LogEntry[] {
  const list: LogEntry[] = [];
  for (let index = first; index <= last; index++) {
    const payload = new Uint8Array(bytes);
    for (let at = 0; at < bytes; at++) payload[at] = (index * 31 + term * 7 + at) & 255;
    list.push({ index, term, kind: index % 5 === 0 ? 1 : 0, payload });
  }
  return list;
}

/** Writes and waits until durable. */
export function write(
  on: Machine,
  log: WriteAheadLog,
  group: number,
  list: readonly LogEntry[],
  hardState: HardState | null = null,
): void {
  let isDone = false;
  const done = (): void => {
    isDone = true;
  };
  log.write({ group: partitionId(group), hardState, entries: list, done });
  on.steps.run();
  if (!isDone) throw new Error("the write is not durable");
}

export function read(
  on: Machine,
  log: WriteAheadLog,
  group: number,
  first: number,
  last: number,
  maxBytes = 1e9,
): readonly LogEntry[] | "compacted" {
  let found: readonly LogEntry[] | "compacted" | null = null;
  log.read(partitionId(group), first, last, maxBytes, (result) => {
    found = result.ok ? result.value : result.code;
  });
  on.steps.run();
  if (found === null) throw new Error("the read never answered");
  return found;
}

/** Closes and waits. */
export function close(on: Machine, log: WriteAheadLog): void {
  let isDone = false;
  log.close(() => {
    isDone = true;
  });
  on.steps.run();
  if (!isDone) throw new Error("close never answered");
}

/** A machine that starts on what `on` has written, as after the end of the process. */
export function restart(on: Machine): Machine {
  return machine(on.segmentBytes, on.disk.copy(new Steps()), on.kernels);
}

/**
 * A machine that starts on what a loss of power at this moment leaves. `on` is of no use
 * afterwards.
 */
export function powerLoss(on: Machine, prng: Prng): Machine {
  const disk = on.disk.crash(new Steps(), prng);
  // The old process runs to an end without a trace, so that it gives its regions back.
  on.disk.writeFault = () => "failed";
  on.steps.run();
  return machine(on.segmentBytes, disk, on.kernels);
}

/** The group of most tests. */
export const G = partitionId(1);

export function segmentPath(sequence: number): string {
  return `${DIRECTORY}/${segmentName(sequence)}`;
}

export function bytesOf(on: Machine, sequence: number): Uint8Array {
  const inode = on.disk.names.get(segmentPath(sequence));
  if (inode === undefined) throw new Error(`no segment ${String(sequence)}`);
  return inode.bytes;
}

/** The entries of group 1 after a start on `on`, or the refusal's code. */
export function recoverFrom(on: Machine): string {
  const opened = tryOpen(on);
  if (!opened.ok) return opened.code;
  const snapshot = opened.value.recovered().get(G);
  if (snapshot === undefined) return "";
  const last = snapshot.lastIndex;
  if (last === snapshot.floor.index) return "";
  const found = read(on, opened.value, 1, snapshot.floor.index + 1, last);
  return found === "compacted" ? found : found.map(describeEntry).join(" ");
}

export function text(list: readonly Parameters<typeof describeEntry>[0][]): string {
  return list.map(describeEntry).join(" ");
}
