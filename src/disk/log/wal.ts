/**
 * The write-ahead log of a node, shared by all its groups: LogPort over any FilesPort.
 *
 * Owns appender, reader, rewriter and segments of one directory.
 *
 * Invariants: 1. It exists only after recovery succeeded. 2. Callbacks never come in the turn of
 * their call. 3. After `close` nothing is accepted. 4. A fault of the disk ends the process through
 * FatalPort, with one of the reasons below; nothing is acknowledged after it.
 *
 * Fatal reasons: "log write failed", "log read failed", "log record damaged", "log segment creation
 * failed", "log segment removal failed", "log directory sync failed".
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import type { Result } from "../../base/result.js";
import type {
  RecoveredGroupLog,
  HardState,
  LogEntry,
  LogPort,
  LogPosition,
  LogSpace,
  LogWrite,
} from "../../ports.js";
import type { Kernels } from "../../wasm/kernels.js";
import { Appender } from "./appender.js";
import { Reader } from "./reader.js";
import { Rewriter } from "./rewriter.js";
import type { LogOptions, LogPorts } from "./segment.js";
import { SegmentSet } from "./segments.js";

export class WriteAheadLog implements LogPort {
  readonly segments: SegmentSet;
  readonly appender: Appender;
  private readonly reader: Reader;
  private readonly rewriter: Rewriter;
  private recoveredLogs = new Map<PartitionId, RecoveredGroupLog>();
  private closed = false;

  /** For recovery only, see `openLog`. */
  constructor(options: LogOptions, ports: LogPorts, kernels: Kernels) {
    this.segments = new SegmentSet(options, ports, kernels, () => {
      this.appender.schedule();
      this.appender.tidy();
    });
    this.appender = new Appender(this.segments, kernels, ports, () => {
      this.reader.resume();
      this.rewriter.advance();
    });
    this.reader = new Reader(this.appender, this.segments, ports);
    this.rewriter = new Rewriter(this.appender, this.segments, this.reader);
  }

  /** Recovery is complete: everything found is durable and whole. */
  start(): void {
    const recoveredLogs = new Map<PartitionId, RecoveredGroupLog>();
    for (const index of this.appender.groups.values())
      recoveredLogs.set(index.group, index.recovered());
    this.recoveredLogs = recoveredLogs;
    this.appender.start();
    this.appender.tidy();
    this.segments.prepareSpare();
  }

  /** True from the call of `close` on. */
  get isClosed(): boolean {
    return this.closed;
  }

  recovered(): ReadonlyMap<PartitionId, RecoveredGroupLog> {
    return this.recoveredLogs;
  }

  write(write: LogWrite): void {
    assert(!this.closed, "a closed log is not written");
    const { entries } = write;
    for (let at = 1; at < entries.length; at++) {
      const follows = (entries[at] as LogEntry).index === (entries[at - 1] as LogEntry).index + 1;
      assert(follows, "entries of a write are contiguous");
    }
    this.appender.submit({ kind: "write", write, begun: false, framed: 0 });
  }

  read(
    group: PartitionId,
    first: number,
    last: number,
    maxBytes: number,
    done: (result: Result<readonly LogEntry[], "compacted">) => void,
  ): void {
    assert(!this.closed, "a closed log is not read");
    assert(first >= 1 && first <= last, "a read names at least one index");
    this.reader.read(group, first, last, maxBytes, done);
  }

  raiseFloor(group: PartitionId, floor: LogPosition): void {
    assert(!this.closed, "a closed log has no floors");
    const index = this.appender.groupIndex(group);
    assert(floor.index <= index.lastIndex, "a floor lies within the log");
    if (floor.index <= index.floor.index) return;
    const place = index.place(floor.index);
    assert(place === null || place.term === floor.term, "a floor has the term of its entry");
    index.raiseFloor(floor);
    this.appender.restateGroup(index);
  }

  resetGroup(group: PartitionId, floor: LogPosition, hardState: HardState, done: () => void): void {
    assert(!this.closed, "a closed log is not reset");
    assert(hardState.commit >= floor.index, "what a snapshot covers is committed");
    this.appender.submit({ kind: "install", group, floor, hardState, done });
  }

  forgetGroup(group: PartitionId, done: () => void): void {
    assert(!this.closed, "a closed log forgets nothing");
    this.recoveredLogs.delete(group);
    this.appender.submit({ kind: "drop", group, done });
  }

  space(): LogSpace {
    return this.segments.isFull ? "full" : "available";
  }

  sizeBytes(): number {
    return this.segments.sizeBytes();
  }

  /** Bytes of records that are still needed. */
  liveBytes(): number {
    return this.segments.liveBytes();
  }

  pinningGroups(): readonly PartitionId[] {
    return this.rewriter.pinningGroups();
  }

  close(done: () => void): void {
    assert(!this.closed, "a log is closed once");
    this.closed = true;
    const finish = (): void => {
      this.appender.stop();
      this.segments.close(done);
    };
    this.appender.submit({ kind: "close", done: finish });
  }
}
