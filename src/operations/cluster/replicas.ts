/**
 * Where replicas are and how many there are to be: the committed partition map as an answer, the
 * factor of one partition, and what an operator is told of partitions that are not as they should
 * be (contract 5.4).
 *
 * Owns a copy of the records as they were when the map changed last. Invariants: 1. Lists come from
 * the committed records alone, the same on every node. 2. A factor is reported as set only when
 * that is applied; it moves nothing by itself. 3. What is told beside the lists is bounded.
 */
import { partitionId } from "../../base/ids.js";
import { REPLICATION_FACTOR_MAX } from "../../base/limits.js";
import {
  type PlacedPartition,
  type ReplicationFacts,
  isRebalancing,
  placedPartitions,
  replicationFacts,
} from "../../control/placement.js";
import type { PartitionWait } from "../../host/reports/node-report.js";
import type { ProposalResult } from "../../host/requests/results.js";
import type { ClusterRecord, Member } from "../../machine/commands/command.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { PlacementAnswer, ReplicationFactorAnswer } from "../api/administration.js";
import type { Serving } from "../serving/serving.js";

/** Upper bound of the size of a command of the meta partition without texts. */
const META_COMMAND_BYTES = 64;
/** Partitions, and reasons, that a sentence names. */
const NAMED_MAX = 8;

interface Copied {
  readonly cluster: ClusterRecord;
  readonly members: readonly Member[];
  readonly placed: readonly PlacedPartition[];
}

const ROLES = { voter: "Voter", learner: "Learner", removing: "Removing" } as const;

export class Replicas {
  private copied: Copied | null = null;

  constructor(private readonly serving: Serving) {}

  /** The records of the meta partition; null before there are any, and when they are closed. */
  private read(): Copied | null {
    const { node } = this.serving;
    const meta: MetaReads | null = node.closing ? null : node.metaGroup().machine.meta;
    const cluster = meta?.cluster() ?? null;
    if (meta === null || cluster === null) return null;
    const known = this.copied?.cluster;
    const isKnown =
      known?.mapVersion === cluster.mapVersion &&
      known.membershipVersion === cluster.membershipVersion;
    if (isKnown && this.copied !== null) return this.copied;
    const members = meta.members();
    const placed = placedPartitions(cluster, members, meta.partitions());
    this.copied = { cluster, members, placed };
    return this.copied;
  }

  placement(): PlacementAnswer {
    const { node, settings } = this.serving;
    const records = this.read();
    const endpoints = new Map(records?.members.map(({ nodeId, endpoint }) => [nodeId, endpoint]));
    const partitions = (records?.placed ?? []).map(({ partition, effectiveFactor, replicas }) => ({
      partitionId: partition.partitionId,
      state: partition.state,
      generation: partition.generation,
      effectiveReplicationFactor: effectiveFactor,
      hostedLocally: node.group(partitionId(partition.partitionId)) !== null,
      // A member that was removed meanwhile has no address any more.
      replicas: replicas.map(({ nodeId, role }) => {
        return { endpoint: endpoints.get(nodeId) ?? "", role: ROLES[role] };
      }),
    }));
    return {
      replicationFactor: records?.cluster.replicationFactor ?? 0,
      rebalancerEnabled: isRebalancing(settings.rebalancerEnabled, records?.cluster ?? null),
      initialized: records !== null && node.initialized,
      localEndpoint: settings.peerEndpoint,
      hostedPartitionCount: partitions.filter((partition) => partition.hostedLocally).length,
      partitions,
    };
  }

  /** What of the partitions is not in order, as far as this node hears of the others. */
  facts(): ReplicationFacts {
    const { node, settings } = this.serving;
    const isLive = (nodeId: number): boolean => {
      return nodeId === settings.nodeId || node.isLinked(nodeId);
    };
    const records = this.read();
    return replicationFacts(records?.placed ?? [], records?.members ?? [], isLive);
  }

