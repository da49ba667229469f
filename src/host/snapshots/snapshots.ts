/**
 * The snapshot transfers of one node, in both directions, and the deletion of states that nobody
 * needs any more.
 *
 * A leader's core orders snapshots (`send`); frames of the lane "bulk" and `tick` drive the
 * transfers; the core of the other side orders the install.
 *
 * Invariants: 1. At most `sendersMax` and `receiversMax` transfers run; what waits holds no memory
 * (P-035). 2. Every order of a core ends in one report, while that leadership lasts (P-037). 3. One
 * transfer per group and node; a group takes one snapshot at a time, of the newest term and index
 * (P-040). 4. A frame never makes a group (P-097). 5. Failures back off.
 */
import { type PartitionId, partitionId } from "../../base/ids.js";
import type { HardState } from "../../ports.js";
import type { SnapshotMeta } from "../../raft/state/types.js";
import { SnapshotArrivals } from "./snapshot-arrivals.js";
import { type SnapshotFrame, decodeSnapshotFrame, encodeSnapshotFrame } from "./snapshot-frames.js";
import { type PlannedBytes, SnapshotPace } from "./snapshot-pace.js";
import { SnapshotSender } from "./snapshot-sender.js";
import { type SnapshotBytes, SnapshotTally } from "./snapshot-tally.js";
import type { SnapshotGroup, SnapshotLink, SnapshotDeps } from "./snapshot-types.js";

export type { SnapshotGroup, SnapshotDeps } from "./snapshot-types.js";

/** One transfer, for people. */
export interface TransferFacts {
  readonly partition: PartitionId;
  readonly peer: number;
  readonly direction: "out" | "in";
  readonly index: number;
  readonly chunks: number;
  readonly heldBytes: number;
}

interface Order {
  readonly group: SnapshotGroup;
  readonly to: number;
  readonly term: number;
}

interface Failures {
  count: number;
  untilMs: number;
}

interface Install {
  readonly index: number;
  readonly atMs: number;
}

/** The bound of the log is doubled so often at most. */
const UNJOINED_MAX = 10;

function keyOf(partition: PartitionId, to: number | ""): string {
  return `${partition} ${to}`;
}

export class Snapshots {
  private readonly orders = new Map<string, Order>();
  private readonly outgoing = new Map<string, SnapshotSender>();
  private readonly arrivals: SnapshotArrivals;
  private readonly failures = new Map<string, Failures>();
  /** The snapshot that each node installed last from here. */
  private readonly installs = new Map<string, Install>();
  private largestBytes = 0;
  /** Snapshots in a row behind which the log was cut before they could be joined to it. */
  private unjoined = 0;
  private sweeping: SnapshotGroup[] = [];
  private readonly link: SnapshotLink;
  private readonly pace: SnapshotPace;
  private sessions: number;
  private readonly tally = new SnapshotTally();
  /** Frames that could not be read. */
  badFrames = 0;
  /** Snapshots that another node installed from here. */
  delivered = 0;
  /** Transfers from here that failed, and those that nobody wanted any more. */
  failed = 0;
  aborted = 0;

  constructor(private readonly deps: SnapshotDeps) {
    const { settings, logger } = deps;
    this.pace = new SnapshotPace(settings, deps.nowMs());
    // Numbers of an earlier life of this node must not come again.
    this.sessions = deps.sessionSeed * 2 ** 20;
    this.link = {
      settings,
      logger,
      send: (to, frame) => deps.sendBulk(to, encodeSnapshotFrame(frame)),
      nextSession: () => ++this.sessions,
      maySend: ({ partition }, to) => this.pace.allows(deps.purposeOf(partition, to), deps.nowMs()),
      charge: (group, to, bytes) => {
        this.pace.charge(deps.purposeOf(group.partition, to), bytes);
        this.tally.count("out", group.members.membership, to, bytes);
      },
    };
    const send = (to: number, frame: SnapshotFrame): void => void this.link.send(to, frame);
    this.arrivals = new SnapshotArrivals(deps, this.tally, send, (group) => this.added(group));
  }

  /** Snapshots installed here in this life. */
  get installed(): number {
    return this.arrivals.installed;
  }

  /** Transfers to here that failed, and those that nobody wanted any more. */
  get arrivalsFailed(): number {
    return this.arrivals.failed;
  }

