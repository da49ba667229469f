/** Lines of the member list for tests: what a member's row and the commands about it hold beside what matters. */
import { attempt, membershipVersion, moveId, rangeGeneration } from "../../../src/base/ids.js";
import { PROGRAM, listedProgram } from "../../../src/base/levels.js";
import type { Command, Member, NewMember } from "../../../src/machine/commands/command.js";

/** What a command says of a node that founds, joins or tells its line. */
export function newMember(nodeId: number, endpoint: string, storageId: string): NewMember {
  return { nodeId, endpoint, storageId, ...listedProgram(PROGRAM) };
}

/** A row: of a voter that joined as the membership version was its id, where nothing else is said. */
export function member(nodeId: number, more: Partial<Member> = {}): Member {
  return {
    ...newMember(nodeId, `n${nodeId}:1`, `s${nodeId}`),
    role: "voter",
    joinedVersion: membershipVersion(nodeId),
    evicted: false,
    ...more,
  };
}

const MOVE = { keySpace: "k", moveId: moveId(9) };

/** One command of each kind about members, factors and ranges, as a founded cluster takes them. */
export const CLUSTER_COMMANDS: readonly Command[] = [
  { kind: "update-member", ...newMember(1, "h:2", "s1") },
  { kind: "add-member", ...newMember(3, "h:3", "s3") },
  { kind: "set-member-role", nodeId: 3, role: "leaving" },
  { kind: "remove-member", nodeId: 3 },
  { kind: "set-replication-factor", partitionId: 1, replicationFactor: 2 },
  { kind: "register-range", keySpace: "k", partitionId: 1 },
  {
    ...{ kind: "begin-move", move: "split", keySpace: "k", startKey: "k/m", endKey: null },
    ...{ source: 1, target: 0, generation: rangeGeneration(1) },
  },
  { kind: "retry-move", ...MOVE, attempt: attempt(1) },
  { kind: "cut-range", ...MOVE, attempt: attempt(2) },
  { kind: "abort-move", ...MOVE, reason: "deadline" },
  { kind: "finish-move", ...MOVE, side: "source" },
  { kind: "unregister-range", keySpace: "k" },
];
