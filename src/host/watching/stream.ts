/**
 * The watches of one caller, and in which order they are told.
 *
 * Owns its watches. Invariants: 1. A full sink is given nothing but ends: watches stand where they
 * are, and hold nothing (W13). 2. SYNCED is given when all that it waits for was told (W9). 3. Each
 * watch has one end, and none after the stream is closed. 4. One round at a time serves all Syncs
 * that came before it; of those that wait there are at most WATCH_SYNCED_MAX, with their watches.
 */
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import { WATCHES_PER_STREAM_MAX, WATCH_SYNCED_MAX } from "../../base/limits.js";
import type { Filter } from "./filters.js";
import {
  type WatchMessage,
  type WatchRequest,
  type WatchSink,
  type WatchStream,
  keptOf,
} from "./messages.js";
import { type Draft, draft } from "./told.js";
import { Watch } from "./watch.js";

/** What all streams of a turn may still do. */
export interface PumpBudget {
  deliveries: number;
  endMs: number;
}

export interface StreamHome {
  /** Makes a watch that begins by itself; or says why not. */
  begin(
    stream: Stream,
    watchId: number,
    request: WatchRequest,
  ): Watch | { readonly end: number; readonly partition: number | null };
  /** A part that was held may begin. */
  startHeld(watch: Watch): void;
  /** The sink takes nothing now. */
  full(): void;
  /** The watch is over. */
  ended(watch: Watch): void;
  /** It was told something. */
  told(watch: Watch, nowMs: number): void;
  /** From a change to its message (ms). */
  delayed(durationMs: number): void;
  closed(stream: Stream): void;
  /** The stream has something to deliver. */
  wake(stream: Stream): void;
  /** `done` when the filters are level with what was answered before this call. */
  level(stream: Stream, filters: readonly Filter[], done: () => void): void;
  /** Keys of the filters are on their way, or the map of this node is old. */
  isInDoubt(filters: readonly Filter[]): boolean;
  /** Of the map that filters have their partitions by. */
  readonly mapVersion: number;
  nowMs(): number;
}

interface Sync {
  readonly syncId: number;
  readonly watches: readonly Watch[];
  /** Where each of them has to be; null: not known yet. */
  targets: readonly number[] | null;
  /** Of the map by which that was found. */
  mapVersion: number;
}

export class Stream implements WatchStream {
  private readonly watches = new Map<number, Watch>();
  private readonly byFilter = new Map<Filter, Set<Watch>>();
  private readonly dirty = new Set<Watch>();
  /** What was kept of a request last. */
  private kept: WatchRequest | null = null;
  private ends: WatchMessage[] = [];
  private readonly syncs: Sync[] = [];
  /** What they are about, and they themselves. */
  private synced = 0;
  /** A round for Syncs is under way. */
  private isLevelling = false;
  private isClosed = false;
  isAwake = false;

  constructor(
    private readonly sink: WatchSink,
    private readonly home: StreamHome,
    /** Asked for each watch that is to begin; false: it is one too many for its caller. */
    private readonly mayBegin: () => boolean,
  ) {}

  create(watchId: number, request: WatchRequest): void {
    if (this.isClosed) return;
    const isId = Number.isInteger(watchId) && watchId >= 1 && !this.watches.has(watchId);
    if (!isId) return this.refuse(watchId, WatchEnd.invalidInput, null);
    if (this.watches.size >= WATCHES_PER_STREAM_MAX || !this.mayBegin()) {
      return this.refuse(watchId, WatchEnd.overloaded, null);
    }
    const begun = this.home.begin(this, watchId, request);
    if (!(begun instanceof Watch)) return this.refuse(watchId, begun.end, begun.partition);
    this.watches.set(watchId, begun);
    const same = this.byFilter.get(begun.filter) ?? new Set();
    this.byFilter.set(begun.filter, same.add(begun));
  }

  /** What a watch keeps of its request. */
  keptOf(request: WatchRequest): WatchRequest {
    this.kept = keptOf(request, this.kept);
    return this.kept;
  }

  /** The part, which stands, begins (W14). */
  start(watchId: number): void {
    const watch = this.watches.get(watchId);
    if (watch !== undefined) this.home.startHeld(watch);
  }

  cancel(watchId: number): void {
    this.end(watchId, WatchEnd.cancelled);
  }

  /** Ends one for this reason. False: there is none, and nothing is told. */
  end(watchId: number, end: number): boolean {
    const watch = this.watches.get(watchId);
    if (watch !== undefined) this.endWatch(watch, end, null);
    return watch !== undefined;
  }

  sync(syncId: number, watchId: number): void {
    if (this.isClosed) return;
    const one = this.watches.get(watchId);
    const watches = watchId === 0 ? [...this.watches.values()] : one === undefined ? [] : [one];
    if (this.synced + 1 + watches.length > WATCH_SYNCED_MAX) {
      if (watches.length === 0) this.refuse(watchId, WatchEnd.overloaded, null);
      for (const watch of watches) this.endWatch(watch, WatchEnd.overloaded, null);
      return;
    }
    this.synced += 1 + watches.length;
    this.syncs.push({ syncId, watches, targets: null, mapVersion: 0 });
    if (!this.isLevelling) this.levelSyncs();
  }

  /** One round for all that have come. */
  private levelSyncs(): void {
    const open = this.syncs.filter(({ targets }) => targets === null);
    if (open.length === 0) return;
    const filters = new Set(open.flatMap(({ watches }) => watches.map((each) => each.filter)));
    this.isLevelling = true;
    this.home.level(this, [...filters], () => {
      this.isLevelling = false;
      for (const sync of open) {
        sync.targets = sync.watches.map(({ filter }) => filter.end);
        sync.mapVersion = this.home.mapVersion;
      }
      this.home.wake(this);
      if (!this.isClosed) this.levelSyncs();
    });
  }

