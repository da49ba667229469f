/**
 * Commands of the meta partition about members: who is in the member list, in which role, under
 * which address and with which data directory.
 *
 * Pure decisions over the rows of the context. Invariants: 1. Each change raises membershipVersion
 * by one; a repeat is "unchanged" (P-094). 2. A member is one data directory: the same id with
 * another one is refused until the member was removed (P-090). 3. A removed id comes back only with
 * a data directory that no former life of it had (P-096, P-097). 4. At most VOTERS_MAX members
 * vote, one at least stays, and one at a time is leaving. 5. Every member supports the level of the
 * cluster (P-030). 6. Who is evicted never gets a role again: it leaves (P-095).
 */
import { assert, unreachable } from "../../base/assert.js";
import { isWellFormedText } from "../../base/bytes.js";
import { next, type Level } from "../../base/ids.js";
import {
  FORMER_STORAGE_IDS_MAX,
  LEVEL_NUMBER_MAX,
  MEMBERS_MAX,
  NAME_MAX_BYTES,
  NODE_ID_MAX,
  PROGRAM_VERSION_MAX_BYTES,
  VOTERS_MAX,
} from "../../base/limits.js";
import type {
  AddMemberCommand,
  ClusterRecord,
  EvictMemberCommand,
  Member,
  MemberRole,
  MetaOutcome,
  MetaStatus,
  ProgramLevels,
  RemoveMemberCommand,
  SetMemberRoleCommand,
  UpdateMemberCommand,
} from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { RowKind, uint32Key } from "../store/keys.js";
import { MetaReads } from "./meta-reads.js";
import { isListed } from "./replica-list.js";
import { encodeCluster, encodeFormerMember, encodeMember } from "./meta-rows.js";

export type MemberCommand =
  | UpdateMemberCommand
  | AddMemberCommand
  | SetMemberRoleCommand
  | EvictMemberCommand
  | RemoveMemberCommand;

const NO_ITEMS: MetaOutcome["items"] = [];

export function outcome(
  status: MetaOutcome["status"],
  generation = 0,
  items = NO_ITEMS,
): MetaOutcome {
  return { kind: "meta", status, generation, items };
}

export function isText(text: string): boolean {
  return text.length >= 1 && text.length <= NAME_MAX_BYTES && isWellFormedText(text);
}

export function isNodeId(id: number): boolean {
  return Number.isInteger(id) && id >= 1 && id <= NODE_ID_MAX;
}

/** Whether there may be a partition of this id; every one has a key of its own. */
export function isPartitionId(id: number): boolean {
  return Number.isInteger(id) && id >= 1 && id <= 0xffff_ffff;
}

/** Whether a program of these levels can work at `level`. */
export function supports({ levelMin, levelMax }: ProgramLevels, level: Level): boolean {
  return levelMin <= level && level <= levelMax;
}

const VISIBLE_ASCII = /^[\x20-\x7e]*$/;

export function isProgram({ levelMin, levelMax, version }: ProgramLevels): boolean {
  if (levelMin < 1 || levelMax > LEVEL_NUMBER_MAX || levelMin > levelMax) return false;
  return version.length <= PROGRAM_VERSION_MAX_BYTES && VISIBLE_ASCII.test(version);
}

export function isSameProgram(one: ProgramLevels, other: ProgramLevels): boolean {
  if (one.levelMin !== other.levelMin || one.levelMax !== other.levelMax) return false;
  return one.version === other.version;
}

/** What a row or command says of a program. */
export function programOf({ levelMin, levelMax, version }: ProgramLevels): ProgramLevels {
  return { levelMin, levelMax, version };
}

/** The cluster at its next membership version, stored. */
function raiseVersion(context: DecisionContext, cluster: ClusterRecord): MetaOutcome {
  const membershipVersion = next(cluster.membershipVersion);
  const raised = { ...cluster, membershipVersion };
  context.rows.put(RowKind.cluster, "", encodeCluster(raised));
  return outcome("done", membershipVersion);
}

function storeMember(context: DecisionContext, member: Member): void {
  context.rows.put(RowKind.member, uint32Key(member.nodeId), encodeMember(member));
}

function updateMember(
  context: DecisionContext,
  cluster: ClusterRecord,
  command: UpdateMemberCommand,
): MetaOutcome {
  const { nodeId, endpoint, storageId } = command;
  const known = storageId === "" || isText(storageId);
  const reads = new MetaReads(context.rows);
  const isAlone = endpoint === "" && reads.members().length === 1;
  const isPlace = isText(endpoint) || isAlone;
  if (!isNodeId(nodeId) || !isPlace || !known || !isProgram(command)) return outcome("invalid");
  const member = reads.member(nodeId);
  if (member === null) return outcome("invalid");
  const version = cluster.membershipVersion;
  const keeps = storageId === "" || storageId === member.storageId;
  if (!keeps && member.storageId !== "") return outcome("storage-lost", version);
  if (!supports(command, cluster.level)) return outcome("level-unsupported", version);
  if (keeps && member.endpoint === endpoint && isSameProgram(member, command)) {
    return outcome("unchanged", version);
  }
  const line = { endpoint, storageId: keeps ? member.storageId : storageId };
  storeMember(context, { ...member, ...line, ...programOf(command) });
  return raiseVersion(context, cluster);
}

