/**
 * Cluster administration.
 *
 * Invariants: 1. A refusal of the service is a result.
 */
import type {
  FINALIZE,
  LEAVE,
  MEMBER,
  MEMBERSHIP,
  OVERVIEW,
  PARTITION,
  PLACEMENT,
  REPLICA,
  REPLICATION_FACTOR,
} from "../../api/cluster.js";
import type { ReadOf } from "../../api/members.js";
import { CALL_OPERATIONS, readNodeDebug } from "../metadata/calls.js";
import type { NodeDebug, RoutingMetadata } from "../metadata/results.js";
import { optionsOf, textOf } from "../values/arguments.js";
import { int32Of } from "../values/numbers.js";
import type { Caller } from "../call/operation.js";
import type { CallOptions } from "../values/options.js";

export type ClusterMember = ReadOf<typeof MEMBER>;
export type Membership = ReadOf<typeof MEMBERSHIP>;
export type LeaveResult = ReadOf<typeof LEAVE>;
export type PartitionReplica = ReadOf<typeof REPLICA>;
export type PartitionPlacement = ReadOf<typeof PARTITION>;
export type Placement = ReadOf<typeof PLACEMENT>;
export type Overview = ReadOf<typeof OVERVIEW>;
export type FinalizeResult = ReadOf<typeof FINALIZE>;
export type ReplicationFactorResult = ReadOf<typeof REPLICATION_FACTOR>;

/** Options of `nodeDebug`. */
export interface NodeDebugOptions extends CallOptions {
  /** With a profile of the processor over so many seconds, 1 to 60; 0 or omitted = without. */
  readonly profileSeconds?: number | undefined;
}

/** A node makes it in ten seconds, or as long as the profile takes, and one at a time. */
const NODE_DEBUG_DEADLINE_MS = 120_000;

/** Leaving may drain for minutes. */
const LEAVE_DEADLINE_MS = Number.POSITIVE_INFINITY;

/**
 * Members, placement and routing of the cluster. What describes or changes one node is answered by
 * whichever endpoint is asked: give the client that one endpoint.
 *
 * @example
 * const { members } = await client.cluster.membership();
 */
export class ClusterAdmin {
  private readonly caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.caller = caller;
  }

  /**
   * The committed roster.
   *
   * @example
   * const { membershipVersion } = await client.cluster.membership();
   */
  membership(options?: CallOptions): Promise<Membership> {
    return this.caller.call(CALL_OPERATIONS["cluster.membership"], {}, options);
  }

  /**
   * Which partitions there are and where their replicas lie.
   *
   * @example
   * const { partitions } = await client.cluster.placement();
   */
  placement(options?: CallOptions): Promise<Placement> {
    return this.caller.call(CALL_OPERATIONS["cluster.placement"], {}, options);
  }

  /**
   * Makes the answering node leave the cluster; without a deadline unless one is given. Stop the
   * node only when `left` is true.
   *
   * @example
   * const { left, reason } = await node.cluster.leave();
   */
  async leave(options: CallOptions = {}): Promise<LeaveResult> {
    const { deadlineMs = LEAVE_DEADLINE_MS } = optionsOf(options);
    return this.caller.call(
      CALL_OPERATIONS["cluster.leave"],
      { nodeId: 0 },
      { ...options, deadlineMs },
    );
  }

  /**
   * Removes a member whose process or disk is gone, asked of any node; without a deadline unless
   * one is given. A member that was heard within 30 s is refused (`RefusedStillAlive`). Its data
   * directory is never let in again; its id is free for an empty one as soon as nothing names it.
   *
   * @param nodeId node id of the member, 1 to 65535
   * @example
   * const { left, outcome } = await client.cluster.removeMember(3);
   */
  async removeMember(nodeId: number, options: CallOptions = {}): Promise<LeaveResult> {
    const id = int32Of("nodeId", nodeId, 1);
    const { deadlineMs = LEAVE_DEADLINE_MS } = optionsOf(options);
    return this.caller.call(
      CALL_OPERATIONS["cluster.leave"],
      { nodeId: id },
      { ...options, deadlineMs },
    );
  }

  /**
   * Raises the level of the cluster by one, once all its members were upgraded. Afterwards no node
   * can go back to the version before. `blockers` lists who does not support it.
   *
   * @param level what to raise to; 0 = one more than the present level. With a level given the call
   * is repeated when its answer is lost.
   * @example
   * const { success, level, blockers } = await client.cluster.finalize();
   */
  async finalize(level = 0, options?: CallOptions): Promise<FinalizeResult> {
    const request = { level: int32Of("level", level, 0) };
    return this.caller.call(CALL_OPERATIONS["cluster.finalize"], request, options);
  }

  /**
   * Sets the replication factor of one partition (0 to 9; 0 clears the override).
   *
   * @example
   * const { success, reason } = await client.cluster.setReplicationFactor(3, 5);
   */
  async setReplicationFactor(
    partitionId: number,
    replicationFactor: number,
    options?: CallOptions,
  ): Promise<ReplicationFactorResult> {
    const request = {
      partitionId: int32Of("partitionId", partitionId, 0),
      replicationFactor: int32Of("replicationFactor", replicationFactor, 0),
    };
    return this.caller.call(CALL_OPERATIONS["cluster.setReplicationFactor"], request, options);
  }

  /**
   * All members at a glance, as the asked node heard of them, usually less than 5 s ago, and
   * sentences about what is out of order. `ageMs` null: nothing was heard of that node.
   *
   * @example
   * const { nodes, alarms } = await client.cluster.overview();
   */
  overview(options?: CallOptions): Promise<Overview> {
    return this.caller.call(CALL_OPERATIONS["cluster.overview"], {}, options);
  }

  /**
   * What there is to find out what is wrong with the answering node (role admin): configuration,
   * state, metrics, the last lines of its log. It has no secret, no stored data and none of its
   * names, and takes ten seconds and more (default deadline 120 s).
   *
   * @example
   * const { version, missing } = await node.cluster.nodeDebug();
   */
  async nodeDebug(options: NodeDebugOptions = {}): Promise<NodeDebug> {
    const { deadlineMs = NODE_DEBUG_DEADLINE_MS, profileSeconds = 0 } = optionsOf(options);
    const request = { profileSeconds: int32Of("profileSeconds", profileSeconds, 0) };
    return this.caller.call(readNodeDebug, request, { ...options, deadlineMs });
  }

  /**
   * How keys map to partitions; `keySpace` filters ("" = all).
   *
   * @example
   * const { leaders } = await client.cluster.routing();
   */
  async routing(keySpace = "", options?: CallOptions): Promise<RoutingMetadata> {
    return this.caller.call(
      CALL_OPERATIONS["cluster.routing"],
      { keySpace: textOf("keySpace", keySpace) },
      options,
    );
  }
}
