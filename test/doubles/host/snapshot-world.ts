/**
 * A false world for snapshot transfers: machines on a store in memory, cores reduced to what
 * decides about a snapshot, and a lane between them that a script may damage.
 *
 * Nothing happens by itself; `step` delivers what is on its way, flushes, steps inboxes and ticks.
 */
import { assert } from "../../../src/base/assert.js";
import { FOUNDING_INCARNATION, NO_PLACEMENT, partitionId } from "../../../src/base/ids.js";
import { PeerLives } from "../../../src/host/replication/peer-lives.js";
import type { RaftItem } from "../../../src/host/replication/raft-frames.js";
import { encodeMembership } from "../../../src/host/replication/config-entries.js";
import {
  Snapshots,
  type SnapshotGroup,
  type SnapshotDeps,
} from "../../../src/host/snapshots/snapshots.js";
import {
  DEFAULT_SNAPSHOT_SETTINGS,
  type SnapshotSettings,
} from "../../../src/host/snapshots/snapshot-limits.js";
import type { SnapshotPurpose } from "../../../src/host/snapshots/snapshot-pace.js";
import { Machine } from "../../../src/machine/machine.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import type { HardState, LogPosition, StorePort } from "../../../src/ports.js";
import type { Membership, Role } from "../../../src/raft/state/types.js";
import { FakeStore } from "../machine/fake-store.js";

export const MEMBERS: Membership = {
  voters: [1, 2, 3],
  votersOutgoing: [],
  learners: [4],
  learnersNext: [],
  autoLeave: false,
};

export interface FakeLog {
  floor: LogPosition;
  lastIndex: number;
  hardState: HardState;
}

/** What of a core decides about snapshots (P-038), and nothing else. */
export class FakeCore {
  term = 5;
  role: Role = "follower";
  commitIndex = 0;
  readonly reports: string[] = [];

  reportSnapshot(id: number, ok: boolean): void {
    this.reports.push(`${id} ${ok ? "ok" : "failed"}`);
  }
}

export class FakeGroup implements SnapshotGroup {
  readonly partition;
  readonly core = new FakeCore();
  readonly members = { membership: MEMBERS };
  floorIndex = 0;
  inbox: RaftItem[] = [];
  replacedAt: number[] = [];
  /** Loses this many messages before it takes one. */
  losesMessages = 0;
  lives = new PeerLives(FOUNDING_INCARNATION);

  constructor(
    readonly machine: Machine,
    private readonly side: Side,
  ) {
    this.partition = machine.group;
    this.core.commitIndex = machine.appliedIndex;
  }

  receive(item: RaftItem): void {
    if (this.losesMessages > 0) this.losesMessages--;
    else this.inbox.push(item);
  }

  replaced(index: number): void {
    this.replacedAt.push(index);
  }

  turn(): void {
    const { inbox, core } = this;
    this.inbox = [];
    for (const { message } of inbox) {
      const meta = message.snapshot;
      assert(message.kind === "snapshot" && meta !== null, "only snapshots are offered");
      if (message.term < core.term || meta.index <= core.commitIndex) continue;
      core.term = message.term;
      core.commitIndex = meta.index;
      const hardState = { term: core.term, vote: 0, commit: meta.index };
      this.side.snapshots.install(this, meta, hardState, () => this.side.installs++);
    }
  }
}

export type LaneScript = (bytes: Uint8Array, from: number, to: number) => readonly Uint8Array[];

const passAll: LaneScript = (bytes) => [bytes];

export class Lane {
  nowMs = 1000;
  script: LaneScript = passAll;
  /** Frames that a lane holds before it drops. */
  roomFrames = 64;
  frames = 0;
  private readonly sides = new Map<number, Side>();
  private queue: { from: number; to: number; bytes: Uint8Array }[] = [];

  join(side: Side): void {
    this.sides.set(side.nodeId, side);
  }

  send(from: number, to: number, bytes: Uint8Array): boolean {
    if (this.queue.length >= this.roomFrames) return false;
    for (const part of this.script(bytes, from, to)) this.queue.push({ from, to, bytes: part });
    this.frames++;
    return true;
  }

  drop(): void {
    this.queue = [];
  }

