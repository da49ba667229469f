/** What the list of a placed partition says of a node. Pure. */
import type { PartitionRecord } from "../commands/command.js";

/** The list names the node, in whatever role; in full mode, and when removed, there is none. */
export function isListed({ mode, state, replicas }: PartitionRecord, nodeId: number): boolean {
  if (mode === "full" || state === "Removed") return false;
  return replicas.some((replica) => replica.nodeId === nodeId);
}
