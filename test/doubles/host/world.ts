/**
 * A false world for the host: a clock that only tests move, a timer that runs on their order, a log
 * and a store that become durable when told, and that can lose what was not.
 *
 * Owns everything durable across "crashes" of a node. Invariants: 1. Nothing happens by itself. 2.
 * A crash loses exactly what was not durable. 3. Every rule of the ports that a test can see broken
 * (order, contiguity, one flush at a time) is asserted here.
 */
import { SILENT_METER } from "../silent-meter.js";
import { assert } from "../../../src/base/assert.js";
import { compareBytes } from "../../../src/base/bytes.js";
import type { PartitionId } from "../../../src/base/ids.js";
import { Prng } from "../../../src/base/prng.js";
import { type Result, failure, ok } from "../../../src/base/result.js";
import type { Command } from "../../../src/machine/commands/command.js";
import { SizeRuns } from "../../../src/disk/log/sizeruns.js";
import { Node } from "../../../src/host/node.js";
import type { Group, ProposalResult, ReadResult } from "../../../src/host/group/group.js";
import type { HostPorts, HostSettings } from "../../../src/host/settings.js";
import type {
  DiskPort,
  FileErrorCode,
  LevelPort,
  RecoveredGroupLog,
  HardState,
  LogEntry,
  LogPort,
  LogPosition,
  LogSpace,
  LogWrite,
  StoreChange,
  StorePort,
  TimerHandle,
  TimerPort,
} from "../../../src/ports.js";
import { DEFAULT_HOST_SETTINGS } from "../default-settings.js";

export class ManualTimer implements TimerPort {
  nowMs = 1000;
  private readonly soonList: (() => void)[] = [];
  private readonly timers = new Set<{ readonly atMs: number; readonly callback: () => void }>();

  soon(callback: () => void): void {
    this.soonList.push(callback);
  }

  after(delayMs: number, callback: () => void): TimerHandle {
    assert(delayMs >= 0 && delayMs < 2 ** 31, "a delay fits the platform");
    const timer = { atMs: this.nowMs + delayMs, callback };
    this.timers.add(timer);
    return { cancel: () => void this.timers.delete(timer) };
  }

  /** Runs one callback that is due now. Returns false when there is none. */
  step(): boolean {
    const soon = this.soonList.shift();
    if (soon !== undefined) {
      soon();
      return true;
    }
    for (const due of this.timers) {
      if (due.atMs > this.nowMs) continue;
      this.timers.delete(due);
      due.callback();
      return true;
    }
    return false;
  }

  get pendingTimers(): number {
    return this.timers.size;
  }

  clear(): void {
    this.soonList.length = 0;
    this.timers.clear();
  }
}

interface GroupDisk {
  hardState: HardState;
  floor: LogPosition;
  entries: LogEntry[];
}

const NONE: GroupDisk = {
  hardState: { term: 0, vote: 0, commit: 0 },
  floor: { term: 0, index: 0 },
  entries: [],
};

/** Write-ahead log: `durable` is what a crash leaves; pending writes become durable by `sync`. */
export class ManualLog implements LogPort {
  readonly durable = new Map<PartitionId, GroupDisk>();
  pending: LogWrite[] = [];
  spaceState: LogSpace = "available";
  pinning: PartitionId[] = [];
  /** Sync everything as soon as the timer runs. */
  automatic = true;
  syncs = 0;
  writes = 0;
  closed = false;
  /** As the log was found when it was opened last. */
  private found: Map<PartitionId, RecoveredGroupLog> | null = null;

  constructor(private readonly timer: ManualTimer) {}

  recovered(): ReadonlyMap<PartitionId, RecoveredGroupLog> {
    this.found ??= this.find();
    return this.found;
  }

