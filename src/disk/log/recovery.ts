/**
 * Opening the log: finds the segments, verifies and replays every record, cuts a torn tail, refuses
 * everything else that is not whole.
 *
 * Owns the scan.
 *
 * A write that was in flight when the power went may be there in part; its start is never below the
 * "durable" offset that its own records carry. So where the scan of the last segment stops, a valid
 * record behind that place decides: if it was written when the stop was already durable, something
 * acknowledged is damaged; otherwise it belongs to the torn write, and the log ends at the stop
 * (P-113).
 *
 * Invariants: 1. Only the last written segment is cut, and nothing is written over the cut: the
 * next batch goes to a new segment, whose link names where this one ends. 2. What is replayed is
 * synced before anyone relies on it. 3. Any other irregularity is a refusal that names file,
 * offset, remedy.
 */
import { type Result, failure, ok } from "../../base/result.js";
import type { OpenFile } from "../../ports.js";
import { type Kernels, sizes } from "../../wasm/kernels.js";
import { SECTOR_BYTES, decodeLink, logKind, segmentName } from "./records.js";
import {
  type LogOpenCode,
  RESTORE,
  type Refusal,
  checkGroups,
  checkHeader,
  damage,
  findSegments,
} from "./refusals.js";
import { type ReplayNotes, replayRows } from "./replay.js";
import { type LogOptions, type LogPorts, type Segment, newSegment } from "./segment.js";
import { examineTail } from "./tail.js";
import { WriteAheadLog } from "./wal.js";

type Opened = Result<WriteAheadLog, LogOpenCode>;

/** Opens or creates the log of `options.directory`, which exists and is locked by the caller. */
export function openLog(
  options: LogOptions,
  ports: LogPorts,
  kernels: Kernels,
  done: (result: Opened) => void,
): void {
  new Recovery(options, ports, kernels, done).begin();
}

class Recovery {
  private readonly log: WriteAheadLog;
  private readonly notes: ReplayNotes = { closed: false, records: 0 };
  private sequences: readonly number[] = [];
  private readonly opened: OpenFile[] = [];
  /**
   * The last segment with records (or torn before its first), until its successor proves its end.
   */
  private unproven: Segment | null = null;
  private spare: Segment | null = null;
  private readonly extras: Segment[] = [];
  private bytesRead = 0;
  private readonly startedMs: number;

  constructor(
    private readonly options: LogOptions,
    private readonly ports: LogPorts,
    private readonly kernels: Kernels,
    private readonly done: (result: Opened) => void,
  ) {
    this.log = new WriteAheadLog(options, ports, kernels);
    this.startedMs = ports.clock.monotonicMs();
  }

  begin(): void {
    findSegments(this.options, this.ports.files, (found) => {
      if (!found.ok) return this.refuse(found);
      this.sequences = found.value;
      if (found.value.length === 0) this.createFirst();
      else this.openNext(0);
    });
  }

  private createFirst(): void {
    if (!this.options.mayCreate) {
      const message = `${this.options.directory} holds no log segment, but there was a log`;
      return this.refuse(
        failure("log-incomplete", `${message}: check the log path, or ${RESTORE}`),
      );
    }
    this.log.segments.create(1, (created) => {
      if (!created.ok) {
        const code = created.code === "no-space" ? "log-no-space" : "log-unreadable";
        return this.refuse(failure(code, created.message));
      }
      this.log.segments.adopt(created.value, false);
      this.log.start();
      this.done(ok(this.log));
    });
  }

  private openNext(at: number): void {
    const sequence = this.sequences[at];
    if (sequence === undefined) return this.finish();
    const path = `${this.options.directory}/${segmentName(sequence)}`;
    this.ports.files.open(path, "durable", (result) => {
      if (!result.ok) return this.refuse(failure("log-unreadable", result.message));
      this.opened.push(result.value);
      const segment = newSegment(sequence, path, result.value, SECTOR_BYTES, 0);
      this.read(segment, 0, SECTOR_BYTES, () => {
        const { identity } = this.options;
        const refusal = checkHeader(segment, this.kernels.scanner, identity);
        if (refusal !== null) return this.refuse(refusal);
        this.scan(segment, at);
      });
    });
  }

  /** Reads into the scan window. */
  private read(segment: Segment, offset: number, bytes: number, next: () => void): void {
    const window = this.kernels.scanner.window.subarray(0, bytes);
    this.bytesRead += bytes;
    this.ports.files.read(segment.file, offset, window, (result) => {
      if (!result.ok) return this.refuse(failure("log-unreadable", result.message));
      if (result.value === bytes) return next();
      this.refuse(damage(segment.path, offset + result.value, "the file ends early"));
    });
  }

  /** Scans on from the end found so far, window by window. */
  private scan(segment: Segment, at: number): void {
    const { segmentBytes } = this.options;
    const offset = segment.endOffset;
    const bytes = Math.min(sizes.windowBytes, segmentBytes - offset);
    this.read(segment, offset, bytes, () => this.scanWindow(segment, at, bytes));
  }

  private scanWindow(segment: Segment, at: number, bytes: number): void {
    const start = segment.endOffset;
    const { scanner } = this.kernels;
    const stop = scanner.scan(bytes, {
      segmentId: segment.sequence,
      salt: this.log.segments.salt,
      offset: start,
      previousChecksum: segment.checksum,
      last: start + bytes === this.options.segmentBytes,
    });
    if (stop.records > 0) {
      const refusal = this.replay(segment, stop.records);
      if (refusal !== null) return this.refuse(refusal);
    }
    segment.endOffset = stop.nextOffset;
    segment.checksum = stop.checksum;
    if (stop.reason === "more") return this.scan(segment, at);
    if (segment.endOffset > SECTOR_BYTES || this.unproven === null) {
      this.adopt(segment);
      this.unproven = segment;
      return this.openNext(at + 1);
    }
    this.enterEmpty(segment, at);
  }

