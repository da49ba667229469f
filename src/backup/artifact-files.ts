/**
 * Images and logs on the disk: written frame after frame, and read once, through a decoder.
 *
 * Invariants: 1. What is checked is what is used: bytes are hashed as they go to the decoder, and
 * what came of them counts only if size and SHA-256 are the expected ones (P-136). 2. One write or
 * read is under way at a time. 3. After a fault while writing nothing of the file is left, as far
 * as the system lets.
 */
import { failure } from "../base/result.js";
import type {
  ArchivePort,
  ArchiveReader,
  ArchiveResult,
  ArchiveSum,
  ArchiveWriter,
  LogEntry,
} from "../ports.js";
import {
  type BackupDone,
  type BackupFault,
  type BackupResult,
  artifactFault,
  cancelled,
  systemFault,
} from "./faults.js";
import { joinFrames } from "./frames.js";
import { ImageEncoder, type ImageHead } from "./image-file.js";
import { LogEncoder, type LogHead, type LogTrailer } from "./log-file.js";

/** What is read at a time: decoding it takes the loop some two milliseconds. */
export const ARTIFACT_SLICE_BYTES = 512 * 1024;

/** A file that is being written. */
class ArtifactFile {
  constructor(private readonly writer: ArchiveWriter) {}

  protected append(bytes: Uint8Array, done: BackupDone<null>): void {
    this.writer.write(bytes, (result) => {
      if (result.ok) return done(result);
      this.writer.abandon(() => done(systemFault(result)));
    });
  }

  protected end(trailer: Uint8Array, done: BackupDone<ArchiveSum>): void {
    this.append(trailer, (appended) => {
      if (!appended.ok) return done(appended);
      this.writer.finish((sum) => done(sum.ok ? sum : systemFault(sum)));
    });
  }

  /** Removes the file. Not after `finish`, nor after a fault. */
  abandon(done: () => void): void {
    this.writer.abandon(done);
  }
}

class ImageFile extends ArtifactFile {
  constructor(
    writer: ArchiveWriter,
    private readonly encoder: ImageEncoder,
  ) {
    super(writer);
  }

  /** Chunks as a snapshot source gives them, one at least. After a fault the file is gone. */
  chunks(chunks: readonly Uint8Array[], done: BackupDone<null>): void {
    this.append(joinFrames(chunks.map((bytes) => this.encoder.chunk(bytes))), done);
  }

  /** Ends the file and makes it durable; its name is durable with its directory only. */
  finish(done: BackupDone<ArchiveSum>): void {
    this.end(this.encoder.trailer(), done);
  }
}

class LogFile extends ArtifactFile {
  constructor(
    writer: ArchiveWriter,
    private readonly encoder: LogEncoder,
  ) {
    super(writer);
  }

  /** The next entries, one at least. After a fault the file is gone. */
  entries(entries: readonly LogEntry[], done: BackupDone<null>): void {
    this.append(this.encoder.entries(entries), done);
  }

  /** As of an image. */
  finish(trailer: Omit<LogTrailer, "count">, done: BackupDone<ArchiveSum>): void {
    this.end(this.encoder.trailer(trailer), done);
  }
}

export type { ImageFile, LogFile };

function begin<F>(
  archive: ArchivePort,
  path: string,
  head: Uint8Array,
  make: (writer: ArchiveWriter) => F,
  done: BackupDone<F>,
): void {
  archive.create(path, (created) => {
    if (!created.ok) return done(systemFault(created));
    const writer = created.value;
    writer.write(head, (written) => {
      if (written.ok) return done({ ok: true, value: make(writer) });
      writer.abandon(() => done(systemFault(written)));
    });
  });
}

/** Begins a new image file. */
export function createImage(
  archive: ArchivePort,
  path: string,
  head: ImageHead,
  done: BackupDone<ImageFile>,
): void {
  const encoder = new ImageEncoder();
  begin(archive, path, encoder.head(head), (writer) => new ImageFile(writer, encoder), done);
}

