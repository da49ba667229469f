/**
 * The lock operations: try-lock, which may wait, try-extend, try-unlock, get-info.
 *
 * Invariants: 1. Persistent changes are decided in apply, ephemeral ones in the leader's table in
 * the turn of a confirmed round (L16): never from a cache alone. 2. get-info tells nothing about a
 * lease end that the log has not seen. 3. While somebody waits for a lock, nobody else is granted
 * it or finds it free (Q3): a release takes the grant of the next one along, and whatever could
 * find a lease ended goes behind the try of the first one.
 */
import { present } from "../base/assert.js";
import { Int64 } from "../base/int64.js";
import { type Decision, leaseLeft, lockReads } from "../host/waiting/lock-decisions.js";
import type { LockQueues } from "../host/waiting/lock-queues.js";
import { NO_TOKEN, type Queue } from "../host/waiting/queue.js";
import { commandBytes } from "../host/waiting/waiting.js";
import { type LockCommand, type LockOutcome, LockType } from "../machine/commands/command.js";
import { isOrphaned } from "../machine/locks/succession.js";
import type { LockReading } from "../machine/decision/reading.js";
import type { LockAnswer } from "./api/answers.js";
import {
  Durability,
  type GetLockRequest,
  type LockRequest,
  type TryLockRequest,
  type TryUnlockRequest,
  type WaitControl,
} from "./api/requests.js";
import type { GroupAccess } from "./api/host-view.js";
import { lockAnswer } from "./api/shapes.js";
import { LockWait } from "./locking/lock-wait.js";
import type { Serving } from "./serving/serving.js";
import type { GiveBackCall } from "./wire/calls.js";
import { Attempt, type Fail } from "./serving/attempt.js";
import { byDeadline } from "./serving/by-deadline.js";

type LockAttempt = Attempt<LockAnswer>;

/** Gives back what was granted by this leader to a request that is gone. */
export function giveBackHere(
  serving: Serving,
  group: GroupAccess,
  { resource, owner, durability, fencingToken }: GiveBackCall,
  done: (isGiven: boolean) => void,
): void {
  const command = { kind: "try-unlock", resource, owner } as const;
  const isOfTable = durability === Durability.ephemeral;
  serving.queues(group).giveBackLate(command, isOfTable, fencingToken.toBigInt(), done);
}

/** Carries out one acceptable lock request. `wait`: of one that may wait. */
export function executeLock(
  attempt: LockAttempt,
  request: LockRequest,
  wait: WaitControl | null,
): void {
  if (request.kind === "try-lock") {
    return wait === null ? tryLock(attempt, request) : LockWait.begin(attempt, request, wait);
  }
  if (request.kind === "get-lock") return getLock(attempt, request);
  const queue = queuesOf(attempt).find(request.resource, isEphemeral(request));
  const isWaitedFor = queue !== null && queue.living > 0;
  if (request.kind === "try-unlock") {
    // Heirs that are gone are not to follow either.
    const isFollowed = isWaitedFor || queue?.succession?.isActive === true;
    return isFollowed ? release(attempt, request, queue) : changeLock(attempt, request);
  }
  if (isWaitedFor) queuesOf(attempt).goFirst(queue);
  changeLock(attempt, request);
}

function queuesOf({ serving, group }: LockAttempt): LockQueues {
  return serving.queues(group);
}

function isEphemeral({ durability }: LockRequest): boolean {
  return durability === Durability.ephemeral;
}

/** The queue of the lock, if somebody waits for it. */
function queueOf(attempt: LockAttempt, request: LockRequest): Queue | null {
  const queue = queuesOf(attempt).find(request.resource, isEphemeral(request));
  return queue !== null && queue.living > 0 ? queue : null;
}

/** One caller more who tries for the resource; too many are turned away before anything is done. */
function tryLock(attempt: LockAttempt, request: TryLockRequest): void {
  const { serving, group, origin, deadlineMs, fail, trace } = attempt;
  const { contention, ports } = serving;
  const { resource } = request;
  if (!contention.enter(resource)) {
    return ports.timer.soon(() => fail("mustRetry", "overloaded", null));
  }
  const failed: Fail = (end, refusal, executed) => {
    contention.leave(resource);
    fail(end, refusal, executed);
  };
  const place = { group, origin };
  const done = (answer: LockAnswer): void => {
    contention.leave(resource);
    attempt.done(answer);
  };
  const counted = new Attempt<LockAnswer>(serving, place, deadlineMs, failed, done, trace);
  const queue = queueOf(attempt, request);
  if (queue === null || queue.isHeldBy(request.owner)) return tryBehind(counted, request);
  // Somebody waits: the lock is somebody else's, or will be theirs (Q3).
  counted.confirm(() => {
    const still = queueOf(attempt, request);
    if (still === null || still.isHeldBy(request.owner)) return tryBehind(counted, request);
    counted.done(withQueue(counted, request, lockAnswer(LockType.busy, Int64.ZERO, origin)));
  });
}

