/**
 * What must be true of a cluster some time after all faults ended: whoever is whole is up, belongs
 * to the cluster, votes, serves or follows, and knows the same.
 *
 * Pure: looks and changes nothing. Invariants: 1. Nodes whose data was damaged, and nodes that were
 * taken away, owe nothing. 2. What operators began is at its end.
 */
import { IDENTITY_KEY } from "../../../src/host/storage/identity.js";
import type { Atlas } from "../faults/fault-budget.js";
import type { Faults } from "../faults/faults.js";
import type { Operator } from "../members/operator.js";
import type { Placer } from "../members/placer.js";
import type { Server } from "../world/server.js";

export interface PeaceView {
  readonly servers: readonly Server[];
  readonly atlas: Atlas;
  readonly operator: Operator | null;
  readonly placer: Pick<Placer, "unfinished"> | null;
  readonly faults: Pick<Faults, "repairs">;
  /** Nodes that were removed and taken in again. */
  readonly replaced: number;
}

/** Why the cluster is not whole; null when it is. */
export function unsettled(view: PeaceView): string | null {
  const { servers, atlas, operator, placer, faults, replaced } = view;
  const unfinished = operator?.unfinished() ?? placer?.unfinished() ?? faults.repairs.unfinished();
  if (unfinished !== null) return unfinished;
  const digests = new Map<string, string>();
  const served = new Set<number>();
  const wanted = new Set<number>();
  for (const server of servers) {
    for (const group of server.running?.node.groups() ?? []) {
      if (group.isServing()) served.add(group.partition);
    }
    // Whatever it still does, nobody promised that it is whole.
    if (server.isLost || server.isDamaged || server.isRetired) continue;
    const { running, nodeId } = server;
    if (running === null) return `node ${nodeId} is not up`;
    const health = running.node.health();
    if (!health.ready) return `node ${nodeId} is not ready: ${health.reason ?? "?"}`;
    const { queuedBytes } = running.node.facts();
    if (queuedBytes > 0) return `node ${nodeId} counts ${queuedBytes} bytes of commands`;
    for (const group of running.node.groups()) {
      const { partition, machine } = group;
      wanted.add(partition);
      const digest = `${machine.appliedIndex} ${machine.chainDigest} ${machine.stateDigest}`;
      const other = digests.get(String(partition));
      if (other !== undefined && other !== digest) {
        return `partition ${partition} differs: ${other} and, on node ${nodeId}, ${digest}`;
      }
      digests.set(String(partition), digest);
    }
  }
  for (const partition of wanted) {
    if (!served.has(partition)) return `partition ${partition} has no serving leader`;
  }
  return operator === null && replaced === 0 ? null : strangers(servers, atlas, wanted);
}

/**
 * Why a cluster whose majority lost its disks is not as it should be then: whoever has its data is
 * up and not ready, the others wait, and no group is led; null when all of it is so.
 */
export function unsettledLoss({ servers }: PeaceView): string | null {
  for (const { nodeId, isUp, isDamaged, running, rows } of servers) {
    if (!isUp) return `node ${nodeId} is not up`;
    const isMember = rows.value(IDENTITY_KEY) !== null;
    if (isDamaged && (isMember || running !== null)) return `node ${nodeId} does not wait`;
    if (running === null) continue;
    if (running.node.health().ready) return `node ${nodeId} is ready without a majority`;
    for (const group of running.node.groups()) {
      if (group.isServing()) return `node ${nodeId} serves partition ${group.partition}`;
    }
  }
  return null;
}

/** Who is not where the member list and the groups should have it; null when everybody is. */
function strangers(
  servers: readonly Server[],
  atlas: Atlas,
  partitions: ReadonlySet<number>,
): string | null {
  for (const { nodeId, isLost, isDamaged, isRetired, running } of servers) {
    if (isRetired) {
      if (atlas.roleOf(nodeId) !== null) return `node ${nodeId} left and is in the member list`;
      if (atlas.isVoter(nodeId)) return `node ${nodeId} left and votes`;
    }
    if (isLost || isDamaged || isRetired || running === null) continue;
    const role = atlas.roleOf(nodeId);
    if (role !== "voter") return `node ${nodeId} is ${role ?? "no member"} and no voter`;
    const { meta } = running.node.metaGroup().machine;
    const version = meta.cluster()?.membershipVersion ?? 0;
    if (version !== atlas.seenMembers.version) {
      return `node ${nodeId} knows member list ${version}, not ${atlas.seenMembers.version}`;
    }
    const hosted = running.node.groups().length;
    if (hosted !== partitions.size) return `node ${nodeId} hosts ${hosted} of ${partitions.size}`;
    for (const partition of partitions) {
      const config = atlas.configOf(partition);
      if (config === null || config.votersOutgoing.length > 0) {
        return `partition ${partition} is in the middle of a change`;
      }
      if (!config.voters.includes(nodeId)) return `node ${nodeId} has no vote in ${partition}`;
    }
  }
  return null;
}
