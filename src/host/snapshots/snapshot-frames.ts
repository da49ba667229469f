/**
 * The frames of a snapshot transfer between two nodes, on the lane "bulk".
 *
 * Pure codec. Layout: version u8, kind u8, group u32, session u53, then the fields of the kind. May
 * call: base, raft types, this folder. Invariants: 1. Strict: one encoding for one frame, anything
 * else is null. 2. Sizes and counts are checked before anything is allocated (P-128). 3. What a
 * chunk holds is not looked at here: it has a checksum of its own.
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { ENTRY_PAYLOAD_MAX_BYTES } from "../../base/limits.js";
import type { SnapshotMeta } from "../../raft/state/types.js";
import { decodeMembership, encodeMembership } from "../replication/config-entries.js";
import type { Lives } from "../replication/raft-frames.js";

const VERSION = 2;
const FRAME_BASE_BYTES = 64;

/** The largest chunk: one full one with the largest row behind it (bytes). */
export const CHUNK_MAX_BYTES = ENTRY_PAYLOAD_MAX_BYTES + (1 << 20);

const Kind = { begin: 1, chunk: 2, ack: 3, result: 4, query: 5, abort: 6 } as const;

const CODES = [
  /** State and log were replaced, durably. */
  "installed",
  /** The receiver had come so far by itself. */
  "not-needed",
  /** Too many transfers, or one that must end first: come again. */
  "busy",
  /** A newer term or a newer snapshot is known. */
  "outdated",
  /** What came is not a whole snapshot of what was announced. */
  "damaged",
  /** No such session: the receiver started anew, or gave it up. */
  "unknown",
] as const;

export type SnapshotCode = (typeof CODES)[number];

interface FrameHead {
  readonly group: number;
  /** Chosen by the sender; never used twice by it. */
  readonly session: number;
}

/**
 * The sender announces a snapshot, in the name of its leadership in `term`, from its life to one of
 * the receiver: the session that it names is between these two.
 */
export interface BeginFrame extends FrameHead, Lives {
  readonly kind: "begin";
  readonly term: number;
  readonly meta: SnapshotMeta;
}

export interface ChunkFrame extends FrameHead {
  readonly kind: "chunk";
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

export interface AckFrame extends FrameHead {
  readonly kind: "ack";
  /** The chunk that the receiver wants next. */
  readonly next: number;
  /** Something is missing: send from `next` on again. */
  readonly resend: boolean;
}

export interface ResultFrame extends FrameHead {
  readonly kind: "result";
  readonly code: SnapshotCode;
}

/** "query": the sender asks where the receiver is. "abort": it gives the session up. */
export interface PlainFrame extends FrameHead {
  readonly kind: "query" | "abort";
}

export type SnapshotFrame = BeginFrame | ChunkFrame | AckFrame | ResultFrame | PlainFrame;

function head(frame: SnapshotFrame, capacityBytes: number): ByteWriter {
  const writer = new ByteWriter(capacityBytes).uint8(VERSION).uint8(Kind[frame.kind]);
  return writer.uint32(frame.group).uint53(frame.session);
}

export function encodeSnapshotFrame(frame: SnapshotFrame): Uint8Array {
  const size = frame.kind === "chunk" ? frame.bytes.length : FRAME_BASE_BYTES;
  const writer = head(frame, FRAME_BASE_BYTES + size);
  switch (frame.kind) {
    case "begin":
      writer.uint53(frame.fromLife).uint53(frame.toLife);
      writer.uint53(frame.term).uint53(frame.meta.index).uint53(frame.meta.term);
      return writer.bytes(encodeMembership(frame.meta.membership)).finish();
    case "chunk":
      // Large, and as long as its writer: a copy more of each would keep the collector busy.
      return writer.uint32(frame.sequence).bytes(frame.bytes).handOver();
    case "ack":
      return writer.uint32(frame.next).boolean(frame.resend).finish();
    case "result":
      return writer.uint8(CODES.indexOf(frame.code)).finish();
    case "query":
    case "abort":
      return writer.finish();
  }
}

/** Null when the bytes are no frame of this version; what a chunk holds is a view of them. */
export function decodeSnapshotFrame(bytes: Uint8Array): SnapshotFrame | null {
  if (bytes.length > CHUNK_MAX_BYTES + FRAME_BASE_BYTES) return null;
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== VERSION) return null;
  const kind = reader.uint8();
  const at = { group: reader.uint32(), session: reader.uint53() };
  if (reader.failed) return null;
  const frame = readBody(reader, kind, at);
  return frame !== null && reader.isComplete() ? frame : null;
}

function readBody(reader: ByteReader, kind: number, at: FrameHead): SnapshotFrame | null {
  switch (kind) {
    case Kind.begin:
      return readBegin(reader, at);
    case Kind.chunk:
      return { kind: "chunk", ...at, sequence: reader.uint32(), bytes: reader.bytesView() };
    case Kind.ack:
      return { kind: "ack", ...at, next: reader.uint32(), resend: reader.boolean() };
    case Kind.result: {
      const code = CODES[reader.uint8()];
      return code === undefined ? null : { kind: "result", ...at, code };
    }
    case Kind.query:
      return { kind: "query", ...at };
    case Kind.abort:
      return { kind: "abort", ...at };
    default:
      return null;
  }
}

function readBegin(reader: ByteReader, at: FrameHead): BeginFrame | null {
  const fromLife = reader.uint53();
  const toLife = reader.uint53();
  const term = reader.uint53();
  const index = reader.uint53();
  const logTerm = reader.uint53();
  const membership = decodeMembership(reader.bytes());
  if (membership === null || index < 1 || logTerm < 1 || logTerm > term) return null;
  const meta = { index, term: logTerm, membership };
  return { kind: "begin", ...at, fromLife, toLife, term, meta };
}
