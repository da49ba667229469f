/**
 * Two properties of peace. Every move ends: no record of one is left, no row that says that an interval
 * leaves or arrives, nothing to be purged, and all partitions are active or removed. And no partition
 * keeps a value outside of the intervals that it owns.
 *
 * Pure: what there is is gathered by the world.
 */
import { Findings, type Verdict } from "../verdict.js";
import type { SeenPartition } from "./ids-once.js";

/** A partition on one node, as far as ranges matter. */
export interface SeenReplica {
  readonly node: number;
  readonly partition: number;
  /** Rows of ownership in words, of those that still have something to do. */
  readonly unfinished: readonly string[];
  /** Keys with rows that the partition does not own. */
  readonly strange: readonly string[];
}

export interface RangePeace {
  /** Moves in words. */
  readonly moves: readonly string[];
  /** Key spaces that leave. */
  readonly leaving: readonly string[];
  readonly partitions: readonly SeenPartition[];
  readonly replicas: readonly SeenReplica[];
}

/** What has not ended; null = everything has. */
export function unended({ moves, leaving, partitions, replicas }: RangePeace): string | null {
  if (moves.length > 0) return `a move is under way: ${moves.join("; ")}`;
  if (leaving.length > 0) return `key spaces leave: ${leaving.join(", ")}`;
  for (const { partitionId, state } of partitions) {
    if (state !== "Active" && state !== "Removed") return `partition ${partitionId} is ${state}`;
  }
  for (const { node, partition, unfinished } of replicas) {
    if (unfinished.length > 0) return `partition ${partition} of node ${node}: ${unfinished[0]}`;
  }
  return null;
}

/** What lies where it does not belong; null = nothing. */
export function leftOver({ replicas }: Pick<RangePeace, "replicas">): string | null {
  for (const { node, partition, strange } of replicas) {
    if (strange.length === 0) continue;
    return `partition ${partition} of node ${node} keeps ${strange.slice(0, 3).join(", ")}`;
  }
  return null;
}

export class Ends {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { "times of peace": 1 }) {
    this.findings = new Findings("every move ends", minimum);
  }

  settled(peace: RangePeace): void {
    this.findings.count("times of peace");
    const reason = unended(peace);
    if (reason !== null) this.findings.violation(reason);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}

export class NoLeftOvers {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { replicas: 3 }) {
    this.findings = new Findings("nothing is left behind by a move", minimum);
  }

  settled(peace: RangePeace): void {
    this.findings.count("replicas", peace.replicas.length);
    const reason = leftOver(peace);
    if (reason !== null) this.findings.violation(reason);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
