/**
 * The row of one revision of one key; the latest one also lists which older revisions are kept.
 *
 * Pure codec. Layout: version u8, flags u8 (1 deleted, 2 holds nothing, 4 not kept once superseded,
 * 8 has a lease end, 16 has kept revisions), revision u53, stamp, [end u53], [number of runs, then
 * per run gap and size], value as the rest. Invariants: 1. Kept revisions are runs in ascending
 * order below `revision`; a run is (first, count). 2. A tombstone has no value; its end is the
 * lease time of the deletion. 3. A superseded row is stored again as it was: its own list of kept
 * revisions is of its time and not read.
 */
import { uint32At, uint53At } from "../../base/bytes.js";
import { ByteWriter } from "../../base/codec.js";
import type { Hlc } from "../../base/hlc.js";
import { writeStamp } from "../commands/group-record.js";
import { finishRow } from "../store/row-memory.js";

const VERSION = 1;
const FLAG_DELETED = 1;
const FLAG_NOTHING = 2;
const FLAG_PASSING = 4;
const FLAG_END = 8;
const FLAG_KEPT = 16;
/** Version, flags, revision and stamp. */
const FIXED_BYTES = 26;
/** First revision and count. */
const RUN_BYTES = 12;

/** Revisions first, first + 1, … first + count − 1. */
export interface RevisionRun {
  readonly first: number;
  readonly count: number;
}

export interface KvRow {
  readonly deleted: boolean;
  /** Null = holds nothing. */
  readonly value: Uint8Array | null;
  /** True when this revision does not become history (SET_NO_REVISION). */
  readonly passing: boolean;
  readonly revision: number;
  readonly stamp: Hlc;
  /** Lease end, or the lease time of the deletion; null = no lease. */
  readonly endMs: number | null;
  readonly kept: readonly RevisionRun[];
}

export const NO_RUNS: readonly RevisionRun[] = [];

/**
 * A row as it is stored. What few readers want is made when they ask: not to be spread, see
 * `rowWith`.
 */
class StoredKvRow implements KvRow {
  constructor(
    private readonly bytes: Uint8Array,
    readonly deleted: boolean,
    readonly passing: boolean,
    readonly revision: number,
    readonly endMs: number | null,
    readonly kept: readonly RevisionRun[],
    /** -1: the row holds nothing. */
    private readonly valueStart: number,
  ) {}

  get value(): Uint8Array | null {
    return this.valueStart < 0 ? null : this.bytes.subarray(this.valueStart);
  }

  get stamp(): Hlc {
    const { bytes } = this;
    return { n: uint32At(bytes, 10) | 0, l: uint53At(bytes, 14), c: uint32At(bytes, 22) };
  }
}

/** `row` with `change`, to be written. */
export function rowWith(row: KvRow, change: Partial<KvRow>): KvRow {
  const { deleted, value, passing, revision, stamp, endMs, kept } = row;
  return { deleted, value, passing, revision, stamp, endMs, kept, ...change };
}

const writer = new ByteWriter(4096);

export function encodeKvRow(row: KvRow): Uint8Array {
  let flags = row.deleted ? FLAG_DELETED : 0;
  if (row.value === null) flags |= FLAG_NOTHING;
  if (row.passing) flags |= FLAG_PASSING;
  if (row.endMs !== null) flags |= FLAG_END;
  if (row.kept.length > 0) flags |= FLAG_KEPT;
  writer.reset().uint8(VERSION).uint8(flags).uint53(row.revision);
  writeStamp(writer, row.stamp);
  if (row.endMs !== null) writer.uint53(row.endMs);
  if (row.kept.length > 0) {
    writer.uint8(row.kept.length & 0xff).uint8(row.kept.length >>> 8);
    for (const run of row.kept) writer.uint53(run.first).uint32(run.count);
  }
  if (row.value !== null) writer.raw(row.value);
  return finishRow(writer);
}

function uint16At(bytes: Uint8Array, at: number): number {
  return (bytes[at] as number) | ((bytes[at + 1] as number) << 8);
}

