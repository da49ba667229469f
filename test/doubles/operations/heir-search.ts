/**
 * Random histories of one lock with heirs, on the real host and machine of one node: clients that
 * wait, ask again, hold, extend, release, give up and vanish; a log that hangs, proposals that are
 * refused, moves of the leadership that come to nothing, stops, crashes, forced releases. Each ends
 * in peace, in which everybody who waits must get the lock.
 *
 * Invariants: 1. A history is the same for the same seed. 2. Clients believe by what they were told
 * and when they sent, and drop what is told to a try that is not their latest.
 */
import { Int64 } from "../../../src/base/int64.js";
import { Prng } from "../../../src/base/prng.js";
import { LockType } from "../../../src/base/result-types.js";
import type { Command } from "../../../src/machine/commands/command.js";
import type { AnswerOf } from "../../../src/operations/api/kinds.js";
import type { DataRequest, WaitControl } from "../../../src/operations/api/requests.js";
import { World } from "../host/world.js";
import { Bench, extendLock, info, lock, unlock } from "./fixture.js";

const ACTS = 700;
/** Longer than the acts of a history take, as a rule. */
const LEASE_MS = 3000;
const ANSWER_MS = 400;
const WAIT_MS = 60_000;
/** Rounds of 50 ms in which peace serves everybody. */
const PEACE_ROUNDS = 400;
const REFUSED = { status: "refused", reason: "overloaded" } as const;
const REFUSABLE: readonly Command["kind"][] = [
  "unlock-grant",
  "set-heirs",
  "append-heirs",
  "lock-heir",
];

type Act = (client: Client) => void;

class Client {
  phase: "idle" | "waiting" | "holding" | "releasing" = "idle";
  waitId = 0;
  attempt = 0;
  /** The try that it made last. */
  asked = 0;
  leaseMs = LEASE_MS;
  sentMs = 0;
  token = -1;
  /** It believes that it holds, before this. */
  untilMs = 0;
  /** A release of its may have been applied, though it was not told so. */
  isInDoubt = false;
  control: WaitControl | null = null;

  constructor(public owner: string) {}

  believes(nowMs: number): boolean {
    return this.phase === "holding" && this.untilMs > nowMs;
  }
}

/** What all histories have seen: without it, they proved nothing. */
export type HeirCounts = Record<string, number>;

class History {
  fault: string | null = null;
  private readonly random: Prng;
  private readonly world: World;
  private readonly clients: readonly Client[];
  private readonly forced = new Set<number>();
  private readonly acts: readonly (readonly [weight: number, act: Act])[];
  private bench: Bench;
  private life = 0;
  private names = 1;
  private topToken = -1;
  private hasHeirs = true;

  constructor(
    private readonly seed: number,
    private readonly counts: HeirCounts,
  ) {
    this.random = new Prng(seed);
    this.world = new World({}, seed);
    this.bench = new Bench({ lockSuccession: true }, this.world);
    this.clients = Array.from({ length: 4 + (seed % 4) }, (_, at) => new Client(`c${at}`));
    const acts: typeof this.acts = [
      [120, (client) => this.goOn(client)],
      [24, (client) => this.extend(client)],
      [6, (client) => this.giveUp(client)],
      [4, (client) => this.vanish(client)],
      [16, () => this.hangOrNot()],
      [24, () => this.world.log.sync(1)],
      [8, () => this.refuse()],
      [2, () => this.endLists()],
      [2, () => this.force()],
      [1, () => this.crash()],
      [6, () => this.send(info("r"), () => undefined)],
      [4, (client) => this.intrude(client)],
      [36, () => this.world.settle()],
      [2, () => this.move()],
      [3, () => this.pass()],
    ];
    // What is rare never happens in some, so that the rest comes closer together.
    this.acts = acts.filter(([weight]) => weight > 20 || this.below(3) > 0);
  }

  run(): void {
    const total = this.acts.reduce((sum, [weight]) => sum + weight, 0);
    for (let at = 0; at < ACTS && this.fault === null; at++) {
      const client = this.clients[this.below(this.clients.length)] as Client;
      let drawn = this.below(total);
      const found = this.acts.find(([weight]) => (drawn -= weight) < 0);
      found?.[1](client);
      for (const { kind } of this.bench.commands.splice(0)) this.count(kind);
    }
    if (this.fault === null) this.peace();
  }

  private below(bound: number): number {
    return this.random.below(bound);
  }

  private count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  private violated(what: string): void {
    this.fault ??= `seed ${this.seed}, at ${this.bench.nowMs} ms: ${what}`;
  }

  private get group() {
    return this.bench.group(this.bench.partitionOf("r"));
  }

  /** What a former life answers nobody hears. */
  private send<R extends DataRequest>(
    request: R,
    heard: (answer: AnswerOf<R>) => void,
    withinMs = ANSWER_MS,
  ): WaitControl | null {
    const { life, bench } = this;
    const context = { deadlineMs: bench.nowMs + withinMs, forwardHops: 0, requestId: "t" };
    return bench.operations.execute(request, context, (answer: AnswerOf<R>) => {
      if (life === this.life) heard(answer);
    });
  }

