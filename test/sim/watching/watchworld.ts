/**
 * Those who watch in a world, whoever ends grants by force in it, all looks at what nodes keep for
 * watches, and what the checkers make of it in the end.
 *
 * Invariants: 1. Everything is drawn from generators of its own: a world without watchers is as it
 * was. 2. In peace every watch comes to stand, asks for a barrier, and knows what there is.
 */
import { WATCH_HISTORY_MS, WATCH_PART_IDLE_MS } from "../../../src/base/limits.js";
import type { Prng } from "../../../src/base/prng.js";
import type { Group } from "../../../src/host/group/group.js";
import type { WatchTally } from "../../../src/host/watching/watch-tally.js";
import { Changes, isOf, sortOf } from "../../judge/checkers/watches/changes.js";
import { checkAuditExact } from "../../judge/checkers/locks/audit-exact.js";
import { checkForceCompares } from "../../judge/checkers/locks/force-compares.js";
import { ExpiryTrue } from "../../judge/checkers/watches/expiry-true.js";
import { NoWatchers, WatchBounded } from "../../judge/checkers/watches/watch-bounded.js";
import { WatchFindings } from "../../judge/checkers/watches/watch-findings.js";
import { Findings, type Verdict } from "../../judge/checkers/verdict.js";
import { LockAdmin } from "../forcing/lock-admin.js";
import { SLOWEST_TIMES, type SimNetwork } from "../net/network.js";
import { operationsSettingsOf, type Plan } from "../plan/plan.js";
import { handOverNowAndThen } from "../members/hand-overs.js";
import { isHeldUp } from "../waiting/waitworld.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { WatchedTruth } from "./watched-truth.js";
import { Watcher } from "./watcher.js";
import type { WatchPlan } from "./watchplan.js";

/** How often nodes are looked at (ms). */
const LOOK_EVERY_MS = 50;
/** After a fault so much time may pass until nothing keeps anybody from anything (ms). */
const TROUBLE_MS = 3000;
/** The end of a watched lease is committed within this time (W11, ms), and what a look adds. */
const EXPIRY_MS = 150;
/** Two wires and two disks; each may be slow now and then. */
const WAYS = 8;
/** Barriers of peace hold within this time (ms). */
const LAST_BARRIERS_MS = 4000;
/** Until what is applied somewhere is told everywhere, in peace (ms). */
const ON_ITS_WAY_MS = 1500;
/** How long nothing may happen when nobody watches (ms). */
const QUIET_MS = 5000;

export interface WatchWorldParts {
  readonly world: World;
  readonly network: Pick<SimNetwork, "isClogged">;
  readonly plan: Plan;
  readonly watches: WatchPlan;
  readonly servers: readonly Server[];
}

/** The property under which the world counts what its watches went through. */
export const WATCHED = "what watches went through";

export class WatchWorld {
  readonly counts: Record<string, number> = {};
  private readonly changes = new Changes();
  private readonly findings = new WatchFindings();
  private readonly expiries = new ExpiryTrue();
  private readonly bounded = new WatchBounded();
  private readonly noWatchers: NoWatchers;
  private readonly truth: WatchedTruth;
  private readonly watchers: Watcher[] = [];
  private readonly admin: LockAdmin | null;
  private readonly tallies: WatchTally[] = [];
  private readonly prng: Prng;
  private readonly historyMaxBytes: number;
  /** Since when nothing is wrong any more (true time). */
  private wholeMs = Infinity;

  constructor(private readonly parts: WatchWorldParts) {
    const { world, plan, watches, servers } = parts;
    const { changes, findings, bounded, counts, expiries } = this;
    this.prng = world.prng("watches");
    this.noWatchers = new NoWatchers(watches.endsUnwatched ? undefined : {});
    this.historyMaxBytes = operationsSettingsOf(plan, 1).watchHistoryBytes;
    this.truth = new WatchedTruth(
      changes,
      () => world.nowMs,
      ({ sort, name }, partition) => {
        if (this.isWatched(sort, name)) expiries.committed(name, partition);
      },
    );
    const { forceMs } = watches;
    this.admin = forceMs === 0 ? null : new LockAdmin(world, servers, plan.ticks, forceMs);
    const more = { changes, findings, bounded, counts };
    for (let number = 1; number <= watches.watchers; number++) {
      this.watchers.push(new Watcher({ ...parts, ...more }, number));
    }
  }

  start(): void {
    for (const watcher of this.watchers) watcher.start();
    this.admin?.start();
    this.look();
    const { world, watches, servers, plan } = this.parts;
    handOverNowAndThen({
      ...{ world, servers, prng: this.prng, everyMs: watches.handOverMs },
      isOver: () => world.nowMs >= plan.ticks,
      given: () => {
        this.counts["leaderships given away"] = (this.counts["leaderships given away"] ?? 0) + 1;
      },
    });
  }

  opened({ running }: Server): void {
    if (running === null) return;
    this.truth.attach(running.node);
    this.tallies.push(running.operations.watches.tally);
  }

  /** Faults have ended. */
  settle(): void {
    this.wholeMs = this.parts.world.nowMs + TROUBLE_MS;
    for (const watcher of this.watchers) watcher.settle();
  }

  /** Nobody goes anywhere any more. */
  stop(): void {
    for (const watcher of this.watchers) watcher.stop();
  }

  /** Why the watches do not stand; null: they do. */
  unsettled(): string | null {
    const isStanding = this.watchers.every((watcher) => watcher.isStanding);
    return isStanding ? null : "a watch does not come to stand";
  }

