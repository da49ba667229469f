/**
 * GetByRangeStream: all pages of a range, one message each.
 *
 * Owns the position of its one call. Invariants: 1. The next page is read when the transport has
 * taken the last one. 2. A page whose type is not Got is the last. 3. Each page is read with a
 * deadline of its own, within the call's. 4. A page counts as unsent until it was taken.
 */
import type { ServerWritableStream } from "@grpc/grpc-js";
import type { KvPageAnswer, KvRangeRequest } from "../../operations/api/requests.js";
import { decodeMessage, encodeMessage } from "../../proto/codec.js";
import {
  GrpcGetByRangePageResponse,
  GrpcGetByRangeRequest,
  GrpcKeyValueResponseType,
} from "../../proto/generated/keyvalues.js";
import { answerSizeBytes } from "../calls/answer-size.js";
import { plainPage, rangeRequest } from "./keyvaluer.js";
import type { LargeAnswers } from "../calls/large-answers.js";
import { malformedRequest, type GrpcRuntime } from "../calls/runtime.js";

export type PagesCall = ServerWritableStream<Buffer, Buffer>;

export const RANGE_STREAM_PATH = "/KeyValuer/GetByRangeStream";

/** Serves one call. */
export function streamPages(runtime: GrpcRuntime, call: PagesCall): void {
  const message = decodeMessage(GrpcGetByRangeRequest, call.request);
  if (message === null) {
    call.emit("error", malformedRequest());
    return;
  }
  const requestId = runtime.requestId(call.metadata);
  readPage(runtime, call, new UnsentPage(runtime.large, call), rangeRequest(message), requestId);
}

/** What the one page that is on its way counts for. */
class UnsentPage {
  private sizeBytes = 0;
  private closed = false;

  constructor(
    private readonly large: LargeAnswers,
    call: PagesCall,
  ) {
    large.streams.whenClosed(call.metadata, () => {
      this.taken();
      this.closed = true;
    });
  }

  /** False: there is no room for it. */
  sending(sizeBytes: number): boolean {
    if (this.closed) return true;
    if (!this.large.unsent.admits(sizeBytes)) return false;
    this.large.unsent.take(sizeBytes);
    this.sizeBytes = sizeBytes;
    return true;
  }

  taken(): void {
    this.large.unsent.give(this.sizeBytes);
    this.sizeBytes = 0;
  }
}

function readPage(
  runtime: GrpcRuntime,
  call: PagesCall,
  unsent: UnsentPage,
  request: KvRangeRequest,
  requestId: string,
): void {
  const { requestTimeoutMs } = runtime.options;
  const context = runtime.context(call, requestTimeoutMs, requestId);
  const startedMs = runtime.nowMs();
  runtime.operations.execute(request, context, (read) => {
    runtime.options.onAnswer?.(RANGE_STREAM_PATH, read.type, runtime.nowMs() - startedMs);
    if (call.cancelled) return;
    let page = read;
    if (!unsent.sending(answerSizeBytes(page))) {
      page = runtime.operations.mustRetry("kv-range", "overloaded") as KvPageAnswer;
    }
    const next = nextRequest(request, page);
    call.write(encodeMessage(GrpcGetByRangePageResponse, plainPage(page)), () => {
      unsent.taken();
      if (call.cancelled) return;
      if (next === null) call.end();
      else readPage(runtime, call, unsent, next, requestId);
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
