/**
 * GetByRangeStream: all pages of a range, one message each.
 *
 * Owns the position of its one call. Invariants: 1. The next page is read when the transport has
 * taken the last one. 2. A page whose type is not Got is the last. 3. Each page is read with a
 * deadline of its own, within the call's. 4. A page counts as unsent until it was taken.
 */
import type { KvPageAnswer, KvRangeRequest } from "../../operations/api/requests.js";
import { decodeMessage, encodeMessage } from "../../proto/codec.js";
import {
  GrpcGetByRangePageResponse,
  GrpcGetByRangeRequest,
  GrpcKeyValueResponseType,
} from "../../proto/generated/keyvalues.js";
import { answerSizeBytes } from "../calls/answer-size.js";
import { plainPage, rangeRequest } from "./keyvaluer.js";
import { malformedRequest, type GrpcRuntime } from "../calls/runtime.js";
import type { Call, CallHandler } from "../h2/call.js";

export const RANGE_STREAM_PATH = "/KeyValuer/GetByRangeStream";

/** Serves one call. */
export function streamPages(runtime: GrpcRuntime, call: Call, bytes: Buffer): void {
  const message = decodeMessage(GrpcGetByRangeRequest, bytes);
  if (message === null) {
    call.fail(malformedRequest());
    return;
  }
  const pages = new Pages(runtime, call, rangeRequest(message));
  call.tell(pages);
  pages.read();
}

/** The pages of one call, one after the other. */
class Pages implements CallHandler {
  private readonly requestId: string;
  /** What the one page that is on its way counts for (bytes). */
  private unsentBytes = 0;

  constructor(
    private readonly runtime: GrpcRuntime,
    private readonly call: Call,
    /** What is read next; null: nothing. */
    private next: KvRangeRequest | null,
  ) {
    this.requestId = runtime.requestId(call.head);
  }

  /** Reads and sends the next page. */
  read(): void {
    const { runtime, call, next: request } = this;
    if (request === null) return call.end();
    const { operations, options, large } = runtime;
    const context = runtime.context(call, options.requestTimeoutMs, this.requestId);
    const startedMs = runtime.nowMs();
    operations.execute(request, context, (read) => {
      options.onAnswer?.(RANGE_STREAM_PATH, read.type, runtime.nowMs() - startedMs);
      if (!call.isOpen) return;
      let page = read as KvPageAnswer;
      const sizeBytes = answerSizeBytes(page);
      if (large.unsent.admits(sizeBytes)) {
        large.unsent.take(sizeBytes);
        this.unsentBytes = sizeBytes;
      } else page = operations.mustRetry("kv-range", "overloaded") as KvPageAnswer;
      this.next = nextRequest(request, page);
      if (call.send(encodeMessage(GrpcGetByRangePageResponse, plainPage(page)))) this.taken();
    });
  }

  message(): void {
    // The one message has been read.
  }

  halfClosed(): void {
    // Nothing follows on it.
  }

  taken(): void {
    this.giveBack();
    if (this.call.isOpen) this.read();
  }

  gone(): void {
    this.giveBack();
  }

  private giveBack(): void {
    this.runtime.large.unsent.give(this.unsentBytes);
    this.unsentBytes = 0;
  }
}

/** The request of the page after `page`: from behind its last key on; null when it was the last. */
function nextRequest(request: KvRangeRequest, page: KvPageAnswer): KvRangeRequest | null {
  const last = page.items.at(-1);
  const complete = page.type === GrpcKeyValueResponseType.TYPE_GOT && !page.tooLarge;
  if (!complete || !page.hasMore || last === undefined) return null;
  return { ...request, startKey: last.key, startInclusive: false };
}
