/**
 * A request that waits for a lock at the group that this node leads: what it wishes for, and how
 * its wait ends.
 *
 * One object for all that: thousands wait. Invariants: 1. It ends once, by its queue; whoever asked
 * can have it leave before (Q9). 2. What is left of a lease is never told longer than it was when
 * the lock was granted (T4, P-184).
 */
import { Int64 } from "../../base/int64.js";
import type { LockQueues } from "../../host/waiting/lock-queues.js";
import type { Leaving, Trial, WaitEnd, Waiter, Wish } from "../../host/waiting/queue.js";
import { LockType } from "../../machine/commands/command.js";
import type { LockAnswer } from "../api/answers.js";
import {
  Durability,
  type TryLockRequest,
  type WaitControl,
  type WaitHolder,
} from "../api/requests.js";
import { lockAnswer } from "../api/shapes.js";
import type { Attempt } from "../serving/attempt.js";

export class LockWait implements Wish, WaitHolder {
  private waiter: Waiter | null = null;

  private constructor(
    private readonly attempt: Attempt<LockAnswer>,
    private readonly request: TryLockRequest,
    private readonly wait: WaitControl,
    private readonly queues: LockQueues,
  ) {}

  static begin(attempt: Attempt<LockAnswer>, request: TryLockRequest, wait: WaitControl): void {
    const queues = attempt.serving.queues(attempt.group);
    const waiting = new LockWait(attempt, request, wait, queues);
    const isEphemeral = request.durability === Durability.ephemeral;
    waiting.waiter = queues.ask(request.resource, isEphemeral, waiting);
    if (waiting.waiter !== null) wait.heldBy(waiting);
  }

  get owner(): Uint8Array {
    return this.request.owner;
  }

  get expiresMs(): number {
    return this.request.expiresMs;
  }

  get note(): Uint8Array | null {
    return this.request.note ?? null;
  }

  get trial(): Trial | null {
    const { waitId = Int64.ZERO, tryNumber = Int64.ZERO } = this.request;
    if (waitId.equals(Int64.ZERO)) return null;
    return { waitId: uint64(waitId), attempt: uint64(tryNumber) };
  }

  get untilMs(): number {
    return this.wait.waitUntilMs;
  }

  get deadlineMs(): number {
    return this.attempt.deadlineMs;
  }

  leave(how: Leaving): boolean {
    const { attempt, queues, waiter } = this;
    if (waiter === null || attempt.serving.queues(attempt.group) !== queues) return false;
    return queues.leave([waiter], how);
  }

  done(end: WaitEnd): void {
    const { attempt, wait } = this;
    wait.heldBy(null);
    const { serving, group, origin } = attempt;
    const waitedMs = serving.ports.clock.monotonicMs() - wait.sinceMs;
    switch (end.kind) {
      case "granted": {
        serving.ports.meter.lockGranted();
        const { token, decidedMs, waiters } = end;
        const answer = lockAnswer(LockType.locked, Int64.fromBigInt(token), origin);
        // Never longer than it was: whoever holds the lock counts its lease by this. Who shares a
        // place may have come after the lease began.
        const untilThenMs = Math.floor(decidedMs - wait.sinceMs);
        const lateMs = Math.max(0, -untilThenMs);
        const leaseLeftMs = end.leaseLeftMs === null ? null : Math.max(0, end.leaseLeftMs - lateMs);
        const told = { leaseLeftMs, waitedMs: Math.max(0, untilThenMs), waiters };
        return attempt.done({ ...answer, ...told });
      }
      case "busy": {
        const { position, waiters } = end;
        const answer = lockAnswer(LockType.busy, Int64.ZERO, origin);
        return attempt.done({ ...answer, waitedMs: Math.ceil(waitedMs), position, waiters });
      }
      case "aborted":
        return attempt.fail("aborted", null, group);
      case "moved":
        return attempt.moved();
      case "unknown":
        return attempt.retry();
      case "refused":
        return attempt.fail("mustRetry", end.reason, null);
      case "failed":
        return attempt.done(lockAnswer(end.type, Int64.ZERO, origin));
    }
  }
}

function uint64(value: Int64): bigint {
  return BigInt.asUintN(64, value.toBigInt());
}
