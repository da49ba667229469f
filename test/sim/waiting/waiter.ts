/**
 * A client that waits for locks: it asks one node or the other, cancels, goes away, comes back, holds
 * what it is granted with work, pauses and delays, and lets go or forgets. Between its acquires it
 * tries without waiting, and looks who holds what.
 *
 * It lives outside of all machines. Invariants: 1. Every attempt is recorded. 2. An owner is of one
 * acquire with its repeats, and a newcomer's of one try. 3. It believes a lease by the rule of the
 * contract (Q6), and nothing of a try that it gave up (Q14).
 */
import { encodeText } from "../../../src/base/bytes.js";
import type { Prng } from "../../../src/base/prng.js";
import { hashPartition, lockHashText } from "../../../src/base/routing.js";
import type { Group } from "../../../src/host/group/group.js";
import type { AbortedWait } from "../../judge/checkers/waits/aborted-for-cause.js";
import type { GoneWait } from "../../judge/checkers/waits/gone-holds-nothing.js";
import type { StoreMark } from "../../judge/checkers/clients/fenced-store.js";
import type { HistoryRecorder, Outcome } from "../../judge/history.js";
import type { LockOperation, LockResult } from "../../judge/operation.js";
import { Call } from "../clients/call.js";
import type { ClientCounts } from "../clients/client.js";
import { askLock } from "../clients/lock-requests.js";
import { EPHEMERAL, PERSISTENT, type SharedWork, pick } from "../clients/workload.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { ABORTED, DESERTED, type Going, WaitCall } from "./waitcall.js";
import type { WaitPlan } from "./waitplan.js";

/** Acquires of one client at a time, at most. */
const FLOWS_MAX = 2;
const TRIES_MAX = 6;
const STEPS_MAX = 4;
/** How often who does not work with it tries to let go. */
const RELEASES_MAX = 3;
/** Places are kept for two seconds: who comes back does so before, or a little later. */
const RETURN_MS = 2500;
/** Where nobody leads, who asks a leader only looks for one so often. */
const LOOK_AGAIN_MS = 20;
/** Tries of clients are so far apart (Q14). */
const TRY_STEP = 65_536;

export interface WaiterParts {
  readonly world: World;
  readonly plan: Plan;
  readonly waits: WaitPlan;
  readonly servers: readonly Server[];
  readonly history: HistoryRecorder;
  readonly shared: SharedWork;
  readonly calls: ClientCounts;
  readonly counts: Record<string, number>;
  readonly gone: (wait: GoneWait) => void;
  readonly aborted: (wait: AbortedWait) => void;
  /** How often each owner asked. */
  readonly asks: Map<string, number>;
}

/** One lock that a client wants, with all its tries. */
interface Acquire {
  readonly resource: string;
  readonly ephemeral: boolean;
  readonly owner: string;
  readonly leaseMs: number;
  readonly untilMs: number;
  readonly waitId: number;
  /** Who was asked last. */
  at: Server | null;
  tries: number;
  mark: StoreMark | null;
}

export const NEWCOMER = "newcomer-";

export class Waiter {
  private readonly prng: Prng;
  private isStopped = false;
  private open = 0;
  /** What it does one after the other, so many times beside each other. */
  private flows = 1;
  private serial = 0;

  constructor(
    private readonly parts: WaiterParts,
    private readonly number: number,
  ) {
    this.prng = parts.world.prng(`waiter ${number}`);
  }

  get isWaiting(): boolean {
    return this.open > 0;
  }

  start(): void {
    this.later(this.prng.below(2000), () => this.act());
  }

  stop(): void {
    this.isStopped = true;
  }

  private later(delayMs: number, then: () => void): void {
    this.parts.world.schedule(delayMs, () => {
      if (!this.isStopped && !this.parts.history.isFull()) then();
    });
  }

  private think(): void {
    this.later(1 + this.prng.below(2 * this.parts.waits.thinkMs), () => this.act());
  }

  private act(): void {
    const { newcomerPercent, readerPercent } = this.parts.waits;
    const drawn = this.prng.below(100);
    const place = this.drawPlace();
    if (drawn < newcomerPercent) return this.comeNew(place);
    if (drawn < newcomerPercent + readerPercent) return this.read(place, "", () => this.think());
    // Who wants two locks begins with the second one before it has the first.
    if (this.flows < FLOWS_MAX && this.prng.chance(1, 3)) {
      this.flows++;
      this.think();
    }
    this.acquire(place);
  }

