/**
 * Checks one frame that was read back from its place in a segment, outside any scan.
 *
 * Invariants: 1. Nothing is believed before magic, length and checksum hold: the checksum covers
 * segment, offset and identity, so that a good frame from another place is refused (P-114).
 */
import { crc32c, frame, recordKind, sizes } from "../../wasm/kernels.js";
import type { LogEntry } from "../../ports.js";

export interface FramePlace {
  readonly segmentId: number;
  readonly salt: number;
  /** Offset of the frame in its segment. */
  readonly offset: number;
}

/** Bytes that a frame and its padding may take beyond header and payload. */
export const FRAME_SLACK_BYTES = frame.padBytes + 8;

const seed = new Uint8Array(16);
const seedView = new DataView(seed.buffer);

/**
 * The entry whose frame starts at `at` of `bytes`, payload copied; null when it is damaged, cut
 * off, or no entry of `group`.
 */
export function entryAt(
  bytes: Uint8Array,
  at: number,
  place: FramePlace,
  group: number,
): LogEntry | null {
  if (bytes.length - at < frame.headerBytes) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, bytes.length - at);
  const length = view.getUint32(frame.lengthAt, true);
  if (view.getUint32(frame.magicAt, true) !== frame.magic) return null;
  if (length < frame.headerBytes || length > frame.headerBytes + sizes.payloadBytes) return null;
  const kind = view.getUint32(frame.kindAt, true);
  const padding = (kind >>> 16) * 8;
  const stride = ((length + 7) & ~7) + padding;
  if (padding > frame.padBytes || stride > bytes.length - at) return null;
  seedView.setUint32(0, place.salt, true);
  seedView.setUint32(4, place.segmentId, true);
  seedView.setUint32(8, Math.floor(place.segmentId / 0x1_0000_0000), true);
  seedView.setUint32(12, place.offset, true);
  const checksum = crc32c(bytes, crc32c(seed), at + frame.lengthAt, at + stride);
  if (checksum !== view.getUint32(frame.checksumAt, true)) return null;
  const type = kind & 255;
  if (type !== recordKind.entry && type !== recordKind.restated) return null;
  if (view.getUint32(frame.groupAt, true) !== group) return null;
  return {
    index: wide(view, frame.indexAt),
    term: wide(view, frame.termAt),
    kind: view.getUint32(frame.incarnationAt, true),
    payload: Uint8Array.prototype.slice.call(bytes, at + frame.headerBytes, at + length),
  };
}

function wide(view: DataView, at: number): number {
  return view.getUint32(at + 4, true) * 0x1_0000_0000 + view.getUint32(at, true);
}
