/**
 * The standard health service: SERVING exactly while the node is ready.
 *
 * Owns the watchers and one timer, which runs only while there are watchers. Invariants: 1. The
 * answer is the node's own readiness at that moment; nothing is cached. 2. A watcher gets the state
 * at once and then every change of it. 3. One watcher has at most one message on its way; what
 * changed meanwhile is told as the state then.
 */
import { status, type ServerWritableStream } from "@grpc/grpc-js";
import type { OperationsPort } from "../operations/requests.js";
import { decodeMessage, encodeMessage } from "../proto/codec.js";
import {
  HealthCheckRequest,
  HealthCheckResponse,
  ServingStatus,
} from "../proto/generated/health.js";
import { callError, malformedRequest } from "./runtime.js";
import type { RawUnaryHandler } from "./unary.js";

export type WatchCall = ServerWritableStream<Buffer, Buffer>;

const WATCH_INTERVAL_MS = 100;

interface Watcher {
  readonly call: WatchCall;
  /** Service that does not exist: its state never changes. */
  readonly unknown: boolean;
  told: number | null;
  sending: boolean;
}

export class HealthService {
  private readonly operations: OperationsPort;
  private readonly services: ReadonlySet<string>;
  private readonly watchers = new Set<Watcher>();
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
    const watcher: Watcher = { call, unknown, told: null, sending: false };
    this.watchers.add(watcher);
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
    this.stopTimer();
  }

  private state(): number {
    return this.operations.health().ready ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
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
    this.watchers.delete(watcher);
    if (this.watchers.size === 0) this.stopTimer();
  }

  private stopTimer(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
  }
}
