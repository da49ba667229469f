/**
 * The disk of one machine. The way of a process to it is in `files.ts`.
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
import type { Prng } from "../../../src/base/prng.js";
import type { World } from "../world/world.js";

/** Tears happen at borders of this size, smaller than the log's own. */
const TEAR_BYTES = 512;

/** One file. */
export interface Inode {
  bytes: Uint8Array;
  /** Sectors that are in the system's memory only, with what the platter holds there. */
  readonly unsynced: Map<number, Uint8Array>;
  /** The file's very existence is not synced yet: nothing of its content is sure. */
  isDraft: boolean;
  /** A later write is whole from here on: whatever is missing before it was there. */
  provenTo?: number;
}

/** A write that is not on the platter yet. */
export interface Flight {
  readonly inode: Inode;
  readonly offset: number;
  readonly bytes: Uint8Array;
}

/** What lay on a disk at one moment, by path. */
export type DiskCopy = ReadonlyMap<string, Pick<Inode, "bytes" | "provenTo">>;

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
  /** What was asked for while it hung ends then, also if it hangs no more. */
  lateUntilMs = 0;
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

  /** While no process uses it. */
  copy(): DiskCopy {
    const pairs = [...this.names].map(([path, { bytes, provenTo = 0 }]) => {
      return [path, { bytes: bytes.slice(), provenTo }] as const;
    });
    return new Map(pairs);
  }

  /** Puts a copy in the place of everything. */
  restore(copy: DiskCopy): void {
    this.wipe();
    for (const [path, { bytes, provenTo = 0 }] of copy) {
      this.names.set(path, { bytes: bytes.slice(), provenTo, unsynced: new Map(), isDraft: false });
    }
    this.durableNames = new Map(this.names);
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
    this.lateUntilMs = Math.max(this.lateUntilMs, this.hungUntilMs);
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
