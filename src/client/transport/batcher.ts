/**
 * Collects the calls of one turn and sends them together on the batch streams of one endpoint.
 *
 * Owns the calls that wait and one stream per connection. Invariants: 1. A call waits for the end
 * of the turn and for room on a stream, nothing else. 2. A call that left is never sent again here.
 * 3. Without batch streams at the server everything goes out as single calls.
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
    this.queue.push(attempt);
    this.askFlush();
  }

  private askFlush(): void {
    if (this.queue.length === 0 || this.flushAsked) return;
    this.flushAsked = true;
    this.platform.soon(() => this.flush());
  }

  /** One turn. Nothing may leave it: there is nobody above who could catch it. */
  private flush(): void {
    this.flushAsked = false;
    const waiting = this.queue;
    try {
      this.handOver(waiting);
    } catch (error) {
      this.queue = [];
      for (const attempt of waiting) if (!attempt.left) attempt.failed(localFailure(error));
      for (const stream of this.streams) stream.broken(error);
    }
  }

  /** Hands what waits to the streams, in frames. */
  private handOver(waiting: Try[]): void {
    let from = 0;
    while (from < waiting.length) {
      const stream = this.roomiest();
      if (stream === null) break;
      from = stream.send(waiting, from);
    }
    this.queue = from === waiting.length ? [] : waiting.slice(from).filter((one) => !one.ended);
    if (this.queue.length > 0) for (const stream of this.streams) stream.open();
  }

  /** The open stream with the fewest calls in flight, or null when none takes more. */
  private roomiest(): BatchStream | null {
    let best: BatchStream | null = null;
    const { streams } = this;
    for (let step = 0; step < streams.length; step++) {
      const stream = streams[(this.turn + step) % streams.length] as BatchStream;
      if (stream.room === 0) {
        stream.open();
      } else if (best === null || stream.room > best.room) {
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
    const waiting = this.queue;
    this.queue = [];
    const refused = !(failure instanceof UnavailableError);
    for (const attempt of waiting) {
      if (attempt.ended) continue;
      if (refused) this.unary(attempt);
      else attempt.failed(failure);
    }
  }

  private fallBack(attempts: readonly Try[]): void {
    this.withoutStreams = true;
    const waiting = this.queue;
    this.queue = [];
    for (const attempt of [...attempts, ...waiting]) if (!attempt.ended) this.unary(attempt);
  }

  /** The connection of a try without answer: given up when nothing came on it since. */
  suspect(attempt: Try): void {
    for (const stream of this.streams) stream.suspect(attempt);
  }

  /** For good: what waits goes elsewhere, and so does whatever still comes. */
  close(): void {
    this.closed = true;
    const waiting = this.queue;
    this.queue = [];
    for (const stream of this.streams) stream.close();
    for (const attempt of waiting) attempt.failed(goneWith(attempt));
  }
}
