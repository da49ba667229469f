/**
 * A client of the world: asks one node after the other, waits for the answers as long as it has
 * patience, tries again, also with the same key through another node, and now and then vanishes.
 *
 * It lives outside of all machines. Invariants: 1. Every attempt is recorded (see call.ts). 2. The
 * draws of a client are its own. 3. It waits for the answers to all that it asked, then thinks,
 * then goes on.
 */
import type { Prng } from "../../../src/base/prng.js";
import { type Ask, type ClientMemory, type SharedWork, remember, see } from "./workload.js";
import { Call, type CallManner } from "./call.js";
import type { Task } from "./tasks.js";
import type { HistoryRecorder, Outcome } from "../../judge/history.js";
import { RequestSource } from "./requests.js";
import type { Plan } from "../plan/plan.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";

/** What is tried again is tried at most so often in a row. */
const RETRIES_MAX = 3;
/** Asks that wait to be tried again, at most. */
const UNFINISHED_MAX = 16;

export interface ClientCounts {
  calls: number;
  ok: number;
  refused: number;
  unknown: number;
  vanished: number;
  retries: number;
}

export class Client {
  private readonly prng: Prng;
  private readonly source: RequestSource;
  private readonly memory: ClientMemory;
  private isStopped = false;
  private life = 0;
  private retriesLeft = RETRIES_MAX;
  private waitsFor = 0;
  private task: Task | null = null;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly number: number,
    private readonly servers: readonly Server[],
    private readonly history: HistoryRecorder,
    private readonly counts: ClientCounts,
    shared: SharedWork,
  ) {
    this.prng = world.prng(`client ${number}`);
    this.source = new RequestSource(plan, this.prng, shared);
    this.memory = { owner: `owner-${number}`, unfinished: [], keyed: [], seen: new Map() };
  }

  /** Waits for an answer. */
  get isWaiting(): boolean {
    return this.waitsFor > 0;
  }

  start(): void {
    this.later(this.prng.below(1000));
  }

  /** Asks nothing any more. */
  stop(): void {
    this.isStopped = true;
  }

  private later(delayMs: number): void {
    this.world.schedule(delayMs, () => this.act());
  }

  private think(wasAnswered: boolean): void {
    const meanMs = this.plan.thinkMs;
    // Now and then a burst without any pause; nobody knocks without a pause at a closed door.
    const atOnce = wasAnswered && this.prng.chance(1, 5);
    this.later(atOnce ? 0 : 1 + this.prng.below(2 * meanMs));
  }

  private act(): void {
    if (this.isStopped || this.history.isFull()) return;
    const { prng, memory, task } = this;
    if (task !== null) return this.step(task, null);
    if (memory.unfinished.length > 0 && prng.chance(2, 3)) {
      this.counts.retries++;
      return this.askAll([memory.unfinished.pop() as Ask]);
    }
    this.retriesLeft = RETRIES_MAX;
    const next = this.source.next(memory);
    if (next.kind === "asks") return this.askAll(next.asks);
    this.task = next.task;
    this.step(next.task, null);
  }

  /** Takes the next step of a meta proposal. */
  private step(task: Task, last: Outcome | null): void {
    const step = task.next(last);
    if (step === null) {
      this.task = null;
      return this.think(last?.kind === "ok");
    }
    const { ask, afterMs } = step;
    if (ask === null) return this.later(afterMs);
    this.world.schedule(afterMs, () => {
      if (!this.isStopped && !this.history.isFull()) this.askAll([ask]);
    });
  }

  /** Asks one node for all of them at once. */
  private askAll(asks: readonly Ask[]): void {
    const server = this.servers[this.prng.below(this.servers.length)] as Server;
    this.waitsFor += asks.length;
    for (const ask of asks) this.ask(server, ask);
  }

  private manner(): CallManner {
    const { prng, plan } = this;
    const { vanishPerMille, forwardedPercent, isPatient } = plan.work;
    const most = plan.requestTimeoutMs;
    return {
      timeoutMs: isPatient !== true && prng.chance(1, 8) ? 1 + prng.below(most) : most,
      forwardHops: prng.chance(forwardedPercent, 100) ? 1 : 0,
      vanishAfterMs: prng.chance(vanishPerMille, 1000) ? prng.below(20) : null,
    };
  }

  private ask(server: Server, ask: Ask): void {
    const { world, history } = this;
    const manner = this.manner();
    this.counts.calls++;
    if (manner.vanishAfterMs !== null) this.counts.vanished++;
    const parts = { world, history, server, name: `client-${this.number}.${this.life}` };
    new Call(parts, ask, manner, this.prng, (outcomes, isGone) => {
      this.ended(ask, outcomes, isGone);
    });
  }

  private ended(ask: Ask, outcomes: readonly Outcome[], isGone: boolean): void {
    const { counts, prng, plan, memory } = this;
    const [first] = outcomes;
    if (first === undefined) throw new Error("an ask ends with an outcome");
    counts[first.kind]++;
    this.look(ask, outcomes);
    if (isGone) {
      // Who comes back has forgotten what it was about, but not its keys.
      this.life++;
      this.task = null;
    }
    if (this.task === null) {
      const isKeyed = keyOf(ask) !== null;
      if (isKeyed) remember(memory, ask);
      const isOpen = first.kind === "unknown";
      const again =
        (isKeyed && first.kind !== "ok") ||
        (isOpen && prng.chance(plan.work.retryPercent, 100)) ||
        // A key that was answered is now and then used again: the answer must be the same.
        (isKeyed && prng.chance(1, 10));
      const hasRoom = memory.unfinished.length < UNFINISHED_MAX;
      if (again && hasRoom && this.retriesLeft-- > 0) memory.unfinished.push(ask);
    }
    this.waitsFor--;
    if (this.waitsFor > 0) return;
    if (this.task !== null && !this.isStopped) this.step(this.task, first);
    else this.think(first.kind === "ok");
  }

  /** Remembers what was seen of keys. */
  private look(ask: Ask, outcomes: readonly Outcome[]): void {
    ask.operations.forEach((operation, at) => {
      const outcome = outcomes[at];
      if (outcome?.kind !== "ok" || !("key" in operation) || operation.ephemeral) return;
      const { result } = outcome;
      if (!("value" in result)) return;
      if (result.type === "Got") see(this.memory, operation.key, result.value, result.revision);
      if (result.type === "Set" && operation.kind === "kv-set") {
        see(this.memory, operation.key, operation.value, result.revision);
      }
    });
  }
}

function keyOf(ask: Ask): string | null {
  const [operation] = ask.operations;
  return operation?.kind === "allocate" ? operation.idempotencyKey : null;
}