/** Begins a new log file. */
export function createLog(
  archive: ArchivePort,
  path: string,
  head: LogHead,
  done: BackupDone<LogFile>,
): void {
  const encoder = new LogEncoder();
  begin(archive, path, encoder.head(head), (writer) => new LogFile(writer, encoder), done);
}

/** An ImageDecoder or a LogDecoder. */
export interface ArtifactDecoder<S> {
  push(slice: Uint8Array): BackupFault | null;
  end(): BackupResult<S>;
}

export interface ReadOptions {
  /** Asked between slices: true ends the reading with Cancelled. */
  readonly isCancelled?: () => boolean;
  /** Called after each slice, when the decoder has shown what was in it: goes on with `next`. */
  readonly between?: (next: () => void) => void;
}

/** Reads a file through a decoder. What the decoder has shown is void unless the result is good. */
export function readArtifact<S>(
  archive: ArchivePort,
  path: string,
  expected: ArchiveSum,
  decoder: ArtifactDecoder<S>,
  options: ReadOptions,
  done: BackupDone<S>,
): void {
  archive.open(path, (opened) => {
    if (!opened.ok) return done(artifactFault(opened));
    const reader = opened.value;
    const end: BackupDone<S> = (result) => reader.close(() => done(result));
    if (reader.sizeBytes !== expected.sizeBytes) return end(otherSize(path, expected, reader));
    readSlices(reader, expected, decoder, options, end);
  });
}

function otherSize(path: string, expected: ArchiveSum, reader: ArchiveReader): BackupFault {
  const sizes = `has ${reader.sizeBytes} bytes and should have ${expected.sizeBytes}`;
  return failure("CorruptArtifact", `"${path}" ${sizes}`);
}

function readSlices<S>(
  reader: ArchiveReader,
  expected: ArchiveSum,
  decoder: ArtifactDecoder<S>,
  { isCancelled = () => false, between = (next) => next() }: ReadOptions,
  done: BackupDone<S>,
): void {
  const slices = new SlicesAhead(reader);
  const end: BackupDone<S> = (result) => slices.end(() => done(result));
  const take = (slice: ArchiveResult<Uint8Array>): void => {
    if (isCancelled()) return end(cancelled());
    if (!slice.ok) return end(artifactFault(slice));
    if (slice.value.length === 0) return end(judged(reader, expected, decoder));
    slices.readAhead();
    const fault = decoder.push(slice.value);
    if (fault !== null) return end(fault);
    between(() => slices.next(take));
  };
  slices.readAhead();
  slices.next(take);
}

/** The slices of a file, of which one is read before it is asked for. */
class SlicesAhead {
  private slice: ArchiveResult<Uint8Array> | null = null;
  private isReading = false;
  private taker: ((slice: ArchiveResult<Uint8Array>) => void) | null = null;
  private ended: (() => void) | null = null;

  constructor(private readonly reader: ArchiveReader) {}

  readAhead(): void {
    this.isReading = true;
    this.reader.read(ARTIFACT_SLICE_BYTES, (slice) => {
      this.isReading = false;
      this.slice = slice;
      if (this.ended !== null) this.ended();
      else this.give();
    });
  }

  next(take: (slice: ArchiveResult<Uint8Array>) => void): void {
    this.taker = take;
    this.give();
  }

  private give(): void {
    const { slice, taker } = this;
    if (slice === null || taker === null) return;
    this.slice = null;
    this.taker = null;
    taker(slice);
  }

  /** A reader is closed only when nothing is being read of it. */
  end(done: () => void): void {
    this.ended = done;
    if (!this.isReading) done();
  }
}

/** What came of all bytes, if they are the ones that were expected. */
function judged<S>(
  reader: ArchiveReader,
  expected: ArchiveSum,
  decoder: ArtifactDecoder<S>,
): BackupResult<S> {
  const result = decoder.end();
  if (!result.ok) return result;
  const { sizeBytes, sha256 } = reader.sum();
  if (sizeBytes === expected.sizeBytes && sha256 === expected.sha256) return result;
  return failure("CorruptArtifact", `"${reader.path}": its SHA-256 is not the one in the manifest`);
}
