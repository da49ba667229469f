/**
 * The turn that all groups of a node share, and who is to be run in it.
 *
 * A turn: ends what is due, hears the other nodes, lets time pass, runs the groups that have
 * something to do, sends their messages and hands all their log writes over together, looks after
 * flush and stop, and at its very end answers. Invariants: 1. One turn at a time; nothing re-enters
 * it. 2. Groups without anything to do cost nothing in a turn. 3. Messages leave before the log
 * write that they do not wait for.
 */
import type { LogPort } from "../ports.js";
import type { Completions } from "./requests/completions.js";
import type { ApplySlice } from "./group/applier.js";
import type { GroupOwner } from "./group/group-owner.js";
import type { Replica } from "./group/replica.js";
import type { LogOutbox } from "./group/effects.js";
import type { Backups } from "./keeping/backups.js";
import type { Ranges } from "./ranges/ranges.js";
import type { Failover } from "./leaders/failover.js";
import type { Flusher } from "./storage/flusher.js";
import type { GroupRegistry } from "./cluster/group-registry.js";
import type { PeerAdmission } from "./cluster/peer-admission.js";
import type { NodeClocks } from "./node-clocks.js";
import type { PeerOutbox } from "./replication/peer-outbox.js";
import type { Ticker } from "./ticker.js";
import type { HostSettings } from "./settings.js";
import type { Stopping } from "./stopping.js";
import type { ActiveGroups } from "./group/active-groups.js";
import type { TurnScheduler } from "./turn-scheduler.js";

/** What a turn works on. */
export interface TurnParts {
  readonly settings: HostSettings;
  readonly log: LogPort;
  readonly scheduler: TurnScheduler;
  readonly completions: Completions;
  readonly outbox: LogOutbox;
  readonly peers: PeerOutbox;
  readonly flusher: Flusher;
  readonly registry: GroupRegistry;
  readonly stopping: Stopping;
  readonly ticker: Ticker;
  readonly failover: Failover;
  readonly links: PeerAdmission;
  readonly clocks: NodeClocks;
  readonly ranges: Pick<Ranges, "turn" | "wakeAtMs">;
  readonly backups: Pick<Backups, "turn" | "wakeAtMs">;
  readonly activeGroups: ActiveGroups;
}

export class Turn implements GroupOwner {
  private awake: Replica[] = [];
  /** How many of them only have the rest of a slice left to do. */
  private sliced = 0;
  private dueMs = Infinity;
  private readonly slice: ApplySlice = { endMs: 0, commands: 0 };

  /** `parts`: made after the turn, because they wake groups. */
  constructor(private readonly parts: () => TurnParts) {}

  /** `replica` has something to do in a turn. */
  wake(replica: Replica): void {
    if (replica.isRetired) return;
    if (!replica.isAwake) {
      replica.isAwake = true;
      this.awake.push(replica);
    }
    const { scheduler, ticker } = this.parts();
    ticker.unquiesce();
    if (!scheduler.isRunning) scheduler.request();
  }

  removed(replica: Replica): void {
    this.awake = this.awake.filter((each) => each !== replica);
  }

  /** A turn is wanted at `atMs` at the latest. */
  wakeAt(atMs: number): void {
    if (atMs >= this.dueMs) return;
    this.dueMs = atMs;
    this.parts().scheduler.wakeAt(atMs);
  }

  /** One turn of the whole node. */
  run(nowMs: number): void {
    const { stopping, ticker, failover, links, peers, outbox } = this.parts();
    const { flusher, completions, scheduler, log, ranges, backups } = this.parts();
    if (!stopping.isClosing) {
      if (nowMs >= this.dueMs) this.expire(nowMs);
      if (nowMs >= ticker.nextTickMs) {
        // Whoever was heard of in the meantime is heard before time passes (P-009).
        for (const replica of this.awake) replica.stepInbox();
        ticker.tick(nowMs);
      }
      failover.check(nowMs);
      this.runAwake(nowMs);
      this.parts().clocks.check(nowMs);
      ranges.turn(nowMs);
      backups.turn(nowMs);
      links.refresh();
      peers.flush();
      outbox.submit(log);
      flusher.check(nowMs, false);
    }
    completions.run();
    stopping.advance(nowMs);
    // Whoever was woken or answered after its place in this turn (by an answer that asks again, by
    // the stop) wants the next turn at once; what was cut into slices lets input in before.
    const closing = stopping.isClosing;
    const woken = !closing && this.awake.length > this.sliced;
    if (woken || !completions.isEmpty) scheduler.request();
    if (closing) return;
    if (this.sliced > 0) scheduler.requestLater();
    scheduler.wakeAt(Math.min(this.dueMs, stopping.wakeAtMs));
    scheduler.wakeAt(Math.min(ticker.nextTickMs, flusher.nextCheckMs));
    scheduler.wakeAt(Math.min(failover.wakeAtMs, this.parts().clocks.wakeAtMs, ranges.wakeAtMs));
    scheduler.wakeAt(backups.wakeAtMs);
  }

  private expire(nowMs: number): void {
    this.dueMs = Infinity;
    for (const { replica, group } of this.parts().registry.all) {
      if (group.wakeAtMs <= nowMs) {
        group.expire(nowMs);
        this.wake(replica);
      }
      this.dueMs = Math.min(this.dueMs, group.wakeAtMs);
    }
  }

  private runAwake(nowMs: number): void {
    const { awake, slice } = this;
    const { settings, registry, activeGroups } = this.parts();
    this.sliced = 0;
    if (awake.length === 0) return;
    this.awake = [];
    slice.endMs = nowMs + settings.applySliceMs;
    slice.commands = settings.applySliceCommands;
    for (const replica of awake) {
      replica.isAwake = false;
      replica.run(nowMs, slice);
    }
    for (const replica of awake) {
      if (replica.hasWork) this.wake(replica);
      this.wakeAt(replica.wakeAtMs);
    }
    this.sliced = this.awake.length;
    activeGroups.add(awake);
    registry.refresh();
  }

  /** There may be room again: whoever has commands queued, or entries to apply, gets a turn. */
  wakeQueued(): void {
    for (const { replica } of this.parts().registry.all) {
      if (replica.batcher.queuedCommands > 0 || replica.hasWork) this.wake(replica);
    }
    this.parts().scheduler.request();
  }
}
