/**
 * Prefix scans: over the whole cluster (K15), a part from each node that leads partitions, and over
 * the partitions that this node leads (K17), page by page.
 *
 * Invariants: 1. What one answer shows of one partition was proved and read at one instant, by the
 * node that leads it. 2. A page is in key order over all partitions, and its cursor serves on every
 * node. 3. A page holds at least one item if there is one; an answer that is not paged is whole or
 * refused (K14). 4. A part that went nowhere is asked for again, a bounded number of times: a scan
 * changes nothing.
 */
import { partitionId } from "../../base/ids.js";
import { KvType } from "../../machine/commands/command.js";
import { decodeCursor, encodeCursor } from "../../machine/kv/cursor.js";
import type { GroupAccess } from "../api/host-view.js";
import type { KvPageAnswer } from "../api/answers.js";
import type { CallResult } from "../forwarding/calls.js";
import type { ScanQuery } from "./kv-merge.js";
import { badCursor, queryText } from "./kv-pages.js";
import { type KvScanRequest, type RequestContext, mayForward } from "../api/requests.js";
import { type PagePart, combineParts, readPart } from "./scan-part.js";
import type { OperationsSettings } from "../api/settings.js";
import type { Fail } from "../serving/attempt.js";
import type { Serving } from "../serving/serving.js";
import { emptyPage } from "../api/shapes.js";
import type { ScanPartAnswer } from "../wire/calls.js";

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
  return { prefix, limit, durability, tombstones, whole, maxBytes, cursorQuery };
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
  readPart({ serving, groups, query: scan, after, deadlineMs }, true, (part) => {
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

/** Who reads which partitions. */
interface Plan {
  readonly here: readonly GroupAccess[];
  readonly there: ReadonlyMap<number, readonly number[]>;
}

/** Times that parts are asked for anew; the wait for leaders bounds it, too. */
const TRIES_MAX = 32;
/** A node that sent a part back, or lost it, is left alone so long (ms). */
const AVOID_MS = 50;

class ClusterScan {
  private tries = 0;
  private giveUpMs = 0;
  private readonly avoided = new Map<number, number>();

  constructor(
    private readonly serving: Serving,
    private readonly scan: Scan,
    private readonly context: RequestContext,
    private readonly fail: Fail,
    private readonly done: Done,
  ) {}

  /** Reads on above `after`; the end never comes in the turn of the first call. */
  step(after: Uint8Array | null): void {
    const { serving, scan, context } = this;
    const nowMs = serving.ports.clock.monotonicMs();
    const plan = this.plan(nowMs);
    if (plan === null) return this.wait(after, nowMs);
    const parts: PagePart[] = [];
    let open = plan.there.size;
    let again = false;
    const failures: ScanPartAnswer[] = [];
    const ended = (part: ScanPartAnswer | "again"): void => {
      if (part === "again") again = true;
      else if (part.end === "page") parts.push(part);
      else failures.push(part);
      open--;
      if (open > 0) return;
      const [failure] = failures;
      if (failure !== undefined && failure.end !== "page") {
        this.fail(failure.end, failure.refusal, null);
      } else if (again) this.wait(after, serving.ports.clock.monotonicMs());
      else this.combine(parts);
    };
    if (plan.here.length > 0 || plan.there.size === 0) {
      open++;
      const { deadlineMs } = context;
      readPart({ serving, groups: plan.here, query: scan, after, deadlineMs }, false, (part) => {
        const lost = part.end === "mustRetry" && part.refusal === null;
        const isLate = serving.ports.clock.monotonicMs() >= deadlineMs;
        ended(lost && mayForward(context) && !isLate ? "again" : part);
      });
    }
    for (const [to, partitions] of plan.there) {
      this.askPart(to, partitions, after, (result) => ended(this.partOf(to, result)));
    }
  }

  private combine(parts: readonly PagePart[]): void {
    const { serving, scan } = this;
    this.done(pageAnswer(serving, scan, combineParts(parts, scan)));
  }

  /** Null when a partition has no leader that could be asked now. */
  private plan(nowMs: number): Plan | null {
    const { serving } = this;
    const { node, leaders, calls } = serving;
    const here: GroupAccess[] = [];
    const there = new Map<number, number[]>();
    const isReachable = (to: number): boolean => calls.isReachable(to, nowMs);
    for (const partition of serving.placement.dataPartitions()) {
      const group = node.group(partition);
      if (group?.isLeader() === true) {
        here.push(group);
        continue;
      }
      const to = leaders.other(partition, isReachable);
      if (to === 0 || (this.avoided.get(to) ?? 0) > nowMs || !isReachable(to)) return null;
      const partitions = there.get(to);
      if (partitions === undefined) there.set(to, [partition]);
      else partitions.push(partition);
    }
    if (there.size > 0 && !mayForward(this.context)) return null;
    return { here, there };
  }

  private askPart(
    to: number,
    partitions: readonly number[],
    after: Uint8Array | null,
    then: (result: CallResult) => void,
  ): void {
    const { prefix, limit, whole, durability } = this.scan;
    const { requestId, deadlineMs } = this.context;
    const question = { partitions, prefix, after, limit, whole, durability };
    const request = { kind: "scan-part", ...question } as const;
    const partition = partitionId(partitions[0] ?? 0);
    this.serving.calls.ask({ to, partition, request, requestId, deadlineMs }, then);
  }

  private partOf(to: number, result: CallResult): ScanPartAnswer | "again" {
    const end = { kind: "scan-part", end: "mustRetry", items: [], next: null } as const;
    if (result.status === "overloaded") return { ...end, refusal: "overloaded" };
    if (result.status === "answered" && result.answer.kind === "scan-part") {
      const { answer } = result;
      const stops = answer.refusal !== null && answer.refusal !== "overloaded";
      if (!stops) return answer;
    }
    this.avoided.set(to, this.serving.ports.clock.monotonicMs() + AVOID_MS);
    return "again";
  }

  private wait(after: Uint8Array | null, nowMs: number): void {
    const { serving, context } = this;
    const { ports, leaders, node, settings } = serving;
    const retry = (): void => {
      this.fail("mustRetry", node.shuttingDown ? "shutting-down" : null, null);
    };
    if (this.giveUpMs === 0) this.giveUpMs = nowMs + settings.leaderWaitMs;
    const untilMs = Math.min(this.giveUpMs, context.deadlineMs);
    const given = serving.placement.dataPartitions().some((id) => leaders.isGivenUp(id));
    if (given || !mayForward(context) || ++this.tries > TRIES_MAX) return ports.timer.soon(retry);
    const taken = leaders.wait({
      untilMs,
      isOver: (thenMs) => this.plan(thenMs) !== null,
      resume: (came) => {
        // Somebody to ask is found at any time; whether there still is time is another matter.
        if (came && ports.clock.monotonicMs() < context.deadlineMs) this.step(after);
        else retry();
      },
    });
    if (!taken) ports.timer.soon(() => this.fail("mustRetry", "overloaded", null));
  }
}