function addMember(
  context: DecisionContext,
  cluster: ClusterRecord,
  command: AddMemberCommand,
): MetaOutcome {
  const { nodeId, endpoint, storageId } = command;
  const isWhole = isText(endpoint) && isText(storageId) && isProgram(command);
  if (!isNodeId(nodeId) || !isWhole) return outcome("invalid");
  const reads = new MetaReads(context.rows);
  const version = cluster.membershipVersion;
  const member = reads.member(nodeId);
  if (member !== null) {
    // Of a member whose directory is not known, nobody can tell whether this one is it.
    if (member.storageId !== storageId) return outcome("storage-lost", version);
    if (!supports(command, cluster.level)) return outcome("level-unsupported", version);
    if (member.endpoint === endpoint && isSameProgram(member, command)) {
      return outcome("unchanged", version);
    }
    storeMember(context, { ...member, endpoint, ...programOf(command) });
    return raiseVersion(context, cluster);
  }
  if (reads.formerMember(nodeId)?.storageIds.includes(storageId) === true) {
    return outcome("was-removed", version);
  }
  if (!supports(command, cluster.level)) return outcome("level-unsupported", version);
  if (reads.members().length >= MEMBERS_MAX) return outcome("too-many-members", version);
  const joined = { nodeId, endpoint, role: "learner", joinedVersion: next(version) } as const;
  const row = encodeMember({ ...joined, storageId, evicted: false, ...programOf(command) });
  context.rows.insert(RowKind.member, uint32Key(nodeId), row);
  return raiseVersion(context, cluster);
}

function mayBecome(from: MemberRole, to: MemberRole): boolean {
  // A voter goes back to learner only by leaving and joining again.
  return !(from === "voter" && to === "learner");
}

function setRole(
  context: DecisionContext,
  cluster: ClusterRecord,
  command: SetMemberRoleCommand,
): MetaOutcome {
  const { nodeId, role } = command;
  const version = cluster.membershipVersion;
  const reads = new MetaReads(context.rows);
  const member = isNodeId(nodeId) ? reads.member(nodeId) : null;
  if (member === null) return outcome("not-a-member", version);
  if (member.role === role) return outcome("unchanged", version);
  if (member.evicted || !mayBecome(member.role, role)) return outcome("invalid", version);
  const refusal = roleRefusal(reads, nodeId, role);
  if (refusal !== null) return outcome(refusal, version);
  storeMember(context, { ...member, role });
  return raiseVersion(context, cluster);
}

/** What the others say against a role of a member. */
function roleRefusal(reads: MetaReads, nodeId: number, role: MemberRole): MetaStatus | null {
  const others = reads.members().filter((other) => other.nodeId !== nodeId);
  const voters = others.filter((other) => other.role === "voter").length;
  const leaving = others.filter((other) => other.role === "leaving").length;
  if (role === "voter" && voters + leaving >= VOTERS_MAX) return "too-many-voters";
  if (role === "leaving" && leaving > 0) return "drain-in-progress";
  return role !== "voter" && voters === 0 ? "last-voter" : null;
}

function evictMember(
  context: DecisionContext,
  cluster: ClusterRecord,
  { nodeId }: EvictMemberCommand,
): MetaOutcome {
  const version = cluster.membershipVersion;
  const reads = new MetaReads(context.rows);
  const member = isNodeId(nodeId) ? reads.member(nodeId) : null;
  if (member === null) return outcome("not-a-member", version);
  if (member.evicted) return outcome("unchanged", version);
  const refusal = roleRefusal(reads, nodeId, "leaving");
  if (refusal !== null) return outcome(refusal, version);
  storeMember(context, { ...member, role: "leaving", evicted: true });
  return raiseVersion(context, cluster);
}

function removeMember(
  context: DecisionContext,
  cluster: ClusterRecord,
  command: RemoveMemberCommand,
): MetaOutcome {
  const { nodeId } = command;
  const version = cluster.membershipVersion;
  const reads = new MetaReads(context.rows);
  const member = isNodeId(nodeId) ? reads.member(nodeId) : null;
  if (member === null) return outcome("unchanged", version);
  const others = reads.members().filter((other) => other.nodeId !== nodeId);
  if (others.some((other) => other.role === "leaving")) {
    return outcome("drain-in-progress", version);
  }
  // A list of replicas may have come since this was decided on.
  const isNamed = reads.partitions().some((record) => isListed(record, nodeId));
  if (isNamed) return outcome("busy", version);
  if (!others.some((other) => other.role === "voter")) return outcome("last-voter", version);
  const earlier = reads.formerMember(nodeId)?.storageIds ?? [];
  const storageIds = member.storageId === "" ? [...earlier] : [...earlier, member.storageId];
  const former = {
    nodeId,
    removedVersion: next(version),
    storageIds: storageIds.slice(-FORMER_STORAGE_IDS_MAX),
  };
  context.rows.delete(RowKind.member, uint32Key(nodeId));
  context.rows.put(RowKind.formerMember, uint32Key(nodeId), encodeFormerMember(former));
  return raiseVersion(context, cluster);
}

/** Decides one command about a member. */
export function applyMember(context: DecisionContext, command: MemberCommand): MetaOutcome {
  const cluster = new MetaReads(context.rows).cluster();
  if (cluster === null) return outcome("not-founded");
  assert(cluster.membershipVersion >= 1, "a founded cluster has a membership version");
  switch (command.kind) {
    case "update-member":
      return updateMember(context, cluster, command);
    case "add-member":
      return addMember(context, cluster, command);
    case "set-member-role":
      return setRole(context, cluster, command);
    case "evict-member":
      return evictMember(context, cluster, command);
    case "remove-member":
      return removeMember(context, cluster, command);
    default:
      return unreachable(command);
  }
}
