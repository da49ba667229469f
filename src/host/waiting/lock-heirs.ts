/**
 * Handing over along the heirs of locks, in the memory of the leader: lists that are written,
 * steps along them, and lists of former leaders (Q14 to Q16).
 *
 * Invariants, each with its counterpart in `test/unit/machine/succession/leader.ts`: 1. A grant is
 * told in memory only to the very try that a list of this term, applied here, names next, upon the
 * first release by the holder before it that names its grant, in time, while nothing is on its way
 * that could say otherwise (`step`). Whether this node still leads plays no part (Q16). 2. That
 * release is on its way into the log, for as long as the leadership lasts, before anybody is told
 * (`lock-steps.ts`). 3. Who became the base by a release in the log, and was not told, is told
 * then, or what it got is given back through the log (`followUp`, `giveBack`). 4. An heir
 * that is gone is never stepped over: the list is written anew in front of the release
 * (`rewrite`). `proposeNext` there passes it over by a release of its own; this says the same to
 * everybody, and needs no rule about when. 5. Where a lease may be over, the next heir is tried,
 * or the list is cleared in front of the try of the first one (`serve`). 6. While a list of a
 * former leader binds, only its members are tried, as they come back (`serve`, `takeAsk`). 7. A
 * list is lengthened while none is on its way for the lock, and written anew behind whatever is
 * (`lengthen`, `rewrite`). 8. With the leadership all of it ends (`takeOver`). 9. Who comes back to
 * a place that the list passed has its turn, and who is gone for good leaves the list: it is
 * written anew at once, and nobody is told along it before (`putInOrder`).
 */
import { equalBytes } from "../../base/bytes.js";
import { HEIRS_MAX } from "../../base/limits.js";
import { type HeirListCommand, LockType } from "../../machine/commands/command.js";
import type { FinalPropose, ProposalResult } from "../requests/results.js";
import { isInOrder, nextHeirs } from "./heirs-policy.js";
import type { Decision, LockCall, LockDecisions, WaitingGroup } from "./lock-decisions.js";
import { LockSteps, Step } from "./lock-steps.js";
import type { Held, Place, Queue } from "./queue.js";
import { type ListedHeir, type NamedAsk, type Passage, Succession } from "./succession.js";
import type { WaitTally } from "./wait-tally.js";
import {
  RETRY_MS,
  type WaitedCommand,
  type WaitingPorts,
  type WaitingSettings,
  listBytes,
} from "./waiting.js";

/** Beyond the longest lease of a list it is good for so long (ms). */
const HORIZON_MS = 2000;

/** What grants do for it. */
export interface Granting {
  /** It is the queue of its lock. */
  isCurrent(queue: Queue): boolean;
  /** Reads who holds the lock. */
  note(queue: Queue): void;
  settle(queue: Queue): void;
  /** Reads of which acquire the requests of `place` are tries. */
  named(place: Place): void;
  /** `leaseLeftMs`: at `leaseAtMs` (lease clock). */
  tell(queue: Queue, place: Place, token: bigint, leaseLeftMs: number, leaseAtMs: number): void;
  giveBackTo(queue: Queue, owner: Uint8Array, token: bigint, then: LockCall["then"]): void;
  expect(): void;
}

export class LockHeirs {
  private readonly steps: LockSteps;
  /** Queues with a grant that was told ahead of the row. */
  private readonly ahead = new Set<Queue>();

  constructor(
    private readonly group: WaitingGroup,
    private readonly ports: WaitingPorts,
    private readonly settings: WaitingSettings,
    private readonly tally: WaitTally,
    private readonly decisions: LockDecisions,
    private readonly grants: Granting,
  ) {
    this.steps = new LockSteps(ports, decisions, {
      isCurrent: (queue) => grants.isCurrent(queue),
      note: (queue) => grants.note(queue),
      stepped: (step, decision) => this.stepped(step, decision),
    });
  }

  /** When whoever released must have been answered; infinity: nobody. */
  get nextMs(): number {
    return this.steps.nextMs;
  }

  /** Answers those whose time is over. */
  due(nowMs: number): void {
    this.steps.due(nowMs);
  }

  /** Somebody waits: the lock may have heirs, or has some of a former leader. */
  watch(queue: Queue): void {
    if (queue.succession !== null || queue.isEphemeral) return;
    if (!this.settings.hasHeirs() && !this.isBound(queue)) return;
    const succession = new Succession(this.group.term());
    queue.succession = succession;
    for (const place of queue.all()) this.grants.named(place);
    // Before it serves it has not applied all that its predecessor did. And of what is on its way
    // for the lock nothing is known here: who holds it, the first try finds out.
    const { held } = queue;
    if (this.group.isServing()) this.grants.note(queue);
    queue.held = held;
  }

