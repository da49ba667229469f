/** Turns the server's configuration into the settings of the host and of the operations. */
import { PERMITS } from "../../base/levels.js";
import { FIXED_HOST_SETTINGS, type HostSettings } from "../../host/settings.js";
import type { OperationsSettings } from "../../operations/api/settings.js";
import type { ServerConfig } from "./config.js";
import { VERSION } from "../../base/generated/version.js";

/** What is known of the node's cluster only once its listener and its disk are open. */
export type ClusterSettings = Pick<
  HostSettings,
  "endpoint" | "clusterId" | "storageId" | "founders" | "entryLevel" | "adopts"
>;

export function hostSettings(config: ServerConfig, cluster: ClusterSettings): HostSettings {
  return {
    ...FIXED_HOST_SETTINGS,
    ...cluster,
    nodeId: config.nodeId,
    storage: config.storage,
    storeMaxBytes: config.storage === "memory" ? 0 : config.storageMaxBytes,
    initialPartitions: config.partitions,
    replicationFactor: config.replicationFactor,
    givenReplicationFactor: config.replicationFactorGiven ? config.replicationFactor : null,
    rebalancerEnabled: config.enableRebalancer,
    placementPassEveryMs: config.placementPassIntervalMs,
    ranges: {
      splitThreshold: config.rangeSplitThreshold,
      splitMinSize: config.rangeSplitMinRangeSize,
      mergeMinSize: config.rangeMergeMinSize,
      collectionEveryMs: config.rangeCollectionIntervalMs,
    },
    deadMemberMs: config.deadMemberTimeoutMs,
    heartbeatMs: config.heartbeatIntervalMs,
    electionMs: config.startElectionTimeoutMs,
    electionEndMs: config.endElectionTimeoutMs,
    quiesceAfterMs: config.enableQuiescence ? config.quiesceAfterMs : 0,
    leaderBalanceEveryMs: config.enableLeaderBalancer ? config.leaderBalancerIntervalMs : 0,
    batchEntriesMax: Math.min(config.maxBatchEntries, config.maxQueuedProposals),
    batchBytesMax: config.maxBatchBytes,
    lingerMs: config.batchLingerMs,
    queuedCommandsMax: config.maxQueuedProposals,
    queuedBytesMax: config.maxQueuedBytes,
    compactEveryEntries: config.compactEveryEntries,
    compactEveryBytes: config.compactEveryBytes,
    compactKeepEntries: config.compactKeepEntries,
    lockRecordRetentionMs: config.lockRecordRetentionMs,
    autoFinalizeMs: config.autoFinalizeMs,
    tombstoneRetentionMs: config.kvTombstoneRetentionMs,
    pitrWindowMs: config.backupDir === null ? 0 : config.pitrWindowMs,
  };
}

/**
 * `clientEndpoint` is asked for at each answer: with port 0 it is known only once the listeners are
 * open.
 */
export function operationsSettings(
  config: ServerConfig,
  peerEndpoint: string,
  clientEndpoint: () => string,
): OperationsSettings {
  return {
    version: VERSION,
    permits: PERMITS,
    nodeId: config.nodeId,
    peerEndpoint,
    get clientEndpoint(): string {
      return clientEndpoint();
    },
    routingHints: !config.disableRoutingHints,
    requestTimeoutMs: config.requestTimeoutMs,
    leaderWaitMs: config.endElectionTimeoutMs,
    inflightMax: config.maxInflightRequests,
    callerRateLimit: config.callerRateLimit,
    slowRequestMs: config.slowRequestMs,
    lockMaxLeaseMs: config.lockMaxLeaseMs,
    lockMaxWaitMs: config.lockMaxWaitMs,
    lockWaitersPerLockMax: config.lockMaxWaitersPerLock,
    lockWaitersMax: config.lockMaxWaiters,
    lockSuccession: config.lockSuccession,
    lockAuditRetained: config.lockAuditRetained,
    watchMaxWatchers: config.watchMaxWatchers,
    watchStreamBufferBytes: config.watchStreamBufferBytes,
    watchHistoryBytes: config.watchHistoryBytes,
    watchProgressMs: config.watchProgressMs,
    sequencerBlockSize: config.sequencerBlockSize,
    sequencerBlockLeaseMs: config.sequencerBlockLeaseMs,
    keysRetainedMax: config.sequencerKeysRetainedMax,
    keysRetainedMs: config.sequencerKeysRetainedMs,
    revisionsRetained: config.kvRevisionsRetained,
    valueMaxBytes: config.kvMaxValueBytes,
    pageBytes: config.kvScanPageBytes,
    responseMaxBytes: config.maxResponseBytes,
    rangeSplitMinSize: config.rangeSplitMinRangeSize,
    rangeMergeMinSize: config.rangeMergeMinSize,
    drainTimeoutMs: config.drainTimeoutMs,
    rebalancerEnabled: config.enableRebalancer,
    givenReplicationFactor: config.replicationFactorGiven ? config.replicationFactor : null,
  };
}
