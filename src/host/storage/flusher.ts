/**
 * Moves applied changes from memory into the durable state store, in the background, and then lets
 * go of the log that they came from.
 *
 * Owns the memtable's freezes. Invariants: 1. One flush
 * at a time; it holds whole entries only and carries the record of every group that moved (P-119).
 * 2. A log floor is raised only by what a finished, durable flush contains (P-117);
 * `compactKeepEntries` stay behind it unless the group pins old segments, and what others want (see
 * log-floors.ts). 3. A full store keeps the immutable table and tries again; nothing is lost and
 * intake is closed meanwhile (P-120). 4. Bytes and rows that are in memory only are bounded: intake
 * pauses at the bound, and apply does (P-192). What others lead may take FOLLOWED_SHARE of the
 * room, so that it never keeps what this node leads from going on; what is led may take LED_SHARE:
 * that much was taken in before the pause, and reads wait for it. 5. Whoever waits for a flush
 * waits for the one that holds what was there when it asked, and for no later one (P-195).
 */
import { assert } from "../../base/assert.js";
import { type PartitionId, partitionId } from "../../base/ids.js";
import type { ImmutableTable, Memtable } from "../../machine/store/memtable.js";
import type {
  ClockPort,
  DiskPort,
  LogPort,
  LoggerPort,
  MeterPort,
  StorePort,
} from "../../ports.js";
import { PITR_DISK_SHARE, PITR_LOG_MAX_BYTES } from "../../base/limits.js";
import type { BackupLogFacts } from "../requests/results.js";
import { BackupFloors, type LogHold } from "./backup-floors.js";
import { type FlooredGroup, LogFloors } from "./log-floors.js";
import type { HostSettings } from "../settings.js";

/** Of the bounds of what is unflushed, for groups that other nodes lead, and for the others. */
const FOLLOWED_SHARE = 0.75;
const LED_SHARE = 2;
/** Pause between two looks at what pins the log, where backups do (ms). */
const RELIEVE_EVERY_MS = 1000;

/** What a flush needs to know of one group, and tells it. */
export interface FlushableGroup extends FlooredGroup {
  readonly partition: PartitionId;
  readonly appliedIndex: number;
  /** Payload bytes applied in this life. */
  readonly appliedBytes: number;
  /** The last index that a durable flush covers. */
  flushedIndex: number;
}

export interface FlusherPorts {
  readonly clock: ClockPort;
  readonly log: LogPort;
  readonly store: StorePort;
  readonly logger: LoggerPort;
  readonly meter: MeterPort;
  readonly disk?: DiskPort;
}

export class Flusher {
  private readonly groups = new Map<PartitionId, FlushableGroup>();
  /** Groups that may have applied something that is in no flush. */
  private readonly moving = new Set<FlushableGroup>();
  private readonly bytesAtFreeze = new Map<PartitionId, number>();
  private immutable: ImmutableTable | null = null;
  private writing = false;
  private full = false;
  private retryAtMs = 0;
  private startedMs = 0;
  /** When the oldest change that is in no flush yet was seen; Infinity when there is none. */
  private dirtySinceMs = Infinity;
  private wanted = false;
  /** Some group applied something that is in no flush. */
  private moved = false;
  /** Who waits for the next freeze, and who for the flush of the immutable table. */
  private waiting: (() => void)[] = [];
  private covered: (() => void)[] = [];
  private readonly floors: LogFloors;
  private readonly backups: BackupFloors;
  private relieveAtMs = 0;
  /** Flushes finished. */
  count = 0;