  private drawPlace(): { readonly resource: string; readonly ephemeral: boolean } {
    const { waits } = this.parts;
    const ephemeral = this.prng.chance(waits.ephemeralPercent, 100);
    return { resource: `hot-${this.prng.below(waits.locks)}`, ephemeral };
  }

  private count(name: string): void {
    const { counts } = this.parts;
    counts[name] = (counts[name] ?? 0) + 1;
  }

  private get isOrderly(): boolean {
    return this.parts.waits.heirs?.isOrderly === true;
  }

  /** Whoever believes to lead the lock. */
  private leader(resource: string): Server | undefined {
    const { servers, plan } = this.parts;
    const partitions = plan.host.initialPartitions ?? 1;
    const partition = hashPartition(lockHashText(resource), partitions);
    return servers.find(({ running }) => {
      return running?.node.groups().some((group) => isLedHere(group, partition)) === true;
    });
  }

  private server(resource: string): Server {
    const { servers, waits } = this.parts;
    if (this.draws(waits.heirs?.gatherPercent)) {
      const leader = this.leader(resource);
      if (leader !== undefined) return leader;
    }
    const home = servers[this.number % servers.length];
    if (home !== undefined && this.draws(waits.heirs?.homePercent)) return home;
    return pick(this.prng, servers);
  }

  /** Of a hundred so many; where there is nothing to draw for, nothing is drawn. */
  private draws(percent = 0): boolean {
    return percent > 0 && this.prng.chance(percent, 100);
  }

  // What does not wait ---------------------------------------------------------------------------

  private ask(
    operation: LockOperation,
    then: (outcome: Outcome) => void,
    token?: bigint,
    server = this.server(operation.resource),
  ): void {
    const { world, history, plan, calls } = this.parts;
    const parts = { world, history, server, name: `waiter-${this.number}` };
    const named = token === undefined ? operation : { ...operation, fencingToken: `${token}` };
    const asked = askLock("lock", named);
    const manner = { timeoutMs: plan.requestTimeoutMs, forwardHops: 0, vanishAfterMs: null };
    this.open++;
    calls.calls++;
    new Call(parts, asked, manner, this.prng, ([outcome]) => {
      this.open--;
      if (outcome === undefined) return;
      calls[outcome.kind]++;
      then(outcome);
    });
  }

  private comeNew(place: { readonly resource: string; readonly ephemeral: boolean }): void {
    const owner = `${NEWCOMER}${this.number}.${this.serial++}`;
    const expiresMs = pick(this.prng, this.parts.waits.leasesMs);
    this.ask({ kind: "try-lock", ...place, owner, expiresMs }, (outcome) => {
      if (typeOf(outcome) !== "Locked") return this.think();
      this.count("newcomers granted");
      this.later(this.prng.below(20), () => {
        const unlock = { kind: "try-unlock", ...place, owner, expiresMs: 0 } as const;
        this.ask(unlock, () => this.think());
      });
    });
  }

  /** `about`: whose place is asked for; "": nobody's. */
  private read(
    place: { readonly resource: string; readonly ephemeral: boolean },
    about: string,
    then: () => void,
  ): void {
    const { world, history, plan } = this.parts;
    const { resource, ephemeral } = place;
    const durability = ephemeral ? EPHEMERAL : PERSISTENT;
    const owner = about === "" ? null : encodeText(about);
    const request = { kind: "get-lock", resource, durability, owner } as const;
    const asked = { resource, ephemeral, owner: about, expiresMs: 0 };
    const operation: LockOperation = { kind: "get-lock", ...asked };
    const parts = { world, history, server: this.server(resource), name: `reader-${this.number}` };
    const manner = { timeoutMs: plan.requestTimeoutMs, forwardHops: 0, vanishAfterMs: null };
    this.open++;
    new Call(
      parts,
      { kind: "get-lock", request, operations: [operation] },
      manner,
      this.prng,
      () => {
        this.open--;
        then();
      },
    );
  }

  // What waits -----------------------------------------------------------------------------------

  private acquire(place: { readonly resource: string; readonly ephemeral: boolean }): void {
    const { prng } = this;
    const { waits, world } = this.parts;
    const wanted: Acquire = {
      ...place,
      owner: `waiter-${this.number}.${this.serial++}`,
      leaseMs: pick(prng, waits.leasesMs),
      untilMs: world.nowMs + pick(prng, waits.waitsMs),
      waitId: this.hasWaitId() ? 1 + prng.below(1 << 30) : 0,
      ...{ at: null, tries: 0, mark: null },
    };
    this.try(wanted);
    // Another request of the same owner shares the place, and its end (Q7).
    if (this.isOrderly) return;
    if (prng.chance(1, 15)) this.later(prng.below(300), () => this.share(wanted));
  }

