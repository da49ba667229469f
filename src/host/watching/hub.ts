/**
 * The watches of one node (W1 to W16): who watches what, and when they are told.
 *
 * Owns streams, marks and the pump. Invariants: 1. Nothing is delivered in the turn of a call. 2.
 * Each watch ends with one message, unless its stream is closed. 3. Without watches nothing is
 * made, kept or sent (W15). 4. A turn delivers a bounded number of messages, then input is heard
 * first.
 */
import { WatchEnd, WatchKind } from "../../base/result-types.js";
import { WATCH_STALE_MAX_MS } from "../../base/limits.js";
import { DueHeap } from "../waiting/due-heap.js";
import type { TimerHandle } from "../../ports.js";
import { Confirmations } from "./confirmations.js";
import { Expiries } from "./expiries.js";
import { Feed } from "./feed.js";
import { type Filter, queryOf, scopeOf } from "./filters.js";
import { type LevelMap, Levels } from "./levels.js";
import { PART_MOVED, type WatchRequest, type WatchSink, isAcceptable } from "./messages.js";
import {
  type Positions,
  clusterMark,
  decodePositions,
  encodePositions,
  within,
} from "./positions.js";
import { type PumpBudget, Stream, type StreamHome } from "./stream.js";
import { ScanTurns } from "./scan-turns.js";
import { Teller } from "./told.js";
import { WatchTally } from "./watch-tally.js";
import type { WatchPorts, WatchSettings, WatchedState } from "./watching.js";
import { Watch, type WatchHome } from "./watch.js";

/** What one turn may deliver, and how long it may take. */
const TURN_DELIVERIES = 1024;
const TURN_MS = 2;
/** A watch begins within this time, or ends (ms). */
const BEGIN_MS = 10_000;
/** One try of a Sync: partitions may be removed meanwhile; and between two (ms). */
const LEVEL_MS = 1000;
const LEVEL_AGAIN_MS = 20;
/** How often what is old is forgotten (ms). */
const SWEEP_MS = 1000;

type Refused = { readonly end: number; readonly partition: number | null };

export class WatchHub implements StreamHome, WatchHome, LevelMap {
  readonly tally = new WatchTally();
  readonly teller = new Teller();
  readonly turns = new ScanTurns();
  private readonly feed: Feed;
  private readonly confirmations: Confirmations;
  private readonly levels: Levels;
  private readonly expiries: Expiries;
  private readonly streams = new Set<Stream>();
  /** Watches that there are. */
  private watching = 0;
  /** Those that stand, and are yet to be told to begin. */
  private readonly held = new Map<Watch, () => void>();
  private awake: Stream[] = [];
  private readonly marks = new DueHeap<Watch>();
  private markTimer: TimerHandle | null = null;
  /** The pump runs, or will soon. */
  private isArmed = false;
  private isStopped = false;
  private isSweeping = false;
  mapVersion = -1;
  /** When a partition was level with its leader last (monotonic ms). */
  private readonly levelMs = new Map<number, number>();

  constructor(
    readonly ports: WatchPorts,
    private readonly settings: WatchSettings,
  ) {
    this.confirmations = new Confirmations(ports);
    this.levels = new Levels(this.confirmations, this);
    this.feed = new Feed(ports, settings, this.tally, {
      news: () => this.arm(),
      replaced: (partition, reason) => this.replaced(partition, reason),
      leaseNoted: (partition) => this.expiries.noted(partition),
      tooManyLeases: (filter) => this.endAll(filter, WatchEnd.overloaded, null),
    });
    this.expiries = new Expiries(ports, this.feed.leases);
    ports.onGroupLeft(({ partition }) => this.left(partition));
  }

  get count(): number {
    return this.watching;
  }

  /** `mayBegin`: whether the caller may begin one watch more (W16). */
  open(sink: WatchSink, mayBegin: () => boolean = () => true): Stream {
    const stream = new Stream(sink, this, mayBegin);
    this.streams.add(stream);
    this.tally.streams++;
    return stream;
  }

  /** The node begins to stop: every watch ends, and none begins. */
  stop(): void {
    this.isStopped = true;
    for (const stream of this.streams) stream.endAll(WatchEnd.shuttingDown);
    this.expiries.close();
    this.markTimer?.cancel();
    this.feed.turn(false);
  }

