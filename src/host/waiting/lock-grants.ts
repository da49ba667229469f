/**
 * Granting locks to those who wait, one after the other: tries, releases with the next grant right
 * behind them, and what becomes of each.
 *
 * Apply knows nothing of waiting: what is granted is granted by the try-lock of the waiter, which
 * is put behind the release in the same entry (Q4), or when the lease that is waited for may be
 * over; or along a list of heirs (`lock-heirs.ts`). Owns when leases are looked at, and what may
 * have to be given back. Invariants: 1. While somebody waits, either a try of its queue is on its
 * way, or the holder and the end of its lease are known and that end is waited for (P-183):
 * `settle` sees to it after every event. 2. A grant for which nobody waits any more, however late
 * its try is decided, is given back at once (P-182), unless its owner had it before, or another
 * request of its may be told of it.
 */
import { type LockCommand, LockType } from "../../machine/commands/command.js";
import { DueHeap } from "./due-heap.js";
import { FreshGrants } from "./fresh-grants.js";
import type { KeptPlaces } from "./kept-places.js";
import type { ProposalResult } from "../requests/results.js";
import type { Decision, LockCall, LockDecisions, WaitingGroup } from "./lock-decisions.js";
import { LockHeirs } from "./lock-heirs.js";
import { NO_TOKEN, type Place, type Queue, type Waiter, type WaitEnd, keyOf } from "./queue.js";
import type { WaiterEnds } from "./waiter-ends.js";
import {
  RETRY_MS,
  type WaitingPorts,
  type WaitingSettings,
  commandBytes,
  tryCommand,
} from "./waiting.js";
import type { HandoffPath, WaitTally } from "./wait-tally.js";

/** Those who wait, as far as grants touch them. */
export interface Waiting {
  readonly ends: WaiterEnds;
  readonly kept: KeptPlaces;
  /** It is the queue of its lock. */
  isCurrent(queue: Queue): boolean;
  /** Nobody waits in it, and nothing is on its way for it. */
  drop(queue: Queue): void;
  /** A place without a request goes, once its tries have ended, or is kept for a moment. */
  vacate(place: Place, isKept: boolean): void;
  endBusy(waiter: Waiter, position: number): void;
  /** Something may be due earlier than it was. */
  expect(): void;
}

type Decided = Extract<Decision, { readonly kind: "decided" }>;
type Told = Pick<Decided, "token" | "leaseLeftMs" | "leaseAtMs">;

export class LockGrants {
  readonly heirs: LockHeirs;
  private readonly dueQueues = new DueHeap<Queue>();
  private readonly fresh = new FreshGrants();

  constructor(
    private readonly group: WaitingGroup,
    private readonly ports: WaitingPorts,
    private readonly settings: WaitingSettings,
    private readonly tally: WaitTally,
    private readonly decisions: LockDecisions,
    private readonly waiting: Waiting,
  ) {
    this.heirs = new LockHeirs(group, ports, settings, tally, decisions, this);
  }

  /** When something is due next (monotonic ms). */
  get nextMs(): number {
    return Math.min(this.dueQueues.nextMs, this.heirs.nextMs);
  }

  due(nowMs: number): void {
    for (let queue = this.dueQueues.take(nowMs); queue; queue = this.dueQueues.take(nowMs)) {
      this.settle(queue);
    }
    this.heirs.due(nowMs);
  }

  isCurrent(queue: Queue): boolean {
    return this.waiting.isCurrent(queue);
  }

  expect(): void {
    this.waiting.expect();
  }

  /**
   * Carries out `call`, a release (`path`), with the grant to `place` right behind it; or after a
   * try of it that is on its way, as two could be granted, the second one to nobody.
   */
  release(queue: Queue, call: LockCall, path: HandoffPath, place = queue.first()): void {
    const sinceMs = this.ports.clock.monotonicMs();
    const then = call.then;
    const isFirst = this.heirs.isFirst(queue, call.command);
    if (isFirst) this.heirs.rewrite(queue);
    const passage = this.heirs.begin(queue, call.command);
    const released = (decision: Decision): void => {
      this.heirs.ended(queue, passage, decision.kind);
      if (decision.kind === "decided" && decision.type === LockType.unlocked) {
        if (queue.succession === null) queue.held = null;
        else if (this.isCurrent(queue)) this.note(queue);
      }
      then(decision);
      if (next === null) this.settle(queue);
    };
    const next = isFirst && place?.tries === 0 ? this.tryOf(queue, place, sinceMs, path) : null;
    this.decisions.make(queue.isEphemeral, { ...call, then: released }, next);
  }