  get arrivalsAborted(): number {
    return this.arrivals.aborted;
  }

  /** A group is hosted from now on: what an earlier life left of other states is deleted. */
  added(group: SnapshotGroup): void {
    if (!this.sweeping.includes(group)) this.sweeping.push(group);
  }

  /** A group left this node: transfers of it end, and what its next life must not find goes. */
  removed(group: SnapshotGroup): void {
    const { partition } = group;
    this.sweeping = this.sweeping.filter((each) => each !== group);
    for (const [key, order] of [...this.orders]) if (order.group === group) this.orders.delete(key);
    for (const [key, sender] of [...this.outgoing]) {
      if (sender.group !== group) continue;
      sender.close();
      this.outgoing.delete(key);
    }
    const isIts = (key: string): boolean => key.startsWith(keyOf(partition, ""));
    for (const key of [...this.failures.keys()]) if (isIts(key)) this.failures.delete(key);
    for (const key of [...this.installs.keys()]) if (isIts(key)) this.installs.delete(key);
    this.arrivals.removed(partition);
  }

  /** The core of `group`, which leads, wants node `to` to get a snapshot. Inside a turn. */
  send(group: SnapshotGroup, to: number): void {
    const { term } = group.core;
    const key = keyOf(group.partition, to);
    this.orders.set(key, { group, to, term });
    const last = this.installs.get(key);
    if (last === undefined) return;
    // Another snapshot so soon, because the log that the last one was to be joined to is gone?
    const nowMs = this.deps.nowMs();
    const isSoon = nowMs < last.atMs + this.deps.settings.retryMaxMs;
    const isUnjoined = isSoon && group.floorIndex > last.index;
    this.unjoined = isUnjoined ? Math.min(this.unjoined + 1, UNJOINED_MAX) : 0;
    if (isUnjoined) this.backOff(key, false, nowMs);
    this.installs.delete(key);
  }

  /**
   * What the log may keep for other nodes: `leastBytes`, more where snapshots are large, so that
   * what is written while one travels stays, and more where that was too little (P-194).
   */
  logKeepBytes(leastBytes: number): number {
    let largest = this.largestBytes;
    for (const { sentBytes } of this.outgoing.values()) largest = Math.max(largest, sentBytes);
    return Math.max(leastBytes, 2 * largest) * 2 ** this.unjoined;
  }

  /**
   * The core of `group` orders the install of the snapshot that was offered to it. `done` is
   * called, in no turn, when state and log are both replaced durably.
   */
  install(group: SnapshotGroup, meta: SnapshotMeta, hardState: HardState, done: () => void): void {
    this.arrivals.install(group, { meta, hardState, done });
  }

  /**
   * Entries of `partition` above this index are wanted by whoever is about to install a snapshot;
   * Infinity when nobody is. The log keeps them up to a bound of its own (P-037).
   */
  keepFrom(partition: PartitionId): number {
    let index = Infinity;
    for (const sender of this.outgoing.values()) {
      if (sender.group.partition === partition) index = Math.min(index, sender.index);
    }
    return index;
  }

  /** A frame of the lane "bulk" came. */
  frame(from: number, bytes: Uint8Array): void {
    const frame = decodeSnapshotFrame(bytes);
    const group = frame === null ? null : this.groupOf(frame.group);
    if (frame === null) {
      this.badFrames++;
      return;
    }
    const nowMs = this.deps.nowMs();
    if (frame.kind === "ack" || frame.kind === "result") {
      if (group === null) return;
      const key = keyOf(group.partition, from);
      this.outgoing.get(key)?.take(frame, nowMs);
      this.reap(key, nowMs);
      return;
    }
    if (group === null) {
      if (frame.kind === "begin") this.arrivals.tell(from, frame, "busy");
      return;
    }
    this.arrivals.frame(from, group, frame, nowMs);
  }

  /** With each tick of the node, and whenever memory has room again. */
  tick(nowMs: number): void {
    this.startOrders(nowMs);
    for (const [key, sender] of [...this.outgoing]) {
      sender.tick(nowMs);
      this.reap(key, nowMs);
    }
    this.arrivals.tick(nowMs);
    this.sweep();
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    const { orders, outgoing, arrivals, sweeping } = this;
    return orders.size + outgoing.size + arrivals.size + sweeping.length > 0;
  }

