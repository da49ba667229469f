/**
 * What the list of ranges says of each key space beyond its routing: keys where they are known,
 * moves under way, and whether it is being unregistered.
 *
 * Invariants: 1. All of it is what this node has applied or counted; nothing is asked of others.
 * 2. A move is listed from its begin until both of its sides are done with it.
 */
import type { RangeMove } from "../../machine/commands/command.js";
import type { KeySpaceView, RangesAnswer } from "../api/administration.js";
import type { NodeAccess } from "../api/host-view.js";

type ListedSpace = RangesAnswer["keySpaces"][number];

function listedMove(move: RangeMove): ListedSpace["moves"][number] {
  const { moveId, kind, startKey, endKey, source, target, phase, attempt, reason } = move;
  return { moveId, kind, startKey, endKey, source, target, phase, attempt, reason };
}

export function listedSpaces(
  node: NodeAccess,
  views: readonly KeySpaceView[],
): readonly ListedSpace[] {
  const { meta } = node.metaGroup().machine;
  const moves = meta.moves();
  const leaving = new Set(meta.leavingKeySpaces());
  return views.map(({ keySpace, routingMode, ranges }) => {
    const descriptors = ranges.map((range) => {
      const { startKey, endKey, partitionId, generation } = range;
      const keys = node.knownRangeKeys?.({ keySpace, partitionId, startKey, endKey }) ?? null;
      return { startKey, endKey, partitionId, generation, keys };
    });
    const own = moves.filter((move) => move.keySpace === keySpace).map(listedMove);
    return { keySpace, routingMode, descriptors, moves: own, leaving: leaving.has(keySpace) };
  });
}
