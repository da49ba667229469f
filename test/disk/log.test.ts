/**
 * The write-ahead log: conformance of all three logs, and its behaviour under each named fault.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { partitionId } from "../../src/base/ids.js";
import { Prng } from "../../src/base/prng.js";
import { RealFiles } from "../../src/disk/files.js";
import { MemoryLog } from "../../src/disk/memorylog.js";
import { SECTOR_BYTES, segmentName } from "../../src/disk/records.js";
import { openLog } from "../../src/disk/recovery.js";
import type { WriteAheadLog } from "../../src/disk/wal.js";
import type { TimerPort } from "../../src/ports.js";
import { createKernels } from "../../src/wasm/kernels.js";
import { type LogHarness, describeEntry, logConformance } from "../conformance/log.js";
import { Steps } from "./fakedisk.js";
import {
  DIRECTORY,
  IDENTITY,
  type Machine,
  close,
  entries,
  machine,
  open,
  portsOf,
  powerLoss,
  read,
  restart,
  tryOpen,
  write,
} from "./fixture.js";

const realTimers: TimerPort = {
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(timer) };
  },
  soon: (callback) => void setImmediate(callback),
};

function waiting<T>(start: (done: (value: T) => void) => void): Promise<T> {
  return new Promise((resolve) => start(resolve));
}

function fakeHarness(): LogHarness {
  let on = machine();
  let isFirst = true;
  return {
    survives: true,
    open() {
      if (!isFirst) on = restart(on);
      isFirst = false;
      return Promise.resolve(open(on));
    },
    call<T>(start: (done: (value: T) => void) => void): Promise<T> {
      const answer = waiting(start);
      on.steps.run();
      return answer;
    },
    finish() {
      return Promise.resolve();
    },
  };
}

function realHarness(): LogHarness {
  const directory = mkdtempSync(join(tmpdir(), "svc-log-"));
  const options = {
    directory,
    identity: IDENTITY,
    segmentBytes: 1024 * 1024,
    spaceRetryMs: 50,
    mayCreate: true,
  };
  return {
    survives: true,
    open: () =>
      new Promise((resolve, reject) => {
        const ports = { ...portsOf(machine()), files: new RealFiles(), timers: realTimers };
        openLog(options, ports, createKernels({ mode: "wasm" }), (result) => {
          if (result.ok) resolve(result.value);
          else reject(new Error(result.message));
        });
      }),
    call: waiting,
    finish() {
      rmSync(directory, { recursive: true });
      return Promise.resolve();
    },
  };
}

function memoryHarness(): LogHarness {
  return {
    survives: false,
    open: () => Promise.resolve(new MemoryLog(realTimers)),
    call: waiting,
    finish: () => Promise.resolve(),
  };
}

logConformance(t, "log on a fake disk", fakeHarness);
logConformance(t, "log on a real disk", realHarness);
logConformance(t, "log in memory", memoryHarness);

const G = partitionId(1);

function path(sequence: number): string {
  return `${DIRECTORY}/${segmentName(sequence)}`;
}

function bytesOf(on: Machine, sequence: number): Uint8Array {
  const inode = on.disk.names.get(path(sequence));
  if (inode === undefined) throw new Error(`no segment ${String(sequence)}`);
  return inode.bytes;
}

/** The entries of group 1 after a start on `on`, or the refusal's code. */
function recoverFrom(on: Machine): string {
  const opened = tryOpen(on);
  if (!opened.ok) return opened.code;
  const image = opened.value.recovered().get(G);
  if (image === undefined) return "";
  const last = image.lastIndex;
  if (last === image.floor.index) return "";
  const found = read(on, opened.value, 1, image.floor.index + 1, last);
  return found === "compacted" ? found : found.map(describeEntry).join(" ");
}

function text(list: readonly Parameters<typeof describeEntry>[0][]): string {
  return list.map(describeEntry).join(" ");
}

void t.test("P-111 a write that arrives during a disk write is not acknowledged by it", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  const acknowledged: number[] = [];
  const put = (index: number): void => {
    const done = (): void => void acknowledged.push(index);
    log.write({ group: G, hardState: null, entries: entries(index, index, 1), done });
  };
  put(1);
  while (on.disk.writes === 0) on.steps.run(1);
  put(2);
  put(3);
  t.same(acknowledged, []);
  on.steps.run(1);
  t.same(acknowledged, [1], "only what was in the first disk write");
  t.equal(on.disk.writes, 2, "the others share the next");
  on.steps.run();
  t.same(acknowledged, [1, 2, 3]);
  t.end();
});

