/**
 * A stretch of a partition's log in a backup, from right behind an image or another stretch up to
 * the mark that ends it.
 *
 * Pure codec. A head with what was before, the entries, a trailer with where they lead. Invariants:
 * 1. Entries follow each other without a gap, terms do not fall. 2. The last entry is the mark of
 * this backup, alone, and has the largest stamp. 3. Nothing lies behind the trailer. 4. Entries of
 * another program are told apart from damage.
 */
import { ByteReader, ByteWriter } from "../base/codec.js";
import { type Hlc, compareHlc } from "../base/hlc.js";
import { failure, ok } from "../base/result.js";
import { type DecodedEntry, decodeEntry } from "../machine/commands/codec.js";
import { readStamp, writeStamp } from "../machine/commands/group-record.js";
import type { LogEntry } from "../ports.js";
import { type BackupFault, type BackupResult, damage } from "./faults.js";
import { FrameDecoder, FrameEncoder, FrameKind, frameSeed, joinFrames } from "./frames.js";
import { ARTIFACT_VERSION, type ArtifactOrigin, readOrigin, writeOrigin } from "./origin.js";

const FILE_KIND = "svc log";
const CHAIN = /^[0-9a-f]{16}$/;
/** Kind of a normal entry; all others are of the consensus core. */
const NORMAL = 0;

/** A place in the history of a group. */
export interface LogPlace {
  readonly index: number;
  readonly term: number;
  /** The largest stamp up to here. */
  readonly stamp: Hlc;
  /** Digest over all entries up to here: 16 hexadecimal digits. */
  readonly chain: string;
}

export interface LogHead {
  readonly origin: ArtifactOrigin;
  /** What the first entry follows: the image, or the end of the parent. */
  readonly before: LogPlace;
}

/** Where the entries lead, and what a restore must not fall below. */
export interface LogTrailer {
  /** The mark. */
  readonly end: LogPlace;
  readonly count: number;
  /** Largest token granted up to the end, or the floor if that is larger; -1 for none. */
  readonly highestToken: bigint;
  /** Largest incarnation that a sequence has at the end; 0 for none. */
  readonly highestIncarnation: number;
  readonly ephemeralFloor: bigint;
  /** Of the leader of ephemeral locks at the end. */
  readonly ephemeralTerm: number;
}

export interface LogSummary {
  readonly head: LogHead;
  readonly trailer: LogTrailer;
}

function writePlace(writer: ByteWriter, { index, term, stamp, chain }: LogPlace): void {
  writer.uint53(index).uint53(term);
  writeStamp(writer, stamp);
  writer.text(chain);
}

function readPlace(reader: ByteReader): LogPlace {
  const [index, term, stamp] = [reader.uint53(), reader.uint53(), readStamp(reader)];
  const chain = reader.text();
  if (!CHAIN.test(chain)) reader.fail();
  return { index, term, stamp, chain };
}

/** Makes the pieces of a log file, in order. */
export class LogEncoder {
  private readonly frames = new FrameEncoder(frameSeed(FILE_KIND));
  private count = 0;

  head({ origin, before }: LogHead): Uint8Array {
    const writer = new ByteWriter(256).text(FILE_KIND).uint8(ARTIFACT_VERSION);
    writeOrigin(writer, origin);
    writePlace(writer, before);
    return this.frames.frame(FrameKind.head, writer.finish());
  }

  /** At least one entry. */
  entries(entries: readonly LogEntry[]): Uint8Array {
    const frames = entries.map(({ index, term, kind, payload }) => {
      this.count++;
      const writer = new ByteWriter(payload.length + 17).uint53(index).uint53(term).uint8(kind);
      return this.frames.frame(FrameKind.content, writer.raw(payload).handOver());
    });
    return joinFrames(frames);
  }

  /** The number of the entries is known here. */
  trailer(trailer: Omit<LogTrailer, "count">): Uint8Array {
    const writer = new ByteWriter(128);
    writePlace(writer, trailer.end);
    writer.uint53(this.count).int64(trailer.highestToken).uint53(trailer.highestIncarnation);
    writer.int64(trailer.ephemeralFloor).uint53(trailer.ephemeralTerm);
    return this.frames.frame(FrameKind.trailer, writer.finish());
  }
}

/** Sees each entry; `decoded`: of a normal one that is not empty. */
export type EntryVisitor = (entry: LogEntry, decoded: DecodedEntry | null) => void;