  /** Where no lists are written, those of former leaders bind nevertheless. */
  private isBound(queue: Queue): boolean {
    return this.group.isServing() && this.decisions.isListed(queue);
  }

  /** The row was read. */
  noted(queue: Queue, succession: Succession, held: Held | null): void {
    succession.read(this.decisions.listNow(queue));
    if (succession.position === null) {
      this.ahead.delete(queue);
      queue.held = held;
    }
    const isOrphaned = succession.isOrphaned(this.group.leaseNowMs());
    if (isOrphaned !== succession.isCounted) this.tally.orphanedLists += isOrphaned ? 1 : -1;
    succession.isCounted = isOrphaned;
  }

  /** The queue is given up, or the leadership ended. */
  forget(queue: Queue): void {
    const { succession } = queue;
    if (succession === null) return;
    if (succession.isCounted) this.tally.orphanedLists--;
    succession.isCounted = false;
    this.ahead.delete(queue);
    this.ports.timer.soon(() => succession.endWaits());
  }

  get hasUnshown(): boolean {
    return this.ahead.size > 0;
  }

  /** Calls `then` when all rows show what was told before. */
  whenShown(then: () => void): void {
    let open = this.ahead.size + 1;
    const shown = (): void => {
      if (--open === 0) then();
    };
    for (const { succession } of [...this.ahead]) succession?.whenShown(shown);
    shown();
  }

  /** A command about the lock goes its way; null: nothing has to be known of it. */
  begin({ succession }: Queue, command: WaitedCommand): Passage | null {
    if (succession === null) return null;
    switch (command.kind) {
      case "try-extend":
      case "extend-grant":
        return null;
      case "try-unlock":
        return succession.begin("unlock", command.owner, null);
      case "unlock-grant":
        return succession.begin("unlock", command.owner, command.token);
      case "force-unlock":
        return succession.begin("other", null, null);
      default:
        return succession.begin("try", command.owner, null);
    }
  }

  ended(
    { succession }: Queue,
    passage: Passage | null,
    how: Decision["kind"] | ProposalResult["status"],
  ): void {
    if (succession === null || passage === null) return;
    const isApplied = how === "decided" || how === "applied";
    succession.end(passage, isApplied ? "applied" : how === "unknown" ? how : "void");
  }

  /** The lock went to somebody who waited for it. */
  handedOn(queue: Queue, nowMs: number): void {
    if (queue.succession === null) return;
    queue.heat.note(nowMs);
    this.lengthen(queue);
  }

  /**
   * Hands over in memory upon the release `call` by `owner` of its grant `token`, if that may be;
   * returns false if it may not, with nothing done.
   */
  step(queue: Queue, owner: Uint8Array, token: bigint, call: LockCall): boolean {
    const { succession } = queue;
    const heir = succession?.next ?? null;
    if (succession === null || heir === null || !succession.isUndisturbed) return false;
    if (succession.isDoubted || !isHeld(queue, owner, token)) return false;
    const place = placeOf(queue, heir);
    if (place?.trial?.attempt !== heir.attempt || this.group.isHandingOver()) return false;
    const leaseNowMs = this.group.leaseNowMs();
    if (!succession.isInTime(heir, leaseNowMs)) return false;
    const sinceMs = this.ports.clock.monotonicMs();
    const step = new Step(queue, succession, heir, call);
    // Refused: nothing was done.
    if (!this.steps.send(step)) return true;
    this.steps.tell(step);
    this.ahead.add(queue);
    succession.stepTo(heir);
    queue.held = { owner: heir.owner, token: heir.token, endMs: leaseNowMs + heir.leaseMs };
    this.grants.tell(queue, place, heir.token, heir.leaseMs, leaseNowMs);
    const nowMs = this.ports.clock.monotonicMs();
    this.tally.handedOn("heir", nowMs - sinceMs);
    this.handedOn(queue, nowMs);
    this.grants.expect();
    return true;
  }

  /** The release upon which somebody was told came to its end. */
  private stepped({ queue, succession, heir }: Step, decision: Decision): void {
    if (decision.kind !== "decided") {
      // The leadership or the node ends: what was told is for the next leader to find out.
      return void succession.begin("other", null, null);
    }
    succession.shows(heir.token);
    if (succession.position?.token === heir.token || decision.type !== LockType.unlocked) {
      this.grants.note(queue);
      this.grants.settle(queue);
    }
    this.lengthen(queue);
  }