  linkUp(node: number): void {
    const nowMs = this.deps.nowMs();
    for (const sender of this.outgoing.values()) if (sender.to === node) sender.linkUp(nowMs);
  }

  /** Snapshots on their way from here and to here. */
  get transferCount(): number {
    return this.outgoing.size + this.arrivals.size;
  }

  /** Bytes that travelled in this life, by direction and receiver. */
  bytesMoved(): readonly SnapshotBytes[] {
    return this.tally.all();
  }

  /** What planned moves may take now. */
  plannedRates(): readonly PlannedBytes[] {
    return this.pace.plannedRates();
  }

  facts(): readonly TransferFacts[] {
    const facts: TransferFacts[] = [];
    for (const sender of this.outgoing.values()) {
      const { group, to: peer, index, acknowledged: chunks, heldBytes } = sender;
      facts.push({ partition: group.partition, peer, direction: "out", index, chunks, heldBytes });
    }
    for (const receiver of this.arrivals.receivers) {
      const { group, from: peer, begin, chunks, waitingChunkBytes: heldBytes } = receiver;
      const { index } = begin.meta;
      facts.push({ partition: group.partition, peer, direction: "in", index, chunks, heldBytes });
    }
    return facts;
  }

  private groupOf(group: number): SnapshotGroup | null {
    return this.deps.find(partitionId(group));
  }

  private startOrders(nowMs: number): void {
    for (const [key, order] of [...this.orders]) {
      const { group, to, term } = order;
      const { core } = group;
      if (core.role !== "leader" || core.term !== term) {
        this.orders.delete(key);
        continue;
      }
      // A transfer that is under way answers this order too.
      const isRunning = this.outgoing.has(key);
      if (!isRunning && this.outgoing.size >= this.deps.settings.sendersMax) continue;
      if (!isRunning && (this.failures.get(key)?.untilMs ?? 0) > nowMs) continue;
      this.orders.delete(key);
      if (!isRunning) this.outgoing.set(key, new SnapshotSender(this.link, group, to, nowMs));
    }
  }

  /** Takes a transfer that ended off the list and reports it. */
  private reap(key: string, nowMs: number): void {
    const sender = this.outgoing.get(key);
    if (sender === undefined || sender.end === null) return;
    this.outgoing.delete(key);
    const { group, to, end, endReason } = sender;
    const fields = { partition: group.partition, to, bytes: sender.sentBytes, why: endReason };
    if (end === "superseded") {
      this.aborted++;
      return;
    }
    if (end === "failed") this.failed++;
    this.deps.logger.log(
      "info",
      `Sending a snapshot ${end === "done" ? "ended" : "failed"}.`,
      fields,
    );
    this.largestBytes = Math.max(this.largestBytes, sender.sentBytes);
    if (end === "done") {
      this.failures.delete(key);
      if (endReason === "installed") this.noteInstalled(key, sender.installedIndex, nowMs);
    } else this.backOff(key, endReason === "busy", nowMs);
    group.core.reportSnapshot(to, end === "done");
    this.deps.wake(group.partition);
  }

  private noteInstalled(key: string, index: number, atMs: number): void {
    this.delivered++;
    this.installs.set(key, { index, atMs });
  }

  private backOff(key: string, isBusy: boolean, nowMs: number): void {
    const { retryMs, retryMaxMs } = this.deps.settings;
    const known = this.failures.get(key) ?? { count: 0, untilMs: 0 };
    const pauseMs = isBusy ? retryMs : Math.min(retryMaxMs, retryMs * 2 ** known.count);
    const count = isBusy ? known.count : Math.min(known.count + 1, 30);
    this.failures.set(key, { count, untilMs: nowMs + pauseMs });
  }

  /** A tick of the node came, `lateMs` after its time. */
  ticked(nowMs: number, lateMs: number): void {
    this.pace.ticked(nowMs, lateMs);
    this.tick(nowMs);
  }

  /** Deletes some rows of states that nobody needs. Most groups have none: many are looked at. */
  private sweep(): void {
    let leftRows = this.deps.settings.sweepRows;
    for (let looks = 0; looks < this.deps.settings.sweepGroups && leftRows > 0; looks++) {
      const group = this.sweeping[0];
      if (group === undefined || !this.deps.mayFill()) return;
      const rows = group.machine.sweep(leftRows);
      if (rows === 0) this.sweeping.shift();
      leftRows -= rows;
    }
  }
}
