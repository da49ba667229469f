/**
 * Collects the calls of one turn and sends them together on the batch streams of one endpoint.
 *
 * Owns the calls that wait and one stream per connection. Invariants: 1. A call waits for the end
 * of the turn and for room on a stream, nothing else; those that may wait at the server, of which
 * there may be thousands, hold up none of the others: a holder's release is what they wait for
 * (P-181). 2. A call that left is never sent again here. 3. Without batch streams at the server
 * everything goes out as single calls.
 */
import { BatchStream } from "./batch-stream.js";
import type { Try } from "../call/try.js";
import { goneWith, localFailure, UnavailableError, type SvcError } from "../values/errors.js";
import type { GrpcChannel } from "./grpc-channel.js";
import type { StreamKind } from "../call/operation.js";
import type { HintReader } from "../call/route-hint.js";
import type { ClientPlatform } from "../time/platform.js";

const PATHS: Readonly<Record<StreamKind, string>> = {
  sequences: "/Sequencer/BatchClientSequenceRequests",
  locks: "/Locker/BatchClientLockRequests",
  kv: "/KeyValuer/BatchClientKeyValueRequests",
};

export class Batcher {
  private readonly platform: ClientPlatform;
  private readonly streams: BatchStream[];
  private readonly unary: (attempt: Try) => void;
  private queue: Try[] = [];
  /** Calls that may wait at the server: they go behind all others. */
  private lasting: Try[] = [];
  private flushAsked = false;
  private withoutStreams = false;
  private closed = false;
  private turn = 0;

  constructor(
    platform: ClientPlatform,
    kind: StreamKind,
    channels: readonly GrpcChannel[],
    hints: HintReader | null,
    unary: (attempt: Try) => void,
  ) {
    this.platform = platform;
    this.unary = unary;
    this.streams = channels.map(
      (channel) =>
        new BatchStream(PATHS[kind], channel, hints, {
          onRoom: () => this.askFlush(),
          onOpenFailed: (failure) => this.openFailed(failure),
          onUnimplemented: (attempts) => this.fallBack(attempts),
          sendAlone: unary,
        }),
    );
  }

  push(attempt: Try): void {
    if (this.closed) return attempt.failed(goneWith(attempt));
    if (this.withoutStreams) return this.unary(attempt);
    if (attempt.operation.waits?.(attempt.request) === true) this.lasting.push(attempt);
    else this.queue.push(attempt);
    this.askFlush();
  }

  private askFlush(): void {
    if (this.flushAsked || this.queue.length + this.lasting.length === 0) return;
    this.flushAsked = true;
    this.platform.soon(() => this.flush());
  }

  /** One turn. Nothing may leave it: there is nobody above who could catch it. */
  private flush(): void {
    this.flushAsked = false;
    try {
      this.queue = this.handOver(this.queue, (stream) => stream.room);
      this.lasting = this.handOver(this.lasting, (stream) => stream.waitRoom);
    } catch (error) {
      for (const attempt of this.takeAll()) if (!attempt.left) attempt.failed(localFailure(error));
      for (const stream of this.streams) stream.broken(error);
    }
  }

  /** What waits for room, of both sorts. */
  private takeAll(): readonly Try[] {
    const all = [...this.queue, ...this.lasting];
    this.queue = [];
    this.lasting = [];
    return all;
  }

  /** Hands what waits to the streams, in frames; returns what finds no room. */
  private handOver(waiting: Try[], roomOf: (stream: BatchStream) => number): Try[] {
    let from = 0;
    while (from < waiting.length) {
      const stream = this.roomiest(roomOf);
      if (stream === null) break;
      from = stream.send(waiting, from);
    }
    const rest = from === waiting.length ? [] : waiting.slice(from).filter((one) => !one.ended);
    if (rest.length > 0) for (const stream of this.streams) stream.open();
    return rest;
  }

  /** The open stream with the most room, or null when none takes more. */
  private roomiest(roomOf: (stream: BatchStream) => number): BatchStream | null {
    let best: BatchStream | null = null;
    const { streams } = this;
    for (let step = 0; step < streams.length; step++) {
      const stream = streams[(this.turn + step) % streams.length] as BatchStream;
      const room = roomOf(stream);
      if (room === 0) {
        stream.open();
      } else if (best === null || room > roomOf(best)) {
        best = stream;
      }
    }
    this.turn += 1;
    return best;
  }

  /**
   * A stream could not be made: when no other one is open, what waits goes elsewhere. Those that
   * are still being made are not waited for: they could fail in turn for ever. A stream that the
   * server refused says nothing about single items: each gets its own verdict.
   */
  private openFailed(failure: SvcError): void {
    if (this.streams.some((stream) => stream.isOpen)) return this.askFlush();
    const refused = !(failure instanceof UnavailableError);
    for (const attempt of this.takeAll()) {
      if (attempt.ended) continue;
      if (refused) this.unary(attempt);
      else attempt.failed(failure);
    }
  }

  private fallBack(attempts: readonly Try[]): void {
    this.withoutStreams = true;
    for (const attempt of [...attempts, ...this.takeAll()]) if (!attempt.ended) this.unary(attempt);
  }

  /** The connection of a try without answer: given up when nothing came on it since. */
  suspect(attempt: Try): void {
    for (const stream of this.streams) stream.suspect(attempt);
  }

  /** For good: what waits goes elsewhere, and so does whatever still comes. */
  close(): void {
    this.closed = true;
    for (const stream of this.streams) stream.close();
    for (const attempt of this.takeAll()) attempt.failed(goneWith(attempt));
  }
}
