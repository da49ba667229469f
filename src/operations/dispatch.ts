/**
 * From a data request to the function that carries it out: here if this node leads the partition,
 * else on its way to the node that does.
 *
 * Invariants: 1. A request whose partition is led here costs nothing for those that are not. 2.
 * What another node answered is given on as it is; only the hint says who forwarded (C11). 3. A
 * request that was forwarded already is not forwarded again.
 */
import type { PartitionId } from "../base/ids.js";
import type { DataAnswer } from "./api/answers.js";
import { Forwarder } from "./forwarding/forwarder.js";
import { forwarded, isAnswerTo, isReading } from "./forwarding/forwarded.js";
import { executeKey } from "./kv/kv.js";
import { readBucket } from "./kv/kv-bucket.js";
import { executeMany } from "./kv/kv-many.js";
import { readRange } from "./kv/kv-pages.js";
import { scanCluster, scanLocal } from "./kv/kv-scan.js";
import { executeLock } from "./locks.js";
import {
  type DataRequest,
  type RequestContext,
  type RequestOf,
  type SingleRequest,
  bucketOf,
  familyOf,
  isOf,
  isSingle,
  mayForward,
} from "./api/requests.js";
import { executeAllocation, executeSequence } from "./sequences.js";
import { Attempt, type Fail } from "./serving/attempt.js";
import type { Place } from "./serving/placement.js";
import type { Serving } from "./serving/serving.js";
import { NOWHERE, endAnswer } from "./api/shapes.js";
import type { Family } from "./api/kind.js";

export type Finish = (answer: DataAnswer) => void;

type KeyRequest = RequestOf<"key" | "bucket">;

export class Dispatch {
  constructor(private readonly serving: Serving) {}

  /** Carries out an acceptable request that was admitted. */
  execute(request: DataRequest, context: RequestContext, finish: Finish): void {
    const family = familyOf(request);
    if (isSingle(request, family)) {
      const elsewhere = (partition: PartitionId): void => {
        if (mayForward(context)) this.forward(request, partition, context, finish);
        else this.sendBack(request, finish);
      };
      return this.single(request, context.deadlineMs, finish, elsewhere, family);
    }
    if (!this.serving.permits(request.kind, null)) {
      const answer = endAnswer(request.kind, "mustRetry", NOWHERE, "not-available-at-level");
      return this.serving.ports.timer.soon(() => finish(answer));
    }
    const { serving } = this;
    if (isOf(request, "many")) return executeMany(serving, request, context, finish);
    const fail = this.failOf(request, finish, null);
    if (request.kind === "kv-scan-all") return scanCluster(serving, request, context, fail, finish);
    return scanLocal(serving, request, context.deadlineMs, fail, finish);
  }

  /**
   * Carries `request` out if this node leads its partition, else calls `elsewhere`, with nothing
   * done: in this turn, or later when the leadership is lost before anything happened.
   */
  single(
    request: SingleRequest,
    deadlineMs: number,
    finish: Finish,
    elsewhere: (partition: PartitionId) => void,
    family: Family = familyOf(request),
  ): void {
    const { placement } = this.serving;
    const fail = this.failOf(request, finish, elsewhere);
    if (isOf(request, "sequence", family)) {
      const found = placement.sequencePlace(request.name);
      if (found === null) return this.unhosted(request, fail, elsewhere);
      const { group, name } = found;
      if (!group.isLeader()) return elsewhere(group.partition);
      if (!this.serving.permits(request.kind, group)) return this.notAtLevel(fail);
      const place = placement.here(group);
      const attempt = new Attempt(this.serving, place, deadlineMs, fail, finish);
      if (request.kind === "next-sequence" || request.kind === "reserve-sequence") {
        return executeAllocation(attempt, name, request);
      }
      return executeSequence(attempt, name, request);
    }
    const place = this.placeOf(request, family);
    if (place === null) return this.unhosted(request, fail, elsewhere);
    if (!place.group.isLeader()) return elsewhere(place.group.partition);
    if (!this.serving.permits(request.kind, place.group)) return this.notAtLevel(fail);
    const attempt = new Attempt(this.serving, place, deadlineMs, fail, finish);
    if (isOf(request, "lock", family)) return executeLock(attempt, request);
    if (isOf(request, "key", family)) return executeKey(attempt, request);
    return request.kind === "kv-bucket"
      ? readBucket(attempt, request)
      : readRange(attempt, request);
  }

  private notAtLevel(fail: Fail): void {
    this.serving.ports.timer.soon(() => fail("mustRetry", "not-available-at-level", null));
  }

  private placeOf(request: KeyRequest | RequestOf<"lock">, family: Family): Place | null {
    const { placement } = this.serving;
    if (isOf(request, "lock", family)) return placement.lockPlace(request.resource);
    if (isOf(request, "key", family)) return placement.keyPlace(request.key);
    return placement.bucketPlace(bucketOf(request));
  }

  /**
   * Ends `request` without a result, or sends it `elsewhere` where nothing was done or changed:
   * this node may still lead, while a move is under way, or lead again.
   */
  private failOf(
    request: DataRequest,
    finish: Finish,
    elsewhere: ((partition: PartitionId) => void) | null,
  ): Fail {
    const { origins } = this.serving;
    return (end, refusal, executed) => {
      const moved = end === "moved";
      const retry = moved || (end === "mustRetry" && refusal === null);
      if (executed !== null && elsewhere !== null) {
        const mayRepeat = retry && isReading(request.kind) && !executed.isLeader();
        if (moved || mayRepeat) return elsewhere(executed.partition);
      }
      let origin = NOWHERE;
      if (executed !== null && !(moved && !isReading(request.kind))) {
        origin = retry ? origins.retry(executed) : origins.executed(executed);
      }
      finish(endAnswer(request.kind, moved ? "mustRetry" : end, origin, refusal));
    };
  }

  /** The partition is hosted by other nodes, or there are no partitions yet. */
  private unhosted(
    request: SingleRequest,
    fail: Fail,
    elsewhere: (partition: PartitionId) => void,
  ): void {
    const route = this.serving.placement.routeOf(request);
    if (route !== null) return elsewhere(route.partition);
    this.serving.ports.timer.soon(() => fail("mustRetry", "not-initialized", null));
  }

  /** A request that may not go on ends with a hint to where it should have gone. */
  private sendBack(request: SingleRequest, finish: Finish): void {
    const route = this.serving.placement.routeOf(request);
    const origin = this.serving.origins.elsewhere(route);
    const answer = endAnswer(request.kind, "mustRetry", origin, null);
    this.serving.ports.timer.soon(() => finish(answer));
  }

  private forward(
    request: SingleRequest,
    partition: PartitionId,
    context: RequestContext,
    finish: Finish,
  ): void {
    const { serving } = this;
    const { requestId, deadlineMs } = context;
    const mustRetry = (): void => {
      const origin = serving.origins.elsewhere(serving.placement.routeOf(request));
      finish(endAnswer(request.kind, "mustRetry", origin, null));
    };
    new Forwarder(serving, {
      partition,
      request,
      requestId,
      deadlineMs,
      reading: isReading(request.kind),
      here: (_group, moved) => this.single(request, deadlineMs, finish, moved),
      answered: (answer) => {
        if (isAnswerTo(request, answer)) finish(forwarded(answer, serving.settings.routingHints));
        else mustRetry();
      },
      failed: (refusal) => {
        if (refusal === null) mustRetry();
        else finish(endAnswer(request.kind, "mustRetry", NOWHERE, refusal));
      },
    }).go();
  }
}
