/**
 * What all operations share: where an object lives, where an answer comes from, how a round or a
 * proposal can fail.
 *
 * Owns the sequence blocks of every group.
 *
 * Invariants: 1. Placement is a function of the text alone. 2. State is read only in the turn of a
 * confirmed round or of an applied command. 3. A lease end that has passed by the leader's clock is
 * committed to the log before anybody is told (P-051).
 */
import { present } from "../base/assert.js";
import { type Hlc, NO_STAMP } from "../base/hlc.js";
import { META_PARTITION, type PartitionId, partitionId } from "../base/ids.js";
import { keySpaceHashText, keySpaceOf, lockHashText, sequenceHashText } from "../base/routing.js";
import { type BlockKernels, SequenceBlocks } from "../host/sequences/blocks.js";
import type { ProposalResult } from "../host/requests/results.js";
import type { Outcome } from "../machine/commands/command.js";
import { trimWhiteSpace } from "../machine/store/names.js";
import type { MeterPort } from "../ports.js";
import type { GroupAccess, NodeAccess } from "./api/host-view.js";
import { type Refusal, type RouteHint, RouteProvenance } from "./api/answers.js";
import { Calls, type CallsPorts } from "./forwarding/calls.js";
import { Contention } from "./admission/contention.js";
import type { Roads } from "./forwarding/errand.js";
import { Leaders } from "./forwarding/leaders.js";
import { Places, type Whereabouts } from "./forwarding/places.js";
import { ReadTurn } from "./admission/read-turn.js";
import type { OperationsSettings } from "./api/settings.js";
import { type CommonEnd, NOWHERE, type Origin } from "./api/shapes.js";
import { SlicedReads } from "./admission/slices.js";

/** The part of the world that operations touch. */
export interface OperationsPorts extends CallsPorts {
  readonly meter: MeterPort;
}

/**
 * Ends a request without a result of its own. With `executed` null nothing was done and nobody is
 * to be named. "moved": nothing was done because this node did not prove that it leads.
 */
export type Fail = (
  end: CommonEnd | "moved",
  refusal: Refusal | null,
  executed: GroupAccess | null,
) => void;

export interface SequencePlace {
  /** As trimmed. */
  readonly name: string;
  readonly group: GroupAccess;
}

/** Where a key or a bucket lives, and what answers about it name. */
export interface KeyPlace {
  readonly group: GroupAccess;
  readonly origin: Origin;
}

/** Names whose place is remembered. */
const PLACES_MAX = 8192;

export class Serving implements Roads {
  readonly leaders: Leaders;
  readonly places: Places;
  readonly calls: Calls;
  /** Who is trying for which lock; a quarter of the admission at most for one. */
  readonly contention: Contention;
  /** Reads of many rows: whose turn it is, and what they hold. */
  readonly sliced: SlicedReads;
  /** Reads of single keys: what a turn takes of large values. */
  readonly readTurn: ReadTurn;
  private readonly blocksByGroup = new Map<number, SequenceBlocks>();
  private readonly sequencePlaces = new Map<string, SequencePlace>();
  private readonly origins = new Map<number, Origin>();

  constructor(
    readonly node: NodeAccess,
    readonly settings: OperationsSettings,
    readonly ports: OperationsPorts,
    kernels: BlockKernels,
  ) {
    this.places = new Places(node);
    this.readTurn = new ReadTurn(ports.timer);
    this.sliced = new SlicedReads(ports.timer);
    this.leaders = new Leaders(node, settings, ports);
    const perPeerMax = Math.max(1, Math.floor(settings.inflightMax / 2));
    const leaderOf = (partition: number): number => this.leaders.of(partition);
    this.calls = new Calls(ports, perPeerMax, leaderOf, settings.leaderWaitMs);
    this.contention = new Contention(Math.max(1, Math.floor(settings.inflightMax / 4)));
    const blockSettings = {
      defaultBlockSize: settings.sequencerBlockSize,
      blockLeaseMs: settings.sequencerBlockLeaseMs,
      keysRetainedMax: settings.keysRetainedMax,
      keysRetainedMs: settings.keysRetainedMs,
    };
    node.onGroup((group) => {
      const blocks = new SequenceBlocks(group, blockSettings, ports, kernels);
      this.sequencePlaces.clear();
      this.origins.delete(group.partition);
      this.blocksByGroup.set(group.partition, blocks);
      group.addReset(() => blocks.reset());
      group.addStopHook((propose) => blocks.handBack(propose));
    });
  }

  /** The blocks of `group`. */
  blocks(group: GroupAccess): SequenceBlocks {
    const blocks = this.blocksByGroup.get(group.partition);
    return present(blocks, "every group has its block table");
  }

  /** Where a lock lives: by its whole resource. */
  lockGroup(resource: string): GroupAccess | null {
    return this.node.route(lockHashText(resource));
  }

