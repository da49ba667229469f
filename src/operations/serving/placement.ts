/**
 * Where every object lives, by the committed map as this node has applied it: its partition,
 * whether or not this node hosts that, and its group on this node.
 *
 * Owns a copy of the range map, and the places that it found. Invariants: 1. Placement is a
 * function of the text and the committed map alone. 2. The copy is read again when the version of
 * the map grew; it never goes back (P-109). 3. A node that closes its rows reads none. 4. The map
 * says where to ask first: whether a partition has a key is decided by the partition's own rows.
 */
import { compareText } from "../../base/bytes.js";
import { META_PARTITION, type PartitionId, partitionId } from "../../base/ids.js";
import { findRange } from "../../control/ranges.js";
import {
  keySpaceHashText,
  keySpaceOf,
  lockHashText,
  sequenceHashText,
} from "../../base/routing.js";
import type { RangeDescriptor } from "../../machine/commands/command.js";
import { trimWhiteSpace } from "../../machine/store/names.js";
import type { GroupAccess, NodeAccess } from "../api/host-view.js";
import { type TextSpan, bucketSpanOf } from "../api/page-query.js";
import { type RequestOf, type SingleRequest, bucketOf, isOf } from "../api/requests.js";
import type { Origin } from "../api/shapes.js";
import type { Origins } from "./origins.js";

/** Where an object lives, whether or not this node hosts it. */
export interface Route {
  readonly partition: PartitionId;
  /** Of the range descriptor; 0 = by hash. */
  readonly generation: number;
}

/** The group of an object on this node, and what answers about it name. */
export interface Place {
  readonly group: GroupAccess;
  readonly origin: Origin;
}

export interface SequencePlace {
  /** As trimmed. */
  readonly name: string;
  readonly group: GroupAccess;
}

/** Names whose place is remembered. */
const SEQUENCES_MAX = 8192;
const NO_RANGES: readonly RangeDescriptor[] = [];

export class Placement {
  private readonly ranges = new Map<string, readonly RangeDescriptor[]>();
  /** Applied index of the meta partition at which the version of the map was looked at. */
  private seenIndex = -1;
  /** Version of the map that `ranges` was read from; -1 before there is one. */
  private seenVersion = -1;

  private readonly byGroup = new Map<number, Place>();
  private readonly byRange = new Map<RangeDescriptor, Place>();
  private readonly sequences = new Map<string, SequencePlace>();

  constructor(
    private readonly node: NodeAccess,
    private readonly origins: Origins,
  ) {
    const forget = (group: GroupAccess): void => {
      this.sequences.clear();
      this.byGroup.delete(group.partition);
      this.byRange.clear();
    };
    node.onGroup(forget);
    node.onGroupLeft(forget);
  }

  /** Where the object of a request on one object or bucket lives; null until the map is known. */
  routeOf(request: SingleRequest): Route | null {
    if (isOf(request, "sequence")) {
      return this.hashed(sequenceHashText(trimWhiteSpace(request.name)));
    }
    if (isOf(request, "lock")) return this.hashed(lockHashText(request.resource));
    if (isOf(request, "key")) return this.keyRoute(request.key);
    return this.routeIn(bucketOf(request), this.touchedRanges(request)[0] ?? null);
  }

  /** Version of the map that this node has applied; -1 before there is one. */
  get mapVersion(): number {
    this.refresh();
    return this.seenVersion;
  }

  keyRoute(key: string): Route | null {
    const keySpace = keySpaceOf(key);
    return this.routeIn(keySpace, this.rangeOf(keySpace, key));
  }

  private routeIn(keySpace: string, range: RangeDescriptor | null): Route | null {
    if (range === null) return this.hashed(keySpaceHashText(keySpace));
    return { partition: partitionId(range.partitionId), generation: range.generation };
  }

  private hashed(hashText: string): Route | null {
    const partition = this.node.partitionOf(hashText);
    return partition === null ? null : { partition, generation: 0 };
  }

  /** Where a lock lives: by its whole resource. */
  lockPlace(resource: string): Place | null {
    return this.routed(lockHashText(resource));
  }

  /**
   * The trimmed name and the group of the sequence that a request names. Remembered, because
   * hashing the name costs more than handing out a value and the placement of a text never changes
   * in the life of a cluster.
   */
  sequencePlace(name: string): SequencePlace | null {
    const known = this.sequences.get(name);
    if (known !== undefined) return known;
    const trimmed = trimWhiteSpace(name);
    const group = this.node.route(sequenceHashText(trimmed));
    if (group === null) return null;
    if (this.sequences.size >= SEQUENCES_MAX) this.sequences.clear();
    const place = { name: trimmed, group };
    this.sequences.set(name, place);
    return place;
  }

  /**
   * Where the key/value entry `key` lives: by the committed ranges of its key space, else by hash.
   */
  keyPlace(key: string): Place | null {
    const keySpace = keySpaceOf(key);
    return this.placeIn(keySpace, this.rangeOf(keySpace, key));
  }

  /**
   * Where the keys of a bucket that a request is about live, or the first of them when they lie in
   * several ranges.
   */
  bucketPlace(request: RequestOf<"bucket">): Place | null {
    return this.placeIn(bucketOf(request), this.touchedRanges(request)[0] ?? null);
  }

