/**
 * Forced release of one grant by an administrator (F3 to F6), at the leader.
 *
 * Invariants: 1. What is released, and the row that tells of it, are decided in apply, in one
 * entry; of an ephemeral lock the row is applied before the leader's table is touched. 2. The next
 * waiter is granted along with it, or none that waits now is granted anything by it. 3. Once a row
 * may have been written, nobody is told that nothing was done.
 */
import { Int64 } from "../../base/int64.js";
import type { Decision, LockCall } from "../../host/waiting/lock-decisions.js";
import type { Queue } from "../../host/waiting/queue.js";
import { NO_TOKEN } from "../../host/waiting/queue.js";
import { commandBytes } from "../../host/waiting/waiting.js";
import {
  LockType,
  type ForceUnlockCommand,
  type ForcedOutcome,
  type LockCommand,
} from "../../machine/commands/command.js";
import type { ForcedAnswer } from "../api/answers.js";
import { type ForceUnlockRequest, Durability, type RequestContext } from "../api/requests.js";
import { forcedAnswer } from "../api/shapes.js";
import type { Attempt } from "../serving/attempt.js";

/** As it was taken in: with who asks, and where. */
export function askedBy(
  request: ForceUnlockRequest,
  { caller }: RequestContext,
  nodeId: number,
): ForceUnlockRequest {
  return { ...request, actor: caller?.actor ?? "anonymous", nodeId };
}

export function forceUnlock(
  attempt: Attempt<ForcedAnswer>,
  request: ForceUnlockRequest,
  requestId: string,
): void {
  new ForcedRelease(attempt, request, requestId).begin();
}

class ForcedRelease {
  private readonly isEphemeral: boolean;

  constructor(
    private readonly attempt: Attempt<ForcedAnswer>,
    private readonly request: ForceUnlockRequest,
    private readonly requestId: string,
  ) {
    this.isEphemeral = request.durability === Durability.ephemeral;
  }

  begin(): void {
    const { attempt, isEphemeral } = this;
    const queue = this.queue();
    // A lease that may be over is the first waiter's, not the administrator's.
    if (queue !== null) attempt.serving.queues(attempt.group).goFirst(queue);
    if (isEphemeral) return this.noteFirst();
    const command = this.command(null, queue);
    if (queue === null) return this.decide(command, (outcome) => this.ended(outcome));
    this.release(queue, command, ({ forced }) => {
      if (forced === undefined) return attempt.retry();
      this.ended(forced);
    });
  }

  private queue(): Queue | null {
    const { serving, group } = this.attempt;
    return serving.queues(group).find(this.request.resource, this.isEphemeral);
  }

  private command(owner: Uint8Array | null, queue: Queue | null): ForceUnlockCommand {
    const { resource, fencingToken, reason, actor, nodeId, dropWaiters } = this.request;
    const { requestId } = this;
    const waitersDropped = dropWaiters ? (queue?.living ?? 0) : 0;
    const retained = this.attempt.serving.settings.lockAuditRetained;
    const told = { owner, actor, reason, requestId, nodeId, waitersDropped, retained };
    return { kind: "force-unlock", resource, token: fencingToken.toBigInt(), ...told };
  }

  private decide(command: ForceUnlockCommand, then: (outcome: ForcedOutcome) => void): void {
    this.attempt.decide(command, commandBytes(command), "forced", (outcome) => {
      const { serving, group } = this.attempt;
      // Somebody may have come to wait meanwhile.
      const queue = this.queue();
      if (queue !== null && command.owner === null) serving.queues(group).noted(queue, NO_TOKEN);
      then(outcome);
    });
  }

  /** Releases, with the next grant, or without those who wait now. */
  private release(
    queue: Queue,
    command: ForceUnlockCommand | LockCommand,
    then: (decided: Extract<Decision, { kind: "decided" }>) => void,
  ): void {
    const { attempt, request } = this;
    const { deadlineMs, fail, group } = attempt;
    const queues = attempt.serving.queues(group);
    const waiters = request.dropWaiters ? queue.waiters() : [];
    const isNoted = command.kind !== "force-unlock";
    const call: LockCall = {
      command,
      sizeBytes: commandBytes(command),
      deadlineMs,
      marks: attempt.marks,
      then: (decision) => {
        if (decision.kind === "decided") {
          if (decision.type === LockType.unlocked) queues.leave(waiters, "cancelled");
          return then(decision);
        }
        if (isNoted || decision.kind === "unknown") return attempt.retry();
        if (decision.kind === "moved") return attempt.moved();
        if (decision.kind === "aborted") return fail("aborted", null, group);
        fail("mustRetry", decision.reason, null);
      },
    };
    queues.release(queue, call, "forced", request.dropWaiters ? null : queue.first());
  }

  /** The row of an ephemeral lock first, if it is held by that grant. */
  private noteFirst(): void {
    const { attempt, request } = this;
    const { group } = attempt;
    const { resource } = request;
    const token = request.fencingToken.toBigInt();
    attempt.confirm(() => {
      const reading = group.ephemeral?.reads.getLock(resource, Math.floor(group.leaseNowMs()));
      if (reading === undefined) return attempt.moved();
      if (reading.owner === null) return this.refused(LockType.doesNotExist);
      if (reading.token !== token) return this.refused(LockType.invalidOwner);
      const owner = reading.owner.slice();
      this.decide(this.command(owner, this.queue()), (outcome) => {
        if (outcome.type !== LockType.unlocked) return this.ended(outcome);
        this.releaseNoted({ kind: "unlock-grant", resource, owner, token }, outcome);
      });
    });
  }

  private releaseNoted(command: LockCommand, noted: ForcedOutcome): void {
    const { attempt } = this;
    const { group, deadlineMs } = attempt;
    const queue = this.queue();
    const ended = (type: number): void => {
      if (type === LockType.unlocked) this.ended(noted);
      else this.refused(type);
    };
    if (queue !== null) return this.release(queue, command, ({ type }) => ended(type));
    group.read(deadlineMs, ({ status }) => {
      const table = group.ephemeral;
      if (status !== "confirmed" || table === null) return attempt.retry();
      const outcome = table.apply(command, group.nextStamp());
      if (outcome === "full" || outcome.kind !== "lock") return attempt.retry();
      const waited = this.queue();
      if (waited !== null) attempt.serving.queues(group).noted(waited, NO_TOKEN);
      ended(outcome.type);
    });
  }

  private refused(type: number): void {
    this.attempt.done(forcedAnswer(type, this.attempt.origin));
  }

  private ended({ type, token, owner, auditId }: ForcedOutcome): void {
    const { serving, group, origin, done } = this.attempt;
    if (type !== LockType.unlocked) return this.refused(type);
    serving.waitTally.forced++;
    const { actor } = this.request;
    const { requestId } = this;
    const told = { partition: group.partition, auditId, caller: actor, requestId };
    serving.ports.logger.log("warn", "a lock was released by force", told);
    const fencingToken = Int64.fromBigInt(token);
    done({ ...forcedAnswer(type, origin), fencingToken, owner, auditId });
  }
}
