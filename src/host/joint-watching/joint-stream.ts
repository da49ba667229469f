/**
 * The watches of one caller: those of this node alone, which the hub has, and joint ones.
 *
 * Owns which are which. Invariants: 1. The caller sees one stream: ids are distinct over both, a
 * SYNCED is for both. 2. A watch that the hub cannot have any more goes on as a joint one. 3.
 * Nothing is delivered in the turn of a call.
 */
import { WATCHES_PER_STREAM_MAX, WATCH_SYNCED_MAX } from "../../base/limits.js";
import { WatchEnd, WatchMessageType } from "../../base/result-types.js";
import type { WatchHub } from "../watching/hub.js";
import type { WatchMessage, WatchRequest, WatchSink, WatchStream } from "../watching/messages.js";
import { draft } from "../watching/told.js";
import type { JointWatch, Stand } from "./joint-watch.js";

export interface JointStreamHome {
  readonly hub: WatchHub;
  /** Some of what is asked for is not here, and may be joined. */
  needsOthers(request: WatchRequest): boolean;
  /** Why such a watch does not begin now, as `WatchEnd`; none: it may. */
  refusal(request: WatchRequest): number;
  begin(stream: JointStream, id: number, request: WatchRequest, stand: Stand): JointWatch;
  /** In a later turn. */
  soon(callback: () => void): void;
}

interface Sync {
  readonly syncId: number;
  /** What it is about. */
  readonly watchIds: readonly number[];
  /** Those of them that the hub has have come to it. */
  isOwnDone: boolean;
  /** The barrier of each joint one. */
  readonly joint: Map<JointWatch, number>;
}

export class JointStream implements WatchStream {
  private readonly stream: ReturnType<WatchHub["open"]>;
  /** Those that the hub has: what is kept of their requests. */
  private readonly own = new Map<number, WatchRequest>();
  /** Of them, those that were not told that they stand: what was asked for. */
  private readonly beginning = new Map<number, WatchRequest>();
  private readonly joint = new Map<number, JointWatch>();
  /** Of the hub, that were ended from here and have yet to be told so: how many of each id. */
  private readonly ending = new Map<number, number>();
  private syncs: Sync[] = [];
  /** What they are about, and they themselves. */
  private synced = 0;
  private isClosed = false;

  constructor(
    readonly sink: WatchSink,
    private readonly home: JointStreamHome,
    private readonly mayBegin: () => boolean,
  ) {
    const own: WatchSink = {
      deliver: (message) => this.told(message),
      isFull: () => sink.isFull(),
      mayRead: () => sink.mayRead(),
    };
    this.stream = home.hub.open(own, mayBegin);
  }

  create(watchId: number, request: WatchRequest): void {
    if (this.isClosed) return;
    const isId = Number.isInteger(watchId) && watchId >= 1;
    if (!isId || this.own.has(watchId) || this.joint.has(watchId)) {
      return this.refuse(watchId, WatchEnd.invalidInput);
    }
    if (this.own.size + this.joint.size >= WATCHES_PER_STREAM_MAX) {
      return this.refuse(watchId, WatchEnd.overloaded);
    }
    if (!this.home.needsOthers(request)) {
      this.own.set(watchId, this.stream.keptOf(request));
      this.beginning.set(watchId, request);
      return this.stream.create(watchId, request);
    }
    const end = this.mayBegin() ? this.home.refusal(request) : WatchEnd.overloaded;
    if (end !== WatchEnd.none) return this.refuse(watchId, end);
    this.joint.set(watchId, this.home.begin(this, watchId, request, "anew"));
  }

  private refuse(watchId: number, end: number): void {
    const message = draft({ type: WatchMessageType.ended, end });
    this.home.soon(() => {
      if (!this.isClosed) this.sink.deliver({ ...message, watchIds: [watchId] });
    });
  }

  cancel(watchId: number): void {
    this.end(watchId, WatchEnd.cancelled);
  }

  private end(watchId: number, end: number): void {
    const watch = this.joint.get(watchId);
    if (watch !== undefined) {
      this.joint.delete(watchId);
      return this.home.soon(() => watch.end(end, null));
    }
    if (!this.stream.end(watchId, end)) return;
    this.own.delete(watchId);
    this.beginning.delete(watchId);
    this.ending.set(watchId, (this.ending.get(watchId) ?? 0) + 1);
  }