  /** The steps that partitions wait for which are below their factor, or move. */
  waits({ under, moving }: ReplicationFacts): readonly PartitionWait[] {
    const wanted = new Set([...under, ...moving]);
    if (wanted.size === 0) return [];
    return this.serving.node.partitionWaits().filter(({ partition }) => wanted.has(partition));
  }

  /** What an operator wants to know although the node is ready; "" when all is in order. */
  detail(): string {
    const facts = this.facts();
    const { under, moving } = facts;
    const texts: string[] = [];
    if (under.length > 0) texts.push(`under-replicated: ${named(under)}`);
    if (moving.length > 0) texts.push(`on the move: ${named(moving)}`);
    texts.push(...this.waitingTexts(facts));
    const { givenReplicationFactor: given } = this.serving.settings;
    const factor = this.read()?.cluster.replicationFactor;
    if (given !== null && factor !== undefined && given !== factor) {
      texts.push(`--raft-replication-factor is ${given}, that of the cluster is ${factor}`);
    }
    return texts.join("; ");
  }

  private waitingTexts(facts: ReplicationFacts): readonly string[] {
    const waits = this.waits(facts);
    const told = waits
      .slice(0, NAMED_MAX)
      .map(({ partition, why }) => `${partition} waits: ${why}`);
    return waits.length > NAMED_MAX ? [...told, "and more"] : told;
  }

  /** Sets the factor of one partition; 0 clears it: that of the cluster counts again. */
  setFactor(
    request: { readonly partitionId: number; readonly replicationFactor: number },
    deadlineMs: number,
    done: (answer: ReplicationFactorAnswer) => void,
  ): void {
    const { partitionId: id, replicationFactor } = request;
    const invalid = (reason: string): void =>
      done({ success: false, status: "InvalidInput", generation: 0, reason });
    const refused = (reason: string): void =>
      done({ success: false, status: "Refused", generation: 0, reason });
    const later = (end: () => void): void => this.serving.ports.timer.soon(end);
    if (id < 1) return later(() => invalid("The partition id is 1 or more."));
    if (replicationFactor < 0 || replicationFactor > REPLICATION_FACTOR_MAX) {
      return later(() => invalid(`The replication factor is 0 to ${REPLICATION_FACTOR_MAX}.`));
    }
    const command = { kind: "set-replication-factor", partitionId: id, replicationFactor } as const;
    const group = this.serving.node.metaGroup();
    group.propose(command, META_COMMAND_BYTES, deadlineMs, (result) => {
      if (result.status !== "applied") return refused(this.refusalReason(result));
      const { outcome } = result;
      if (outcome.kind !== "meta") return refused("The answer of the meta partition is unknown.");
      const { status, generation } = outcome;
      if (status === "unknown-partition") return invalid(`There is no active partition ${id}.`);
      if (status === "invalid") return invalid("The replication factor is out of range.");
      if (status === "not-founded") return refused("The cluster is not initialised yet.");
      done({ success: true, status: "Success", generation, reason: "" });
    });
  }

  private refusalReason(result: Exclude<ProposalResult, { status: "applied" }>): string {
    if (result.status === "unknown") return "The commit was not confirmed in time.";
    if (result.status === "aborted") return "The change was not proposed in time.";
    if (result.reason !== "not-leader") return `The node refused the change: ${result.reason}.`;
    const leader = this.serving.node.metaGroup().leaderNode();
    const endpoint = this.read()?.members.find(({ nodeId }) => nodeId === leader)?.endpoint;
    const known = endpoint === undefined ? "no leader is known" : `its leader is ${endpoint}`;
    return `This node does not lead the meta partition; ${known}.`;
  }
}

/** "3 partitions (1, 4, 9)", the first of many. */
export function named(ids: readonly number[]): string {
  const shown = ids.slice(0, NAMED_MAX).join(", ");
  const more = ids.length > NAMED_MAX ? ", …" : "";
  return `${ids.length} ${ids.length === 1 ? "partition" : "partitions"} (${shown}${more})`;
}