  /**
   * Replays the rows of the last scan. The first record of a segment proves the end of the one
   * before.
   */
  private replay(segment: Segment, rows: number): Refusal | null {
    const { scanner } = this.kernels;
    const isFirst = segment.endOffset === SECTOR_BYTES;
    const linked = isFirst && scanner.record(0).kind === logKind.link;
    if (isFirst) {
      const refusal = this.spare === null ? this.checkLink(segment, linked) : this.stray(segment);
      if (refusal !== null) return refusal;
      this.adopt(segment);
    }
    const { appender } = this.log;
    const from = linked ? 1 : 0;
    const wrong = replayRows(scanner, from, rows, segment.sequence, appender, this.notes);
    return wrong === null ? null : damage(segment.path, wrong.offset, wrong.problem);
  }

  private checkLink(segment: Segment, linked: boolean): Refusal | null {
    const before = this.unproven;
    // The oldest kept segment links to one that is gone, or is the first of all.
    if (before === null) return null;
    const { scanner } = this.kernels;
    const link = linked ? decodeLink(scanner.payload(0)) : null;
    if (link === null || scanner.record(0).index !== before.sequence) {
      return damage(segment.path, SECTOR_BYTES, "it does not link to the segment before");
    }
    if (link.endOffset === before.endOffset && link.checksum === before.checksum) return null;
    const what = `records up to offset ${String(link.endOffset)} were durable and are not whole`;
    return damage(before.path, before.endOffset, what);
  }

  private stray(segment: Segment): Refusal {
    return damage(segment.path, SECTOR_BYTES, "it holds records, but the segment before is empty");
  }

  private adopt(segment: Segment): void {
    const { segments } = this.log;
    if (segments.all[segments.all.length - 1] !== segment) segments.adopt(segment, false);
  }

  /**
   * A segment without a whole record: the spare, or torn at its very first write, or a second
   * spare.
   */
  private enterEmpty(segment: Segment, at: number): void {
    const before = this.unproven;
    if (before === null) return this.openNext(at + 1);
    this.examine(before, (cut) => {
      before.sealed = cut;
      this.examine(segment, (torn) => {
        if (torn && this.spare !== null) return this.refuse(this.stray(segment));
        if (torn) {
          this.adopt(segment);
          this.unproven = segment;
        } else if (this.spare === null) this.spare = segment;
        else this.extras.push(segment);
        this.openNext(at + 1);
      });
    });
  }

  /** Tells whether a torn tail lies behind the end of `segment`. */
  private examine(segment: Segment, next: (torn: boolean) => void): void {
    const salt = this.log.segments.salt;
    const { segmentBytes } = this.options;
    const end = segment.endOffset;
    examineTail(segment, segmentBytes, salt, this.ports.files, this.kernels, (result) => {
      if (!result.ok && result.code === "unreadable") {
        return this.refuse(failure("log-unreadable", result.message));
      }
      if (!result.ok) return this.refuse(damage(segment.path, end, result.message));
      if (result.value === 0) return next(end % SECTOR_BYTES !== 0);
      const fields = { file: segment.path, offset: end, bytes: result.value };
      this.ports.logger.log("warn", "cut a torn tail off the log", fields);
      next(true);
    });
  }

  private finish(): void {
    const last = this.unproven;
    if (last === null) return this.refuse(failure("log-incomplete", "the log has no segment"));
    this.examine(last, (torn) => {
      last.sealed = torn;
      this.removeExtras(() => this.sync(last));
    });
  }

  /** A crash right after a rotation leaves two empty segments; the later goes. */
  private removeExtras(next: () => void): void {
    const segment = this.extras.pop();
    if (segment === undefined) return next();
    this.ports.files.close(segment.file, () => {
      this.ports.files.remove(segment.path, (removed) => {
        if (!removed.ok) return this.refuse(failure("log-unreadable", removed.message));
        this.removeExtras(next);
      });
    });
  }

  /** What a killed process wrote may be in the system's memory only. */
  private sync(last: Segment): void {
    const { files } = this.ports;
    files.sync(last.file, (synced) => {
      if (!synced.ok) return this.refuse(failure("log-unreadable", synced.message));
      files.syncDirectory(this.options.directory, (directorySynced) => {
        if (!directorySynced.ok) {
          return this.refuse(failure("log-unreadable", directorySynced.message));
        }
        this.complete();
      });
    });
  }

  private complete(): void {
    const { log, ports, notes } = this;
    const refusal = checkGroups(log.appender.groups.values(), this.options.directory);
    if (refusal !== null) return this.refuse(refusal);
    if (this.spare !== null) log.segments.adopt(this.spare, true);
    log.start();
    ports.logger.log("info", "recovered the log", {
      segments: log.segments.all.length,
      groups: log.appender.groups.size,
      records: notes.records,
      bytes: this.bytesRead,
      clean: notes.closed,
      tookMs: Math.round(ports.clock.monotonicMs() - this.startedMs),
    });
    this.done(ok(log));
  }

  private refuse(refusal: Refusal): void {
    const file = this.opened.pop();
    if (file === undefined) return this.done(refusal);
    this.ports.files.close(file, () => this.refuse(refusal));
  }
}
