/**
 * The watches of one node (W1 to W16).
 *
 * Invariants: 1. Nothing is delivered in the turn of a call. 2. Each watch ends with one message,
 * unless its stream is closed. 3. Without watches nothing is made, kept or sent (W15).
 */
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import type { TimerPort } from "../../ports.js";
import type { WatchMessage, WatchSink, WatchStream } from "./messages.js";
import { WatchTally } from "./watch-tally.js";

export class WatchHub {
  readonly tally = new WatchTally();

  constructor(private readonly timer: TimerPort) {}

  open(sink: WatchSink): WatchStream {
    this.tally.streams++;
    let isOpen = true;
    const end = (watchId: number): void => {
      this.timer.soon(() => {
        if (isOpen) sink.deliver(ended(watchId, WatchEnd.notHosted));
      });
    };
    return {
      create: (watchId) => end(watchId),
      cancel: () => undefined,
      sync: () => undefined,
      ready: () => undefined,
      close: () => {
        if (isOpen) this.tally.streams--;
        isOpen = false;
      },
    };
  }
}

function ended(watchId: number, end: number): WatchMessage {
  const none = { cursor: null, initial: false, merged: false, reset: false, more: false };
  const { ended: type } = WatchMessageType;
  return {
    type,
    watchIds: [watchId],
    events: [],
    ...none,
    syncId: 0,
    staleMs: 0,
    end,
    partition: null,
  };
}