  /** Whether a release through the log is the first one of the present grant. */
  isFirst({ succession, held }: Queue, command: WaitedCommand): boolean {
    if (succession?.isActive !== true || held === null) return true;
    const isUnlock = command.kind === "unlock-grant" || command.kind === "try-unlock";
    if (!isUnlock) return true;
    if (command.kind === "unlock-grant" && command.token !== held.token) return false;
    if (!equalBytes(command.owner, held.owner)) return false;
    return !succession.isReleased(held.token, held.owner);
  }

  /**
   * Somebody came to a place that stood there, which the list may have passed (Q7, Q8), or a place
   * is gone, which it may name (Q9).
   */
  doubt({ succession }: Queue): void {
    if (succession?.isActive === true) succession.isDoubted = true;
  }

  /** Whoever stands before those whom the list names is not passed by them; who is gone is none. */
  putInOrder(queue: Queue): void {
    const { held, succession } = queue;
    if (succession?.isDoubted !== true || held === null) return;
    const { coming } = succession;
    if (isInOrder(queue, coming)) {
      succession.isDoubted = false;
      return;
    }
    if (succession.isRewritten || queue.retryAtMs > this.ports.clock.monotonicMs()) return;
    const isLeaving = ({ owner }: NamedAsk): boolean =>
      queue.find(owner) === null && succession.isTried(owner);
    if (!coming.some(isLeaving)) this.writeAnew(queue, succession, held);
  }

  /** In front of a release: an heir that is gone is not to follow, nor one before its turn. */
  rewrite(queue: Queue): void {
    const { succession, held } = queue;
    if (succession === null || held === null) return;
    const { coming } = succession;
    const [heir] = coming;
    if (heir === undefined) return;
    const isGone = placeOf(queue, heir) === null && !succession.isTried(heir.owner);
    if (!isGone && (!succession.isDoubted || isInOrder(queue, coming))) return;
    this.writeAnew(queue, succession, held);
  }

  /** Those who wait follow upon the holder, in their order. */
  private writeAnew(queue: Queue, succession: Succession, { token, owner }: Held): void {
    this.write(queue, succession, "set-heirs", token, nextHeirs(queue, owner, []));
  }

  /** Whoever comes finds the lock without heirs. */
  clear(queue: Queue): void {
    const { succession, held } = queue;
    if (succession === null || held === null || succession.isCleared) return;
    this.write(queue, succession, "set-heirs", held.token, []);
  }

  /** The leadership is handed on, or the node stops. */
  clearFor(queue: Queue, propose: FinalPropose): void {
    const { held, succession } = queue;
    if (succession === null || held === null || !succession.isActive) return;
    const row = this.decisions.listNow(queue);
    // Releases that are not proposed yet come behind it, others are before it.
    const told = row?.heirs.findIndex(({ token }) => token === succession.position?.token) ?? -1;
    if (row !== null && told >= 0) this.finalList(queue, row.base.token, told + 1, propose);
    this.finalList(queue, held.token, 0, propose);
  }

  private finalList(queue: Queue, token: bigint, kept: number, propose: FinalPropose): void {
    const { resource, succession } = queue;
    if (succession === null) return;
    const command = setHeirs(resource, token, kept, []);
    const passage = succession.begin("other", null, null);
    const list = succession.beginList(true, []);
    propose(command, listBytes(command), ({ status }) => {
      this.ended(queue, passage, status);
      // The leadership may stay where it is.
      const isCurrent = this.grants.isCurrent(queue);
      if (isCurrent) this.grants.note(queue);
      succession.endList(list);
      this.doubt(queue);
      if (isCurrent) this.grants.settle(queue);
    });
  }

  /** Names more of those who wait, if the lock is hot. */
  lengthen(queue: Queue): void {
    const { succession, held } = queue;
    if (succession === null || held === null || succession.isListOpen) return;
    // Of a former leadership something may be decided yet.
    if (!this.grants.isCurrent(queue)) return;
    const nowMs = this.ports.clock.monotonicMs();
    if (!queue.heat.isHot(nowMs) || queue.retryAtMs > nowMs || !succession.isUndisturbed) return;
    if (!this.settings.hasHeirs() || this.group.isHandingOver()) return;
    if (succession.isOrphaned(this.group.leaseNowMs())) return;
    const { ahead } = succession;
    if (ahead.length >= HEIRS_MAX) return;
    const added = nextHeirs(queue, held.owner, ahead);
    const last = ahead.at(-1)?.token ?? held.token;
    if (added.length > 0) this.write(queue, succession, "append-heirs", last, added);
  }

