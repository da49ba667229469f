/**
 * Counts the client connections of a node over all its listeners.
 *
 * Invariants: 1. Never more than `connectionsMax` are in. 2. Whoever is refused is counted as
 * refused and leaves nothing behind.
 */
import { assert } from "./assert.js";
import { CONNECTIONS_MAX } from "./limits.js";

/** Which listener a connection came to. */
export type ListenerName = "grpc" | "https" | "http";

/** What a connection has moved so far; its socket. */
export interface Traffic {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** What a listener asks at accept. */
export interface ConnectionBudget {
  /** Takes one; false when all are taken, and then the connection is to be closed. */
  enter(listener: ListenerName, traffic: Traffic): boolean;
  /** Gives one back that was taken. */
  leave(listener: ListenerName, traffic: Traffic): void;
  /** One that is in was ended because its client took back too many calls. */
  endedForResets(): void;
}

export class ConnectionCount implements ConnectionBudget {
  private readonly openOf = { grpc: 0, https: 0, http: 0 };
  private refusedCount = 0;
  private resetCount = 0;
  private readonly traffics = new Set<Traffic>();
  private readonly past = { received: 0, sent: 0 };

  constructor(readonly connectionsMax = CONNECTIONS_MAX) {}

  /** Connections that are in now, by listener. */
  get open(): Readonly<Record<ListenerName, number>> {
    return this.openOf;
  }

  /** Connections that were refused since the start. */
  get refused(): number {
    return this.refusedCount;
  }

  /** Connections that were ended because their clients took back too many calls. */
  get endedByResets(): number {
    return this.resetCount;
  }

  /** Bytes from and to clients since the start, open connections included. */
  bytesMoved(): { readonly received: number; readonly sent: number } {
    let { received, sent } = this.past;
    for (const { bytesRead, bytesWritten } of this.traffics) {
      received += bytesRead;
      sent += bytesWritten;
    }
    return { received, sent };
  }

  enter(listener: ListenerName, traffic: Traffic): boolean {
    const { grpc, https, http } = this.openOf;
    if (grpc + https + http >= this.connectionsMax) {
      this.refusedCount++;
      return false;
    }
    this.openOf[listener]++;
    this.traffics.add(traffic);
    return true;
  }

  leave(listener: ListenerName, traffic: Traffic): void {
    assert(this.openOf[listener] > 0, "whoever leaves has entered");
    this.openOf[listener]--;
    this.traffics.delete(traffic);
    this.past.received += traffic.bytesRead;
    this.past.sent += traffic.bytesWritten;
  }

  endedForResets(): void {
    this.resetCount++;
  }
}
