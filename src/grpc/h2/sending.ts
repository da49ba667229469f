/**
 * What leaves one connection: the peer's window, the socket, and the streams that wait for either.
 *
 * Invariants: 1. Data is handed to the socket only while it is not behind, streams in turns, a
 * bounded part of it per turn of the event loop. 2. A socket whose peer does not take what is
 * written is not read from.
 */
import type { Socket } from "node:net";
import { WINDOW_INITIAL_BYTES } from "./constants.js";
import type { Stream } from "./stream.js";

/** Data of one connection per turn (bytes). */
const TURN_MAX_BYTES = 256 * 1024;
/** Data of one stream before the next one has its turn (bytes). */
const STREAM_TURN_BYTES = 64 * 1024;
/** Behind so much, a socket takes no data; behind so much more it is not read from (bytes). */
const BEHIND_BYTES = 256 * 1024;
const FAR_BEHIND_BYTES = 1024 * 1024;

/** Something that writes at the end of the turn. */
export interface TurnWriter {
  flush(): void;
}

let writers: TurnWriter[] = [];

function flushAll(): void {
  const round = writers;
  writers = [];
  for (const one of round) one.flush();
}

export class Sending {
  /** What the peer lets us send on the whole connection (bytes). */
  window = WINDOW_INITIAL_BYTES;
  private waiting = new Set<Stream>();
  private isAsked = false;
  private isPaused = false;

  /** `onRoom`: told when the socket took what it was behind with. */
  constructor(
    private readonly socket: Socket,
    private readonly onRoom: () => void,
  ) {
    socket.on("drain", () => {
      if (this.isPaused || this.hasWaiting) setImmediate(onRoom);
    });
  }

  get hasWaiting(): boolean {
    return this.waiting.size > 0;
  }

  /** Data that may be sent now, with so much already written in this turn. */
  sendableBytes(writtenBytes: number): number {
    const room = BEHIND_BYTES - this.socket.writableLength - writtenBytes;
    return this.window < room ? this.window : room;
  }

  flushSoon(one: TurnWriter): void {
    if (this.isAsked) return;
    this.isAsked = true;
    if (writers.push(one) === 1) process.nextTick(flushAll);
  }

  wait(stream: Stream): void {
    this.waiting.add(stream);
  }

  forget(stream: Stream): void {
    this.waiting.delete(stream);
  }

  write(bytes: Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes);
  }

  /** Sends what may leave, the streams in turns. */
  pump(): void {
    this.isAsked = false;
    if (this.waiting.size === 0) return;
    let leftBytes = TURN_MAX_BYTES;
    for (let moved = true; moved && leftBytes > 0;) {
      moved = false;
      for (const stream of [...this.waiting]) {
        const sentBytes = stream.pump(Math.min(STREAM_TURN_BYTES, leftBytes));
        if (!stream.hasWaiting) this.waiting.delete(stream);
        if (sentBytes === 0) continue;
        moved = true;
        leftBytes -= sentBytes;
        // Whoever had its turn is last now.
        if (this.waiting.delete(stream)) this.waiting.add(stream);
        if (leftBytes <= 0) break;
      }
    }
    if (leftBytes <= 0 && this.hasWaiting) setImmediate(this.onRoom);
  }

  /** After a write: whether the socket is to be read. */
  pauseOrResume(): void {
    const { socket } = this;
    const isFar = socket.writableLength > FAR_BEHIND_BYTES;
    if (isFar === this.isPaused) return;
    this.isPaused = isFar;
    if (isFar) socket.pause();
    else socket.resume();
  }
}
