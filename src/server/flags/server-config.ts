/**
 * Everything that can be configured, parsed and checked: the type of the server's configuration.
 *
 * Types, and what follows from them. Invariants: 1. Durations are in milliseconds, sizes in bytes.
 * 2. It is frozen when it is made and never read from flags again.
 */
import type { LiveFlag } from "./live-flags.js";
import type { PeerAddress } from "../../ports.js";

export interface ServerConfig {
  readonly host: string;
  readonly grpcPort: number | null;
  readonly httpsPort: number | null;
  readonly httpPort: number | null;
  readonly healthPort: number | null;
  readonly healthHost: string;
  /** The web console is served beside REST. */
  readonly console: boolean;
  /** That was chosen, it is not what follows from the address and the credentials. */
  readonly consoleGiven: boolean;
  /** A listener of its own for it. */
  readonly consolePort: number | null;
  readonly consoleHost: string;
  readonly peerHost: string;
  /** Null: a single node that accepts no peers. */
  readonly peerPort: number | null;
  /** The port was chosen, it is not only the default. */
  readonly peerPortGiven: boolean;
  /**
   * host:port under which the member list lists this node, given or from the list of first members;
   * null = where the peer listener is.
   */
  readonly advertisedPeerEndpoint: string | null;
  /** All founders, by ascending id; empty: the node founds a cluster alone, or joins one. */
  readonly initialCluster: readonly PeerAddress[];
  /** "existing": an empty data directory never founds. */
  readonly initialClusterState: "new" | "existing";
  /** Endpoints of members to join through. */
  readonly join: readonly string[];
  readonly peerTlsCertFile: string | null;
  readonly peerTlsKeyFile: string | null;
  readonly peerTlsCaFile: string | null;
  /** A peer's certificate must name the node that the peer says it is. */
  readonly peerTlsRequireNodeId: boolean;
  /** File with the secret that all peers know. */
  readonly peerSecretFile: string | null;
  readonly peerPingIntervalMs: number;
  /** Explicit base URL for route hints; null = derived once the listeners are open. */
  readonly advertisedClientEndpoint: string | null;
  readonly disableRoutingHints: boolean;
  readonly requestTimeoutMs: number;
  readonly shutdownTimeoutMs: number;
  /** The node, not ready any more, serves for so long before the stop begins. */
  readonly shutdownDelayMs: number;
  /** The node leaves the member list before it stops. */
  readonly gracefulLeave: boolean;
  /** Replicas of each partition when a cluster is founded; 0 = every voter. */
  readonly replicationFactor: number;
  /** The factor was chosen, it is not only the default. */
  readonly replicationFactorGiven: boolean;
  /** Replicas are moved toward the factors, and drained on leave; null = if the factor is not 0. */
  readonly enableRebalancer: boolean | null;
  readonly placementPassIntervalMs: number;
  /** Silence after which the replicas of a member are replaced; 0 = never by itself. */
  readonly deadMemberTimeoutMs: number;
  /** Longest time for moving replicas away before a node leaves. */
  readonly drainTimeoutMs: number;
  readonly maxRequestBytes: number;
  readonly grpcMaxReceiveBytes: number;
  readonly maxResponseBytes: number;
  readonly maxInflightRequests: number;
  readonly maxInflightPerStream: number;
  /** Data requests per second and caller, 0 = no limit. */
  readonly callerRateLimit: number;
  /** A data request that takes longer leaves a log line, 0 = none does. */
  readonly slowRequestMs: number;
  /** Files whose content are values, by flag. */
  readonly liveFiles: Readonly<Partial<Record<LiveFlag, string>>>;
  readonly tlsCertFile: string | null;
  readonly tlsKeyFile: string | null;
  readonly tlsClientCaFile: string | null;
  readonly authTokensFile: string | null;
  /** As browsers write them. */
  readonly allowedOrigins: readonly string[];
  /** In lower case, without ports. */
  readonly allowedHosts: readonly string[];
  readonly allowInsecure: boolean;
  readonly storage: "lmdb" | "memory";
  readonly storagePath: string;
  readonly storageRevision: string;
  readonly storageMaxBytes: number;
  /** null = {storagePath}/wal. */
  readonly walPath: string | null;
  readonly nodeId: number;
  readonly nodeName: string;
  readonly partitions: number;
  readonly startElectionTimeoutMs: number;
  readonly endElectionTimeoutMs: number;
  readonly heartbeatIntervalMs: number;
  readonly enableQuiescence: boolean;
  readonly quiesceAfterMs: number;
  readonly enableLeaderBalancer: boolean;
  readonly leaderBalancerIntervalMs: number;
  readonly compactEveryEntries: number;
  readonly compactEveryBytes: number;
  readonly compactKeepEntries: number;
  readonly maxBatchEntries: number;
  readonly maxBatchBytes: number;
  readonly batchLingerMs: number;
  readonly maxQueuedProposals: number;
  readonly maxQueuedBytes: number;
  readonly lockMaxLeaseMs: number;
  readonly lockMaxWaitMs: number;
  readonly lockMaxWaitersPerLock: number;
  readonly lockMaxWaiters: number;
  readonly lockSuccession: boolean;
  readonly lockAuditRetained: number;
  readonly watchMaxWatchers: number;
  readonly watchStreamBufferBytes: number;
  readonly watchHistoryBytes: number;
  readonly watchProgressMs: number;
  readonly lockRecordRetentionMs: number;
  readonly sequencerBlockSize: number;
  readonly sequencerBlockLeaseMs: number;
  readonly sequencerKeysRetainedMax: number;
  readonly sequencerKeysRetainedMs: number;
  readonly kvRevisionsRetained: number;
  readonly kvTombstoneRetentionMs: number;
  readonly kvMaxValueBytes: number;
  readonly kvScanPageBytes: number;
  /** null: the level is raised by an operator only. */
  readonly autoFinalizeMs: number | null;
  readonly rangeSplitThreshold: number;
  readonly rangeSplitMinRangeSize: number;
  readonly rangeMergeMinSize: number;
  readonly rangeCollectionIntervalMs: number;
  /** null = no backups. */
  readonly backupDir: string | null;
  /** null = no restores over the network. */
  readonly restoreRoot: string | null;
  readonly backupMacKeyFile: string | null;
  /** As it stands in manifests; "" = none. */
  readonly backupClusterId: string;
  /** The log stays for incremental backups for so long. */
  readonly pitrWindowMs: number;
  /** Bounds of what the collection of backups keeps; 0 = none. */
  readonly backupMaxChains: number;
  readonly backupMaxAgeMs: number;
  readonly backupMaxBytes: number;
  /** 0 = the leader of meta makes no passes by itself. */
  readonly backupGcIntervalMs: number;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  readonly logFormat: "text" | "json";
  /** off (in the ordinary log), stderr, or the path of a file. */
  readonly auditLog: string;
  /** Where spans go to, as it was given; null = nothing is recorded. */
  readonly traceEndpoint: string | null;
  readonly kernels: "wasm" | "twin";
  readonly benchmarkRoutes: boolean;
}

/** Whether clients must show who they are. */
export function needsCredentials(config: ServerConfig): boolean {
  return config.authTokensFile !== null || config.tlsClientCaFile !== null;
}
