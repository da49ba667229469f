/**
 * The disk of one machine, and the way of one process to it.
 *
 * A disk outlives processes. What a process asked for takes time; a write is on the platter when its
 * callback comes. At the end of a life some sectors of a write in flight made it and some did not;
 * after a kill they lie in the system's memory until somebody syncs, and a loss of power takes them
 * away again. Names change in the system's memory first; a synced directory keeps them, and of the
 * changes since then a loss of power leaves a prefix.
 *
 * Invariants: 1. A durable write survives everything but damage that the atlas allowed. 2. Damage is
 * done only by the named functions at the end. 3. All draws come from the disk's own generator.
 */
import { assert } from "../../src/base/assert.js";
import type { Prng } from "../../src/base/prng.js";
import { type Result, failure, ok } from "../../src/base/result.js";
import type { FileErrorCode, FileListing, FilesPort, OpenFile } from "../../src/ports.js";
import type { Life } from "./process.js";
import type { World } from "./world.js";

type Done<T> = (result: Result<T, FileErrorCode>) => void;

/** Tears happen at borders of this size, smaller than the log's own. */
const TEAR_BYTES = 512;

interface Inode {
  bytes: Uint8Array;
  /** Sectors that are in the system's memory only, with what the platter holds there. */
  readonly unsynced: Map<number, Uint8Array>;
  /** The file's very existence is not synced yet: nothing of its content is sure. */
  isDraft: boolean;
  /** A later write is whole from here on: whatever is missing before it was there. */
  provenTo?: number;
}

interface Handle extends OpenFile {
  readonly inode: Inode;
  readonly life: Life;
  readonly durable: boolean;
  isOpen: boolean;
}

interface Flight {
  readonly inode: Inode;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

interface NameChange {
  readonly path: string;
  readonly inode: Inode | null;
}

/** How fast and how reliable a disk is. Chances are per million. */
export interface DiskTemper {
  readMs: number;
  writeMs: number;
  /** Chance that a call takes twenty times as long. */
  slowPerMillion: number;
  writeErrorPerMillion: number;
  readErrorPerMillion: number;
}

/** How a life ended, as far as the disk is concerned. */
export type EndKind = "kill" | "power-loss";

export class SimDisk {
  private names = new Map<string, Inode>();
  private durableNames = new Map<string, Inode>();
  private changes: NameChange[] = [];
  private readonly flights = new Set<Flight>();
  /** No space for new files. */
  isFull = false;
  /** Nothing answers before this time. */
  hungUntilMs = 0;
  /** Every call takes so many times as long. */
  slowness = 1;
  /** The next write or sync fails. */
  failNext = false;
  readonly counts = { writes: 0, bytes: 0, torn: 0, errors: 0, lostNames: 0, refusedSpace: 0 };

  constructor(
    readonly world: World,
    readonly node: number,
    readonly prng: Prng,
    readonly temper: DiskTemper,
  ) {}

  files(life: Life): FilesPort {
    return new SimFiles(this, life);
  }

  /** The process that used this disk is gone. */
  processEnded(kind: EndKind): void {
    const style = this.prng.below(4);
    for (const flight of this.flights) {
      for (let at = 0; at < flight.bytes.length; at += TEAR_BYTES) {
        const survives = style === 0 || (style > 1 && this.prng.chance(1, 2));
        if (!survives) this.counts.torn++;
        else this.put(flight.inode, flight.offset + at, flight.bytes.subarray(at, at + TEAR_BYTES));
      }
    }
    this.flights.clear();
    if (kind === "power-loss") this.losePower();
  }

  /** What no sync covers is lost, any part of it. Processes are gone already. */
  private losePower(): void {
    const kept = this.prng.below(this.changes.length + 1);
    this.counts.lostNames += this.changes.length - kept;
    const names = new Map(this.durableNames);
    for (const { path, inode } of this.changes.slice(0, kept)) {
      if (inode === null) names.delete(path);
      else names.set(path, inode);
    }
    this.names = names;
    this.durableNames = new Map(names);
    this.changes = [];
    for (const inode of names.values()) {
      for (const [offset, old] of inode.unsynced) {
        if (this.prng.chance(1, 2)) inode.bytes.set(old, offset);
      }
      inode.unsynced.clear();
    }
  }

  /** Everything on it is gone. */
  wipe(): void {
    this.names.clear();
    this.durableNames.clear();
    this.changes = [];
    this.flights.clear();
  }

  get isEmpty(): boolean {
    return this.names.size === 0;
  }