  /**
   * The ranges that hold keys which a request about a bucket may show, in order; none when it is
   * placed by hash.
   */
  touchedRanges(request: RequestOf<"bucket">): readonly RangeDescriptor[] {
    const ranges = this.rangesOf(bucketOf(request));
    if (ranges.length <= 1) return ranges;
    const span = bucketSpanOf(request);
    const touched = ranges.filter((range) => touches(range, span));
    // Of a span without any key one range is as good as another.
    return touched.length === 0 ? ranges.slice(0, 1) : touched;
  }

  /** The partitions that may have keys of a bucket; null until the map is known. */
  bucketPartitions(bucket: string): readonly PartitionId[] | null {
    const ranges = this.rangesOf(bucket);
    if (ranges.length > 0) return ranges.map((range) => partitionId(range.partitionId));
    const home = this.hashHome(bucket);
    return home === null ? null : [home];
  }

  private placeIn(keySpace: string, range: RangeDescriptor | null): Place | null {
    if (range === null) return this.routed(keySpaceHashText(keySpace));
    const known = this.byRange.get(range);
    if (known !== undefined) return known;
    const group = this.node.group(partitionId(range.partitionId));
    if (group === null) return null;
    const place = { group, origin: this.origins.executed(group, range.generation) };
    if (place.origin.servedFrom !== "") this.byRange.set(range, place);
    return place;
  }

  private routed(hashText: string): Place | null {
    const group = this.node.route(hashText);
    return group === null ? null : this.here(group);
  }

  /** The place of what lies in `group` by hash. */
  here(group: GroupAccess): Place {
    const known = this.byGroup.get(group.partition);
    if (known !== undefined) return known;
    const place = { group, origin: this.origins.executed(group) };
    // A node that begins may not know its own endpoint yet.
    if (place.origin.servedFrom !== "") this.byGroup.set(group.partition, place);
    return place;
  }

  /** The data partitions that this node hosts. */
  dataGroups(): readonly GroupAccess[] {
    return this.node.groups().filter((group) => group.partition !== META_PARTITION);
  }

  /** The hash partition of a key space, wherever its ranges lie; null until there is one. */
  hashHome(keySpace: string): PartitionId | null {
    return this.node.partitionOf(keySpaceHashText(keySpace));
  }

  /** The range that `key` lies in; null when its key space is placed by hash. */
  rangeOf(keySpace: string, key: string): RangeDescriptor | null {
    return findRange(this.rangesOf(keySpace), key);
  }

  /** Of all key spaces that have some; a copy. */
  allRanges(): ReadonlyMap<string, readonly RangeDescriptor[]> {
    this.refresh();
    return new Map(this.ranges);
  }

  /** The descriptors of a key space as this node has applied them. */
  private rangesOf(keySpace: string): readonly RangeDescriptor[] {
    this.refresh();
    return this.ranges.get(keySpace) ?? NO_RANGES;
  }

  /** Reads the map again when its version grew: what else meta applies leaves the copy alone. */
  private refresh(): void {
    const { machine } = this.node.metaGroup();
    if (machine.appliedIndex === this.seenIndex || this.node.closing) return;
    this.seenIndex = machine.appliedIndex;
    const version = machine.meta.cluster()?.mapVersion ?? -1;
    if (version <= this.seenVersion) return;
    this.seenVersion = version;
    this.ranges.clear();
    this.byRange.clear();
    for (const { keySpace, descriptors } of machine.meta.keySpaces()) {
      this.ranges.set(keySpace, descriptors);
    }
  }

  /**
   * The partitions that may have keys: those of the hash pool, and those that a range is on. One in
   * the making has none before the map names it.
   */
  servingPartitions(): readonly PartitionId[] {
    this.refresh();
    const named = new Set<number>();
    for (const ranges of this.ranges.values()) {
      for (const { partitionId: id } of ranges) named.add(id);
    }
    const { closing } = this.node;
    const poolSize = closing
      ? 0
      : (this.node.metaGroup().machine.meta.cluster()?.dataPartitions ?? 0);
    return this.dataPartitions().filter((id) => closing || id <= poolSize || named.has(id));
  }

  /** All data partitions of the cluster, hosted here or not. */
  dataPartitions(): readonly PartitionId[] {
    const known = new Set<number>(this.node.groups().map((group) => group.partition));
    known.delete(META_PARTITION);
    if (this.node.closing) return inOrder(known);
    for (const { partitionId: id, state } of this.node.metaGroup().machine.meta.partitions()) {
      if (id !== META_PARTITION && state !== "Removed") known.add(id);
    }
    return inOrder(known);
  }
}

function inOrder(ids: Iterable<number>): readonly PartitionId[] {
  return [...ids].sort((left, right) => left - right).map(partitionId);
}

/** True when a key of the span may lie in the range. */
function touches({ startKey, endKey }: RangeDescriptor, span: TextSpan): boolean {
  const { low, high, isHighOpen } = span;
  if (endKey !== null && low !== null && compareText(endKey, low) <= 0) return false;
  if (startKey === null || high === null) return true;
  const order = compareText(startKey, high);
  return order < 0 || (order === 0 && !isHighOpen);
}