  /**
   * A request of `owner` that does not wait is about to be decided, and may be told that it holds
   * the lock.
   */
  askedBy(key: string, owner: Uint8Array): void {
    this.fresh.askedBy(key, owner);
  }

  /**
   * Gives back what was granted to a request that was gone when the answer came to its node, and
   * calls `done`, with false if it is to stay: nobody knows any more that nobody else was told.
   */
  giveBackLate(
    queue: Queue | null,
    { resource, owner }: LockCommand,
    isEphemeral: boolean,
    token: bigint,
    done: (isGiven: boolean) => void,
  ): void {
    const nowMs = this.ports.clock.monotonicMs();
    if (!this.fresh.take(keyOf(resource, isEphemeral), owner, token, nowMs)) {
      return this.ports.timer.soon(() => done(false));
    }
    this.tally.givenBack++;
    const then = (decision: Decision): void => done(decision.kind === "decided");
    const call = this.unlockOf(resource, owner, queue, token, then);
    if (queue !== null) return this.release(queue, call, "entry");
    this.decisions.make(isEphemeral, call, null);
  }

  /** What others decided about the lock; `token`: of the grant that they were told. */
  noted(queue: Queue, token: bigint): void {
    this.note(queue);
    queue.see(token);
    queue.succession?.told(token);
    this.settle(queue);
    this.expect();
  }

  /**
   * Puts the try of the first waiter into the log, if the lease may be over: whatever is proposed
   * behind it never sees the lock free.
   */
  goFirst(queue: Queue): void {
    const first = queue.first();
    if (first !== null && queue.triesOpen === 0 && this.mayBeOver(queue)) {
      this.tryInTurn(queue, first);
    }
  }

  /** The lease that is waited for may be over, or the lock is not known to be held. */
  private mayBeOver({ held }: Queue): boolean {
    return held === null || this.group.leaseNowMs() >= held.endMs;
  }

  /** The leadership ended. */
  forget(queue: Queue): void {
    this.dueQueues.remove(queue);
    this.heirs.forget(queue);
  }

  reset(): void {
    this.fresh.clear();
  }

  /** Sees to it that who waits will be granted the lock. */
  settle(queue: Queue): void {
    if (!this.isCurrent(queue)) return;
    this.heirs.followUp(queue);
    this.heirs.putInOrder(queue);
    const first = queue.first();
    if (first === null) {
      this.dueQueues.remove(queue);
      this.leftAlone(queue);
      return;
    }
    if (queue.triesOpen > 0) return;
    const nowMs = this.ports.clock.monotonicMs();
    if (queue.retryAtMs > nowMs) return this.wakeAt(queue, queue.retryAtMs);
    const orphanedUntilMs = this.heirs.orphanedUntilMs(queue);
    if (orphanedUntilMs !== null) {
      const member = this.heirs.returning(queue);
      if (member !== null) return this.try(queue, member);
      return this.wakeAt(queue, nowMs + orphanedUntilMs - this.group.leaseNowMs());
    }
    if (queue.held === null || this.mayBeOver(queue)) return this.tryInTurn(queue, first);
    const holder = queue.find(queue.held.owner);
    // It is told that it holds the lock (L2), and overtakes nobody if its lease ends meanwhile.
    if (holder !== null && holder.living > 0) return this.try(queue, first, holder);
    const leftMs = queue.held.endMs - this.group.leaseNowMs();
    this.wakeAt(queue, nowMs + leftMs);
  }

  /** `queue` is looked at then, at the latest: that may be earlier than all else that is due. */
  private wakeAt(queue: Queue, atMs: number): void {
    this.dueQueues.set(queue, atMs);
    this.expect();
  }