  /** Nothing changes any more: every watch knows all. */
  rest(): void {
    const { world } = this.parts;
    const { newest } = this.findings;
    for (const watcher of this.watchers) watcher.barrier(true);
    const endMs = world.nowMs + LAST_BARRIERS_MS;
    const areOpen = (): boolean =>
      this.watchers.some((each) => each.hasBarriers || !each.isStanding);
    do world.run(world.nowMs + LOOK_EVERY_MS * 10);
    while (world.nowMs < endMs && areOpen());
    // Leases go on to end; what has just ended is on its way.
    const knownMs = world.nowMs;
    world.run(knownMs + ON_ITS_WAY_MS);
    const whole = (watcher: Watcher): boolean => watcher.isStanding && !watcher.hasBarriers;
    for (const watcher of this.watchers) {
      if (!whole(watcher)) newest.violation(`${watcher.name} in peace has no end of its barrier`);
      for (const told of watcher.watched()) {
        newest.count("watches in peace");
        newest.count("names in peace", this.changes.namesOf(told.ask).length);
        const missing = told.missing(knownMs);
        if (missing !== null) newest.violation(`${told.id} does not know ${missing}`);
      }
    }
    if (this.parts.watches.endsUnwatched) this.unwatched();
  }

  /** Everybody goes, and what was kept for who comes back is given up. */
  private unwatched(): void {
    const { world, servers } = this.parts;
    for (const watcher of this.watchers) watcher.leave();
    // Parts for a node that crashed meanwhile end when nobody has asked for them for so long.
    const keptMs = WATCH_PART_IDLE_MS + WATCH_HISTORY_MS;
    world.run(world.nowMs + keptMs * 1.1 + QUIET_MS);
    const eventsOf = ({ running }: Server): number =>
      running?.operations.watches.tally.events.reduce((sum, count) => sum + count, 0) ?? 0;
    const before = new Map(servers.map((server) => [server, eventsOf(server)]));
    for (const server of servers) {
      if (server.running === null) continue;
      const hub = server.running.operations["watchHub"];
      const feed = hub["feed"];
      const taps = server.running.node.groups().filter(({ machine }) => machine.tap !== null);
      this.noWatchers.look({
        ...{ node: server.nodeId, filters: feed.filters.size, leases: feed.leases.size },
        ...{ historyBytes: feed.historyBytes, taps: taps.length },
        events: eventsOf(server) - (before.get(server) ?? 0),
      });
    }
  }

  verdicts(): Verdict[] {
    const { findings, expiries, bounded, noWatchers } = this;
    const judged = [expiries, bounded, noWatchers].map((each) => each.verdict());
    return [...findings.verdicts(), ...judged, ...this.forced(), this.went()];
  }

  /** Of grants that were ended by force. */
  private forced(): Verdict[] {
    if (this.admin === null) return [];
    const { events, rows } = this.admin;
    return [checkForceCompares(events, {}), checkAuditExact(events, rows, {})];
  }

  private went(): Verdict {
    const findings = new Findings(WATCHED, {});
    for (const [name, count] of Object.entries(this.counts)) findings.count(name, count);
    for (const { merged, resets } of this.tallies) {
      for (const [reason, count] of merged) findings.count(`catch-ups: ${reason}`, count);
      findings.count("resets", resets);
    }
    return findings.verdict();
  }

  // Looks ----------------------------------------------------------------------------------------

  private isWatched(sort: string, name: string): boolean {
    return this.watchers.some((watcher) =>
      watcher.watched().some(({ ask }) => sortOf(ask.kind) === sort && isOf(ask, name)),
    );
  }

  private look(): void {
    const { world, servers, network } = this.parts;
    world.schedule(LOOK_EVERY_MS, () => {
      for (const server of servers) this.lookAt(server);
      const isTroubled = network.isClogged || servers.some((one) => isHeldUp(one, world.nowMs));
      if (isTroubled) this.wholeMs = Math.max(this.wholeMs, world.nowMs + TROUBLE_MS);
      this.look();
    });
  }

  private lookAt(server: Server): void {
    const { running, nodeId: node } = server;
    if (running === null) return;
    const { tally } = running.operations.watches;
    const { streams, historyBytes } = tally;
    const watches = tally.watchers.reduce((sum, count) => sum + count, 0);
    const all = this.watchers.reduce((sum, { size }) => sum + size, 0);
    const { historyMaxBytes } = this;
    // Who went elsewhere may be heard of later.
    const most = { watchesMost: 4 * all, streamsMost: 4 * this.watchers.length };
    this.bounded.look({ node, historyBytes, historyMaxBytes, watches, streams, ...most });
    for (const group of running.node.groups()) if (group.isServing()) this.lookAtEnds(group);
  }

  /** The leases of a partition, at its leader. */
  private lookAtEnds(group: Group): void {
    const { world, plan } = this.parts;
    const { partition } = group;
    const { baseMs, jitterMs, slowPerMillion } = plan.network;
    const { lingerMs = 0 } = plan.host;
    const waysMs = WAYS * (baseMs + jitterMs + plan.disk.writeMs) + lingerMs;
    // One of the frames on the way may be slow, and holds up what is behind it.
    const slowMs = slowPerMillion > 0 ? SLOWEST_TIMES * (baseMs + jitterMs) : 0;
    const boundMs = EXPIRY_MS + LOOK_EVERY_MS + waysMs + slowMs;
    const nowMs = group.leaseNowMs();
    for (const { sort, name, endMs } of this.truth.leasesOf(partition)) {
      if (endMs > nowMs) continue;
      const isAble = world.nowMs > this.wholeMs && this.isWatched(sort, name);
      const sinceMs = nowMs - endMs;
      this.expiries.look({ atMs: world.nowMs, name, partition, sinceMs, isAble, boundMs });
    }
  }
}
