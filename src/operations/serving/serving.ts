/**
 * What all operations of a node share.
 *
 * Owns the sequence blocks of every group. Invariants: 1. Every group has its blocks from the turn
 * on in which this node hosts it, to the end of the turn in which it leaves.
 */
import { present } from "../../base/assert.js";
import { type Hlc, NO_STAMP } from "../../base/hlc.js";
import { FIRST_LEVEL } from "../../base/ids.js";
import { type BlockKernels, SequenceBlocks } from "../../host/sequences/blocks.js";
import { LockQueues } from "../../host/waiting/lock-queues.js";
import { WaitTally } from "../../host/waiting/wait-tally.js";
import type { MeterPort } from "../../ports.js";
import type { BackupWorld } from "../api/backup-world.js";
import type { Refusal } from "../api/answers.js";
import type { GroupAccess, NodeAccess } from "../api/host-view.js";
import { Calls, type CallsPorts, NO_PARTITION } from "../forwarding/calls.js";
import { Contention } from "../admission/contention.js";
import type { ForwardingDeps } from "../forwarding/forwarder.js";
import { Leaders } from "../forwarding/leaders.js";
import { ReadTurn } from "../admission/read-turn.js";
import { Waits } from "../admission/waits.js";
import { tellsOfGrant } from "../api/lock-requests.js";
import { type DataRequest, Durability, isOf } from "../api/requests.js";
import type { OperationsSettings } from "../api/settings.js";
import type { TracerPort } from "../api/tracing.js";
import { SlicedReads } from "../admission/slices.js";
import { MoveWaits } from "./move-waits.js";
import { Origins } from "./origins.js";
import { Placement } from "./placement.js";

/** The part of the world that operations touch. */
export interface OperationsPorts extends CallsPorts {
  readonly meter: MeterPort;
  /** Absent where nothing is recorded of requests. */
  readonly tracer?: TracerPort;
  /** Absent where there are neither backups nor restores. */
  readonly backups?: BackupWorld;
}

/** Time for the next leader to hear who stands where (ms). */
const TELL_MS = 300;

export class Serving implements ForwardingDeps {
  readonly leaders: Leaders;
  readonly placement: Placement;
  readonly origins: Origins;
  readonly calls: Calls;
  /** Requests that wait for a newer map of the ranges. */
  readonly moveWaits: MoveWaits;
  /** Who is trying for which lock; a quarter of the admission at most for one. */
  readonly contention: Contention;
  /** Reads of many rows: whose turn it is, and what they hold. */
  readonly sliced: SlicedReads;
  /** Reads of single keys: what a turn takes of large values. */
  readonly readTurn: ReadTurn;
  /** Who waits for locks, of all groups and on the way to other nodes. */
  readonly waits: Waits;
  readonly waitTally = new WaitTally();
  private readonly blocksByGroup = new Map<number, SequenceBlocks>();
  private readonly queuesByGroup = new Map<number, LockQueues>();

  constructor(
    readonly node: NodeAccess,
    readonly settings: OperationsSettings,
    readonly ports: OperationsPorts,
    kernels: BlockKernels,
  ) {
    this.readTurn = new ReadTurn(ports.timer);
    this.sliced = new SlicedReads(ports.timer);
    this.leaders = new Leaders(node, settings, ports);
    const perPeerMax = Math.max(1, Math.floor(settings.inflightMax / 2));
    const leaderOf = (partition: number): number => this.leaders.of(partition);
    const knowsLocks = (): boolean => this.knowsWaiting();
    this.calls = new Calls(ports, perPeerMax, leaderOf, settings.leaderWaitMs, knowsLocks);
    this.waits = new Waits(settings.lockWaitersMax);
    this.origins = new Origins(settings, ports.clock, this.leaders, this.calls);
    this.placement = new Placement(node, this.origins);
    this.moveWaits = new MoveWaits(ports, this.placement, node);
    this.contention = new Contention(Math.max(1, Math.floor(settings.inflightMax / 4)));
    const blockSettings = {
      defaultBlockSize: settings.sequencerBlockSize,
      blockLeaseMs: settings.sequencerBlockLeaseMs,
      keysRetainedMax: settings.keysRetainedMax,
      keysRetainedMs: settings.keysRetainedMs,
    };
    const waiting = {
      perLockMax: settings.lockWaitersPerLockMax,
      tryMs: settings.requestTimeoutMs,
    };
    node.onGroup((group) => {
      const hasHeirs = (): boolean => this.hasHeirs(group);
      const queues = new LockQueues(group, ports, { ...waiting, hasHeirs }, this.waitTally);
      this.queuesByGroup.set(group.partition, queues);
      group.addReset(() => queues.reset());
      group.addStopHook((propose) => queues.clearLists(propose));
      group.addMoveHook((to, done) => this.tellStandings(group, queues, to, done));
      const blocks = new SequenceBlocks(group, blockSettings, ports, kernels);
      this.blocksByGroup.set(group.partition, blocks);
      group.addReset(() => blocks.reset());
      group.addStopHook((propose) => blocks.handBack(propose));
    });
    // Answers of its last turn may still ask for them.
    node.onGroupLeft(({ partition }) => {
      const blocks = this.blocksByGroup.get(partition);
      const queues = this.queuesByGroup.get(partition);
      ports.timer.soon(() => {
        if (this.queuesByGroup.get(partition) === queues) this.queuesByGroup.delete(partition);
        if (this.blocksByGroup.get(partition) === blocks) this.blocksByGroup.delete(partition);
      });
    });
  }

