/**
 * Unary calls: from the received bytes to the operation, and from its answer to the bytes sent.
 *
 * Invariants: 1. A call is answered once. 2. What is no valid message gets INVALID_ARGUMENT and
 * reaches no operation. 3. An exception in a handler ends the call with INTERNAL and is reported;
 * it is never only swallowed.
 */
import {
  type DataAnswer,
  type DataRequest,
  type RequestContext,
  isWaiting,
} from "../../operations/api/requests.js";
import { protoReader } from "../../proto/codec.js";
import type { Role } from "../h2/access.js";
import type { Call } from "../h2/call.js";
import { Status, statusName } from "../h2/constants.js";
import { type Failure, failureOf } from "../h2/failure.js";
import { answerSizeBytes, LARGE_ANSWER_BYTES } from "./answer-size.js";
import type { DataMethod } from "./method.js";
import { malformedRequest, notAtLevel, type GrpcRuntime } from "./runtime.js";

/** Takes the one message of a call. */
export type UnaryHandler = (call: Call, bytes: Buffer) => void;
type NamedHandler = (call: Call, bytes: Buffer, requestId: string) => void;

/** The handler of a data method. */
export function dataHandler(runtime: GrpcRuntime, method: DataMethod): UnaryHandler {
  const { operations, options } = runtime;
  return guarded(runtime, (call, bytes, requestId) => {
    const startedMs = runtime.nowMs();
    let request: DataRequest;
    try {
      request = method.read(protoReader(bytes));
    } catch {
      call.fail(malformedRequest());
      return;
    }
    const send = (answer: DataAnswer, elapsedMs: number): void => {
      const writer = runtime.scratch();
      method.write(answer, request, elapsedMs, writer);
      call.answer(writer.view(0));
    };
    const { large } = runtime;
    if (large.unsent.isFull) return send(operations.mustRetry(method.kind, "overloaded"), 0);
    const waitMs = isWaiting(request) ? (request.waitMs ?? 0) : 0;
    const context = runtime.context(call, options.requestTimeoutMs + waitMs, requestId);
    const wait = operations.execute(request, context, (answer: DataAnswer) => {
      const elapsedMs = runtime.nowMs() - startedMs;
      options.onAnswer?.(method.path, answer.type, elapsedMs);
      const failure = answer.refusal === "not-available-at-level" ? notAtLevel() : null;
      audited(runtime, method, call, requestId, failure);
      if (!call.isOpen) return;
      if (failure !== null) return call.fail(failure);
      if (answer.kind === "kv-page" && answer.tooLarge) {
        const text =
          method.kind === "kv-bucket"
            ? "the bucket is larger than one answer may be; read it with GetByRange"
            : "the scan is larger than one answer may be; read it page by page, with Limit";
        call.fail(failureOf(Status.RESOURCE_EXHAUSTED, text));
        return;
      }
      const sizeBytes = answerSizeBytes(answer);
      if (sizeBytes < LARGE_ANSWER_BYTES) send(answer, elapsedMs);
      else if (large.hold(call, sizeBytes)) {
        large.encodeLater(sizeBytes, () => send(answer, elapsedMs));
      } else {
        // Only reads have large answers, so nothing was done that this refusal denies.
        send(operations.mustRetry(method.kind, "overloaded"), elapsedMs);
      }
    });
    if (wait === null) return;
    // Whose connection broke may come back by another (Q8).
    call.whenGone(() => wait.leave(call.isLost ? "left" : "cancelled"));
  });
}

/** A call of the administrative services. */
export interface AdminMethod {
  readonly path: string;
  readonly role: Role;
  /** Longest time that it may take (ms). */
  readonly boundMs: number;
  handle(
    bytes: Buffer,
    context: RequestContext,
    respond: (failure: Failure | null, bytes: Uint8Array) => void,
  ): void;
}

/** Longest time an administrative call may take (ms): the longest drain of a leave, and more. */
export const ADMIN_BOUND_MS = 600_000;

/** The handler of an administrative call. */
export function adminHandler(runtime: GrpcRuntime, method: AdminMethod): UnaryHandler {
  return guarded(runtime, (call, request, requestId) => {
    const bounded = runtime.context(call, method.boundMs, requestId);
    const whenGone = (callback: () => void): void => call.whenGone(callback);
    const context = { ...bounded, whenGone };
    method.handle(request, context, (failure, bytes) => {
      audited(runtime, method, call, requestId, failure);
      if (failure === null) call.answer(bytes);
      else call.fail(failure);
    });
  });
}

/** Has the end of an administrative call written down (contract 10.7). */
function audited(
  runtime: GrpcRuntime,
  { role, path: operation }: { readonly role: Role; readonly path: string },
  { caller }: Call,
  requestId: string,
  failure: Failure | null,
): void {
  if (role !== "admin") return;
  const { name, address } = caller;
  const outcome = statusName(failure?.code ?? Status.OK);
  const told = { operation, caller: name, role, address, requestId, outcome };
  runtime.options.audit?.administered(told);
}

/** A handler whose exceptions end the call and are reported. */
function guarded(runtime: GrpcRuntime, handler: NamedHandler): UnaryHandler {
  return (call, bytes) => {
    const requestId = runtime.requestId(call.head);
    try {
      handler(call, bytes, requestId);
    } catch (error) {
      call.fail(failureOf(Status.INTERNAL, "unexpected fault"));
      runtime.options.onFault(error, requestId);
    }
  };
}
