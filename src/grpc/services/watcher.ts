/**
 * The Watcher service: one stream for any number of watches.
 *
 * Owns what its stream has unsent, and which of its watches are there. Invariants: 1. What is not
 * read is counted, for the stream and for the node; from the buffer of the stream on it gets no
 * more but ends, and its requests are not read either: a slow reader holds bounded memory (P-185).
 * 2. The stream goes on when a watch ends. It ends in good order when the client has said its last
 * word and its last watch ended, or when the node stops, which every watch is told. 3. Whether the
 * caller may read still is asked of the gate (W10).
 */
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import type {
  RouteHint,
  WatchMessage,
  WatchReceiver,
  WatchStream,
} from "../../operations/api/requests.js";
import { decodeMessage } from "../../proto/codec.js";
import { GrpcWatchRequest } from "../../proto/generated/watch.js";
import { malformedRequest, type GrpcRuntime } from "../calls/runtime.js";
import type { Call, CallHandler } from "../h2/call.js";
import { watchRequest, writeMessage } from "./watch-messages.js";

export const WATCH_PATH = "/Watcher/Watch";

/** A full stream gets more when so much of its buffer is left (share). */
const ROOM_SHARE = 0.5;

export class WatcherStream implements CallHandler, WatchReceiver {
  private readonly stream: WatchStream;
  /** Watches that were asked for and have not ended: how many of each id. */
  private readonly watches = new Map<number, number>();
  private unsentBytes = 0;
  private wasFull = false;
  private isHalfClosed = false;
  private isGone = false;

  constructor(
    private readonly runtime: GrpcRuntime,
    private readonly call: Call,
    private readonly forget: (stream: WatcherStream) => void,
  ) {
    this.stream = runtime.operations.watches.open(this, call.caller.limited);
  }

  message(bytes: Buffer): void {
    const message = decodeMessage(GrpcWatchRequest, bytes);
    const { Create, Cancel, Sync } = message ?? {};
    if (Create) {
      const { WatchId } = Create;
      this.watches.set(WatchId, (this.watches.get(WatchId) ?? 0) + 1);
      this.stream.create(WatchId, watchRequest(Create));
    } else if (Cancel) this.stream.cancel(Cancel.WatchId);
    else if (Sync) this.stream.sync(Sync.SyncId, Sync.WatchId);
    else this.call.fail(malformedRequest());
  }

  halfClosed(): void {
    this.isHalfClosed = true;
    this.endWhenIdle();
  }

  deliver(message: WatchMessage, route: RouteHint | null): void {
    if (!this.call.isOpen) return;
    const writer = this.runtime.scratch();
    writeMessage(message, route, writer);
    const bytes = writer.view(0);
    this.runtime.operations.watches.tally.sent(bytes.length);
    if (!this.call.send(bytes)) this.hold(bytes.length);
    if (message.type !== WatchMessageType.ended) return;
    for (const id of message.watchIds) this.ended(id);
    this.endWhenIdle();
  }

  isFull(): boolean {
    const { options, large } = this.runtime;
    const isFull =
      this.unsentBytes >= options.watchStreamBufferBytes ||
      // Whoever has nothing unsent would never be told that there is room again.
      (this.unsentBytes > 0 && large.unsent.isFull);
    this.wasFull ||= isFull;
    return isFull;
  }

  mayRead(): boolean {
    return this.call.isStillAllowed;
  }

  private ended(watchId: number): void {
    const left = (this.watches.get(watchId) ?? 1) - 1;
    if (left === 0) this.watches.delete(watchId);
    else this.watches.set(watchId, left);
  }

  private hold(sizeBytes: number): void {
    this.unsentBytes += sizeBytes;
    this.runtime.large.unsent.take(sizeBytes);
    this.runtime.operations.watches.tally.buffered(sizeBytes);
    if (this.isFull()) this.call.pause();
  }

  private giveBack(sizeBytes: number): void {
    this.unsentBytes -= sizeBytes;
    this.runtime.large.unsent.give(sizeBytes);
    this.runtime.operations.watches.tally.buffered(-sizeBytes);
  }

  taken(sizeBytes: number): void {
    if (this.isGone) return;
    this.giveBack(sizeBytes);
    const roomBytes = this.runtime.options.watchStreamBufferBytes * ROOM_SHARE;
    if (!this.wasFull || this.unsentBytes > roomBytes || !this.call.isOpen) return;
    this.wasFull = false;
    this.call.resume();
    this.stream.ready();
  }

  gone(): void {
    this.isGone = true;
    this.giveBack(this.unsentBytes);
    this.stream.close();
    this.forget(this);
  }

  /** The node stops. */
  drain(): void {
    const none = { cursor: null, initial: false, merged: false, reset: false, more: false };
    const { ended: type } = WatchMessageType;
    const watchIds = [...this.watches.keys()];
    const numbers = {
      syncId: 0,
      staleMs: 0,
      end: WatchEnd.shuttingDown,
      partition: null,
      mapVersion: 0,
    };
    this.stream.close();
    if (watchIds.length > 0)
      this.deliver({ type, watchIds, events: [], ...none, ...numbers }, null);
    if (this.call.isOpen) this.call.end();
  }

  private endWhenIdle(): void {
    if (this.isHalfClosed && this.watches.size === 0 && this.call.isOpen) this.call.end();
  }
}
