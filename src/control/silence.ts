/**
 * Who counts as dead, so that its replicas are made anew elsewhere, and whom an operator may remove
 * by force (contract 5.3 rule 3, 5.4).
 *
 * Pure. Silences are lengths of time (ms), each measured by one process: whoever has listened for
 * ten seconds only knows of ten seconds. Invariants: 1. Nobody is dead on the word of one node: a
 * majority of the voters of the member list has to have heard nothing for as long (P-095). 2. The
 * leader of meta counts its own leadership only: a new one begins anew. 3. Whoever was heard lately
 * by anybody who answers is never removed by force. 4. Nobody is removed whose vote a partition
 * needs now.
 */
import type { Member, PartitionRecord } from "../machine/commands/command.js";
import { isListed } from "../machine/meta/replica-list.js";
import type { Membership } from "../raft/state/types.js";
import type { LeaveDecision } from "./membership.js";

type Line = Pick<Member, "nodeId" | "role">;

/** How long `by` has not heard `of` (ms); 0 = it hears it; null = it has not told lately. */
export type Silence = (by: number, of: number) => number | null;

export interface DeathFacts {
  /** This node, which leads meta. */
  readonly self: number;
  readonly members: readonly Line[];
  /** --raft-dead-member-timeout; 0 = nobody is ever dead. */
  readonly deadAfterMs: number;
  readonly leadingForMs: number;
  readonly silenceMs: Silence;
}

/** Members whose replicas are to be replaced, the rebalancer permitting. */
export function deadMembers(facts: DeathFacts): ReadonlySet<number> {
  const { self, members, deadAfterMs, leadingForMs, silenceMs } = facts;
  const dead = new Set<number>();
  if (deadAfterMs === 0 || leadingForMs < deadAfterMs) return dead;
  const voters = members.filter(({ role }) => role === "voter").map(({ nodeId }) => nodeId);
  const missedBy = (by: number, of: number): boolean => (silenceMs(by, of) ?? 0) >= deadAfterMs;
  for (const { nodeId } of members) {
    if (nodeId === self || !missedBy(self, nodeId)) continue;
    const witnesses = voters.filter((voter) => voter !== nodeId && missedBy(voter, nodeId));
    if (witnesses.length * 2 > voters.length) dead.add(nodeId);
  }
  return dead;
}

export interface EvictionFacts {
  /** The committed member list; null = not known yet. */
  readonly members: readonly Line[] | null;
  readonly nodeId: number;
  /** This node leads meta and has applied its own-term entry. */
  readonly servesMeta: boolean;
  /** Of this node and the voters that answered in time: who heard the member lately. */
  readonly heardBy: readonly number[];
  /** A partition, or meta, decides nothing without it: see `partitionsAtRisk`, `groupsAtRisk`. */
  readonly isNeeded: boolean;
}

/** What speaks first against the removal of a member that is gone; `remove` when nothing does. */
export function decideEviction(facts: EvictionFacts): LeaveDecision | "RefusedStillAlive" {
  const { members, nodeId, servesMeta, heardBy, isNeeded } = facts;
  if (members === null) return "NotInitialized";
  if (!members.some((member) => member.nodeId === nodeId)) return "NotAMember";
  if (!servesMeta) return "NoLeader";
  if (heardBy.length > 0) return "RefusedStillAlive";
  const others = members.filter((member) => member.nodeId !== nodeId);
  if (others.some(({ role }) => role === "leaving")) return "RefusedDrainInProgress";
  const isLast = !others.some(({ role }) => role === "voter");
  return isLast || isNeeded ? "RefusedInsufficientVoters" : "remove";
}

/**
 * Groups that follow the member list, count the node in, and in which the other voters that are
 * live are no majority.
 */
export function groupsAtRisk(
  memberships: readonly Membership[],
  nodeId: number,
  isLive: (node: number) => boolean,
): readonly Membership[] {
  return memberships.filter(({ voters, learners }) => {
    if (!voters.includes(nodeId) && !learners.includes(nodeId)) return false;
    const others = voters.filter((node) => node !== nodeId);
    return others.filter((node) => isLive(node)).length * 2 <= others.length;
  });
}

/**
 * Placed partitions that name the node and in which those that are live besides it are no majority:
 * nothing can be decided there without it. A replica that comes or goes may vote or not; where it
 * is not live it is counted as one that does.
 */
export function partitionsAtRisk(
  partitions: readonly PartitionRecord[],
  nodeId: number,
  isLive: (node: number) => boolean,
): readonly number[] {
  const isAtRisk = (record: PartitionRecord): boolean => {
    if (!isListed(record, nodeId)) return false;
    const { replicas } = record;
    const counts = (replica: PartitionRecord["replicas"][number]): boolean =>
      replica.role === "voter" || replica.nodeId === nodeId || !isLive(replica.nodeId);
    const voters = replicas.filter(counts).map((replica) => replica.nodeId);
    const live = voters.filter((node) => node !== nodeId && isLive(node));
    return live.length * 2 <= voters.length;
  };
  return partitions.filter(isAtRisk).map(({ partitionId }) => partitionId);
}