  private find(): Map<PartitionId, RecoveredGroupLog> {
    const snapshots = new Map<PartitionId, RecoveredGroupLog>();
    for (const [group, disk] of this.durable) {
      const termRuns: { term: number; firstIndex: number }[] = [];
      const sizeRuns = new SizeRuns();
      for (const entry of disk.entries) {
        sizeRuns.add(entry.index, entry.payload.length);
        if (termRuns[termRuns.length - 1]?.term !== entry.term) {
          termRuns.push({ term: entry.term, firstIndex: entry.index });
        }
      }
      snapshots.set(group, {
        group,
        hardState: disk.hardState,
        floor: disk.floor,
        lastIndex: disk.floor.index + disk.entries.length,
        termRuns,
        specialEntries: disk.entries
          .filter((entry) => entry.kind !== 0)
          .map(({ index, kind }) => ({ index, kind })),
        sizeRuns: sizeRuns.all,
      });
    }
    return snapshots;
  }

  write(write: LogWrite): void {
    assert(!this.closed, "a closed log is not written");
    this.writes++;
    if (this.pending.length === 0 && this.automatic) this.timer.soon(() => this.sync());
    this.pending.push(write);
  }

  /** Makes the first `count` pending writes durable, in order, with one sync. */
  sync(count = this.pending.length): void {
    if (this.pending.length === 0) return;
    this.syncs++;
    const done = this.pending.splice(0, count);
    for (const write of done) this.keep(write);
    for (const write of done) write.done();
    if (this.pending.length > 0 && this.automatic) this.timer.soon(() => this.sync());
  }

  private keep(write: LogWrite): void {
    if ("forgets" in write) {
      this.durable.delete(write.group);
      return;
    }
    const old = this.durable.get(write.group) ?? NONE;
    const hardState = write.hardState ?? old.hardState;
    if ("floor" in write) {
      this.durable.set(write.group, { hardState, floor: write.floor as LogPosition, entries: [] });
      return;
    }
    let entries = old.entries;
    const first = write.entries[0];
    if (first !== undefined) {
      const keep = first.index - old.floor.index - 1;
      assert(keep >= 0 && keep <= entries.length, "entries join the log without a gap");
      if (keep === entries.length && entries !== NONE.entries) entries.push(...write.entries);
      else entries = [...entries.slice(0, keep), ...write.entries];
      assert(hardState.term >= first.term, "hard state is there before entries of its term");
    }
    this.durable.set(write.group, { ...old, hardState, entries });
  }

  read(
    group: PartitionId,
    first: number,
    last: number,
    maxBytes: number,
    done: (result: Result<readonly LogEntry[], "compacted">) => void,
  ): void {
    this.timer.soon(() => {
      const disk = this.durable.get(group) ?? NONE;
      if (first <= disk.floor.index) return done(failure("compacted", "gone"));
      const found: LogEntry[] = [];
      let bytes = 0;
      for (const entry of disk.entries) {
        if (entry.index < first || entry.index > last) continue;
        bytes += entry.payload.length;
        if (found.length > 0 && bytes > maxBytes) break;
        found.push(entry);
      }
      done(ok(found));
    });
  }

  raiseFloor(group: PartitionId, floor: LogPosition): void {
    const disk = this.durable.get(group) ?? NONE;
    const gone = floor.index - disk.floor.index;
    assert(gone > 0 && gone <= disk.entries.length, "a floor rises within the log");
    const at = disk.entries[gone - 1];
    assert(at?.term === floor.term, "the floor's term is that of its entry");
    this.durable.set(group, { ...disk, floor, entries: disk.entries.slice(gone) });
  }

  resetGroup(group: PartitionId, floor: LogPosition, hardState: HardState, done: () => void): void {
    this.pending.push({ group, hardState, entries: [], done, floor } as LogWrite);
    if (this.pending.length === 1 && this.automatic) this.timer.soon(() => this.sync());
  }

  forgetGroup(group: PartitionId, done: () => void): void {
    this.found?.delete(group);
    this.pending.push({ group, hardState: null, entries: [], done, forgets: true } as LogWrite);
    if (this.pending.length === 1 && this.automatic) this.timer.soon(() => this.sync());
  }

  space(): LogSpace {
    return this.spaceState;
  }

  sizeBytes(): number {
    return 0;
  }

  pinningGroups(): readonly PartitionId[] {
    return this.pinning;
  }

  close(done: () => void): void {
    assert(this.pending.length === 0 || this.automatic, "closing syncs what is queued");
    this.timer.soon(() => {
      this.sync();
      this.closed = true;
      this.found = null;
      done();
    });
  }

