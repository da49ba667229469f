/**
 * The sending half of one lane's connection: what is handed to the stream at once, what waits, and
 * what is let go.
 *
 * Owns the queue of one connection; a new connection begins with an empty one. Invariants: 1. A
 * frame leaves in the turn in which it was sent, unless frames stand before it. 2. Frames leave in
 * order. 3. No more than the bounds of the lane are ever kept. 4. Nothing here waits: whoever owns
 * the connection ends it when nothing moves.
 */
import type { Writable } from "node:stream";
import { EMPTY_BYTES } from "../base/bytes.js";
import { COPIED_BODY_MAX_BYTES, packetSizeBytes, putPacket, writePacket } from "./messages.js";
import { PACKET } from "./packets.js";
import type { LaneBounds } from "./settings.js";

/** What a turn sends is written behind each other, into buffers of this size. */
const TURN_BYTES = 32 * 1024;

export class LaneSender {
  private waiting: Uint8Array[] = [];
  private head = 0;
  private waitingBytes = 0;
  /** Packets of this turn, from `turnStart` to `turnEnd`; no byte is used twice. */
  private turn: Uint8Array = EMPTY_BYTES;
  private turnStart = 0;
  private turnEnd = 0;
  private isAsked = false;
  /** Frames that were let go because newer ones came. */
  droppedFrames = 0;

  constructor(
    private readonly stream: Writable,
    private readonly bounds: LaneBounds,
  ) {
    stream.on("drain", this.pump);
  }

  /** Bytes that the connection has not taken yet. */
  get queuedBytes(): number {
    return this.waitingBytes + this.aheadBytes;
  }

  /** False: there is no room for the frame. */
  frame(bytes: Uint8Array): boolean {
    if (this.head === this.waiting.length && !this.isAhead) {
      this.packet(PACKET.frame, bytes);
      return true;
    }
    const size = packetSizeBytes(bytes.length);
    const { queueBytes, whenFull } = this.bounds;
    while (this.waitingBytes + size > queueBytes) {
      if (whenFull === "refuse" || this.head === this.waiting.length) return false;
      this.shift();
      this.droppedFrames += 1;
    }
    this.waiting.push(bytes);
    this.waitingBytes += size;
    return true;
  }

  /** Writes a packet in this turn, before what waits: for the few small ones of the connection. */
  packet(kind: number, body: Uint8Array): void {
    if (body.length > COPIED_BODY_MAX_BYTES) {
      this.flush();
      this.stream.cork();
      writePacket(kind, body, (piece) => this.stream.write(piece));
      this.stream.uncork();
      return;
    }
    if (this.turnEnd + packetSizeBytes(body.length) > this.turn.length) {
      this.flush();
      this.turn = new Uint8Array(TURN_BYTES);
      this.turnStart = this.turnEnd = 0;
    }
    this.turnEnd = putPacket(this.turn, this.turnEnd, kind, body);
    if (this.isAsked) return;
    this.isAsked = true;
    process.nextTick(this.endTurn);
  }

  /** Hands over what this turn sent so far. Before the stream is ended. */
  flush(): void {
    const { turn, turnStart, turnEnd, stream } = this;
    if (turnStart === turnEnd) return;
    this.turnStart = turnEnd;
    if (!stream.destroyed) stream.write(turn.subarray(turnStart, turnEnd));
  }

  private get aheadBytes(): number {
    return this.stream.writableLength + this.turnEnd - this.turnStart;
  }

  private get isAhead(): boolean {
    return this.aheadBytes >= this.bounds.aheadBytes;
  }

  private readonly endTurn = (): void => {
    this.isAsked = false;
    this.flush();
  };

  private readonly pump = (): void => {
    while (this.head < this.waiting.length && !this.isAhead) {
      this.packet(PACKET.frame, this.shift());
    }
  };

  private shift(): Uint8Array {
    const bytes = this.waiting[this.head] as Uint8Array;
    this.waiting[this.head++] = EMPTY_BYTES;
    this.waitingBytes -= packetSizeBytes(bytes.length);
    if (this.head === this.waiting.length) {
      this.waiting = [];
      this.head = 0;
    } else if (this.head >= 1024) {
      this.waiting = this.waiting.slice(this.head);
      this.head = 0;
    }
    return bytes;
  }
}
