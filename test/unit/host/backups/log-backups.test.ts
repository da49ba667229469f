/** What the log keeps for backups: holds, windows, and how it is read for them. */
import t from "tap";
import {
  HOLD_LAPSES_MS,
  HOLD_MAX_BYTES,
  HOLD_MAX_MS,
  PITR_LOG_MAX_BYTES,
} from "../../../../src/base/limits.js";
import { partitionId } from "../../../../src/base/ids.js";
import { type Result, failure, ok } from "../../../../src/base/result.js";
import type { Group, ProposalResult } from "../../../../src/host/group/group.js";
import { BackupFloors } from "../../../../src/host/storage/backup-floors.js";
import type { FlooredGroup } from "../../../../src/host/storage/floored-group.js";
import { LogFloors } from "../../../../src/host/storage/log-floors.js";
import { LogSamples } from "../../../../src/host/storage/log-samples.js";
import { LogStretch } from "../../../../src/host/storage/log-stretch.js";
import type { EntryPosition } from "../../../../src/machine/machine.js";
import type { LogEntry, LogPort, LogSpace } from "../../../../src/ports.js";
import { type World, setCommand, single } from "../../../doubles/host/world.js";

const WINDOW_MS = 3_600_000;

type StretchSlice = Parameters<Parameters<LogStretch["next"]>[0]>[0];

/** An entry of it weighs `entryBytes`. */
class FakeGroup implements FlooredGroup {
  floorIndex = 0;
  keepFrom = Infinity;
  followersFrom = Infinity;

  constructor(private readonly entryBytes = 1000) {}

  compact(index: number): void {
    this.floorIndex = index;
  }

  payloadBytes(first: number, last: number): number {
    return (last - first + 1) * (this.entryBytes - 512);
  }
}

class Floors {
  nowMs = 1000;
  space: LogSpace = "available";
  maxBytes = 1e12;
  readonly backups: BackupFloors;
  private readonly floors: LogFloors;

  constructor(windowMs: number) {
    this.backups = new BackupFloors({
      nowMs: () => this.nowMs,
      isLogFull: () => this.space === "full",
      windowMs,
      windowBytesMax: () => this.maxBytes,
    });
    this.floors = new LogFloors({ space: () => this.space }, () => 1e12, this.backups);
  }

  /** A flush of `group` up to `index` is durable; where its log begins then. */
  flush(group: FakeGroup, index: number): number {
    this.backups.flushed(group, index);
    return this.raise(group, index);
  }

  raise(group: FakeGroup, index: number): number {
    this.floors.raise(group, index);
    this.backups.look();
    return group.floorIndex;
  }
}

t.test("P-135 what a backup holds stays until it is released or lapses", (t) => {
  const floors = new Floors(0);
  const [one, other] = [new FakeGroup(), new FakeGroup()];
  t.equal(floors.flush(one, 10), 10);
  t.equal(floors.backups.hold(one, 9), null, "what is gone cannot be held");
  const hold = floors.backups.hold(one, 12);
  const later = floors.backups.hold(one, 15);
  t.equal(floors.flush(one, 20), 12);
  t.equal(floors.flush(other, 20), 20, "the other group is not held");
  t.strictSame(floors.backups.facts(), {
    ...{ holds: 2, holdBytes: 8000 + 5000, windowBytes: 0, windowsLost: 0 },
  });
  hold?.release();
  t.equal(hold?.renew(), "released");
  t.equal(floors.raise(one, 20), 15);
  for (let step = 0; step < 5; step++) {
    floors.nowMs += HOLD_LAPSES_MS - 1;
    t.equal(later?.renew(), "held");
  }
  floors.nowMs += HOLD_LAPSES_MS;
  t.equal(floors.raise(one, 20), 20);
  t.equal(later?.state, "lapsed");
  t.equal(later?.renew(), "lapsed", "it does not come back");
  t.equal(floors.backups.facts().holds, 0);
  t.end();
});

t.test("P-135 a hold is bounded in time and size, and yields to a full disk", (t) => {
  const floors = new Floors(0);
  const big = new FakeGroup(HOLD_MAX_BYTES / 4);
  const old = floors.backups.hold(big, 0);
  for (let ms = 0; ms < HOLD_MAX_MS; ms += HOLD_LAPSES_MS / 2) {
    t.equal(old?.renew(), "held");
    floors.nowMs += HOLD_LAPSES_MS / 2;
  }
  t.equal(old?.renew(), "too-old");
  const large = floors.backups.hold(big, 0);
  t.equal(floors.flush(big, 4), 0, "as much as it may");
  t.equal(floors.flush(big, 5), 5);
  t.equal(large?.state, "too-large");
  const full = floors.backups.hold(big, 5);
  const away = floors.backups.hold(new FakeGroup(), 0);
  floors.space = "full";
  t.equal(floors.flush(big, 6), 6);
  t.equal(full?.state, "log-full");
  t.equal(away?.state, "held", "whose log is not in the way is not touched");
  floors.backups.removed(away?.group ?? big);
  t.equal(away?.state, "gone");
  const replaced = floors.backups.hold(big, 7);
  big.compact(8);
  t.equal(replaced?.state, "compacted", "a snapshot took the place of the log");
  t.end();
});

