/**
 * One try-lock that waits, on its way: to a node, and the answer back; and whoever asked may cancel
 * it, or go away, meanwhile.
 *
 * Invariants: 1. Every wait is recorded with its call and its answer, and beside it the unlock by
 * which the service may give its grant back; that certainly never happened if the wait was told its
 * decision. 2. An answer that the client did not wait for is no answer. 3. The end is told once.
 */
import { encodeText } from "../../../src/base/bytes.js";
import { Int64 } from "../../../src/base/int64.js";
import { lockHashText, hashPartition } from "../../../src/base/routing.js";
import type { Prng } from "../../../src/base/prng.js";
import type { LockAnswer } from "../../../src/operations/api/answers.js";
import type { TryLockRequest, WaitControl } from "../../../src/operations/api/requests.js";
import { outcomesOf } from "../../judge/answers.js";
import type { HistoryRecorder, Outcome } from "../../judge/history.js";
import { type LockOperation, type LockResult, objectOf } from "../../judge/operation.js";
import type { AbortedWait } from "../../judge/checkers/waits/aborted-for-cause.js";
import type { GoneWait } from "../../judge/checkers/waits/gone-holds-nothing.js";
import { words } from "../clients/call.js";
import type { Life } from "../world/process.js";
import type { OpenCall, Running, Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { EPHEMERAL, PERSISTENT } from "../clients/workload.js";

/** Time that a request, a word or an answer takes between client and node, at least (ms). */
const TRAVEL_MS = 0.2;
/** After the bound of its call a client waits this much longer before it calls it a breach. */
const BOUND_SLACK_MS = 100;
/** Clocks run slower than the world by this share at most. */
const CLOCK_SLOWNESS = 0.05;

/** How a client has its wait end. */
export type Going =
  /** By a word, and waits for the answer. */
  | "cancel"
  /** It resets its stream or closes its connection, and hears nothing. */
  | "close"
  /** Its connection breaks. */
  | "break"
  /** It asks elsewhere, and tells nobody: the wait goes on, and whatever it ends with is void (Q14). */
  | "desert";

export interface WaitAsk {
  readonly resource: string;
  readonly ephemeral: boolean;
  readonly owner: string;
  readonly expiresMs: number;
  readonly waitMs: number;
  /** 0: none. */
  readonly waitId: number;
  readonly tryNumber: number;
  /** null: it waits for the end. */
  readonly going: { readonly how: Going; readonly afterMs: number } | null;
}

export interface WaitParts {
  readonly world: World;
  readonly history: HistoryRecorder;
  readonly server: Server;
  readonly name: string;
  readonly timeoutMs: number;
  readonly partitions: number;
  readonly gone: (wait: GoneWait) => void;
  readonly aborted: (wait: AbortedWait) => void;
}

export class WaitCall implements OpenCall {
  private readonly id: number;
  private readonly giveBack: number;
  private readonly boundMs: number;
  private isOpen = true;
  private isExcused = false;
  private hasAnswer = false;
  private isGone = false;
  /** The answer is one of a node that is about to stop, or came when its time was over. */
  private isAtEnd = false;
  private life: Life | null = null;
  private control: WaitControl | null = null;
  private isAtLeader = false;
  private readonly askedMs: number;
  /** When the node hears of it: a word that follows on the same connection comes after it. */
  private arrivesMs = 0;

  constructor(
    private readonly parts: WaitParts,
    private readonly ask: WaitAsk,
    private readonly prng: Prng,
    private readonly onEnd: (outcome: Outcome, isGone: boolean) => void,
  ) {
    const { world, history, server, name, timeoutMs } = parts;
    const { waitMs } = ask;
    this.boundMs = (waitMs + timeoutMs) * (1 + CLOCK_SLOWNESS) + BOUND_SLACK_MS;
    const operation = this.operation;
    this.askedMs = world.nowMs;
    this.id = history.call(name, server.nodeId, operation, world.nowMs, this.boundMs);
    const { resource, ephemeral, owner } = operation;
    const unlock = { kind: "try-unlock", resource, ephemeral, owner, expiresMs: 0 } as const;
    const back = { ...unlock, isGiveBack: true };
    this.giveBack = history.call(`${name}~`, server.nodeId, back, world.nowMs);
    const words = `${resource} for ${owner}, lease ${ask.expiresMs}, wait ${waitMs} try ${ask.tryNumber}`;
    world.say(0, `#${this.id} ${name} asks node ${server.nodeId}: waits for ${words}`);
    this.send();
  }

  ended(): void {
    this.parts.world.schedule(TRAVEL_MS, () => this.lose("the node ended", false));
  }

  disturbed(): void {
    this.isExcused = true;
  }

  private get operation(): LockOperation {
    const { resource, ephemeral, owner, expiresMs, waitMs } = this.ask;
    return { kind: "try-lock", resource, ephemeral, owner, expiresMs, waitMs };
  }

  private get travelMs(): number {
    return TRAVEL_MS + this.prng.below(1000) / 1000;
  }

  private send(): void {
    const { world, server } = this.parts;
    const { going } = this.ask;
    const { travelMs } = this;
    this.arrivesMs = world.nowMs + travelMs;
    world.schedule(travelMs, () => {
      const { running } = server;
      if (running === null) {
        const refused: Outcome = { kind: "refused", reason: "no connection" };
        world.schedule(TRAVEL_MS, () => this.answer(refused));
        return;
      }
      if (this.isOpen) server.openCall(this);
      running.life.enter(() => this.enter(running));
    });
    if (going !== null) world.schedule(going.afterMs, () => this.go(going.how));
    world.schedule(this.boundMs - 1, () => {
      if (this.isExcused) this.lose("the client lost patience", false);
    });
    world.schedule(2 * this.boundMs, () => this.lose("no answer", false));
  }

  private enter({ life, operations, node }: Running): void {
    const { ask, parts } = this;
    if (this.isGone) return;
    this.life = life;
    const deadlineMs = life.monotonicMs() + ask.waitMs + parts.timeoutMs;
    const context = { deadlineMs, forwardHops: 0, requestId: `r${this.id}` };
    const partition = hashPartition(lockHashText(ask.resource), parts.partitions);
    const group = node.groups().find((one) => one.partition === partition) ?? null;
    this.isAtLeader = group?.isServing() === true;
    const done = (answer: LockAnswer): void => {
      this.hasAnswer = true;
      this.isAtEnd = node.closing || life.monotonicMs() >= deadlineMs;
      parts.world.trace.mix(answer.type);
      const outcome = waitOutcome(answer);
      parts.world.schedule(this.travelMs, () => this.answer(outcome));
    };
    this.control = operations.execute(requestOf(ask), context, done);
  }

  /** The client has it end. */
  private go(how: Going): void {
    const { world, server } = this.parts;
    if (!this.isOpen) return;
    world.say(0, `#${this.id}: ${how}`);
    if (how === "desert") return this.lose(DESERTED, true);
    if (how !== "cancel") {
      server.closeCall(this);
      this.lose("the client went", true);
    }
    const leavesMs = Math.max(world.nowMs + this.travelMs, this.arrivesMs + TRAVEL_MS);
    world.schedule(leavesMs - world.nowMs, () => {
      const { running } = server;
      if (running === null || (this.life !== null && running.life !== this.life)) return;
      running.life.enter(() => this.leave(how));
    });
  }

  /** The node hears of it. */
  private leave(how: Going): void {
    this.isGone = true;
    if (this.hasAnswer || this.control === null) return;
    const isLeft = this.control.leave(how === "break" ? "left" : "cancelled");
    if (isLeft && how !== "cancel") this.tellGone("closed", this.isAtLeader);
  }

  private tellGone(how: GoneWait["how"], isAtLeader: boolean): void {
    const { ask, askedMs, parts } = this;
    const partition = hashPartition(lockHashText(ask.resource), parts.partitions);
    const goneMs = parts.world.nowMs;
    const lock = objectOf(this.operation) ?? "";
    parts.gone({ lock, owner: ask.owner, partition, askedMs, goneMs, how, isAtLeader });
  }

  private tellAborted(): void {
    const { askedMs, parts } = this;
    const toldMs = parts.world.nowMs;
    const lock = objectOf(this.operation) ?? "";
    const isExplained = this.isGone || this.isAtEnd;
    parts.aborted({ lock, owner: this.ask.owner, askedMs, toldMs, isExplained });
  }

  private answer(outcome: Outcome): void {
    if (!this.isOpen) return;
    const { history, world } = this.parts;
    history.answered(this.id, outcome, world.nowMs);
    if (outcome.kind === "unknown") history.lost(this.giveBack, "perhaps given back", world.nowMs);
    else history.answered(this.giveBack, { kind: "refused", reason: "decided" }, world.nowMs);
    const isAborted = outcome.kind === "unknown" && outcome.reason === ABORTED;
    if (isAborted) this.tellAborted();
    if (isAborted && this.isGone) this.tellGone("cancelled", this.isAtLeader);
    this.end(outcome, false);
  }

  private lose(reason: string, isGone: boolean): void {
    if (!this.isOpen) return;
    const { history, world } = this.parts;
    history.lost(this.id, reason, world.nowMs);
    history.lost(this.giveBack, reason, world.nowMs);
    this.end({ kind: "unknown", reason }, isGone);
  }

  private end(outcome: Outcome, isGone: boolean): void {
    const { server, world, name } = this.parts;
    this.isOpen = false;
    server.closeCall(this);
    if (world.trace.hasWords) world.say(0, `#${this.id} ${name} ends: ${words(outcome)}`);
    this.onEnd(outcome, isGone);
  }
}

/** Why an outcome is not known of a wait that has no effect in the end. */
export const ABORTED = "aborted";
/** And of one whose client asks elsewhere. */
export const DESERTED = "the client asks elsewhere";

function requestOf(ask: WaitAsk): TryLockRequest {
  const { resource, ephemeral, owner, expiresMs, waitMs, waitId, tryNumber } = ask;
  const durability = ephemeral ? EPHEMERAL : PERSISTENT;
  const plain = { kind: "try-lock", resource, owner: encodeText(owner), expiresMs } as const;
  const request = { ...plain, durability, waitMs };
  if (waitId === 0) return request;
  const numbers = { waitId: Int64.fromNumber(waitId), tryNumber: Int64.fromNumber(tryNumber) };
  return { ...request, ...numbers };
}

/**
 * As other answers, with what is told of the wait. What was aborted, or ended by a node that stops,
 * may have been granted and given back before: others may have seen it.
 */
function waitOutcome(answer: LockAnswer): Outcome {
  const [outcome] = outcomesOf(answer, 1);
  if (outcome === undefined) throw new Error("an answer is an outcome");
  if (outcome.kind === "refused" && outcome.reason === "aborted") {
    return { kind: "unknown", reason: ABORTED };
  }
  if (outcome.kind === "refused" && outcome.reason === "shutting-down") {
    return { kind: "unknown", reason: outcome.reason };
  }
  if (outcome.kind !== "ok") return outcome;
  const result = outcome.result as LockResult;
  const { waitedMs, leaseLeftMs } = answer;
  return { kind: "ok", result: { ...result, waitedMs, leaseLeftMs } };
}
