/**
 * Reads of the meta partition: cluster record, members, partition map, range descriptors. Pure.
 *
 * Owns the lists that it decoded last: many ask for them at each change, and at each call, and so
 * do decisions. Invariants: 1. Lists are in the order of their keys: members and partitions by id,
 * key spaces by bytes, descriptors by start key with the open start first. 2. null = the cluster is
 * not founded, never an empty record. 3. Members are decoded once for each version of theirs: every
 * command that changes one raises it. 4. Partitions, ranges and moves are as their rows are now, in
 * the middle of a command too. Whose row was not written keeps its record, the same object: a map
 * of thousands costs what changed of it. 5. A list that was given out stays as it is. 6. The
 * cluster, members and partitions are decoded once for each change of theirs.
 */
import { present } from "../../base/assert.js";
import type { MembershipVersion } from "../../base/ids.js";
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
  nameKey,
  readUint32Key,
  uint32Key,
  type ByteKey,
} from "../store/keys.js";
import { DecodedRanges, type KeySpaceRanges } from "./decoded-ranges.js";
import {
  decodeCluster,
  decodeFormerMember,
  decodeMember,
  decodePartition,
  type RangeRow,
} from "./meta-rows.js";
import { isPlannerHeld } from "./planner-holds.js";
import { decodeMove } from "./range-rows.js";
import type { ChangedRecords, ReadableRows } from "../store/rows.js";

export type { KeySpaceRanges } from "./decoded-ranges.js";

/** The members as of one version; null = before the founding. */
interface DecodedMembers {
  readonly version: MembershipVersion | null;
  readonly items: readonly Member[];
}

/** Where more than this part of all records changed, all are read. */
const CHANGED_PART = 4;

export class MetaReads {
  private readonly rows: ReadableRows;
  /** Of the groups that are asked for it. */
  private decodedRanges: DecodedRanges | null = null;
  private memberList: DecodedMembers = { version: null, items: [] };
  private partitionMap: readonly PartitionRecord[] = [];
  private moveList: readonly RangeMove[] = [];
  // Every frame, every tick and every request asks for some of these.
  private clusterRecord: ClusterRecord | null = null;
  private readonly memberRecords = new Map<number, Member>();

  /** `changes`: tells which rows were written; null: nobody knows, and nothing is kept. */
  constructor(
    rows: ReadableRows,
    private readonly changes: ChangedRecords | null = null,
  ) {
    this.rows = rows;
  }

  cluster(): ClusterRecord | null {
    if (this.changes?.takeChanged(RowKind.cluster)?.size !== 0) {
      const bytes = this.rows.get(RowKind.cluster, "");
      const what = "the cluster record is whole";
      this.clusterRecord = bytes === null ? null : present(decodeCluster(bytes), what);
    }
    return this.clusterRecord;
  }

  member(nodeId: number): Member | null {
    const records = this.memberRecords;
    if (this.changes?.takeChanged(RowKind.member)?.size !== 0) records.clear();
    const known = records.get(nodeId);
    if (known !== undefined) return known;
    const bytes = this.rows.get(RowKind.member, uint32Key(nodeId));
    const member = bytes === null ? null : present(decodeMember(bytes), "a member row is whole");
    // Who is no member may have any id.
    if (member !== null) records.set(nodeId, member);
    return member;
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
    // In the middle of many changes the list is not made anew for each.
    if (this.changes?.hasChanged(RowKind.partition) !== false) {
      return this.readPartition(partitionId);
    }
    // It ascends by id.
    const records = this.partitionMap;
    let low = 0;
    let high = records.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const record = records[middle] as PartitionRecord;
      if (record.partitionId === partitionId) return record;
      if (record.partitionId < partitionId) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }

  private readPartition(partitionId: number): PartitionRecord | null {
    const bytes = this.rows.get(RowKind.partition, uint32Key(partitionId));
    return bytes === null ? null : present(decodePartition(bytes), "a partition row is whole");
  }

  partitions(): readonly PartitionRecord[] {
    const changed = this.changes?.takeChanged(RowKind.partition) ?? null;
    if (changed?.size !== 0) this.partitionMap = this.readPartitions(changed);
    return this.partitionMap;
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

  private get rangeMap(): DecodedRanges {
    this.decodedRanges ??= new DecodedRanges(this.rows, this.changes);
    return this.decodedRanges;
  }

  /** Descriptors of one key space by start key; empty when it is not registered or not a name. */
  ranges(keySpace: string): readonly RangeDescriptor[] {
    return this.rangeMap.of(keySpace);
  }

  /** All registered key spaces in byte order. */
  keySpaces(): readonly KeySpaceRanges[] {
    return this.rangeMap.keySpaces();
  }

  /** The descriptors of all key spaces, those of one together and by start key, with their age. */
  allRanges(): readonly RangeRow[] {
    return this.rangeMap.all();
  }

  /** The move of a range of the key space that is under way. */
  move(keySpace: string): RangeMove | null {
    const key = nameKey(keySpace);
    const bytes = key === null ? null : this.rows.get(RowKind.rangeMove, key);
    return bytes === null ? null : present(decodeMove(bytes), "the row of a move is whole");
  }

  /** All moves under way, by key space. */
  moves(): readonly RangeMove[] {
    if (this.changes?.takeChanged(RowKind.rangeMove)?.size !== 0) {
      this.moveList = this.all(RowKind.rangeMove, decodeMove, "the row of a move is whole");
    }
    return this.moveList;
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

  private readPartitions(changed: ReadonlySet<ByteKey> | null): readonly PartitionRecord[] {
    const what = "a partition row is whole";
    const items = this.partitionMap;
    if (changed === null || changed.size > items.length / CHANGED_PART) {
      return this.all(RowKind.partition, decodePartition, what);
    }
    const ids = [...changed].map((name) => readUint32Key(name, 0));
    const now = new Map(ids.map((id) => [id, this.readPartition(id)]));
    const kept = items.map((record) => now.get(record.partitionId) ?? record);
    const left = kept.filter(({ partitionId }) => now.get(partitionId) !== null);
    const known = new Set(items.map(({ partitionId }) => partitionId));
    const fresh = [...now].filter(([id, record]) => record !== null && !known.has(id));
    if (fresh.length === 0) return left;
    for (const [, record] of fresh) left.push(present(record, what));
    return left.sort((a, b) => a.partitionId - b.partitionId);
  }

  private all<Item>(
    kind: number,
    decode: (value: Uint8Array) => Item | null,
    what: string,
  ): readonly Item[] {
    const found: Item[] = [];
    this.rows.scan(kind, "", null, (_, value) => {
      found.push(present(decode(value), what));
      return true;
    });
    return found;
  }
}
