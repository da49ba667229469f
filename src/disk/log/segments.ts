/**
 * The segments of the log: which exist, which is written, what each still holds, the spare one
 * ahead, and the removal of the oldest.
 *
 * Owns the open files of the segments.
 *
 * Invariants: 1. Sequences have no gap; only the oldest is removed, and the directory is synced
 * before the next removal, so that power loss cannot leave a gap. 2. A segment is used only after
 * its file and its directory entry are durable. 3. A segment is removed only when no record in it
 * is needed and whatever made the last one needless is durable. 4. Space is taken here and nowhere
 * else. 5. A full disk and a lack of descriptors pass: what they keep from being done is tried
 * again; anything else ends the process.
 */
import { assert, present } from "../../base/assert.js";
import type { Result } from "../../base/result.js";
import type { FileErrorCode } from "../../ports.js";
import type { Kernels } from "../../wasm/kernels.js";
import type { GroupIndex, SegmentLedger, SegmentShare } from "./groupindex.js";
import { SECTOR_BYTES, UNFINISHED_SUFFIX, saltOf, segmentName } from "./records.js";
import {
  type LogOptions,
  type LogPorts,
  type Segment,
  headerBlock,
  newSegment,
} from "./segment.js";

/** True for what other processes, or the end of a few connections, set right. */
function passes(code: FileErrorCode): boolean {
  return code === "no-space" || code === "no-descriptors";
}

export class SegmentSet implements SegmentLedger {
  readonly salt: number;
  /** Ascending by sequence; the last is the one that is written. */
  private readonly used: Segment[] = [];
  private spare: Segment | null = null;
  private making = false;
  private removing = false;
  private closed = false;
  private whenClosed: (() => void) | null = null;
  private full = false;
  private last: Segment | null = null;

  constructor(
    private readonly options: LogOptions,
    private readonly ports: LogPorts,
    private readonly kernels: Kernels,
    /** Called when a spare segment became ready or an old one went. */
    private readonly changed: () => void,
  ) {
    assert(options.segmentBytes % SECTOR_BYTES === 0, "a segment is made of whole sectors");
    this.salt = saltOf(options.identity);
  }

  get active(): Segment {
    return present(this.used[this.used.length - 1], "the log has a segment");
  }

  /** Ascending by sequence, the written one last. */
  get all(): readonly Segment[] {
    return this.used;
  }

  get hasSpare(): boolean {
    return this.spare !== null;
  }

  /** True while the next segment cannot be had: no space, or no descriptor. */
  get isFull(): boolean {
    return this.full;
  }

  get segmentBytes(): number {
    return this.options.segmentBytes;
  }

  sizeBytes(): number {
    return (this.used.length + (this.spare === null ? 0 : 1)) * this.options.segmentBytes;
  }

  liveBytes(): number {
    return this.used.reduce((sum, segment) => sum + segment.liveBytes, 0);
  }

  bySequence(sequence: number): Segment {
    if (this.last?.sequence === sequence) return this.last;
    const oldest = present(this.used[0], "the log has a segment").sequence;
    this.last = present(this.used[sequence - oldest], "a live record lies in a kept segment");
    return this.last;
  }

  /** For recovery: takes a segment that was found. */
  adopt(segment: Segment, asSpare: boolean): void {
    const before = this.used[this.used.length - 1];
    assert(before === undefined || segment.sequence === before.sequence + 1, "no gap");
    if (asSpare) this.spare = segment;
    else this.used.push(segment);
  }

  add(group: GroupIndex, sequence: number, bytes: number): void {
    const segment = this.bySequence(sequence);
    segment.liveRecords++;
    segment.liveBytes += bytes;
    let share: SegmentShare | undefined = group.shares.get(sequence);
    if (share === undefined) {
      share = { records: 0, bytes: 0 };
      group.shares.set(sequence, share);
    }
    share.records++;
    share.bytes += bytes;
  }

  remove(group: GroupIndex, sequence: number, bytes: number): void {
    const segment = this.bySequence(sequence);
    const share = present(group.shares.get(sequence), "a live record has a share");
    segment.liveRecords--;
    segment.liveBytes -= bytes;
    share.records--;
    share.bytes -= bytes;
    assert(segment.liveRecords >= 0 && share.records >= 0, "a record is released once");
    if (share.records === 0) group.shares.delete(sequence);
    if (segment.liveRecords === 0) segment.emptiedBy = Number.POSITIVE_INFINITY;
  }

