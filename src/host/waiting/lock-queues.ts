/**
 * Who waits for the locks of one group, in the memory of its leader: taking in, granting in turn,
 * ends.
 *
 * Apply knows nothing of it: what is granted is granted by the try-lock of the waiter, proposed
 * right behind the release in the same entry (Q4), or when the lease that is waited for may be
 * over. Owns the queues and their times. Invariants: 1. While somebody waits, either a try of its
 * queue is on its way, or the holder and the end of its lease are known and that end is waited for
 * (P-183): `settle` sees to it after every event. 2. A waiter ends exactly once, never in the turn
 * of the call that took it in. 3. A grant for which nobody waits any more, however late its
 * try is decided, is given back at once (P-182), unless its owner had it before, or another request
 * of its may be told of it. 4. With the leadership everything here ends; nothing of it is granted
 * later. 5. Waiting, cancelling and going away cost no entry.
 */
import { LOCK_PLACE_REQUESTS_MAX } from "../../base/limits.js";
import { LockType, type LockCommand } from "../../machine/commands/command.js";
import { DeadlineSweep } from "../requests/deadline-sweep.js";
import { DueHeap } from "./due-heap.js";
import { FreshGrants } from "./fresh-grants.js";
import { KeptPlaces } from "./kept-places.js";
import {
  LockDecisions,
  type Decision,
  type LockCall,
  type WaitingGroup,
} from "./lock-decisions.js";
import {
  type Leaving,
  NO_TOKEN,
  type Place,
  Queue,
  type WaitEnd,
  Waiter,
  type Wish,
  keyOf,
} from "./queue.js";
import { WaiterEnds } from "./waiter-ends.js";
import { type WaitingPorts, type WaitingSettings, commandBytes, tryCommand } from "./waiting.js";
import type { HandoffPath, WaitTally } from "./wait-tally.js";

/** A try that could not be made is made again after this (ms). */
const RETRY_MS = 20;

export class LockQueues {
  private readonly queues = new Map<string, Queue>();
  private readonly dueQueues = new DueHeap<Queue>();
  private readonly kept: KeptPlaces;
  private readonly fresh = new FreshGrants();
  private readonly ends: WaiterEnds;
  private readonly sweep: DeadlineSweep;
  private readonly decisions: LockDecisions;

  constructor(
    private readonly group: WaitingGroup,
    private readonly ports: WaitingPorts,
    private readonly settings: WaitingSettings,
    private readonly tally: WaitTally,
  ) {
    this.decisions = new LockDecisions(group);
    this.kept = new KeptPlaces(ports.clock, tally);
    this.ends = new WaiterEnds(ports, tally);
    this.sweep = new DeadlineSweep(ports, (nowMs) => this.due(nowMs));
  }

  /** The queue of a lock; null: nobody waits for it, nor may come back. */
  find(resource: string, isEphemeral: boolean): Queue | null {
    if (this.queues.size === 0) return null;
    return this.queues.get(keyOf(resource, isEphemeral)) ?? null;
  }

  /** For answers. */
  standing(
    resource: string,
    isEphemeral: boolean,
    owner: Uint8Array | null,
  ): { readonly waiters: number; readonly position: number } {
    return this.find(resource, isEphemeral)?.standing(owner) ?? { waiters: 0, position: 0 };
  }

  /** Takes a request in. It is granted at once if the lock is free and nobody waits for it. */
  ask(resource: string, isEphemeral: boolean, wish: Wish): Waiter | null {
    const key = keyOf(resource, isEphemeral);
    this.fresh.askedBy(key, wish.owner);
    let queue = this.queues.get(key);
    if (queue === undefined) {
      queue = new Queue(key, resource, isEphemeral);
      this.queues.set(key, queue);
    }
    let place = queue.find(wish.owner);
    if (place !== null && this.kept.isLate(place)) {
      this.kept.release(place);
      queue.remove(place);
      place = null;
    }
    if (place === null) {
      if (queue.size >= this.settings.perLockMax) {
        this.ports.timer.soon(() => wish.done({ kind: "refused", reason: "overloaded" }));
        return null;
      }
      place = queue.add(wish);
    }
    this.kept.release(place);
    const waiter = new Waiter(wish, place, this.ports.clock.monotonicMs());
    if (place.waiters.length >= LOCK_PLACE_REQUESTS_MAX) {
      const [oldest] = place.waiters;
      if (oldest !== undefined) this.ends.endLater(oldest, { kind: "aborted" });
    }
    queue.join(place, waiter);
    this.ends.begin(waiter);
    this.settle(queue);
    this.expect();
    return waiter;
  }

