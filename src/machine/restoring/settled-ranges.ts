/**
 * Ends every move of a key range where the cluster goes on from what one node has: the map and the
 * partitions say the same of each key afterwards, and nothing is under way.
 *
 * Writes rows of groups that no log is applied to. Invariants: 1. What agrees already is not
 * touched: settling again changes nothing. 2. Rows of keys that a partition does not have are left
 * to be purged, as after any move. 3. The version of the map is above every move that a row names,
 * so that none is begun under its number (P-101). 4. No id is given to a new partition under which
 * something is here (P-103). 5. Stamps go on above those of the keys that were taken in.
 */
import { present } from "../../base/assert.js";
import { type Hlc, compareHlc } from "../../base/hlc.js";
import {
  FIRST_ATTEMPT,
  type MapVersion,
  mapVersion,
  moveId,
  next,
  rangeGeneration,
} from "../../base/ids.js";
import { hashPartition, keySpaceHashText } from "../../base/routing.js";
import type { ClusterRecord, PartitionRecord, RangeDescriptor } from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import type { MetaContext } from "../meta/meta-context.js";
import { bornPartition } from "../meta/meta-placement.js";
import type { MetaReads } from "../meta/meta-reads.js";
import { encodePartition } from "../meta/meta-rows.js";
import { raiseMap, storeRanges } from "../meta/range-changes.js";
import {
  type KeyInterval,
  NOTHING_FILLED,
  type OwnershipRow,
  isSettled,
  isWithin,
} from "../ownership/ownership-row.js";
import type { CopySource } from "../ranges/copy-source.js";
import { RowKind, nameKey, textToByteKey, uint32Key } from "../store/keys.js";
import {
  type KnownPartition,
  type MappedSpace,
  type OwnedInterval,
  joined,
  ownersOf,
  piecesOf,
  whole,
} from "./range-owners.js";

/** A machine that no log is applied to. */
export interface StillGroup extends KnownPartition {
  readonly meta: MetaReads;
  readonly reads: {
    kvGet(key: string, revision: bigint, leaseNowMs: number): { readonly lastModified: Hlc };
  };
  openCopy(interval: KeyInterval, leaseNowMs: () => number): CopySource;
  /** Changes rows of the group, which are stored with its record. */
  rewrite(change: (context: MetaContext) => void): void;
}

/** One key space, and who has which keys of it from now on. */
export interface SettledSpace {
  readonly keySpace: string;
  readonly home: number;
  /** By start key, without a gap. */
  readonly owners: readonly OwnedInterval[];
}

/** What the map says now. */
export interface SettledRanges {
  readonly spaces: readonly SettledSpace[];
  readonly mapVersion: MapVersion;
  readonly poolSize: number;
}

/**
 * Settles all key spaces; `groups`: all that are here, the meta partition too. Returns what groups
 * are to have that are made afterwards.
 */
export function settleRanges(meta: StillGroup, groups: readonly StillGroup[]): SettledRanges {
  const cluster = present(meta.meta.cluster(), "the cluster was founded");
  const spaces = mappedSpaces(meta, cluster, groups);
  const settled = spaces.map((space): SettledSpace => {
    const { keySpace, home } = space;
    return { keySpace, home, owners: ownersOf(space, groups, hasAllOf) };
  });
  const isDone = spaces.every((space, at) => {
    return space.move === null && isMapped(space, present(settled[at], "the same"));
  });
  const isAlike = groups.every((group) => settled.every((space) => isDue(group, space) === null));
  const { dataPartitions: poolSize, nextPartitionId } = cluster;
  if (isDone && isAlike && highestGroup(groups) < nextPartitionId) {
    return { spaces: settled, mapVersion: cluster.mapVersion, poolSize };
  }
  let version = latestMove(cluster, groups);
  meta.rewrite((context) => {
    spaces.forEach((space, at) => settleMap(context, space, present(settled[at], "the same")));
    settlePartitions(context, cluster, settled);
    const above = {
      ...cluster,
      mapVersion: version,
      nextPartitionId: Math.max(nextPartitionId, highestGroup(groups) + 1),
    };
    version = raiseMap(context, above, "topology");
  });
  const ranges = { spaces: settled, mapVersion: version, poolSize };
  for (const group of groups) settleGroup(group, ranges);
  return ranges;
}

