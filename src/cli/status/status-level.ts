/**
 * The level of a cluster and what its nodes support, in words.
 *
 * Pure. Invariant: a node of which the range is not known is not said to support anything.
 */
import type { Overview } from "../../client/mod.js";

export interface LevelFacts {
  /** 0 = the cluster is not initialized, or no node could tell. */
  readonly level: number;
  /** What every member supports; = level while not all are known to support more. */
  readonly possible: number;
  /** Members that do not support what others do. */
  readonly behind: readonly number[];
}

export function levelFacts(overview: Overview | null): LevelFacts {
  if (overview === null || overview.level === 0) return { level: 0, possible: 0, behind: [] };
  const { level, nodes } = overview;
  const known = nodes.filter(({ levelMax }) => levelMax > 0);
  const supported = known.map(({ levelMax }) => levelMax);
  const highest = Math.max(level, ...supported);
  const behind = known.filter(({ levelMax }) => levelMax < highest).map(({ nodeId }) => nodeId);
  const isKnown = known.length === nodes.length;
  const possible = isKnown ? Math.max(level, Math.min(highest, ...supported)) : level;
  return { level, possible, behind };
}

/** One line; null when no node could tell. */
export function levelText({ level, possible, behind }: LevelFacts): string | null {
  if (level === 0) return null;
  if (possible > level) {
    return `Level: ${level}; all nodes support ${possible}: svc-cli --cluster-finalize raises it`;
  }
  if (behind.length === 0) return `Level: ${level}`;
  const nodes = `${behind.length === 1 ? "node" : "nodes"} ${behind.join(", ")}`;
  return `Level: ${level}; others support more than ${nodes}`;
}
