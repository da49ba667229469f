/**
 * Who waits for the locks of one group, in the memory of its leader: taking in, leaving, ends.
 * Grants are made by `lock-grants.ts`.
 *
 * Owns the queues and their times. Invariants: 1. A waiter ends exactly once, never in the turn of
 * the call that took it in. 2. With the leadership everything here ends; nothing of it is granted
 * later. 3. Waiting, cancelling and going away cost no entry, but where a list of heirs names who
 * goes for good. 4. Who asks again by a higher try of the same acquire is told alone: nobody hears
 * of a lower one (Q14).
 */
import { LOCK_PLACE_REQUESTS_MAX } from "../../base/limits.js";
import type { LockCommand } from "../../machine/commands/command.js";
import { DeadlineSweep } from "../requests/deadline-sweep.js";
import type { FinalPropose, ProposalResult } from "../requests/results.js";
import { type CarriedPlace, CarriedPlaces, thatFit } from "./carried-places.js";
import { KeptPlaces } from "./kept-places.js";
import { LockDecisions, type LockCall, type WaitingGroup } from "./lock-decisions.js";
import { LockGrants } from "./lock-grants.js";
import {
  type Leaving,
  type Place,
  Queue,
  type Trial,
  type WaitEnd,
  Waiter,
  type Wish,
  keyOf,
} from "./queue.js";
import { WaiterEnds } from "./waiter-ends.js";
import type { WaitingPorts, WaitingSettings } from "./waiting.js";
import type { HandoffPath, WaitTally } from "./wait-tally.js";

export class LockQueues {
  private readonly queues = new Map<string, Queue>();
  private readonly kept: KeptPlaces;
  private readonly ends: WaiterEnds;
  private readonly sweep: DeadlineSweep;
  private readonly decisions: LockDecisions;
  private readonly grants: LockGrants;
  private readonly carried: CarriedPlaces;

  constructor(
    private readonly group: WaitingGroup,
    private readonly ports: WaitingPorts,
    private readonly settings: WaitingSettings,
    tally: WaitTally,
  ) {
    this.decisions = new LockDecisions(group);
    this.kept = new KeptPlaces(ports.clock, tally);
    this.carried = new CarriedPlaces(ports.clock);
    this.ends = new WaiterEnds(ports, tally);
    this.sweep = new DeadlineSweep(ports, (nowMs) => this.due(nowMs));
    const { decisions, ends, kept } = this;
    this.grants = new LockGrants(group, ports, settings, tally, decisions, {
      ends,
      kept,
      isCurrent: (queue) => this.queues.get(queue.key) === queue,
      drop: (queue) => void this.queues.delete(queue.key),
      vacate: (place, isKept) => this.vacate(place, isKept),
      endBusy: (waiter, position) => this.endBusy(waiter, position),
      expect: () => this.expect(),
    });
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
    this.grants.askedBy(key, wish.owner);
    let queue = this.queues.get(key);
    const isNew = queue === undefined;
    if (queue === undefined) {
      queue = new Queue(key, resource, isEphemeral);
      this.queues.set(key, queue);
    }
    if (queue.size === 0 || this.settings.hasHeirs()) this.grants.heirs.watch(queue);
    if (isNew) this.takeOver(queue);
    let place = queue.find(wish.owner);
    const isKnown = place !== null;
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
    if (queue.succession !== null && isVoid(place, wish.trial)) {
      this.ports.timer.soon(() => wish.done({ kind: "aborted" }));
      return null;
    }
    this.kept.release(place);
    if (queue.succession !== null) this.namedBy(place, wish.trial);
    const waiter = new Waiter(wish, place, Math.floor(this.ports.clock.monotonicMs()));
    if (place.waiters.length >= LOCK_PLACE_REQUESTS_MAX) {
      const [oldest] = place.waiters;
      if (oldest !== undefined) this.ends.endLater(oldest, { kind: "aborted" });
    }
    queue.join(place, waiter);
    this.ends.begin(waiter);
    if (isKnown) this.grants.heirs.doubt(queue);
    this.grants.settle(queue);
    this.grants.heirs.lengthen(queue);
    this.expect();
    return waiter;
  }

  /** Who stood there at the leader before, which handed over as planned, may come back (Q11). */
  private takeOver(queue: Queue): void {
    for (const carried of this.carried.take(queue.key, this.group.term())) {
      if (queue.size >= this.settings.perLockMax || queue.find(carried.owner) !== null) continue;
      this.kept.keep(queue.add(carried));
    }
  }

  /** Those who wait, in their order, and who may come back: for the leader that is to come. */
  standings(): readonly CarriedPlace[] {
    return thatFit(this.everyPlace());
  }

  private *everyPlace(): Generator<CarriedPlace> {
    for (const queue of this.queues.values()) {
      const { resource, isEphemeral } = queue;
      for (const { owner, expiresMs, note } of queue.all()) {
        yield { resource, isEphemeral, owner, expiresMs, note };
      }
    }
  }

