/**
 * Where the replicas of partitions may be: the partition map as the commands about it change it.
 *
 * The leader of meta orders one replica to come or go; the leader of the group carries it out and
 * reports what was applied. Pure decisions over the rows of the context. Invariants: 1. Members of
 * a group's configuration are in its record: a node is listed before it may come, and taken off the
 * list only when a configuration that rests on its leaving is without it (P-205). 2. One replica at
 * a time is a learner or removing, but for what a partition brings along when it is placed (P-092).
 * 3. At least one voter stays. 4. Each change raises the record's generation by one, and what was
 * decided on another generation or an older configuration changes nothing (P-094). 5. A report
 * changes the role of a replica only if it rests on the record that gave it that role: the same
 * life may have had another one before. 6. A partition in full mode has no list; once placed it
 * stays so. 7. Lists ascend by node id.
 */
import {
  FOUNDING_INCARNATION,
  NOT_BORN,
  NO_CONFIG,
  NO_PLACEMENT,
  incarnation,
  next,
  placementGeneration,
  type MembershipVersion,
} from "../../base/ids.js";
import { MEMBERS_MAX, PLACEMENT_ITEMS_MAX, VOTERS_MAX } from "../../base/limits.js";
import type {
  AppliedConfig,
  ItemOutcome,
  Member,
  MetaOutcome,
  MetaStatus,
  PartitionRecord,
  PlacementCommand,
  PlacementOrder,
  ReplicaChange,
  ReplicaOrder,
  ReplicaRecord,
  ReplicaReport,
} from "../commands/command.js";
import type { DecisionContext } from "../decision/context.js";
import { RowKind, uint32Key } from "../store/keys.js";
import { isNodeId, isPartitionId, outcome } from "./meta-members.js";
import { MetaReads } from "./meta-reads.js";
import { encodeCluster, encodePartition } from "./meta-rows.js";

const FOUNDING_LIFE = { incarnation: FOUNDING_INCARNATION, since: NO_PLACEMENT } as const;
const FOUNDING = { role: "voter", ...FOUNDING_LIFE, replaces: 0 } as const;

/**
 * The record of a data partition when the cluster is founded by `nodes`, ascending: with a factor
 * above 0 the founders take turns, so that every one has within one as many replicas as any other.
 */
export function foundedPartition(
  partitionId: number,
  nodes: readonly number[],
  factor: number,
): PartitionRecord {
  const founders: number[] = [];
  for (let at = 0; at < Math.min(factor, nodes.length); at++) {
    founders.push(nodes[(partitionId - 1 + at) % nodes.length] as number);
  }
  founders.sort((a, b) => a - b);
  return {
    partitionId,
    state: "Active",
    generation: placementGeneration(1),
    replicationOverride: 0,
    mode: factor === 0 ? "full" : "placed",
    founders,
    bornVersion: NOT_BORN,
    replicas: founders.map((nodeId) => ({ nodeId, ...FOUNDING })),
    configIndex: NO_CONFIG,
  };
}

/**
 * The record of a partition that takes keys of `source`, all of whose replicas vote: the same rules
 * and the same voters, which begin it.
 */
export function bornPartition(
  partitionId: number,
  source: PartitionRecord,
  members: readonly Member[],
  bornVersion: MembershipVersion,
): PartitionRecord {
  const { mode, replicationOverride, replicas } = source;
  const voters = mode === "placed" ? replicas : members.filter(({ role }) => role === "voter");
  const founders = voters.map(({ nodeId }) => nodeId);
  return {
    partitionId,
    state: "Splitting",
    generation: placementGeneration(1),
    replicationOverride,
    mode,
    founders,
    bornVersion,
    replicas: mode === "placed" ? founders.map((nodeId) => ({ nodeId, ...FOUNDING })) : [],
    configIndex: NO_CONFIG,
  };
}

/** The record of a placed partition whose only replica is that of the node that goes on alone. */
export function refoundedPartition(record: PartitionRecord, nodeId: number): PartitionRecord {
  return {
    ...record,
    generation: next(record.generation),
    founders: [nodeId],
    replicas: [{ nodeId, ...FOUNDING }],
    configIndex: NO_CONFIG,
  };
}

/** What a decision changes of a record, or why it changes nothing. */
type Decision = MetaStatus | { readonly status: MetaStatus; readonly record: PartitionRecord };

