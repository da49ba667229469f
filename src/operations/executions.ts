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
import { isAcceptable } from "./admission/input.js";
import { isOpenName } from "./api/names.js";
import { executeMany } from "./kv/kv-many.js";
import { finalizeHere } from "./cluster/finalize.js";
import { LEAVE_EXTRA_MS, removeMemberHere } from "./cluster/member-removal.js";
import { proposeMeta } from "./cluster/meta-change.js";
import {
  type DataRequest,
  Durability,
  type RequestContext,
  isOf,
  isSingle,
} from "./api/requests.js";
import { readPart } from "./kv/scan-part.js";
import type { Serving } from "./serving/serving.js";
import { unexecuted } from "./api/shapes.js";
import type { CallAnswer, CallItem, MetaCall, ScanPartRequest } from "./wire/calls.js";
import type { Frame } from "./wire/frames.js";

type Reply = (answer: CallAnswer) => void;

/** Asking again would not help: the request is none of this version. */
const UNREADABLE: CallAnswer = { kind: "not-taken", leaderNode: 0, unreadable: true };

/** True for what a scan of the cluster asks of a node. */
function isScanPart({ prefix, limit, durability, after, partitions }: ScanPartRequest): boolean {
  const known = durability === Durability.ephemeral || durability === Durability.persistent;
  if (!known || !isOpenName(prefix) || limit < 0 || limit > PAGE_LIMIT_MAX) return false;
  if (after !== null && after.length > NAME_MAX_BYTES) return false;
  return partitions.length > 0 && new Set(partitions).size === partitions.length;
}

export class Executions {
  constructor(
    private readonly serving: Serving,
    private readonly dispatch: Dispatch,
    private readonly admission: Admission,
  ) {}

  /** Begins with every call of a frame from `from`. */
  take(from: number, { epoch, items }: Extract<Frame, { direction: "calls" }>): void {
    for (const { id, content } of items) {
      const reply: Reply = (answer) => this.serving.calls.reply(from, epoch, id, answer);
      if (content === null) reply(UNREADABLE);
      else {
        this.tell(from, content);
        this.begin(content, reply);
      }
    }
  }

  private tell(from: number, { requestId, request }: CallItem): void {
    const { logger } = this.serving.ports;
    if (logger.wantsDebug === false) return;
    logger.log("debug", "request of another node", { requestId, from, kind: request.kind });
  }

  private begin({ request, budgetMs, requestId }: CallItem, reply: Reply): void {
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
    const context = { deadlineMs, forwardHops: 1, requestId };
    switch (request.kind) {
      case "scan-part":
        return this.scanPart(request, refusal, deadlineMs, finish);
      case "remove-member":
        return this.removal(request.nodeId, nowMs + budgetMs, refusal, finish);
      case "finalize":
        return this.finalize(request.level, deadlineMs, refusal, finish);
      case "register-range":
      case "unregister-range":
        return this.metaChange(request, refusal, deadlineMs, finish);
      default:
        return this.data(request, refusal, context, finish);
    }
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
      return dispatch.single(request, context.deadlineMs, done, (partition) => {
        finish(this.notTaken(partition));
      });
    }
    if (isOf(request, "scan")) return dispatch.execute(request, context, done);
    executeMany(serving, request, context, done, () => {
      const [first] = request.items;
      const route = first === undefined ? null : serving.placement.keyRoute(first.key);
      finish(this.notTaken(route?.partition ?? META_PARTITION));
    });
  }

  private scanPart(
    request: ScanPartRequest,
    refusal: Refusal | null,
    deadlineMs: number,
    finish: (answer: CallAnswer) => void,
  ): void {
    const { serving } = this;
    if (refusal !== null) {
      return finish({ kind: "scan-part", end: "mustRetry", refusal, items: [], next: null });
    }
    if (!isScanPart(request)) return finish(UNREADABLE);
    const groups: GroupAccess[] = [];
    for (const id of request.partitions) {
      const group = serving.node.group(partitionId(id));
      if (group?.isLeader() !== true) return finish(this.notTaken(id));
      groups.push(group);
    }
    const { prefix, limit, whole, durability, after } = request;
    const { responseMaxBytes, pageBytes } = serving.settings;
    const maxBytes = whole ? responseMaxBytes : pageBytes;
    const query = { prefix, limit, maxBytes, whole, durability, tombstones: false };
    readPart({ serving, groups, query, after, deadlineMs }, false, (part) => {
      // A scan changes nothing: it is asked for again, here or of the next leader.
      const lost = part.end === "mustRetry" && part.refusal === null;
      const moved = lost ? (groups.find((group) => !group.isLeader()) ?? groups[0]) : undefined;
      if (part.end === "aborted") {
        return finish({ ...part, end: "mustRetry", refusal: "shutting-down" });
      }
      finish(moved === undefined ? part : this.notTaken(moved.partition));
    });
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
