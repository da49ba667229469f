/**
 * A hub over real machines of some partitions, without logs and other nodes: entries are applied
 * when a test says so, rounds end in the turn after they were asked for.
 */
import { assert } from "../../../src/base/assert.js";
import { META_PARTITION, partitionId } from "../../../src/base/ids.js";
import { WatchKind } from "../../../src/base/result-types.js";
import { WatchHub } from "../../../src/host/watching/hub.js";
import type {
  KeyOwner,
  WatchGroup,
  WatchPorts,
  WatchSettings,
} from "../../../src/host/watching/watching.js";
import type { Command } from "../../../src/machine/commands/command.js";
import { Bench } from "../machine/bench.js";
import { ManualTimer } from "./world.js";

/** Leads, and its lease clock goes with the time of the timer. */
class FalseGroup implements WatchGroup {
  readonly partition;
  /** Rounds end so; "held": they wait for `release`. */
  rounds: "confirmed" | "retry" | "held" = "confirmed";
  leader = 1;
  /** It leads, and serves. */
  isReady = true;
  private readonly held: (() => void)[] = [];

  constructor(
    private readonly bench: WatchBench,
    id: number,
    readonly rows: Bench,
  ) {
    this.partition = partitionId(id);
  }

  get machine() {
    return this.rows.machine;
  }

  read: WatchGroup["read"] = (_deadlineMs, done) => {
    const { leaseMs } = this.machine;
    if (this.rounds === "held") {
      this.held.push(() => done({ status: "confirmed", leaseMs }));
      return;
    }
    const isConfirmed = this.rounds === "confirmed";
    this.bench.timer.soon(() =>
      done(isConfirmed ? { status: "confirmed", leaseMs } : { status: "retry" }),
    );
  };

  release(): void {
    for (const done of this.held.splice(0)) done();
  }

  advanceClock: WatchGroup["advanceClock"] = (leaseMs, _deadlineMs, done) => {
    this.bench.timer.soon(() => {
      this.rows.apply(leaseMs, { kind: "advance-clock" });
      const { appliedIndex: index, leaseMs: at } = this.machine;
      const outcome = { kind: "done" } as const;
      done({ status: "applied", outcome, leaseMs: at, term: 1, index });
    });
  };

  leaseNowMs = (): number => this.bench.timer.nowMs;
  isServing = (): boolean => this.leader === 1 && this.isReady;
  isLeader = (): boolean => this.leader === 1;
  leaderNode = (): number => this.leader;
  /** When its leader was heard last; null: now. */
  heardMs: number | null = null;
  levelMs = (nowMs: number): number => this.heardMs ?? nowMs;
}

export class WatchBench {
  readonly groups = new Map<number, FalseGroup>();
  /** Who has the map: only its rounds count. */
  readonly meta: FalseGroup;
  readonly hub: WatchHub;
  /** Where what is not by prefix lies, by name; elsewhere in partition 1. */
  readonly places = new Map<string, number>();
  version = 1;
  /** Of key spaces that are not divided, where that is not partition 1. */
  readonly homes = new Map<string, number>();
  /** Of key spaces that are divided. */
  readonly ranges = new Map<string, readonly KeyOwner[]>();
  /** Moves whose cuts the map has. */
  readonly cuts = new Set<number>();
  clusterId = "cluster";
  /** What was wished for of leaders elsewhere, and whether they take it. */
  readonly wishes: { readonly partition: number; readonly leaseMs: number; atMs: number }[] = [];
  takesWishes = true;
  private readonly left: ((group: WatchGroup) => void)[] = [];
  private readonly joined: ((group: WatchGroup) => void)[] = [];
  private readonly all: ReadonlySet<number>;

  /** `rowsOf`: what has the rows of a partition. `timer`: of all nodes of a test. */
  constructor(
    partitions = 2,
    settings: Partial<WatchSettings> = {},
    rowsOf: (id: number) => Bench = (id) => new Bench(undefined, id),
    readonly timer = new ManualTimer(),
  ) {
    for (let id = 1; id <= partitions; id++) {
      this.groups.set(id, new FalseGroup(this, id, rowsOf(id)));
    }
    this.all = new Set(this.groups.keys());
    this.meta = new FalseGroup(this, META_PARTITION, new Bench());
    const clock = { monotonicMs: () => timer.nowMs, wallMs: () => timer.nowMs };
    const ports: WatchPorts = {
      ...{ clock, timer },
      group: (id) => (id === META_PARTITION ? this.meta : (this.groups.get(id) ?? null)),
      groups: () => [...this.groups.values()],
      onGroup: (hook) => void this.joined.push(hook),
      onGroupLeft: (hook) => void this.left.push(hook),
      partitionsOf: (kind, name) => {
        if (kind === WatchKind.prefix || kind === WatchKind.lockPrefix) return this.all;
        const spans = kind === WatchKind.bucket ? this.ranges.get(name) : undefined;
        if (spans !== undefined) return new Set(spans.map(({ partitionId: id }) => id));
        return new Set([this.places.get(name) ?? this.homes.get(name) ?? 1]);
      },
      ranges: () => new Map(this.ranges),
      homeOf: (keySpace) => this.homes.get(keySpace) ?? 1,
      hasMoved: () => this.ranges.size > 0,
      knowsCut: (_keySpace, moveId) => this.cuts.has(moveId),
      mapVersion: () => this.version,
      clusterId: () => this.clusterId,
      isClosing: () => false,
      confirmThere: (_partition, _deadlineMs, done) => timer.soon(() => done(null)),
      wishClock: (partition, leaseMs, done) => {
        this.wishes.push({ partition, leaseMs, atMs: timer.nowMs });
        timer.soon(() => done(this.takesWishes));
      },
    };
    const given = { watchersMax: 100, historyBytes: 1 << 20, progressMs: 10_000 };
    this.hub = new WatchHub(ports, { ...given, ...settings });
  }

  /** As callers open their streams. */
  get watches() {
    const { hub } = this;
    const open = hub.open.bind(hub);
    return {
      watches: { tally: hub.tally, open: (sink: Parameters<typeof open>[0]) => open(sink) },
    };
  }

  group(id: number): FalseGroup {
    const group = this.groups.get(id);
    assert(group !== undefined, "the partition is hosted");
    return group;
  }

  /** Applies an entry to the partition, and lets what follows happen. */
  apply(id: number, ...commands: Command[]): void {
    this.group(id).rows.apply(this.timer.nowMs, ...commands);
    this.settle();
  }

  settle(): void {
    while (this.timer.step());
  }

  pass(ms: number): void {
    for (let left = ms; left > 0; left--) {
      this.timer.nowMs++;
      this.settle();
    }
  }

  /** The partition leaves the node. */
  leave(id: number): void {
    const group = this.group(id);
    this.groups.delete(id);
    for (const hook of this.left) hook(group);
    this.settle();
  }

  /** It comes again. */
  join(id: number, group: FalseGroup): void {
    this.groups.set(id, group);
    for (const hook of this.joined) hook(group);
    this.settle();
  }

  /** `state` takes the place of the rows of the partition, as an image does. */
  install(id: number, state: Bench): void {
    const source = state.machine.openSnapshot(1 << 20);
    const { machine } = this.group(id).rows;
    const sink = machine.beginRestore();
    for (let isLast = false; !isLast;) {
      const chunk = source.next(1 << 20);
      assert(chunk !== "overrun", "nothing changes meanwhile");
      assert(sink.take(chunk.bytes).ok, "a chunk of an image is whole");
      isLast = chunk.last;
    }
    source.close();
    machine.install(sink);
    this.settle();
  }
}
