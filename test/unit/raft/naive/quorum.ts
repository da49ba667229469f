/**
 * Deliberately naive majorities: every subset of voters is tried. Second version of
 * src/raft/state/quorum.ts, and the judge of what a group of model nodes decided.
 */
import type { Membership } from "../../../../src/raft/state/types.js";

/** Whether those who `agrees` are more than half of the voters; nobody's agreement is always there. */
export function naiveMajority(voters: readonly number[], agrees: (id: number) => boolean): boolean {
  const different = [...new Set(voters)];
  return different.length === 0 || different.filter(agrees).length * 2 > different.length;
}

/** Whether a majority of each half agrees. */
export function naiveQuorum(membership: Membership, agrees: (id: number) => boolean): boolean {
  const { voters, votersOutgoing } = membership;
  return naiveMajority(voters, agrees) && naiveMajority(votersOutgoing, agrees);
}

/** The largest value in `values` (or Infinity) that a quorum has reached, by trying one after another. */
export function naiveIndex(
  membership: Membership,
  reached: (id: number) => number,
  values: readonly number[],
): number {
  const candidates = [Infinity, ...[...values].sort((left, right) => right - left), 0];
  for (const value of candidates) {
    if (naiveQuorum(membership, (id) => reached(id) >= value)) return value;
  }
  return 0;
}

/** The vote decided by asking: is it won now, and could it be won if everybody missing agreed? */
export function naiveVote(
  membership: Membership,
  ballot: (id: number) => boolean | undefined,
): "won" | "lost" | "pending" {
  if (naiveQuorum(membership, (id) => ballot(id) === true)) return "won";
  return naiveQuorum(membership, (id) => ballot(id) !== false) ? "pending" : "lost";
}