/** Gives a group the rows by which it owns what is its. */
export function settleGroup(
  group: StillGroup,
  { spaces, mapVersion: version }: SettledRanges,
): void {
  for (const space of spaces) {
    const due = isDue(group, space);
    if (due === null) continue;
    group.rewrite((context) => {
      raiseStamp(context, space, group.group);
      context.ownership.carve(context.rows, whole(space.keySpace));
      for (const { state, isPurged, ...bounds } of due) {
        context.ownership.assign(context.rows, {
          ...{ keySpace: space.keySpace, ...bounds, state, isPurged, purgedTo: null },
          ...{ generation: rangeGeneration(1), moveId: moveId(version), attempt: FIRST_ATTEMPT },
          ...NOTHING_FILLED,
        });
      }
    });
  }
}

function mappedSpaces(
  { meta }: StillGroup,
  cluster: ClusterRecord,
  known: readonly KnownPartition[],
): readonly MappedSpace[] {
  const names = new Set(meta.keySpaces().map(({ keySpace }) => keySpace));
  for (const { ownership } of known) {
    for (const { keySpace } of ownership.all()) names.add(keySpace);
  }
  return [...names].map((keySpace) => ({
    keySpace,
    home: hashPartition(keySpaceHashText(keySpace), cluster.dataPartitions),
    ranges: meta.ranges(keySpace),
    move: meta.move(keySpace),
  }));
}

/** Rows that are looked at in one go. */
const BOUNDS = { maxBytes: 1 << 20, maxVisits: 4096 };

/** By the stamps of the keys, which go along with them and never fall. */
function hasAllOf(still: StillGroup, other: StillGroup, interval: KeyInterval): boolean {
  const copy = other.openCopy(interval, () => 0);
  try {
    for (let isEnd = false; !isEnd;) {
      const slice = copy.next(BOUNDS);
      if (slice === "overrun") return false;
      ({ isEnd } = slice);
      for (const { key } of slice.items) {
        const own = still.reads.kvGet(key, -1n, 0).lastModified;
        if (compareHlc(own, other.reads.kvGet(key, -1n, 0).lastModified) < 0) return false;
      }
    }
    return true;
  } finally {
    copy.close();
  }
}

function highestGroup(groups: readonly StillGroup[]): number {
  return groups.reduce((highest, { group }) => Math.max(highest, group), 0);
}

/** The version of the map, or of a move that it has not heard of. */
function latestMove(cluster: ClusterRecord, known: readonly KnownPartition[]): MapVersion {
  const moves = known.flatMap(({ ownership }) => ownership.all().map((row) => Number(row.moveId)));
  return mapVersion(Math.max(cluster.mapVersion, ...moves));
}

function isSame(one: OwnedInterval, { startKey, endKey, partitionId }: OwnedInterval): boolean {
  return one.startKey === startKey && one.endKey === endKey && one.partitionId === partitionId;
}

/** The map says of each key what is settled. */
function isMapped({ ranges, home }: MappedSpace, { owners }: SettledSpace): boolean {
  if (ranges.length === 0) return owners.every(({ partitionId }) => partitionId === home);
  const mapped = joined(ranges);
  return (
    mapped.length === owners.length &&
    mapped.every((one, at) => isSame(one, present(owners[at], "as many")))
  );
}

