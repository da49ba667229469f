/** The settings that a peer states, as far as a server of gRPC is concerned by them. */
import { ErrorCode, FRAME_PAYLOAD_MAX_BYTES, Setting, WINDOW_MAX_BYTES } from "./constants.js";

const PAIR_BYTES = 6;
const FRAME_SIZE_MAX = 16_777_215;

/** null: not stated. */
export interface PeerSettings {
  headerTableSize: number | null;
  initialWindowSize: number | null;
}

/** Reads a frame of settings, or says what is wrong with it. */
export function readSettings(bytes: Buffer, start: number, end: number): PeerSettings | number {
  if ((end - start) % PAIR_BYTES !== 0) return ErrorCode.frameSize;
  const found: PeerSettings = { headerTableSize: null, initialWindowSize: null };
  for (let at = start; at < end; at += PAIR_BYTES) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case Setting.headerTableSize:
        // Of several the smallest counts: it may have been in force.
        found.headerTableSize = Math.min(found.headerTableSize ?? value, value);
        break;
      case Setting.enablePush:
        if (value > 1) return ErrorCode.protocol;
        break;
      case Setting.initialWindowSize:
        if (value > WINDOW_MAX_BYTES) return ErrorCode.flowControl;
        found.initialWindowSize = value;
        break;
      case Setting.maxFrameSize:
        if (value < FRAME_PAYLOAD_MAX_BYTES || value > FRAME_SIZE_MAX) return ErrorCode.protocol;
    }
  }
  return found;
}
