/**
 * The trace that a request belongs to (W3C Trace Context): as callers name it, as it goes from node
 * to node, and as a node records its part of it.
 *
 * Pure. Invariants: 1. Text that is no traceparent is none: it is not passed on, and nothing is
 * recorded. 2. Nobody below the roof makes an id or reads a clock for it. 3. A request without a
 * trace carries nothing.
 */
import { ByteReader, type ByteWriter } from "../../base/codec.js";
import type { ProposalMarks } from "../../host/requests/results.js";

/** Of a trace, what the next one in it needs to know. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** Who asks: 16 digits, not all 0. */
  readonly spanId: string;
  /** Bit 0: the caller records it. */
  readonly flags: number;
}

/** Another node is asked. */
export interface TraceHop {
  /** What it is told. */
  readonly parent: TraceParent;
  /** The call ended, as `status` says. */
  ended(status: string): void;
}

/** What a node records of one request. */
export interface RequestSpan {
  hop(to: number): TraceHop;
  /** To be filled in on the way of a command through the log; null: no more of them. */
  proposal(): ProposalMarks | null;
  /** The answer is given. `type`: of a data operation; `refusal`: why nothing was done. */
  ended(type: number | null, refusal: string | null): void;
}

export interface TracerPort {
  /** Null: it is not recorded. `hops`: how often it was forwarded before. */
  begin(parent: TraceParent, name: string, requestId: string, hops: number): RequestSpan | null;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const NO_VERSION = "ff";
const FIRST_VERSION = "00";
const NOTHING = /^0+$/;
/** Of a header that somebody wants to have read: later versions may add to it. */
const TEXT_MAX = 256;

/** Null when `text` is no header of a version that can be read (W3C Trace Context, 3.2, 4.3). */
function readTraceparent(text: string): TraceParent | null {
  if (text.length > TEXT_MAX) return null;
  const found = TRACEPARENT.exec(text);
  if (found === null) return null;
  const [, version = "", traceId = "", spanId = "", flags = "", more] = found;
  if (version === NO_VERSION || NOTHING.test(traceId) || NOTHING.test(spanId)) return null;
  if (version === FIRST_VERSION && more !== undefined) return null;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** The trace of one request on its way through this node. */
export class Trace {
  /** Null: this node records nothing of it. */
  span: RequestSpan | null = null;

  constructor(readonly parent: TraceParent) {}

  /** `to` is asked; where nothing is recorded here, it is told what was told here. */
  hop(to: number): TraceHop {
    return this.span?.hop(to) ?? { parent: this.parent, ended: () => undefined };
  }
}

/** For a header that may be missing; undefined: there is no trace. */
export function traceOf(header: string | null | undefined): Trace | undefined {
  if (header === undefined || header === null) return undefined;
  const parent = readTraceparent(header);
  return parent === null ? undefined : new Trace(parent);
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** As it travels between nodes. */
export const TRACE_BYTES = TRACE_ID_BYTES + SPAN_ID_BYTES + 1;

function putHex(writer: ByteWriter, digits: string): void {
  for (let at = 0; at < digits.length; at += 2) {
    writer.uint8(Number.parseInt(digits.slice(at, at + 2), 16));
  }
}

function takeHex(reader: ByteReader, count: number): string {
  let digits = "";
  for (let at = 0; at < count; at++) digits += reader.uint8().toString(16).padStart(2, "0");
  return digits;
}

export function writeTrace(writer: ByteWriter, { traceId, spanId, flags }: TraceParent): void {
  putHex(writer, traceId);
  putHex(writer, spanId);
  writer.uint8(flags);
}

/** What `writeTrace` wrote; the reader knows whether it was there. */
export function readTrace(reader: ByteReader): TraceParent {
  const traceId = takeHex(reader, TRACE_ID_BYTES);
  const spanId = takeHex(reader, SPAN_ID_BYTES);
  return { traceId, spanId, flags: reader.uint8() };
}
