/**
 * The watches double of the front ends: records what they ask for, delivers what a test says.
 *
 * Invariants: 1. Nothing is delivered by itself: a test calls `deliver` of a stream, in a turn of
 * its own. 2. A closed stream delivers nothing.
 */
import { WatchEventType } from "../../../src/base/result-types.js";
import { watchEvent as madeEvent } from "../../../src/machine/events.js";
import { draft } from "../../../src/host/watching/told.js";
import { WatchTally } from "../../../src/host/watching/watch-tally.js";
import type {
  CallerName,
  RouteHint,
  WatchEvent,
  WatchMessage,
  WatchReceiver,
  WatchRequest,
  WatchStream,
  Watches,
} from "../../../src/operations/api/requests.js";

/** What a front end did with its stream, in order. */
type WatchCall =
  | { readonly did: "create"; readonly watchId: number; readonly request: WatchRequest }
  | { readonly did: "cancel"; readonly watchId: number }
  | { readonly did: "sync"; readonly syncId: number; readonly watchId: number }
  | { readonly did: "ready" | "close" };

export class FakeWatchStream implements WatchStream {
  readonly calls: WatchCall[] = [];
  isClosed = false;

  constructor(
    readonly receiver: WatchReceiver,
    readonly caller: CallerName | null,
  ) {}

  create(watchId: number, request: WatchRequest): void {
    this.calls.push({ did: "create", watchId, request });
  }

  cancel(watchId: number): void {
    this.calls.push({ did: "cancel", watchId });
  }

  sync(syncId: number, watchId: number): void {
    this.calls.push({ did: "sync", syncId, watchId });
  }

  ready(): void {
    this.calls.push({ did: "ready" });
  }

  close(): void {
    this.isClosed = true;
    this.calls.push({ did: "close" });
  }

  /** Tells the front end something, with what a test says of it. */
  deliver(message: Partial<WatchMessage>, route: RouteHint | null = null): void {
    if (!this.isClosed) this.receiver.deliver(watchMessage(message), route);
  }
}

export class FakeWatches implements Watches {
  readonly tally = new WatchTally();
  readonly streams: FakeWatchStream[] = [];

  open(receiver: WatchReceiver, caller: CallerName | null): FakeWatchStream {
    const stream = new FakeWatchStream(receiver, caller);
    this.streams.push(stream);
    return stream;
  }
}

export function watchMessage(given: Partial<WatchMessage>): WatchMessage {
  return { watchIds: [1], ...draft({}), ...given };
}

export function watchEvent(given: Partial<WatchEvent>): WatchEvent {
  const { type = WatchEventType.set, name = "k", stamp = { n: 0, l: 0, c: 0 } } = given;
  return madeEvent(type, name, stamp, given);
}
