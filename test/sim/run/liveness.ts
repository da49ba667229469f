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
import type { Keeper } from "../members/keeper.js";
import type { Plan } from "../plan/plan.js";
import { newestMeta, unplaced } from "./placement-peace.js";
import type { Server } from "../world/server.js";

export interface PeaceView {
  readonly servers: readonly Server[];
  readonly atlas: Atlas;
  readonly operator: Operator | null;
  readonly keeper: Pick<Keeper, "unfinished"> | null;
  readonly plan: Plan;
  readonly faults: Pick<Faults, "repairs">;
  /** Nodes that were removed and taken in again. */
  readonly replaced: number;
}

/** Why the cluster is not whole; null when it is. */
export function unsettled(view: PeaceView): string | null {
  const { servers, atlas, operator, keeper, faults, replaced, plan } = view;
  const unfinished = operator?.unfinished() ?? keeper?.unfinished() ?? faults.repairs.unfinished();
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
  const isFixed = operator === null && keeper === null && replaced === 0;
  const stranger = isFixed ? null : strangers(servers, atlas, wanted);
  return stranger ?? (plan.placer === null ? null : unplaced(servers, plan));
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
  const records = newestMeta(servers)?.partitions() ?? [];
  const placed = new Set(
    records.filter(({ mode }) => mode === "placed").map(({ partitionId }) => partitionId),
  );
  const common = [...partitions].filter((partition) => !placed.has(partition));
  for (const { nodeId, isLost, isDamaged, isRetired, running } of servers) {
    if (isRetired) {
      if (atlas.roleOf(nodeId) !== null) return `node ${nodeId} left and is in the member list`;
      if (atlas.isVoter(nodeId)) return `node ${nodeId} left and votes`;
    }
    if (isLost || isDamaged || isRetired || running === null) continue;
    const role = atlas.roleOf(nodeId);
    if (role === "learner" && atlas.hasAllVoters) continue;
    if (role !== "voter") return `node ${nodeId} is ${role ?? "no member"} and no voter`;
    const { meta } = running.node.metaGroup().machine;
    const version = meta.cluster()?.membershipVersion ?? 0;
    if (version !== atlas.seenMembers.version) {
      return `node ${nodeId} knows member list ${version}, not ${atlas.seenMembers.version}`;
    }
    const hosted = running.node.groups().filter(({ partition }) => !placed.has(partition)).length;
    if (hosted !== common.length) return `node ${nodeId} hosts ${hosted} of ${common.length}`;
    for (const partition of common) {
      const config = atlas.configOf(partition);
      if (config === null || config.votersOutgoing.length > 0) {
        return `partition ${partition} is in the middle of a change`;
      }
      if (!config.voters.includes(nodeId)) return `node ${nodeId} has no vote in ${partition}`;
    }
  }
  return null;
}
