/**
 * The way of one request to the node that leads its partition: carried out here, or passed on, or
 * kept until a leader is known.
 *
 * Invariants: 1. A request is passed on by the node that took it in, never by one that got it from
 * a node: one hop (P-109). 2. It is given to a second node only when it is certain that the first
 * did nothing, or when it changes nothing (P-032). 3. Places and waits are bounded: a leader that
 * fails is waited for once, for `leaderWaitMs` at most, within the deadline (P-149). 4. Every
 * forward ends exactly once. 5. A partition that has the keys no more, by a map that came
 * meanwhile, is not asked again: whoever is asked goes by its own map, and may name nobody else.
 */
import { assert } from "../../base/assert.js";
import type { PartitionId } from "../../base/ids.js";
import type { ClockPort, TimerPort } from "../../ports.js";
import type { GroupAccess, NodeAccess } from "../api/host-view.js";
import type { Refusal } from "../api/answers.js";
import type { CallResult } from "./call.js";
import type { Calls } from "./calls.js";
import type { Leaders } from "./leaders.js";
import type { OperationsSettings } from "../api/settings.js";
import type { Trace } from "../api/tracing.js";
import type { CallAnswer, CallRequest, NotOwned, NotTaken } from "../wire/calls.js";

/** What all forwards of a node share. */
export interface ForwardingDeps {
  readonly node: NodeAccess;
  readonly settings: OperationsSettings;
  readonly ports: { readonly clock: ClockPort; readonly timer: TimerPort };
  readonly leaders: Leaders;
  readonly calls: Calls;
}

export interface ForwardTask {
  readonly partition: PartitionId;
  readonly request: CallRequest;
  readonly requestId: string;
  readonly trace?: Trace | undefined;
  readonly deadlineMs: number;
  /** The request changes nothing: it may be asked again although its first fate is unknown. */
  readonly reading: boolean;
  /** The request waits for a lock: those are bounded apart, and may be thousands. */
  readonly waits?: boolean;
  /**
   * Carries the request out on this node, which leads `group`, and ends it; or calls `moved` when
   * nothing was done because this node leads no more.
   */
  here(group: GroupAccess, moved: () => void): void;
  /** Another node is asked, by the call `id`. */
  began?(id: number): void;
  /** Another node answered. */
  answered(answer: CallAnswer): void;
  /** Nothing was done: another partition has the keys. Of requests about keys. */
  unowned?(): void;
  /** By the map as it is now, another partition has the keys. Goes with `unowned`. */
  isElsewhere?(): boolean;
  /** A MustRetry end: with a refusal nothing was done; without, that is not known to the caller. */
  failed(refusal: Refusal | null): void;
}

/** What one request has spent on its way, whichever forwards it is given to. */
export interface ForwardProgress {
  tries: number;
  /** When it waits for a leader no longer; 0 = it has not waited. */
  giveUpMs: number;
}

/**
 * Tries of one request, those on this node included. With the pauses between them this is about the
 * time that a request has: a move that takes long is waited for (C12).
 */
const TRIES_MAX = 32;
/** A node that sent the request back is left alone at first so long (ms), then twice as long. */
const AVOID_MS = 10;

export class Forwarder {
  /**
   * Who sent the request back, and until when each is left alone (ms): while leadership is on its
   * way the old and the new leader may name each other.
   */
  private avoidedUntilMs: Map<number, number> | null = null;
  /** Named by the node that sent the request back. */
  private suggested = 0;
  /** It took a step before: the map may be another one since. */
  private hasBegun = false;

  constructor(
    private readonly deps: ForwardingDeps,
    private readonly task: ForwardTask,
    private readonly progress: ForwardProgress = { tries: 0, giveUpMs: 0 },
  ) {}

  /** Takes the next step; the end never comes in the turn of this call. */
  go(): void {
    const { deps, task } = this;
    const { node, ports } = deps;
    if (node.closing) return ports.timer.soon(() => task.failed("shutting-down"));
    if (this.hasBegun && this.isElsewhere) return task.unowned?.();
    this.hasBegun = true;
    const group = node.group(task.partition);
    const leads = group?.isLeader() === true;
    const nowMs = ports.clock.monotonicMs();
    const to = leads ? 0 : this.target(nowMs);
    if (!leads && to === 0 && nowMs < task.deadlineMs) return this.wait(nowMs);
    if (++this.progress.tries > TRIES_MAX || nowMs >= task.deadlineMs) {
      return ports.timer.soon(() => task.failed(null));
    }
    this.suggested = 0;
    if (group !== null && leads) return task.here(group, () => this.go());
    const { partition, request, requestId, deadlineMs, trace } = task;
    const asking = { to, partition, request, requestId, deadlineMs, trace };
    const id = deps.calls.ask(asking, (result) => this.asked(to, result));
    if (id !== null) task.began?.(id);
  }