void t.test(
  "P-022 P-110 after a failed write nothing is acknowledged and the process ends",
  (t) => {
    for (let fail = 1; fail <= 8; fail++) {
      const on = machine();
      const log = open(on);
      on.steps.run();
      let count = 0;
      on.disk.writeFault = () => (++count === fail ? "failed" : null);
      let acknowledged = 0;
      let last = 0;
      for (let turn = 0; turn < 10; turn++) {
        const index = ++last;
        const done = (): void => {
          acknowledged = index;
        };
        log.write({ group: G, hardState: null, entries: entries(index, index, 1), done });
        on.steps.run();
      }
      t.equal(acknowledged, fail - 1, `write ${String(fail)} failed`);
      t.same(
        on.fatals.map(({ reason }) => reason),
        ["log write failed"],
      );
      t.equal(on.disk.writes, fail, "nothing was written after it");
      const after = restart(on);
      t.equal(recoverFrom(after), text(entries(1, fail - 1, 1)));
    }
    t.end();
  },
);

void t.test("P-112 power loss at every step of first start and rotation", (t) => {
  const prng = new Prng(7);
  let crashes = 0;
  for (let step = 0; step < 600; step++) {
    const on = machine(32_768);
    let log: WriteAheadLog | null = null;
    let durable = 0;
    const ports = portsOf(on);
    const options = {
      directory: DIRECTORY,
      identity: IDENTITY,
      segmentBytes: on.segmentBytes,
      spaceRetryMs: 10,
      mayCreate: true,
    };
    let next = 1;
    const put = (): void => {
      const index = next++;
      const list = entries(index, index, 1, 3000);
      const done = (): void => {
        durable = index;
        if (index < 60) put();
      };
      log?.write({ group: G, hardState: null, entries: list, done });
    };
    openLog(options, ports, on.kernels, (result) => {
      if (result.ok) {
        log = result.value;
        put();
      }
    });
    if (on.steps.run(step)) break;
    crashes++;
    const whole = text(entries(1, durable, 1, 3000));
    const found = recoverFrom(powerLoss(on, prng));
    if (!found.startsWith(whole)) t.equal(found, whole, `crash at step ${String(step)}`);
  }
  t.ok(crashes > 100, `${String(crashes)} crashes`);
  t.end();
});

void t.test("P-117 power loss at every step of floors, removal and forward rewriting", (t) => {
  const prng = new Prng(3);
  let removals = 0;
  for (let step = 0; ; step++) {
    const on = machine(32_768);
    const log = open(on);
    write(on, log, 2, entries(1, 3, 1, 200), { term: 1, vote: 1, commit: 3 });
    // A removal is quick and a log write slow: one that does not wait for the other is found out.
    on.disk.writeSteps = () => 9;
    let durable = 0;
    const put = (index: number): void => {
      const list = entries(index, index, 1, 3500);
      const done = (): void => {
        durable = index;
        if (index % 6 === 0) log.raiseFloor(G, { index: index - 2, term: 1 });
        if (index < 40) put(index + 1);
      };
      const hardState = { term: 1, vote: 1, commit: index };
      log.write({ group: G, hardState, entries: list, done });
    };
    put(1);
    const isOver = on.steps.run(step);
    removals += on.disk.operations.some((operation) => operation.startsWith("remove")) ? 1 : 0;
    const opened = tryOpen(powerLoss(on, prng));
    if (!opened.ok) {
      t.fail(`step ${String(step)}: ${opened.message}`);
      break;
    }
    const images = opened.value.recovered();
    if ((images.get(G)?.lastIndex ?? 0) < durable) t.fail("the busy group lost entries");
    const idle = images.get(partitionId(2));
    if (idle?.lastIndex !== 3 || idle.floor.index !== 0) t.fail("the idle group lost entries");
    if (isOver) break;
  }
  t.ok(removals > 100, `${String(removals)} crashes with removed segments`);
  t.end();
});

/** A log that was closed after 40 entries over several segments. */
function closedLog(segmentBytes: number, count: number): Machine {
  const on = machine(segmentBytes);
  const log = open(on);
  on.steps.run();
  // Four records fill a sector, so that the segments are too full to be written forward.
  for (let at = 1; at <= count; at += 4) write(on, log, 1, entries(at, at + 3, 1, 900));
  close(on, log);
  return on;
}

function lastUsed(on: Machine): number {
  const sequences = [...on.disk.names.keys()].map((name) =>
    Number.parseInt(name.slice(-20, -8), 10),
  );
  let last = 0;
  for (const sequence of sequences) {
    const bytes = bytesOf(on, sequence).subarray(SECTOR_BYTES);
    if (bytes.some((byte) => byte !== 0)) last = Math.max(last, sequence);
  }
  return last;
}