  sync(syncId: number, watchId: number): void {
    if (this.isClosed) return;
    const all = [...this.own.keys(), ...this.joint.keys()];
    const watchIds = watchId === 0 ? all : all.filter((each) => each === watchId);
    if (this.synced + 1 + watchIds.length > WATCH_SYNCED_MAX) {
      if (watchIds.length === 0) this.refuse(watchId, WatchEnd.overloaded);
      for (const each of watchIds) this.end(each, WatchEnd.overloaded);
      return;
    }
    const joint = new Map<JointWatch, number>();
    for (const each of watchIds) {
      const watch = this.joint.get(each);
      if (watch !== undefined) joint.set(watch, watch.barriers.ask());
    }
    this.synced += 1 + watchIds.length;
    const sync: Sync = { syncId, watchIds, isOwnDone: false, joint };
    this.syncs.push(sync);
    if (joint.size < watchIds.length || joint.size === 0) this.stream.sync(syncId, watchId);
    else {
      sync.isOwnDone = true;
      this.home.soon(() => this.endSyncs());
    }
  }

  ready(): void {
    if (this.isClosed) return;
    this.stream.ready();
    if (this.joint.size === 0 && this.syncs.length === 0) return;
    this.home.soon(() => {
      for (const watch of [...this.joint.values()]) watch.pump();
      this.endSyncs();
    });
  }

  close(): void {
    this.isClosed = true;
    this.stream.close();
    for (const watch of [...this.joint.values()]) watch.close();
    this.own.clear();
    this.beginning.clear();
    this.syncs = [];
  }

  /** The joint watch is over. */
  left(watch: JointWatch): void {
    if (this.joint.get(watch.id) === watch) this.joint.delete(watch.id);
    for (const { joint } of this.syncs) joint.delete(watch);
    if (!this.isClosed) this.home.soon(() => this.endSyncs());
  }

  /** The hub tells something. */
  private told(message: WatchMessage): void {
    const { created, ended, synced } = WatchMessageType;
    if (message.type === synced) return this.ownSynced();
    if (message.type === created) {
      for (const id of message.watchIds) this.beginning.delete(id);
    }
    if (message.type !== ended) return this.sink.deliver(message);
    const [id = 0] = message.watchIds;
    const ending = this.ending.get(id) ?? 0;
    if (ending > 1) this.ending.set(id, ending - 1);
    else this.ending.delete(id);
    const own = ending > 0 ? undefined : this.own.get(id);
    const asked = own === undefined ? undefined : this.beginning.get(id);
    if (own !== undefined) {
      this.own.delete(id);
      this.beginning.delete(id);
    }
    const isElsewhere = message.end === WatchEnd.notHosted && own !== undefined;
    if (isElsewhere && this.home.needsOthers(own)) {
      const rest = asked ?? { ...own, cursor: message.cursor };
      const stand = asked !== undefined ? "anew" : message.more ? "ahead" : "whole";
      return this.goOn(id, rest, stand);
    }
    this.sink.deliver(isElsewhere ? { ...message, cursor: null, more: false } : message);
  }

  private goOn(id: number, request: WatchRequest, stand: Stand): void {
    const watch = this.home.begin(this, id, request, stand);
    this.joint.set(id, watch);
    for (const { watchIds, isOwnDone, joint } of this.syncs) {
      if (!isOwnDone && watchIds.includes(id)) joint.set(watch, watch.barriers.ask());
    }
  }

  /** Syncs of the hub end in their order. */
  private ownSynced(): void {
    const sync = this.syncs.find(({ isOwnDone }) => !isOwnDone);
    if (sync !== undefined) sync.isOwnDone = true;
    this.endSyncs();
  }

  endSyncs(): void {
    for (let sync = this.syncs[0]; sync !== undefined; sync = this.syncs[0]) {
      if (this.isClosed || !sync.isOwnDone || this.sink.isFull()) return;
      for (const [watch, barrier] of sync.joint) if (!watch.barriers.hasPassed(barrier)) return;
      this.syncs.shift();
      this.synced -= 1 + sync.watchIds.length;
      const watchIds = sync.watchIds.filter((id) => this.own.has(id) || this.joint.has(id));
      const message = draft({ type: WatchMessageType.synced, syncId: sync.syncId });
      this.sink.deliver({ ...message, watchIds });
    }
  }
}