  /** Another node watches a lease of a partition that is led here. False: it is to ask again. */
  wishedClock(partition: number, leaseMs: number): boolean {
    return !this.isStopped && this.expiries.wish(partition, leaseMs);
  }

  begin(stream: Stream, watchId: number, request: WatchRequest): Watch | Refused {
    const refused = this.refusal(request);
    if (refused !== null) return refused;
    this.followMap();
    const { kind, name, part } = request;
    const all = this.ports.partitionsOf(kind, name);
    const partitions = part === undefined ? all : new Set(part.partitions);
    if (partitions === null) return { end: WatchEnd.notHosted, partition: null };
    for (const partition of partitions) {
      if (this.ports.group(partition) === null) return { end: WatchEnd.notHosted, partition };
    }
    const cursor = this.cursorIn(request);
    if (cursor === "bad") return { end: WatchEnd.invalidInput, partition: null };
    const filter = this.feed.filter(kind, name, partitions, scopeOf(part?.partitions ?? null));
    if (filter === null) return { end: WatchEnd.overloaded, partition: null };
    const watch = new Watch(watchId, filter, stream.keptOf(request), this, stream);
    filter.watches.add(watch);
    filter.idleMs = Infinity;
    this.watching++;
    this.tally.watching(kind, 1);
    this.sweepLater();
    const start = (): void => this.start(watch, cursor, request.fromRevision);
    if (part === undefined) start();
    else this.held.set(watch, start);
    return watch;
  }

  startHeld(watch: Watch): void {
    const start = this.held.get(watch);
    this.held.delete(watch);
    start?.();
  }

  private start(
    watch: Watch,
    cursor: Positions | "foreign" | null,
    fromRevision: bigint | null,
  ): void {
    const { filter, audience } = watch;
    const untilMs = this.nowMs() + BEGIN_MS;
    this.levels.reach([filter], untilMs, (isLevel) => {
      if (!filter.watches.has(watch)) return;
      if (!isLevel) {
        const [first = null, ...more] = filter.partitions;
        return audience.endWatch(watch, WatchEnd.stale, more.length === 0 ? first : null);
      }
      for (const partition of filter.partitions) this.levelMs.set(partition, this.nowMs());
      watch.begin(cursor, fromRevision);
    });
  }

  isInDoubt(filters: readonly Filter[]): boolean {
    return !this.ports.isClosing() && filters.some((filter) => this.feed.isInDoubt(filter));
  }

  /** Why none such begins; null: none of these reasons. `others`: watches of the node beside. */
  refusal(request: WatchRequest, others = 0): Refused | null {
    if (!isAcceptable(request)) return { end: WatchEnd.invalidInput, partition: null };
    if (this.isStopped) return { end: WatchEnd.shuttingDown, partition: null };
    if (this.count + others < this.settings.watchersMax) return null;
    return { end: WatchEnd.overloaded, partition: null };
  }

  private cursorIn(request: WatchRequest): Positions | "foreign" | null | "bad" {
    const { kind, name, cursor, part } = request;
    if (cursor === null) return null;
    const mark = clusterMark(this.ports.clusterId());
    const hosted = this.ports.groups().map(({ partition }) => partition);
    const at = decodePositions(queryOf(kind, name), mark, cursor, hosted) ?? "bad";
    return part === undefined || typeof at === "string" ? at : within(at, part.partitions);
  }

  ended(watch: Watch): void {
    const { filter } = watch;
    watch.end();
    filter.watches.delete(watch);
    if (filter.watches.size === 0) filter.idleMs = this.nowMs();
    this.watching--;
    this.held.delete(watch);
    this.marks.remove(watch);
    this.tally.watching(filter.kind, -1);
  }

  full(): void {
    this.turns.freeStuck();
  }

  closed(stream: Stream): void {
    if (this.streams.delete(stream)) this.tally.streams--;
  }