  /** The leader of `term` hands over to this node as planned, and said who stands where. */
  carry(term: number, places: readonly CarriedPlace[]): void {
    this.carried.came(term, places);
  }

  /** One more request comes to `place`, where there may be heirs. */
  private namedBy(place: Place, trial: Trial | null): void {
    const before = place.trial;
    place.trial = place.queue.trialWith(place, trial);
    if (before === null || before.waitId !== trial?.waitId) return;
    if (before.attempt >= trial.attempt) return;
    for (const waiter of place.waiters) this.ends.endLater(waiter, { kind: "aborted" });
  }

  /** Of one lock, all at once. False: they have ended, or their ends are on their way. */
  leave(waiters: readonly Waiter[], how: Leaving): boolean {
    const [left] = waiters.filter((waiter) => this.withdraw(waiter, how));
    if (left !== undefined) this.grants.settle(left.place.queue);
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

  /** Carries out `call`, a release (`path`), with the grant to `place` right behind it. */
  release(queue: Queue, call: LockCall, path: HandoffPath, place = queue.first()): void {
    this.grants.release(queue, call, path, place);
    this.expect();
  }

  /**
   * As `release`, by the holder itself, which names its grant: the next one is told at once if it
   * may be (Q16).
   */
  releaseGrant(queue: Queue, owner: Uint8Array, token: bigint, call: LockCall): void {
    if (!this.grants.heirs.step(queue, owner, token, call)) this.release(queue, call, "entry");
  }

  /**
   * A request of `owner` that does not wait is about to be decided, and may be told that it holds
   * the lock.
   */
  askedBy(resource: string, isEphemeral: boolean, owner: Uint8Array): void {
    const key = keyOf(resource, isEphemeral);
    this.grants.askedBy(key, owner);
    this.queues.get(key)?.askedBy(owner);
  }

  /**
   * Gives back what was granted to a request that was gone when the answer came to its node, and
   * calls `done`, with false if it is to stay: nobody knows any more that nobody else was told.
   */
  giveBackLate(
    command: LockCommand,
    isEphemeral: boolean,
    token: bigint,
    done: (isGiven: boolean) => void,
  ): void {
    const queue = this.find(command.resource, isEphemeral);
    this.grants.giveBackLate(queue, command, isEphemeral, token, done);
  }

  /** What others decided about a lock with a queue; `token`: of the grant that they were told. */
  noted(queue: Queue, token: bigint): void {
    this.grants.noted(queue, token);
  }

  /**
   * A command about the lock that others propose is on its way; what is returned is to be called
   * when that ends, null: nobody needs to know.
   */
  begun(queue: Queue | null, command: LockCommand): ((result: ProposalResult) => void) | null {
    return queue === null ? null : this.grants.begun(queue, command);
  }

  /**
   * Puts the try of the first waiter into the log, if the lease may be over: whatever is proposed
   * behind it never sees the lock free.
   */
  goFirst(queue: Queue): void {
    this.grants.goFirst(queue);
  }

  /** A lock went to somebody ahead of its row. */
  get hasUnshown(): boolean {
    return this.grants.heirs.hasUnshown;
  }

  /** Calls `then` as soon as all rows show what was told before. */
  whenAllShown(then: () => void): void {
    this.grants.heirs.whenShown(then);
  }

  /** The leadership is handed on as planned, or the node stops: no list of heirs goes with it. */
  clearLists(propose: FinalPropose): void {
    for (const queue of this.queues.values()) this.grants.heirs.clearFor(queue, propose);
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

  /** The leadership ended: whoever waits asks its successor. */
  reset(): void {
    const ends: (readonly [Waiter, WaitEnd])[] = [];
    for (const queue of this.queues.values()) {
      this.grants.forget(queue);
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
    this.grants.reset();
    this.sweep.stop();
    this.ends.endAll(ends);
    // Whoever released, and was followed in memory, is answered in time nevertheless.
    this.expect();
  }

  /** A place without a request goes, once its tries have ended, or is kept for a moment. */
  private vacate(place: Place, isKept: boolean): void {
    if (place.isOut || place.waiters.length > 0 || place.heapAt >= 0) return;
    if (isKept) return this.kept.keep(place);
    if (place.tries > 0) return;
    place.queue.remove(place);
    this.grants.heirs.doubt(place.queue);
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
    return Math.min(this.grants.nextMs, this.ends.nextMs, this.kept.nextMs);
  }

  /** Does what is due; returns when something is due next. */
  private due(nowMs: number): number {
    for (let place = this.kept.take(nowMs); place; place = this.kept.take(nowMs)) {
      this.vacate(place, false);
      this.grants.settle(place.queue);
    }
    this.grants.due(nowMs);
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
      return this.grants.settle(place.queue);
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
      this.grants.settle(queue);
    }
    this.expect();
  }
}

/** A higher try of the acquire came before: what this one is told, nobody hears (Q14). */
function isVoid({ trial }: Place, added: Trial | null): boolean {
  if (trial === null || added === null) return false;
  return trial.waitId === added.waitId && added.attempt < trial.attempt;
}
