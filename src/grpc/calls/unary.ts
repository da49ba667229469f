/**
 * Unary calls: from the received bytes to the operation, and from its answer to the bytes sent.
 *
 * Invariants: 1. A call is answered once. 2. What is no valid message gets INVALID_ARGUMENT and
 * reaches no operation. 3. An exception in a handler ends the call with INTERNAL and is reported;
 * it is never only swallowed.
 */
import { status, type Metadata, type handleUnaryCall, type ServiceError } from "@grpc/grpc-js";
import type { DataAnswer, DataRequest, RequestContext } from "../../operations/api/requests.js";
import { protoReader } from "../../proto/codec.js";
import { answerSizeBytes, LARGE_ANSWER_BYTES } from "./answer-size.js";
import type { Role } from "./access.js";
import type { DataMethod } from "./method.js";
import {
  CALLER_ADDRESS_HEADER,
  CALLER_NAME_HEADER,
  callError,
  malformedRequest,
  notAtLevel,
  type GrpcRuntime,
} from "./runtime.js";

export type RawUnaryHandler = handleUnaryCall<Buffer, Buffer>;
type NamedHandler = (...args: [...Parameters<RawUnaryHandler>, requestId: string]) => void;

/** The handler of a data method. */
export function dataHandler(runtime: GrpcRuntime, method: DataMethod): RawUnaryHandler {
  const { operations, options } = runtime;
  return guarded(runtime, (call, callback, requestId) => {
    const startedMs = runtime.nowMs();
    let request: DataRequest;
    try {
      request = method.read(protoReader(call.request));
    } catch {
      callback(malformedRequest());
      return;
    }
    const send = (answer: DataAnswer, elapsedMs: number): void => {
      const writer = runtime.scratch();
      method.write(answer, request, elapsedMs, writer);
      callback(null, writer.copy(0, writer.sizeBytes));
    };
    const { large } = runtime;
    if (large.unsent.isFull) return send(operations.mustRetry(method.kind, "overloaded"), 0);
    const context = runtime.context(call, options.requestTimeoutMs, requestId);
    operations.execute(request, context, (answer: DataAnswer) => {
      const elapsedMs = runtime.nowMs() - startedMs;
      options.onAnswer?.(method.path, answer.type, elapsedMs);
      if (answer.refusal === "not-available-at-level") return callback(notAtLevel());
      if (answer.kind === "kv-page" && answer.tooLarge) {
        const text =
          method.kind === "kv-bucket"
            ? "the bucket is larger than one answer may be; read it with GetByRange"
            : "the scan is larger than one answer may be; read it page by page, with Limit";
        callback(callError(status.RESOURCE_EXHAUSTED, text));
        return;
      }
      const sizeBytes = answerSizeBytes(answer);
      if (sizeBytes < LARGE_ANSWER_BYTES) send(answer, elapsedMs);
      else if (large.hold(call.metadata, sizeBytes)) {
        large.encodeLater(sizeBytes, () => send(answer, elapsedMs));
      } else {
        // Only reads have large answers, so nothing was done that this refusal denies.
        send(operations.mustRetry(method.kind, "overloaded"), elapsedMs);
      }
    });
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
    respond: (error: ServiceError | null, bytes: Buffer | null) => void,
  ): void;
}

/** Longest time an administrative call may take (ms): the longest drain of a leave, and more. */
export const ADMIN_BOUND_MS = 600_000;

/** What the gate set on a call. */
function sentBy(metadata: Metadata, header: string): string {
  return decodeURIComponent(String(metadata.get(header)[0] ?? ""));
}

/** The handler of an administrative call. */
export function adminHandler(runtime: GrpcRuntime, method: AdminMethod): RawUnaryHandler {
  return guarded(runtime, (call, callback, requestId) => {
    const bounded = runtime.context(call, method.boundMs, requestId);
    const whenGone = (callback: () => void): void => void call.once("cancelled", callback);
    const context = { ...bounded, whenGone };
    method.handle(call.request, context, (error, bytes) => {
      if (method.role === "admin") {
        const { options } = runtime;
        options.audit?.administered({
          operation: method.path,
          caller: sentBy(call.metadata, CALLER_NAME_HEADER),
          role: "admin",
          address: sentBy(call.metadata, CALLER_ADDRESS_HEADER),
          requestId,
          outcome: status[error === null ? status.OK : error.code],
        });
      }
      callback(error, bytes);
    });
  });
}

/**
 * A handler whose exceptions are reported: the gRPC library would turn them into a status and go
 * on.
 */
function guarded(runtime: GrpcRuntime, handler: NamedHandler): RawUnaryHandler {
  return (call, callback) => {
    const requestId = runtime.requestId(call.metadata);
    try {
      handler(call, callback, requestId);
    } catch (error) {
      callback(callError(status.INTERNAL, "unexpected fault"));
      runtime.options.onFault(error, requestId);
    }
  };
}
