/**
 * How far a watch is: for each partition the last entry that it was told of, and the cursor that
 * says so on every node (W5).
 *
 * Pure. Payload of a cursor: two xxh32 u32 of the cluster's id, number of parts, then of each
 * partition, first number u32 and how many they are, its l u53, c u32 and lease time u53. A part is
 * one partition; of more than PARTS_MAX neighbours share the earliest of their positions: more is
 * told again, nothing is lost. Invariants: 1. A cursor of another kind or name, or one that was
 * changed, is none. 2. A restored cluster has an id of its own, so that cursors of before are of
 * another cluster (W7).
 */
import { encodeText } from "../../base/bytes.js";
import { ByteReader, ByteWriter } from "../../base/codec.js";
import { WATCH_CURSOR_MAX_BYTES } from "../../base/limits.js";
import { openCursor, sealCursor } from "../../machine/kv/cursor.js";
import { xxh32 } from "../../machine/store/digest.js";

/** Behind the entry with this stamp, when the lease clock stood there. */
export interface Position {
  readonly l: number;
  readonly c: number;
  readonly leaseMs: number;
}

/** By partition. What is not in it was never looked at. */
export type Positions = ReadonlyMap<number, Position>;

/** Of the parts of one cursor. */
const PARTS_MAX = 200;
const PAYLOAD_MAX_BYTES = Math.floor((WATCH_CURSOR_MAX_BYTES * 3) / 4) - 16;

/** Whether what has this stamp came behind the position. */
export function isBehind(
  { l, c }: { readonly l: number; readonly c: number },
  at: Position,
): boolean {
  return l !== at.l ? l > at.l : c > at.c;
}

/** Behind nothing that either of them is not behind. */
export function earlier(a: Position, b: Position): Position {
  const { l, c } = isBehind(a, b) ? b : a;
  return { l, c, leaseMs: Math.min(a.leaseMs, b.leaseMs) };
}

/** Names the cluster in cursors. */
export interface ClusterMark {
  readonly low: number;
  readonly high: number;
}

export function clusterMark(clusterId: string): ClusterMark {
  const bytes = encodeText(clusterId);
  return { low: xxh32(bytes, 1) >>> 0, high: xxh32(bytes, 2) >>> 0 };
}

interface Part {
  readonly first: number;
  count: number;
  at: Position;
}

/** At most PARTS_MAX of them, each of neighbours. */
function partsOf(positions: Positions): Part[] {
  const sorted = [...positions].sort(([a], [b]) => a - b);
  const share = Math.ceil(sorted.length / PARTS_MAX);
  const parts: Part[] = [];
  for (const [place, [partition, at]] of sorted.entries()) {
    const last = parts.at(-1);
    if (last === undefined || place % share === 0) parts.push({ first: partition, count: 1, at });
    else {
      last.count = partition - last.first + 1;
      last.at = earlier(last.at, at);
    }
  }
  return parts;
}

/** `query`: names kind and name of the watch. */
export function encodePositions(query: string, mark: ClusterMark, positions: Positions): string {
  const writer = new ByteWriter(64);
  const parts = partsOf(positions);
  writer.uint32(mark.low).uint32(mark.high).length(parts.length);
  for (const { first, count, at } of parts) {
    writer.uint32(first).length(count).uint53(at.l).uint32(at.c).uint53(Math.max(0, at.leaseMs));
  }
  return sealCursor(query, writer.finish());
}

/** What `positions` says of some partitions. */
export function within(positions: Positions, partitions: Iterable<number>): Positions {
  const found = new Map<number, Position>();
  for (const partition of partitions) {
    const at = positions.get(partition);
    if (at !== undefined) found.set(partition, at);
  }
  return found;
}

/**
 * "foreign": of another cluster. Null: no cursor of this query. A part of neighbours names numbers
 * between them as well, which may be any partition, or none: of these, `known` ones alone are read.
 */
export function decodePositions(
  query: string,
  mark: ClusterMark,
  cursor: string,
  known: readonly number[],
): Positions | "foreign" | null {
  const payload = openCursor(query, cursor, PAYLOAD_MAX_BYTES);
  if (payload === null) return null;
  const reader = new ByteReader(payload);
  const low = reader.uint32();
  const isOurs = reader.uint32() === mark.high && low === mark.low;
  const parts = reader.length();
  const positions = new Map<number, Position>();
  for (let part = 0; part < parts && !reader.failed; part++) {
    const first = reader.uint32();
    const count = reader.length();
    const at = { l: reader.uint53(), c: reader.uint32(), leaseMs: reader.uint53() };
    if (count === 1) positions.set(first, at);
    else {
      for (const each of known) if (each >= first && each < first + count) positions.set(each, at);
    }
  }
  if (!reader.isComplete()) return null;
  return isOurs ? positions : "foreign";
}