  /**
   * Turns one bit of what lies on the platter, or puts a stray sector over it. Only what
   * a later write proves to have been there is spoiled: damage of the last records looks like a
   * write that was torn, and no log can tell it from one. False when there is nothing to spoil.
   */
  damage(kind: "bit" | "sector"): boolean {
    const sorted = [...this.names].sort(([a], [b]) => (a < b ? -1 : 1));
    const inodes = sorted.map(([, inode]) => inode);
    const newest = inodes.slice(-2);
    for (let attempt = 0; attempt < 64 && inodes.length > 0; attempt++) {
      const inode = inodes[this.prng.below(inodes.length)] as Inode;
      const end = newest.includes(inode) ? (inode.provenTo ?? 0) : inode.bytes.length;
      const at = this.prng.below(Math.max(1, end));
      if (end === 0) continue;
      // Zeros are room that nothing uses.
      if (inode.bytes[at] === 0 || inode.bytes[at] === undefined) continue;
      if (kind === "bit") inode.bytes[at] = (inode.bytes[at] as number) ^ (1 << this.prng.below(8));
      else {
        const from = this.prng.below(Math.floor(inode.bytes.length / TEAR_BYTES)) * TEAR_BYTES;
        const to = at - (at % TEAR_BYTES);
        if (from === to) continue;
        inode.bytes.set(inode.bytes.slice(from, from + TEAR_BYTES), to);
      }
      return true;
    }
    return false;
  }

  /** In the system's memory; the platter's content is kept until a sync. */
  private put(inode: Inode, offset: number, bytes: Uint8Array): void {
    const start = offset - (offset % TEAR_BYTES);
    for (let at = start; at < offset + bytes.length; at += TEAR_BYTES) {
      if (!inode.unsynced.has(at)) inode.unsynced.set(at, inode.bytes.slice(at, at + TEAR_BYTES));
    }
    inode.bytes.set(bytes.subarray(0, Math.max(0, inode.bytes.length - offset)), offset);
  }

  // For SimFiles ------------------------------------------------------------------------------

  delayMs(baseMs: number): number {
    const { prng, temper, world } = this;
    let delay = baseMs * this.slowness * (0.5 + prng.below(1024) / 1024);
    if (temper.slowPerMillion > 0 && prng.below(1_000_000) < temper.slowPerMillion) delay *= 20;
    return Math.max(delay, this.hungUntilMs - world.nowMs + delay);
  }

  find(path: string): Inode | undefined {
    return this.names.get(path);
  }

  all(): ReadonlyMap<string, Inode> {
    return this.names;
  }

  setName(path: string, inode: Inode | null): void {
    if (inode === null) this.names.delete(path);
    else this.names.set(path, inode);
    this.changes.push({ path, inode });
  }

  syncNames(): void {
    this.durableNames = new Map(this.names);
    this.changes = [];
  }

  begin(inode: Inode, offset: number, bytes: Uint8Array): Flight {
    const flight = { inode, offset, bytes };
    this.flights.add(flight);
    this.counts.writes++;
    this.counts.bytes += bytes.length;
    return flight;
  }

  /** The write reaches the platter, or fails. Null: its process ended before. */
  finish(flight: Flight): "written" | "failed" | null {
    if (!this.flights.delete(flight)) return null;
    const { inode, offset, bytes } = flight;
    const { writeErrorPerMillion } = this.temper;
    const unlucky = writeErrorPerMillion > 0 && this.prng.below(1_000_000) < writeErrorPerMillion;
    if (unlucky || this.failNext) {
      this.failNext = false;
      this.counts.errors++;
      // Some of it may have been written all the same.
      for (let at = 0; at < bytes.length; at += TEAR_BYTES) {
        if (this.prng.chance(1, 2))
          this.put(inode, offset + at, bytes.subarray(at, at + TEAR_BYTES));
      }
      return "failed";
    }
    inode.bytes.set(bytes, offset);
    inode.provenTo = Math.max(inode.provenTo ?? 0, offset);
    if (inode.unsynced.size === 0) return "written";
    for (let at = offset - (offset % TEAR_BYTES); at < offset + bytes.length; at += TEAR_BYTES) {
      inode.unsynced.delete(at);
    }
    return "written";
  }
}

class SimFiles implements FilesPort {
  constructor(
    private readonly disk: SimDisk,
    private readonly life: Life,
  ) {}

  /** Answers after the time that the call takes; `make` runs then, whatever the process does. */
  private answer<T>(
    name: string,
    baseMs: number,
    done: Done<T>,
    make: () => Result<T, FileErrorCode>,
  ): void {
    this.life.touch("disk");
    this.later(name, baseMs, done, make);
  }

  /** The same, where the process has made its call already. */
  private later<T>(
    name: string,
    baseMs: number,
    done: Done<T>,
    make: () => Result<T, FileErrorCode>,
  ): void {
    const { disk, life } = this;
    disk.world.schedule(disk.delayMs(baseMs), () => {
      if (life.isOver) return;
      const result = make();
      if (disk.world.trace.hasWords) {
        disk.world.say(disk.node, `disk: ${name}${result.ok ? "" : ` fails: ${result.code}`}`);
      }
      life.enter(() => done(result));
    });
  }

  open(path: string, access: "read" | "durable", done: Done<OpenFile>): void {
    this.answer(`open ${path}`, this.disk.temper.readMs, done, () => {
      const inode = this.disk.find(path);
      if (inode === undefined) return failure("missing", `no ${path}`);
      const { life } = this;
      const handle: Handle = { path, inode, life, durable: access === "durable", isOpen: true };
      return ok(handle);
    });
  }

