/**
 * One ask of a client on its way: to a node, and the answer back, or the news that there is none.
 *
 * Invariants: 1. Every attempt is recorded with its call, and with each answer that came while the
 * client waited. 2. An answer that the client did not wait for is no answer. 3. The end is told
 * exactly once.
 */
import type { Prng } from "../../../src/base/prng.js";
import { outcomesOf, rangeOutcome } from "../../judge/answers.js";
import type { Ask, RangeRequest } from "./workload.js";
import type { HistoryRecorder, Outcome } from "../../judge/history.js";
import type { OpenCall, Running, Server } from "../world/server.js";
import type { World } from "../world/world.js";
import type { RequestContext } from "../../../src/operations/api/requests.js";
import { administer } from "../../doubles/operations/administration.js";

/** Time that a request or an answer takes between client and node, at least (ms). */
const TRAVEL_MS = 0.2;
/** After the bound of its call a client waits this much longer before it calls it a breach. */
const BOUND_SLACK_MS = 100;
/** Clocks run slower than the world by this share at most; see the faults of clocks. */
const CLOCK_SLOWNESS = 0.05;

export interface CallParts {
  readonly world: World;
  readonly history: HistoryRecorder;
  readonly server: Server;
  readonly name: string;
}

/** How one ask is made. */
export interface CallManner {
  readonly timeoutMs: number;
  readonly forwardHops: number;
  /** The client goes away so long after it asked; null = it stays. */
  readonly vanishAfterMs: number | null;
}

type Ended = (outcomes: readonly Outcome[], isGone: boolean) => void;

export class Call implements OpenCall {
  readonly ids: readonly number[];
  private isOpen = true;
  private isExcused = false;
  private hasAnswer = false;
  private readonly boundMs: number;

  constructor(
    private readonly parts: CallParts,
    private readonly ask: Ask,
    private readonly manner: CallManner,
    private readonly prng: Prng,
    private readonly onEnd: Ended,
  ) {
    const { world, history, server, name } = parts;
    this.boundMs = manner.timeoutMs * (1 + CLOCK_SLOWNESS) + BOUND_SLACK_MS;
    this.ids = ask.operations.map((operation) =>
      history.call(name, server.nodeId, operation, world.nowMs, this.boundMs),
    );
    this.sayAsk();
    this.send();
  }

  /** The life that was asked ended. */
  ended(): void {
    this.parts.world.schedule(TRAVEL_MS, () => this.lose("the node ended", false));
  }

  disturbed(): void {
    this.isExcused = true;
  }

  private send(): void {
    const { world, server } = this.parts;
    const { vanishAfterMs } = this.manner;
    const travelMs = TRAVEL_MS + this.prng.below(1000) / 1000;
    if (vanishAfterMs !== null) {
      world.schedule(vanishAfterMs, () => this.lose("the client vanished", true));
    }
    world.schedule(travelMs, () => {
      const { running } = server;
      if (running === null) {
        // Nothing listens there: the connection cannot be made, and nothing was asked.
        const refused: Outcome = { kind: "refused", reason: "no connection" };
        world.schedule(TRAVEL_MS, () => this.answer(this.ask.operations.map(() => refused)));
        return;
      }
      if (this.isOpen) server.openCall(this);
      this.enter(running);
    });
    // A node that stands still answers late; who waited long enough knows nothing. A late answer
    // without an excuse is for the checkers to find.
    world.schedule(this.boundMs - 1, () => {
      if (this.isExcused) this.lose("the client lost patience", false);
    });
    world.schedule(2 * this.boundMs, () => this.end([{ kind: "unknown", reason: "no answer" }]));
  }

  private enter({ life, operations }: Running): void {
    const { ask, manner, parts } = this;
    life.enter(() => {
      const deadlineMs = life.monotonicMs() + manner.timeoutMs;
      const requestId = `r${this.ids[0] ?? 0}`;
      const context = { deadlineMs, forwardHops: manner.forwardHops, requestId };
      const back = (outcomes: readonly Outcome[], mark: number): void => {
        parts.world.trace.mix(mark);
        const backMs = TRAVEL_MS + this.prng.below(1000) / 1000;
        parts.world.schedule(backMs, () => this.answer(outcomes));
      };
      const { request } = ask;
      const told = (status: string, count: number): void =>
        back([rangeOutcome(status, count)], status.length);
      if (isRangeRequest(request)) changeRanges(operations, request, context, told);
      else {
        operations.execute(request, context, (answer) =>
          back(outcomesOf(answer, ask.operations.length), answer.type),
        );
      }
    });
  }

  private answer(outcomes: readonly Outcome[]): void {
    // A second answer is recorded too: it breaks a promise.
    if (!this.isOpen && !this.hasAnswer) return;
    const { history, world } = this.parts;
    this.hasAnswer = true;
    this.ids.forEach((id, at) => {
      const outcome = outcomes[at] ?? { kind: "unknown", reason: "no item of its own" };
      history.answered(id, outcome, world.nowMs);
    });
    this.end(outcomes);
  }

  private lose(reason: string, isGone: boolean): void {
    if (!this.isOpen) return;
    const { history, world } = this.parts;
    for (const id of this.ids) history.lost(id, reason, world.nowMs);
    this.end([{ kind: "unknown", reason }], isGone);
  }

  private end(outcomes: readonly Outcome[], isGone = false): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.parts.server.closeCall(this);
    this.sayEnd(outcomes);
    this.onEnd(outcomes, isGone);
  }

  private sayAsk(): void {
    const { world, server, name } = this.parts;
    if (!world.trace.hasWords) return;
    this.ask.operations.forEach((operation, at) => {
      const { kind, ...rest } = operation;
      const asks = `#${this.ids[at] ?? ""} ${name} asks node ${server.nodeId}`;
      world.say(0, `${asks}: ${kind} ${words(rest)}`);
    });
  }

  private sayEnd(outcomes: readonly Outcome[]): void {
    const { world, name } = this.parts;
    if (!world.trace.hasWords) return;
    outcomes.forEach((outcome, at) => {
      world.say(0, `#${this.ids[at] ?? ""} ${name} ends: ${words(outcome)}`);
    });
  }
}

/** The beginning of it, for the words of a run. */
export function words(value: unknown): string {
  return JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "bigint" ? `${part}` : part,
  ).slice(0, 160);
}

function isRangeRequest(request: Ask["request"]): request is RangeRequest {
  return "keySpace" in request || request.kind === "merge-ranges";
}

function changeRanges(
  operations: Running["operations"],
  request: RangeRequest,
  context: RequestContext,
  told: (status: string, descriptors: number) => void,
): void {
  switch (request.kind) {
    case "register-range":
    case "unregister-range": {
      const name = request.kind === "register-range" ? "ranges.register" : "ranges.unregister";
      administer(operations, name, request, context, (answer) =>
        told(answer.status, answer.descriptorCount),
      );
      return;
    }
    case "split-range":
      administer(operations, "ranges.split", request, context, (answer) => told(answer.status, 0));
      return;
    case "merge-ranges":
      administer(operations, "ranges.merge", {}, context, (answer) =>
        told(answer.status, answer.merges),
      );
  }
}