/** Reads a log from its bytes, slice after slice. */
export class LogDecoder {
  private readonly frames: FrameDecoder;
  private head: LogHead | null = null;
  private trailer: LogTrailer | null = null;
  private index = 0;
  private term = 0;
  private stamp: Hlc | null = null;
  private count = 0;
  /** The last entry is a mark of this backup, with this stamp. */
  private marked: Hlc | null = null;

  constructor(
    private readonly path: string,
    private readonly visit: EntryVisitor = () => undefined,
  ) {
    this.frames = new FrameDecoder(path, frameSeed(FILE_KIND), (kind, body, offset) =>
      this.frame(kind, body, offset),
    );
  }

  push(slice: Uint8Array): BackupFault | null {
    return this.frames.push(slice);
  }

  end(): BackupResult<LogSummary> {
    const fault = this.frames.end();
    if (fault !== null) return fault;
    const { head, trailer } = this;
    if (head !== null && trailer !== null) return ok({ head, trailer });
    return failure("CorruptArtifact", `"${this.path}" ends too early`);
  }

  private frame(kind: number, body: Uint8Array, offset: number): BackupFault | null {
    if (this.trailer !== null)
      return damage(this.path, offset, "there is something behind the end");
    if (this.head === null) return this.readHead(kind, body, offset);
    if (kind === FrameKind.content) return this.readEntry(this.head, body, offset);
    if (kind === FrameKind.trailer) return this.readTrailer(body, offset);
    return damage(this.path, offset, "a record that has no place here");
  }

  private readHead(kind: number, body: Uint8Array, offset: number): BackupFault | null {
    const reader = new ByteReader(body);
    if (kind !== FrameKind.head || reader.text() !== FILE_KIND) {
      return damage(this.path, offset, "this is no log");
    }
    const version = reader.uint8();
    if (version !== ARTIFACT_VERSION) {
      return failure("UnsupportedFormat", `"${this.path}" has version ${version}`);
    }
    const head = { origin: readOrigin(reader), before: readPlace(reader) };
    if (!reader.isComplete()) return damage(this.path, offset, "the head is malformed");
    this.head = head;
    this.index = head.before.index;
    this.term = head.before.term;
    this.stamp = head.before.stamp;
    return null;
  }

  private readEntry({ origin }: LogHead, body: Uint8Array, offset: number): BackupFault | null {
    const reader = new ByteReader(body);
    const [index, term, kind] = [reader.uint53(), reader.uint53(), reader.uint8()];
    const payload = reader.raw(reader.remainingBytes);
    if (!reader.isComplete()) return damage(this.path, offset, "an entry is malformed");
    if (index !== this.index + 1 || term < this.term) {
      const here = `entry ${index} of term ${term}`;
      return damage(this.path, offset, `${here} follows ${this.index} of term ${this.term}`);
    }
    this.index = index;
    this.term = term;
    this.count++;
    this.marked = null;
    const decoded = kind === NORMAL && payload.length > 0 ? decodeEntry(payload) : null;
    if (decoded?.ok === false) {
      const what = `entry ${index}: ${decoded.message}`;
      if (decoded.code === "malformed") return damage(this.path, offset, what);
      return failure("UnsupportedFormat", `"${this.path}" at byte ${offset}: ${what}`);
    }
    if (decoded !== null) this.note(decoded.value, origin.backupId);
    this.visit({ index, term, kind, payload }, decoded?.value ?? null);
    return null;
  }

  private note({ stamp: { stamp }, commands }: DecodedEntry, backupId: string): void {
    if (this.stamp === null || compareHlc(stamp, this.stamp) > 0) this.stamp = stamp;
    const [only, more] = commands;
    const isMark = only?.kind === "mark" && only.backupId === backupId && more === undefined;
    this.marked = isMark ? stamp : null;
  }

  private readTrailer(body: Uint8Array, offset: number): BackupFault | null {
    const reader = new ByteReader(body);
    const trailer = {
      end: readPlace(reader),
      count: reader.uint53(),
      highestToken: reader.int64(),
      highestIncarnation: reader.uint53(),
      ephemeralFloor: reader.int64(),
      ephemeralTerm: reader.uint53(),
    };
    if (!reader.isComplete()) return damage(this.path, offset, "the trailer is malformed");
    const { end } = trailer;
    const fits =
      end.index === this.index &&
      end.term === this.term &&
      trailer.count === this.count &&
      this.stamp !== null &&
      compareHlc(end.stamp, this.stamp) === 0;
    if (!fits) return damage(this.path, offset, "the trailer does not fit the entries");
    if (this.marked === null || compareHlc(this.marked, end.stamp) !== 0) {
      return damage(this.path, offset, "the log does not end with the mark of its backup");
    }
    this.trailer = trailer;
    return null;
  }
}
