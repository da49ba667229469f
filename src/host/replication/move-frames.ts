/**
 * The frames of a planned move of one group's leadership: what the leader asks its heir, and the
 * ephemeral rows that go along.
 *
 * Pure codec. Layout: mark u8, kind u8, group u32, term u53, token u53, then the fields of the
 * kind. Invariants: 1. Strict: one encoding for one frame, anything else is null. 2. Sizes and
 * counts are checked before anything is allocated (P-128).
 */
import { ByteReader, ByteWriter } from "../../base/codec.js";
import type { EphemeralHead, EphemeralRow } from "../../machine/ephemeral.js";
import { ControlMark } from "./control-marks.js";

/** On the lane "bulk" too no other frame begins with it. */
const MARK = ControlMark.move;
const Kind = { ask: 1, answer: 2, rows: 3 } as const;
const FRAME_BASE_BYTES = 96;
const ROW_BASE_BYTES = 8;

/** Names one move: the leader's term, and its count of moves in this life. */
export interface MoveName {
  readonly group: number;
  readonly term: number;
  readonly token: number;
}

/** The leader asks whether the node would lead, and take along so many bytes of rows; 0 = none. */
export interface MoveAsk extends MoveName {
  readonly kind: "ask";
  readonly sizeBytes: number;
}

/** The heir's answer: whether it goes on, and how many frames of rows it has. */
export interface MoveAnswer extends MoveName {
  readonly kind: "answer";
  readonly accepted: boolean;
  readonly frames: number;
}

export interface MoveRows extends MoveName {
  readonly kind: "rows";
  /** Count of the frames before. */
  readonly sequence: number;
  readonly isLast: boolean;
  readonly head: EphemeralHead;
  readonly rows: readonly EphemeralRow[];
}

export type MoveFrame = MoveAsk | MoveAnswer | MoveRows;

export function isMoveFrame(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

export function encodeMoveFrame(frame: MoveFrame): Uint8Array {
  let sizeBytes = FRAME_BASE_BYTES;
  if (frame.kind === "rows") {
    for (const { key, value } of frame.rows)
      sizeBytes += ROW_BASE_BYTES + key.length + value.length;
  }
  const writer = new ByteWriter(sizeBytes).uint8(MARK).uint8(Kind[frame.kind]);
  writer.uint32(frame.group).uint53(frame.term).uint53(frame.token);
  switch (frame.kind) {
    case "ask":
      return writer.uint53(frame.sizeBytes).finish();
    case "answer":
      return writer.boolean(frame.accepted).uint32(frame.frames).finish();
    case "rows": {
      const { leaseMs, stamp, nextLife } = frame.head;
      writer.uint32(frame.sequence).boolean(frame.isLast).uint53(leaseMs);
      writer.uint32(stamp.n).uint53(stamp.l).uint32(stamp.c).uint53(nextLife);
      writer.uint32(frame.rows.length);
      for (const { key, value } of frame.rows) writer.bytes(key).bytes(value);
      return writer.finish();
    }
  }
}

/** Null when the bytes are no frame of this version. */
export function decodeMoveFrame(bytes: Uint8Array): MoveFrame | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== MARK) return null;
  const kind = reader.uint8();
  const name = { group: reader.uint32(), term: reader.uint53(), token: reader.uint53() };
  const frame = readBody(reader, kind, name);
  return frame !== null && reader.isComplete() ? frame : null;
}

function readBody(reader: ByteReader, kind: number, name: MoveName): MoveFrame | null {
  switch (kind) {
    case Kind.ask:
      return { kind: "ask", ...name, sizeBytes: reader.uint53() };
    case Kind.answer:
      return { kind: "answer", ...name, accepted: reader.boolean(), frames: reader.uint32() };
    case Kind.rows:
      return readRows(reader, name);
    default:
      return null;
  }
}

function readRows(reader: ByteReader, name: MoveName): MoveRows | null {
  const sequence = reader.uint32();
  const isLast = reader.boolean();
  const leaseMs = reader.uint53();
  const stamp = { n: reader.uint32(), l: reader.uint53(), c: reader.uint32() };
  const head = { leaseMs, stamp, nextLife: reader.uint53() };
  const count = reader.uint32();
  if (reader.failed || count > reader.remainingBytes / ROW_BASE_BYTES) return null;
  const rows: EphemeralRow[] = [];
  for (let at = 0; at < count; at++) rows.push({ key: reader.bytes(), value: reader.bytes() });
  return { kind: "rows", ...name, sequence, isLast, head, rows };
}
