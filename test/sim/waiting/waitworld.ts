/**
 * Those who wait for locks in a world, all who look at them, and what they make of it in the end.
 *
 * Invariants: 1. Everything is drawn from generators of its own: a world without waiters is as it was.
 * 2. In peace nobody new waits.
 */
import type { Prng } from "../../../src/base/prng.js";
import { decodeEntry } from "../../../src/machine/commands/codec.js";
import { EntryKindCode } from "../../../src/host/replication/config-entries.js";
import type { LogEntry } from "../../../src/ports.js";
import { DEFAULT_HOST_SETTINGS } from "../../doubles/default-settings.js";
import type { Leaderships } from "../../judge/checkers/clients/leaderships.js";
import { Findings, type Verdict } from "../../judge/checkers/verdict.js";
import {
  type AbortedWait,
  type Dropping,
  checkAborted,
} from "../../judge/checkers/waits/aborted-for-cause.js";
import { Fifo } from "../../judge/checkers/waits/fifo.js";
import { type GoneWait, checkGone } from "../../judge/checkers/waits/gone-holds-nothing.js";
import { checkHolderFirst } from "../../judge/checkers/waits/holder-first.js";
import { checkLeaseFromGrant } from "../../judge/checkers/waits/lease-from-grant.js";
import { checkNeverFree } from "../../judge/checkers/waits/never-free.js";
import { NilCost } from "../../judge/checkers/waits/nil-cost.js";
import { NoLostWakeUp } from "../../judge/checkers/waits/no-lost-wake-up.js";
import { WaitEndsOnce } from "../../judge/checkers/waits/wait-ends-once.js";
import type { SeenHeir } from "../../judge/checkers/heirs/naive-row.js";
import type { History } from "../../judge/history.js";
import type { ClientCounts } from "../clients/client.js";
import type { SharedWork } from "../clients/workload.js";
import { handOverNowAndThen } from "../members/hand-overs.js";
import type { Plan } from "../plan/plan.js";
import type { HistoryRecorder } from "../../judge/history.js";
import type { SimNetwork } from "../net/network.js";
import type { Server } from "../world/server.js";
import type { World } from "../world/world.js";
import { HeirTap } from "./heir-tap.js";
import { LockForcer } from "./lock-forcer.js";
import { QueueTap } from "./queue-tap.js";
import { StepCutter } from "./step-cutter.js";
import { NEWCOMER, Waiter } from "./waiter.js";
import type { WaitPlan } from "./waitplan.js";

/** How often the leaders are looked at (ms). */
const LOOK_EVERY_MS = 50;
/** After a disk or a link works again so much time may pass until nobody is refused any more (ms). */
const TROUBLE_MS = 2000;
/** Places are kept that long, and tries that are on their way end (ms). */
const LAST_PLACES_MS = 3000;
/** How long nothing may happen then (ms). */
const QUIET_MS = 6000;
const LOOK_AT_SLEEP_MS = 500;
/** A node that ended is waited for awake so many election timeouts, and one more for what is on its way. */
const GONE_ELECTIONS = 6;
/** Along so many heirs a leader that is cut off hands over until it steps down. */
const LONG_LIST = 60;

const LOCK_COMMANDS: ReadonlySet<string> = new Set([
  ...["try-lock", "try-extend", "try-unlock", "lock-with-note", "extend-grant", "unlock-grant"],
  ...["lock-heir", "set-heirs", "append-heirs"],
]);

export interface WaitWorldParts {
  readonly world: World;
  readonly network: Pick<SimNetwork, "isClogged" | "cut">;
  readonly plan: Plan;
  readonly waits: WaitPlan;
  readonly servers: readonly Server[];
  readonly history: HistoryRecorder;
  readonly shared: SharedWork;
  readonly calls: ClientCounts;
}

/** The property under which the world counts what its waits went through. */
export const WAITED = "what waits went through";

export class WaitWorld {
  readonly counts: Record<string, number> = {};
  readonly tap: QueueTap;
  private readonly waiters: Waiter[] = [];
  private readonly gone: GoneWait[] = [];
  private readonly aborted: AbortedWait[] = [];
  private readonly dropped: (Dropping & { toldMs: number })[] = [];
  private readonly asks = new Map<string, number>();
  private readonly fifo = new Fifo();
  private readonly ends: WaitEndsOnce;
  private readonly wakeUps = new NoLostWakeUp();
  private readonly nilCost = new NilCost();
  private readonly prng: Prng;
  /** null: locks have no heirs. */
  private readonly heirs: HeirTap | null;
  private readonly forcer: LockForcer | null;
  private readonly cutter: StepCutter | null;
  private isOver = false;
  /** Looks at which some disk did not work as it should (ms). */
  private readonly troubledMs: number[] = [];
  /** Nodes that were up at the last look, and when one of them was no more (ms). */
  private ups = 0;
  private endedMs = Number.NEGATIVE_INFINITY;
  /** Entries about locks that anybody wrote, and all entries, by partition. */
  private readonly lockEntries = new Map<number, number>();
  private readonly entries = new Map<number, number>();

