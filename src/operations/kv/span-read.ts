/**
 * Reads of a bucket that lies in several ranges: get-by-bucket (K13) and pages of get-by-range
 * (K16), each one view of all partitions concerned.
 *
 * A double collect: in a first round every node reads its part and begins to watch it; in a second
 * one, begun when all parts have come, each proves again that it leads and says whether its part
 * stands. If all do, what was read was the state of every instant between the rounds. Invariants:
 * 1. Nothing is shown without a second round. 2. A view is shown only if its parts own every key of
 * it exactly once. 3. It is tried again until the deadline of the request, and by nothing shorter
 * (C12): after some tries the partitions are asked to keep their entries back, for as long as two
 * rounds may take here, and between two such tries lies the time for which they refuse that. 4. An
 * entry whose lease ended before the read began is never shown.
 */
import { partitionId, type PartitionId } from "../../base/ids.js";
import {
  ENTRY_PAUSE_MAX_MS,
  ENTRY_REST_FACTOR,
  RANGE_PAGE_LIMIT_DEFAULT,
} from "../../base/limits.js";
import { KvType } from "../../machine/commands/command.js";
import type { KvPageAnswer } from "../api/answers.js";
import { rangeAfter, rangeCursor, rangeQueryOf, wholeBucket } from "../api/page-query.js";
import { type RequestContext, type RequestOf, bucketOf } from "../api/requests.js";
import { emptyPage } from "../api/shapes.js";
import type { OperationsSettings } from "../api/settings.js";
import type { CommonEnd } from "../api/shapes.js";
import type { Refusal } from "../api/answers.js";
import type { Serving } from "../serving/serving.js";
import type { ScanQuery } from "./kv-merge.js";
import { PartsRead, type ReadPart } from "./parts-read.js";
import { type PagePart, combineParts } from "./scan-part.js";
import { isTiled } from "./span-tiles.js";

export interface SpanEnds {
  readonly done: (answer: KvPageAnswer) => void;
  readonly fail: (end: CommonEnd, refusal: Refusal | null) => void;
  /** The ranges are not where they were looked for: to be placed anew. */
  readonly unowned: (partition: PartitionId) => void;
}

type BucketRequest = RequestOf<"bucket">;

/** Double collects while the partitions go on. */
const TRIES_FREE = 4;
/** So long the partitions are asked to hold entries back (ms), by how long the last try took. */
const HOLD_FACTOR = 4;
const HOLD_MIN_MS = 50;

function queryOf(request: BucketRequest, settings: OperationsSettings): ScanQuery {
  const common = { prefix: bucketOf(request), tombstones: false, durability: request.durability };
  if (request.kind === "kv-bucket") {
    const maxBytes = settings.responseMaxBytes;
    return { ...common, range: wholeBucket(request.bucket), limit: 0, maxBytes, whole: true };
  }
  const limit = request.limit === 0 ? RANGE_PAGE_LIMIT_DEFAULT : request.limit;
  const { pageBytes: maxBytes } = settings;
  return { ...common, range: rangeQueryOf(request), limit, maxBytes, whole: false };
}

/** Carries out one acceptable request about a bucket that lies in several ranges. */
export function readSpan(
  serving: Serving,
  request: BucketRequest,
  context: RequestContext,
  ends: SpanEnds,
): void {
  const after = request.kind === "kv-bucket" ? null : rangeAfter(request);
  if (after === "bad") {
    return serving.ports.timer.soon(() => ends.fail("invalidInput", null));
  }
  new SpanRead(serving, request, context, after, ends).begin();
}

class SpanRead {
  private readonly query: ScanQuery;
  private readonly parts: PartsRead;
  private tries = 0;
  /** Of the last try (ms). */
  private tookMs = 0;
  private beganMs = 0;

  constructor(
    private readonly serving: Serving,
    private readonly request: BucketRequest,
    private readonly context: RequestContext,
    private readonly after: Uint8Array | null,
    private readonly ends: SpanEnds,
  ) {
    this.query = queryOf(request, serving.settings);
    this.parts = new PartsRead(serving, this.query, context, () => this.partitions());
  }

  private partitions(): readonly PartitionId[] {
    const ranges = this.serving.placement.touchedRanges(this.request);
    return [...new Set(ranges.map((range) => partitionId(range.partitionId)))];
  }

  begin(): void {
    this.tries++;
    this.beganMs = this.serving.ports.clock.monotonicMs();
    const { after, ends } = this;
    const holdMs = this.tries > TRIES_FREE ? this.holdMs : 0;
    this.parts.read({ after, isWatched: true, holdMs }, (end) => {
      if (end.kind === "failed") ends.fail(end.end, end.refusal);
      else this.collected(end.parts);
    });
  }

  private collected(parts: readonly ReadPart[]): void {
    const { query, after, ends } = this;
    const page = combineParts(parts, query);
    const isWhole = page !== "too-large" && isTiled(page.spaces, query, after, page.next);
    if (isWhole) return this.confirm(parts, page);
    for (const part of parts) part.close();
    if (page === "too-large") ends.done(this.answer(page));
    else ends.unowned(this.partitions()[0] ?? partitionId(0));
  }

  /** The second round. */
  private confirm(parts: readonly ReadPart[], page: PagePart): void {
    let open = parts.length;
    let stands = true;
    for (const part of parts) {
      part.confirm((isSame) => {
        stands &&= isSame;
        open--;
        if (open > 0) return;
        if (stands) this.ends.done(this.answer(page));
        else this.again();
      });
    }
  }

  private get holdMs(): number {
    return Math.min(
      ENTRY_PAUSE_MAX_MS,
      Math.max(HOLD_MIN_MS, Math.ceil(HOLD_FACTOR * this.tookMs)),
    );
  }

  private again(): void {
    const { clock, timer, entropy } = this.serving.ports;
    const nowMs = clock.monotonicMs();
    this.tookMs = nowMs - this.beganMs;
    if (this.tries < TRIES_FREE) return this.begin();
    // Partitions that rest from such a pause at different times would never hold all entries back
    // at once: whoever asks only when all have rested finds all of them willing. Readers that met
    // once do not meet again.
    const restMs = this.tries === TRIES_FREE ? 0 : (1 + ENTRY_REST_FACTOR) * this.holdMs;
    const waitMs = restMs + (entropy.uint32() % HOLD_MIN_MS);
    if (nowMs + waitMs >= this.context.deadlineMs) return this.ends.fail("mustRetry", null);
    timer.after(waitMs, () => this.begin());
  }

  private answer(page: PagePart | "too-large"): KvPageAnswer {
    const { request } = this;
    const origin = { servedFrom: this.serving.settings.clientEndpoint, route: null };
    if (page === "too-large") return emptyPage(KvType.errored, origin, null, true);
    const { items, next } = page;
    const nextCursor =
      next === null || request.kind === "kv-bucket" ? null : rangeCursor(request, next);
    return { ...emptyPage(KvType.got, origin), items, nextCursor, hasMore: next !== null };
  }
}
