/**
 * From a data request to the function that carries it out: here if this node leads the partition,
 * else on its way to the node that does.
 *
 * Invariants: 1. A request whose partition is led here costs nothing for those that are not. 2.
 * What another node answered is given on as it is; only the hint says who forwarded (C11). 3. A
 * request that was forwarded already is not forwarded again.
 */
import { LockType } from "../base/result-types.js";
import type { DataAnswer } from "./api/answers.js";
import type { GroupAccess } from "./api/host-view.js";
import { isReading } from "./forwarding/forwarded.js";
import { type Elsewhere, Journey } from "./journey.js";
import { executeKey } from "./kv/kv.js";
import { readBucket } from "./kv/kv-bucket.js";
import { executeMany } from "./kv/kv-many.js";
import { readRange } from "./kv/kv-pages.js";
import { scanCluster, scanLocal } from "./kv/kv-scan.js";
import { readSpan } from "./kv/span-read.js";
import { askedBy, forceUnlock } from "./locking/force-unlock.js";
import { listLockAudit } from "./locking/lock-audit-list.js";
import { listLocks } from "./locking/lock-list.js";
import { executeLock, giveBackHere } from "./locks.js";
import {
  type DataRequest,
  type RequestContext,
  type RequestOf,
  type SingleRequest,
  familyOf,
  isOf,
  isSingle,
  mayForward,
} from "./api/requests.js";
import { executeAllocation, executeSequence } from "./sequences.js";
import { Attempt, type Fail } from "./serving/attempt.js";
import { byDeadline } from "./serving/by-deadline.js";
import type { Place } from "./serving/placement.js";
import type { Serving } from "./serving/serving.js";
import { NOWHERE, endAnswer } from "./api/shapes.js";
import type { Family } from "./api/kind.js";
import type { GiveBackCall } from "./wire/calls.js";

export type Finish = (answer: DataAnswer) => void;

type KeyRequest = RequestOf<"key" | "bucket">;

export class Dispatch {
  constructor(private readonly serving: Serving) {}

  /** Carries out an acceptable request that was admitted. */
  execute(given: DataRequest, context: RequestContext, finish: Finish): void {
    const { settings } = this.serving;
    const isForced = given.kind === "force-unlock";
    const request = isForced ? askedBy(given, context, settings.nodeId) : given;
    const family = familyOf(request);
    if (isSingle(request, family)) {
      if (context.wait !== undefined) finish = this.givingBack(request, context, finish);
      const elsewhere: Elsewhere = (partition, isUnowned) => {
        if (!mayForward(context)) return this.sendBack(request, finish);
        if (!this.serving.canSend(request)) return this.endAtLevel(request, finish);
        const carryOut = (onwardRequest: SingleRequest, onward: Elsewhere): void => {
          this.carryOut(onwardRequest, context, finish, onward, family);
        };
        new Journey(this.serving, request, context, finish, carryOut).goOn(partition, isUnowned);
      };
      return this.carryOut(request, context, finish, elsewhere, family);
    }
    if (!this.serving.permits(request.kind, null)) return this.endAtLevel(request, finish);
    const { serving } = this;
    if (isOf(request, "many")) return executeMany(serving, request, context, finish);
    const fail = this.failOf(request, finish, null);
    if (request.kind === "list-locks") return listLocks(serving, request, context, fail, finish);
    if (request.kind === "list-lock-audit") {
      return listLockAudit(serving, request, context, fail, finish);
    }
    if (request.kind === "kv-scan-all") return scanCluster(serving, request, context, fail, finish);
    return scanLocal(serving, request, context.deadlineMs, fail, finish);
  }

  /**
   * The end of a request that may wait: what was granted while its caller went away is given back
   * at once, unless another request of its owner may have been told of it, too; the caller, if it
   * hears anything, hears that it has nothing, or that nobody knows (P-182).
   */
  private givingBack(request: SingleRequest, context: RequestContext, finish: Finish): Finish {
    return (answer) => {
      context.wait?.heldBy(null);
      const isGranted = answer.kind === "lock" && answer.type === LockType.locked;
      if ((context.wait?.leaving ?? null) === null || !isGranted || request.kind !== "try-lock") {
        return finish(answer);
      }
      const { resource, owner, durability } = request;
      const { fencingToken } = answer;
      const call = { kind: "give-back", resource, owner, durability, fencingToken } as const;
      const tell = byDeadline(this.serving.ports, context.deadlineMs, false, (isGiven) => {
        finish(endAnswer(request.kind, isGiven ? "aborted" : "mustRetry", NOWHERE, null));
      });
      this.giveBack(call, context.requestId, tell);
    };
  }

  /** Asks the leader once: whoever leads later does not know who else was told. */
  private giveBack(call: GiveBackCall, requestId: string, done: (isGiven: boolean) => void): void {
    const { placement, leaders, calls, ports, settings } = this.serving;
    if (placement.lockPlace(call.resource)?.group.isLeader() === true) {
      return this.giveBackLed(call, done);
    }
    const route = placement.routeOf({ ...call, kind: "get-lock" });
    const to = route === null ? 0 : leaders.of(route.partition);
    if (route === null || to === 0) return ports.timer.soon(() => done(false));
    const deadlineMs = ports.clock.monotonicMs() + settings.requestTimeoutMs;
    const { partition } = route;
    calls.ask({ to, partition, request: call, requestId, deadlineMs }, (result) => {
      const { answer } = result.status === "answered" ? result : { answer: null };
      done(answer?.kind === "given-back" && answer.isGiven);
    });
  }

