/**
 * Requests that this node carries out for others.
 *
 * Invariants: 1. Every call that has an id gets one answer, in the life of the asker that it
 * belongs to. 2. Nothing is passed on from here: what this node does not lead goes back, undone,
 * with the name of the leader. 3. The asked node checks input and admits as for its own callers;
 * who the caller is was established by the first node (contract 10.1), which is trusted by its
 * handshake.
 */
import { assert } from "../base/assert.js";
import { FIRST_DATA_PARTITION, META_PARTITION, partitionId } from "../base/ids.js";
import { NAME_MAX_BYTES, PAGE_LIMIT_MAX } from "../base/limits.js";
import { isRangeKeySpace } from "../control/ranges.js";
import type { GroupAccess } from "./api/host-view.js";
import type { Admission } from "./admission/admission.js";
import type { DataAnswer, Refusal } from "./api/answers.js";
import type { Dispatch } from "./dispatch.js";
import { isAborted } from "./forwarding/forwarded.js";
import { HeardWaits } from "./forwarding/heard-waits.js";
import { isAcceptable } from "./admission/input.js";
import { isBound, isOpenName } from "./api/names.js";
import { executeMany } from "./kv/kv-many.js";
import { finalizeHere } from "./cluster/finalize.js";
import { LEAVE_EXTRA_MS, removeMemberHere } from "./cluster/member-removal.js";
import { proposeMeta } from "./cluster/meta-change.js";
import {
  type DataRequest,
  Durability,
  type RequestContext,
  type TryLockRequest,
  WaitControl,
  isOf,
  isSingle,
  isWaiting,
} from "./api/requests.js";
import { ANNOUNCED_MS } from "../host/watching/late-commits.js";
import type { WatchPull, WatchPulled } from "../host/joint-watching/parts.js";
import { answerLockPart } from "./locking/lock-parts.js";
import { HeldWatches } from "./kv/held-watches.js";
import type { ScanQuery } from "./kv/kv-merge.js";
import { confirmWatch, holdEntries, toWireTiles } from "./kv/parts-read.js";
import { type PartResult, readPart } from "./kv/scan-part.js";
import type { Serving } from "./serving/serving.js";
import { unexecuted } from "./api/shapes.js";
import type { OperationsSettings } from "./api/settings.js";
import { Trace } from "./api/tracing.js";
import type {
  CallAnswer,
  CallItem,
  MetaCall,
  ScanPartRequest,
  SpanPartRequest,
} from "./wire/calls.js";
import type { Frame } from "./wire/frames.js";
import type { AuditPartRequest, LocksPartRequest } from "./wire/lock-parts.js";
import type { KeepPlacesCall } from "./wire/lock-places.js";

type Reply = (answer: CallAnswer) => void;

/** Asking again would not help: the request is none of this version. */
const UNREADABLE: CallAnswer = { kind: "not-taken", leaderNode: 0, unreadable: true };

/** For whoever reads a trace: why nothing was done, where the answer has no refusal. */
function undoneBy({ kind }: CallAnswer): string | null {
  return kind === "not-taken" || kind === "not-owned" ? kind : null;
}

/** True for what a page of several nodes asks of one. */
function isScanPart(request: ScanPartRequest | SpanPartRequest): boolean {
  const { prefix, limit, durability, after, partitions } = request;
  const known = durability === Durability.ephemeral || durability === Durability.persistent;
  if (!known || !isOpenName(prefix) || limit < 0 || limit > PAGE_LIMIT_MAX) return false;
  if (after !== null && after.length > NAME_MAX_BYTES) return false;
  const bounds = request.kind === "span-part" ? request.bounds : null;
  if (bounds !== null && !(isBound(bounds.startKey) && isBound(bounds.endKey))) return false;
  return partitions.length > 0 && new Set(partitions).size === partitions.length;
}

function queryOfPart(
  request: ScanPartRequest | SpanPartRequest,
  { responseMaxBytes, pageBytes }: OperationsSettings,
): ScanQuery {
  const { prefix, limit, whole, durability } = request;
  const bounds = request.kind === "span-part" ? request.bounds : null;
  const range = bounds === null ? null : { bucket: prefix, ...bounds };
  const maxBytes = whole ? responseMaxBytes : pageBytes;
  return { prefix, range, limit, maxBytes, whole, durability, tombstones: false };
}

/** What other nodes ask of those who watch here. */
export interface Watched {
  /** A node watches a lease of a partition that is led here (W11). False: it is to ask again. */
  wishClock(partition: number, leaseMs: number): boolean;
  /** `owner`: a node in its present life (W14). */
  pull(owner: string, pull: WatchPull, done: (pulled: WatchPulled) => void): void;
}

