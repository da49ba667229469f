/**
 * The settings of the operations: what the server parsed, checked across fields and froze.
 *
 * Types only; the defaults are those of the flags. Invariants: 1. Nothing here changes after start.
 * 2. What can change the outcome of a write travels inside its command, so that apply reads no
 * setting.
 */

import type { Permits } from "../../base/levels.js";

export interface OperationsSettings {
  /** Text of `svc_build_info` and of the health answer. */
  readonly version: string;
  readonly nodeId: number;
  /** Advertised peer endpoint of this node, host:port. */
  readonly peerEndpoint: string;
  /** Advertised client endpoint, a base URL; "" = none. */
  readonly clientEndpoint: string;
  /** False sends no route hints and no `servedFrom` endpoint guess beyond the advertised one. */
  readonly routingHints: boolean;
  /** Longest handling time of a data request (contract C9). */
  readonly requestTimeoutMs: number;
  /** Longest time that a request waits for its partition to have a leader again (ms). */
  readonly leaderWaitMs: number;
  /** Requests per second and caller, 0 = none; may be changed while the node runs. */
  readonly callerRateLimit: number;
  /** From here on a request is slow (ms), 0 = none is; may be changed while the node runs. */
  readonly slowRequestMs: number;
  /** Data requests in progress, then overload. */
  readonly inflightMax: number;
  readonly lockMaxLeaseMs: number;
  /** Longest that a request may wait for a lock (ms). */
  readonly lockMaxWaitMs: number;
  /** Requests that may wait, for one lock and on this node; beyond: overload. */
  readonly lockWaitersPerLockMax: number;
  readonly lockWaitersMax: number;
  /** Locks that change hands often have heirs (Q15). */
  readonly lockSuccession: boolean;
  /** Rows about forced releases that a partition keeps. */
  readonly lockAuditRetained: number;
  readonly watchMaxWatchers: number;
  /** Unsent bytes of one watch stream, then it is set back to its cursor. */
  readonly watchStreamBufferBytes: number;
  /** Changes that a node keeps for watches that are slow or come back (bytes). */
  readonly watchHistoryBytes: number;
  /** Longest time between marks of a watch that asks for none (ms). */
  readonly watchProgressMs: number;
  readonly sequencerBlockSize: number;
  /** Longest time a reserved block is used without checking the record (ms). */
  readonly sequencerBlockLeaseMs: number;
  /** Idempotency entries per sequence, 0 = no bound by number. */
  readonly keysRetainedMax: number;
  /** Lifetime of an idempotency entry, 0 = no bound by time. */
  readonly keysRetainedMs: number;
  readonly revisionsRetained: number;
  readonly valueMaxBytes: number;
  readonly pageBytes: number;
  readonly responseMaxBytes: number;
  readonly rangeSplitMinSize: number;
  /** Joint keys below which neighbours merge, 0 = off. */
  readonly rangeMergeMinSize: number;
  /** null = if the factor of the cluster is not 0. */
  readonly rebalancerEnabled: boolean | null;
  /** The factor that this node was started with; null when none was given. */
  readonly givenReplicationFactor: number | null;
  /** Longest time that a leaving node is drained (ms). */
  readonly drainTimeoutMs: number;
  /** Since which level what is permitted. */
  readonly permits: Permits;
}