  level(stream: Stream, filters: readonly Filter[], done: () => void): void {
    const untilMs = this.nowMs() + LEVEL_MS;
    this.levels.reach(filters, untilMs, (isLevel) => {
      // Nobody waits for it any more, or it is waited for on: what is on its way is nowhere.
      const isOver = stream.isEmpty || this.isStopped;
      if (isOver || (isLevel && !this.isInDoubt(filters))) done();
      else this.ports.timer.after(LEVEL_AGAIN_MS, () => this.level(stream, filters, done));
    });
  }

  delayed(durationMs: number): void {
    this.tally.delays.observe(durationMs);
  }

  nowMs(): number {
    return this.ports.clock.monotonicMs();
  }

  state(partition: number): WatchedState | null {
    return this.feed.state(partition);
  }

  noteLease(
    partition: number,
    sort: "key" | "lock" | "sequence",
    name: string,
    endMs: number,
  ): boolean {
    return this.feed.noteLease(partition, sort, name, endMs);
  }

  speaksFor(partition: number, name: string): boolean {
    return this.feed.speaksFor(partition, name);
  }

  hasMoved(): boolean {
    return this.ports.hasMoved();
  }

  positionsNow(filter: Filter): Positions {
    return this.feed.positionsNow(filter);
  }

  cursorOf(filter: Filter, positions: Positions): string {
    if (filter.cursor?.positions === positions) return filter.cursor.text;
    const text = encodePositions(filter.query, clusterMark(this.ports.clusterId()), positions);
    filter.cursor = { positions, text };
    return text;
  }

  remembers({ isOfKeys }: Filter, positions: Positions): boolean {
    for (const [partition, { leaseMs }] of positions) {
      // Keys that were in a partition elsewhere may have been collected there.
      const collected = this.ports.group(partition)?.machine.collected ?? null;
      if (collected === null) return false;
      if (leaseMs < (isOfKeys ? collected.keysMs : collected.locksMs)) return false;
    }
    return true;
  }

  staleMs({ partitions }: Filter): number {
    const nowMs = this.nowMs();
    let staleMs = 0;
    for (const partition of partitions) {
      const heardMs = this.ports.group(partition)?.levelMs(nowMs) ?? -Infinity;
      const levelMs = Math.max(heardMs, this.levelMs.get(partition) ?? -Infinity);
      if (levelMs === -Infinity) continue;
      this.levelMs.set(partition, levelMs);
      staleMs = Math.max(staleMs, nowMs - levelMs);
    }
    return staleMs;
  }

  // Who is told when -------------------------------------------------------------------------

  wake(stream: Stream): void {
    if (!stream.isAwake) {
      stream.isAwake = true;
      this.awake.push(stream);
    }
    this.arm();
  }

  private arm(): void {
    if (this.isArmed) return;
    this.isArmed = true;
    this.ports.timer.soon(() => this.pump());
  }

  private pump(): void {
    this.confirmations.look();
    this.followMap();
    for (const filter of this.feed.changed) for (const watch of filter.watches) watch.hasNews();
    this.feed.changed.clear();
    const budget: PumpBudget = { deliveries: TURN_DELIVERIES, endMs: this.nowMs() + TURN_MS };
    const { awake } = this;
    this.awake = [];
    // Whoever had its share comes behind those for whom nothing was left.
    const served: Stream[] = [];
    for (const stream of awake) {
      const isLeft = budget.deliveries > 0 && this.nowMs() < budget.endMs;
      stream.isAwake = false;
      if (stream.pump(budget) && !stream.isAwake) {
        stream.isAwake = true;
        (isLeft ? served : this.awake).push(stream);
      }
    }
    for (const stream of served) this.awake.push(stream);
    this.teller.forget();
    this.isArmed = this.awake.length > 0;
    // Input first.
    if (this.isArmed) this.ports.timer.after(0, () => this.pump());
  }

  told(watch: Watch, nowMs: number): void {
    // A fraction would be an object of its own for each watch.
    watch.toldMs = Math.floor(nowMs);
    if (watch.heapAt >= 0) return;
    this.marks.set(watch, nowMs + this.progressMs(watch));
    if (this.markTimer === null || watch.heapAt === 0) this.armMarks();
  }

  private progressMs({ request }: Watch): number {
    return request.progressMs === 0 ? this.settings.progressMs : request.progressMs;
  }

