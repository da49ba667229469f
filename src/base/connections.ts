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

/** What a listener asks at accept. */
export interface ConnectionBudget {
  /** Takes one; false when all are taken, and then the connection is to be closed. */
  enter(listener: ListenerName): boolean;
  /** Gives one back that was taken. */
  leave(listener: ListenerName): void;
  /** One that is in was ended because its client took back too many calls. */
  endedForResets(): void;
}

export class ConnectionCount implements ConnectionBudget {
  private readonly openOf = { grpc: 0, https: 0, http: 0 };
  private refusedCount = 0;
  private resetCount = 0;

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

  enter(listener: ListenerName): boolean {
    const { grpc, https, http } = this.openOf;
    if (grpc + https + http >= this.connectionsMax) {
      this.refusedCount++;
      return false;
    }
    this.openOf[listener]++;
    return true;
  }

  leave(listener: ListenerName): void {
    assert(this.openOf[listener] > 0, "whoever leaves has entered");
    this.openOf[listener]--;
  }

  endedForResets(): void {
    this.resetCount++;
  }
}