  /**
   * The trimmed name and the group of the sequence that a request names. Remembered, because
   * hashing the name costs more than handing out a value and the placement of a text never changes
   * in the life of a cluster.
   */
  sequencePlace(name: string): SequencePlace | null {
    const known = this.sequencePlaces.get(name);
    if (known !== undefined) return known;
    const trimmed = trimWhiteSpace(name);
    const group = this.node.route(sequenceHashText(trimmed));
    if (group === null) return null;
    if (this.sequencePlaces.size >= PLACES_MAX) this.sequencePlaces.clear();
    const place = { name: trimmed, group };
    this.sequencePlaces.set(name, place);
    return place;
  }

  /**
   * Where the key/value entry `key` lives: by the committed ranges of its key space, else by hash.
   */
  keyPlace(key: string): KeyPlace | null {
    return this.placeIn(keySpaceOf(key), key);
  }

  /** Where the keys of a bucket live. Only a split gives a bucket a second range. */
  bucketPlace(bucket: string): KeyPlace | null {
    return this.placeIn(bucket, bucket);
  }

  private placeIn(keySpace: string, key: string): KeyPlace | null {
    const range = this.places.rangeOf(keySpace, key);
    if (range === null) {
      const hashed = this.node.route(keySpaceHashText(keySpace));
      return hashed === null ? null : { group: hashed, origin: this.origin(hashed) };
    }
    const group = this.node.group(partitionId(range.partitionId));
    if (group === null) return null;
    const { servedFrom, route } = this.origin(group);
    const { generation } = range;
    return {
      group,
      origin: { servedFrom, route: route === null ? null : { ...route, generation } },
    };
  }

  /** The data partitions that this node hosts. */
  dataGroups(): readonly GroupAccess[] {
    return this.node.groups().filter((group) => group.partition !== META_PARTITION);
  }

  /** Named in a MustRetry of `group`: where to go next, which need not be this node. */
  retryOrigin(group: GroupAccess): Origin {
    if (group.isLeader()) return this.origin(group);
    const route = this.hint(group.partition, 0);
    return { servedFrom: this.settings.clientEndpoint, route };
  }

  /** Named when nothing was done here and another node may know more. */
  elsewhere({ partition, generation }: Whereabouts): Origin {
    return { ...NOWHERE, route: this.hint(partition, generation) };
  }

  /** Nobody is sent to a node that this one just failed to reach (P-150). */
  private hint(partition: PartitionId, generation: number): RouteHint | null {
    const leader = this.leaders.of(partition);
    const nowMs = this.ports.clock.monotonicMs();
    if (!this.calls.isReachable(leader, nowMs)) return null;
    return this.leaders.hint(partition, generation);
  }

  /** Named in answers that `group` executed on this node. */
  origin(group: GroupAccess): Origin {
    let origin = this.origins.get(group.partition);
    if (origin === undefined) {
      const endpoint = this.settings.clientEndpoint;
      const route = {
        partitionId: group.partition,
        endpoint,
        provenance: RouteProvenance.executed,
        generation: 0,
      };
      origin = { servedFrom: endpoint, route: this.settings.routingHints ? route : null };
      this.origins.set(group.partition, origin);
    }
    return origin;
  }

  /**
   * Calls `then` with the committed lease time once `group` is proved to lead; the state may be
   * read in it.
   */
  confirm(
    group: GroupAccess,
    deadlineMs: number,
    fail: Fail,
    then: (leaseMs: number) => void,
  ): void {
    // As a proposal is refused: nothing was begun, and another node is to be asked.
    if (this.node.shuttingDown && group.isLeader()) {
      return this.ports.timer.soon(() => fail("mustRetry", "shutting-down", null));
    }
    group.read(deadlineMs, (result) => {
      if (result.status === "confirmed") then(result.leaseMs);
      else fail(result.status === "aborted" ? "aborted" : "moved", null, group);
    });
  }

  /**
   * The outcome of an applied proposal; null after it told `fail` how the proposal ended otherwise.
   */
  outcomeOf(group: GroupAccess, result: ProposalResult, fail: Fail): Outcome | null {
    if (result.status === "applied") return result.outcome;
    if (result.status === "aborted") fail("aborted", null, group);
    else if (result.status === "unknown") fail("mustRetry", null, group);
    else if (result.reason === "not-leader") fail("moved", null, group);
    else fail("mustRetry", result.reason, null);
    return null;
  }

  /**
   * Calls `then` when the committed lease clock has reached `leaseTimeMs`; the state may be read in
   * it. `leaseMs` is the committed time, so that what has ended by then is seen as ended from now
   * on.
   */
  advance(
    group: GroupAccess,
    leaseTimeMs: number,
    deadlineMs: number,
    fail: Fail,
    then: (leaseMs: number) => void,
  ): void {
    group.advanceClock(leaseTimeMs, deadlineMs, (result) => {
      if (this.outcomeOf(group, result, fail) !== null) then(group.machine.leaseMs);
    });
  }

  /** Lease end as Unix time, for information (T6); "none" for no lease. */
  expires(group: GroupAccess, leaseEndMs: number | null): Hlc {
    if (leaseEndMs === null) return NO_STAMP;
    const remainingMs = leaseEndMs - group.leaseNowMs();
    const endMs = Math.max(0, Math.floor(this.ports.clock.wallMs() + remainingMs));
    return { n: this.settings.nodeId, l: endMs, c: 0 };
  }
}