  /** Whoever comes to lead hears who stands where; an older program does without. */
  private tellStandings(
    group: GroupAccess,
    queues: LockQueues,
    to: number,
    done: () => void,
  ): void {
    const places = queues.standings();
    if (places.length === 0) return done();
    const { partition } = group;
    const request = { kind: "keep-places", partition, term: group.term(), places } as const;
    const deadlineMs = this.ports.clock.monotonicMs() + TELL_MS;
    const requestId = `move-${partition}`;
    this.calls.ask({ to, partition: NO_PARTITION, request, requestId, deadlineMs }, done);
  }

  /**
   * Whether the level of `group`, or with null that of the cluster, permits operations of `kind`
   * (contract 5.5 U8). A leader that does not serve yet may be behind its own level: whoever waits
   * for it is judged when a command is proposed.
   */
  permits(kind: string, group: GroupAccess | null): boolean {
    const { operations, operationsFrom } = this.settings.permits;
    if (operationsFrom <= FIRST_LEVEL || (group !== null && !group.isServing())) return true;
    return (operations[kind] ?? FIRST_LEVEL) <= (group?.machine.level ?? this.clusterLevel());
  }

  /**
   * As `permits`, of a request with all that it tells. What is ephemeral is never proposed: it is
   * judged here alone.
   */
  permitsAll(request: DataRequest, group: GroupAccess): boolean {
    if (!this.permits(request.kind, group)) return false;
    if (!isOf(request, "lock") || !tellsOfGrant(request)) return true;
    const isProposed = request.durability !== Durability.ephemeral;
    return (isProposed && !group.isServing()) || this.waitsIn(group);
  }

  /** Whether a request can go to another node with all that it tells. */
  canSend(request: DataRequest): boolean {
    return !isOf(request, "lock") || !tellsOfGrant(request) || this.knowsWaiting();
  }

  /**
   * Why what the level of `group` does not permit is not carried out: null while the group is below
   * the cluster, whose level is on its way to it. So a cluster that is young refuses nothing.
   */
  belowLevel(group: GroupAccess): Refusal | null {
    return group.machine.level < this.clusterLevel() ? null : "not-available-at-level";
  }

  /** Level of the cluster, as far as it is known here. */
  clusterLevel(): number {
    const { node } = this;
    const cluster = node.closing ? null : node.metaGroup().machine.meta.cluster();
    return cluster?.level ?? FIRST_LEVEL;
  }

  /** True where all nodes know how to wait for locks; elsewhere a busy lock is told at once. */
  knowsWaiting(): boolean {
    return this.settings.permits.waitsFrom <= this.clusterLevel();
  }

  /** As `knowsWaiting`, as the partition of `group` has it. */
  waitsIn({ machine }: GroupAccess): boolean {
    return machine.level >= this.settings.permits.waitsFrom;
  }

  /** Whether locks of `group` that change hands often have heirs. */
  private hasHeirs({ machine }: GroupAccess): boolean {
    const { lockSuccession, permits } = this.settings;
    return lockSuccession && machine.level >= (permits.commands["set-heirs"] ?? Infinity);
  }

  /** Who waits for the locks of `group`. */
  queues(group: GroupAccess): LockQueues {
    return present(this.queuesByGroup.get(group.partition), "every group has its queues");
  }

  /** The blocks of `group`. */
  blocks(group: GroupAccess): SequenceBlocks {
    const blocks = this.blocksByGroup.get(group.partition);
    return present(blocks, "every group has its block table");
  }

  /** Lease end as Unix time, for information (T6); "none" for no lease. */
  expires(group: GroupAccess, leaseEndMs: number | null): Hlc {
    if (leaseEndMs === null) return NO_STAMP;
    const remainingMs = leaseEndMs - group.leaseNowMs();
    const endMs = Math.max(0, Math.floor(this.ports.clock.wallMs() + remainingMs));
    return { n: this.settings.nodeId, l: endMs, c: 0 };
  }
}