void t.test(
  "P-113 P-114 every flipped byte of sealed and of last segment is found or harmless",
  (t) => {
    const on = closedLog(32_768, 100);
    const whole = text(entries(1, 100, 1, 900));
    const last = lastUsed(on);
    t.ok(last > 3, "several segments");
    const kernels = on.kernels;
    const counts = new Map<string, number>();
    for (const sequence of [2, last]) {
      for (let at = 0; at < 32_768; at += sequence === last ? 9 : 11) {
        const after = machine(32_768, on.disk.copy(new Steps()), kernels);
        const bytes = bytesOf(after, sequence);
        bytes[at] = (bytes[at] as number) ^ (1 << (at % 8));
        const found = recoverFrom(after);
        const verdict = found === whole ? "whole" : found;
        counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
        if (verdict !== "whole" && verdict !== "log-damaged" && verdict !== "log-newer") {
          t.fail(`segment ${String(sequence)}, byte ${String(at)}: ${verdict.slice(0, 80)}`);
        }
      }
    }
    t.ok((counts.get("log-damaged") ?? 0) > 1500, JSON.stringify([...counts]));
    t.end();
  },
);

void t.test("P-113 a log cut at every byte keeps all that was durable before", (t) => {
  const on = machine(65_536);
  const log = open(on);
  on.steps.run();
  const ends: { end: number; index: number }[] = [];
  for (let index = 1; index <= 8; index++) {
    write(on, log, 1, entries(index, index, 1, 500));
    ends.push({ end: log.segments.active.endOffset, index });
  }
  const end = log.segments.active.endOffset;
  for (let cut = SECTOR_BYTES; cut <= end; cut += 7) {
    const after = machine(65_536, on.disk.copy(new Steps()), on.kernels);
    bytesOf(after, 1).fill(0, cut);
    const found = recoverFrom(after);
    const kept = ends.filter((place) => place.end <= cut).length;
    // The sector padding of a batch belongs to its last record but holds nothing.
    const least = text(entries(1, kept, 1, 500));
    if (!found.startsWith(least)) t.equal(found, least, `cut at ${String(cut)}`);
    t.same(after.fatals, []);
  }
  t.end();
});

void t.test("P-113 a torn tail is reported, and the log goes on in a new segment", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 3, 1));
  const end = log.segments.active.endOffset;
  write(on, log, 1, entries(4, 9, 1, 2000));
  const after = restart(on);
  bytesOf(after, 1).fill(0, end + 3000, end + 3512);
  const second = open(after);
  t.match(after.events, [{ event: "cut a torn tail off the log", fields: { file: path(1) } }]);
  t.equal(second.recovered().get(G)?.lastIndex, 4, "whole records of the torn write stay");
  after.steps.run();
  write(after, second, 1, entries(5, 6, 2));
  t.equal(second.segments.active.sequence, 2);
  const third = restart(after);
  const whole = [...entries(1, 3, 1), ...entries(4, 4, 1, 2000), ...entries(5, 6, 2)];
  t.equal(recoverFrom(third), text(whole));
  t.end();
});

void t.test("P-114 lost, misdirected, shifted, renamed and foreign writes are refused", (t) => {
  const make = (): Machine => {
    const on = machine(32_768);
    const log = open(on);
    on.steps.run();
    for (let at = 1; at <= 60; at += 2) write(on, log, 1, entries(at, at + 1, 1, 1900));
    return on;
  };
  const sector = (on: Machine, at: number): Uint8Array =>
    bytesOf(on, 2).subarray(at * SECTOR_BYTES, (at + 1) * SECTOR_BYTES);
  const cases: Record<string, (on: Machine) => string> = {
    "a lost write": (on) => (sector(on, 3).fill(0), "log-damaged"),
    "a write in the wrong place": (on) => (sector(on, 4).set(sector(on, 3)), "log-damaged"),
    "two writes exchanged": (on) => {
      const first = sector(on, 3).slice();
      sector(on, 3).set(sector(on, 4));
      sector(on, 4).set(first);
      return "log-damaged";
    },
    "a write of another segment": (on) => {
      sector(on, 3).set(bytesOf(on, 1).subarray(3 * SECTOR_BYTES, 4 * SECTOR_BYTES));
      return "log-damaged";
    },
    "a missing segment": (on) => (on.disk.names.delete(path(2)), "log-incomplete"),
    "a renamed segment": (on) => {
      on.disk.names.set(path(2), { bytes: bytesOf(on, 3).slice() });
      return "log-damaged";
    },
    "a segment of another size": (on) => {
      on.disk.names.set(path(2), { bytes: bytesOf(on, 2).slice(0, 20_000) });
      return "log-damaged";
    },
  };
  for (const [title, spoil] of Object.entries(cases)) {
    const on = restart(make());
    const expected = spoil(on);
    const opened = tryOpen(on);
    t.equal(opened.ok ? "opened" : opened.code, expected, title);
    if (!opened.ok) {
      t.match(opened.message, /segment/, "names the file");
      if (expected === "log-damaged") t.match(opened.message, /offset \d+/, "names the offset");
      t.match(opened.message, /restore/, "names a remedy");
    }
  }
  const foreign = tryOpen(restart(make()), { ...IDENTITY, nodeId: 2 });
  t.equal(foreign.ok ? "opened" : foreign.code, "log-foreign");
  const empty = tryOpen(machine(), IDENTITY, false);
  t.equal(empty.ok ? "opened" : empty.code, "log-incomplete", "a lost log directory");
  t.end();
});