  private goOn(client: Client): void {
    if (client.phase === "idle") return this.begin(client);
    if (client.phase === "holding") return this.release(client);
    if (client.phase === "releasing") {
      if (this.below(3) === 0) this.release(client);
    } else if (client.control === null) {
      this.ask(client);
    } else if (this.below(12) === 0) {
      if (this.below(2) === 0) client.control.leave(this.below(2) === 0 ? "left" : "cancelled");
      this.ask(client);
    }
  }

  private begin(client: Client): void {
    client.phase = "waiting";
    client.waitId = this.names++;
    client.leaseMs = this.seed % 2 === 0 ? LEASE_MS : 150 + this.below(500);
    this.ask(client);
  }

  private tryOf({ owner, leaseMs, waitId, asked }: Client) {
    const named = { waitId: Int64.fromNumber(waitId), tryNumber: Int64.fromNumber(asked) };
    return { ...lock("r", owner, leaseMs), waitMs: WAIT_MS, ...named };
  }

  /** The latest try of who has the lock comes once more, late; its client is gone for it. */
  private askLate(client: Client): void {
    const control = this.send(this.tryOf(client), () => this.count("late tries"));
    this.world.settle();
    control?.leave("cancelled");
    this.world.settle();
  }

  private ask(client: Client): void {
    client.attempt += 1 + this.below(3);
    client.sentMs = this.bench.nowMs;
    const { attempt, owner } = client;
    client.asked = attempt;
    const request = this.tryOf(client);
    const heard = (answer: AnswerOf<typeof request>): void => {
      const isLatest = client.phase === "waiting" && client.attempt === attempt;
      if (!isLatest || client.owner !== owner) return;
      if (answer.type === LockType.locked) {
        const { fencingToken, waitedMs, leaseLeftMs } = answer;
        client.untilMs = client.sentMs + (waitedMs ?? 0) + (leaseLeftMs ?? 0);
        return this.told(client, fencingToken.toNumber());
      }
      client.control = null;
      const isAgain = answer.type === LockType.mustRetry || answer.type === LockType.busy;
      if (!isAgain && answer.type !== LockType.aborted) {
        this.violated(`${owner} is answered ${answer.type}`);
      }
    };
    client.control = this.send(request, heard, WAIT_MS * 2);
  }

  private told(client: Client, token: number): void {
    this.count("told");
    if (!this.world.log.automatic) this.count("told while the log hangs");
    client.token = token;
    client.phase = "holding";
    client.control = null;
    const isLower = token < this.topToken;
    this.topToken = Math.max(this.topToken, token);
    const { nowMs } = this.bench;
    if (client.untilMs <= nowMs) return this.release(client);
    if (this.forced.has(token)) return;
    for (const other of this.clients) {
      if (other === client || !other.believes(nowMs) || this.forced.has(other.token)) continue;
      this.violated(`two believe: tokens ${other.token} and ${token}`);
    }
    if (isLower) this.violated(`token ${token} after ${this.topToken}`);
  }

  private release(client: Client): void {
    client.phase = "releasing";
    const { token, owner } = client;
    const isBelieved = client.untilMs > this.bench.nowMs;
    const request = { ...unlock("r", owner), fencingToken: Int64.fromNumber(token) };
    this.send(request, ({ type }) => {
      if (client.phase !== "releasing" || client.token !== token) return;
      if (type === LockType.mustRetry || type === LockType.aborted) {
        client.isInDoubt = true;
        return;
      }
      const isRefused = type !== LockType.unlocked;
      if (isRefused && isBelieved && !client.isInDoubt && !this.forced.has(token)) {
        this.violated(`the release of token ${token} is answered ${type}`);
      }
      if (!isRefused) this.count("released");
      client.phase = "idle";
      client.isInDoubt = false;
    });
  }

  private extend(client: Client): void {
    const { token, owner, leaseMs } = client;
    const sentMs = this.bench.nowMs;
    if (!client.believes(sentMs)) return;
    client.untilMs = Math.min(client.untilMs, sentMs + leaseMs);
    const request = { ...extendLock("r", owner, leaseMs), fencingToken: Int64.fromNumber(token) };
    this.send(request, ({ type }) => {
      if (client.phase !== "holding" || client.token !== token) return;
      const isBelieved = client.untilMs > this.bench.nowMs;
      if (type === LockType.extended) {
        this.count("extended");
        if (isBelieved) client.untilMs = Math.max(client.untilMs, sentMs + leaseMs);
      } else if (type !== LockType.mustRetry && type !== LockType.aborted) {
        if (isBelieved && !this.forced.has(token)) {
          this.violated(`the extend of token ${token} is answered ${type}`);
        }
        client.phase = "idle";
      }
    });
  }

  private giveUp(client: Client): void {
    if (client.phase !== "waiting" || client.control === null) return;
    client.control.leave(this.below(2) === 0 ? "left" : "cancelled");
    client.attempt += 5;
    client.phase = "idle";
    this.count("gave up");
  }

