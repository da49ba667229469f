/**
 * Where every object lives, by the committed map as this node has applied it, whether or not the
 * node hosts the partition.
 *
 * Owns a copy of the range map. Invariants: 1. Placement is a function of the text and the
 * committed map alone. 2. The copy is read again when the map changed. 3. A node that closes its
 * rows reads none.
 */
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
import type { NodeAccess } from "../api/host-view.js";
import { type SingleRequest, bucketOf, isOf } from "../api/requests.js";

/** Where an object lives, whether or not this node hosts it. */
export interface Whereabouts {
  readonly partition: PartitionId;
  /** Of the range descriptor; 0 = by hash. */
  readonly generation: number;
}

const NO_RANGES: readonly RangeDescriptor[] = [];

export class Places {
  private readonly ranges = new Map<string, readonly RangeDescriptor[]>();
  /** Applied index of the meta partition at which `ranges` was read. */
  private rangesIndex = -1;

  constructor(private readonly node: NodeAccess) {}

  /** Where the object of a request on one object or bucket lives; null until the map is known. */
  whereabouts(request: SingleRequest): Whereabouts | null {
    if (isOf(request, "sequence"))
      return this.hashed(sequenceHashText(trimWhiteSpace(request.name)));
    if (isOf(request, "lock")) return this.hashed(lockHashText(request.resource));
    if (isOf(request, "key")) return this.keyWhereabouts(request.key);
    const bucket = bucketOf(request);
    return this.whereaboutsIn(bucket, bucket);
  }

  keyWhereabouts(key: string): Whereabouts | null {
    return this.whereaboutsIn(keySpaceOf(key), key);
  }

  private whereaboutsIn(keySpace: string, key: string): Whereabouts | null {
    const range = this.rangeOf(keySpace, key);
    if (range === null) return this.hashed(keySpaceHashText(keySpace));
    return { partition: partitionId(range.partitionId), generation: range.generation };
  }

  private hashed(hashText: string): Whereabouts | null {
    const partition = this.node.partitionOf(hashText);
    return partition === null ? null : { partition, generation: 0 };
  }

  /** The hash partition of a key space, wherever its ranges lie; null until there is one. */
  hashHome(keySpace: string): PartitionId | null {
    return this.node.partitionOf(keySpaceHashText(keySpace));
  }

  /** The range that `key` lies in; null when its key space is placed by hash. */
  rangeOf(keySpace: string, key: string): RangeDescriptor | null {
    return findRange(this.rangesOf(keySpace), key);
  }

  /**
   * The descriptors of a key space as this node has applied them; read again when the map changed.
   */
  private rangesOf(keySpace: string): readonly RangeDescriptor[] {
    const { machine } = this.node.metaGroup();
    if (machine.appliedIndex !== this.rangesIndex && !this.node.closing) {
      this.rangesIndex = machine.appliedIndex;
      this.ranges.clear();
      for (const space of machine.meta.keySpaces()) {
        this.ranges.set(space.keySpace, space.descriptors);
      }
    }
    return this.ranges.get(keySpace) ?? NO_RANGES;
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