void t.test("P-114 zeros, and a recycled segment, decode to nothing", (t) => {
  const on = machine(32_768);
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 3, 1));
  // The segment that comes next holds leftovers of the first, as if it had been recycled.
  const after = restart(on);
  bytesOf(after, 2).set(bytesOf(after, 1).subarray(SECTOR_BYTES), SECTOR_BYTES);
  t.equal(recoverFrom(after), text(entries(1, 3, 1)));
  t.match(after.events[0], { event: "cut a torn tail off the log" });
  t.end();
});

void t.test("P-131 a newer format is refused by name", (t) => {
  const on = machine();
  open(on);
  on.steps.run();
  const { kernels } = on;
  const region = kernels.record.acquire();
  region?.append(16, 0, 0, 1, 0, new Uint8Array([2, 0, 0, 0, 99]));
  const place = { segmentId: 0, salt: 0, offset: 0, previousChecksum: 0, durableOffset: 0 };
  const sealed = region?.seal({ ...place, sectorBytes: SECTOR_BYTES });
  bytesOf(on, 1).set(sealed?.bytes ?? new Uint8Array(0));
  region?.release();
  const opened = tryOpen(restart(on));
  t.match(opened, { ok: false, code: "log-newer", message: /format version 2/ });
  t.end();
});

void t.test("P-116 one idle group beside busy ones does not pin the log", (t) => {
  const segmentBytes = 65_536;
  const on = machine(segmentBytes);
  const log = open(on);
  on.steps.run();
  const busy = 40;
  write(on, log, 1, entries(1, 20, 1), { term: 1, vote: 1, commit: 20 });
  const last = new Array<number>(busy).fill(0);
  let largest = 0;
  for (let round = 0; round < 400; round++) {
    const group = 2 + (round % busy);
    const first = (last[group - 2] as number) + 1;
    last[group - 2] = first + 9;
    write(on, log, group, entries(first, first + 9, 1, 300));
    if (round % 10 === 9) {
      for (let at = 0; at < busy; at++) {
        const index = last[at] as number;
        if (index > 0) log.raiseFloor(partitionId(at + 2), { index, term: 1 });
      }
    }
    on.steps.run();
    largest = Math.max(largest, log.sizeBytes() - log.liveBytes());
  }
  t.ok(log.segments.active.sequence > 20, "many segments were used");
  t.ok(
    largest <= 5 * segmentBytes,
    `at most ${String(largest / segmentBytes)} segments beyond live`,
  );
  t.equal(recoverFrom(restart(on)), text(entries(1, 20, 1)), "the idle group is whole");
  t.end();
});

void t.test("groups that pin the log are named, most urgent first", (t) => {
  const on = machine(65_536);
  const log = open(on);
  on.steps.run();
  t.same(log.pinningGroups(), []);
  write(on, log, 5, entries(1, 10, 1, 3000));
  write(on, log, 6, entries(1, 60, 1, 3000));
  t.equal(log.pinningGroups()[0], 5, "the oldest segment first");
  t.ok(log.pinningGroups().includes(partitionId(6)));
  log.raiseFloor(partitionId(5), { index: 10, term: 1 });
  log.raiseFloor(partitionId(6), { index: 60, term: 1 });
  on.steps.run();
  t.same(log.pinningGroups(), []);
  t.end();
});

