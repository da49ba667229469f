/**
 * The joint watches of a node, and the streams through which callers have them along with those of
 * this node alone (W14).
 *
 * Owns both, and the time of joint watches. Invariants: 1. A watch all of whose partitions are here
 * is one of the hub, and costs nothing here. 2. One whose node loses a partition goes on as a joint
 * one, behind all that it told. 3. Of what other nodes told at most WATCH_PARTS_MAX_BYTES are held:
 * beyond, nothing is asked for.
 */
import { WATCH_PARTS_MAX_BYTES } from "../../base/limits.js";
import { WatchEnd } from "../../base/result-types.js";
import type { WatchHub } from "../watching/hub.js";
import {
  type WatchRequest,
  type WatchSink,
  type WatchStream,
  isAcceptable,
} from "../watching/messages.js";
import { JointStream, type JointStreamHome } from "./joint-stream.js";
import { type JointHome, JointWatch, type Stand } from "./joint-watch.js";
import type { JointPorts } from "./parts.js";

/** How often it is looked what is due (ms). */
const TICK_MS = 50;

export class Joints implements JointHome, JointStreamHome {
  private readonly watches = new Map<JointWatch, JointStream>();
  private heldBytes = 0;
  private lastPart = 0;
  private mapVersion = -1;
  private isTicking = false;
  private isStopped = false;

  constructor(
    readonly hub: WatchHub,
    readonly ports: JointPorts,
    readonly progressMs: number,
  ) {}

  get count(): number {
    return this.watches.size;
  }

  /** As `open` of the hub; watches may be of partitions that other nodes have. */
  open(sink: WatchSink, mayBegin: () => boolean = () => true): WatchStream {
    return new JointStream(sink, this, mayBegin);
  }

  /** The node begins to stop. */
  stop(): void {
    this.isStopped = true;
    for (const watch of [...this.watches.keys()]) watch.end(WatchEnd.shuttingDown, null);
  }

  needsOthers(request: WatchRequest): boolean {
    const { ports } = this;
    if (this.isStopped || ports.isClosing() || !ports.isOn() || !isAcceptable(request))
      return false;
    const partitions = ports.partitionsOf(request.kind, request.name);
    return partitions !== null && [...partitions].some((each) => !ports.isHere(each));
  }

  refusal(request: WatchRequest): number {
    return this.hub.refusal(request, this.count)?.end ?? WatchEnd.none;
  }

  /** It begins in a later turn. */
  begin(stream: JointStream, id: number, request: WatchRequest, stand: Stand): JointWatch {
    const watch = new JointWatch(id, request, stand, stream.sink, this);
    this.watches.set(watch, stream);
    this.hub.tally.watching(request.kind, 1);
    this.ports.timer.soon(() => watch.begin());
    this.tickLater();
    return watch;
  }

  ended(watch: JointWatch): void {
    const stream = this.watches.get(watch);
    if (!this.watches.delete(watch)) return;
    this.hub.tally.watching(watch.request.kind, -1);
    stream?.left(watch);
  }

  synced(watch: JointWatch): void {
    this.watches.get(watch)?.endSyncs();
  }

  soon(callback: () => void): void {
    this.ports.timer.soon(callback);
  }

  nextPart(): number {
    return ++this.lastPart;
  }

  held(changeBytes: number): void {
    this.heldBytes += changeBytes;
  }

  mayPull(): boolean {
    return this.heldBytes < WATCH_PARTS_MAX_BYTES;
  }

  private tickLater(): void {
    if (this.isTicking) return;
    this.isTicking = true;
    this.ports.timer.after(TICK_MS, () => {
      this.isTicking = false;
      if (this.watches.size === 0 || this.ports.isClosing()) return;
      const version = this.ports.mapVersion();
      const isMapNew = version !== this.mapVersion;
      this.mapVersion = version;
      for (const watch of [...this.watches.keys()]) watch.tick(isMapNew);
      this.tickLater();
    });
  }
}