/** Tries, behind whoever waits if the lease may be over. */
function tryBehind(attempt: LockAttempt, request: TryLockRequest): void {
  const queue = queueOf(attempt, request);
  if (queue !== null) queuesOf(attempt).goFirst(queue);
  changeLock(attempt, request);
}

/** In the form that every level knows, unless it tells more. */
function commandOf(request: Exclude<LockRequest, GetLockRequest>): LockCommand {
  const { resource, owner } = request;
  if (request.kind === "try-unlock") {
    const token = request.fencingToken?.toBigInt() ?? null;
    if (token === null) return { kind: "try-unlock", resource, owner };
    return { kind: "unlock-grant", resource, owner, token };
  }
  const { kind, expiresMs, note = null } = request;
  if (kind === "try-lock") {
    if (note === null) return { kind, resource, owner, expiresMs };
    return { kind: "lock-with-note", resource, owner, expiresMs, note };
  }
  const token = request.fencingToken?.toBigInt() ?? null;
  if (token === null && note === null) return { kind, resource, owner, expiresMs };
  return { kind: "extend-grant", resource, owner, expiresMs, token, note };
}

function changeLock(attempt: LockAttempt, request: Exclude<LockRequest, GetLockRequest>): void {
  const command = commandOf(request);
  const queues = queuesOf(attempt);
  const decided = (outcome: LockOutcome): void => {
    const queue = queues.find(request.resource, isEphemeral(request));
    const isHeld = outcome.type === LockType.locked || outcome.type === LockType.extended;
    if (queue !== null) queues.noted(queue, isHeld ? outcome.token : NO_TOKEN);
    changed(attempt, request, outcome);
  };
  const { resource, owner } = request;
  if (request.kind !== "try-unlock") queues.askedBy(resource, isEphemeral(request), owner);
  if (isEphemeral(request)) return attempt.decideEphemeral(command, "lock", decided);
  const ended = queues.begun(queues.find(resource, false), command);
  attempt.decide(command, commandBytes(command), "lock", decided, ended);
}

/** A release while somebody waits: the next grant goes along. */
function release(attempt: LockAttempt, request: TryUnlockRequest, queue: Queue): void {
  const { group, deadlineMs, fail } = attempt;
  const command = commandOf(request);
  const call = {
    command,
    sizeBytes: commandBytes(command),
    deadlineMs,
    marks: attempt.marks,
    then: (decision: Decision): void => {
      switch (decision.kind) {
        case "decided":
          return changed(attempt, request, decision);
        case "moved":
          return attempt.moved();
        case "unknown":
          return attempt.retry();
        case "aborted":
          return fail("aborted", null, group);
        case "refused":
          return fail("mustRetry", decision.reason, null);
      }
    },
  };
  if (command.kind !== "unlock-grant" || isEphemeral(request)) {
    return queuesOf(attempt).release(queue, call, "entry");
  }
  queuesOf(attempt).releaseGrant(queue, command.owner, command.token, call);
}

/** A change was decided. */
function changed(
  attempt: LockAttempt,
  request: Exclude<LockRequest, GetLockRequest>,
  decided: { readonly type: number; readonly token: bigint },
): void {
  if (decided.type === LockType.mustRetry) attempt.retry();
  else attempt.done(changeAnswer(attempt, request, decided));
}

/** `token` as of the grant that was made, confirmed or ended. */
function changeAnswer(
  attempt: LockAttempt,
  request: Exclude<LockRequest, GetLockRequest>,
  { type, token }: { readonly type: number; readonly token: bigint },
): LockAnswer {
  const { serving, group, origin } = attempt;
  if (type === LockType.locked) serving.ports.meter.lockGranted();
  const isHeld = type === LockType.locked || type === LockType.extended;
  const isDescribed = isHeld || type === LockType.unlocked;
  const answer = lockAnswer(type, isDescribed ? Int64.fromBigInt(token) : Int64.ZERO, origin);
  if (!serving.waitsIn(group)) return answer;
  const told = withQueue(attempt, request, answer);
  if (!isHeld) return told;
  const reads = lockReads(group, isEphemeral(request));
  const reading = reads?.getLock(request.resource, 0) ?? null;
  if (reading === null) return told;
  // Decided at this lease time or before: counted from when the request came it is never too long.
  const leaseMs = isEphemeral(request) ? Math.floor(group.leaseNowMs()) : group.machine.leaseMs;
  return { ...told, leaseLeftMs: leaseLeft({ type, token }, reading, leaseMs) };
}