export class Executions {
  private readonly watches: HeldWatches;
  private readonly heardWaits = new HeardWaits();

  constructor(
    private readonly serving: Serving,
    private readonly dispatch: Dispatch,
    private readonly admission: Admission,
    private readonly watched: Watched,
  ) {
    this.watches = new HeldWatches(serving.ports);
  }

  /** Begins with every call of a frame from `from`. */
  take(from: number, { epoch, items }: Extract<Frame, { direction: "calls" }>): void {
    for (const { id, content } of items) {
      const knowsLocks = content?.knowsLocks === true;
      let reply: Reply = (answer) => {
        this.serving.calls.reply(from, epoch, id, answer, knowsLocks);
      };
      if (content === null) {
        reply(UNREADABLE);
        continue;
      }
      this.tell(from, content);
      const trace = content.trace === null ? undefined : new Trace(content.trace);
      if (trace !== undefined) reply = this.recorded(trace, content, reply);
      const { request } = content;
      if (request.kind === "cancel-wait") {
        const how = request.mayReturn ? "left" : "cancelled";
        this.heardWaits.leave(from, `${epoch}/${request.id}`, how);
        reply({ kind: "wait-cancelled" });
      } else if (request.kind === "watch-pull") {
        this.watched.pull(`${from}/${epoch}`, request, (pulled) => {
          reply({ kind: "watch-pulled", ...pulled });
        });
      } else if (isWaiting(request))
        this.wait(from, `${epoch}/${id}`, content, request, trace, reply);
      else this.begin(content, trace, reply);
    }
  }

  /** The link to `from` is gone. */
  linkDown(from: number): void {
    this.heardWaits.linkDown(from);
  }

  /** A request that may wait for a lock: it is counted apart, and takes as long as it waits. */
  private wait(
    from: number,
    name: string,
    { budgetMs, requestId }: CallItem,
    request: TryLockRequest,
    trace: Trace | undefined,
    reply: Reply,
  ): void {
    const { serving, admission } = this;
    const { settings, ports, waits } = serving;
    const sinceMs = ports.clock.monotonicMs();
    const waitMs = Math.min(request.waitMs ?? 0, settings.lockMaxWaitMs);
    const deadlineMs = sinceMs + Math.min(budgetMs, waitMs + settings.requestTimeoutMs);
    const control = new WaitControl(sinceMs, Math.min(sinceMs + waitMs, deadlineMs));
    const refusal = admission.refusal() ?? (waits.enterOther() ? null : "overloaded");
    const finish = this.heardWaits.begin(from, name, control, (answer) => {
      if (refusal === null) waits.leaveOther();
      reply(answer);
    });
    const context = { deadlineMs, forwardHops: 1, requestId, wait: control, trace };
    this.data(request, refusal, context, finish);
  }

  private tell(from: number, { requestId, request }: CallItem): void {
    const { logger } = this.serving.ports;
    if (logger.wantsDebug === false) return;
    logger.log("debug", "request of another node", { requestId, from, kind: request.kind });
  }

  /** As `reply`; and what is recorded of the request has ended. */
  private recorded(trace: Trace, { request, requestId }: CallItem, reply: Reply): Reply {
    const { tracer } = this.serving.ports;
    const span = tracer?.begin(trace.parent, request.kind, requestId, 1) ?? null;
    if (span === null) return reply;
    trace.span = span;
    return (answer) => {
      const refusal = "refusal" in answer ? answer.refusal : null;
      span.ended("type" in answer ? answer.type : null, refusal ?? undoneBy(answer));
      reply(answer);
    };
  }

  private begin(
    { request, budgetMs, requestId }: CallItem,
    trace: Trace | undefined,
    reply: Reply,
  ): void {
    const { settings, ports } = this.serving;
    const refusal = this.admission.enter();
    let ended = false;
    const finish: Reply = (answer) => {
      assert(!ended, "a call is answered once");
      ended = true;
      this.admission.leave();
      reply(answer);
    };
    const nowMs = ports.clock.monotonicMs();
    const deadlineMs = nowMs + Math.min(budgetMs, settings.requestTimeoutMs);
    const context = { deadlineMs, forwardHops: 1, requestId, trace };
    switch (request.kind) {
      case "scan-part":
      case "span-part":
        return this.scanPart(request, refusal, deadlineMs, finish);
      case "locks-part":
      case "audit-part":
        return this.lockPart(request, refusal, deadlineMs, finish);
      case "span-stands":
        return this.spanStands(request.watch, deadlineMs, finish);
      case "remove-member":
        return this.removal(request.nodeId, nowMs + budgetMs, refusal, finish);
      case "cancel-wait":
      case "watch-pull":
        return finish(UNREADABLE);
      case "give-back":
        return this.dispatch.giveBackLed(request, (isGiven) => {
          finish({ kind: "given-back", isGiven });
        });
      case "confirm-index":
        return this.confirmIndex(request.partition, deadlineMs, finish);
      case "clock-wish": {
        const isTaken = this.watched.wishClock(request.partition, request.leaseMs);
        return finish(isTaken ? { kind: "clock-wished" } : this.notTaken(request.partition));
      }
      case "keep-places":
        return this.keepPlaces(request, finish);
      case "finalize":
        return this.finalize(request.level, deadlineMs, refusal, finish);
      case "register-range":
      case "unregister-range":
        return this.metaChange(request, refusal, deadlineMs, finish);
      default:
        return this.data(request, refusal, context, finish);
    }
  }

