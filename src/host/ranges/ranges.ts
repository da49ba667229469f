/**
 * Everything on a node that moves key ranges, joined: what the leaders of partitions do, what the
 * leader of meta plans, how sizes are told, and the commands that go between nodes.
 *
 * Invariant: nothing is decided here.
 */
import { META_PARTITION, type MapVersion, type PartitionId } from "../../base/ids.js";
import { RANGE_COPY_BYTES_PER_SECOND } from "../../base/limits.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { LoggerPort } from "../../ports.js";
import type { Group } from "../group/group.js";
import type { Replica } from "../group/replica.js";
import type { RangeSettings } from "../settings.js";
import type { ProposeOnMeta } from "../cluster/meta-proposer.js";
import { CopyPace } from "./copy-pace.js";
import { RangePlanner } from "./range-planner.js";
import { RangeProposer, isRangeProposalFrame } from "./range-proposer.js";
import { RangeSizes, type SizeDone, type SizedRange, isRangeSizeFrame } from "./range-sizes.js";
import { type RangeFacts, RangeTally } from "../requests/range-tally.js";
import { RangeWork } from "./range-work.js";

export interface RangesDeps {
  readonly nodeId: number;
  readonly settings: RangeSettings;
  readonly logger: LoggerPort;
  nowMs(): number;
  /** Calls back after the current turn. */
  soon(callback: () => void): void;
  metaReads(): MetaReads | null;
  hosted(partition: PartitionId): { readonly group: Group; readonly replica: Replica } | null;
  /** The other node that said lately that it leads the partition; 0 = none did. */
  reportedLeader(partition: PartitionId): number;
  activeGroups(): Iterable<{ readonly partition: PartitionId }>;
  readonly proposeOnMeta: ProposeOnMeta;
  send(to: number, lane: "control" | "bulk", bytes: Uint8Array): boolean;
  wake(partition: PartitionId): void;
  /** A turn is wanted then. */
  wakeAt(atMs: number): void;
  /** Of the partition map that is followed here; null before there is one. */
  mapVersion(): MapVersion | null;
  /** Something waits for `tick` that did not before. */
  tickSoon(): void;
}

export class Ranges {
  readonly sizes: RangeSizes;
  readonly planner: RangePlanner;
  private readonly proposer: RangeProposer;
  private readonly work: RangeWork;
  private readonly tally = new RangeTally();

  constructor(private readonly deps: RangesDeps) {
    const { nodeId, logger, proposeOnMeta } = deps;
    const nowMs = (): number => deps.nowMs();
    const soon = (callback: () => void): void => deps.soon(callback);
    const tickSoon = (): void => deps.tickSoon();
    const leader = (partition: PartitionId): number => this.leader(partition);
    const find = (partition: PartitionId): Group | null => deps.hosted(partition)?.group ?? null;
    const metaReads = (): MetaReads | null => deps.metaReads();
    const both = { nodeId, nowMs, soon, tickSoon, leader };
    this.proposer = new RangeProposer({
      ...both,
      isMember: (node) => (metaReads()?.member(node) ?? null) !== null,
      propose: (partition, command, sizeBytes, deadlineMs, done) => {
        const group = find(partition);
        if (group === null) soon(() => done({ status: "refused", reason: "not-leader" }));
        else group.proposeFinal(command, sizeBytes, deadlineMs, done);
      },
      send: (to, lane, bytes) => deps.send(to, lane, bytes),
    });
    this.sizes = new RangeSizes({
      ...both,
      find,
      wakeAt: (atMs) => deps.wakeAt(atMs),
      send: (to, bytes) => deps.send(to, "control", bytes),
    });
    this.work = new RangeWork({
      nowMs,
      soon,
      wakeAt: (atMs) => deps.wakeAt(atMs),
      mapVersion: () => deps.mapVersion(),
      logger,
      pace: new CopyPace(RANGE_COPY_BYTES_PER_SECOND),
      tally: this.tally,
      proposeOnMeta,
      proposeRange: this.proposer.propose,
      metaReads,
      find,
      activeGroups: () => deps.activeGroups(),
      campaign: (partition) => {
        deps.hosted(partition)?.replica.core.campaign();
        deps.wake(partition);
      },
    });
    this.planner = new RangePlanner({
      settings: deps.settings,
      nowMs,
      tally: this.tally,
      metaReads,
      mapVersion: () => deps.mapVersion(),
      meta: () => find(META_PARTITION),
      leader,
      sizeOf: (range, done) => this.sizes.ask(range, done),
      proposeOnMeta,
    });
  }

  private leader(partition: PartitionId): number {
    const known = this.deps.hosted(partition)?.group.leaderNode() ?? 0;
    return known !== 0 ? known : this.deps.reportedLeader(partition);
  }

  /** Once per tick, inside a turn; not while the node stops. */
  tick(nowMs: number): void {
    this.proposer.tick(nowMs);
    this.work.tick(nowMs);
    this.planner.tick(nowMs);
    this.sizes.tick(nowMs);
  }

  /** In each turn, and at once where nothing is to be done. */
  turn(nowMs: number): void {
    this.work.turn(nowMs);
    this.planner.look(nowMs);
    this.sizes.turn(nowMs);
    if (nowMs < this.planner.wakeAtMs) return;
    this.planner.tick(nowMs);
    this.deps.tickSoon();
  }

  /** When a turn is wanted although nothing happens. */
  get wakeAtMs(): number {
    return Math.min(this.work.wakeAtMs, this.sizes.wakeAtMs, this.planner.wakeAtMs);
  }

  /** Something waits for `tick`. */
  get hasWork(): boolean {
    return [this.proposer, this.work, this.planner, this.sizes].some((part) => part.hasWork);
  }

  /**
   * Takes a frame of the lanes "control" and "bulk" if it is for a part of this; false: it is not.
   */
  frame(from: number, bytes: Uint8Array): boolean {
    if (isRangeProposalFrame(bytes)) this.proposer.frame(from, bytes);
    else if (isRangeSizeFrame(bytes)) this.sizes.frame(from, bytes);
    else return false;
    return true;
  }

  linkDown(node: number): void {
    this.proposer.linkDown(node);
    this.sizes.linkDown(node);
  }

  /** `replica` left this node. */
  removed({ partition }: Replica): void {
    this.work.removed(partition);
  }

  /** `done` hears how many live keys a range holds, wherever it is led. */
  size(range: SizedRange, done: SizeDone): void {
    this.sizes.ask(range, done);
  }

  /** Steps of the moves that are made from here, by key space. */
  steps(): ReadonlyMap<string, string> {
    return this.work.steps();
  }

  /** Frames that could not be read. */
  get badFrames(): number {
    return this.proposer.badFrames + this.sizes.badFrames;
  }

  facts(): RangeFacts {
    return this.tally.facts({ keys: this.keys(), purges: this.work.purges });
  }

  private keys(): ReadonlyMap<number, number> {
    const keys = new Map<number, number>();
    for (const { keySpace, descriptor } of this.deps.metaReads()?.allRanges() ?? []) {
      const counted = this.sizes.latest({ keySpace, ...descriptor });
      const { partitionId: id } = descriptor;
      if (counted !== null) keys.set(id, (keys.get(id) ?? 0) + counted);
    }
    return keys;
  }

  stop(): void {
    this.work.stop();
  }
}