t.test("P-135 the log stays for one window, after a start too", (t) => {
  const floors = new Floors(WINDOW_MS);
  const group = new FakeGroup();
  floors.backups.flushed(group, 0);
  const minuteMs = 60_000;
  for (let minute = 1; minute <= 200; minute++) {
    floors.nowMs += minuteMs;
    const floor = floors.flush(group, minute * 10);
    const oldest = Math.max(0, minute - 60) * 10;
    t.ok(floor <= oldest, `after ${minute} minutes the log begins at ${floor}`);
    t.ok(floor >= oldest - 20, "and is not kept for much longer");
  }
  t.equal(floors.backups.facts().windowBytes, (2000 - group.floorIndex) * 1000);
  floors.nowMs += WINDOW_MS + minuteMs;
  t.equal(floors.raise(group, 2000), 2000, "of a group that rests nothing is kept in the end");
  t.equal(floors.backups.facts().windowBytes, 0);
  t.end();
});

t.test("P-135 samples are few, and none tells an entry older than it is", (t) => {
  const samples = new LogSamples(1000);
  let index = 0;
  const flushedAtMs: number[] = [];
  for (let nowMs = 0; nowMs < 5000; nowMs += 3) {
    flushedAtMs[++index] = nowMs;
    samples.note(index, nowMs);
    const from = samples.from(nowMs);
    const isOld = from === 0 || nowMs - (flushedAtMs[from] ?? nowMs) >= 1000;
    if (!isOld) t.fail(`${from} is not old at ${nowMs}`);
    if (nowMs > 1100 && nowMs - (flushedAtMs[from] ?? 0) > 1000 + 1000 / 64 + 6) {
      t.fail(`${from} is too old at ${nowMs}`);
    }
  }
  samples.restart(index);
  t.equal(samples.from(5000), index);
  t.equal(samples.from(9000), index);
  t.end();
});

t.test("P-135 beyond their bound the largest window goes first, and on a full disk all", (t) => {
  const floors = new Floors(WINDOW_MS);
  floors.maxBytes = 10_000;
  const [small, large] = [new FakeGroup(), new FakeGroup()];
  t.equal(floors.flush(large, 7), 0);
  t.equal(floors.flush(small, 3), 0, "there is room for both");
  t.equal(floors.flush(small, 4), 0);
  t.match(floors.backups.facts(), { windowBytes: 4000, windowsLost: 1 });
  t.equal(floors.raise(large, 7), 7, "the largest has lost its own");
  t.equal(floors.flush(large, 12), 7, "and begins anew");
  t.equal(floors.flush(large, 14), 14);
  t.match(floors.backups.facts(), { windowBytes: 4000, windowsLost: 2 });
  floors.space = "full";
  t.equal(floors.raise(small, 4), 4);
  t.match(floors.backups.facts(), { windowBytes: 0, windowsLost: 3 });
  floors.space = "available";
  floors.backups.removed(small);
  t.equal(floors.flush(small, 9), 4, "a group that comes begins anew, too");
  t.end();
});

/** Writes `count` keys, each in an entry of its own. */
function write(world: World, group: Group, count: number): void {
  const results: ProposalResult[] = [];
  for (let at = 0; at < count; at++) {
    group.propose(setCommand(`key-${at}`, new Uint8Array(1000)), 1100, 1e9, (result) => {
      results.push(result);
    });
    world.pass(10);
  }
  if (results.some(({ status }) => status !== "applied")) throw new Error("written");
}

const EAGER = {
  initialPartitions: 1,
  compactKeepEntries: 0,
  compactEveryEntries: 10,
  flushAgeMs: 100,
};

t.test("P-135 a node keeps what is held and what is in the window, and tells", async (t) => {
  for (const pitrWindowMs of [0, 60_000]) {
    const { world, node, group } = single({ ...EAGER, pitrWindowMs });
    const { partition } = group;
    const floor = (): number => world.log.durable.get(partition)?.floor.index ?? 0;
    write(world, group, 50);
    world.pass(1000);
    if (pitrWindowMs === 0) t.equal(floor(), group.facts().lastIndex, "nothing is kept");
    else t.equal(floor(), 0, "after a start no floor rises");
    const from = group.facts().appliedIndex;
    const hold = group.holdLog(from);
    write(world, group, 50);
    world.pass(1000);
    world.log.pinning = node.groups().map((each) => each.partition);
    t.equal(floor(), pitrWindowMs === 0 ? from : 0);
    t.equal(node.facts().backupLog.holds, 1);
    t.ok(node.facts().backupLog.holdBytes > 50_000);
    t.equal(node.facts().backupLog.windowBytes > 100_000, pitrWindowMs > 0);
    world.pass(HOLD_LAPSES_MS, 100);
    t.equal(hold?.state, "lapsed");
    world.pass(pitrWindowMs + 2000, 100);
    t.equal(floor(), group.facts().lastIndex, "the log is back to its bound");
    t.match(node.facts().backupLog, { holds: 0, holdBytes: 0, windowBytes: 0 });
  }
});

