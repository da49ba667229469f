/**
 * What must be true of replicas some time after all faults ended: nothing is on its way, nodes host
 * what the map says and keep nothing else, and where somebody puts replicas and leaders where they
 * belong, they are there.
 *
 * Pure: looks and changes nothing. Invariant: nodes that are lost or were taken away owe nothing.
 */
import { META_PARTITION, partitionId } from "../../../src/base/ids.js";
import type { PartitionRecord } from "../../../src/machine/commands/command.js";
import type { MetaReads } from "../../../src/machine/meta/meta-reads.js";
import { groupPrefix, groupRecordKey } from "../../../src/machine/store/keys.js";
import type { Placement } from "../../judge/checkers/replicas/converged.js";
import { unconverged } from "../../judge/checkers/replicas/converged.js";
import { type Led, unspread } from "../../judge/checkers/replicas/leaders-spread.js";
import type { SeenTargets } from "../../judge/checkers/replicas/comes-to-who-stays.js";
import type { SeenPass } from "../../judge/checkers/replicas/why-told.js";
import type { Versions } from "../../judge/checkers/replicas/at-rest.js";
import type { Node } from "../../../src/host/node.js";
import type { SimNetwork } from "../net/network.js";
import type { Plan } from "../plan/plan.js";
import type { PlacementPeace, ReplicaObserver } from "../world/replica-observer.js";
import type { Server } from "../world/server.js";

/** The meta partition where most of it is applied; null = nobody has any. */
export function newestMeta(servers: readonly Server[]): MetaReads | null {
  let newest: MetaReads | null = null;
  let applied = 0;
  for (const { running } of servers) {
    if (running === null || running.node.closing) continue;
    const { machine } = running.node.metaGroup();
    if (machine.appliedIndex <= applied) continue;
    applied = machine.appliedIndex;
    newest = machine.meta;
  }
  return newest;
}

/** Whole, and expected to be up. */
export function isOwing({ isLost, isDamaged, isRetired }: Server): boolean {
  return !isLost && !isDamaged && !isRetired;
}

/** Placed partitions, with what their placement is judged by. */
export function placementOf(meta: MetaReads): Placement {
  const members = meta.members().filter(({ evicted, role }) => !evicted && role !== "leaving");
  return {
    records: meta.partitions().filter(({ mode, state }) => {
      return mode === "placed" && state !== "Removed";
    }),
    factor: meta.cluster()?.replicationFactor ?? 0,
    voters: members.filter(({ role }) => role === "voter").length,
    able: members.map(({ nodeId }) => nodeId),
  };
}

/** Groups with their leaders, and who could lead them. */
export function ledGroups(servers: readonly Server[]): readonly Led[] {
  const up = new Set(servers.filter((server) => server.running !== null && isOwing(server)));
  const groups: Led[] = [];
  for (const { running, nodeId: leader } of up) {
    for (const group of running?.node.groups() ?? []) {
      if (!group.isServing()) continue;
      const { voters } = group["replica"].members.membership;
      const isUp = (id: number): boolean => [...up].some(({ nodeId }) => nodeId === id);
      groups.push({ partition: group.partition, leader, voters: voters.filter(isUp) });
    }
  }
  return groups;
}

/** Why replicas are not as the map says, or not where they belong; null when they are. */
export function unplaced(servers: readonly Server[], plan: Plan): string | null {
  const meta = newestMeta(servers);
  if (meta === null) return "nobody knows the partition map";
  const placement = placementOf(meta);
  const { rebalancerEnabled, leaderBalanceEveryMs } = plan.host;
  if (rebalancerEnabled === true) {
    const full = meta.partitions().find(({ mode, state, replicationOverride }) => {
      const isWished = replicationOverride > 0 || placement.factor > 0;
      return mode === "full" && state !== "Removed" && isWished;
    });
    if (full !== undefined) return `partition ${full.partitionId} is not listed`;
    const reason = unconverged(placement);
    if (reason !== null) return reason;
  }
  const left = keptBlocks(servers);
  if (left !== null) return left;
  // Looks at the disk of every node: last, for it costs most.
  for (const record of placement.records) {
    const reason = unhosted(servers, record) ?? unlike(servers, record);
    if (reason !== null) return reason;
  }
  return (leaderBalanceEveryMs ?? 0) > 0 ? unspread(ledGroups(servers)) : null;
}

/** Operations keep something of a group that is not on the node (P-042). */
function keptBlocks(servers: readonly Server[]): string | null {
  for (const { running, nodeId } of servers) {
    if (running === null) continue;
    for (const id of running.operations["serving"]["blocksByGroup"].keys()) {
      if (running.node.group(partitionId(id)) !== null) continue;
      return `node ${nodeId} keeps blocks of a group that is not there: partition ${id}`;
    }
  }
  return null;
}

