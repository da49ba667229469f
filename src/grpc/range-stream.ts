/**
 * GetByRangeStream: all pages of a range, one message each.
 *
 * Owns the position of its one call. Invariants: 1. The next page is read when the transport has
 * taken the last one. 2. A page whose type is not Got is the last. 3. Each page is read with a
 * deadline of its own, within the call's.
 */
import type { ServerWritableStream } from "@grpc/grpc-js";
import type { KvPageAnswer, KvRangeRequest } from "../operations/requests.js";
import { decodeMessage, encodeMessage } from "../proto/codec.js";
import {
  GrpcGetByRangePageResponse,
  GrpcGetByRangeRequest,
  GrpcKeyValueResponseType,
} from "../proto/generated/keyvalues.js";
import { plainPage, rangeRequest } from "./keyvaluer.js";
import { malformedRequest, type GrpcRuntime } from "./runtime.js";

export type PagesCall = ServerWritableStream<Buffer, Buffer>;

export const RANGE_STREAM_PATH = "/KeyValuer/GetByRangeStream";

/** Serves one call. */
export function streamPages(runtime: GrpcRuntime, call: PagesCall): void {
  const message = decodeMessage(GrpcGetByRangeRequest, call.request);
  if (message === null) {
    call.emit("error", malformedRequest());
    return;
  }
  readPage(runtime, call, rangeRequest(message));
}

function readPage(runtime: GrpcRuntime, call: PagesCall, request: KvRangeRequest): void {
  const { requestTimeoutMs } = runtime.options;
  const context = runtime.context(call.metadata, call.getDeadline(), requestTimeoutMs);
  const startedMs = runtime.nowMs();
  runtime.operations.execute(request, context, (page) => {
    runtime.options.onAnswer?.(RANGE_STREAM_PATH, page.type, runtime.nowMs() - startedMs);
    if (call.cancelled) return;
    const next = nextRequest(request, page);
    call.write(encodeMessage(GrpcGetByRangePageResponse, plainPage(page)), () => {
      if (call.cancelled) return;
      if (next === null) call.end();
      else readPage(runtime, call, next);
    });
  });
}

/** The request of the page after `page`: from behind its last key on; null when it was the last. */
function nextRequest(request: KvRangeRequest, page: KvPageAnswer): KvRangeRequest | null {
  const last = page.items.at(-1);
  const complete = page.type === GrpcKeyValueResponseType.TYPE_GOT && !page.tooLarge;
  if (!complete || !page.hasMore || last === undefined) return null;
  return { ...request, startKey: last.key, startInclusive: false };
}