function byNode(replicas: readonly ReplicaRecord[]): readonly ReplicaRecord[] {
  return [...replicas].sort((a, b) => a.nodeId - b.nodeId);
}

function isVoter({ role }: ReplicaRecord): boolean {
  return role === "voter";
}

function withRole(
  record: PartitionRecord,
  nodeId: number,
  role: ReplicaRecord["role"],
): readonly ReplicaRecord[] {
  const since = next(record.generation);
  return record.replicas.map((replica) =>
    replica.nodeId === nodeId ? { ...replica, role, since, replaces: 0 } : replica,
  );
}

/** Who was to go stays: as it may have gone meanwhile, its group takes it in again if need be. */
function kept(record: PartitionRecord, nodeId: number): MetaStatus | readonly ReplicaRecord[] {
  if (record.replicas.filter(isVoter).length >= VOTERS_MAX) return "too-many-voters";
  return withRole(record, nodeId, "voter");
}

function isEligible(reads: MetaReads, nodeId: number): boolean {
  const member = isNodeId(nodeId) ? reads.member(nodeId) : null;
  return member !== null && member.role !== "leaving" && !member.evicted;
}

function added(
  reads: MetaReads,
  record: PartitionRecord,
  { nodeId, replaces }: Extract<ReplicaChange, { kind: "add" }>,
): MetaStatus | readonly ReplicaRecord[] {
  const { replicas } = record;
  const isListed = replicas.some((replica) => replica.nodeId === nodeId);
  if (isListed || !isEligible(reads, nodeId)) return "invalid";
  const voters = replicas.filter(isVoter);
  if (replaces !== 0 && !voters.some((voter) => voter.nodeId === replaces)) return "invalid";
  if (replaces === 0 && voters.length >= VOTERS_MAX) return "too-many-voters";
  const since = next(record.generation);
  const life = incarnation(since);
  const learner = { nodeId, role: "learner", incarnation: life, since, replaces } as const;
  return byNode([...replicas, learner]);
}

function changed(
  reads: MetaReads,
  record: PartitionRecord,
  change: ReplicaChange,
): MetaStatus | readonly ReplicaRecord[] {
  const { replicas } = record;
  const listed = replicas.find((replica) => replica.nodeId === change.nodeId);
  if (change.kind === "cancel") {
    return listed?.role === "learner" ? withRole(record, change.nodeId, "removing") : "invalid";
  }
  if (change.kind === "keep") {
    // Who has left the cluster may be listed still, as a learner that its group is to let go.
    const isMember = isNodeId(change.nodeId) && reads.member(change.nodeId) !== null;
    return listed?.role === "removing" && isMember ? kept(record, change.nodeId) : "invalid";
  }
  if (!replicas.every(isVoter)) return "busy";
  if (change.kind === "add") return added(reads, record, change);
  if (listed === undefined) return "invalid";
  return replicas.length === 1 ? "last-voter" : withRole(record, change.nodeId, "removing");
}

function ordered(reads: MetaReads, record: PartitionRecord, order: ReplicaOrder): Decision {
  if (record.mode === "full") return "not-placed";
  if (order.generation !== record.generation) return "stale";
  const replicas = changed(reads, record, order.change);
  return typeof replicas === "string"
    ? replicas
    : { status: "done", record: { ...record, replicas } };
}

/** One or more voters, no node twice, and no more than a group may have. */
function isConfig({ configIndex: index, voters, learners }: AppliedConfig): boolean {
  const nodes = [...voters, ...learners];
  if (index < 0 || voters.length < 1 || nodes.length > MEMBERS_MAX) return false;
  return nodes.every(isNodeId) && new Set(nodes).size === nodes.length;
}

function takenIn(
  config: AppliedConfig,
  { generation, replicas: known }: Pick<PartitionRecord, "generation" | "replicas">,
): readonly ReplicaRecord[] {
  const since = next(generation);
  const listed = new Set(known.map(({ nodeId }) => nodeId));
  const of = (nodes: readonly number[], role: "voter" | "learner"): ReplicaRecord[] => {
    const strangers = nodes.filter((nodeId) => !listed.has(nodeId));
    return strangers.map((nodeId) => ({ nodeId, ...FOUNDING, since, role }));
  };
  return [...of(config.voters, "voter"), ...of(config.learners, "learner")];
}

