/**
 * Cluster administration: health, membership, leave, routing metadata.
 *
 * Invariants: 1. Views are local and immediate: what this node has applied; one that closes its
 * rows knows nothing any more. 2. What changes the cluster is committed on the meta partition, and
 * is reported as done only then.
 */
import { META_PARTITION } from "../../base/ids.js";
import { RESERVED_PREFIX } from "../../base/limits.js";
import {
  GROUP_SEPARATOR,
  HASH_ALGORITHM,
  HASH_PARTITION_OFFSET,
  PREFIX_SEPARATOR,
  SEQUENCE_KEY_PREFIX,
} from "../../base/routing.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type {
  HealthAnswer,
  HealthCheck,
  LeaveAnswer,
  LocalRole,
  MembershipAnswer,
  RoutingAnswer,
} from "../api/administration.js";
import type { KeyRanges } from "./key-ranges.js";
import type { Replicas } from "./replicas.js";
import { LEAVE_EXTRA_MS, removeMember } from "./member-removal.js";
import { type RequestContext, withDeadline } from "../api/requests.js";
import type { Serving } from "../serving/serving.js";

/** One sentence per outcome of leave, the same every time (contract 5.3). */
const LEAVE_REASONS: Readonly<Record<LeaveAnswer["outcome"], string>> = {
  Committed: "The node was removed from the roster.",
  NotAMember: "The node is not in the committed roster.",
  RefusedInsufficientVoters:
    "The node is needed: without it no majority of voters would remain for a partition it hosts.",
  NotInitialized: "The node does not know the roster yet.",
  NoLeader: "The meta partition has no leader.",
  Timeout: "The removal was not confirmed in time; read the membership again.",
  RefusedDrainInProgress: "Another member is leaving.",
  DrainTimedOut: "The replicas of the node were not moved in time; it stays a member.",
  RefusedStillAlive:
    "The member was heard within the last 30 s; stop it first, or let it leave by itself.",
};

const RETRYABLE: readonly LeaveAnswer["outcome"][] = [
  "NotInitialized",
  "NoLeader",
  "RefusedDrainInProgress",
  "Timeout",
  "DrainTimedOut",
];

/** Checks of the host that make up each check of `/readyz`. */
const CHECK_PARTS: Readonly<Record<HealthCheck["name"], readonly string[]>> = {
  initialized: ["initialized"],
  membership: ["member"],
  leaders: ["leaders"],
  applied: ["caught-up"],
  storage: ["fatal-fault"],
  shutdown: ["accepting"],
};

/** Checks of the host that tell more of it, without making the node unready (contract 11). */
const DETAIL_PARTS: Readonly<Partial<Record<HealthCheck["name"], readonly string[]>>> = {
  storage: ["log-space", "store-space", "volume-space", "apply-room"],
};

const ROLES = {
  Voter: "voter",
  Learner: "learner",
  Leaving: "leaving",
  None: "not-member",
} as const satisfies Record<string, LocalRole>;

export class Cluster {
  private readonly startedMs: number;

  constructor(
    private readonly serving: Serving,
    private readonly keyRanges: KeyRanges,
    private readonly replicas: Replicas,
  ) {
    this.startedMs = serving.ports.clock.monotonicMs();
  }

  health(): HealthAnswer {
    const { node, settings, ports } = this.serving;
    const facts = node.health();
    return {
      ready: facts.ready,
      initialized: facts.initialized,
      reason: facts.reason,
      localRole: ROLES[facts.localRole],
      hostedPartitions: facts.hostedPartitions,
      partitionsWithoutLeader: facts.partitionsWithoutLeader,
      version: settings.version,
      uptimeMs: Math.floor(ports.clock.monotonicMs() - this.startedMs),
    };
  }

  healthChecks(): readonly HealthCheck[] {
    const checks = this.serving.node.checks();
    return (Object.keys(CHECK_PARTS) as HealthCheck["name"][]).map((name) => {
      const failed = checks.find((check) => CHECK_PARTS[name].includes(check.name) && !check.ok);
      const told = checks.filter((check) => DETAIL_PARTS[name]?.includes(check.name) && !check.ok);
      const replicas = name === "membership" ? this.replicas.detail() : "";
      const texts = told.map((check) => `${check.name}: ${check.detail}`);
      const detail = [...texts, ...(replicas === "" ? [] : [replicas])].join(", ");
      const failure = failed?.detail ?? null;
      return detail === "" ? { name, failure } : { name, failure, detail };
    });
  }

