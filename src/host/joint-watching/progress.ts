/**
 * How far a joint watch is, by partition, and what its cursor says of that (W5).
 *
 * Owns the positions. Invariants: 1. A cursor is that of an ordinary watch of the same kind and
 * name. 2. A position is of a partition that the watch covers.
 */
import { WatchMessageType } from "../../base/result-types.js";
import { queryOf } from "../watching/filters.js";
import {
  type Position,
  type Positions,
  clusterMark,
  decodePositions,
  encodePositions,
  within,
} from "../watching/positions.js";
import type { PartMessage } from "./parts.js";

export class Progress {
  private readonly positions = new Map<number, Position>();
  /** By partition, when it was level last (monotonic ms). */
  private readonly levelMs = new Map<number, number>();
  private readonly query: string;
  /** Revisions are gone, and nothing was told behind that (W8). */
  private hasGap = false;

  constructor(
    { kind, name }: { readonly kind: number; readonly name: string },
    private readonly clusterId: () => string,
  ) {
    this.query = queryOf(kind, name);
  }

  /**
   * Begins behind the cursor, of a watch of these partitions. "foreign": it is of another cluster;
   * "other": and of partitions that are not among them; null: it is none of this.
   */
  goOn(cursor: string, partitions: ReadonlySet<number>): "ours" | "other" | "foreign" | null {
    const at = this.decoded(cursor, [...partitions]);
    if (at === null || at === "foreign") return at;
    for (const [partition, position] of at) this.positions.set(partition, position);
    return [...at.keys()].every((each) => partitions.has(each)) ? "ours" : "other";
  }

  /** A part of these partitions told this at `nowMs`: how far it is, if it has a cursor. */
  note(partitions: readonly number[], message: PartMessage, nowMs: number): void {
    const { type, cursor, merged, staleMs } = message;
    this.hasGap ||= type === WatchMessageType.mark && merged;
    for (const each of partitions) this.levelMs.set(each, nowMs - staleMs);
    const at = cursor === null ? null : this.decoded(cursor, partitions);
    if (at === null || at === "foreign") return;
    for (const [partition, position] of within(at, partitions)) {
      this.positions.set(partition, position);
    }
  }

  has(partition: number): boolean {
    return this.positions.has(partition);
  }

  /** Forgets all but these partitions. */
  keep(partitions: ReadonlySet<number>): void {
    for (const known of [this.positions, this.levelMs]) {
      for (const each of [...known.keys()]) if (!partitions.has(each)) known.delete(each);
    }
  }

  clear(): void {
    this.positions.clear();
    this.hasGap = false;
  }

  /** Whether what is told now is the first behind revisions that are gone. */
  takeGap(): boolean {
    const { hasGap } = this;
    this.hasGap = false;
    return hasGap;
  }

  /** Null: of all partitions. */
  cursorOf(partitions: readonly number[] | null): string {
    const { positions } = this;
    const told = partitions === null ? positions : within(positions, partitions);
    return encodePositions(this.query, clusterMark(this.clusterId()), told);
  }

  /** A mark, without its cursor. */
  mark(nowMs: number): Pick<PartMessage, "type" | "staleMs" | "merged"> {
    const staleMs = this.staleMs(nowMs);
    return { type: WatchMessageType.mark, staleMs, merged: this.hasGap };
  }

  /** For how long some partition may not have been level with its leader (ms). */
  staleMs(nowMs: number): number {
    let staleMs = 0;
    for (const levelMs of this.levelMs.values()) staleMs = Math.max(staleMs, nowMs - levelMs);
    return Math.ceil(staleMs);
  }

  private decoded(cursor: string, known: readonly number[]): Positions | "foreign" | null {
    return decodePositions(this.query, clusterMark(this.clusterId()), cursor, known);
  }
}