  /**
   * `onRoom` is called when there may be room for more: in no turn when a flush ended, one way or
   * the other; inside one when the begin of a flush made room.
   */
  constructor(
    private readonly memtable: Memtable,
    private readonly ports: FlusherPorts,
    private readonly settings: HostSettings,
    private readonly onRoom: () => void,
    /** Groups that were run since the last tick. */
    private readonly activeGroups: { all(): Iterable<FlushableGroup> },
    /** What the log may keep for other nodes, all groups together (bytes). */
    logKeepBytesMax: () => number,
  ) {
    this.backups = new BackupFloors({
      nowMs: () => ports.clock.monotonicMs(),
      isLogFull: () => ports.log.space() === "full",
      windowMs: settings.pitrWindowMs,
      windowBytesMax: () => {
        return Math.min(
          PITR_LOG_MAX_BYTES,
          PITR_DISK_SHARE * (ports.disk?.freeBytes() ?? Infinity),
        );
      },
    });
    this.floors = new LogFloors(ports.log, logKeepBytesMax, this.backups);
  }

  add(group: FlushableGroup): void {
    assert(!this.groups.has(group.partition), "a group is added once");
    this.groups.set(group.partition, group);
    // Whoever is idle is flushed no more: its entries age from now on.
    this.backups.flushed(group, group.flushedIndex);
  }

  /** The group left this node; what a flush on its way holds of it comes to nothing. */
  removed(group: FlushableGroup): void {
    this.groups.delete(group.partition);
    this.moving.delete(group);
    this.bytesAtFreeze.delete(group.partition);
    this.floors.removed(group);
  }

  /** The store refused the last flush for want of space. */
  get storeFull(): boolean {
    return this.full;
  }

  /** A flush is with the store: it cannot be given up. */
  get isWriting(): boolean {
    return this.writing;
  }

  /** Whether more may be taken in to be applied. */
  get intakeOpen(): boolean {
    return !this.full && this.hasRoom(1);
  }

  /**
   * Whether an entry more may be applied into memory, of a group that this node leads or follows.
   * When it may not, `onRoom` tells when to look again.
   */
  mayApply(leads: boolean): boolean {
    return this.hasRoom(leads ? LED_SHARE : FOLLOWED_SHARE);
  }

  private hasRoom(share: number): boolean {
    const { unflushedBytesMax, unflushedRowsMax } = this.settings;
    if (this.memtable.unflushedBytes > share * unflushedBytesMax) return false;
    return this.memtable.rows <= share * unflushedRowsMax;
  }

  /** Times that the log was let go although another node wanted it. */
  get logCuts(): number {
    return this.floors.cutCount;
  }

  /**
   * Keeps what the log of `group` has above `fromIndex` for a backup; null: it has not all of it.
   */
  holdLog(group: FlushableGroup, fromIndex: number): LogHold | null {
    return this.backups.hold(group, fromIndex);
  }

  backupLogFacts(): BackupLogFacts {
    return this.backups.facts();
  }

  get unflushedBytes(): number {
    return this.memtable.unflushedBytes;
  }

  /** Flushes what is unflushed now, soon; `done` is called when it is durable, in no turn. */
  flushSoon(done: () => void): void {
    this.wanted = true;
    this.waiting.push(done);
  }

  /**
   * Looks whether a flush is due, and starts it: once per turn. `everyGroup`: looks at each group
   * that moved too, which the housekeeping asks for.
   */
  check(nowMs: number, everyGroup: boolean): void {
    if (everyGroup) {
      this.gather();
      this.backups.look();
    }
    if (this.writing) return;
    if (this.immutable !== null) {
      if (nowMs >= this.retryAtMs) this.write(this.immutable, nowMs);
      return;
    }
    if (everyGroup) this.lookAtGroups();
    if (this.dirtySinceMs === Infinity && (this.moved || this.memtable.rows > 0)) {
      this.dirtySinceMs = nowMs;
    }
    if (!this.isDue(nowMs)) return;
    // What is held back at all is held back at the smallest of the bounds.
    const isHeld = this.full || !this.mayApply(false);
    const immutable = this.freeze();
    for (const group of this.moving) this.bytesAtFreeze.set(group.partition, group.appliedBytes);
    if (immutable.changes.length === 0) this.finish(immutable);
    else this.write(immutable, nowMs);
    if (isHeld) this.onRoom();
  }