  /** What a power loss leaves: `also` of the pending writes made it, unacknowledged. */
  crash(also = 0): void {
    for (const write of this.pending.splice(0, also)) this.keep(write);
    this.pending = [];
    this.closed = false;
    this.found = null;
  }
}

export class ManualStore implements StorePort {
  rows = new Map<string, { key: Uint8Array; value: Uint8Array }>();
  /** The rows in key order; null since one changed. */
  private sorted: { key: Uint8Array; value: Uint8Array }[] | null = null;
  automatic = true;
  full = false;
  writes = 0;
  closed = false;
  pending: { changes: readonly StoreChange[]; done: (r: Result<null, "full">) => void } | null =
    null;

  constructor(private readonly timer: ManualTimer) {}

  get(key: Uint8Array): Uint8Array | null {
    assert(!this.closed, "the store is open");
    return this.rows.get(String.fromCharCode(...key))?.value.slice() ?? null;
  }

  scan(
    first: Uint8Array,
    last: Uint8Array | null,
    visit: (key: Uint8Array, value: Uint8Array) => boolean,
  ): void {
    assert(!this.closed, "the store is open");
    // Tests take rows away directly.
    if (this.sorted?.length !== this.rows.size) this.sorted = null;
    this.sorted ??= [...this.rows.values()].sort((a, b) => compareBytes(a.key, b.key));
    const { sorted } = this;
    let from = 0;
    for (let to = sorted.length; from < to;) {
      const middle = (from + to) >>> 1;
      const row = sorted[middle];
      if (row !== undefined && compareBytes(row.key, first) < 0) from = middle + 1;
      else to = middle;
    }
    for (let row = sorted[from]; row !== undefined; row = sorted[++from]) {
      if (last !== null && compareBytes(row.key, last) >= 0) return;
      if (!visit(row.key, row.value)) return;
    }
  }

  write(changes: readonly StoreChange[], done: (result: Result<null, "full">) => void): void {
    assert(this.pending === null && !this.closed, "one flush at a time, before close");
    this.pending = { changes, done };
    if (this.automatic) this.timer.soon(() => this.finish());
  }

  finish(): void {
    const { pending } = this;
    if (pending === null) return;
    this.pending = null;
    this.writes++;
    if (this.full) return pending.done(failure("full", "no space"));
    this.keep(pending.changes);
    pending.done(ok(null));
  }

  private keep(changes: readonly StoreChange[]): void {
    this.sorted = null;
    for (const { key, value } of changes) {
      const name = String.fromCharCode(...key);
      if (value === null) this.rows.delete(name);
      else this.rows.set(name, { key: key.slice(), value: value.slice() });
    }
  }

  sizeBytes(): number {
    return 0;
  }

  close(done: () => void): void {
    assert(this.pending === null, "the store is closed when no flush runs");
    this.closed = true;
    this.timer.soon(done);
  }

  /** A power loss: a flush that was under way either made it or left nothing. */
  crash(flushed: boolean): void {
    if (flushed && this.pending !== null) this.keep(this.pending.changes);
    this.pending = null;
    this.closed = false;
  }
}

/** The level of a directory: durable when the timer says so. */
export class ManualLevel implements LevelPort {
  level = 1;
  /** How the next raises fail. */
  failures: FileErrorCode[] = [];

  constructor(private readonly timer: ManualTimer) {}

  raise(level: number, done: (result: Result<null, FileErrorCode>) => void): void {
    assert(level > this.level, "a level only rises");
    this.timer.soon(() => {
      const code = this.failures.shift();
      if (code !== undefined) return done(failure(code, "the level cannot be written"));
      this.level = level;
      done(ok(null));
    });
  }
}

export class World {
  readonly timer = new ManualTimer();
  readonly log = new ManualLog(this.timer);
  readonly store = new ManualStore(this.timer);
  readonly level = new ManualLevel(this.timer);
  readonly fatals: string[] = [];
  readonly logLines: string[] = [];
  readonly prng: Prng;
  batches: number[] = [];
  wallMs = 1_700_000_000_000;
  /** How much each look at the clock moves it: a turn takes time in the real world. */
  driftMs = 0;
  readonly settings: HostSettings;
  /** Of the log; without it nobody asks. */
  disk: DiskPort | null = null;

