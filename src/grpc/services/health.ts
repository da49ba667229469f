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
import { HEALTH_WATCHERS_MAX, HEALTH_WATCHERS_PER_CONNECTION_MAX } from "../../base/limits.js";
import type { OperationsPort } from "../../operations/api/requests.js";
import { decodeMessage, encodeMessage } from "../../proto/codec.js";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  ServingStatus,
} from "../../proto/generated/health.js";
import { malformedRequest } from "../calls/runtime.js";
import type { UnaryHandler } from "../calls/unary.js";
import type { Call, CallHandler } from "../h2/call.js";
import { Status } from "../h2/constants.js";
import { failureOf } from "../h2/failure.js";

const WATCH_INTERVAL_MS = 100;

class Watcher implements CallHandler {
  told: number | null = null;
  sending = false;

  constructor(
    readonly call: Call,
    /** Service that does not exist: its state never changes. */
    readonly unknown: boolean,
    private readonly forget: (watcher: Watcher) => void,
  ) {}

  message(): void {
    // A watch is asked for once.
  }

  halfClosed(): void {
    // It ends when its client takes it back.
  }

  taken(): void {
    this.sending = false;
  }

  gone(): void {
    this.forget(this);
  }
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

  readonly check: UnaryHandler = (call, bytes) => {
    const request = decodeMessage(HealthCheckRequest, bytes);
    if (request === null) {
      call.fail(malformedRequest());
    } else if (!this.services.has(request.service)) {
      call.fail(failureOf(Status.NOT_FOUND, "unknown service"));
    } else {
      call.answer(encodeMessage(HealthCheckResponse, { status: this.state() }));
    }
  };

  readonly watch: UnaryHandler = (call, bytes) => {
    const request = decodeMessage(HealthCheckRequest, bytes);
    if (request === null) {
      call.fail(malformedRequest());
      return;
    }
    const unknown = !this.services.has(request.service);
    const watcher = new Watcher(call, unknown, (one) => this.forget(one));
    if (!this.admit(watcher)) {
      call.fail(failureOf(Status.RESOURCE_EXHAUSTED, "too many watches of the health"));
      return;
    }
    call.tell(watcher);
    this.timer ??= setInterval(() => this.round(), WATCH_INTERVAL_MS);
    this.tell(watcher);
  };

  /** Ends all watches. */
  close(): void {
    for (const watcher of [...this.watchers]) {
      this.forget(watcher);
      watcher.call.end();
    }
  }

  private admit(watcher: Watcher): boolean {
    const ofConnection = this.perConnection.get(watcher.call.peer) ?? 0;
    const isFull = this.watchers.size >= HEALTH_WATCHERS_MAX;
    if (isFull || ofConnection >= HEALTH_WATCHERS_PER_CONNECTION_MAX) return false;
    this.watchers.add(watcher);
    this.perConnection.set(watcher.call.peer, ofConnection + 1);
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
    watcher.sending = !watcher.call.send(encodeMessage(HealthCheckResponse, { status: state }));
  }

  private forget(watcher: Watcher): void {
    if (!this.watchers.delete(watcher)) return;
    const left = (this.perConnection.get(watcher.call.peer) ?? 1) - 1;
    if (left > 0) this.perConnection.set(watcher.call.peer, left);
    else this.perConnection.delete(watcher.call.peer);
    if (this.watchers.size === 0) this.stopTimer();
  }

  private stopTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }
}