function settleMap(context: MetaContext, space: MappedSpace, settled: SettledSpace): void {
  const { keySpace, ranges, move } = space;
  if (move !== null) {
    context.rows.delete(RowKind.rangeMove, present(nameKey(keySpace), "a key space is a name"));
  }
  if (isMapped(space, settled)) return;
  const latest = ranges.reduce((most, { generation }) => Math.max(most, generation), 0);
  const generation = rangeGeneration(next(rangeGeneration(latest)));
  const after = settled.owners.map((owner): RangeDescriptor => {
    return ranges.find((range) => isSame(range, owner)) ?? { ...owner, generation };
  });
  storeRanges(context, keySpace, ranges, after);
}

/** No partition takes part in a move; one above the pool is there while a range lies on it. */
function settlePartitions(
  context: MetaContext,
  cluster: ClusterRecord,
  settled: readonly SettledSpace[],
): void {
  const { meta } = context;
  const homes = new Map<number, number>();
  for (const { owners, home } of settled) {
    for (const { partitionId } of owners) homes.set(partitionId, home);
  }
  const store = (record: PartitionRecord): void => {
    context.rows.put(RowKind.partition, uint32Key(record.partitionId), encodePartition(record));
  };
  for (const record of meta.partitions()) {
    const isNeeded = record.partitionId <= cluster.dataPartitions || homes.has(record.partitionId);
    const state = isNeeded ? "Active" : "Removed";
    if (record.state !== state) store({ ...record, state, generation: next(record.generation) });
  }
  for (const [partitionId, home] of homes) {
    if (meta.partition(partitionId) !== null) continue;
    const source = present(meta.partition(home), "the pool is as it was founded");
    const born = bornPartition(partitionId, source, meta.members(), cluster.membershipVersion);
    store({ ...born, state: "Active" });
  }
}

type DueRow = Pick<OwnershipRow, "startKey" | "endKey" | "state" | "isPurged">;

/** The rows that the group should have of the key space; null: it has them. */
function isDue({ group, ownership }: StillGroup, space: SettledSpace): readonly DueRow[] | null {
  const { keySpace, home, owners } = space;
  const rows = ownership.rowsOf(textToByteKey(keySpace));
  const { ownsByDefault } = ownership;
  // Other partitions of the pool have nothing to do with it, and say nothing of it.
  if (rows.length === 0 && ownsByDefault && group !== home) return null;
  const own = owners.filter(({ partitionId }) => partitionId === group);
  const due: DueRow[] = [];
  let isRight = rows.every((row) => isSettled(row) || row.state === "left");
  for (const piece of piecesOf([...own, ...rows])) {
    const isOwner = own.some((interval) => isWithin(piece, interval));
    const row = rows.find((one) => isWithin(piece, one)) ?? null;
    if (ownership.ownsAll({ keySpace, ...piece }) !== isOwner) isRight = false;
    const wanted = isOwner ? owned(ownsByDefault) : notOwned(ownsByDefault, row);
    if (wanted === null) continue;
    const before = due.at(-1);
    const isSame = before?.state === wanted.state && before.isPurged === wanted.isPurged;
    const touches = before !== undefined && before.endKey === piece.startKey;
    if (isSame && touches) due[due.length - 1] = { ...before, endKey: piece.endKey };
    else due.push({ ...piece, ...wanted });
  }
  return isRight ? null : due;
}

type Wanted = Pick<OwnershipRow, "state" | "isPurged"> | null;

function owned(ownsByDefault: boolean): Wanted {
  return ownsByDefault ? null : { state: "here", isPurged: false };
}

function notOwned(ownsByDefault: boolean, row: OwnershipRow | null): Wanted {
  const isPurged = row === null ? !ownsByDefault : row.state === "left" && row.isPurged;
  return isPurged && !ownsByDefault ? null : { state: "left", isPurged };
}

function raiseStamp(context: DecisionContext, space: SettledSpace, group: number): void {
  for (const { startKey, endKey, partitionId } of space.owners) {
    if (partitionId !== group) continue;
    const interval = { keySpace: space.keySpace, startKey, endKey };
    for (const { stamp } of context.ownership.overlapping(interval)) {
      if (compareHlc(stamp, context.stamp) > 0) context.stamp = stamp;
    }
  }
}