  constructor(settings: Partial<HostSettings> = {}, seed = 1) {
    this.settings = { ...DEFAULT_HOST_SETTINGS, initialPartitions: 3, ...settings };
    this.prng = new Prng(seed);
  }

  ports(): HostPorts {
    return {
      clock: {
        monotonicMs: () => (this.timer.nowMs += this.driftMs),
        wallMs: () => this.wallMs,
      },
      timer: this.timer,
      log: this.log,
      store: this.store,
      ...(this.disk === null ? {} : { disk: this.disk }),
      level: this.level,
      entropy: { uint32: () => this.prng.nextUint32() },
      logger: {
        log: (level, event, fields = {}) => {
          this.logLines.push(`${level} ${event} ${JSON.stringify(fields)}`);
        },
      },
      fatal: { fatal: (reason) => void this.fatals.push(reason) },
      meter: {
        ...SILENT_METER,
        batchEntries: (commands) => void this.batches.push(commands),
      },
    };
  }

  open(overrides: Partial<HostSettings> = {}): Node {
    const opened = Node.open({ ...this.settings, ...overrides }, this.ports());
    assert(opened.ok, opened.ok ? "" : `the node opens: ${opened.message}`);
    return opened.value;
  }

  /** Runs what is due until nothing is; the clock stands still. */
  settle(stepsMax = 1_000_000): void {
    for (let steps = 0; this.timer.step(); steps++) assert(steps < stepsMax, "it comes to rest");
  }

  /** Lets time pass in steps of `stepMs`, running what is due. */
  pass(durationMs: number, stepMs = 10): void {
    const endMs = this.timer.nowMs + durationMs;
    while (this.timer.nowMs < endMs) {
      this.timer.nowMs = Math.min(endMs, this.timer.nowMs + stepMs);
      this.settle();
    }
  }

  /** Opens a node and waits until it is ready. */
  ready(overrides: Partial<HostSettings> = {}): Node {
    const node = this.open(overrides);
    for (let round = 0; round < 100 && !isSettled(node); round++) this.pass(50);
    assert(node.health().ready, `the node becomes ready: ${String(node.health().reason)}`);
    return node;
  }

  /** The process dies; what was durable stays. */
  crash(alsoWrites = 0, flushMade = false): void {
    this.timer.clear();
    this.log.crash(alsoWrites);
    this.store.crash(flushMade);
  }

  group(node: Node, text = "a"): Group {
    const group = node.route(text);
    assert(group !== null, "the cluster is founded");
    return group;
  }
}

/** A world with one ready node, and the group that "a" lies in. */
/** Ready, and its groups are at the level that the cluster was founded at. */
function isSettled(node: Node): boolean {
  if (!node.health().ready) return false;
  const level = node.metaGroup().machine.meta.cluster()?.level ?? 0;
  return node.groups().every(({ machine }) => machine.level >= level);
}

export function single(
  settings: Partial<HostSettings> = {},
  disk: DiskPort | null = null,
): {
  readonly world: World;
  readonly node: Node;
  readonly group: Group;
} {
  const world = new World(settings);
  world.disk = disk;
  const node = world.ready();
  return { world, node, group: world.group(node) };
}

/** A set of `key`, whose encoded size is about `sizeBytes`. */
export function setCommand(key: string, value: Uint8Array | null = null): Command {
  return {
    kind: "kv-set",
    key,
    value,
    compareValue: null,
    compareRevision: -1n,
    flags: 0,
    expiresMs: 0,
    revisionsRetained: 1,
  };
}

/** Proposes and collects the results in `into`. */
export function propose(group: Group, key: string, into: ProposalResult[], deadlineMs = 1e9): void {
  group.propose(setCommand(key), 64 + key.length, deadlineMs, (result) => void into.push(result));
}

export function read(group: Group, into: ReadResult[], deadlineMs = 1e9): void {
  group.read(deadlineMs, (result) => void into.push(result));
}