function unhosted(servers: readonly Server[], record: PartitionRecord): string | null {
  const { partitionId: id, replicas } = record;
  const open = replicas.find(({ role }) => role !== "voter");
  if (open !== undefined) return `replica ${open.nodeId} of partition ${id} is ${open.role}`;
  for (const server of servers) {
    if (!isOwing(server)) continue;
    const isListed = replicas.some(({ nodeId }) => nodeId === server.nodeId);
    const isHosted = (server.running?.node.group(partitionId(id)) ?? null) !== null;
    const what = `partition ${id} of node ${server.nodeId}`;
    if (isListed !== isHosted) return isListed ? `${what} is not there` : `${what} is there`;
    if (!isListed && isKept(server, id)) return `${what} is not deleted`;
  }
  return null;
}

/** The group, as its leader knows it, has other voters than the record lists. */
function unlike(
  servers: readonly Server[],
  { partitionId: id, replicas }: PartitionRecord,
): string | null {
  for (const { running } of servers) {
    const group = running?.node.group(partitionId(id));
    if (group?.isServing() !== true) continue;
    const { voters } = group["replica"].members.membership;
    const listed = replicas.map(({ nodeId }) => nodeId);
    if (voters.join() !== listed.join()) {
      return `voters of partition ${id} are ${voters.join()}, its record lists ${listed.join()}`;
    }
  }
  return null;
}

/** The disk of `server` holds something of a partition. */
export function isKept({ rows, running }: Server, id: number): boolean {
  if (id === META_PARTITION || running === null) return false;
  if (rows.value(groupRecordKey(id)) !== null) return true;
  const prefix = groupPrefix(id);
  return rows.keyAt(rows.seek(prefix))?.startsWith(prefix) === true;
}

/** What the checkers of replicas are told at the end of peace. */
export function peaceOf(servers: readonly Server[], plan: Plan): PlacementPeace {
  const meta = newestMeta(servers);
  if (meta === null) throw new Error("nobody knows the partition map");
  const living = meta.partitions().filter(({ state }) => state !== "Removed");
  const partitions = living.map((record) => record.partitionId);
  return {
    placement: placementOf(meta),
    hasAllocator: plan.host.rebalancerEnabled === true,
    led: ledGroups(servers),
    hasBalancer: (plan.host.leaderBalanceEveryMs ?? 0) > 0,
    partitions: [META_PARTITION, ...partitions],
  };
}

/** Of what any node has applied. */
export function versionsOf(servers: readonly Server[]): Versions {
  const cluster = newestMeta(servers)?.cluster() ?? null;
  return { map: cluster?.mapVersion ?? 0, members: cluster?.membershipVersion ?? 0 };
}

/** Passes of the allocator on all nodes, in their present lives. */
export function passesOf(servers: readonly Server[]): number {
  let sum = 0;
  for (const { running } of servers) {
    const passes = running?.node.facts().placement.passes;
    if (passes !== undefined) sum += passes.ordered + passes.waiting + passes.settled;
  }
  return sum;
}

/** What is looked at once a second: links, snapshots on their way, and what the allocator says. */
export function lookAtPlacement(
  servers: readonly Server[],
  network: SimNetwork,
  told: ReplicaObserver,
  atMs: number,
): void {
  const links = new Set<string>();
  let metaLeader = 0;
  for (const { running, nodeId } of servers) {
    if (running === null || running.life.isPaused) continue;
    const { node } = running;
    const facts = node.facts();
    const incoming = facts.transfers.filter(({ direction }) => direction === "in").length;
    told.transfers(nodeId, incoming, facts.transfers.length - incoming);
    for (const { node: peer, linked } of facts.peers) {
      const isClear = network.direction(nodeId, peer).slowMs === 0;
      if (linked && isClear && isAwake(servers, peer)) links.add(`${nodeId}/${peer}`);
    }
    const meta = node.metaGroup();
    if (!meta.isServing()) continue;
    metaLeader = nodeId;
    const seen = seenPass(node, nodeId);
    if (seen !== null) told.pass(seen);
  }
  told.links({ atMs, metaLeader, links });
}

function isAwake(servers: readonly Server[], nodeId: number): boolean {
  const running = servers[nodeId - 1]?.running ?? null;
  return running !== null && !running.life.isPaused && running.life.costMs === 0;
}

/** The last pass of the allocator, where nothing that it looks at has changed since; else null. */
function seenPass(node: Node, nodeId: number): (SeenPass & SeenTargets) | null {
  const reign = node["parts"].changes.placer["reign"];
  const { plan, records, isDirty } = reign ?? { plan: null, records: null, isDirty: true };
  const cluster = node.metaGroup().machine.meta.cluster();
  if (plan === null || records === null || isDirty || !records.isNeeded || cluster === null) {
    return null;
  }
  const isOfNow =
    records.cluster.mapVersion === cluster.mapVersion &&
    records.cluster.membershipVersion === cluster.membershipVersion;
  if (!isOfNow) return null;
  const { members, partitions } = records;
  const ordered = plan.steps.map(({ order }) => order.partitionId);
  const waiting = plan.waits.map(({ partitionId: id }) => id);
  const told = new Set([...ordered, ...waiting]);
  const { replicationFactor: factor } = records.cluster;
  const adds = plan.steps.flatMap(({ order: { partitionId: partition, change } }) => {
    return change.kind === "add" ? [{ partitionId: partition, nodeId: change.nodeId }] : [];
  });
  return { node: nodeId, records: partitions, factor, members, told, adds };
}