  /** Nobody waits. */
  private leftAlone(queue: Queue): void {
    const { succession, retryAtMs } = queue;
    const isEmpty = queue.size === 0 && queue.triesOpen === 0;
    if (succession === null) return isEmpty ? this.waiting.drop(queue) : undefined;
    const nowMs = this.ports.clock.monotonicMs();
    // Whoever comes finds the lock as it is, without heirs.
    if (!succession.isCleared && retryAtMs <= nowMs) this.heirs.clear(queue);
    if (!succession.isCleared) return this.wakeAt(queue, retryAtMs);
    if (succession.untold !== null && retryAtMs > nowMs) this.wakeAt(queue, retryAtMs);
    if (!isEmpty || !succession.isIdle) return;
    if (queue.heat.endMs > nowMs) return this.wakeAt(queue, queue.heat.endMs);
    this.heirs.forget(queue);
    this.waiting.drop(queue);
  }

  /** The lease may be over: whoever's turn it is is tried. */
  private tryInTurn(queue: Queue, first: Place): void {
    const place = this.heirs.turn(queue, first);
    if (place !== null) this.try(queue, place);
  }

  private try(queue: Queue, place: Place, behind = place): void {
    const path = queue.isEphemeral ? "ephemeral" : "lapse";
    const call = this.tryOf(queue, place, null, path);
    const next = behind === place ? null : this.tryOf(queue, behind, null, path);
    this.decisions.make(queue.isEphemeral, call, next);
  }

  /** `sinceMs`: when the release came that lets it in; null: it asks, or a lease is over. */
  private tryOf(queue: Queue, place: Place, sinceMs: number | null, path: HandoffPath): LockCall {
    place.tries++;
    queue.triesOpen++;
    this.dueQueues.remove(queue);
    queue.see(this.decisions.heldNow(queue)?.token ?? NO_TOKEN);
    const isHandoff = sinceMs !== null || queue.held !== null;
    const beginMs = sinceMs ?? this.ports.clock.monotonicMs();
    const command = tryCommand(queue.resource, place);
    const passage = this.heirs.begin(queue, command);
    return {
      command,
      sizeBytes: commandBytes(command),
      deadlineMs: Infinity,
      then: (decision) => {
        place.tries--;
        queue.triesOpen--;
        this.heirs.ended(queue, passage, decision.kind);
        this.tried(queue, place, decision);
        if (isHandoff && decision.kind === "decided" && decision.type === LockType.locked) {
          const nowMs = this.ports.clock.monotonicMs();
          this.tally.handedOn(queue.isEphemeral ? "ephemeral" : path, nowMs - beginMs);
          this.heirs.handedOn(queue, nowMs);
        }
        const { afterTry } = queue;
        queue.afterTry = [];
        for (const after of afterTry) after();
        this.settle(queue);
        this.expect();
      },
    };
  }

  private tried(queue: Queue, place: Place, decision: Decision): void {
    if (!this.isCurrent(queue)) return;
    if (decision.kind === "decided") {
      // Tokens only grow: one that was seen before the try was decided is not of its making.
      const isUntold = queue.succession?.untold === decision.token;
      const isFresh = isUntold || decision.token > queue.seenToken;
      this.note(queue);
      queue.see(decision.token);
      if (decision.type === LockType.locked) return this.granted(queue, place, decision, isFresh);
      if (decision.type === LockType.busy) {
        // Though nobody holds it any more: a list of a former leader binds it.
        if (this.mayBeOver(queue)) this.heirs.watch(queue);
        return this.refused(place);
      }
      if (decision.type === LockType.mustRetry) return this.failed(place, { kind: "unknown" });
      return this.failed(place, { kind: "failed", type: decision.type });
    }
    const isStopping = decision.kind === "refused" && decision.reason === "shutting-down";
    if (isStopping) return this.failed(place, { kind: "refused", reason: "shutting-down" });
    // It leads and could not be asked: not now. Otherwise the end of the leadership comes.
    queue.retryAtMs = this.ports.clock.monotonicMs() + RETRY_MS;
    this.refused(place);
  }

  /** Whoever waits at `place` holds the lock. `isNow`: it may be told in this turn. */
  private granted(queue: Queue, place: Place, told: Told, isFresh: boolean, isNow = true): void {
    const { ends, kept } = this.waiting;
    const { token, leaseLeftMs, leaseAtMs } = told;
    queue.remove(place);
    kept.release(place);
    queue.succession?.told(token);
    if (place.living === 0) return this.giveBack(queue, place, token, isFresh);
    if (isFresh && !place.isShared && place.living === 1) {
      this.fresh.add(queue.key, place.owner, token, this.ports.clock.monotonicMs());
    }
    // The lease clock may be ahead of time by what it was rounded up.
    const agoMs = Math.max(0, this.group.leaseNowMs() - leaseAtMs) + 1;
    const decidedMs = this.ports.clock.monotonicMs() - agoMs;
    for (const waiter of place.waiters) {
      const { living: waiters } = queue;
      const end: WaitEnd = waiter.isCancelled
        ? { kind: "aborted" }
        : { kind: "granted", token, leaseLeftMs, decidedMs, waiters };
      if (isNow) ends.end(waiter, end);
      else ends.endLater(waiter, end);
    }
  }

