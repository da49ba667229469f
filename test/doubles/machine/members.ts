/** Lines of the member list for tests: what a member's row and the commands about it hold beside what matters. */
import { membershipVersion } from "../../../src/base/ids.js";
import type { Member, NewMember } from "../../../src/machine/commands/command.js";
import { UNKNOWN_PROGRAM } from "../../../src/machine/commands/meta-codec.js";

/** What a command says of a node that founds, joins or tells its line. */
export function newMember(nodeId: number, endpoint: string, storageId: string): NewMember {
  return { nodeId, endpoint, storageId, ...UNKNOWN_PROGRAM };
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