/** Behind the run at `at`; -1 when it is not between `above` and `revision`. */
function runEnd(bytes: Uint8Array, at: number, above: number, revision: number): number {
  const first = uint53At(bytes, at);
  const count = uint32At(bytes, at + 8);
  return first < above || count === 0 || first + count > revision ? -1 : first + count;
}

/** The run at `at`; null when it is not between `above` and `revision`. */
function readRun(
  bytes: Uint8Array,
  at: number,
  above: number,
  revision: number,
): RevisionRun | null {
  const end = runEnd(bytes, at, above, revision);
  const count = uint32At(bytes, at + 8);
  return end < 0 ? null : { first: end - count, count };
}

/** The runs at `at`, all below `revision`; null when they are damaged. */
function readRuns(bytes: Uint8Array, at: number, revision: number): RevisionRun[] | null {
  if (bytes.length < at + 2) return null;
  const size = uint16At(bytes, at);
  if (size === 0 || bytes.length < at + 2 + size * RUN_BYTES) return null;
  const oldest = readRun(bytes, at + 2, 0, revision);
  if (oldest === null) return null;
  // Nearly every key has one run, and a list that grows takes room for many.
  const runs = [oldest];
  let above = oldest.first + oldest.count;
  for (let number = 1; number < size; number++) {
    const run = readRun(bytes, at + 2 + number * RUN_BYTES, above, revision);
    if (run === null) return null;
    runs.push(run);
    above = run.first + run.count;
  }
  return runs;
}

/** Null when the bytes are not such a row of this version. The value is a view on `bytes`. */
export function decodeKvRow(bytes: Uint8Array): KvRow | null {
  if (bytes.length < FIXED_BYTES || bytes[0] !== VERSION) return null;
  const flags = bytes[1] as number;
  const revision = uint53At(bytes, 2);
  if (flags >= 32 || revision < 0 || uint53At(bytes, 14) < 0) return null;
  let at = FIXED_BYTES;
  let endMs: number | null = null;
  if ((flags & FLAG_END) !== 0) {
    if (bytes.length < at + 8) return null;
    endMs = uint53At(bytes, at);
    at += 8;
    if (endMs < 0) return null;
  }
  let kept: readonly RevisionRun[] = NO_RUNS;
  if ((flags & FLAG_KEPT) !== 0) {
    const runs = readRuns(bytes, at, revision);
    if (runs === null) return null;
    kept = runs;
    at += 2 + runs.length * RUN_BYTES;
  }
  const deleted = (flags & FLAG_DELETED) !== 0;
  const nothing = (flags & FLAG_NOTHING) !== 0;
  if (nothing ? bytes.length > at : deleted) return null;
  const passing = (flags & FLAG_PASSING) !== 0;
  return new StoredKvRow(bytes, deleted, passing, revision, endMs, kept, nothing ? -1 : at);
}

/** True when `decodeKvRow` would read the bytes from `start` to `end`; costs no memory. */
export function isKvRow(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < FIXED_BYTES || bytes[start] !== VERSION) return false;
  const flags = bytes[start + 1] as number;
  const revision = uint53At(bytes, start + 2);
  if (flags >= 32 || revision < 0 || uint53At(bytes, start + 14) < 0) return false;
  let at = start + FIXED_BYTES;
  if ((flags & FLAG_END) !== 0) {
    if (end < at + 8 || uint53At(bytes, at) < 0) return false;
    at += 8;
  }
  if ((flags & FLAG_KEPT) !== 0) {
    const size = end < at + 2 ? 0 : uint16At(bytes, at);
    at += 2;
    if (size === 0 || end < at + size * RUN_BYTES) return false;
    let above = 0;
    for (const stop = at + size * RUN_BYTES; at < stop; at += RUN_BYTES) {
      above = runEnd(bytes, at, above, revision);
      if (above < 0) return false;
    }
  }
  return (flags & FLAG_NOTHING) === 0 ? (flags & FLAG_DELETED) === 0 : end <= at;
}
