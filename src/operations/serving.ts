/**
 * What all operations share: where an object lives, where an answer comes from, how a round or a
 * proposal can fail.
 *
 * Owns the sequence blocks of every group. May call base, machine, host.
 *
 * Invariants: 1. Placement is a function of the text alone. 2. State is read only in the turn of a
 * confirmed round or of an applied command. 3. A lease end that has passed by the leader's clock is
 * committed to the log before anybody is told (P-051).
 */
import { present } from "../base/assert.js";
import { type Hlc, NO_STAMP } from "../base/hlc.js";
import { META_PARTITION, partitionId } from "../base/ids.js";
import { findRange } from "../control/ranges.js";
import {
  keySpaceHashText,
  keySpaceOf,
  lockHashText,
  sequenceHashText,
} from "../control/routing.js";
import { type BlockKernels, SequenceBlocks } from "../host/blocks.js";
import type { ProposalResult } from "../host/results.js";
import type { Outcome, RangeDescriptor } from "../machine/command.js";
import { trimWhiteSpace } from "../machine/names.js";
import type { ClockPort, EntropyPort, LoggerPort, MeterPort, TimerPort } from "../ports.js";
import type { GroupAccess, NodeAccess } from "./access.js";
import { type Refusal, RouteProvenance } from "./answers.js";
import { Contention } from "./contention.js";
import type { OperationsSettings } from "./settings.js";
import type { CommonEnd, Origin } from "./shapes.js";

/** The part of the world that operations touch. */
export interface OperationsPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly logger: LoggerPort;
  readonly entropy: EntropyPort;
  readonly meter: MeterPort;
}

/**
 * Ends a request without a result of its own. With `executed` null nothing was done and nobody is
 * to be named.
 */
export type Fail = (end: CommonEnd, refusal: Refusal | null, executed: GroupAccess | null) => void;

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
const NO_RANGES: readonly RangeDescriptor[] = [];

/** Reads that may be between two slices at a time, and what they may hold together (bytes). */
const SLICED_READS_MAX = 256;
const SLICED_BYTES_MAX = 256 * 1024 * 1024;

/** What one read between two slices holds of that. */
export class SlicedShare {
  private isOpen = false;
  private heldBytes = 0;

  constructor(private readonly serving: Serving) {}

  /** Holds `totalBytes` from now on; false when there is no room, and nothing has changed. */
  hold(totalBytes: number): boolean {
    const { sliced } = this.serving;
    if (!this.isOpen && sliced.reads >= SLICED_READS_MAX) return false;
    if (sliced.bytes - this.heldBytes + totalBytes > SLICED_BYTES_MAX) return false;
    if (!this.isOpen) sliced.reads++;
    this.isOpen = true;
    sliced.bytes += totalBytes - this.heldBytes;
    this.heldBytes = totalBytes;
    return true;
  }

  close(): void {
    const { sliced } = this.serving;
    if (this.isOpen) sliced.reads--;
    sliced.bytes -= this.heldBytes;
    this.isOpen = false;
    this.heldBytes = 0;
  }
}

export class Serving {
  /** Who is trying for which lock; a quarter of the admission at most for one. */
  readonly contention: Contention;
  /** Reads between two slices, and the bytes that they hold. */
  readonly sliced = { reads: 0, bytes: 0 };
  private readonly blocksByGroup = new Map<number, SequenceBlocks>();
  private readonly sequencePlaces = new Map<string, SequencePlace>();
  private readonly ranges = new Map<string, readonly RangeDescriptor[]>();
  /** Applied index of the meta partition at which `ranges` was read. */
  private rangesIndex = -1;
  private readonly origins = new Map<number, Origin>();

  constructor(
    readonly node: NodeAccess,
    readonly settings: OperationsSettings,
    readonly ports: OperationsPorts,
    kernels: BlockKernels,
  ) {
    this.contention = new Contention(Math.max(1, Math.floor(settings.inflightMax / 4)));
    const blockSettings = {
      defaultBlockSize: settings.sequencerBlockSize,
      blockLeaseMs: settings.sequencerBlockLeaseMs,
      keysRetainedMax: settings.keysRetainedMax,
      keysRetainedMs: settings.keysRetainedMs,
    };
    node.onGroup((group) => {
      const blocks = new SequenceBlocks(group, blockSettings, ports, kernels);
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
    const range = findRange(this.rangesOf(keySpace), key);
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

  /** The hash partition of a key space, wherever its ranges lie. */
  hashGroup(keySpace: string): GroupAccess | null {
    return this.node.route(keySpaceHashText(keySpace));
  }

  /**
   * The descriptors of a key space as this node has applied them; read again when the map changed.
   */
  private rangesOf(keySpace: string): readonly RangeDescriptor[] {
    const { machine } = this.node.metaGroup();
    if (machine.appliedIndex !== this.rangesIndex) {
      this.rangesIndex = machine.appliedIndex;
      this.ranges.clear();
      for (const space of machine.meta.keySpaces()) {
        this.ranges.set(space.keySpace, space.descriptors);
      }
    }
    return this.ranges.get(keySpace) ?? NO_RANGES;
  }

  /** The data partitions that this node hosts. */
  dataGroups(): readonly GroupAccess[] {
    return this.node.groups().filter((group) => group.partition !== META_PARTITION);
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
    group.read(deadlineMs, (result) => {
      if (result.status === "confirmed") then(result.leaseMs);
      else fail(result.status === "aborted" ? "aborted" : "mustRetry", null, group);
    });
  }

  /**
   * The outcome of an applied proposal; null after it told `fail` how the proposal ended otherwise.
   */
  outcomeOf(group: GroupAccess, result: ProposalResult, fail: Fail): Outcome | null {
    if (result.status === "applied") return result.outcome;
    if (result.status === "aborted") fail("aborted", null, group);
    else if (result.status === "unknown") fail("mustRetry", null, group);
    else if (result.reason === "not-leader") fail("mustRetry", null, null);
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
