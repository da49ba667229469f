/**
 * Looks into the queues of all leaders of a world while it runs, and tells the checkers what happens
 * there: who is taken in and goes, whom a leader tries, and what comes of it.
 *
 * Invariants: 1. What is looked at goes on as it would: no draw, no delay, no other order. 2. A life
 * is looked into from its opening on.
 */
import { decodeText } from "../../../src/base/bytes.js";
import type { Group } from "../../../src/host/group/group.js";
import {
  type Decision,
  type LockCall,
  lockReads,
} from "../../../src/host/waiting/lock-decisions.js";
import type { CarriedPlace } from "../../../src/host/waiting/carried-places.js";
import type { LockQueues } from "../../../src/host/waiting/lock-queues.js";
import type { Waiter } from "../../../src/host/waiting/queue.js";
import { LockType } from "../../../src/machine/commands/command.js";
import type { Fifo } from "../../judge/checkers/waits/fifo.js";
import type { SeenGrant } from "../../judge/checkers/waits/lease-from-grant.js";
import type { NoLostWakeUp } from "../../judge/checkers/waits/no-lost-wake-up.js";
import {
  type SeenEnd,
  SeenQueue,
  type SeenRequest,
} from "../../judge/checkers/waits/seen-queues.js";
import type { Attempt, History, HistoryRecorder, Outcome } from "../../judge/history.js";
import { type LockResult, objectOf } from "../../judge/operation.js";
import type { WaitEndsOnce } from "../../judge/checkers/waits/wait-ends-once.js";
import type { Running, Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { HeirTap, Told } from "./heir-tap.js";
import { attemptOf, isBack } from "./told-tries.js";

/** It is told by the attempt of the client. */
const DECIDED: Outcome = { kind: "refused", reason: "decided" };
/** A try that was made so long ago counts as on its way: it may be made again soon (ms). */
const TRIED_MS = 100;
const TRIES: ReadonlySet<string> = new Set(["try-lock", "lock-with-note", "lock-heir"]);

export interface TapChecks {
  readonly fifo: Fifo;
  readonly ends: WaitEndsOnce;
  readonly wakeUps: NoLostWakeUp;
  /** null: locks have no heirs. */
  readonly heirs: HeirTap | null;
}

/** The queues of one group at one node, in one life. */
interface Tapped {
  readonly group: Group;
  readonly queues: LockQueues;
  readonly seen: Map<string, SeenQueue>;
  readonly tries: Map<string, { open: number; lastMs: number }>;
  readonly requests: WeakMap<Waiter, SeenRequest>;
  /** Of those that wait, what each says of its wait. */
  readonly named: Map<SeenRequest, Told>;
  /** What the leader of that term told when it handed over to this node as planned. */
  carried: {
    readonly term: number;
    readonly atMs: number;
    readonly places: readonly CarriedPlace[];
  };
}

/** A carried place counts for so long (ms). */
const CARRIED_MS = 10_000;
const NOTHING_CARRIED = { term: -1, atMs: -Infinity, places: [] };

export class QueueTap {
  /** Of all leaders that there were. */
  readonly queues: SeenQueue[] = [];
  readonly grants: SeenGrant[] = [];
  /** Grants that were told, by lock and token: a later try on its way finds what an earlier one got. */
  private readonly known = new Set<string>();
  /** Owners whose grant could not be given back. */
  readonly kept = new Set<string>();
  /** Tries of each owner that were decided in its favour, or of which nobody knows. */
  private readonly hopes = new Map<string, number>();
  /** Owners whose lock a leader released. */
  private readonly released = new Set<string>();
  readonly counts = {
    ...{ asks: 0, "grants with a release": 0, "grants at the end of a lease": 0 },
    ...{ "releases before waiters": 0, left: 0, cancelled: 0, resets: 0 },
    ...{ "grants in memory": 0, "grants to heirs by entries": 0 },
  };
  /** Tries that were made, by partition. */
  readonly triesOf = new Map<number, number>();
  private readonly tapped = new Map<Server, Map<LockQueues, Tapped>>();

  constructor(
    private readonly world: World,
    private readonly checks: TapChecks,
    private readonly history: HistoryRecorder,
  ) {}

  /** A life of `server` is open. */
  opened(server: Server): void {
    const { running } = server;
    if (running === null) return;
    const known = new Map<LockQueues, Tapped>();
    this.tapped.set(server, known);
    this.checks.heirs?.opened(server);
    const serving = running.operations["serving"];
    const queuesOf = serving.queues.bind(serving);
    serving.queues = (group) => {
      const queues = queuesOf(group);
      if (!known.has(queues)) {
        known.set(queues, this.tap(server.nodeId, group as Group, queues));
        this.checks.heirs?.proposals(server.nodeId, group as Group);
      }
      return queues;
    };
  }

  /**
   * The history without the waits that certainly had no effect, as no leader ever proposed what they
   * were for: so few are left open that an order can be searched for. And without those that were
   * told Busy because of who waited: their lock may have been held by nobody yet (Q3).
   */
  effective(history: History): History {
    const { heirs } = this.checks;
    const needed = heirs === null ? history.attempts : heirs.needed(history.attempts);
    const attempts = needed.filter((attempt) => {
      const { operation, outcome } = attempt;
      if (!("resource" in operation)) return true;
      if (outcome?.kind === "ok") return !this.isBusyByWaiters(attempt);
      if (heirs !== null && !operation.ephemeral) return true;
      if (operation.isGiveBack === true) return this.released.has(operation.owner);
      return operation.waitMs === undefined || (this.hopes.get(operation.owner) ?? 0) > 0;
    });
    return { ...history, attempts };
  }

  private isBusyByWaiters({ operation, outcome, callMs, returnMs }: Attempt): boolean {
    if (operation.kind !== "try-lock" || outcome?.kind !== "ok") return false;
    if ((outcome.result as LockResult).type !== "Busy") return false;
    if (operation.waitMs !== undefined) return true;
    const lock = objectOf(operation);
    if (this.checks.heirs?.wasOrphaned(lock ?? "", callMs, returnMs ?? Infinity) === true)
      return true;
    return this.queues.some(
      (queue) =>
        queue.lock === lock &&
        queue.stretches.some(
          ({ fromMs, toMs }) => fromMs <= (returnMs ?? Infinity) && toMs >= callMs,
        ),
    );
  }

  /** Looks at all leaders once. */
  look(servers: readonly Server[]): void {
    this.checks.heirs?.look();
    for (const server of servers) {
      if (server.running === null) continue;
      for (const tapped of this.tapped.get(server)?.values() ?? []) {
        this.lookAt(server.running, tapped);
      }
    }
  }

  /** The queues of a group as they are at a node now. */
  at(server: Server, group: Group): LockQueues | null {
    for (const tapped of this.tapped.get(server)?.values() ?? []) {
      if (tapped.group === group) return tapped.queues;
    }
    return null;
  }

  private hope(owner: string, by: number): void {
    this.hopes.set(owner, (this.hopes.get(owner) ?? 0) + by);
  }

  private lookAt({ life, node }: Running, tapped: Tapped): void {
    const { group, seen, tries } = tapped;
    const { nowMs } = this.world;
    const { heirs } = this.checks;
    const isBusy = life.isPaused || life["busyUntilMs"] > nowMs || node.closing;
    for (const [key, queue] of seen) {
      const isEphemeral = key.startsWith("ephemeral-lock ");
      const reads = isBusy ? undefined : lockReads(group, isEphemeral);
      const isAble = reads !== undefined && group.isServing();
      const tried = tries.get(key);
      const isTried = (tried?.open ?? 0) > 0 || (tried?.lastMs ?? -Infinity) > nowMs - TRIED_MS;
      let isFree = false;
      if (isAble) {
        const { owner, leaseEndMs } = reads.getLock(key.slice(key.indexOf(" ") + 1), 0);
        isFree = owner === null || leaseEndMs <= group.leaseNowMs();
      }
      if (heirs === null || isEphemeral) {
        const look = { atMs: nowMs, isAble, isFree, isBound: false, isTried };
        this.checks.wakeUps.look(queue, look);
        continue;
      }
      const resource = key.slice(key.indexOf(" ") + 1);
      const orphan = isAble ? heirs.orphaned(group, resource) : null;
      // What is told ahead of the row is no loss. And who leads no more may be behind.
      const isMoving = isTried || heirs.isBusy(group, resource);
      const isBound = isAble && heirs.isBound(group, resource);
      const look = { atMs: nowMs, isAble, isFree, isBound, isTried: isMoving };
      this.checks.wakeUps.look(queue, look);
      const first = orphan?.heirs[0];
      heirs.orphans.look({
        ...{ lock: key, node: queue.node, term: queue.term, atMs: nowMs, isAble },
        isOrphaned: orphan !== null,
        isFirstBack: first !== undefined && isBack(tapped.named, queue, first),
        isTried: isMoving,
      });
    }
  }

  private tap(node: number, group: Group, queues: LockQueues): Tapped {
    const tapped: Tapped = {
      ...{ group, queues, seen: new Map(), tries: new Map(), requests: new WeakMap() },
      ...{ named: new Map(), carried: NOTHING_CARRIED },
    };
    this.tapAsks(node, tapped);
    this.tapMoves(tapped);
    this.tapHeirs(node, tapped);
    this.tapTries(tapped);
    const reset = queues.reset.bind(queues);
    queues.reset = () => {
      if (tapped.seen.size > 0) this.counts.resets++;
      for (const queue of tapped.seen.values()) queue.reset(this.world.nowMs);
      tapped.seen.clear();
      tapped.tries.clear();
      tapped.named.clear();
      reset();
    };
    return tapped;
  }

  private tapAsks(node: number, tapped: Tapped): void {
    const { group, queues, seen, requests, named } = tapped;
    const { world, checks, counts } = this;
    const ask = queues.ask.bind(queues);
    queues.ask = (resource, isEphemeral, wish) => {
      const lock = nameOf(resource, isEphemeral);
      let queue = seen.get(lock);
      if (queue === undefined || queue.term !== group.term()) {
        queue = new SeenQueue(lock, group.partition, node, group.term());
        seen.set(lock, queue);
        this.queues.push(queue);
        const { term, atMs, places } = tapped.carried;
        const isNext = term + 1 === queue.term && world.nowMs - atMs <= CARRIED_MS;
        for (const place of isNext ? places : []) {
          if (nameOf(place.resource, place.isEphemeral) !== lock) continue;
          queue.carriedOver(ownerText(place.owner), world.nowMs);
        }
      }
      counts.asks++;
      const request = queue.asked(ownerText(wish.owner), world.nowMs);
      const { waitId = 0n, attempt = 0n } = wish.trial ?? {};
      const to = { owner: request.place.owner, waitId, attempt };
      if (checks.heirs !== null && !isEphemeral) named.set(request, to);
      const done = (end: Parameters<typeof wish.done>[0]): void => {
        const kind: SeenEnd = end.kind;
        named.delete(request);
        checks.ends.ended(request, kind, world.nowMs);
        const isKept = kind === "busy" || kind === "moved" || kind === "unknown";
        request.place.queue.gone(request, isKept, world.nowMs);
        wish.done(end);
      };
      const { owner, expiresMs, note, untilMs, deadlineMs, trial } = wish;
      const told = { owner, expiresMs, note, untilMs, deadlineMs, trial, done };
      const waiter = ask(resource, isEphemeral, told);
      if (waiter === null) queue.gone(request, false, world.nowMs);
      else requests.set(waiter, request);
      return waiter;
    };
    const ends = queues["ends"];
    const endLater = ends.endLater.bind(ends);
    // Who is void by a higher try (Q14) waits no more from now on, though it is told a turn later.
    ends.endLater = (waiter, end) => {
      const request = requests.get(waiter);
      const isOver = request !== undefined && end.kind === "aborted";
      if (isOver) request.place.queue.gone(request, false, world.nowMs);
      endLater(waiter, end);
    };
    const leave = queues.leave.bind(queues);
    queues.leave = (waiters, how) => {
      for (const waiter of waiters) {
        const request = requests.get(waiter);
        if (request === undefined || waiter.isEnded || waiter.isCancelled) continue;
        counts[how]++;
        request.place.queue.gone(request, how === "left", world.nowMs);
      }
      return leave(waiters, how);
    };
  }

  /** Who stands where goes along with a planned move. */
  private tapMoves(tapped: Tapped): void {
    const { queues, seen } = tapped;
    const carry = queues.carry.bind(queues);
    queues.carry = (term, places) => {
      tapped.carried = { term, atMs: this.world.nowMs, places };
      carry(term, places);
    };
    const standings = queues.standings.bind(queues);
    queues.standings = () => {
      const places = standings();
      for (const [lock, queue] of seen) {
        const told = places.filter((each) => nameOf(each.resource, each.isEphemeral) === lock);
        const owners = told.map(({ owner }) => ownerText(owner));
        this.checks.fifo.carried(lock, owners, queue.standing);
      }
      return places;
    };
  }

  /** Grants that are told along lists: by entries, and ahead of what is applied. */
  private tapHeirs(node: number, { group, queues, requests, named }: Tapped): void {
    const { world, checks, counts, known } = this;
    const { heirs } = checks;
    if (heirs === null) return;
    const grants = queues["grants"];
    const tell = grants.tell.bind(grants);
    grants.tell = (queue, place, token, ...lease) => {
      const told = place.waiters.flatMap((waiter) => {
        const request = waiter.isCancelled ? undefined : requests.get(waiter);
        return request === undefined ? [] : [request];
      });
      // Of tries of one acquire the highest counts: what others are told is void (Q14).
      const [request] = told.sort((one, other) => attemptOf(named, other, one));
      if (request !== undefined) {
        const { nowMs } = world;
        const to = named.get(request) ?? { owner: request.place.owner, waitId: 0n, attempt: 0n };
        const isAhead = heirs.told(node, group, queue.resource, token, to);
        const { place } = request;
        const { lock } = place.queue;
        const name = `${lock} ${token}`;
        if (!known.has(name)) {
          known.add(name);
          counts[isAhead ? "grants in memory" : "grants to heirs by entries"]++;
          checks.fifo.tried(place, nowMs, true)(token, true);
          const grant = heirs.grantOf(lock, group, token);
          if (grant !== null) this.grants.push(grant);
          place.queue.drop(place, nowMs);
        }
      }
      tell(queue, place, token, ...lease);
    };
  }

  private tapTries(tapped: Tapped): void {
    const decisions = tapped.queues["decisions"];
    const make = decisions.make.bind(decisions);
    decisions.make = (isEphemeral, call, next) => {
      const first = this.watched(tapped, isEphemeral, call, false);
      const second = next === null ? null : this.watched(tapped, isEphemeral, next, true);
      make(isEphemeral, first, second);
    };
  }

  /** `call`, of which it is told what comes of it. */
  private watched(tapped: Tapped, isEphemeral: boolean, call: LockCall, isNext: boolean): LockCall {
    const { command } = call;
    if (TRIES.has(command.kind)) {
      return this.watchedTry(tapped, isEphemeral, call, isNext);
    }
    const owner = ownerText(command.owner);
    this.released.add(owner);
    const then = (decision: Decision): void => {
      if (decision.kind === "decided") this.counts["releases before waiters"]++;
      else this.kept.add(owner);
      call.then(decision);
    };
    return { ...call, then };
  }

  private watchedTry(
    { group, seen, tries }: Tapped,
    isEphemeral: boolean,
    call: LockCall,
    isNext: boolean,
  ): LockCall {
    const { world, checks, counts } = this;
    const { command } = call;
    const lock = nameOf(command.resource, isEphemeral);
    const owner = ownerText(command.owner);
    const leaseMs = "expiresMs" in command ? command.expiresMs : 0;
    const place = seen.get(lock)?.find(owner) ?? null;
    const proposedMs = world.nowMs;
    const before = lockReads(group, isEphemeral)?.getLock(command.resource, 0) ?? null;
    const knownToken = before?.token ?? -1n;
    const heirs = isEphemeral ? null : checks.heirs;
    const isHeir = heirs?.isNamed(group, command.resource, owner) === true;
    const isFirst = heirs?.isOfOrphan(group, command.resource, owner) === true;
    const isJudged = place !== null && !isFirst;
    const granted = isJudged ? checks.fifo.tried(place, proposedMs, isHeir) : null;
    if (place === null) checks.fifo.stranger(lock, owner, proposedMs);
    const tried = tries.get(lock) ?? { open: 0, lastMs: 0 };
    tries.set(lock, tried);
    this.hope(owner, 1);
    tried.open++;
    if (place !== null) place.tries++;
    tried.lastMs = proposedMs;
    this.triesOf.set(group.partition, (this.triesOf.get(group.partition) ?? 0) + 1);
    // A try that nobody knows of any more may be granted beside the one that follows it.
    const { resource } = command;
    const operation = { kind: "try-lock", resource, ephemeral: isEphemeral, owner } as const;
    const id = this.history.call("leader", 0, { ...operation, expiresMs: leaseMs }, proposedMs);
    const then = (decision: Decision): void => {
      if (decision.kind === "unknown") this.history.lost(id, "a try of the leader", world.nowMs);
      else this.history.answered(id, DECIDED, world.nowMs);
      tried.open--;
      if (place !== null) place.tries--;
      const isLocked = decision.kind === "decided" && decision.type === LockType.locked;
      const isDone = decision.kind !== "unknown";
      if (isDone && !isLocked) this.hope(owner, -1);
      if (isLocked) {
        const { token } = decision;
        const name = `${lock} ${token}`;
        const isFresh = token > knownToken && !this.known.has(name);
        this.known.add(name);
        granted?.(token, isFresh);
        if (isFresh) {
          counts[isNext ? "grants with a release" : "grants at the end of a lease"]++;
          const { partition } = group;
          const decidedMs = world.nowMs;
          this.grants.push({ lock, partition, owner, token, leaseMs, proposedMs, decidedMs });
        }
      }
      call.then(decision);
      if (isLocked && place !== null) place.queue.drop(place, world.nowMs);
    };
    return { ...call, then };
  }
}

function nameOf(resource: string, isEphemeral: boolean): string {
  return `${isEphemeral ? "ephemeral-lock" : "lock"} ${resource}`;
}

function ownerText(owner: Uint8Array | null): string {
  return owner === null ? "" : (decodeText(owner) ?? "");
}
