/**
 * The standard health service: SERVING exactly while the node is ready.
 *
 * Owns the watchers and one timer, which runs only while there are watchers. Invariants: 1. The
 * answer is the node's own readiness in that turn of the event loop; it is found out once per turn
 * and round, however many ask, for looking at every group is not cheap and nobody needs
 * credentials. 2. A watcher gets the state at once and then every change of it. 3. One watcher has
 * at most one message on its way; what changed meanwhile is told as the state then. 4. Watchers are
 * bounded, per node and per connection.
 */
import { status, type ServerWritableStream } from "@grpc/grpc-js";
import { HEALTH_WATCHERS_MAX, HEALTH_WATCHERS_PER_CONNECTION_MAX } from "../../base/limits.js";
import type { OperationsPort } from "../../operations/api/requests.js";
import { decodeMessage, encodeMessage } from "../../proto/codec.js";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  ServingStatus,
} from "../../proto/generated/health.js";
import { callError, malformedRequest } from "../calls/runtime.js";
import type { RawUnaryHandler } from "../calls/unary.js";

export type WatchCall = ServerWritableStream<Buffer, Buffer>;

const WATCH_INTERVAL_MS = 100;

interface Watcher {
  readonly call: WatchCall;
  /** Service that does not exist: its state never changes. */
  readonly unknown: boolean;
  /** Address of the peer: names the connection. */
  readonly peer: string;
  told: number | null;
  sending: boolean;
}

export class HealthService {
  private readonly operations: OperationsPort;
  private readonly services: ReadonlySet<string>;
  private readonly watchers = new Set<Watcher>();
  private readonly perConnection = new Map<string, number>();
  /** The state as found in this turn; null = not asked for yet. */
  private known: number | null = null;
  private timer: NodeJS.Timeout | null = null;

  /** `services`: names that can be asked for; "" stands for the node. All have the node's state. */
  constructor(operations: OperationsPort, services: readonly string[]) {
    this.operations = operations;
    this.services = new Set(["", ...services]);
  }

  readonly check: RawUnaryHandler = (call, callback) => {
    const request = decodeMessage(HealthCheckRequest, call.request);
    if (request === null) {
      callback(malformedRequest());
    } else if (!this.services.has(request.service)) {
      callback(callError(status.NOT_FOUND, "unknown service"));
    } else {
      callback(null, encodeMessage(HealthCheckResponse, { status: this.state() }));
    }
  };

  readonly watch = (call: WatchCall): void => {
    const request = decodeMessage(HealthCheckRequest, call.request);
    if (request === null) {
      call.emit("error", malformedRequest());
      return;
    }
    const unknown = !this.services.has(request.service);
    const watcher: Watcher = { call, unknown, peer: call.getPeer(), told: null, sending: false };
    if (!this.admit(watcher)) {
      call.emit("error", callError(status.RESOURCE_EXHAUSTED, "too many watches of the health"));
      return;
    }
    const forget = (): void => this.forget(watcher);
    call.on("cancelled", forget);
    call.on("error", forget);
    this.timer ??= setInterval(() => this.round(), WATCH_INTERVAL_MS);
    this.tell(watcher);
  };

  /** Ends all watches. */
  close(): void {
    for (const { call } of [...this.watchers]) call.end();
    this.watchers.clear();
    this.perConnection.clear();
    this.stopTimer();
  }

  private admit(watcher: Watcher): boolean {
    const ofConnection = this.perConnection.get(watcher.peer) ?? 0;
    const isFull = this.watchers.size >= HEALTH_WATCHERS_MAX;
    if (isFull || ofConnection >= HEALTH_WATCHERS_PER_CONNECTION_MAX) return false;
    this.watchers.add(watcher);
    this.perConnection.set(watcher.peer, ofConnection + 1);
    return true;
  }

  private state(): number {
    if (this.known === null) {
      setImmediate(() => (this.known = null));
      const { ready } = this.operations.health();
      this.known = ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
    }
    return this.known;
  }

  private round(): void {
    for (const watcher of this.watchers) this.tell(watcher);
  }

  private tell(watcher: Watcher): void {
    const state = watcher.unknown ? ServingStatus.SERVICE_UNKNOWN : this.state();
    if (watcher.told === state || watcher.sending) return;
    watcher.told = state;
    watcher.sending = true;
    watcher.call.write(encodeMessage(HealthCheckResponse, { status: state }), () => {
      watcher.sending = false;
    });
  }

  private forget(watcher: Watcher): void {
    if (!this.watchers.delete(watcher)) return;
    const left = (this.perConnection.get(watcher.peer) ?? 1) - 1;
    if (left > 0) this.perConnection.set(watcher.peer, left);
    else this.perConnection.delete(watcher.peer);
    if (this.watchers.size === 0) this.stopTimer();
  }

  private stopTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }
}
