/**
 * The lock operations: try-lock, try-extend, try-unlock, get-info.
 *
 * Invariants: 1. Persistent changes are decided in apply, ephemeral ones in the leader's table in
 * the turn of a confirmed round (L16): never from a cache alone. 2. get-info tells nothing about a
 * lease end that the log has not seen.
 */
import { present } from "../base/assert.js";
import { textSizeBytes } from "../base/bytes.js";
import { Int64 } from "../base/int64.js";
import { type LockCommand, type LockOutcome, LockType } from "../machine/commands/command.js";
import type { LockReading } from "../machine/decision/reading.js";
import type { LockAnswer } from "./api/answers.js";
import {
  Durability,
  type GetLockRequest,
  type LockRequest,
  type TryLockRequest,
} from "./api/requests.js";
import { lockAnswer } from "./api/shapes.js";
import { Attempt, type Fail } from "./serving/attempt.js";

type LockAttempt = Attempt<LockAnswer>;

/** Bytes of a lock command beside resource and owner, at most. */
const COMMAND_BYTES = 32;

/** Carries out one acceptable lock request. */
export function executeLock(attempt: LockAttempt, request: LockRequest): void {
  if (request.kind === "try-lock") return tryLock(attempt, request);
  if (request.kind !== "get-lock") return changeLock(attempt, request);
  if (request.durability === Durability.persistent) return getLock(attempt, request);
  getEphemeralLock(attempt, request);
}

/** One caller more who tries for the resource; too many are turned away before anything is done. */
function tryLock(attempt: LockAttempt, request: TryLockRequest): void {
  const { serving, group, origin, deadlineMs, fail, done } = attempt;
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
  const counted = new Attempt<LockAnswer>(serving, place, deadlineMs, failed, (answer) => {
    contention.leave(resource);
    done(answer);
  });
  changeLock(counted, request);
}

function commandOf(request: Exclude<LockRequest, GetLockRequest>): LockCommand {
  const { resource, owner } = request;
  if (request.kind === "try-unlock") return { kind: "try-unlock", resource, owner };
  return { kind: request.kind, resource, owner, expiresMs: request.expiresMs };
}

function changeLock(attempt: LockAttempt, request: Exclude<LockRequest, GetLockRequest>): void {
  const command = commandOf(request);
  const decided = ({ type, token }: LockOutcome): void =>
    attempt.done(tokenAnswer(attempt, type, token));
  if (request.durability === Durability.ephemeral) {
    return attempt.decideEphemeral(command, "lock", decided);
  }
  const sizeBytes = COMMAND_BYTES + textSizeBytes(command.resource) + command.owner.length;
  attempt.decide(command, sizeBytes, "lock", decided);
}

function tokenAnswer({ serving, origin }: LockAttempt, type: number, token: bigint): LockAnswer {
  if (type === LockType.locked) serving.ports.meter.lockGranted();
  const described =
    type === LockType.locked || type === LockType.extended || type === LockType.unlocked;
  return lockAnswer(type, described ? Int64.fromBigInt(token) : Int64.ZERO, origin);
}

function getLock(attempt: LockAttempt, { resource }: GetLockRequest): void {
  const { group } = attempt;
  attempt.confirm((leaseMs) => {
    const reading = group.machine.reads.getLock(resource, leaseMs);
    const nowMs = group.leaseNowMs();
    if (reading.type !== LockType.got || reading.leaseEndMs > nowMs) {
      return attempt.done(infoAnswer(attempt, reading));
    }
    attempt.advance(reading.leaseEndMs, (committedMs) => {
      attempt.done(infoAnswer(attempt, group.machine.reads.getLock(resource, committedMs)));
    });
  });
}

function getEphemeralLock(attempt: LockAttempt, { resource }: GetLockRequest): void {
  const { group } = attempt;
  attempt.confirm(() => {
    const table = group.ephemeral;
    if (table === null) return attempt.moved();
    const reading = table.reads.getLock(resource, Math.floor(group.leaseNowMs()));
    attempt.done(infoAnswer(attempt, reading));
  });
}

function infoAnswer({ serving, group, origin }: LockAttempt, reading: LockReading): LockAnswer {
  if (reading.type !== LockType.got) return lockAnswer(reading.type, Int64.ZERO, origin);
  return {
    ...lockAnswer(reading.type, Int64.fromBigInt(reading.token), origin),
    owner: present(reading.owner, "a held lock has an owner"),
    expires: serving.expires(group, reading.leaseEndMs),
    expiresInMs: Math.max(0, Math.ceil(reading.leaseEndMs - group.leaseNowMs())),
  };
}