  private hasWaitId(): boolean {
    const { heirs } = this.parts.waits;
    return heirs === null ? this.prng.chance(3, 4) : !this.draws(heirs.anonymousPercent);
  }

  private drawGoing(waitMs: number): { readonly how: Going; readonly afterMs: number } | null {
    const { prng } = this;
    const { cancelPercent, closePercent } = this.parts.waits;
    const drawn = prng.below(100);
    if (this.draws(this.parts.waits.heirs?.desertPercent)) {
      return { how: "desert", afterMs: prng.below(prng.chance(1, 2) ? 50 : waitMs) };
    }
    // Now and then in the very moment of the ask, of the grant or of the end.
    const afterMs = prng.chance(1, 3) ? prng.below(30) : prng.below(waitMs + 20);
    if (drawn < cancelPercent) return { how: "cancel", afterMs };
    if (drawn >= cancelPercent + closePercent) return null;
    return { how: prng.chance(1, 2) ? "close" : "break", afterMs };
  }

  private wait(
    wanted: Acquire,
    going: { readonly how: Going; readonly afterMs: number } | null,
    then: (outcome: Outcome, isGone: boolean) => void,
  ): void {
    const { world, history, plan, calls, gone, aborted, asks } = this.parts;
    const { resource, ephemeral, owner, leaseMs: expiresMs, waitId } = wanted;
    const partitions = plan.host.initialPartitions ?? 1;
    const name = `waiter-${this.number}`;
    const timeoutMs = plan.requestTimeoutMs;
    const server = this.server(resource);
    wanted.at = server;
    const parts = { world, history, name, timeoutMs, partitions, gone, aborted, server };
    const waitMs = Math.max(1, Math.round(wanted.untilMs - world.nowMs));
    const tryNumber = ++wanted.tries * TRY_STEP;
    asks.set(owner, (asks.get(owner) ?? 0) + 1);
    const ask = { resource, ephemeral, owner, expiresMs, waitMs, waitId, tryNumber, going };
    this.open++;
    calls.calls++;
    this.count("asked");
    new WaitCall(parts, ask, this.prng, (outcome, isGone) => {
      const isDeserted = outcome.kind === "unknown" && outcome.reason === DESERTED;
      // It waits on for nobody.
      if (isDeserted) world.schedule(waitMs + timeoutMs, () => this.open--);
      else this.open--;
      calls[outcome.kind]++;
      then(outcome, isGone);
    });
  }

  private share(wanted: Acquire): void {
    this.count("shared places");
    // Where there are heirs it is another program: a later try would make the former one void (Q14).
    const other = this.parts.waits.heirs === null ? wanted : { ...wanted, waitId: 0 };
    this.wait(other, null, () => undefined);
  }

  private try(wanted: Acquire): void {
    if (this.isOrderly && this.leader(wanted.resource) === undefined) {
      return this.later(LOOK_AGAIN_MS, () => this.try(wanted));
    }
    const place = placeOf(wanted);
    wanted.mark = this.parts.shared.store.mark(place);
    const leftMs = Math.max(1, Math.round(wanted.untilMs - this.parts.world.nowMs));
    const going = this.drawGoing(leftMs);
    this.wait(wanted, going, (outcome, isGone) => this.tried(wanted, outcome, isGone));
  }

  private tried(wanted: Acquire, outcome: Outcome, isGone: boolean): void {
    const { prng } = this;
    const { world } = this.parts;
    const type = typeOf(outcome);
    if (type === "Locked" && outcome.kind === "ok") {
      this.count("granted");
      return this.hold(wanted, (outcome.result as LockResult).token ?? 0n);
    }
    if (outcome.kind === "unknown" && outcome.reason === ABORTED) {
      this.count("cancelled");
      return this.read(wanted, wanted.owner, () => this.done());
    }
    if (outcome.kind === "unknown" && outcome.reason === DESERTED) {
      this.count("asked elsewhere");
      return this.again(wanted, prng.below(100));
    }
    if (isGone) this.count("went away");
    const isOver = wanted.untilMs <= world.nowMs + 1;
    const hasMore = wanted.tries < TRIES_MAX;
    if (type === "Busy") {
      this.count("waited in vain");
      if (!hasMore || prng.chance(1, 2)) return this.done();
      return this.again({ ...wanted, untilMs: world.nowMs + 3000 }, prng.below(RETURN_MS));
    }
    if (outcome.kind === "refused") return this.refused();
    if (outcome.kind !== "unknown" || isOver || !hasMore) return this.done();
    const isBack = isGone ? prng.chance(1, 2) : prng.chance(4, 5);
    if (!isBack) return this.done();
    this.again(wanted, isGone ? prng.below(RETURN_MS) : prng.below(300));
  }

