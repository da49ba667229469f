/**
 * What every handler of the gRPC front end shares: the operations, the clock, request contexts, the
 * flush round.
 *
 * Owns the request ids and the round that writes answers out. Invariants: 1. A context's deadline
 * is never later than the server's own bound, and is on the monotonic clock. 2. A flush runs once
 * per turn of the event loop, after the callbacks of that turn, so that answers given together
 * travel together.
 */
import { randomBytes } from "node:crypto";
import type { ConnectionBudget } from "../../base/connections.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { NodeDebugPort } from "../../operations/api/node-debug.js";
import type { AuditPort } from "../../operations/api/audit.js";
import { traceOf } from "../../operations/api/tracing.js";
import type { OperationsPort, RequestContext } from "../../operations/api/requests.js";
import { ProtoWriter } from "../../proto/codec.js";
import type { Authenticator } from "../h2/access.js";
import type { CallObserver } from "./call-observer.js";
import type { Call } from "../h2/call.js";
import { Status } from "../h2/constants.js";
import { type Failure, failureOf } from "../h2/failure.js";
import type { RequestHead } from "../h2/fields.js";
import { LargeAnswers } from "./large-answers.js";

/** What server/ hands in. */
export interface GrpcServerOptions {
  readonly operations: OperationsPort;
  /** null: no authentication is configured, every caller is admin. */
  readonly authenticator: Authenticator | null;
  readonly clock: { monotonicMs(): number };
  /** --request-timeout (ms). */
  readonly requestTimeoutMs: number;
  /** --grpc-max-receive-bytes. */
  readonly maxReceiveBytes: number;
  /** --max-inflight-per-stream. */
  readonly maxInflightPerStream: number;
  /** Longest that a try-lock may wait (ms). */
  readonly lockMaxWaitMs: number;
  /** --watch-stream-buffer-bytes. */
  readonly watchStreamBufferBytes: number;
  /** Counts client connections over all listeners of the node; more are closed at accept. */
  readonly connections: ConnectionBudget;
  /** Counts answers that wait for clients over all front ends of the node. */
  readonly unsent: UnsentBytes;
  /** Pause between liveness probes of a connection, and how long an answer to one may take (ms). */
  readonly keepaliveIntervalMs: number;
  readonly keepaliveTimeoutMs: number;
  /** Adds the method /Bench/Noop, for measuring what a call costs without an operation. */
  readonly noopMethod: boolean;
  /** Told of an exception that must not happen; the program decides what becomes of the process. */
  readonly onFault: (error: unknown, requestId: string) => void;
  /** Told of administrative calls and of refusals for who called; null = nobody is. */
  readonly audit: AuditPort | null;
  /** What GetNodeDebug tells; null = nothing. */
  readonly nodeDebug: NodeDebugPort | null;
  /** Told of every call, for metrics; null = nobody is. */
  readonly observer: CallObserver | null;
  /** Told of every answer of a data call or batch item, for metrics. */
  readonly onAnswer?: (path: string, type: number, elapsedMs: number) => void;
}

/** What no flag of the program sets. */
export const GRPC_DEFAULTS = {
  keepaliveIntervalMs: 20_000,
  keepaliveTimeoutMs: 10_000,
  nodeDebug: null,
} as const;

/** Something with answers that wait for the end of the turn. */
export interface Flushable {
  flush(): void;
}

/** Writers that grew beyond this are not kept (bytes). */
const WRITER_KEPT_BYTES = 1024 * 1024;
export class GrpcRuntime {
  readonly options: GrpcServerOptions;
  readonly operations: OperationsPort;
  readonly large: LargeAnswers;
  private readonly idPrefix = randomBytes(5).toString("hex");
  private idCount = 0;
  private writer = new ProtoWriter(4096);
  private waiting: Flushable[] = [];

  constructor(options: GrpcServerOptions) {
    this.options = options;
    this.operations = options.operations;
    this.large = new LargeAnswers(options.unsent);
  }

  nowMs(): number {
    return this.options.clock.monotonicMs();
  }

  /** A writer for one message that is copied out before the turn ends. */
  scratch(): ProtoWriter {
    if (this.writer.capacityBytes > WRITER_KEPT_BYTES) this.writer = new ProtoWriter(4096);
    return this.writer.truncate(0);
  }

  /** The caller's request id, or a new one. */
  requestId(head: RequestHead): string {
    return head.requestId ?? `${this.idPrefix}-${(this.idCount++).toString(36)}`;
  }

  /** `boundMs`: the server's own, for a call without a deadline or with a later one. */
  context(call: Call, boundMs: number, requestId: string): RequestContext {
    return {
      deadlineMs: this.deadlineMs(call.deadlineMs, boundMs),
      forwardHops: call.head.forwardHops,
      requestId,
      caller: call.caller.limited,
      trace: traceOf(call.head.traceparent),
    };
  }

  /** `callDeadlineMs`: on the monotonic clock; Infinity = none. */
  deadlineMs(callDeadlineMs: number, boundMs: number): number {
    return Math.min(callDeadlineMs, this.nowMs() + boundMs);
  }

  /** Has `one` flushed at the end of this turn. The caller asks once per turn and object. */
  flushSoon(one: Flushable): void {
    this.waiting.push(one);
    if (this.waiting.length === 1) setImmediate(this.flushAll);
  }

  private readonly flushAll = (): void => {
    const round = this.waiting;
    this.waiting = [];
    for (const one of round) one.flush();
  };
}

/** The call was not taken in. */
export function unadmitted(refused: "overloaded" | "shutting-down"): Failure {
  const why = refused === "overloaded" ? "another one is running" : "the node is shutting down";
  return failureOf(Status.UNAVAILABLE, `${refused}: ${why}; it had no effect`);
}

/** The cluster is not at the level since which this is carried out (contract 5.5 U8). */
export function notAtLevel(): Failure {
  const text = "not-available-at-level: the cluster is at a lower level; it had no effect";
  return failureOf(Status.FAILED_PRECONDITION, text);
}

export function malformedRequest(): Failure {
  return failureOf(
    Status.INVALID_ARGUMENT,
    "the request is not a valid message: malformed, truncated, or text that is not valid UTF-8",
  );
}