  private write(
    queue: Queue,
    succession: Succession,
    kind: HeirListCommand["kind"],
    token: bigint,
    added: readonly NamedAsk[],
  ): void {
    const { resource } = queue;
    const isSet = kind === "set-heirs";
    const passage = succession.begin(isSet ? "other" : "harmless", null, null);
    const list = succession.beginList(isSet, added);
    const command: HeirListCommand = isSet
      ? setHeirs(resource, token, 0, added)
      : { kind, resource, token, added, horizonMs: HORIZON_MS };
    this.decisions.write(command, (isApplied) => {
      succession.end(passage, isApplied ? "applied" : "void");
      if (!this.grants.isCurrent(queue)) return succession.endList(list);
      if (isApplied) this.grants.note(queue);
      else queue.retryAtMs = this.ports.clock.monotonicMs() + RETRY_MS;
      succession.endList(list);
      if (isSet) this.doubt(queue);
      this.grants.settle(queue);
      this.lengthen(queue);
      this.grants.expect();
    });
  }

  /** Whoever is the base and was not told of it is told, or it is given back. */
  followUp(queue: Queue): void {
    const { succession, held } = queue;
    if (succession === null || succession.untold === null || held === null) return;
    const { row, untold } = succession;
    if (row?.isHeld !== true || row.base.token !== untold || held.token !== untold) return;
    const place = placeOf(queue, row.base);
    if (place !== null) {
      // A try of its place that is on its way tells it.
      if (place.tries > 0) return;
      const leaseNowMs = this.group.leaseNowMs();
      const leftMs = Math.max(0, Math.floor(held.endMs - leaseNowMs));
      this.grants.tell(queue, place, untold, leftMs, leaseNowMs);
      return this.handedOn(queue, this.ports.clock.monotonicMs());
    }
    if (succession.isTried(held.owner) || succession.isReleased(untold, held.owner)) return;
    // By a try of its own, of whichever acquires it is, it is told that it holds the lock (L2).
    const first = queue.first();
    if (first !== null && equalBytes(first.owner, held.owner)) return;
    const { clock } = this.ports;
    if (queue.retryAtMs > clock.monotonicMs()) return;
    this.grants.giveBackTo(queue, held.owner, untold, ({ kind }) => {
      if (kind !== "decided") queue.retryAtMs = clock.monotonicMs() + RETRY_MS;
    });
  }

  /**
   * Whose try is to be made where the lease may be over, `first` being the first who waits; null:
   * nobody's, until what is on its way has come to its end.
   */
  turn(queue: Queue, first: Place): Place | null {
    const { succession, held } = queue;
    if (succession === null) return first;
    if (succession.position !== null) return null;
    if (this.orphanedUntilMs(queue) !== null) return this.returning(queue);
    const { next: heir } = succession;
    if (heir === null || held === null) return first;
    if (succession.isUndisturbed) {
      const place = placeOf(queue, heir);
      if (place !== null || succession.isListOpen) return place;
      this.clear(queue);
      return first;
    }
    // What nobody heard of is over when something behind it is applied.
    if (succession.isAllDoubtful) this.clear(queue);
    return null;
  }

  /** Of the list of a former leader: until when it binds (lease time); null: there is none. */
  orphanedUntilMs({ succession }: Queue): number | null {
    const isOrphaned = succession?.isOrphaned(this.group.leaseNowMs()) === true;
    return isOrphaned ? (succession.row?.untilMs ?? null) : null;
  }

  /** A member of such a list that asks again here: the base is told, and an heir was not. */
  returning(queue: Queue): Place | null {
    const row = queue.succession?.row ?? null;
    if (row === null) return null;
    for (const grant of [row.base, ...row.heirs]) {
      const place = placeOf(queue, grant);
      if (place !== null && (place.trial?.attempt ?? 0n) > grant.attempt) return place;
    }
    return null;
  }
}

function setHeirs(
  resource: string,
  token: bigint,
  kept: number,
  added: readonly NamedAsk[],
): HeirListCommand {
  return { kind: "set-heirs", resource, token, kept, added, horizonMs: HORIZON_MS };
}

/** Where the acquire waits that `grant` is for; null: it does not. */
function placeOf(
  queue: Queue,
  { owner, waitId }: Pick<ListedHeir, "owner" | "waitId">,
): Place | null {
  const place = queue.find(owner);
  return place !== null && place.living > 0 && place.trial?.waitId === waitId ? place : null;
}

function isHeld({ held }: Queue, owner: Uint8Array, token: bigint): boolean {
  return held !== null && held.token === token && equalBytes(held.owner, owner);
}
