/**
 * Who may leave the cluster: the decision of contract 5.3, as a pure function of committed facts.
 *
 * May call machine records. Invariants: 1. Facts in, decision out; nothing is read or changed here.
 * 2. The last voter that any hosted partition needs never leaves. 3. One drain at a time.
 */
import type { Member } from "../machine/command.js";

export interface LeaveFacts {
  /** The committed roster; null = not known yet. */
  readonly members: readonly Member[] | null;
  readonly nodeId: number;
  /** The meta partition has a leader that was proved. */
  readonly metaLed: boolean;
  /** Voters other than this node, per partition that this node hosts. */
  readonly otherVoters: readonly number[];
}

export type LeaveDecision =
  | "NotInitialized"
  | "NotAMember"
  | "NoLeader"
  | "RefusedDrainInProgress"
  | "RefusedInsufficientVoters"
  /** Nothing speaks against the removal. */
  | "remove";

/** What speaks first against a node leaving; `remove` when nothing does. */
export function decideLeave(facts: LeaveFacts): LeaveDecision {
  const { members, nodeId } = facts;
  if (members === null) return "NotInitialized";
  if (!members.some((member) => member.nodeId === nodeId)) return "NotAMember";
  if (!facts.metaLed) return "NoLeader";
  const others = members.filter((member) => member.nodeId !== nodeId);
  if (others.some((member) => member.role === "leaving")) return "RefusedDrainInProgress";
  const voters = others.filter((member) => member.role === "voter").length;
  if (voters === 0 || facts.otherVoters.some((count) => count === 0)) {
    return "RefusedInsufficientVoters";
  }
  return "remove";
}