  /** Of one lock, all at once. False: they have ended, or their ends are on their way. */
  leave(waiters: readonly Waiter[], how: Leaving): boolean {
    const [left] = waiters.filter((waiter) => this.withdraw(waiter, how));
    if (left !== undefined) this.settle(left.place.queue);
    this.expect();
    return left !== undefined;
  }

  private withdraw(waiter: Waiter, how: Leaving): boolean {
    if (waiter.isEnded || waiter.isCancelled) return false;
    const { place } = waiter;
    const isTried = place.tries > 0;
    // It may be granted yet: whoever was told that it was cancelled shall hold nothing.
    if (isTried) place.queue.cancel(waiter);
    if (!isTried || how === "left") this.ends.endLater(waiter, { kind: "aborted" });
    this.vacate(place, how === "left");
    return true;
  }

  /**
   * Carries out `call`, a release (`path`), with the grant to `place` right behind it; or after a
   * try of it that is on its way, as two could be granted, the second one to nobody.
   */
  release(queue: Queue, call: LockCall, path: HandoffPath, place = queue.first()): void {
    const sinceMs = this.ports.clock.monotonicMs();
    const then = call.then;
    const released = (decision: Decision): void => {
      if (decision.kind === "decided" && decision.type === LockType.unlocked) queue.held = null;
      then(decision);
      if (next === null) this.settle(queue);
    };
    const next = place?.tries === 0 ? this.tryOf(queue, place, sinceMs, path) : null;
    this.decisions.make(queue.isEphemeral, { ...call, then: released }, next);
  }

  /**
   * A request of `owner` that does not wait is about to be decided, and may be told that it holds
   * the lock.
   */
  askedBy(resource: string, isEphemeral: boolean, owner: Uint8Array): void {
    const key = keyOf(resource, isEphemeral);
    this.fresh.askedBy(key, owner);
    this.queues.get(key)?.askedBy(owner);
  }

  /**
   * Gives back what was granted to a request that was gone when the answer came to its node, and
   * calls `done`, with false if it is to stay: nobody knows any more that nobody else was told.
   */
  giveBackLate(
    { resource, owner }: LockCommand,
    isEphemeral: boolean,
    token: bigint,
    done: (isGiven: boolean) => void,
  ): void {
    const key = keyOf(resource, isEphemeral);
    const nowMs = this.ports.clock.monotonicMs();
    if (!this.fresh.take(key, owner, token, nowMs)) {
      return this.ports.timer.soon(() => done(false));
    }
    this.tally.givenBack++;
    const then = (decision: Decision): void => done(decision.kind === "decided");
    const call = this.unlockOf(resource, owner, then);
    const queue = this.find(resource, isEphemeral);
    if (queue !== null) return this.release(queue, call, "entry");
    this.decisions.make(isEphemeral, call, null);
  }

  /** What others decided about a lock with a queue; `token`: of the grant that they were told. */
  noted(queue: Queue, token: bigint): void {
    this.note(queue);
    queue.see(token);
    this.settle(queue);
    this.expect();
  }

  /**
   * Puts the try of the first waiter into the log, if the lease may be over: whatever is proposed
   * behind it never sees the lock free.
   */
  goFirst(queue: Queue): void {
    const first = queue.first();
    if (first !== null && queue.triesOpen === 0 && this.mayBeOver(queue)) this.try(queue, first);
  }

  /**
   * Calls `then` when the next try of the queue has ended; at once when there is none on its way,
   * nor any to be made.
   */
  afterTry(queue: Queue, then: () => void): void {
    this.goFirst(queue);
    if (queue.triesOpen === 0) return then();
    queue.afterTry.push(then);
  }

  /** The lease that is waited for may be over, or the lock is not known to be held. */
  mayBeOver({ held }: Queue): boolean {
    return held === null || this.group.leaseNowMs() >= held.endMs;
  }