  /** Disk write `number` carries everything that emptied segments so far. */
  stampEmptied(number: number): void {
    for (const segment of this.used) {
      if (segment.liveRecords > 0) break;
      if (segment.emptiedBy === Number.POSITIVE_INFINITY) segment.emptiedBy = number;
    }
  }

  /** Begins to write the spare segment. Only when `hasSpare`. */
  rotate(): void {
    const next = present(this.spare, "there is a spare segment");
    assert(next.sequence === this.active.sequence + 1, "segments have no gap");
    this.used.push(next);
    this.spare = null;
    this.prepareSpare();
  }

  /** Makes the next segment ahead of need, unless there is one or one is being made. */
  prepareSpare(): void {
    if (this.spare !== null || this.making || this.closed) return;
    this.making = true;
    this.create(this.active.sequence + 1, (result) => {
      this.making = false;
      if (this.closed) {
        if (result.ok) this.spare = result.value;
        return this.closeWhenQuiet();
      }
      if (result.ok) {
        if (this.full) this.ports.logger.log("info", "the log can grow again");
        this.full = false;
        this.spare = result.value;
        this.changed();
        return;
      }
      if (!passes(result.code)) return this.die("log segment creation failed", result);
      if (!this.full) {
        const event = result.code === "no-space" ? "no space for the log" : "the log cannot grow";
        this.ports.logger.log("error", event, { why: result.message });
      }
      this.full = true;
      this.ports.timers.after(this.options.spaceRetryMs, () => this.prepareSpare());
    });
  }

  /**
   * Makes segment `sequence`: zeros and header, synced, then its name, then the directory (P-112).
   */
  create(sequence: number, done: (result: Result<Segment, FileErrorCode>) => void): void {
    const { files } = this.ports;
    const { directory, segmentBytes, identity } = this.options;
    const path = `${directory}/${segmentName(sequence)}`;
    const draft = path + UNFINISHED_SUFFIX;
    const head = headerBlock(this.kernels, identity, sequence);
    files.allocate(draft, segmentBytes, head.bytes, (allocated) => {
      if (!allocated.ok) return done(allocated);
      files.rename(draft, path, (renamed) => {
        if (!renamed.ok) return done(renamed);
        files.syncDirectory(directory, (synced) => {
          if (!synced.ok) return done(synced);
          files.open(path, "durable", (opened) => {
            if (!opened.ok) return done(opened);
            const endOffset = head.bytes.length;
            const value = newSegment(sequence, path, opened.value, endOffset, head.checksum);
            done({ ok: true, value });
          });
        });
      });
    });
  }

  /**
   * Removes oldest segments that nothing needs, one after the other. `completed`: the last durable
   * write.
   */
  removeEmptied(completed: number): void {
    const oldest = this.used[0];
    if (this.removing || this.closed || oldest === undefined || this.used.length < 2) return;
    if (oldest.liveRecords > 0 || oldest.emptiedBy > completed || oldest.readers > 0) return;
    this.removing = true;
    this.used.shift();
    this.last = null;
    const { files } = this.ports;
    files.close(oldest.file, () => {
      files.remove(oldest.path, (removed) => {
        if (!removed.ok) return this.die("log segment removal failed", removed);
        this.settleRemoval();
      });
    });
  }

  /** Makes the removal durable, before which there is no further one. */
  private settleRemoval(): void {
    this.ports.files.syncDirectory(this.options.directory, (synced) => {
      if (!this.closed && !synced.ok && passes(synced.code)) {
        this.ports.timers.after(this.options.spaceRetryMs, () => this.settleRemoval());
        return;
      }
      this.removing = false;
      if (this.closed) return this.closeWhenQuiet();
      if (!synced.ok) return this.die("log directory sync failed", synced);
      this.changed();
    });
  }

  /** Closes all files, once nothing is being made or removed. */
  close(done: () => void): void {
    assert(!this.closed, "the segments are closed once");
    this.closed = true;
    this.whenClosed = done;
    this.closeWhenQuiet();
  }

  private closeWhenQuiet(): void {
    const done = this.whenClosed;
    if (done === null || this.making || this.removing) return;
    this.whenClosed = null;
    const open = this.spare === null ? [...this.used] : [...this.used, this.spare];
    const next = (): void => {
      const segment = open.pop();
      if (segment === undefined) return done();
      this.ports.files.close(segment.file, next);
    };
    next();
  }

  private die(reason: string, cause: { code: string; message: string }): void {
    this.closed = true;
    this.ports.fatal.fatal(reason, { code: cause.code, why: cause.message });
  }
}
