/**
 * The lock operations: try-lock, try-extend, try-unlock, get-info.
 *
 * Invariants: 1. Persistent changes are decided in apply, ephemeral ones in the leader's table in
 * the turn of a confirmed round (L16): never from a cache alone. 2. get-info tells nothing about a
 * lease end that the log has not seen.
 */
import { assert, present } from "../base/assert.js";
import { textSizeBytes } from "../base/bytes.js";
import { Int64 } from "../base/int64.js";
import { type LockCommand, LockType } from "../machine/commands/command.js";
import type { LockReading } from "../machine/decision/reading.js";
import type { GroupAccess } from "./api/host-view.js";
import type { LockAnswer } from "./api/answers.js";
import {
  Durability,
  type GetLockRequest,
  type LockRequest,
  type TryLockRequest,
} from "./api/requests.js";
import { lockAnswer } from "./api/shapes.js";
import type { Fail, Serving } from "./serving.js";

type Done = (answer: LockAnswer) => void;

/** Bytes of a lock command beside resource and owner, at most. */
const COMMAND_BYTES = 32;

/** Carries out one acceptable lock request on `group`. */
export function executeLock(
  serving: Serving,
  group: GroupAccess,
  request: LockRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  if (request.kind === "try-lock") {
    tryLock(serving, group, request, deadlineMs, fail, done);
  } else if (request.kind === "get-lock") {
    if (request.durability === Durability.persistent) {
      getLock(serving, group, request, deadlineMs, fail, done);
    } else {
      getEphemeralLock(serving, group, request, deadlineMs, fail, done);
    }
  } else {
    changeLock(serving, group, request, deadlineMs, fail, done);
  }
}

/** One caller more who tries for the resource; too many are turned away before anything is done. */
function tryLock(
  serving: Serving,
  group: GroupAccess,
  request: TryLockRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const { contention, ports } = serving;
  const { resource } = request;
  if (!contention.enter(resource)) {
    return ports.timer.soon(() => fail("mustRetry", "overloaded", null));
  }
  const failed: Fail = (end, refusal, executed) => {
    contention.leave(resource);
    fail(end, refusal, executed);
  };
  changeLock(serving, group, request, deadlineMs, failed, (answer) => {
    contention.leave(resource);
    done(answer);
  });
}

function commandOf(request: Exclude<LockRequest, GetLockRequest>): LockCommand {
  const { resource, owner } = request;
  if (request.kind === "try-unlock") return { kind: "try-unlock", resource, owner };
  return { kind: request.kind, resource, owner, expiresMs: request.expiresMs };
}

function changeLock(
  serving: Serving,
  group: GroupAccess,
  request: Exclude<LockRequest, GetLockRequest>,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const command = commandOf(request);
  if (request.durability === Durability.ephemeral) {
    return changeEphemeralLock(serving, group, command, deadlineMs, fail, done);
  }
  const sizeBytes = COMMAND_BYTES + textSizeBytes(command.resource) + command.owner.length;
  group.propose(command, sizeBytes, deadlineMs, (result) => {
    const outcome = serving.outcomeOf(group, result, fail);
    if (outcome === null) return;
    assert(outcome.kind === "lock", "a lock command has a lock outcome");
    done(tokenAnswer(serving, group, outcome.type, outcome.token));
  });
}

function changeEphemeralLock(
  serving: Serving,
  group: GroupAccess,
  command: LockCommand,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  serving.confirm(group, deadlineMs, fail, () => {
    const table = group.ephemeral;
    if (table === null) return fail("moved", null, group);
    const outcome = table.apply(command, group.nextStamp());
    if (outcome === "full") return fail("mustRetry", "overloaded", null);
    assert(outcome.kind === "lock", "a lock command has a lock outcome");
    done(tokenAnswer(serving, group, outcome.type, outcome.token));
  });
}

function tokenAnswer(
  serving: Serving,
  group: GroupAccess,
  type: number,
  token: bigint,
): LockAnswer {
  if (type === LockType.locked) serving.ports.meter.lockGranted();
  const described =
    type === LockType.locked || type === LockType.extended || type === LockType.unlocked;
  return lockAnswer(type, described ? Int64.fromBigInt(token) : Int64.ZERO, serving.origin(group));
}

function getLock(
  serving: Serving,
  group: GroupAccess,
  request: GetLockRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  const { resource } = request;
  serving.confirm(group, deadlineMs, fail, (leaseMs) => {
    const reading = group.machine.reads.getLock(resource, leaseMs);
    const nowMs = group.leaseNowMs();
    if (reading.type !== LockType.got || reading.leaseEndMs > nowMs) {
      return done(infoAnswer(serving, group, reading));
    }
    serving.advance(group, reading.leaseEndMs, deadlineMs, fail, (committedMs) => {
      done(infoAnswer(serving, group, group.machine.reads.getLock(resource, committedMs)));
    });
  });
}

function getEphemeralLock(
  serving: Serving,
  group: GroupAccess,
  request: GetLockRequest,
  deadlineMs: number,
  fail: Fail,
  done: Done,
): void {
  serving.confirm(group, deadlineMs, fail, () => {
    const table = group.ephemeral;
    if (table === null) return fail("moved", null, group);
    const reading = table.reads.getLock(request.resource, Math.floor(group.leaseNowMs()));
    done(infoAnswer(serving, group, reading));
  });
}

function infoAnswer(serving: Serving, group: GroupAccess, reading: LockReading): LockAnswer {
  const origin = serving.origin(group);
  if (reading.type !== LockType.got) return lockAnswer(reading.type, Int64.ZERO, origin);
  return {
    ...lockAnswer(reading.type, Int64.fromBigInt(reading.token), origin),
    owner: present(reading.owner, "a held lock has an owner"),
    expires: serving.expires(group, reading.leaseEndMs),
    expiresInMs: Math.max(0, Math.ceil(reading.leaseEndMs - group.leaseNowMs())),
  };
}