  constructor(
    private readonly parts: WaitWorldParts,
    private readonly drift: number,
  ) {
    const { world, waits } = parts;
    this.prng = world.prng("waits");
    this.ends = new WaitEndsOnce(drift);
    const { fifo, ends, wakeUps, gone, aborted, asks, counts } = this;
    const { servers, history, plan, network } = parts;
    const heirs = waits.heirs === null ? null : new HeirTap(world, servers, history);
    this.heirs = heirs;
    this.tap = new QueueTap(world, { fifo, ends, wakeUps, heirs }, history);
    const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1);
    const { forceMs = 0, cutMs = 0, isOrderly = false } = waits.heirs ?? {};
    const baseOf = (resource: string): SeenHeir | null => heirs?.baseOf(resource) ?? null;
    const { requestTimeoutMs: timeoutMs } = plan;
    const forced = { world, servers, history, locks: waits.locks, baseOf, timeoutMs, count };
    this.forcer =
      forceMs === 0 || heirs === null
        ? null
        : new LockForcer({ ...forced, everyMs: forceMs, tap: heirs.forced, drops: this.drops });
    const listMin = isOrderly ? LONG_LIST : 0;
    const cut = { world, servers, network, everyMs: cutMs, listMin, count };
    this.cutter = cutMs === 0 || heirs === null ? null : new StepCutter({ ...cut, heirs });
    const more = {
      ...{ counts, asks, gone: (wait: GoneWait): void => void gone.push(wait) },
      aborted: (wait: AbortedWait): void => void aborted.push(wait),
    };
    for (let number = 1; number <= waits.clients; number++) {
      this.waiters.push(new Waiter({ ...parts, ...more }, number));
    }
  }

  private readonly drops = (resource: string): (() => void) => {
    const sentMs = this.parts.world.nowMs;
    const one = { lock: `lock ${resource}`, sentMs, toldMs: Infinity };
    this.dropped.push(one);
    return () => void (one.toldMs = this.parts.world.nowMs);
  };

  start(): void {
    for (const waiter of this.waiters) waiter.start();
    this.forcer?.start();
    this.cutter?.start();
    this.look();
    const { world, waits, servers } = this.parts;
    handOverNowAndThen({
      ...{ world, servers, prng: this.prng, everyMs: waits.handOverMs },
      isOver: () => this.isOver,
      given: () => {
        this.counts["leaderships given away"] = (this.counts["leaderships given away"] ?? 0) + 1;
      },
    });
  }

  opened(server: Server): void {
    this.tap.opened(server);
  }

  /** A node wrote an entry. */
  written(partition: number, entry: LogEntry): void {
    add(this.entries, partition);
    if (entry.kind !== EntryKindCode.normal || entry.payload.length === 0) return;
    const decoded = decodeEntry(entry.payload);
    if (!decoded.ok) return;
    const isOfLocks = decoded.value.commands.some(({ kind }) => LOCK_COMMANDS.has(kind));
    if (isOfLocks) add(this.lockEntries, partition);
  }

  /** Faults have ended. */
  settle(): void {
    this.isOver = true;
    this.cutter?.stop();
  }

  /** Nobody asks any more. */
  stop(): void {
    for (const waiter of this.waiters) waiter.stop();
    this.forcer?.stop();
  }

  get isWaiting(): boolean {
    return this.waiters.some((waiter) => waiter.isWaiting);
  }

  /** Nobody has waited for a while: waiting costs nothing. */
  rest(): void {
    const { world, servers, plan } = this.parts;
    world.run(world.nowMs + LAST_PLACES_MS);
    const lockEntries = new Map(this.lockEntries);
    const entries = new Map(this.entries);
    const tries = new Map(this.tap.triesOf);
    const { quiesceAfterMs = 0, electionMs = DEFAULT_HOST_SETTINGS.electionMs } = plan.host;
    // Whose members are not all able to confirm what they have does not sleep (P-013), but for those long gone.
    const isLongGone = world.nowMs - this.endedMs > GONE_ELECTIONS * electionMs;
    const isAble = servers.every(({ disk, rows, isUp }) => {
      return Math.max(disk.lateUntilMs, rows.lateUntilMs) <= world.nowMs && (isUp || isLongGone);
    });
    const slept = this.sleepers(QUIET_MS);
    const since = (now: Map<number, number>, then: Map<number, number>, at: number): number =>
      (now.get(at) ?? 0) - (then.get(at) ?? 0);
    const waitedIn = new Set(this.tap.queues.map((queue) => queue.partition));
    for (const server of servers) {
      for (const group of server.running?.node.groups() ?? []) {
        const { partition } = group;
        if (!group.isServing() || !waitedIn.has(partition)) continue;
        const tally = server.running?.operations.waitTally;
        const wasQuiet = since(this.entries, entries, partition) === 0;
        this.nilCost.quiet({
          node: server.nodeId,
          partition,
          waiters: tally?.waiters ?? 0,
          places: tally?.placesLeft ?? 0,
          lockEntriesBefore: lockEntries.get(partition) ?? 0,
          lockEntries: since(this.lockEntries, lockEntries, partition),
          tries: since(this.tap.triesOf, tries, partition),
          maySleep: wasQuiet && isAble && quiesceAfterMs > 0,
          sleeps: slept.has(group),
        });
      }
    }
    this.heirs?.forced.read(servers);
  }

  /** Who sleeps at some time in that one: leaders are spread anew now and then, and wake for that. */
  private sleepers(forMs: number): ReadonlySet<unknown> {
    const { world, servers } = this.parts;
    const slept = new Set<unknown>();
    const endMs = world.nowMs + forMs;
    while (world.nowMs < endMs) {
      world.run(world.nowMs + LOOK_AT_SLEEP_MS);
      for (const group of servers.flatMap(({ running }) => [...(running?.node.groups() ?? [])])) {
        if (group.facts().quiesced) slept.add(group);
      }
    }
    return slept;
  }

  /** The verdicts on all that was seen. */
  judge(history: History, leaderships: Leaderships): Verdict[] {
    const { tap, gone, drift, asks } = this;
    const termBetween = leaderships.only.bind(leaderships);
    const isNewcomer = (owner: string): boolean => owner.startsWith(NEWCOMER);
    const isOpen = (owner: string): boolean => (asks.get(owner) ?? 0) > 1 || tap.kept.has(owner);
    this.ends.judge(history);
    return [
      this.fifo.verdict(),
      checkNeverFree(history, tap.queues, termBetween, isNewcomer),
      this.ends.verdict(),
      checkAborted(this.aborted, this.dropped, (owner) => (asks.get(owner) ?? 0) <= 1),
      this.wakeUps.verdict(),
      checkGone(history, gone, isOpen, termBetween, this.heirs),
      checkLeaseFromGrant(history, tap.grants, drift, termBetween),
      checkHolderFirst(history, tap.queues, this.wasTroubled),
      this.nilCost.verdict(),
      ...(this.heirs?.judge(history) ?? []),
      ...(this.forcer === null ? [] : (this.heirs?.forced.judge(history) ?? [])),
      this.went(),
    ];
  }

  private went(): Verdict {
    const findings = new Findings(WAITED, {});
    const all = { ...this.counts, ...this.tap.counts };
    for (const [name, count] of Object.entries(all)) findings.count(name, count);
    return findings.verdict();
  }

  private look(): void {
    const { world, servers, network } = this.parts;
    world.schedule(LOOK_EVERY_MS, () => {
      this.tap.look(servers);
      const ups = servers.filter(({ isUp }) => isUp).length;
      if (ups < this.ups) this.endedMs = world.nowMs;
      this.ups = ups;
      const isTroubled = network.isClogged || servers.some((one) => isHeldUp(one, world.nowMs));
      if (isTroubled) {
        this.troubledMs.push(world.nowMs);
      }
      this.look();
    });
  }

  /** A moment longer: what had come together is worked off then. */
  private readonly wasTroubled = (fromMs: number, toMs: number): boolean =>
    this.troubledMs.some((atMs) => atMs >= fromMs - TROUBLE_MS && atMs <= toMs + LOOK_EVERY_MS);
}

function add(into: Map<number, number>, name: number): void {
  into.set(name, (into.get(name) ?? 0) + 1);
}

/** Its disk or its store does not work as it should, or is not through with what it was asked for while it did not. */
export function isHeldUp({ disk, rows }: Server, nowMs: number): boolean {
  const hungUntilMs = Math.max(disk.hungUntilMs, rows.hungUntilMs);
  const isHung = Math.max(hungUntilMs, disk.lateUntilMs, rows.lateUntilMs) > nowMs;
  return isHung || disk.isFull || rows.isFull || disk.slowness > 1;
}