  private vanish(client: Client): void {
    if (client.phase !== "holding") return;
    client.attempt += 5;
    client.phase = "idle";
    client.owner = `${client.owner}.${this.names++}`;
    this.count("vanished");
  }

  private hangOrNot(): void {
    const { log } = this.world;
    log.automatic = this.below(2) === 0;
    if (log.automatic) log.sync();
  }

  private refuse(): void {
    const refused = REFUSABLE[this.below(REFUSABLE.length)];
    const isOn = this.below(2) === 0;
    this.bench.faults.propose = isOn ? ({ kind }) => (kind === refused ? REFUSED : null) : null;
  }

  /** What a stop, or a move that comes to nothing, begins with. */
  private endLists(): void {
    this.bench.faults.final = this.below(3) === 0 ? () => REFUSED : null;
    this.group.runStopHooks(this.bench.nowMs + 5000);
    this.count("lists were cleared");
  }

  /** The leadership is to be handed on: what is queued comes behind the last commands. */
  private move(): void {
    const replica = this.group["replica"];
    let isPausing = true;
    const pausing = { get: () => isPausing, configurable: true };
    Object.defineProperty(replica["move"], "isPausing", pausing);
    for (const client of this.clients) {
      if (client.phase === "holding" && this.below(2) === 0) this.release(client);
    }
    const { log } = this.world;
    this.world.settle();
    log.automatic = true;
    log.sync();
    this.world.settle();
    const isAble = replica.leadership.isServing && replica.proposals.waitingCount === 0;
    if (isAble) {
      const finals: Parameters<typeof replica.proposeFinals>[0][number][] = [];
      for (const hook of replica.stopHooks) {
        hook((command, sizeBytes, done) => {
          if (command.kind === "set-heirs" && command.kept > 0) this.count("kept who was told");
          finals.push({ command, sizeBytes, deadlineMs: this.bench.nowMs + 500, done });
        });
      }
      log.automatic = this.below(2) === 0;
      replica.proposeFinals(finals, this.bench.nowMs);
      replica.wake();
      this.world.settle();
      this.count("moves");
      if (this.below(2) === 0) return this.crash();
    }
    isPausing = false;
    replica.wake();
    this.world.settle();
  }

  private force(): void {
    const row = this.group.machine.reads.succession("r");
    if (row?.isHeld !== true) return;
    const token = Number(row.base.token);
    const request = {
      ...({ kind: "force-unlock", resource: "r", durability: 1, reason: "t" } as const),
      ...{ dropWaiters: this.below(2) === 0, fencingToken: Int64.fromNumber(token) },
      ...{ actor: "", nodeId: 0 },
    };
    this.forced.add(token);
    this.send(request, ({ type }) => {
      if (type === LockType.unlocked) this.count("forced");
    });
  }

  /** Of what is not durable some is; the node leads again, maybe with heirs no more. */
  private crash(): void {
    this.count("crashes");
    const { log } = this.world;
    const also = this.below(Math.min(3, log.pending.length + 1));
    log.automatic = true;
    this.life++;
    this.world.crash(also);
    if (this.below(4) === 0) this.hasHeirs = !this.hasHeirs;
    this.bench = new Bench({ lockSuccession: this.hasHeirs }, this.world);
    for (const client of this.clients) {
      client.control = null;
      if (client.phase === "waiting") this.ask(client);
      else if (client.phase === "releasing") client.isInDoubt = true;
      if (client.believes(this.bench.nowMs) && this.below(2) === 0) this.askLate(client);
    }
  }

  /** Somebody else tries, and does not wait. */
  private intrude({ owner }: Client): void {
    this.send(lock("r", `${owner}z`, 500), ({ type, fencingToken }) => {
      if (type !== LockType.locked) return;
      const token = fencingToken.toNumber();
      this.topToken = Math.max(this.topToken, token);
      for (const other of this.clients) {
        if (!other.believes(this.bench.nowMs) || this.forced.has(other.token)) continue;
        this.violated(`token ${token} of who did not wait beside ${other.token}`);
      }
    });
  }

  private pass(): void {
    this.world.pass(this.below(20) === 0 ? 2500 : this.below(60));
  }

  private peace(): void {
    const { faults } = this.bench;
    faults.propose = null;
    faults.final = null;
    this.world.log.automatic = true;
    this.world.log.sync();
    for (let round = 0; round < PEACE_ROUNDS && this.fault === null; round++) {
      this.world.pass(50, 10);
      let open = 0;
      for (const client of this.clients) {
        if (client.phase === "idle") continue;
        open++;
        if (client.phase !== "waiting") this.release(client);
        else if (client.control === null || round % 10 === 9) this.ask(client);
      }
      this.world.settle();
      if (open === 0) return this.count("peaces");
    }
    this.violated("somebody waits for ever in peace");
  }
}

/** Runs the histories of seeds `first` to `first + count - 1`; returns the first fault; null: none. */
export function searchHeirs(first: number, count: number, counts: HeirCounts): string | null {
  for (let seed = first; seed < first + count; seed++) {
    const history = new History(seed, counts);
    history.run();
    if (history.fault !== null) return history.fault;
  }
  return null;
}
