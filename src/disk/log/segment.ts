/**
 * One segment of the log as it is known in memory, and the block at the front of its file.
 *
 * Invariants: 1. A header is sealed without salt, so that the identity in it can be read before it
 * is believed.
 */
import { assert, present } from "../../base/assert.js";
import type {
  ClockPort,
  FatalPort,
  FilesPort,
  LoggerPort,
  MeterPort,
  OpenFile,
  TimerPort,
} from "../../ports.js";
import type { Kernels } from "../../wasm/kernels.js";
import { type LogIdentity, SECTOR_BYTES, encodeHeader, logKind } from "./records.js";

export interface Segment {
  readonly sequence: number;
  readonly path: string;
  readonly file: OpenFile;
  /** Where the next batch goes; what is below is durable or in flight. */
  endOffset: number;
  /** Checksum of the last record: what the next one chains to. */
  checksum: number;
  liveRecords: number;
  liveBytes: number;
  /** Number of the disk write after which the segment may go; Infinity = not known yet. */
  emptiedBy: number;
  /** Reads in flight; the file stays open for them. */
  readers: number;
  /** Nothing may be appended: recovery cut a torn tail off. */
  sealed: boolean;
}

/** The outer world of the log. */
export interface LogPorts {
  readonly files: FilesPort;
  readonly timers: TimerPort;
  readonly logger: LoggerPort;
  readonly fatal: FatalPort;
  readonly clock: ClockPort;
  readonly meter: Pick<MeterPort, "logSyncMs">;
}

export interface LogOptions {
  readonly directory: string;
  readonly identity: LogIdentity;
  /** A multiple of SECTOR_BYTES. */
  readonly segmentBytes: number;
  /** How long to wait before space is asked for again on a full disk. */
  readonly spaceRetryMs: number;
  /** False: there was a log before, so that finding none is a loss. */
  readonly mayCreate: boolean;
}

/**
 * The sealed first record of a segment, filled up to a sector; and the checksum that the next
 * chains to.
 */
export function headerBlock(
  kernels: Kernels,
  identity: LogIdentity,
  sequence: number,
): { bytes: Uint8Array; checksum: number } {
  const region = present(kernels.record.acquire(), "a region is free while a segment is made");
  const fitted = region.append(logKind.header, 0, 0, sequence, 0, encodeHeader(identity));
  assert(fitted, "a header fits a region");
  const sealed = region.seal({
    segmentId: 0,
    salt: 0,
    offset: 0,
    previousChecksum: 0,
    durableOffset: 0,
    sectorBytes: SECTOR_BYTES,
  });
  const block = { bytes: sealed.bytes.slice(), checksum: sealed.checksum };
  region.release();
  return block;
}

export function newSegment(
  sequence: number,
  path: string,
  file: OpenFile,
  endOffset: number,
  checksum: number,
): Segment {
  const live = { liveRecords: 0, liveBytes: 0, emptiedBy: 0, readers: 0 };
  return { sequence, path, file, endOffset, checksum, sealed: false, ...live };
}
