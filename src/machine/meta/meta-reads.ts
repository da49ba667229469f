/**
 * Reads of the meta partition: cluster record, members, partition map, range descriptors. Pure.
 *
 * Owns the lists that it decoded last: many ask for them at each change, and at each call.
 * Invariants: 1. Lists are in the order of their keys: members and partitions by id, key spaces by
 * bytes, descriptors by start key with the open start first. 2. null = the cluster is not founded,
 * never an empty record. 3. Lists are decoded once for each version of members or map: every
 * command that changes one of their rows raises the version. 4. A partition whose row was not
 * written keeps its record, the same object: a map of thousands costs what changed of it.
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
  RangeMove,
} from "../commands/command.js";
import {
  RowKind,
  byteKeyToText,
  keySuccessor,
  nameKey,
  rangePrefix,
  readUint32Key,
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
import { isPlannerHeld } from "./planner-holds.js";
import { decodeMove } from "./range-rows.js";
import type { ChangedRecords, ReadableRows } from "../store/rows.js";

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

/** Where more than this part of all records changed, all are read. */
const CHANGED_PART = 4;

export class MetaReads {
  private readonly rows: ReadableRows;
  private memberList: Decoded<MembershipVersion, Member> = { version: null, items: [] };
  private partitionMap: Decoded<MapVersion, PartitionRecord> = { version: null, items: [] };
  private rangeList: Decoded<MapVersion, RangeRow> = { version: null, items: [] };
  private spaceList: Decoded<MapVersion, KeySpaceRanges> = { version: null, items: [] };
  private moveList: Decoded<MapVersion, RangeMove> = { version: null, items: [] };

  /** `changes`: tells which records of partitions were written; null: nobody knows. */
  constructor(
    rows: ReadableRows,
    private readonly changes: ChangedRecords | null = null,
  ) {
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
      this.partitionMap = { version, items: this.readPartitions() };
    }
    return this.partitionMap.items;
  }

  /** Partitions that are not removed. */
  livingPartitions(): number {
    return this.partitions().filter(({ state }) => state !== "Removed").length;
  }

  /**
   * There was a partition of that id, and it is removed for good: it owns nothing, and nobody hosts
   * it. The records of long removed ones are gone, and no id is used twice (P-103).
   */
  isRemoved(partitionId: number): boolean {
    const record = this.partition(partitionId);
    if (record !== null) return record.state === "Removed";
    return partitionId >= 1 && partitionId < (this.cluster()?.nextPartitionId ?? 0);
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
    const version = this.cluster()?.mapVersion ?? null;
    if (version !== this.spaceList.version) {
      const spaces = new Map<string, RangeDescriptor[]>();
      for (const { keySpace, descriptor } of this.allRanges()) {
        const descriptors = spaces.get(keySpace);
        if (descriptors === undefined) spaces.set(keySpace, [descriptor]);
        else descriptors.push(descriptor);
      }
      const items: KeySpaceRanges[] = [];
      for (const [keySpace, descriptors] of spaces) items.push({ keySpace, descriptors });
      items.sort((a, b) => compareText(a.keySpace, b.keySpace));
      this.spaceList = { version, items };
    }
    return this.spaceList.items;
  }

  /** The descriptors of all key spaces, those of one together and by start key, with their age. */
  allRanges(): readonly RangeRow[] {
    const version = this.cluster()?.mapVersion ?? null;
    if (version !== this.rangeList.version) {
      this.rangeList = { version, items: this.rangeRows("", null) };
    }
    return this.rangeList.items;
  }

  /** The move of a range of the key space that is under way. */
  move(keySpace: string): RangeMove | null {
    const key = nameKey(keySpace);
    const bytes = key === null ? null : this.rows.get(RowKind.rangeMove, key);
    return bytes === null ? null : present(decodeMove(bytes), "the row of a move is whole");
  }

  /** All moves under way, by key space. */
  moves(): readonly RangeMove[] {
    const version = this.cluster()?.mapVersion ?? null;
    if (version !== this.moveList.version) {
      const items = this.all(RowKind.rangeMove, decodeMove, "the row of a move is whole");
      this.moveList = { version, items };
    }
    return this.moveList.items;
  }

  /** Somebody asked that nothing is moved without need, and that is not over at `leaseMs`. */
  isPlannerHeld(leaseMs: number): boolean {
    return isPlannerHeld(this.rows, leaseMs);
  }

  /** The key space is to be unregistered once all of it is back at its hash partition. */
  isLeaving(keySpace: string): boolean {
    const key = nameKey(keySpace);
    return key !== null && this.rows.get(RowKind.leavingKeySpace, key) !== null;
  }

  /** The key spaces that are. */
  leavingKeySpaces(): readonly string[] {
    const found: string[] = [];
    this.rows.scan(RowKind.leavingKeySpace, "", null, (name) => {
      found.push(byteKeyToText(name));
      return true;
    });
    return found;
  }

  private readPartitions(): readonly PartitionRecord[] {
    const what = "a partition row is whole";
    const changed = this.changes?.takeChanged() ?? null;
    const { items } = this.partitionMap;
    if (changed === null || changed.size > items.length / CHANGED_PART) {
      return this.all(RowKind.partition, decodePartition, what);
    }
    const ids = [...changed].map((name) => readUint32Key(name, 0));
    const now = new Map(ids.map((id) => [id, this.partition(id)]));
    const kept = items.map((record) => now.get(record.partitionId) ?? record);
    const left = kept.filter(({ partitionId }) => now.get(partitionId) !== null);
    const known = new Set(items.map(({ partitionId }) => partitionId));
    const fresh = [...now].filter(([id, record]) => record !== null && !known.has(id));
    if (fresh.length === 0) return left;
    for (const [, record] of fresh) left.push(present(record, what));
    return left.sort((a, b) => a.partitionId - b.partitionId);
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
