/**
 * The graceful stop: intake ends, stop hooks propose, what was accepted is answered, leaderships
 * are handed to other nodes, everything applied is flushed, log and store are closed. Step by step,
 * one look per turn. Before it a node may withdraw: it gives its leaderships away and serves on,
 * until those who send requests have learned that it is not ready any more.
 *
 * Invariants: 1. Steps follow each other in this order only. 2. At the deadline nobody waits any
 * longer: queued commands end "aborted", proposed ones "unknown", reads "aborted" (C9, P-162). 3.
 * Once the stop has begun this node leads nothing more than before: an order to lead, given before,
 * comes to nothing, and an election under way is handed on. 4. A flush that cannot succeed does not
 * hold the stop: the log has everything, and recovery after a stop is the recovery after a crash.
 */
import { assert } from "../base/assert.js";
import type { LogPort, StorePort } from "../ports.js";
import type { Replica } from "./group/replica.js";
import type { Flusher } from "./storage/flusher.js";
import type { Group } from "./group/group.js";
import type { LeadershipTransfers } from "./leaders/leadership-transfers.js";

type Step = "running" | "draining" | "handing" | "flushing" | "closing" | "closed";

/** Looks at the leaderships that are being handed over (ms). */
const LOOK_MS = 20;
/** The same while the node serves on (ms). */
const WITHDRAWN_LOOK_MS = 100;

/** A group with what the stop needs of it. */
export interface StoppingGroup {
  readonly replica: Replica;
  readonly group: Group;
}

export interface StoppingDeps {
  readonly log: LogPort;
  readonly store: StorePort;
  readonly flusher: Flusher;
  readonly transfers: LeadershipTransfers;
  /** Leaderships that nobody took within this are given up with the process (ms). */
  readonly transferMs: number;
  groups(): readonly StoppingGroup[];
  /** Answers are decided and wait for the end of the turn. */
  hasCompletions(): boolean;
  /** A turn is wanted. */
  request(): void;
  /** Nothing of the host runs after this. */
  ended(): void;
}

export class Stopping {
  private step: Step = "running";
  private deadlineMs = Infinity;
  /** Everything is flushed, or is not going to be. */
  private flushed = false;
  private beganMs = 0;
  private drainEndMs = Infinity;
  private handUntilMs = 0;
  private lookAtMs = Infinity;
  private withdrawn = false;
  private readonly whenClosed: (() => void)[] = [];

  constructor(private readonly deps: StoppingDeps) {}

  get isStopping(): boolean {
    return this.step !== "running";
  }

  /** The node is about to stop: it is not ready, whether it still serves or not. */
  get isWithdrawn(): boolean {
    return this.withdrawn || this.isStopping;
  }

  /** Groups are not to begin anything new: only what is on its way ends. */
  get isClosing(): boolean {
    return this.step === "closing" || this.step === "closed";
  }

  get wakeAtMs(): number {
    if (this.step === "handing" || this.step === "running") return this.lookAtMs;
    if (this.step === "draining") return Math.min(this.lookAtMs, this.drainEndMs);
    return this.step === "flushing" ? this.deadlineMs : Infinity;
  }

  /** Hands leaderships over from now on, those too that come later, and serves on until `begin`. */
  withdraw(): void {
    if (this.withdrawn) return;
    this.withdrawn = true;
    if (this.step === "running") this.lookAtMs = 0;
    this.deps.request();
  }

  /** A group is led here that another node could lead. */
  get hasHeirs(): boolean {
    const { transfers } = this.deps;
    return this.deps.groups().some(({ replica }) => transfers.isNeeded(replica));
  }

  /** Begins the stop; `done` is called when all is closed. A second call joins the first. */
  begin(deadlineMs: number, done: () => void): void {
    this.whenClosed.push(done);
    if (this.step !== "running") return;
    this.step = "draining";
    this.lookAtMs = Infinity;
    this.deadlineMs = deadlineMs;
    for (const { group, replica } of this.deps.groups()) {
      if (!replica.members.isAlone) replica.core.setPassive(true);
      group.runStopHooks(deadlineMs);
    }
    this.deps.request();
  }

  /** Looks whether the next step is due; called at the end of each turn. */
  advance(nowMs: number): void {
    if (this.step === "running" && nowMs >= this.lookAtMs) this.giveAway(nowMs);
    if (this.step === "draining") {
      if (this.beganMs === 0) this.beganMs = nowMs;
      this.drain(nowMs);
    }
    if (this.step === "handing") this.hand(nowMs);
    if (this.step === "flushing") this.flush(nowMs);
  }

  /** Orders the transfer of all that is led here, also of what came back meanwhile. */
  private giveAway(nowMs: number): void {
    const { transfers } = this.deps;
    for (const { replica } of this.deps.groups()) {
      if (transfers.isNeeded(replica)) transfers.order(replica, nowMs, "stop");
    }
    this.lookAtMs = nowMs + WITHDRAWN_LOOK_MS;
  }

  /** Each group is handed over as soon as nobody waits in it: it is led without a break. */
  private drain(nowMs: number): void {
    const { transfers } = this.deps;
    const groups = this.deps.groups();
    let waits = this.deps.hasCompletions();
    let endMs = this.deadlineMs;
    this.lookAtMs = Infinity;
    for (const { replica } of groups) {
      const isNeeded = transfers.isNeeded(replica);
      if (isNeeded) endMs = this.deadlineMs - this.deps.transferMs;
      // A group of others goes on without this node; one that is alone is brought to its end.
      if (replica.hasWaiters || (replica.members.isAlone && !replica.isQuiet)) waits = true;
      else if (isNeeded) {
        transfers.order(replica, nowMs, "stop");
        this.lookAtMs = nowMs + LOOK_MS;
      }
    }
    this.drainEndMs = Math.max(endMs, this.beganMs + (this.deadlineMs - this.beganMs) / 2);
    if (waits && nowMs < this.drainEndMs) return;
    for (const { replica } of groups) replica.endAll();
    this.step = "handing";
    this.handUntilMs = Math.min(this.deadlineMs, nowMs + this.deps.transferMs);
  }

  private hand(nowMs: number): void {
    const { transfers } = this.deps;
    const led = this.deps.groups().filter(({ replica }) => transfers.isNeeded(replica));
    if (led.length > 0 && nowMs < this.handUntilMs) {
      for (const { replica } of led) transfers.order(replica, nowMs, "stop");
      this.lookAtMs = nowMs + LOOK_MS;
      return;
    }
    this.step = "flushing";
    this.deps.flusher.flushSoon(() => {
      this.flushed = true;
      this.deps.request();
    });
    this.deps.request();
  }

  private flush(nowMs: number): void {
    if (this.deps.flusher.storeFull || nowMs >= this.deadlineMs) this.flushed = true;
    if (!this.flushed) return;
    // What is left to wait for says so itself: a flush that hangs must not spin the loop.
    this.deadlineMs = Infinity;
    if (this.deps.flusher.isWriting || this.deps.hasCompletions()) return;
    this.step = "closing";
    this.deps.log.close(() => this.deps.store.close(() => this.close()));
  }

  private close(): void {
    assert(this.step === "closing", "closed once");
    this.step = "closed";
    this.deps.ended();
    for (const done of this.whenClosed) done();
  }
}