  allocate(path: string, sizeBytes: number, head: Uint8Array, done: Done<null>): void {
    const { disk, life } = this;
    const first = head.slice();
    life.touch("disk");
    disk.world.schedule(disk.delayMs(disk.temper.writeMs), () => {
      if (life.isOver) return;
      if (disk.find(path) !== undefined) {
        return life.enter(() => done(failure("exists", `${path} exists`)));
      }
      if (disk.isFull) {
        disk.counts.refusedSpace++;
        disk.world.say(disk.node, `disk: no space for ${path}`);
        return life.enter(() => done(failure("no-space", `no space for ${path}`)));
      }
      // A crash from here on leaves a file of any length up to the whole.
      const inode: Inode = {
        bytes: new Uint8Array(disk.prng.below(sizeBytes + 1)),
        unsynced: new Map(),
        isDraft: true,
      };
      disk.setName(path, inode);
      this.later(`allocate ${path}`, disk.temper.writeMs, done, () => {
        inode.bytes = new Uint8Array(sizeBytes);
        inode.bytes.set(first);
        inode.isDraft = false;
        return ok(null);
      });
    });
  }

  read(file: OpenFile, offset: number, target: Uint8Array, done: Done<number>): void {
    const { inode } = this.handle(file);
    const { disk } = this;
    this.answer(`read ${file.path} ${offset}+${target.length}`, disk.temper.readMs, done, () => {
      const { readErrorPerMillion } = disk.temper;
      if (readErrorPerMillion > 0 && disk.prng.below(1_000_000) < readErrorPerMillion) {
        disk.counts.errors++;
        return failure("failed", `cannot read ${file.path}`);
      }
      const part = inode.bytes.subarray(offset, offset + target.length);
      target.set(part);
      return ok(part.length);
    });
  }

  write(file: OpenFile, offset: number, bytes: Uint8Array, done: Done<null>): void {
    const { inode, durable } = this.handle(file);
    assert(durable, "a file that is written was opened for that");
    assert(offset + bytes.length <= inode.bytes.length, "a write stays in allocated space");
    const { disk, life } = this;
    life.touch("disk");
    const { world } = disk;
    const flight = disk.begin(inode, offset, bytes);
    world.schedule(disk.delayMs(disk.temper.writeMs), () => {
      const end = disk.finish(flight);
      if (end === null) return;
      world.trace.mixBytes(bytes);
      if (world.trace.hasWords) {
        world.say(disk.node, `disk: ${end} ${file.path} ${offset}+${bytes.length}`);
      }
      const result = end === "written" ? ok(null) : failure("failed" as const, `cannot write`);
      life.enter(() => done(result));
    });
  }

  private handle(file: OpenFile): Handle {
    const handle = file as Handle;
    assert(handle.isOpen && handle.life === this.life, `${file.path} is open in this process`);
    return handle;
  }

  sync(file: OpenFile, done: Done<null>): void {
    const { inode } = this.handle(file);
    this.answer(`sync ${file.path}`, this.disk.temper.writeMs, done, () => {
      if (this.disk.failNext) {
        this.disk.failNext = false;
        this.disk.counts.errors++;
        return failure("failed", `cannot sync ${file.path}`);
      }
      inode.unsynced.clear();
      return ok(null);
    });
  }

  truncate(file: OpenFile, sizeBytes: number, done: Done<null>): void {
    const { inode } = this.handle(file);
    this.answer(`truncate ${file.path}`, this.disk.temper.writeMs, done, () => {
      const bytes = new Uint8Array(sizeBytes);
      bytes.set(inode.bytes.subarray(0, sizeBytes));
      inode.bytes = bytes;
      return ok(null);
    });
  }

  close(file: OpenFile, done: Done<null>): void {
    this.handle(file).isOpen = false;
    this.answer(`close ${file.path}`, this.disk.temper.readMs, done, () => ok(null));
  }

  rename(from: string, to: string, done: Done<null>): void {
    this.answer(`rename to ${to}`, this.disk.temper.readMs, done, () => {
      const inode = this.disk.find(from);
      if (inode === undefined) return failure("missing", from);
      this.disk.setName(to, inode);
      this.disk.setName(from, null);
      return ok(null);
    });
  }

  remove(path: string, done: Done<null>): void {
    this.answer(`remove ${path}`, this.disk.temper.readMs, done, () => {
      if (this.disk.find(path) === undefined) return failure("missing", path);
      this.disk.setName(path, null);
      return ok(null);
    });
  }

  list(path: string, done: Done<readonly FileListing[]>): void {
    this.answer(`list ${path}`, this.disk.temper.readMs, done, () => {
      const found: FileListing[] = [];
      for (const [name, { bytes }] of this.disk.all()) {
        if (!name.startsWith(`${path}/`)) continue;
        found.push({ name: name.slice(path.length + 1), sizeBytes: bytes.length });
      }
      return ok(found);
    });
  }

  syncDirectory(path: string, done: Done<null>): void {
    this.answer(`syncDirectory ${path}`, this.disk.temper.writeMs, done, () => {
      this.disk.syncNames();
      return ok(null);
    });
  }
}
