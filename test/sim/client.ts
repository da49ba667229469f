/**
 * A client of the world: asks one node after the other, one operation at a time, waits for the
 * answer as long as it has patience, tries again with the same key, and now and then vanishes.
 *
 * It lives outside of all machines. Invariants: 1. Every attempt is recorded with its call, and its
 * answer if one came. 2. An answer that the client did not wait for is no answer. 3. The draws of a
 * client are its own.
 */
import type { Prng } from "../../src/base/prng.js";
import type { DataAnswer } from "../../src/operations/answers.js";
import type { HistoryRecorder, Outcome } from "./history.js";
import { type Ask, type ClientMemory, RequestSource, outcomeOf } from "./requests.js";
import type { Plan } from "./plan.js";
import type { OpenCall, Server } from "./server.js";
import type { World } from "./world.js";

/** Time that a request or an answer takes between client and node, at least (ms). */
const TRAVEL_MS = 0.2;
/** After the service's own bound a client waits this much longer before it calls it a breach. */
const BOUND_SLACK_MS = 1500;
/** An idempotency key is tried again at most so often. */
const RETRIES_MAX = 3;

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
  /** Waits for an answer. */
  isWaiting = false;

  constructor(
    private readonly world: World,
    private readonly plan: Plan,
    private readonly number: number,
    private readonly servers: readonly Server[],
    private readonly history: HistoryRecorder,
    private readonly counts: ClientCounts,
    cursor: { unique: number },
  ) {
    this.prng = world.prng(`client ${number}`);
    this.source = new RequestSource(plan, this.prng, cursor);
    this.memory = { owner: `owner-${number}`, unfinished: [], lastValue: null, lastRevision: 0n };
  }

  start(): void {
    this.later(this.prng.below(1000));
  }

  /** Asks nothing any more. */
  stop(): void {
    this.isStopped = true;
  }

  private get name(): string {
    return `client-${this.number}.${this.life}`;
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
    const { prng, memory } = this;
    const again = memory.unfinished.length > 0 && prng.chance(2, 3);
    const ask = again ? (memory.unfinished.pop() as Ask) : this.source.next(memory);
    if (again) this.counts.retries++;
    else this.retriesLeft = RETRIES_MAX;
    const server = this.servers[prng.below(this.servers.length)] as Server;
    this.ask(server, ask);
  }

  private ask(server: Server, ask: Ask): void {
    const { world, prng, plan } = this;
    const timeoutMs = prng.chance(1, 8)
      ? 1 + prng.below(plan.requestTimeoutMs)
      : plan.requestTimeoutMs;
    const vanishes = prng.chance(1, 200);
    const boundMs = plan.requestTimeoutMs + BOUND_SLACK_MS;
    const nowMs = world.nowMs;
    const id = this.history.call(this.name, server.nodeId, ask.operation, nowMs, boundMs);
    this.counts.calls++;
    this.isWaiting = true;
    let isOpen = true;
    let isExcused = false;
    const call: OpenCall = {
      ended: () => world.schedule(TRAVEL_MS, () => lose("the node ended")),
      disturbed: () => {
        isExcused = true;
      },
    };
    const close = (): boolean => {
      if (!isOpen) return false;
      isOpen = false;
      this.isWaiting = false;
      server.closeCall(call);
      return true;
    };
    const lose = (reason: string): void => {
      if (!close()) return;
      this.history.lost(id, reason, world.nowMs);
      this.ended(ask, id, { kind: "unknown", reason });
    };
    const answer = (outcome: Outcome): void => {
      if (!close()) return;
      this.history.answered(id, outcome, world.nowMs);
      this.ended(ask, id, outcome);
    };
    if (world.trace.hasWords) {
      const { kind, ...rest } = ask.operation;
      const words = JSON.stringify(rest, (_name, value: unknown) =>
        typeof value === "bigint" ? `${value}` : value,
      );
      world.say(
        0,
        `#${id} ${this.name} asks node ${server.nodeId}: ${kind} ${words.slice(0, 160)}`,
      );
    }
    const travelMs = TRAVEL_MS + prng.below(1000) / 1000;
    if (vanishes) {
      this.counts.vanished++;
      world.schedule(prng.below(20), () => {
        if (isOpen) this.life++;
        lose("the client vanished");
      });
    }
    world.schedule(travelMs, () => {
      const { running } = server;
      if (running === null) {
        // Nothing listens there: the connection cannot be made, and nothing was asked.
        world.schedule(TRAVEL_MS, () => answer({ kind: "refused", reason: "no connection" }));
        return;
      }
      if (isOpen) server.openCall(call);
      const { life, operations } = running;
      life.enter(() => {
        const deadlineMs = life.monotonicMs() + timeoutMs;
        const context = { deadlineMs, forwardHops: 0, requestId: `r${id}` };
        operations.execute(ask.request, context, (result) => {
          world.trace.mix(result.type);
          const backMs = TRAVEL_MS + prng.below(1000) / 1000;
          world.schedule(backMs, () => this.take(ask, result, answer));
        });
      });
    });
    // A node that stands still answers late; who waited long enough knows nothing. A late answer
    // without an excuse is for the checkers to find.
    world.schedule(boundMs - 1, () => {
      if (isOpen && isExcused) lose("the client lost patience");
    });
    world.schedule(2 * boundMs, () => {
      if (close()) this.ended(ask, id, { kind: "unknown", reason: "no answer" });
    });
  }

  private take(ask: Ask, result: DataAnswer, answer: (outcome: Outcome) => void): void {
    const outcome = outcomeOf(result);
    if (result.kind === "kv" && outcome.kind === "ok" && ask.operation.kind === "kv-get") {
      const seen = outcome.result;
      if ("value" in seen) {
        this.memory.lastValue = seen.value;
        this.memory.lastRevision = seen.revision;
      }
    }
    answer(outcome);
  }

  private ended(ask: Ask, id: number, outcome: Outcome): void {
    this.counts[outcome.kind]++;
    const { world, memory } = this;
    if (world.trace.hasWords) {
      const words = JSON.stringify(outcome, (_name, value: unknown) =>
        typeof value === "bigint" ? `${value}` : value,
      );
      world.say(0, `#${id} ${this.name} ends: ${words.slice(0, 160)}`);
    }
    const keyed = ask.operation.kind === "allocate" && ask.operation.idempotencyKey !== null;
    if (keyed && outcome.kind !== "ok" && this.retriesLeft-- > 0) memory.unfinished.push(ask);
    // A key that was answered is now and then used again: the answer must be the same.
    else if (keyed && this.prng.chance(1, 10) && this.retriesLeft-- > 0)
      memory.unfinished.push(ask);
    this.think(outcome.kind === "ok");
  }
}
