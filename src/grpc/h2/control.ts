/**
 * The frames of a connection that are no work: settings, pings, priorities, farewells; and our own
 * probes of the peer.
 *
 * Invariants: 1. Each is counted, and too many are refused. 2. Settings are acknowledged when they
 * are in force.
 */
import { ErrorCode, Flag, Frame } from "./constants.js";
import { IdleFrames } from "./floods.js";
import type { Output } from "./output.js";
import { readSettings } from "./settings.js";

export class ControlFrames {
  readonly idle: IdleFrames;
  /** When the last ping left (ms), and whether it was answered. */
  private pingedMs: number;
  private answered = true;

  /** `onWindow`: told of the peer's window for new streams; false: a stream has too much of it. */
  constructor(
    private readonly output: Output,
    private readonly onWindow: (sizeBytes: number) => boolean,
    nowMs: () => number,
  ) {
    this.idle = new IdleFrames(nowMs);
    this.pingedMs = nowMs();
  }

  /** Takes a frame; returns what is wrong with it. */
  take(type: number, flags: number, id: number, bytes: Buffer, start: number, end: number): number {
    if (!this.idle.take()) return ErrorCode.enhanceYourCalm;
    const size = end - start;
    switch (type) {
      case Frame.settings:
        return this.settings(flags, id, bytes, start, end);
      case Frame.ping:
        return this.ping(flags, id, bytes, start, size);
      case Frame.priority:
        if (size !== 5) return ErrorCode.frameSize;
        return id === 0 || dependsOn(bytes, start) === id ? ErrorCode.protocol : ErrorCode.none;
      case Frame.goaway:
        if (id !== 0) return ErrorCode.protocol;
        return size < 8 ? ErrorCode.frameSize : ErrorCode.none;
      default:
        return ErrorCode.none;
    }
  }

  private settings(flags: number, id: number, bytes: Buffer, start: number, end: number): number {
    if (id !== 0) return ErrorCode.protocol;
    if (flags & Flag.ack) return end > start ? ErrorCode.frameSize : ErrorCode.none;
    const settings = readSettings(bytes, start, end);
    if (typeof settings === "number") return settings;
    const { headerTableSize, initialWindowSize } = settings;
    if (headerTableSize !== null) this.output.tableSize(headerTableSize);
    if (initialWindowSize !== null && !this.onWindow(initialWindowSize)) {
      return ErrorCode.flowControl;
    }
    this.output.settingsAck();
    return ErrorCode.none;
  }

  private ping(flags: number, id: number, bytes: Buffer, start: number, size: number): number {
    if (id !== 0) return ErrorCode.protocol;
    if (size !== 8) return ErrorCode.frameSize;
    if (flags & Flag.ack) this.answered = true;
    else this.output.ping(bytes, start);
    return ErrorCode.none;
  }

  /** Writes the probe that is due; false: the answer to the last one is overdue. */
  probe(nowMs: number, intervalMs: number, timeoutMs: number): boolean {
    const sinceMs = nowMs - this.pingedMs;
    if (!this.answered) return sinceMs < timeoutMs;
    if (sinceMs < intervalMs) return true;
    this.pingedMs = nowMs;
    this.answered = false;
    this.output.ping(null, 0);
    return true;
  }
}

/** The stream that another one is said to depend on. */
function dependsOn(bytes: Buffer, at: number): number {
  return bytes.readUInt32BE(at) & 0x7fff_ffff;
}