  /** Whether this node is to lead or not, the next term says. */
  private keepPlaces({ partition, term, places }: KeepPlacesCall, finish: Reply): void {
    const group = this.serving.node.group(partitionId(partition));
    if (group === null) return finish(this.notTaken(partition));
    this.serving.queues(group).carry(term, places);
    finish({ kind: "places-kept" });
  }

  private confirmIndex(partition: number, deadlineMs: number, finish: Reply): void {
    const [group] = this.ledHere([partition], finish) ?? [];
    // Somebody watches there.
    group?.announceCommits(ANNOUNCED_MS);
    group?.read(deadlineMs, ({ status }) => {
      if (status !== "confirmed") return finish(this.notTaken(partition));
      finish({ kind: "index-confirmed", index: group.machine.appliedIndex });
    });
  }

  private notOwned(): CallAnswer {
    return { kind: "not-owned", mapVersion: this.serving.placement.mapVersion };
  }

  private notTaken(partition: number): CallAnswer {
    const leaderNode = this.serving.leaders.of(partition);
    return { kind: "not-taken", leaderNode, unreadable: false };
  }

  private data(
    request: DataRequest,
    refusal: Refusal | null,
    context: RequestContext,
    finish: (answer: CallAnswer) => void,
  ): void {
    const { serving, dispatch } = this;
    if (!isAcceptable(request, serving.settings)) {
      return finish(unexecuted(request, "invalidInput", null));
    }
    if (refusal !== null) return finish(unexecuted(request, "mustRetry", refusal));
    const done = (answer: DataAnswer): void => {
      // What the stop of this node ended without effect is for the next leader (contract 1.5).
      const isCut = serving.node.shuttingDown && isAborted(request, answer);
      const isLate = serving.ports.clock.monotonicMs() >= context.deadlineMs;
      finish(isCut && !isLate ? unexecuted(request, "mustRetry", "shutting-down") : answer);
    };
    if (isSingle(request)) {
      return dispatch.single(request, context, done, (partition, isUnowned) => {
        finish(isUnowned ? this.notOwned() : this.notTaken(partition));
      });
    }
    if (isOf(request, "scan") || isOf(request, "list"))
      return dispatch.execute(request, context, done);
    executeMany(serving, request, context, done, (isUnowned) => {
      if (isUnowned) return finish(this.notOwned());
      const [first] = request.items;
      const route = first === undefined ? null : serving.placement.keyRoute(first.key);
      finish(this.notTaken(route?.partition ?? META_PARTITION));
    });
  }

  private scanPart(
    request: ScanPartRequest | SpanPartRequest,
    refusal: Refusal | null,
    deadlineMs: number,
    finish: (answer: CallAnswer) => void,
  ): void {
    const { serving } = this;
    const none = { items: [], next: null } as const;
    const cut = (end: "mustRetry" | "aborted", why: Refusal | null): void => {
      if (request.kind === "scan-part") finish({ kind: request.kind, end, refusal: why, ...none });
      else finish({ kind: request.kind, end, refusal: why, ...none, spaces: [], watch: 0 });
    };
    if (refusal !== null) return cut("mustRetry", refusal);
    if (!isScanPart(request)) return finish(UNREADABLE);
    const groups = this.ledHere(request.partitions, finish);
    if (groups === null) return;
    const { after } = request;
    const query = queryOfPart(request, serving.settings);
    const isWatched = request.kind === "span-part" && request.isWatched;
    if (request.kind === "span-part") holdEntries(groups, request.holdMs);
    readPart({ serving, groups, query, after, deadlineMs, isWatched }, false, (part) => {
      if (part.end === "page") {
        // Who asks without tiles has not heard that ranges may move: half of one is no part of it.
        const isBlind = request.kind === "scan-part" && part.spaces.length > 0;
        if (!isBlind) return this.partRead(request, part, finish);
        return finish(this.notTaken(groups[0]?.partition ?? META_PARTITION));
      }
      // A scan changes nothing: it is asked for again, here or of the next leader.
      const lost = part.end === "mustRetry" && part.refusal === null;
      const moved = lost ? (groups.find((group) => !group.isLeader()) ?? groups[0]) : undefined;
      if (part.end === "aborted") return cut("mustRetry", "shutting-down");
      if (moved === undefined) cut(part.end, part.refusal);
      else finish(this.notTaken(moved.partition));
    });
  }