  /** As the leader, or not at all. */
  giveBackLed(call: GiveBackCall, done: (isGiven: boolean) => void): void {
    const place = this.serving.placement.lockPlace(call.resource);
    if (place?.group.isLeader() === true)
      return giveBackHere(this.serving, place.group, call, done);
    this.serving.ports.timer.soon(() => done(false));
  }

  /** As `single`; a bucket that lies in several ranges is read from all of them. */
  private carryOut(
    request: SingleRequest,
    context: RequestContext,
    finish: Finish,
    elsewhere: Elsewhere,
    family: Family,
  ): void {
    const { serving } = this;
    const isSpread =
      isOf(request, "bucket", family) && serving.placement.touchedRanges(request).length > 1;
    if (!isSpread || !mayForward(context)) {
      return this.single(request, context, finish, elsewhere, family);
    }
    const fail = this.failOf(request, finish, null);
    readSpan(serving, request, context, {
      done: finish,
      fail: (end, refusal) => fail(end, refusal, null),
      unowned: (partition) => elsewhere(partition, true),
    });
  }

  /**
   * Carries `request` out if this node leads its partition, else calls `elsewhere`, with nothing
   * done: in this turn, or later when the leadership is lost, or the key moved, before anything
   * happened.
   */
  single(
    request: SingleRequest,
    { deadlineMs, requestId, wait, trace }: RequestContext,
    finish: Finish,
    elsewhere: Elsewhere,
    family: Family = familyOf(request),
  ): void {
    const { placement } = this.serving;
    const fail = this.failOf(request, finish, elsewhere);
    if (isOf(request, "sequence", family)) {
      const found = placement.sequencePlace(request.name);
      if (found === null) return this.unhosted(request, fail, elsewhere);
      const { group, name } = found;
      if (!group.isLeader()) return elsewhere(group.partition, false);
      if (!this.serving.permits(request.kind, group)) return this.notAtLevel(group, fail);
      const place = placement.here(group);
      const attempt = new Attempt(this.serving, place, deadlineMs, fail, finish, trace);
      if (request.kind === "next-sequence" || request.kind === "reserve-sequence") {
        return executeAllocation(attempt, name, request);
      }
      return executeSequence(attempt, name, request);
    }
    const place = this.placeOf(request, family);
    if (place === null) return this.unhosted(request, fail, elsewhere);
    if (!place.group.isLeader()) return elsewhere(place.group.partition, false);
    if (!this.serving.permitsAll(request, place.group)) {
      return this.notAtLevel(place.group, fail);
    }
    const attempt = new Attempt(this.serving, place, deadlineMs, fail, finish, trace);
    if (request.kind === "force-unlock") return forceUnlock(attempt, request, requestId);
    if (isOf(request, "lock", family)) return executeLock(attempt, request, wait ?? null);
    if (isOf(request, "key", family)) return executeKey(attempt, request);
    return request.kind === "kv-bucket"
      ? readBucket(attempt, request)
      : readRange(attempt, request);
  }

  private endAtLevel({ kind }: DataRequest, finish: Finish): void {
    const answer = endAnswer(kind, "mustRetry", NOWHERE, "not-available-at-level");
    this.serving.ports.timer.soon(() => finish(answer));
  }

  private notAtLevel(group: GroupAccess, fail: Fail): void {
    const refusal = this.serving.belowLevel(group);
    this.serving.ports.timer.soon(() => fail("mustRetry", refusal, null));
  }

  private placeOf(request: KeyRequest | RequestOf<"lock">, family: Family): Place | null {
    const { placement } = this.serving;
    if (isOf(request, "lock", family)) return placement.lockPlace(request.resource);
    if (isOf(request, "key", family)) return placement.keyPlace(request.key);
    return placement.bucketPlace(request);
  }

  /**
   * Ends `request` without a result, or sends it `elsewhere` where nothing was done or changed:
   * this node may still lead, while a move is under way, or lead again.
   */
  private failOf(request: DataRequest, finish: Finish, elsewhere: Elsewhere | null): Fail {
    const { origins } = this.serving;
    return (end, refusal, executed) => {
      const isUnowned = end === "unowned";
      const moved = end === "moved" || isUnowned;
      const retry = moved || (end === "mustRetry" && refusal === null);
      if (executed !== null && elsewhere !== null) {
        const mayRepeat = retry && isReading(request.kind) && !executed.isLeader();
        if (moved || mayRepeat) return elsewhere(executed.partition, isUnowned);
      }
      let origin = NOWHERE;
      if (executed !== null && !(moved && !isReading(request.kind))) {
        origin = retry ? origins.retry(executed) : origins.executed(executed);
      }
      finish(endAnswer(request.kind, moved ? "mustRetry" : end, origin, refusal));
    };
  }

  /** The partition is hosted by other nodes, or there are no partitions yet. */
  private unhosted(request: SingleRequest, fail: Fail, elsewhere: Elsewhere): void {
    const route = this.serving.placement.routeOf(request);
    if (route !== null) return elsewhere(route.partition, false);
    this.serving.ports.timer.soon(() => fail("mustRetry", "not-initialized", null));
  }

  /** A request that may not go on ends with a hint to where it should have gone. */
  private sendBack(request: SingleRequest, finish: Finish): void {
    const route = this.serving.placement.routeOf(request);
    const origin = this.serving.origins.elsewhere(route);
    const answer = endAnswer(request.kind, "mustRetry", origin, null);
    this.serving.ports.timer.soon(() => finish(answer));
  }
}
