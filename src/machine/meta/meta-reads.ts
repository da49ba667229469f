/**
 * Reads of the meta partition: cluster record, members, partition map, range descriptors. Pure.
 *
 * Owns the lists that it decoded last: many ask for them at each change, and at each call.
 * Invariants: 1. Lists are in the order of their keys: members and partitions by id, key spaces by
 * bytes, descriptors by start key with the open start first. 2. null = the cluster is not founded,
 * never an empty record. 3. Members and partitions are decoded once for each version of the list:
 * every command that changes one of its rows raises the version.
 */
import { present } from "../../base/assert.js";
import type { MapVersion, MembershipVersion } from "../../base/ids.js";
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

/** A list as of one version of it; null = before the founding. */
interface Decoded<Version, Item> {
  readonly version: Version | null;
  readonly items: readonly Item[];
}

export class MetaReads {
  private readonly rows: ReadableRows;
  private memberList: Decoded<MembershipVersion, Member> = { version: null, items: [] };
  private partitionMap: Decoded<MapVersion, PartitionRecord> = { version: null, items: [] };

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
    const version = this.cluster()?.membershipVersion ?? null;
    if (version !== this.memberList.version) {
      const items = this.all(RowKind.member, decodeMember, "a member row is whole");
      this.memberList = { version, items };
    }
    return this.memberList.items;
  }

  /** What is kept of a removed member, also when its id is taken again. */
  formerMember(nodeId: number): FormerMember | null {
    const bytes = this.rows.get(RowKind.formerMember, uint32Key(nodeId));
    return bytes === null
      ? null
      : present(decodeFormerMember(bytes), "the row of a former member is whole");
  }

  formerMembers(): readonly FormerMember[] {
    const what = "the row of a former member is whole";
    return this.all(RowKind.formerMember, decodeFormerMember, what);
  }

  partition(partitionId: number): PartitionRecord | null {
    const bytes = this.rows.get(RowKind.partition, uint32Key(partitionId));
    return bytes === null ? null : present(decodePartition(bytes), "a partition row is whole");
  }

  partitions(): readonly PartitionRecord[] {
    const version = this.cluster()?.mapVersion ?? null;
    if (version !== this.partitionMap.version) {
      const items = this.all(RowKind.partition, decodePartition, "a partition row is whole");
      this.partitionMap = { version, items };
    }
    return this.partitionMap.items;
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
    return this.all(RowKind.range, decodeRange, "a range row is whole", first, last);
  }

  private all<Item>(
    kind: number,
    decode: (value: Uint8Array) => Item | null,
    what: string,
    first: ByteKey = "",
    last: ByteKey | null = null,
  ): readonly Item[] {
    const found: Item[] = [];
    this.rows.scan(kind, first, last, (_, value) => {
      found.push(present(decode(value), what));
      return true;
    });
    return found;
  }
}
