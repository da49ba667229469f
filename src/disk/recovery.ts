/**
 * Opening the log: finds the segments, verifies and replays every record, cuts a torn tail, refuses
 * everything else that is not whole.
 *
 * Owns the scan. May call base, ports, wasm, the log's parts.
 *
 * A write that was in flight when the power went may be there in part; its start is never below the
 * "durable" offset that its own records carry. So where the scan of the last segment stops, a valid
 * record behind that place decides: if it was written when the stop was already durable, something
 * acknowledged is damaged; otherwise it belongs to the torn write, and the log ends at the stop (P-113).
 *
 * Invariants: 1. Only the last written segment is cut, and nothing is written over the cut: the next
 * batch goes to a new segment, whose link names where this one ends. 2. What is replayed is synced
 * before anyone relies on it. 3. Any other irregularity is a refusal that names file, offset, remedy.
 */
import { type Failure, type Result, failure, ok } from "../base/result.js";
import type { OpenFile } from "../ports.js";
import { type Kernels, sizes } from "../wasm/kernels.js";
import {
  LOG_FORMAT_VERSION,
  type LogIdentity,
  SECTOR_BYTES,
  UNFINISHED_SUFFIX,
  decodeHeader,
  decodeLink,
  logKind,
  segmentName,
  segmentSequence,
} from "./records.js";
import { type ReplayNotes, replayRows } from "./replay.js";
import { type LogOptions, type LogPorts, type Segment, newSegment } from "./segments.js";
import { examineTail } from "./tail.js";
import { WriteAheadLog } from "./wal.js";

/**
 * "log-damaged": a record that was durable is not whole. "log-incomplete": a segment or entries are missing.
 * "log-newer": written by a newer version. "log-foreign": belongs to another node or cluster.
 * "log-unreadable": the system refused. "log-no-space": no room for the first segment.
 */
export type LogOpenCode =
  | "log-damaged"
  | "log-incomplete"
  | "log-newer"
  | "log-foreign"
  | "log-unreadable"
  | "log-no-space";

type Opened = Result<WriteAheadLog, LogOpenCode>;
type Refusal = Failure<LogOpenCode>;

const RESTORE = "restore the file from a copy, or start this node empty and let it catch up";

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
  private sequences: number[] = [];
  private readonly opened: OpenFile[] = [];
  /** The last segment with records (or torn before its first), until its successor proves its end. */
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
    const { directory } = this.options;
    this.ports.files.list(directory, (listed) => {
      if (!listed.ok) return this.refuse(failure("log-unreadable", listed.message));
      const drafts = listed.value.filter((file) => file.name.endsWith(UNFINISHED_SUFFIX));
      for (const file of listed.value) {
        const sequence = segmentSequence(file.name);
        if (sequence === null) continue;
        this.sequences.push(sequence);
        if (file.sizeBytes === this.options.segmentBytes) continue;
        const size = `has ${String(file.sizeBytes)} bytes instead of ${String(this.options.segmentBytes)}`;
        return this.refuse(damage(`${directory}/${file.name}`, 0, size));
      }
      this.sequences.sort((a, b) => a - b);
      this.removeDrafts(drafts.map((file) => `${directory}/${file.name}`));
    });
  }

  /** A crash while a segment was made leaves a draft that nothing refers to. */
  private removeDrafts(paths: string[]): void {
    const path = paths.pop();
    if (path === undefined) return this.checkSequences();
    this.ports.files.remove(path, (removed) => {
      if (!removed.ok) return this.refuse(failure("log-unreadable", removed.message));
      this.removeDrafts(paths);
    });
  }

  private checkSequences(): void {
    const first = this.sequences[0];
    if (first === undefined) return this.createFirst();
    for (const [at, sequence] of this.sequences.entries()) {
      if (sequence === first + at) continue;
      const path = `${this.options.directory}/${segmentName(first + at)}`;
      const message = `the log segment ${path} is missing: ${RESTORE}`;
      return this.refuse(failure("log-incomplete", message));
    }
    this.openNext(0);
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
        const refusal = this.checkHeader(segment);
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

  private checkHeader(segment: Segment): Refusal | null {
    const { scanner } = this.kernels;
    const place = { segmentId: 0, salt: 0, offset: 0, previousChecksum: 0, last: true };
    const found = scanner.scan(SECTOR_BYTES, place);
    const header = found.records > 0 ? decodeHeader(scanner.payload(0)) : null;
    if (header === null || scanner.record(0).kind !== logKind.header) {
      return damage(segment.path, 0, "the header of the segment is not whole");
    }
    if (header.version > LOG_FORMAT_VERSION) {
      const versions = `${String(header.version)}, this program knows ${String(LOG_FORMAT_VERSION)}`;
      const message = `${segment.path} has format version ${versions}: use a newer program`;
      return failure("log-newer", message);
    }
    if (!sameIdentity(header.identity, this.options.identity)) {
      const text = describeIdentity(header.identity);
      const own = describeIdentity(this.options.identity);
      const message = `${segment.path} belongs to ${text}, not to ${own}: check the log path`;
      return failure("log-foreign", message);
    }
    if (scanner.record(0).index !== segment.sequence) {
      return damage(segment.path, 0, "the file was renamed: its header names another segment");
    }
    segment.endOffset = found.nextOffset;
    segment.checksum = found.checksum;
    return null;
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

  /** Replays the rows of the last scan. The first record of a segment proves the end of the one before. */
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

  /** A segment without a whole record: the spare, or torn at its very first write, or a second spare. */
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
    for (const index of log.appender.groups.values()) {
      const group = `group ${String(index.group)}`;
      const hole = index.firstHole();
      if (hole !== null) {
        const message = `${group} lacks entry ${String(hole)} in ${this.options.directory}`;
        return this.refuse(failure("log-incomplete", `${message}: ${RESTORE}`));
      }
      if (index.hardState.commit > index.lastIndex) {
        const message = `${group} committed ${String(index.hardState.commit)}, but its log in`;
        const end = `${this.options.directory} ends at ${String(index.lastIndex)}`;
        return this.refuse(failure("log-incomplete", `${message} ${end}: ${RESTORE}`));
      }
    }
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

function damage(path: string, offset: number, what: string): Refusal {
  const message = `${path} is damaged at offset ${String(offset)}: ${what}; ${RESTORE}`;
  return failure("log-damaged", message);
}

function sameIdentity(a: LogIdentity, b: LogIdentity): boolean {
  return a.storageId === b.storageId && a.clusterId === b.clusterId && a.nodeId === b.nodeId;
}

function describeIdentity(identity: LogIdentity): string {
  const { storageId, clusterId, nodeId } = identity;
  return `node ${String(nodeId)} of cluster ${clusterId} (storage ${storageId})`;
}