  /** The rows of the meta partition; null when this node closes them. */
  private rows(): MetaReads | null {
    const { node } = this.serving;
    return node.closing ? null : node.metaGroup().machine.meta;
  }

  membership(): MembershipAnswer {
    const { node } = this.serving;
    const meta = this.rows();
    const members = meta?.members() ?? [];
    return {
      membershipVersion: this.membershipVersion(),
      members: members.map(({ endpoint, nodeId, role, joinedVersion }) => {
        return { endpoint, nodeId, role, joinedVersion };
      }),
      localRole: ROLES[node.health().localRole],
      initialized: meta !== null && node.initialized,
    };
  }

  private membershipVersion(): number {
    return this.rows()?.cluster()?.membershipVersion ?? 0;
  }

  routing(keySpace: string): RoutingAnswer {
    const { node, settings } = this.serving;
    const cluster = this.rows()?.cluster() ?? null;
    const initialized = node.initialized && cluster !== null;
    return {
      initialized,
      schemaVersion: 1,
      hashAlgorithm: HASH_ALGORITHM,
      prefixSeparator: PREFIX_SEPARATOR,
      groupSeparator: GROUP_SEPARATOR,
      hashPoolSize: cluster === null ? 0 : cluster.dataPartitions,
      hashPartitionOffset: HASH_PARTITION_OFFSET,
      sequenceStorageKeyFormat: `${SEQUENCE_KEY_PREFIX}{0}`,
      reservedKeyPrefix: RESERVED_PREFIX,
      localEndpoint: settings.clientEndpoint,
      snapshotVersion: cluster === null ? 0 : cluster.mapVersion,
      coherent: this.isCoherent(),
      keySpaces: initialized ? this.keyRanges.views(keySpace) : [],
      leaders: initialized ? this.leaders() : [],
    };
  }

  /** False: a range lies on a partition that the map of this node does not have. */
  private isCoherent(): boolean {
    const { node } = this.serving;
    if (node.closing) return true;
    const { meta } = node.metaGroup().machine;
    const known = new Set(meta.partitions().map(({ partitionId }) => partitionId));
    return meta.allRanges().every(({ descriptor }) => known.has(descriptor.partitionId));
  }

  /** Every partition with the client endpoint of its leader, "" when this node does not know it. */
  private leaders(): RoutingAnswer["leaders"] {
    const { node, leaders } = this.serving;
    const partitions = node.metaGroup().machine.meta.partitions();
    const ids = partitions
      .filter((partition) => partition.state !== "Removed")
      .map((partition) => partition.partitionId);
    if (!ids.includes(META_PARTITION)) ids.unshift(META_PARTITION);
    return ids.map((id) => ({ partitionId: id, endpoint: leaders.endpointOf(leaders.of(id)) }));
  }

  /** `member`: who leaves; 0 or this node's own id: this node. */
  leave(member: number, context: RequestContext, done: (answer: LeaveAnswer) => void): void {
    const { node, settings } = this.serving;
    const end = (outcome: LeaveAnswer["outcome"], drained = false): void =>
      done(this.leaveAnswer(outcome, drained));
    const latestMs = this.serving.ports.clock.monotonicMs() + settings.drainTimeoutMs;
    const deadlineMs = Math.min(context.deadlineMs, latestMs + LEAVE_EXTRA_MS);
    if (member === 0 || member === settings.nodeId) {
      return node.leave(deadlineMs, settings.drainTimeoutMs, end);
    }
    removeMember(this.serving, member, withDeadline(context, deadlineMs), end);
  }

  /** With full replication there is nothing to drain (contract 5.3). */
  private leaveAnswer(outcome: LeaveAnswer["outcome"], drained: boolean): LeaveAnswer {
    return {
      left: outcome === "Committed" || outcome === "NotAMember",
      drained,
      outcome,
      membershipVersion: this.membershipVersion(),
      retryable: RETRYABLE.includes(outcome),
      reason: LEAVE_REASONS[outcome],
    };
  }
}