  private freeze(): ImmutableTable {
    this.moved = false;
    this.wanted = false;
    this.dirtySinceMs = Infinity;
    this.covered = this.waiting;
    this.waiting = [];
    const immutable = this.memtable.freeze();
    this.immutable = immutable;
    this.gather();
    return immutable;
  }

  /** When `check` wants to be called at the latest. */
  get nextCheckMs(): number {
    if (this.writing) return Infinity;
    if (this.immutable !== null) return this.retryAtMs;
    return this.dirtySinceMs + this.settings.flushAgeMs;
  }

  /**
   * Lets go of the segments that idle groups pin; asks for a flush when that takes one. Where the
   * log stays for backups there is always something that is not let go: it is tried less often.
   */
  relieveLog(nowMs: number): void {
    if (nowMs < this.relieveAtMs && this.ports.log.space() !== "full") return;
    if (this.settings.pitrWindowMs > 0) this.relieveAtMs = nowMs + RELIEVE_EVERY_MS;
    for (const partition of this.ports.log.pinningGroups()) {
      const group = this.groups.get(partition);
      if (group === undefined) continue;
      this.floors.raise(group, group.flushedIndex);
      // A flush helps only where nobody else wants what it would let go.
      const isFree = group.floorIndex === group.flushedIndex;
      if (isFree && group.appliedIndex > group.flushedIndex) this.wanted = true;
    }
  }

  private gather(): void {
    for (const group of this.activeGroups.all()) this.moving.add(group);
  }

  private lookAtGroups(): void {
    for (const group of this.moving) {
      const behind = group.appliedIndex - group.flushedIndex;
      if (behind > 0) this.moved = true;
      else this.moving.delete(group);
      const bytes = group.appliedBytes - (this.bytesAtFreeze.get(group.partition) ?? 0);
      const { compactEveryEntries, compactEveryBytes } = this.settings;
      if (behind >= compactEveryEntries || bytes >= compactEveryBytes) this.wanted = true;
    }
  }

  private isDue(nowMs: number): boolean {
    const { settings, memtable } = this;
    if (this.wanted || !this.mayApply(false)) return true;
    if (this.dirtySinceMs === Infinity) return false;
    if (nowMs - this.dirtySinceMs >= settings.flushAgeMs) return true;
    return memtable.sizeBytes >= settings.flushBytes || memtable.rows >= settings.flushRows;
  }

  private write(table: ImmutableTable, nowMs: number): void {
    this.writing = true;
    this.startedMs = nowMs;
    this.ports.store.write(table.changes, (result) => {
      assert(this.writing, "a flush ends once");
      this.writing = false;
      if (result.ok) this.finish(table);
      else this.park(result.message);
      this.onRoom();
    });
  }

  private finish(table: ImmutableTable): void {
    assert(this.immutable === table, "the flush that ends is the one that was started");
    this.memtable.dropImmutable();
    this.immutable = null;
    if (this.full) this.ports.logger.log("info", "The state store takes writes again.");
    this.full = false;
    this.count++;
    if (table.changes.length > 0) {
      const tookMs = this.ports.clock.monotonicMs() - this.startedMs;
      this.ports.meter.flushMs(tookMs, table.changes.length);
    }
    for (const moved of table.groups) {
      const group = this.groups.get(partitionId(moved.group));
      // It left meanwhile; its next life begins only after a flush that comes behind this one.
      if (group === undefined) continue;
      group.flushedIndex = moved.appliedIndex;
      const spare = moved.appliedIndex - this.settings.compactKeepEntries;
      this.backups.flushed(group, moved.appliedIndex);
      this.floors.raise(group, spare);
    }
    const { covered } = this;
    this.covered = [];
    for (const done of covered) done();
  }

  private park(message: string): void {
    if (!this.full) this.ports.logger.log("error", "The state store is full.", { detail: message });
    this.full = true;
    this.retryAtMs = this.ports.clock.monotonicMs() + this.settings.flushRetryMs;
  }
}
