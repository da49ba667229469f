/**
 * The row of one revision of one key; the latest one also lists which older revisions are kept.
 *
 * Pure codec. Layout: version u8, flags u8 (1 deleted, 2 holds nothing, 4 not kept once superseded, 8 has a lease end,
 * 16 has kept revisions), revision u53, stamp, [end u53], [number of runs, then per run gap and size], value as the rest.
 * Invariants: 1. Kept revisions are runs in ascending order below `revision`; a run is (first, count). 2. A tombstone
 * has no value; its end is the lease time of the deletion. 3. A superseded row is stored again as it was: its own list of
 * kept revisions is of its time and not read.
 */
import { ByteReader, ByteWriter } from "../base/codec.js";
import type { Hlc } from "../base/hlc.js";
import { readStamp, writeStamp } from "./group-record.js";

const VERSION = 1;
const FLAG_DELETED = 1;
const FLAG_NOTHING = 2;
const FLAG_PASSING = 4;
const FLAG_END = 8;
const FLAG_KEPT = 16;

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
    writer.length(row.kept.length);
    let above = 0;
    for (const run of row.kept) {
      writer.uint53(run.first - above).length(run.count);
      above = run.first + run.count;
    }
  }
  if (row.value !== null) writer.raw(row.value);
  return writer.finish();
}

function readRuns(reader: ByteReader, revision: number): readonly RevisionRun[] | null {
  const size = reader.length();
  if (size === 0 || size * 9 > reader.remainingBytes) return null;
  const runs: RevisionRun[] = [];
  let above = 0;
  for (let at = 0; at < size; at++) {
    const first = above + reader.uint53();
    const count = reader.length();
    if (reader.failed || count === 0 || first + count > revision) return null;
    runs.push({ first, count });
    above = first + count;
  }
  return runs;
}

/** Null when the bytes are not such a row of this version. The value is a view on `bytes`. */
export function decodeKvRow(bytes: Uint8Array): KvRow | null {
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  const flags = reader.uint8();
  const revision = reader.uint53();
  const stamp = readStamp(reader);
  const endMs = (flags & FLAG_END) === 0 ? null : reader.uint53();
  const kept = (flags & FLAG_KEPT) === 0 ? NO_RUNS : readRuns(reader, revision);
  if (version !== VERSION || flags >= 32 || reader.failed || kept === null) return null;
  const deleted = (flags & FLAG_DELETED) !== 0;
  const nothing = (flags & FLAG_NOTHING) !== 0;
  if (nothing ? reader.remainingBytes > 0 : deleted) return null;
  return {
    deleted,
    value: nothing ? null : bytes.subarray(reader.position),
    passing: (flags & FLAG_PASSING) !== 0,
    revision,
    stamp,
    endMs,
    kept,
  };
}
