/**
 * Prefix scans: over the whole cluster (K15), a part from each node that leads partitions, and over
 * the partitions that this node leads (K17), page by page.
 *
 * Invariants: 1. What one answer shows of one partition was proved and read at one instant, by the
 * node that leads it. 2. A page is in key order over all partitions, and its cursor serves on every
 * node. 3. A page holds at least one item if there is one; an answer that is not paged is whole or
 * refused (K14). 4. A page is given only if its parts own every key of it exactly once, by their
 * own rows: a key that stays as it is comes once, whichever range moves meanwhile.
 */
import type { PartitionId } from "../../base/ids.js";
import { KvType } from "../../machine/commands/command.js";
import { decodeCursor, encodeCursor } from "../../machine/kv/cursor.js";
import type { KvPageAnswer, Refusal } from "../api/answers.js";
import type { ScanQuery } from "./kv-merge.js";
import { badCursor } from "./kv-pages.js";
import { queryText } from "../api/page-query.js";
import type { KvScanRequest, RequestContext } from "../api/requests.js";
import { PartsRead } from "./parts-read.js";
import { type PagePart, combineParts, readPart } from "./scan-part.js";
import type { OperationsSettings } from "../api/settings.js";
import type { Fail } from "../serving/attempt.js";
import { TRIES_MAX } from "../serving/leader-parts.js";
import type { Serving } from "../serving/serving.js";
import { emptyPage } from "../api/shapes.js";
import { MovePauses } from "../serving/move-waits.js";
import { isTiled } from "./span-tiles.js";

type Done = (answer: KvPageAnswer) => void;

/** What a cursor and a page of one scan rest on. */
interface Scan extends ScanQuery {
  readonly cursorQuery: string;
}

function scanOf(request: KvScanRequest, settings: OperationsSettings): Scan {
  const { kind, prefix, limit, durability } = request;
  const tombstones = kind === "kv-scan-local" && request.includeTombstones;
  const cursorQuery = queryText(kind, prefix, durability, tombstones);
  const whole = limit === 0 && request.cursor === null;
  const maxBytes = whole ? settings.responseMaxBytes : settings.pageBytes;
  return { prefix, range: null, limit, durability, tombstones, whole, maxBytes, cursorQuery };
}

/** The key above which `request` begins; "bad" for a cursor that is not one of it. */
function startOf(request: KvScanRequest, scan: Scan): Uint8Array | null | "bad" {
  if (request.cursor === null) return null;
  return decodeCursor(scan.cursorQuery, request.cursor) ?? "bad";
}

function pageAnswer(serving: Serving, scan: Scan, page: PagePart | "too-large"): KvPageAnswer {
  const origin = { servedFrom: serving.settings.clientEndpoint, route: null };
  if (page === "too-large") return emptyPage(KvType.errored, origin, null, true);
  const { items, next } = page;
  const nextCursor = next === null ? null : encodeCursor(scan.cursorQuery, next);
  return { ...emptyPage(KvType.got, origin), items, nextCursor, hasMore: next !== null };
}

/** Carries out one acceptable scan over the partitions that this node leads. */
export function scanLocal(
  serving: Serving,
  request: KvScanRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const scan = scanOf(request, serving.settings);
  const after = startOf(request, scan);
  if (after === "bad") return serving.ports.timer.soon(() => done(badCursor()));
  const groups = serving.placement.dataGroups().filter((group) => group.isServing());
  const read = { serving, groups, query: scan, after, deadlineMs, isWatched: false };
  readPart(read, true, (part) => {
    if (part.end !== "page") fail(part.end, part.refusal, null);
    else done(pageAnswer(serving, scan, combineParts([part], scan)));
  });
}

/** Carries out one acceptable scan over all data partitions. */
export function scanCluster(
  serving: Serving,
  request: KvScanRequest,
  context: RequestContext,
  fail: Fail,
  done: Done,
): void {
  const scan = scanOf(request, serving.settings);
  const after = startOf(request, scan);
  if (after === "bad") return serving.ports.timer.soon(() => done(badCursor()));
  new ClusterScan(serving, scan, context, fail, done).step(after);
}

/** Between two reads of a page that has gaps: all tries together last some seconds (ms). */
const PAUSE_MAX_MS = 250;

class ClusterScan {
  private readonly parts: PartsRead;
  private readonly pauses: MovePauses;
  private tries = 0;

  constructor(
    private readonly serving: Serving,
    private readonly scan: Scan,
    context: RequestContext,
    private readonly fail: Fail,
    private readonly done: Done,
  ) {
    const { placement, moveWaits } = serving;
    const partitions = (): readonly PartitionId[] => placement.servingPartitions();
    this.parts = new PartsRead(serving, scan, context, partitions);
    this.pauses = new MovePauses(moveWaits, context.deadlineMs, PAUSE_MAX_MS);
  }

  /** Reads on above `after`; the end never comes in the turn of the first call. */
  step(after: Uint8Array | null): void {
    const { serving, scan } = this;
    const usedVersion = serving.placement.mapVersion;
    this.parts.read({ after, isWatched: false, holdMs: 0 }, (end) => {
      if (end.kind === "failed") return this.fail(end.end, end.refusal, null);
      const page = combineParts(end.parts, scan);
      if (page !== "too-large" && !isTiled(page.spaces, scan, after, page.next)) {
        return this.again(after, usedVersion);
      }
      this.done(pageAnswer(serving, scan, page));
    });
  }

  /** A range was on its way between two of the parts: what they show together has gaps. */
  private again(after: Uint8Array | null, usedVersion: number): void {
    const retry = (refusal: Refusal | null): void => this.fail("mustRetry", refusal, null);
    if (++this.tries > TRIES_MAX) return this.serving.ports.timer.soon(() => retry(null));
    this.pauses.next(usedVersion, () => this.step(after), retry);
  }
}