  /** The leadership ended: whoever waits asks its successor. */
  reset(): void {
    const ends: (readonly [Waiter, WaitEnd])[] = [];
    for (const queue of this.queues.values()) {
      this.dueQueues.remove(queue);
      for (const place of queue.all()) {
        place.isOut = true;
        this.kept.release(place);
        const kind = place.tries > 0 ? "unknown" : "moved";
        for (const waiter of place.waiters) ends.push([waiter, { kind }]);
      }
      for (const then of queue.afterTry) this.ports.timer.soon(then);
      queue.afterTry = [];
    }
    this.queues.clear();
    this.fresh.clear();
    this.sweep.stop();
    this.ends.endAll(ends);
  }

  /** Sees to it that who waits will be granted the lock. */
  private settle(queue: Queue): void {
    if (this.queues.get(queue.key) !== queue) return;
    const first = queue.first();
    if (first === null) {
      this.dueQueues.remove(queue);
      if (queue.size === 0 && queue.triesOpen === 0) this.queues.delete(queue.key);
      return;
    }
    if (queue.triesOpen > 0) return;
    const nowMs = this.ports.clock.monotonicMs();
    if (queue.retryAtMs > nowMs) return this.dueQueues.set(queue, queue.retryAtMs);
    if (queue.held === null || this.mayBeOver(queue)) return this.try(queue, first);
    const holder = queue.find(queue.held.owner);
    // It is told that it holds the lock (L2), and overtakes nobody if its lease ends meanwhile.
    if (holder !== null && holder.living > 0) return this.try(queue, first, holder);
    const leftMs = queue.held.endMs - this.group.leaseNowMs();
    this.dueQueues.set(queue, nowMs + leftMs);
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
    return {
      command,
      sizeBytes: commandBytes(command),
      deadlineMs: Infinity,
      then: (decision) => {
        place.tries--;
        queue.triesOpen--;
        this.tried(queue, place, decision);
        if (isHandoff && decision.kind === "decided" && decision.type === LockType.locked) {
          const nowMs = this.ports.clock.monotonicMs();
          this.tally.handedOn(queue.isEphemeral ? "ephemeral" : path, nowMs - beginMs);
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
    if (this.queues.get(queue.key) !== queue) return;
    if (decision.kind === "decided") {
      // Tokens only grow: one that was seen before the try was decided is not of its making.
      const isFresh = decision.token > queue.seenToken;
      this.note(queue);
      queue.see(decision.token);
      if (decision.type === LockType.locked) return this.granted(queue, place, decision, isFresh);
      if (decision.type === LockType.busy) return this.refused(place);
      return this.failed(place, { kind: "failed", type: decision.type });
    }
    const isStopping = decision.kind === "refused" && decision.reason === "shutting-down";
    if (isStopping) return this.failed(place, { kind: "refused", reason: "shutting-down" });
    // It leads and could not be asked: not now. Otherwise the end of the leadership comes.
    queue.retryAtMs = this.ports.clock.monotonicMs() + RETRY_MS;
    this.refused(place);
  }

  private granted(
    queue: Queue,
    place: Place,
    { token, leaseLeftMs, leaseAtMs }: Extract<Decision, { kind: "decided" }>,
    isFresh: boolean,
  ): void {
    queue.remove(place);
    this.kept.release(place);
    if (place.living === 0) return this.giveBack(queue, place, isFresh);
    if (isFresh && !place.isShared && place.living === 1) {
      this.fresh.add(queue.key, place.owner, token, this.ports.clock.monotonicMs());
    }
    // The lease clock may be ahead of time by what it was rounded up.
    const decidedAgoMs = Math.max(0, this.group.leaseNowMs() - leaseAtMs) + 1;
    for (const waiter of place.waiters) {
      const { living: waiters } = queue;
      if (waiter.isCancelled) this.ends.end(waiter, { kind: "aborted" });
      else this.ends.end(waiter, { kind: "granted", token, leaseLeftMs, decidedAgoMs, waiters });
    }
  }

  /** Nobody waits for the grant: the next one has it, in one more entry. */
  private giveBack(queue: Queue, place: Place, isFresh: boolean): void {
    const ended = (kind: "aborted" | "unknown"): void => {
      for (const waiter of place.waiters) this.ends.end(waiter, { kind });
    };
    // What its owner had before, the wait has not changed.
    if (!isFresh) return ended("aborted");
    if (place.isShared) return ended("unknown");
    this.tally.givenBack++;
    const then = ({ kind }: Decision): void => ended(kind === "decided" ? "aborted" : "unknown");
    this.release(queue, this.unlockOf(queue.resource, place.owner, then), "entry");
  }

  private unlockOf(resource: string, owner: Uint8Array, then: LockCall["then"]): LockCall {
    const command: LockCommand = { kind: "try-unlock", resource, owner };
    const deadlineMs = this.ports.clock.monotonicMs() + this.settings.tryMs;
    return { command, sizeBytes: commandBytes(command), deadlineMs, then };
  }

  /** Its try came to nothing: who was only waiting for that ends. */
  private refused(place: Place): void {
    if (place.tries > 0 || place.isOut) return;
    for (const waiter of place.waiters) {
      if (waiter.isCancelled) this.ends.end(waiter, { kind: "aborted" });
      else if (waiter.isOver) this.endBusy(waiter, place.queue.positionOf(place));
    }
    this.vacate(place, false);
  }

  private failed(place: Place, end: WaitEnd): void {
    if (place.isOut) return;
    for (const waiter of place.waiters) this.ends.end(waiter, end);
    place.queue.remove(place);
    this.kept.release(place);
  }

  private note(queue: Queue): void {
    const held = this.decisions.heldNow(queue);
    if (held !== undefined) queue.held = held;
  }

  /** A place without a request goes, once its tries have ended, or is kept for a moment. */
  private vacate(place: Place, isKept: boolean): void {
    if (place.isOut || place.waiters.length > 0 || place.heapAt >= 0) return;
    if (isKept) return this.kept.keep(place);
    if (place.tries === 0) place.queue.remove(place);
  }

  private endBusy(waiter: Waiter, position: number): void {
    const { place } = waiter;
    this.ends.end(waiter, { kind: "busy", position, waiters: place.queue.living });
    this.vacate(place, true);
  }

  private expect(): void {
    if (this.nextMs < Infinity) this.sweep.expectBy(this.nextMs);
  }

  private get nextMs(): number {
    return Math.min(this.dueQueues.nextMs, this.ends.nextMs, this.kept.nextMs);
  }

  /** Does what is due; returns when something is due next. */
  private due(nowMs: number): number {
    for (let place = this.kept.take(nowMs); place; place = this.kept.take(nowMs)) {
      this.vacate(place, false);
      this.settle(place.queue);
    }
    for (let queue = this.dueQueues.take(nowMs); queue; queue = this.dueQueues.take(nowMs)) {
      this.settle(queue);
    }
    const over: Waiter[] = [];
    for (let waiter = this.ends.take(nowMs); waiter; waiter = this.ends.take(nowMs)) {
      this.overdue(waiter, over);
    }
    if (over.length > 0) this.prove(over);
    return this.nextMs;
  }

  private overdue(waiter: Waiter, over: Waiter[]): void {
    const { place, wish } = waiter;
    if (waiter.isOver) {
      const kind = place.tries > 0 || place.isOut ? "unknown" : "moved";
      this.ends.end(waiter, { kind });
      this.vacate(place, true);
      return this.settle(place.queue);
    }
    waiter.isOver = true;
    this.ends.dueAgain(waiter, Math.max(wish.deadlineMs, wish.untilMs + 1));
    if (place.tries === 0 && !place.isOut) over.push(waiter);
  }

  /** Nobody is told "busy" by a node that does not lead any more. */
  private prove(over: readonly Waiter[]): void {
    const latestMs = Math.max(...over.map(({ wish }) => wish.deadlineMs));
    this.group.read(latestMs, ({ status }) => {
      this.ends.inParts(over, (part) => this.endOver(part, status === "confirmed"));
    });
  }

  private endOver(over: readonly Waiter[], isProved: boolean): void {
    const positions = new Map<Queue, ReadonlyMap<Place, number>>();
    for (const waiter of over) {
      const { place } = waiter;
      const { queue } = place;
      if (waiter.isEnded || place.isOut || place.tries > 0) continue;
      const known = positions.get(queue) ?? queue.positions();
      positions.set(queue, known);
      if (waiter.isCancelled) this.ends.end(waiter, { kind: "aborted" });
      else if (isProved) this.endBusy(waiter, known.get(place) ?? 0);
      else this.ends.end(waiter, { kind: "moved" });
      this.vacate(place, true);
      this.settle(queue);
    }
    this.expect();
  }
}
