/**
 * Reads of the meta partition: cluster record, members, partition map, range descriptors. Pure.
 *
 * Invariants: 1. Lists are in the order of their keys: members and partitions by id, key spaces by
 * bytes, descriptors by start key with the open start first. 2. null = the cluster is not founded,
 * never an empty record.
 */
import { present } from "../../base/assert.js";
import { compareText } from "../../base/bytes.js";
import type {
  ClusterRecord,
  FormerMember,
  Member,
  PartitionRecord,
  RangeDescriptor,
} from "../commands/command.js";
import {
  RowKind,
  keySuccessor,
  nameKey,
  rangePrefix,
  uint32Key,
  type ByteKey,
} from "../store/keys.js";
import {
  decodeCluster,
  decodeFormerMember,
  decodeMember,
  decodePartition,
  decodeRange,
  type RangeRow,
} from "./meta-rows.js";
import type { ReadableRows } from "../store/rows.js";

/** The descriptors of one key space, by start key. */
export interface KeySpaceRanges {
  readonly keySpace: string;
  readonly descriptors: readonly RangeDescriptor[];
}

export class MetaReads {
  private readonly rows: ReadableRows;

  constructor(rows: ReadableRows) {
    this.rows = rows;
  }

  cluster(): ClusterRecord | null {
    const bytes = this.rows.get(RowKind.cluster, "");
    return bytes === null ? null : present(decodeCluster(bytes), "the cluster record is whole");
  }

  member(nodeId: number): Member | null {
    const bytes = this.rows.get(RowKind.member, uint32Key(nodeId));
    return bytes === null ? null : present(decodeMember(bytes), "a member row is whole");
  }

  members(): readonly Member[] {
    const found: Member[] = [];
    this.rows.scan(RowKind.member, "", null, (_, value) => {
      found.push(present(decodeMember(value), "a member row is whole"));
      return true;
    });
    return found;
  }

  /** What is kept of a removed member, also when its id is taken again. */
  formerMember(nodeId: number): FormerMember | null {
    const bytes = this.rows.get(RowKind.formerMember, uint32Key(nodeId));
    return bytes === null
      ? null
      : present(decodeFormerMember(bytes), "the row of a former member is whole");
  }

  formerMembers(): readonly FormerMember[] {
    const found: FormerMember[] = [];
    this.rows.scan(RowKind.formerMember, "", null, (_, value) => {
      found.push(present(decodeFormerMember(value), "the row of a former member is whole"));
      return true;
    });
    return found;
  }

  partition(partitionId: number): PartitionRecord | null {
    const bytes = this.rows.get(RowKind.partition, uint32Key(partitionId));
    return bytes === null ? null : present(decodePartition(bytes), "a partition row is whole");
  }

  partitions(): readonly PartitionRecord[] {
    const found: PartitionRecord[] = [];
    this.rows.scan(RowKind.partition, "", null, (_, value) => {
      found.push(present(decodePartition(value), "a partition row is whole"));
      return true;
    });
    return found;
  }

  /** Descriptors of one key space by start key; empty when it is not registered or not a name. */
  ranges(keySpace: string): readonly RangeDescriptor[] {
    const key = nameKey(keySpace);
    if (key === null) return [];
    const prefix = rangePrefix(key);
    return this.rangeRows(prefix, keySuccessor(prefix)).map((row) => row.descriptor);
  }

  /** All registered key spaces in byte order. */
  keySpaces(): readonly KeySpaceRanges[] {
    const spaces = new Map<string, RangeDescriptor[]>();
    for (const { keySpace, descriptor } of this.rangeRows("", null)) {
      const descriptors = spaces.get(keySpace);
      if (descriptors === undefined) spaces.set(keySpace, [descriptor]);
      else descriptors.push(descriptor);
    }
    const sorted: KeySpaceRanges[] = [];
    for (const [keySpace, descriptors] of spaces) sorted.push({ keySpace, descriptors });
    return sorted.sort((a, b) => compareText(a.keySpace, b.keySpace));
  }

  private rangeRows(first: ByteKey, last: ByteKey | null): readonly RangeRow[] {
    const found: RangeRow[] = [];
    this.rows.scan(RowKind.range, first, last, (_, value) => {
      found.push(present(decodeRange(value), "a range row is whole"));
      return true;
    });
    return found;
  }
}