function reported(record: PartitionRecord, report: ReplicaReport): Decision {
  if (!isConfig(report)) return "invalid";
  if (record.mode === "full") return "not-placed";
  if (report.configIndex < record.configIndex) return "stale";
  if (report.configIndex === record.configIndex) return "unchanged";
  const voters = new Set(report.voters);
  const members = new Set([...report.voters, ...report.learners]);
  const since = next(record.generation);
  const answers = (replica: ReplicaRecord): boolean => report.restsOn >= replica.since;
  const hasCome = (replica: ReplicaRecord): boolean =>
    replica.role === "learner" && voters.has(replica.nodeId) && answers(replica);
  const replaced = new Set(record.replicas.filter(hasCome).map(({ replaces }) => replaces));
  const replicas = record.replicas.flatMap((replica): ReplicaRecord[] => {
    if (hasCome(replica)) return [{ ...replica, role: "voter", since, replaces: 0 }];
    const isReplaced = isVoter(replica) && replaced.has(replica.nodeId);
    if (isReplaced) return [{ ...replica, role: "removing", since }];
    // Who was told to go is gone. Where nine vote, who is replaced went with the same change: it is
    // told to go first, so that no leader with an older record takes it in again.
    const isGone = replica.role === "removing" && !members.has(replica.nodeId) && answers(replica);
    return isGone ? [] : [replica];
  });
  const strangers = takenIn(report, record);
  const status = strangers.length === 0 ? "done" : "taken-in";
  const all = byNode([...replicas, ...strangers]);
  return { status, record: { ...record, replicas: all, configIndex: report.configIndex } };
}

/** A learner that the group is about to let go, or was, does not come with the list: it goes. */
function placed(reads: MetaReads, record: PartitionRecord, order: PlacementOrder): Decision {
  if (!isConfig(order) || order.voters.length > VOTERS_MAX) return "invalid";
  if (record.mode === "placed") return "unchanged";
  if (order.generation !== record.generation) return "stale";
  const listed = takenIn(order, { ...record, replicas: [] });
  const replicas = byNode(listed).map((replica): ReplicaRecord => {
    const mayCome = isVoter(replica) || isEligible(reads, replica.nodeId);
    return mayCome ? replica : { ...replica, role: "removing" };
  });
  const place = { mode: "placed", replicas, configIndex: order.configIndex } as const;
  return { status: "done", record: { ...record, ...place } };
}

/** Decides the items one after the other, each on the record as the one before it left it. */
function decideEach<Item extends { readonly partitionId: number }>(
  context: DecisionContext,
  items: readonly Item[],
  decide: (record: PartitionRecord, item: Item) => Decision,
): readonly ItemOutcome[] {
  const reads = new MetaReads(context.rows);
  return items.map((item) => {
    const { partitionId } = item;
    const record = isPartitionId(partitionId) ? reads.partition(partitionId) : null;
    if (record === null || record.state === "Removed") {
      return { status: "unknown-partition", generation: NO_PLACEMENT };
    }
    const decision = decide(record, item);
    if (typeof decision === "string") return { status: decision, generation: record.generation };
    const generation = next(record.generation);
    const row = encodePartition({ ...decision.record, generation });
    context.rows.put(RowKind.partition, uint32Key(partitionId), row);
    return { status: decision.status, generation };
  });
}

function decideAll(context: DecisionContext, command: PlacementCommand): readonly ItemOutcome[] {
  const reads = new MetaReads(context.rows);
  switch (command.kind) {
    case "change-replicas":
      return decideEach(context, command.items, (record, item) => ordered(reads, record, item));
    case "report-replicas":
      return decideEach(context, command.items, reported);
    case "place-partition":
      return decideEach(context, command.items, (record, item) => placed(reads, record, item));
  }
}

/** Decides a command about placement; its outcome has one for each of the items. */
export function applyPlacement(context: DecisionContext, command: PlacementCommand): MetaOutcome {
  const cluster = new MetaReads(context.rows).cluster();
  if (cluster === null) return outcome("not-founded");
  const count = command.items.length;
  if (count < 1 || count > PLACEMENT_ITEMS_MAX) return outcome("invalid", cluster.mapVersion);
  const items = decideAll(context, command);
  const isChanged = items.some(({ status }) => status === "done" || status === "taken-in");
  if (!isChanged) return outcome("unchanged", cluster.mapVersion, items);
  const version = next(cluster.mapVersion);
  context.rows.put(RowKind.cluster, "", encodeCluster({ ...cluster, mapVersion: version }));
  return outcome("done", version, items);
}
