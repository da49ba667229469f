/**
 * Watches as the front ends see them: they open a stream for each call, give it what the caller
 * asks for, and put into bytes what it delivers.
 *
 * Types only. Invariants: 1. Nothing is delivered in the turn of a call. 2. Every
 * watch of a stream ends with one message, unless the stream is closed.
 */
import type { WatchMessage, WatchStream } from "../../../host/watching/messages.js";
import type { WatchTally } from "../../../host/watching/watch-tally.js";
import type { CallerName } from "../context.js";
import type { RouteHint } from "../answers.js";

export type {
  WatchEvent,
  WatchMessage,
  WatchRequest,
  WatchStream,
} from "../../../host/watching/messages.js";

/** Who takes the messages of a stream. No method calls back into the stream. */
export interface WatchReceiver {
  /** `route`: of the end of a watch that another node may serve. */
  deliver(message: WatchMessage, route: RouteHint | null): void;
  /**
   * So much is unsent (`watchStreamBufferBytes`) that nothing more is to be delivered but ends;
   * once that is over, the front end calls `ready` of its stream.
   */
  isFull(): boolean;
  /** Whether the caller may read still: asked at every mark (W10). */
  mayRead(): boolean;
}

export interface Watches {
  /** Of the node; front ends tell it what they send and keep (`sent`, `buffered`). */
  readonly tally: WatchTally;
  open(receiver: WatchReceiver, caller: CallerName | null): WatchStream;
}