  private get isElsewhere(): boolean {
    return this.task.isElsewhere?.() === true;
  }

  /** Whom to ask now; 0 = nobody. */
  private target(nowMs: number): number {
    const { leaders, calls, settings } = this.deps;
    const { suggested } = this;
    const named = suggested === settings.nodeId ? 0 : suggested;
    const isReachable = (node: number): boolean => calls.isReachable(node, nowMs);
    const to = named !== 0 ? named : leaders.other(this.task.partition, isReachable);
    if (to === 0 || nowMs < (this.avoidedUntilMs?.get(to) ?? 0)) return 0;
    return isReachable(to) ? to : 0;
  }

  private wait(nowMs: number): void {
    const { deps, task, progress } = this;
    const { settings, leaders, node, ports } = deps;
    if (leaders.isGivenUp(task.partition)) return ports.timer.soon(() => task.failed(null));
    if (progress.giveUpMs === 0) progress.giveUpMs = nowMs + settings.leaderWaitMs;
    const untilMs = Math.min(progress.giveUpMs, task.deadlineMs);
    this.suggested = 0;
    const taken = leaders.wait({
      untilMs,
      isLasting: task.waits === true,
      isOver: (thenMs) =>
        node.group(task.partition)?.isLeader() === true ||
        this.target(thenMs) !== 0 ||
        this.isElsewhere,
      resume: (came) => {
        if (came) return this.go();
        const late = ports.clock.monotonicMs() >= progress.giveUpMs;
        if (late && !node.shuttingDown) leaders.giveUp(task.partition);
        task.failed(node.shuttingDown ? "shutting-down" : null);
      },
    });
    if (!taken) ports.timer.soon(() => task.failed("overloaded"));
  }

  private asked(to: number, result: CallResult): void {
    const { task, deps } = this;
    switch (result.status) {
      case "answered":
        return this.answered(to, result.answer);
      case "unsent":
        // No node was tried: whoever cannot be reached is waited for, within the same time.
        this.progress.tries--;
        return this.go();
      case "overloaded":
        return task.failed("overloaded");
      case "lost":
        if (!task.reading || deps.ports.clock.monotonicMs() >= task.deadlineMs) {
          return task.failed(null);
        }
        this.avoid(to);
        return this.go();
    }
  }

  private answered(to: number, answer: CallAnswer): void {
    const { task, deps } = this;
    if (answer.kind === "not-taken") {
      // Of a kind that its program does not know: nothing was done, and will be after the upgrade.
      if (answer.unreadable) return task.failed("not-available-at-level");
      this.avoid(to);
      this.suggested = answer.leaderNode === to ? 0 : answer.leaderNode;
      deps.leaders.learn(task.partition, this.suggested);
      return this.go();
    }
    if (answer.kind === "not-owned") {
      deps.leaders.learn(task.partition, to);
      return task.unowned === undefined ? task.failed(null) : task.unowned();
    }
    // Whoever is about to stop hands its leadership on: the next leader is asked instead.
    const refusal = refusalOf(answer);
    if (refusal === "shutting-down" || refusal === "not-initialized") {
      this.avoid(to);
      return this.go();
    }
    deps.leaders.learn(task.partition, to);
    task.answered(answer);
  }

  private avoid(node: number): void {
    assert(node !== 0, "a node is avoided, not nobody");
    const nowMs = this.deps.ports.clock.monotonicMs();
    this.avoidedUntilMs ??= new Map<number, number>();
    this.avoidedUntilMs.set(node, nowMs + AVOID_MS * 2 ** Math.min(this.progress.tries, 5));
  }
}

/** Why the asked node refused; null when it did not, or knows no refusals for what it was asked. */
function refusalOf(answer: Exclude<CallAnswer, NotTaken | NotOwned>): Refusal | null {
  return "refusal" in answer ? answer.refusal : null;
}
