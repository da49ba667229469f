/**
 * What one operation of the service is to the client: its place on each wire, how its answer reads,
 * and when it may be repeated.
 *
 * Invariants: 1. Both wires give the same `Answer`, and only `settle` judges it. 2. `settle` throws
 * a SvcError for every answer that is no result; `retryable` and `outcome` of that error decide
 * about a repeat. 3. `repeat` speaks about tries whose outcome is unknown only: what certainly had
 * no effect may always be repeated.
 */
import type { ProtoReader, ProtoWriter } from "../../proto/codec.js";
import type { ClientPlatform } from "../time/platform.js";
import type { JsonObject } from "../values/json.js";

/** The batch streams of the service. */
export type StreamKind = "sequences" | "locks" | "kv";

/** Where an operation travels on its batch stream. */
export interface StreamPlace {
  readonly kind: StreamKind;
  /** Number of the item type, and field number of the request. */
  readonly type: number;
  readonly field: number;
}

/** Kinds of objects that have a partition. */
export type RouteSpace = "sequences" | "locks" | "keys";

/** By what an operation is routed, and where its answer says so. */
export interface RoutePlace<Request> {
  readonly space: RouteSpace;
  /** Field number of the hint in the answer over gRPC. */
  readonly field: number;
  name(request: Request): string;
}

export interface RestPlace<Request> {
  readonly method: "GET" | "POST";
  path(request: Request): string;
  /** JSON text, or null for no body. */
  body(request: Request): string | null;
  /** The body without what only newer services know, where the operation can do without it. */
  plainBody?(request: Request): string;
  /** A member that tells the operation's own answer from a problem document. */
  readonly marker?: string;
}

export interface Operation<Request, Answer, Result> {
  /** For messages: `locks.tryLock`. */
  readonly name: string;
  /** The gRPC method. */
  readonly path: string;
  readonly stream: StreamPlace | null;
  readonly rest: RestPlace<Request>;
  /** Only operations on one object have it. */
  readonly route?: RoutePlace<Request>;
  /**
   * Over gRPC its answer comes in several messages, so many bytes in all at most; `fromGrpc` gets
   * them one behind the other.
   */
  readonly piecesMaxBytes?: number;
  write(request: Request, writer: ProtoWriter): void;
  fromGrpc(reader: ProtoReader, lengthBytes: number): Answer;
  fromRest(body: JsonObject): Answer;
  /** True when it changes nothing: then its failures say so, whatever happened to the answer. */
  readonly reads?: boolean;
  /**
   * True when the server may let the request wait for long: it counts apart, and no try of it is
   * given up for want of an answer while its connection lives.
   */
  waits?(request: Request): boolean;
  /** May a try whose outcome is unknown be followed by another? */
  repeat(request: Request): boolean;
  /** The request of a repeat after any try; default: the same. */
  again?(request: Request): Request;
  /** `doubtful`: an earlier try of this call may have taken effect. */
  settle(answer: Answer, request: Request, doubtful: boolean): Result;
}

/** When the tries of a call were sent (ms of the engine's clock); filled while the call runs. */
export interface CallTrace {
  /** The first try that may have taken effect and was not answered; -1 = none. */
  doubtfulSentMs: number;
  /** The try that was answered last; -1 = none yet. */
  sentMs: number;
}

export function newTrace(): CallTrace {
  return { doubtfulSentMs: -1, sentMs: -1 };
}

/** Inner options of a call. */
export interface Calling {
  readonly signal?: AbortSignal | undefined;
  readonly deadlineMs?: number | undefined;
  /** A try without answer is given up after this time and repeated elsewhere (ms). */
  readonly attemptMs?: number | undefined;
  readonly trace?: CallTrace | undefined;
  /** Once it aborts no further try begins; the one under way is waited for. */
  readonly lastTry?: AbortSignal | undefined;
}

/** What runs operations. */
export interface Caller {
  readonly platform: ClientPlatform;
  /** Deadline of calls that give none (ms). */
  readonly deadlineMs: number;
  /**
   * Waits `ms`; rejects with CancelledError when `signal` aborts first, with ClosedError when the
   * client closes.
   */
  pause(ms: number, signal?: AbortSignal): Promise<void>;
  call<Request, Answer, Result>(
    operation: Operation<Request, Answer, Result>,
    request: Request,
    calling?: Calling,
  ): Promise<Result>;
}