  private armMarks(): void {
    this.markTimer?.cancel();
    this.markTimer = null;
    const { nextMs } = this.marks;
    if (nextMs === Infinity || this.isStopped) return;
    const inMs = Math.max(0, nextMs - this.nowMs());
    this.markTimer = this.ports.timer.after(inMs, () => this.marksDue());
  }

  private marksDue(): void {
    const nowMs = this.nowMs();
    for (let watch = this.marks.take(nowMs); watch !== null; watch = this.marks.take(nowMs)) {
      const progressMs = this.progressMs(watch);
      const dueMs = watch.toldMs + progressMs;
      // What was told meanwhile is as good as a mark.
      this.marks.set(watch, dueMs > nowMs ? dueMs : nowMs + progressMs);
      if (dueMs <= nowMs) this.markOf(watch);
    }
    this.armMarks();
  }

  /** A mark is due; it is also when a watch is found to be allowed no more, or stale. */
  private markOf(watch: Watch): void {
    const { audience } = watch;
    if (!audience.mayRead()) return audience.endWatch(watch, WatchEnd.forbidden, null);
    if (this.staleMs(watch.filter) > WATCH_STALE_MAX_MS) {
      const [partition = null] = watch.filter.partitions;
      return audience.endWatch(watch, WatchEnd.stale, partition);
    }
    watch.wantsMark = true;
    watch.hasNews();
  }

  // What happens to partitions ----------------------------------------------------------------

  private replaced(partition: number, reason: "image" | "moved"): void {
    for (const filter of this.feed.filters.all()) {
      const { isOfKeys } = filter;
      if (!filter.partitions.has(partition) || (reason === "moved" && !isOfKeys)) continue;
      // An image may have brought keys with stamps of other partitions.
      const isStrange = reason === "moved" || (isOfKeys && this.hasMoved());
      const strange = isStrange ? [partition] : [];
      // Other parts of the same watch, on other nodes, may have yet to tell of these keys: whoever
      // joins the parts begins this one anew, behind those.
      const isPart = filter.scope !== "" && filter.kind !== WatchKind.key;
      if (isPart && isStrange) this.endAll(filter, PART_MOVED, partition);
      else for (const watch of this.watchesOf(filter)) watch.fallBack(reason, strange);
    }
    this.arm();
  }

  private *watchesOf(filter: Filter): Iterable<Watch> {
    for (const watch of [...filter.watches]) if (watch instanceof Watch) yield watch;
  }

  private left(partition: number): void {
    this.feed.left(partition);
    for (const filter of this.feed.filters.all()) {
      if (filter.partitions.has(partition)) this.endAll(filter, WatchEnd.notHosted, partition);
    }
  }

  private endAll(filter: Filter, end: number, partition: number | null): void {
    for (const watch of this.watchesOf(filter)) watch.audience.endWatch(watch, end, partition);
  }

  /** Ranges of keys may lie in other partitions than before. */
  followMap(): void {
    if (this.feed.filters.size === 0) return;
    const version = this.ports.mapVersion();
    if (version === this.mapVersion) return;
    this.mapVersion = version;
    for (const filter of this.feed.filters.all()) this.follow(filter);
    this.feed.mapChanged();
  }

  private follow(filter: Filter): void {
    const { kind, name, scope } = filter;
    // Whoever joins parts cuts them anew.
    if (scope !== "") return;
    const partitions = this.ports.partitionsOf(kind, name);
    if (partitions === null || partitions === filter.partitions) return;
    const strange = [...partitions].find((each) => this.ports.group(each) === null);
    if (strange !== undefined) return this.endAll(filter, WatchEnd.notHosted, strange);
    const added = this.feed.cover(filter, partitions);
    if (added === null) return;
    for (const watch of this.watchesOf(filter)) watch.fallBack("moved", added);
  }

  private sweepLater(): void {
    if (this.isSweeping) return;
    this.isSweeping = true;
    this.ports.timer.after(SWEEP_MS, () => {
      this.isSweeping = false;
      this.feed.sweep(this.nowMs());
      if (this.feed.filters.size > 0 && !this.isStopped) this.sweepLater();
    });
  }
}