  ready(): void {
    if (!this.isClosed) this.home.wake(this);
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    for (const watch of this.watches.values()) this.home.ended(watch);
    this.watches.clear();
    this.byFilter.clear();
    this.dirty.clear();
    this.ends = [];
    this.syncs.length = 0;
    this.synced = 0;
    this.home.closed(this);
  }

  /** Of a watch of this stream. */
  news(watch: Watch): void {
    this.dirty.add(watch);
    this.home.wake(this);
  }

  get isEmpty(): boolean {
    return this.watches.size === 0;
  }

  get canTell(): boolean {
    return !this.sink.isFull();
  }

  mayRead(): boolean {
    return this.sink.mayRead();
  }

  endWatch(watch: Watch, end: number, partition: number | null): void {
    if (this.watches.get(watch.id) !== watch) return;
    this.watches.delete(watch.id);
    const same = this.byFilter.get(watch.filter);
    same?.delete(watch);
    if (same?.size === 0) this.byFilter.delete(watch.filter);
    // Others may have counted on being told along with it.
    for (const other of same ?? []) other.hasNews();
    this.dirty.delete(watch);
    const isElsewhere = end === WatchEnd.notHosted;
    const stand = { cursor: isElsewhere ? watch.standing : null, more: watch.isAhead };
    this.home.ended(watch);
    this.refuse(watch.id, end, partition, isElsewhere ? stand : {});
  }

  endAll(end: number): void {
    for (const watch of [...this.watches.values()]) this.endWatch(watch, end, null);
  }

  private refuse(
    watchId: number,
    end: number,
    partition: number | null,
    stand: Partial<Draft> = {},
  ): void {
    const message = draft({ type: WatchMessageType.ended, end, partition, ...stand });
    this.ends.push({ ...message, watchIds: [watchId] });
    this.home.wake(this);
  }

  /** Delivers what there is. True: there is more. */
  pump(budget: PumpBudget): boolean {
    if (this.isClosed) return false;
    const { ends } = this;
    this.ends = [];
    for (const end of ends) this.sink.deliver(end);
    for (const watch of this.dirty) {
      if (this.sink.isFull()) {
        this.home.full();
        return false;
      }
      if (budget.deliveries <= 0 || this.home.nowMs() >= budget.endMs) return true;
      budget.deliveries--;
      this.stepOf(watch);
      if (this.isClosed) return false;
    }
    if (this.dirty.size > 0) return true;
    this.endSyncs();
    return this.ends.length > 0;
  }

  private stepOf(watch: Watch): void {
    const place = watch.sharedPlace;
    const step = watch.step();
    switch (step.kind) {
      case "nothing":
        this.dirty.delete(watch);
        return;
      case "worked":
        return this.toTheBack(watch);
      case "lost":
        return this.endWatch(watch, WatchEnd.notHosted, step.partition);
      case "full":
        return this.endWatch(watch, WatchEnd.overloaded, null);
      case "told": {
        const isEvents = step.draft.type === WatchMessageType.events && !step.draft.reset;
        this.toTheBack(watch);
        const sharing = isEvents && place >= 0 ? this.sharing(watch, place) : [];
        for (const other of sharing) {
          other.follow(watch);
          // The rest comes with that one, too.
          if (!other.wantsMark) this.dirty.delete(other);
        }
        this.tell([watch, ...sharing], step.draft, step.appliedMs);
      }
    }
  }

  /** What has much to tell lets the others go first. */
  private toTheBack(watch: Watch): void {
    this.dirty.delete(watch);
    this.dirty.add(watch);
  }

  /** The others that stood at `place`, and want the same. */
  private sharing(watch: Watch, place: number): Watch[] {
    const same = this.byFilter.get(watch.filter);
    if (same === undefined || same.size < 2) return [];
    const { noValues, only } = watch.request;
    return [...same].filter((other) => {
      if (other === watch || other.sharedPlace !== place) return false;
      return other.request.noValues === noValues && other.request.only === only;
    });
  }

  private tell(watches: readonly Watch[], message: Draft, appliedMs: number): void {
    const nowMs = this.home.nowMs();
    if (appliedMs > 0) this.home.delayed(Math.max(0, nowMs - appliedMs));
    for (const watch of watches) this.home.told(watch, nowMs);
    this.sink.deliver({ ...message, watchIds: watches.map(({ id }) => id) });
  }

  private endSyncs(): void {
    for (let sync = this.syncs[0]; sync !== undefined; sync = this.syncs[0]) {
      if (this.sink.isFull()) return;
      const { syncId, watches, targets } = sync;
      if (targets === null) return;
      const living = watches.filter((watch) => this.watches.get(watch.id) === watch);
      const isLevel = living.every((watch) => {
        return watch.isLevel(targets[watches.indexOf(watch)] ?? 0);
      });
      if (!isLevel) return;
      const { mapVersion } = this.home;
      const isMapNew = mapVersion !== sync.mapVersion;
      if (isMapNew || this.home.isInDoubt(living.map(({ filter }) => filter))) {
        // Whoever compared the state meanwhile has not read keys that are on their way; and by
        // another map other partitions are to have come to it.
        sync.targets = null;
        if (!this.isLevelling) this.levelSyncs();
        return;
      }
      this.syncs.shift();
      this.synced -= 1 + watches.length;
      const message = draft({ type: WatchMessageType.synced, syncId, mapVersion });
      this.sink.deliver({ ...message, watchIds: living.map(({ id }) => id) });
    }
  }
}
