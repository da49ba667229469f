/**
 * Reading entries back from the segments, in spans that cover neighbours with one disk read.
 *
 * Owns the reads that wait for a disk write.
 *
 * Invariants: 1. Only durable entries are read. 2. Every frame is checked before it is believed; a
 * bad one ends the process, because what it said may have been acknowledged. 3. A segment's file
 * stays open while a read of it is in flight. 4. A read takes at most SPAN_BYTES beyond its largest
 * entry.
 */
import { present } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import { type Result, failure, ok } from "../../base/result.js";
import type { LogEntry } from "../../ports.js";
import type { Appender } from "./appender.js";
import { FRAME_SLACK_BYTES, entryAt } from "./framecheck.js";
import type { EntryPlace, GroupIndex } from "./groupindex.js";
import type { LogPorts } from "./segment.js";
import type { SegmentSet } from "./segments.js";
import { frame } from "../../wasm/kernels.js";

type ReadDone = (result: Result<readonly LogEntry[], "compacted">) => void;

/** Neighbours within this distance share a disk read. */
const SPAN_BYTES = 512 * 1024;

export interface WantedEntry {
  readonly index: number;
  readonly place: EntryPlace;
}

interface Request {
  readonly group: PartitionId;
  readonly last: number;
  readonly maxBytes: number;
  readonly done: ReadDone;
  next: number;
  bytes: number;
  readonly found: LogEntry[];
}

export class Reader {
  private waiting: Request[] = [];

  constructor(
    private readonly appender: Appender,
    private readonly segments: SegmentSet,
    private readonly ports: LogPorts,
  ) {}

  /** See LogPort.read. */
  read(group: PartitionId, first: number, last: number, maxBytes: number, done: ReadDone): void {
    const request = { group, last, maxBytes, done, next: first, bytes: 0, found: [] };
    this.ports.timers.soon(() => this.advance(request));
  }

  /** A disk write completed: reads that waited for it go on. */
  resume(): void {
    if (this.waiting.length === 0) return;
    const ready = this.waiting;
    this.waiting = [];
    for (const request of ready) this.advance(request);
  }

  private advance(request: Request): void {
    const index = this.appender.groups.get(request.group);
    if (index !== undefined && request.next <= index.floor.index && request.found.length === 0) {
      const message = `entries up to ${String(index.floor.index)} are compacted`;
      return request.done(failure("compacted", message));
    }
    const wanted = index === undefined ? [] : this.collect(index, request);
    const first = wanted[0];
    if (index === undefined || first === undefined) {
      // What is framed but not durable, or not even framed, is worth waiting for; nothing else is.
      const later = this.appender.waiting > 0 || (index?.place(request.next) ?? null) !== null;
      const wait = later && request.next <= request.last && request.found.length === 0;
      if (wait && !this.appender.hasStopped) this.waiting.push(request);
      else request.done(ok(request.found));
      return;
    }
    this.fetch(index, wanted, (entries) => {
      if (entries === null) return;
      for (const entry of entries) {
        // Voided while it was read: what followed it is void too.
        if ((index.place(entry.index)?.term ?? entry.term) !== entry.term) {
          return request.done(ok(request.found));
        }
        request.found.push(entry);
      }
      this.advance(request);
    });
  }

  /** The next durable entries that one disk read can cover, within the byte budget. */
  private collect(index: GroupIndex, request: Request): WantedEntry[] {
    const wanted: WantedEntry[] = [];
    let start = 0;
    while (request.next <= request.last) {
      const place = index.place(request.next);
      if (place === null || !this.appender.isDurable(place)) break;
      const before = wanted[wanted.length - 1];
      const some = before !== undefined || request.found.length > 0;
      if (some && request.bytes + place.payloadBytes > request.maxBytes) {
        // The answer is complete: nothing more is looked for.
        request.next = request.last + 1;
        break;
      }
      if (before === undefined) start = place.offset;
      else if (place.segment !== before.place.segment || place.offset < before.place.offset) break;
      else if (place.offset + place.payloadBytes - start > SPAN_BYTES) break;
      wanted.push({ index: request.next, place });
      request.bytes += place.payloadBytes;
      request.next++;
    }
    return wanted;
  }

  /**
   * Reads entries of one segment, ascending by offset. `done` gets null when the process is ending.
   */
  fetch(
    index: GroupIndex,
    wanted: readonly WantedEntry[],
    done: (entries: readonly LogEntry[] | null) => void,
  ): void {
    const first = present(wanted[0], "something is wanted").place;
    const last = present(wanted[wanted.length - 1], "something is wanted").place;
    const segment = this.segments.bySequence(first.segment);
    const end = last.offset + frame.headerBytes + last.payloadBytes + FRAME_SLACK_BYTES;
    const size = Math.min(end, this.segments.segmentBytes) - first.offset;
    const bytes = new Uint8Array(size);
    segment.readers++;
    this.ports.files.read(segment.file, first.offset, bytes, (result) => {
      segment.readers--;
      if (this.appender.hasStopped) return done(null);
      this.appender.tidy();
      if (!result.ok) {
        this.appender.stop();
        this.ports.fatal.fatal("log read failed", { code: result.code, why: result.message });
        return done(null);
      }
      const entries: LogEntry[] = [];
      for (const { index: at, place } of wanted) {
        const { salt } = this.segments;
        const where = { segmentId: segment.sequence, salt, offset: place.offset };
        const entry = entryAt(bytes, place.offset - first.offset, where, index.group);
        if (entry === null || entry.index !== at || entry.term !== place.term) {
          this.appender.stop();
          this.ports.fatal.fatal("log record damaged", {
            file: segment.path,
            offset: place.offset,
          });
          return done(null);
        }
        entries.push(entry);
      }
      done(entries);
    });
  }
}
