/** Turns the server's configuration into the settings of the host and of the operations. */
import { DEFAULT_HOST_SETTINGS, type HostSettings } from "../host/settings.js";
import type { OperationsSettings } from "../operations/settings.js";
import type { ServerConfig } from "./config.js";
import { VERSION } from "./version.js";

export function hostSettings(config: ServerConfig): HostSettings {
  return {
    ...DEFAULT_HOST_SETTINGS,
    nodeId: config.nodeId,
    endpoint: config.advertisedPeerEndpoint,
    initialPartitions: config.partitions,
    heartbeatMs: config.heartbeatIntervalMs,
    electionMs: config.startElectionTimeoutMs,
    batchEntriesMax: Math.min(config.maxBatchEntries, config.maxQueuedProposals),
    batchBytesMax: config.maxBatchBytes,
    lingerMs: config.batchLingerMs,
    queuedCommandsMax: config.maxQueuedProposals,
    queuedBytesMax: config.maxQueuedBytes,
    compactEveryEntries: config.compactEveryEntries,
    compactEveryBytes: config.compactEveryBytes,
    compactKeepEntries: config.compactKeepEntries,
    lockRecordRetentionMs: config.lockRecordRetentionMs,
    tombstoneRetentionMs: config.kvTombstoneRetentionMs,
  };
}

/**
 * `clientEndpoint` is asked for at each answer: with port 0 it is known only once the listeners are
 * open.
 */
export function operationsSettings(
  config: ServerConfig,
  clientEndpoint: () => string,
): OperationsSettings {
  return {
    version: VERSION,
    nodeId: config.nodeId,
    peerEndpoint: config.advertisedPeerEndpoint,
    get clientEndpoint(): string {
      return clientEndpoint();
    },
    routingHints: !config.disableRoutingHints,
    requestTimeoutMs: config.requestTimeoutMs,
    leaderWaitMs: config.endElectionTimeoutMs,
    inflightMax: config.maxInflightRequests,
    lockMaxLeaseMs: config.lockMaxLeaseMs,
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
    rebalancerEnabled: false,
    backupsConfigured: false,
    restoreConfigured: false,
  };
}