void t.test("P-120 a full disk parks writes, reads go on, all resumes when space returns", (t) => {
  const on = machine(300_000 - (300_000 % SECTOR_BYTES));
  const log = open(on);
  on.steps.run();
  on.disk.freeBytes = 0;
  const acknowledged: number[] = [];
  let index = 0;
  const put = (): void => {
    const at = ++index;
    const done = (): void => void acknowledged.push(at);
    log.write({ group: G, hardState: null, entries: entries(at, at, 1, 5000), done });
    on.steps.run();
  };
  while (log.space() === "available") put();
  const told = index;
  t.equal(acknowledged.length, told, "what was accepted before was acknowledged");
  for (let more = 0; more < 200; more++) put();
  t.ok(acknowledged.length < index, "the rest is parked");
  t.same(on.fatals, []);
  const held = read(on, log, 1, 1, 3);
  t.equal(held === "compacted" ? held : text(held), text(entries(1, 3, 1, 5000)), "reads go on");
  on.steps.advance(5000);
  t.equal(log.space(), "full", "asked again in vain");
  log.raiseFloor(G, { index: 30, term: 1 });
  on.steps.run();
  t.ok(acknowledged.length < index);
  on.disk.freeBytes = 10_000_000;
  on.steps.advance(5000);
  t.equal(log.space(), "available");
  t.equal(acknowledged.length, index, "all parked writes are durable now");
  t.same(
    acknowledged,
    Array.from({ length: index }, (_, at) => at + 1),
    "in order",
  );
  t.equal(recoverFrom(restart(on)), text(entries(31, index, 1, 5000)));
  t.end();
});

void t.test("P-120 raised floors alone free a full disk", (t) => {
  const segmentBytes = 600_000 - (600_000 % SECTOR_BYTES);
  const on = machine(segmentBytes);
  const log = open(on);
  on.steps.run();
  on.disk.freeBytes = segmentBytes;
  let index = 0;
  let durable = 0;
  while (log.space() === "available" || durable === index) {
    const at = ++index;
    const done = (): void => {
      durable = at;
    };
    log.write({ group: G, hardState: null, entries: entries(at, at, 1, 9000), done });
    on.steps.run();
  }
  log.raiseFloor(G, { index: durable, term: 1 });
  on.steps.run();
  on.steps.advance(2000);
  t.equal(durable, index, "the parked write went through");
  t.same(on.fatals, []);
  t.end();
});

void t.test("a failing write to allocated space is fatal even when it says no space", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  on.disk.writeFault = () => "no-space";
  log.write({ group: G, hardState: null, entries: entries(1, 1, 1), done: () => t.fail() });
  on.steps.run();
  t.match(on.fatals, [{ reason: "log write failed", fields: { code: "no-space" } }]);
  t.end();
});

void t.test("a damaged record met by a read ends the process", (t) => {
  const on = machine();
  const log = open(on);
  on.steps.run();
  write(on, log, 1, entries(1, 5, 1));
  const bytes = bytesOf(on, 1);
  bytes[SECTOR_BYTES + 60] = (bytes[SECTOR_BYTES + 60] as number) ^ 1;
  log.read(G, 1, 5, 1000, () => t.fail("no answer"));
  on.steps.run();
  t.match(on.fatals, [{ reason: "log record damaged", fields: { file: path(1) } }]);
  t.end();
});

void t.test("one write larger than a batch region and than what is left of a segment", (t) => {
  const on = machine(16 * 1024 * 1024);
  const log = open(on);
  on.steps.run();
  const list = entries(1, 9, 1, 1_500_000);
  write(on, log, 1, list, { term: 1, vote: 1, commit: 9 });
  t.ok(on.disk.writes > 1);
  write(on, log, 1, entries(10, 12, 1, 3_000_000));
  const after = restart(on);
  t.equal(recoverFrom(after), text([...list, ...entries(10, 12, 1, 3_000_000)]));
  t.end();
});

void t.test("P-024 no torn write leaves a commit index beyond the log", (t) => {
  const prng = new Prng(11);
  for (let trial = 0; trial < 300; trial++) {
    const on = machine(65_536);
    const log = open(on);
    on.steps.run();
    write(on, log, 1, entries(1, 3, 1), { term: 1, vote: 1, commit: 2 });
    const hardState = { term: 2, vote: 1, commit: 9 };
    log.write({ group: G, hardState, entries: entries(4, 9, 2, 700), done: () => undefined });
    while (on.disk.writes < 2) on.steps.run(1);
    const after = powerLoss(on, prng);
    const opened = tryOpen(after);
    t.ok(opened.ok, opened.ok ? "" : opened.message);
    if (!opened.ok) continue;
    const image = opened.value.recovered().get(G);
    if (image === undefined) throw new Error("the group is there");
    t.ok(image.hardState.commit <= image.lastIndex);
    const newest = image.termRuns[image.termRuns.length - 1]?.term ?? 0;
    t.ok(newest <= image.hardState.term, "no entry is newer than the hard state");
  }
  t.end();
});