t.test("P-135 windows keep a tenth of the free disk at most", async (t) => {
  for (const [freeBytes, isKept] of [
    [Infinity, true],
    [10 * PITR_LOG_MAX_BYTES, true],
    [100_000, false],
  ] as const) {
    const { world, group } = single(
      { ...EAGER, pitrWindowMs: 60_000 },
      { freeBytes: () => freeBytes, isShort: () => false },
    );
    write(world, group, 50);
    world.pass(1000);
    const floor = world.log.durable.get(group.partition)?.floor.index ?? 0;
    t.equal(floor === 0, isKept, `${freeBytes} bytes are free`);
  }
});

/** All of a stretch, or what ended it. */
function readAll(world: World, stretch: LogStretch): { entries: LogEntry[]; said: string } {
  const entries: LogEntry[] = [];
  for (let slices = 0; slices < 1000; slices++) {
    if (stretch.isComplete) return { entries, said: "complete" };
    let slice: StretchSlice | null = null;
    stretch.next((answer) => (slice = answer));
    world.settle();
    const { status, ...rest } = slice ?? { status: "silent" };
    if (status !== "entries") return { entries, said: status };
    entries.push(...(rest as { entries: LogEntry[] }).entries);
  }
  return { entries, said: "endless" };
}

t.test("P-135 a stretch is read whole, from behind its begin up to its end", async (t) => {
  const { world, group } = single({ initialPartitions: 1 });
  write(world, group, 30);
  const { appliedIndex, term } = group.facts();
  const at = (index: number): EntryPosition => ({ index, term });
  for (const [from, to] of [
    [5, appliedIndex],
    [5, 6],
    [5, 5],
    [appliedIndex - 1, appliedIndex],
  ] as const) {
    const stretch = group.logStretch(at(from), at(to));
    if (typeof stretch === "string") throw new Error(stretch);
    const { entries, said } = readAll(world, stretch);
    t.equal(said, "complete");
    const wanted = Array.from({ length: to - from }, (_, offset) => from + 1 + offset);
    t.same(
      entries.map(({ index }) => index),
      wanted,
      `(${from}, ${to}]`,
    );
  }
  t.equal(group.logStretch(at(5), at(appliedIndex + 1)), "behind");
  t.equal(group.logStretch({ index: 5, term: term + 1 }, at(9)), "other-history");
  t.equal(group.logStretch(at(5), { index: 9, term: term + 1 }), "other-history");
});

t.test("P-135 a log that is let go while it is read ends the stretch", async (t) => {
  const { world, group } = single(EAGER);
  const { appliedIndex: from, term } = group.facts();
  const hold = group.holdLog(from);
  write(world, group, 40);
  const { appliedIndex: to } = group.facts();
  const { log } = world;
  const stretch = new LogStretch(
    log,
    group.partition,
    { index: from, term },
    { index: to, term },
    4000,
  );
  let first: StretchSlice | null = null;
  stretch.next((slice) => (first = slice));
  world.settle();
  t.match(first, { status: "entries", isLast: false });
  hold?.release();
  write(world, group, 20);
  world.pass(1000);
  t.equal(readAll(world, stretch).said, "compacted");
  t.equal(group.logStretch({ index: from, term }, { index: to, term }), "compacted");
});

t.test("P-135 a log with a gap is not believed", (t) => {
  const entry = (index: number, term = 3): LogEntry => ({
    ...{ index, term, kind: 0, payload: new Uint8Array(1) },
  });
  for (const [answers, said] of [
    [
      [[entry(6), entry(7)], [entry(8)]],
      ["entries", "entries"],
    ],
    [[[entry(7), entry(8)]], ["broken"]],
    [[[entry(6), entry(8)]], ["broken"]],
    [[[entry(5), entry(6)]], ["broken"]],
    [
      [[entry(6)], [entry(8)]],
      ["entries", "broken"],
    ],
    [
      [[entry(6)], []],
      ["entries", "broken"],
    ],
    [[[entry(6), entry(7, 2)]], ["broken"]],
    [[[entry(6), entry(7), entry(8, 4)]], ["broken"]],
    [[[entry(6), entry(7), entry(8), entry(9)]], ["broken"]],
    [
      [[entry(6)], null],
      ["entries", "compacted"],
    ],
  ] as const) {
    const rest: (readonly LogEntry[] | null)[] = [...answers];
    const read: LogPort["read"] = (_group, _first, _last, _maxBytes, done) => {
      const next = rest.shift() ?? null;
      const result: Result<readonly LogEntry[], "compacted"> =
        next === null ? failure("compacted", "gone") : ok(next);
      done(result);
    };
    const last = { index: 8, term: 3 };
    const stretch = new LogStretch({ read }, partitionId(1), { index: 5, term: 3 }, last);
    const heard: string[] = [];
    for (let at = 0; at < answers.length; at++) stretch.next(({ status }) => heard.push(status));
    t.strictSame(heard, said);
    t.equal(
      stretch.isComplete,
      said.every((each) => each === "entries"),
    );
  }
  t.end();
});