  private again(wanted: Acquire, afterMs: number): void {
    this.later(afterMs, () => {
      if (wanted.untilMs <= this.parts.world.nowMs + 1) return this.done();
      this.count("came back");
      this.try(wanted);
    });
  }

  private done(): void {
    this.think();
  }

  /** Who hardly thinks would do nothing but ask, where nobody answers. */
  private refused(): void {
    if (this.parts.waits.heirs === null) this.done();
    else this.later(200, () => this.done());
  }

  // What is held ---------------------------------------------------------------------------------

  private hold(wanted: Acquire, token: bigint): void {
    const { store } = this.parts.shared;
    const { owner, mark } = wanted;
    store.granted(placeOf(wanted), owner, token, mark);
    store.write(placeOf(wanted), owner, token);
    this.work(wanted, token, this.prng.below(STEPS_MAX));
  }

  private work(wanted: Acquire, token: bigint, stepsLeft: number): void {
    const { prng } = this;
    const { waits, shared } = this.parts;
    const { resource, ephemeral, owner, leaseMs } = wanted;
    const { heirs } = waits;
    if (heirs !== null && !this.draws(heirs.holdPercent)) {
      const release = (): void => this.release(wanted, token, RELEASES_MAX);
      return heirs.keepMs === 0 ? release() : this.later(heirs.keepMs, release);
    }
    if (stepsLeft <= 0) {
      if (prng.chance(waits.forgetPercent, 100)) return this.done();
      return this.later(prng.below(waits.workMs), () => this.release(wanted, token, 2));
    }
    const isFrozen = prng.chance(waits.freezePercent, 100);
    const afterMs = isFrozen ? prng.below(2 * leaseMs) : prng.below(waits.workMs);
    this.later(afterMs, () => {
      shared.store.write(placeOf(wanted), owner, token);
      if (!prng.chance(1, 2)) return this.work(wanted, token, stepsLeft - 1);
      const extend = { kind: "try-extend", resource, ephemeral, owner } as const;
      const operation = { ...extend, expiresMs: leaseMs };
      const named = this.drawNamed(token);
      const next = (): void => this.work(wanted, token, stepsLeft - 1);
      this.ask(operation, next, named);
    });
  }

  /** What changes a grant names it, or its owner alone. */
  private drawNamed(token: bigint): bigint | undefined {
    const { heirs } = this.parts.waits;
    const isNamed = heirs === null ? this.prng.chance(2, 3) : !this.draws(heirs.vaguePercent);
    return isNamed ? token : undefined;
  }

  private release(wanted: Acquire, token: bigint, triesLeft: number): void {
    const { resource, ephemeral, owner } = wanted;
    const unlock = { kind: "try-unlock", resource, ephemeral, owner, expiresMs: 0 } as const;
    const isFirst = this.isOrderly && triesLeft === RELEASES_MAX;
    const named = isFirst ? token : this.drawNamed(token);
    const then = (outcome: Outcome): void => {
      if (outcome.kind === "ok" || triesLeft <= 1) return this.done();
      this.later(this.prng.below(100), () => this.release(wanted, token, triesLeft - 1));
    };
    this.ask(unlock, then, named, (isFirst ? wanted.at : null) ?? undefined);
    if (!this.draws(this.parts.waits.heirs?.twicePercent)) return;
    this.count("released twice");
    this.later(this.prng.below(100), () => this.ask(unlock, () => undefined, token));
  }
}

/** As its node believes. */
function isLedHere(group: Group, partition: number): boolean {
  return group.partition === partition && group.isLeader();
}

function placeOf({ resource, ephemeral }: Pick<Acquire, "resource" | "ephemeral">): string {
  return `${ephemeral ? "ephemeral " : ""}${resource}`;
}

function typeOf(outcome: Outcome): LockResult["type"] | null {
  return outcome.kind === "ok" ? (outcome.result as LockResult).type : null;
}
