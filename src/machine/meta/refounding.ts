/**
 * How a cluster goes on that was restored, or that lost its majority for good: with one member, the
 * node whose directory it is.
 *
 * Pure decision over the rows of the context. Invariants: 1. Only a cluster without any member is
 * refounded, and only the one that the restore made: its id is new. 2. Every placed partition gets
 * the member as its only voter, in the life of a founding, since no life of before goes on.
 */
import { mapVersion, membershipVersion, next } from "../../base/ids.js";
import type { Member, MetaOutcome, RefoundClusterCommand } from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { RowKind, uint32Key } from "../store/keys.js";
import { isNodeId, isProgram, isText, outcome, supports } from "./meta-members.js";
import { refoundedPartition } from "./meta-placement.js";
import { MetaReads } from "./meta-reads.js";
import { encodeCluster, encodeMember, encodePartition } from "./meta-rows.js";

export function refoundCluster(
  context: DecisionContext,
  command: RefoundClusterCommand,
): MetaOutcome {
  const { rows } = context;
  const reads = new MetaReads(rows);
  const cluster = reads.cluster();
  if (cluster === null) return outcome("not-founded");
  const { nodeId, endpoint, storageId } = command.member;
  // Who is alone needs no address.
  const isPlace = endpoint === "" || isText(endpoint);
  const isKnown = storageId === "" || isText(storageId);
  if (!isNodeId(nodeId) || !isPlace || !isKnown || !isProgram(command.member)) {
    return outcome("invalid");
  }
  if (reads.members().length > 0) return outcome("unchanged", cluster.membershipVersion);
  if (command.clusterId !== cluster.clusterId) return outcome("invalid");
  if (!supports(command.member, cluster.level)) return outcome("level-unsupported");
  const joinedVersion = membershipVersion(next(cluster.membershipVersion));
  const line = { role: "voter", joinedVersion, evicted: false } as const;
  const member: Member = { ...command.member, ...line };
  rows.put(RowKind.member, uint32Key(nodeId), encodeMember(member));
  for (const record of reads.partitions()) {
    if (record.mode !== "placed" || record.state === "Removed") continue;
    const refounded = refoundedPartition(record, nodeId);
    rows.put(RowKind.partition, uint32Key(record.partitionId), encodePartition(refounded));
  }
  const raised = {
    ...cluster,
    membershipVersion: joinedVersion,
    mapVersion: mapVersion(next(cluster.mapVersion)),
  };
  rows.put(RowKind.cluster, "", encodeCluster(raised));
  return outcome("done", joinedVersion);
}
