/**
 * How far moves of replicas are, as the leader of meta sees it in one leadership: since when each
 * partition is on the move, and when its new replica got on last.
 *
 * Invariants: 1. A replica that comes again begins anew; figures of its life before count nothing.
 * 2. Whoever told less than before says nothing: another leader of the group measures anew. 3. What
 * is kept is bounded by the partitions there are.
 */
import type { PartitionRecord, ReplicaRecord } from "../machine/commands/command.js";

/** What the leader of a group tells of a replica that comes to it. */
export interface ArrivalFigures {
  /** Last entry that is known to be there. */
  readonly matchIndex: number;
  /** Chunks of a snapshot that were acknowledged. */
  readonly snapshotChunks: number;
}

interface Arrival extends ArrivalFigures {
  readonly nodeId: number;
  readonly incarnation: number;
  readonly atMs: number;
}

const NOTHING: ArrivalFigures = { matchIndex: 0, snapshotChunks: 0 };

export class MoveProgress {
  private readonly arrivals = new Map<number, Arrival>();
  private readonly sinceMs = new Map<number, number>();
  private hasMoved = false;

  /** The records changed; `isFirst`: nothing was known before. */
  note(partitions: readonly PartitionRecord[], isFirst: boolean, nowMs: number): void {
    if (!isFirst) this.hasMoved = true;
    for (const { partitionId, state, replicas } of partitions) {
      const isAtRest = state === "Removed" || replicas.every(({ role }) => role === "voter");
      if (isAtRest) this.sinceMs.delete(partitionId);
      else if (!this.sinceMs.has(partitionId)) this.sinceMs.set(partitionId, nowMs);
      if (!replicas.some(({ role }) => role === "learner")) this.arrivals.delete(partitionId);
    }
  }

  /** For so long the longest of the moves is under way, as far as it was seen (ms). */
  oldestMs(nowMs: number): number {
    let since = nowMs;
    for (const each of this.sinceMs.values()) since = Math.min(since, each);
    return nowMs - since;
  }

  /** When the learner got on last. `told`: undefined when its leader has not told of it. */
  advanced(
    partitionId: number,
    learner: Pick<ReplicaRecord, "nodeId" | "incarnation">,
    told: ArrivalFigures | undefined,
    nowMs: number,
  ): number {
    const { nodeId, incarnation } = learner;
    const known = this.arrivals.get(partitionId);
    const isSame = known?.nodeId === nodeId && known.incarnation === incarnation;
    const before = isSame ? known : NOTHING;
    const now = told ?? NOTHING;
    const hasMoved =
      now.matchIndex > before.matchIndex || now.snapshotChunks > before.snapshotChunks;
    if (isSame && !hasMoved) return known.atMs;
    if (hasMoved) this.hasMoved = true;
    this.arrivals.set(partitionId, {
      ...{ nodeId, incarnation, atMs: nowMs },
      matchIndex: Math.max(now.matchIndex, before.matchIndex),
      snapshotChunks: Math.max(now.snapshotChunks, before.snapshotChunks),
    });
    return nowMs;
  }

  /** Whether anything moved since this was asked last. */
  takeMoved(): boolean {
    const { hasMoved } = this;
    this.hasMoved = false;
    return hasMoved;
  }
}
