/**
 * Whether a node may be added under an id now, as the leader of the meta partition sees it.
 *
 * A group that still lists an id has a leader that remembers how far the former life of that node
 * had come: a node that begins anew under it would be told of commits that its log does not hold.
 * (The groups of removed partitions do not count: whoever has one still knows no newer member list
 * than the removal, has the former data directory of the node in it, and lets no other one in.)
 * Pure. Invariants: 1. An id is free only when every group can be seen and none lists it (P-097).
 * 2. Nothing is refused for good from here: what stands against it may be over with the next entry.
 */
import type { ClusterView } from "../../control/membership.js";
import type { AddMemberCommand } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import { allMembers } from "../../raft/state/membership.js";

/**
 * "propose": the command decides it. "held": another data directory has the id, by what is applied
 * here. "later": a former life of the node is listed, or cannot be excluded.
 */
export function judgeId(
  command: AddMemberCommand,
  metaReads: MetaReads | null,
  view: ClusterView | null,
): "propose" | "held" | "later" {
  if (metaReads === null || view === null) return "later";
  const member = metaReads.member(command.nodeId);
  if (member !== null) return member.storageId === command.storageId ? "propose" : "held";
  const isFree = view.groups.every(({ membership, isFresh }) => {
    return isFresh && !allMembers(membership).includes(command.nodeId);
  });
  return isFree && !view.placedOn.has(command.nodeId) ? "propose" : "later";
}
