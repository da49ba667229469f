/**
 * The log of the `memory` adapter: keeps nothing beyond the process.
 *
 * Owns plain arrays. Same contract and conformance suite as the real one.
 *
 * Invariants: 1. Callbacks never come in the turn of their call, and in order. 2. What a caller
 * hands in is copied; what is handed out is a copy.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import { type Result, failure, ok } from "../../base/result.js";
import type {
  RecoveredGroupLog,
  HardState,
  LogEntry,
  LogPort,
  LogPosition,
  LogSpace,
  LogWrite,
  TimerPort,
} from "../../ports.js";
import { NO_FLOOR, NO_HARD_STATE } from "./records.js";

/** A group with more entries than this should be flushed, so that memory stays bounded. */
const PINNING_ENTRIES = 100_000;

interface MemoryGroup {
  floor: LogPosition;
  hardState: HardState;
  entries: LogEntry[];
}

export class MemoryLog implements LogPort {
  private readonly groups = new Map<PartitionId, MemoryGroup>();
  private bytes = 0;
  private closed = false;

  constructor(private readonly timers: TimerPort) {}

  /** True from the call of `close` on. */
  get isClosed(): boolean {
    return this.closed;
  }

  recovered(): ReadonlyMap<PartitionId, RecoveredGroupLog> {
    return new Map();
  }

  private group(id: PartitionId): MemoryGroup {
    let group = this.groups.get(id);
    if (group === undefined) {
      group = { floor: NO_FLOOR, hardState: NO_HARD_STATE, entries: [] };
      this.groups.set(id, group);
    }
    return group;
  }

  write(write: LogWrite): void {
    assert(!this.closed, "a closed log is not written");
    const group = this.group(write.group);
    const first = write.entries[0];
    if (first !== undefined) {
      const end = group.floor.index + group.entries.length;
      assert(first.index > group.floor.index && first.index <= end + 1, "entries join the log");
      this.cut(group, first.index - group.floor.index - 1);
    }
    for (const entry of write.entries) {
      const expected = group.floor.index + group.entries.length + 1;
      assert(entry.index === expected, "entries of a write are contiguous");
      group.entries.push({ ...entry, payload: entry.payload.slice() });
      this.bytes += entry.payload.length;
    }
    if (write.hardState !== null) group.hardState = write.hardState;
    this.timers.soon(write.done);
  }

  private cut(group: MemoryGroup, keep: number): void {
    for (const entry of group.entries.splice(keep)) this.bytes -= entry.payload.length;
  }

  read(
    id: PartitionId,
    first: number,
    last: number,
    maxBytes: number,
    done: (result: Result<readonly LogEntry[], "compacted">) => void,
  ): void {
    assert(!this.closed && first >= 1 && first <= last, "a read names at least one index");
    this.timers.soon(() => {
      const { floor, entries } = this.groups.get(id) ?? { floor: NO_FLOOR, entries: [] };
      if (first <= floor.index) {
        return done(failure("compacted", `entries up to ${String(floor.index)} are compacted`));
      }
      const found: LogEntry[] = [];
      let bytes = 0;
      for (const entry of entries.slice(first - floor.index - 1, last - floor.index)) {
        bytes += entry.payload.length;
        if (found.length > 0 && bytes > maxBytes) break;
        found.push({ ...entry, payload: entry.payload.slice() });
      }
      done(ok(found));
    });
  }

  raiseFloor(id: PartitionId, floor: LogPosition): void {
    const group = this.group(id);
    const gone = floor.index - group.floor.index;
    assert(gone <= group.entries.length, "a floor lies within the log");
    if (gone <= 0) return;
    for (const entry of group.entries.splice(0, gone)) this.bytes -= entry.payload.length;
    group.floor = floor;
  }

  resetGroup(id: PartitionId, floor: LogPosition, hardState: HardState, done: () => void): void {
    assert(hardState.commit >= floor.index, "what a snapshot covers is committed");
    const group = this.group(id);
    this.cut(group, 0);
    group.floor = floor;
    group.hardState = hardState;
    this.timers.soon(done);
  }

  forgetGroup(id: PartitionId, done: () => void): void {
    const group = this.groups.get(id);
    if (group !== undefined) this.cut(group, 0);
    this.groups.delete(id);
    this.timers.soon(done);
  }

  space(): LogSpace {
    return "available";
  }

  sizeBytes(): number {
    return this.bytes;
  }

  pinningGroups(): readonly PartitionId[] {
    const pinning = [...this.groups].filter(([, group]) => group.entries.length > PINNING_ENTRIES);
    return pinning.map(([id]) => id);
  }

  close(done: () => void): void {
    assert(!this.closed, "a log is closed once");
    this.closed = true;
    this.timers.soon(done);
  }
}