  private lockPart(
    request: LocksPartRequest | AuditPartRequest,
    refusal: Refusal | null,
    deadlineMs: number,
    finish: (answer: CallAnswer) => void,
  ): void {
    const led = refusal === null ? this.ledHere(request.partitions, finish) : [];
    if (led === null) return;
    answerLockPart(this.serving, led, { request, refusal, deadlineMs }, (answer) => {
      if (typeof answer === "object") return finish(answer);
      const moved = led.find((group) => !group.isLeader()) ?? led[0];
      const isLost = answer === "lost" && moved !== undefined;
      finish(isLost ? this.notTaken(moved.partition) : UNREADABLE);
    });
  }

  /** Null: one of them is not, and that was answered. */
  private ledHere(
    partitions: readonly number[],
    finish: (answer: CallAnswer) => void,
  ): readonly GroupAccess[] | null {
    const groups: GroupAccess[] = [];
    for (const id of partitions) {
      const group = this.serving.node.group(partitionId(id));
      if (group?.isLeader() !== true) {
        finish(this.notTaken(id));
        return null;
      }
      groups.push(group);
    }
    return groups;
  }

  private partRead(
    { kind }: ScanPartRequest | SpanPartRequest,
    part: Extract<PartResult, { readonly end: "page" }>,
    finish: (answer: CallAnswer) => void,
  ): void {
    const { items, next, spaces, watch } = part;
    const page = { end: "page", refusal: null, items, next } as const;
    if (kind === "scan-part") return finish({ kind, ...page });
    const held = watch === null ? 0 : this.watches.keep(watch);
    finish({ kind, ...page, spaces: toWireTiles(spaces), watch: held });
  }

  private spanStands(id: number, deadlineMs: number, finish: (answer: CallAnswer) => void): void {
    const watch = this.watches.take(id);
    const answer = (stands: boolean): void => finish({ kind: "span-stands", stands });
    if (watch === null) answer(false);
    else confirmWatch(this.serving, watch, deadlineMs, answer);
  }

  /** May take as long as the asker waits, which is more than a data request may. */
  private removal(
    nodeId: number,
    untilMs: number,
    refusal: Refusal | null,
    finish: (answer: CallAnswer) => void,
  ): void {
    const { serving } = this;
    const { clock } = serving.ports;
    const longestMs = serving.settings.drainTimeoutMs + LEAVE_EXTRA_MS;
    const deadlineMs = Math.min(untilMs, clock.monotonicMs() + longestMs);
    const moved = (): void => finish(this.notTaken(META_PARTITION));
    const stops = refusal !== null && refusal !== "overloaded";
    if (stops || !serving.node.metaGroup().isLeader()) return moved();
    removeMemberHere(serving, nodeId, deadlineMs, moved, (outcome) => {
      finish({ kind: "removal", outcome });
    });
  }

  private finalize(
    level: number,
    deadlineMs: number,
    refusal: Refusal | null,
    finish: (answer: CallAnswer) => void,
  ): void {
    const moved = (): void => finish(this.notTaken(META_PARTITION));
    const stops = refusal !== null && refusal !== "overloaded";
    if (stops || !this.serving.node.metaGroup().isLeader()) return moved();
    finalizeHere(this.serving, level, deadlineMs, moved, (result) => {
      finish({ kind: "finalize", ...result });
    });
  }

  private metaChange(
    call: MetaCall,
    refusal: Refusal | null,
    deadlineMs: number,
    finish: (answer: CallAnswer) => void,
  ): void {
    const moved = (): void => finish(this.notTaken(META_PARTITION));
    if (!isRangeKeySpace(call.keySpace)) return finish(UNREADABLE);
    if (call.kind === "register-range" && call.partitionId < FIRST_DATA_PARTITION) {
      return finish(UNREADABLE);
    }
    const stops = refusal !== null && refusal !== "overloaded";
    if (stops || !this.serving.node.metaGroup().isLeader()) return moved();
    proposeMeta(this.serving, call, deadlineMs, moved, finish);
  }
}