  /** Whoever waits at `place`, an heir, is told that it holds the lock. */
  tell(queue: Queue, place: Place, token: bigint, leaseLeftMs: number, leaseAtMs: number): void {
    queue.see(token);
    this.granted(queue, place, { token, leaseLeftMs, leaseAtMs }, true, false);
  }

  /** Where there may be heirs, who asked again by a higher try is told alone (Q14). */
  named(place: Place): void {
    place.trial = place.queue.trialOf(place);
    const highest = place.trial?.attempt ?? 0n;
    for (const waiter of place.waiters) {
      const { isCancelled, wish } = waiter;
      const isVoid = !isCancelled && (wish.trial?.attempt ?? highest) < highest;
      if (isVoid) this.waiting.ends.endLater(waiter, { kind: "aborted" });
    }
  }

  /** Nobody waits for the grant: the next one has it, in one more entry. */
  private giveBack(queue: Queue, place: Place, token: bigint, isFresh: boolean): void {
    const ended = (kind: "aborted" | "unknown"): void => {
      for (const waiter of place.waiters) this.waiting.ends.end(waiter, { kind });
    };
    // What its owner had before, the wait has not changed.
    if (!isFresh) return ended("aborted");
    if (place.isShared) return ended("unknown");
    const then = ({ kind }: Decision): void => ended(kind === "decided" ? "aborted" : "unknown");
    this.giveBackTo(queue, place.owner, token, then);
  }

  /** Releases, through the log, a grant that nobody was told of. */
  giveBackTo(queue: Queue, owner: Uint8Array, token: bigint, then: LockCall["then"]): void {
    this.tally.givenBack++;
    this.release(queue, this.unlockOf(queue.resource, owner, queue, token, then), "entry");
  }

  private unlockOf(
    resource: string,
    owner: Uint8Array,
    queue: Queue | null,
    token: bigint,
    then: LockCall["then"],
  ): LockCall {
    // Where there may be heirs, who names no grant is no proof of anything.
    const command: LockCommand =
      (queue?.succession ?? null) === null
        ? { kind: "try-unlock", resource, owner }
        : { kind: "unlock-grant", resource, owner, token };
    const deadlineMs = this.ports.clock.monotonicMs() + this.settings.tryMs;
    return { command, sizeBytes: commandBytes(command), deadlineMs, then };
  }

  /** Its try came to nothing: who was only waiting for that ends. */
  private refused(place: Place): void {
    if (place.tries > 0 || place.isOut) return;
    for (const waiter of place.waiters) {
      if (waiter.isCancelled) this.waiting.ends.end(waiter, { kind: "aborted" });
      else if (waiter.isOver) this.waiting.endBusy(waiter, place.queue.positionOf(place));
    }
    this.waiting.vacate(place, false);
  }

  private failed(place: Place, end: WaitEnd): void {
    if (place.isOut) return;
    for (const waiter of place.waiters) this.waiting.ends.end(waiter, end);
    place.queue.remove(place);
    this.waiting.kept.release(place);
    this.heirs.doubt(place.queue);
  }

  /** Reads who holds the lock. */
  note(queue: Queue): void {
    const held = this.decisions.heldNow(queue);
    if (held === undefined) return;
    if (queue.succession === null) queue.held = held;
    else this.heirs.noted(queue, queue.succession, held);
  }

  /** A command about the lock that others propose is on its way. */
  begun(queue: Queue, command: LockCommand): ((result: ProposalResult) => void) | null {
    const passage = this.heirs.begin(queue, command);
    if (passage === null) return null;
    return ({ status }) => {
      this.heirs.ended(queue, passage, status);
      // Who was told of an outcome says so (`noted`).
      if (status !== "applied") this.settle(queue);
    };
  }
}