/** `answer` with who waits for the lock. */
function withQueue(attempt: LockAttempt, request: LockRequest, answer: LockAnswer): LockAnswer {
  const { resource, owner = null } = request;
  const { waiters, position } = queuesOf(attempt).standing(resource, isEphemeral(request), owner);
  return { ...answer, waitedMs: 0, waiters, position };
}

function getLock(attempt: LockAttempt, request: GetLockRequest): void {
  if (isEphemeral(request)) return getEphemeralLock(attempt, request);
  attempt.confirm(() => {
    const succession = queuesOf(attempt).find(request.resource, false)?.succession ?? null;
    if (succession === null || succession.position === null) return getShown(attempt, request);
    const { serving, group, deadlineMs } = attempt;
    const then = byDeadline(serving.ports, deadlineMs, false, (isShown) => {
      if (!isShown) return attempt.fail("aborted", null, group);
      if (!group.isServing()) return attempt.moved();
      getShown(attempt, request);
    });
    succession.whenShown(() => then(true));
  });
}

/** The row shows every grant that was told before. */
function getShown(attempt: LockAttempt, request: GetLockRequest): void {
  const { group } = attempt;
  const { machine } = group;
  const { resource } = request;
  const listed = machine.reads.succession(resource);
  const now = { term: group.term(), nowMs: group.leaseNowMs() };
  // A former leader may have handed it over: nobody knows who holds it (Q15).
  if (listed !== null && isOrphaned(listed, now)) return attempt.retry();
  const reading = machine.reads.getLock(resource, machine.leaseMs);
  const isOver = reading.leaseEndMs <= now.nowMs;
  const queue = isOver ? queueOf(attempt, request) : null;
  if (queue !== null) return getAfterTry(attempt, request, queue);
  if (reading.type !== LockType.got || !isOver) {
    return attempt.done(infoAnswer(attempt, request, reading));
  }
  attempt.advance(reading.leaseEndMs, (committedMs) => {
    const then = machine.reads.getLock(resource, committedMs);
    attempt.done(infoAnswer(attempt, request, then));
  });
}

/** The lease is over and somebody waits: the lock is theirs as soon as that is in the log. */
function getAfterTry(attempt: LockAttempt, request: GetLockRequest, queue: Queue): void {
  const { serving, group, deadlineMs } = attempt;
  const then = byDeadline(serving.ports, deadlineMs, false, (isTried) => {
    if (!isTried) return attempt.fail("aborted", null, group);
    if (!group.isServing()) return attempt.moved();
    const reads = lockReads(group, isEphemeral(request));
    if (reads === undefined) return attempt.moved();
    const reading = reads.getLock(request.resource, group.machine.leaseMs);
    // Who waits could not be granted it, and nobody else finds it free meanwhile (Q3).
    const isWaitedFor = reading.type !== LockType.got && queueOf(attempt, request) !== null;
    if (isWaitedFor) return attempt.fail("mustRetry", "overloaded", null);
    attempt.done(infoAnswer(attempt, request, reading));
  });
  queuesOf(attempt).afterTry(queue, () => then(true));
}

function getEphemeralLock(attempt: LockAttempt, request: GetLockRequest): void {
  const { group } = attempt;
  attempt.confirm(() => {
    const table = group.ephemeral;
    if (table === null) return attempt.moved();
    const reading = table.reads.getLock(request.resource, Math.floor(group.leaseNowMs()));
    const queue = reading.type === LockType.got ? null : queueOf(attempt, request);
    if (queue === null) return attempt.done(infoAnswer(attempt, request, reading));
    getAfterTry(attempt, request, queue);
  });
}

function infoAnswer(
  attempt: LockAttempt,
  request: GetLockRequest,
  reading: LockReading,
): LockAnswer {
  const { serving, group, origin } = attempt;
  const isGot = reading.type === LockType.got;
  const token = isGot ? Int64.fromBigInt(reading.token) : Int64.ZERO;
  const bare = lockAnswer(reading.type, token, origin);
  const answer = serving.waitsIn(group) ? withQueue(attempt, request, bare) : bare;
  if (!isGot) return answer;
  return {
    ...answer,
    owner: present(reading.owner, "a held lock has an owner"),
    note: reading.note,
    expires: serving.expires(group, reading.leaseEndMs),
    expiresInMs: Math.max(0, Math.ceil(reading.leaseEndMs - group.leaseNowMs())),
  };
}