  /** One round: frames of now, flushes, turns, and a tick. `afterEach` runs between all of them. */
  step(afterEach: () => void = () => undefined, beatMs = 20): void {
    const { queue } = this;
    this.queue = [];
    for (const { from, to, bytes } of queue) {
      this.sides.get(to)?.snapshots.frame(from, bytes);
      afterEach();
    }
    this.nowMs += beatMs;
    for (const side of this.sides.values()) {
      side.work(afterEach);
      side.snapshots.tick(this.nowMs);
      afterEach();
    }
  }

  run(until: () => boolean, stepsMax = 5000): boolean {
    for (let steps = 0; steps < stepsMax && !until(); steps++) this.step();
    return until();
  }
}

export class Side {
  readonly memtable: Memtable;
  readonly groups = new Map<number, FakeGroup>();
  readonly snapshots: Snapshots;
  readonly lines: string[] = [];
  installs = 0;
  fillRows = 2000;
  /** Of what it sends. */
  purpose: SnapshotPurpose = "repair";
  private flushes: (() => void)[] = [];
  private logWork: (() => void)[] = [];
  readonly log: FakeLog;

  constructor(
    readonly lane: Lane,
    readonly nodeId: number,
    readonly store: StorePort = new FakeStore(),
    log: FakeLog | null = null,
    settings: Partial<SnapshotSettings> = {},
    groups: readonly number[] = [1],
  ) {
    this.memtable = new Memtable({ store, cacheBytes: 1 << 16 });
    for (const id of groups) {
      const machine = new Machine(this.memtable, partitionId(id));
      this.groups.set(id, new FakeGroup(machine, this));
    }
    const none = { floor: { term: 0, index: 0 }, hardState: { term: 0, vote: 0, commit: 0 } };
    this.log = log ?? { ...none, lastIndex: this.group().machine.appliedIndex };
    this.snapshots = new Snapshots(this.world({ ...DEFAULT_SNAPSHOT_SETTINGS, ...settings }));
    lane.join(this);
    for (const group of this.groups.values()) this.snapshots.added(group);
  }

  group(id = 1): FakeGroup {
    const group = this.groups.get(id);
    assert(group !== undefined, "the group is here");
    return group;
  }

  get machine(): Machine {
    return this.group().machine;
  }

  /** Flushes what is asked for, resets the log, steps the inboxes. */
  work(afterEach: () => void = () => undefined): void {
    for (const reset of this.logWork.splice(0)) {
      reset();
      afterEach();
    }
    if (this.flushes.length > 0 || this.memtable.rows > this.fillRows / 2) this.flush(afterEach);
    for (const group of this.groups.values()) group.turn();
    afterEach();
  }

  flush(afterEach: () => void = () => undefined): void {
    const waiting = this.flushes.splice(0);
    const immutable = this.memtable.freeze();
    this.store.write(immutable.changes, () => undefined);
    afterEach();
    this.memtable.dropImmutable();
    for (const done of waiting) {
      done();
      afterEach();
    }
  }

  readonly strays: string[] = [];

  private world(settings: SnapshotSettings): SnapshotDeps {
    return {
      settings,
      logger: { log: (level, event) => void this.lines.push(`${level} ${event}`) },
      log: {
        resetGroup: (_group, floor, hardState, done) => {
          this.logWork.push(() => {
            Object.assign(this.log, { floor, hardState, lastIndex: floor.index });
            done();
          });
        },
      },
      nodeId: this.nodeId,
      sessionSeed: this.nodeId * 1000 + this.lane.frames,
      nowMs: () => this.lane.nowMs,
      sendBulk: (to, bytes) => this.lane.send(this.nodeId, to, bytes),
      find: (partition) => this.groups.get(partition) ?? null,
      purposeOf: () => this.purpose,
      mayFill: () => this.memtable.rows < this.fillRows,
      flushSoon: (done) => void this.flushes.push(done),
      mayHold: () => true,
      wake: () => undefined,
      stray: (reason) => void this.strays.push(reason),
    };
  }

  /** This side leads from now on, in `term`. */
  lead(term: number): void {
    for (const { core } of this.groups.values()) {
      core.role = "leader";
      core.term = term;
    }
  }

  /** Makes the group's membership part of its state, as the entry that added node 4 did. */
  applyMembership(group = 1): void {
    const { machine, core } = this.group(group);
    const index = machine.appliedIndex + 1;
    machine.applyMembership({ index, term: 1 }, encodeMembership(MEMBERS), NO_PLACEMENT);
    core.commitIndex = index;
  }
}
