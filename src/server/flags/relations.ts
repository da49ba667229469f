/**
 * The relations between configuration values, one function per area; the first violated one is the
 * answer.
 *
 * Invariants: 1. A message names the flags, both values and what to change. 2. Checks only read.
 */
import { isIP } from "node:net";
import {
  ENTRY_PAYLOAD_MAX_BYTES,
  INITIAL_PARTITIONS_MAX,
  LEASE_MAX_MS,
  LOCK_AUDIT_ROWS_MAX,
  LOCK_WAIT_CONFIGURABLE_MAX_MS,
  NODE_ID_MAX,
  VALUE_CONFIGURABLE_MAX_BYTES,
  WATCH_PROGRESS_MAX_MS,
  WATCH_PROGRESS_MIN_MS,
} from "../../base/limits.js";
import { isLoopback, isWildcard } from "./addresses.js";
import { isEndpoint, membershipMistake, parseMembers, parseSeeds } from "./cluster-flags.js";

import { checkBackups } from "./backup-relations.js";
import { checkPlacement } from "./placement-relations.js";
import { type Check, firstOf, outside } from "./relation.js";
import { liveMistake } from "./live-flags.js";
import type { RawFlags } from "./flags.js";
import { type ServerConfig, needsCredentials } from "./server-config.js";

const checkNodeId: Check = (config, raw) => {
  const isOrdinal = raw.values.get("--raft-nodeid") === "ordinal";
  return isOrdinal && config.nodeId === 0
    ? `--raft-nodeid is ordinal, but --raft-nodename ${config.nodeName} does not end in a number`
    : null;
};

const checkCluster: Check = (config, raw) => {
  const text = (name: string): string => (raw.values.get(name) as string | null) ?? "";
  const members = parseMembers(text("--initial-cluster"));
  if (!members.ok) return members.message;
  const seeds = parseSeeds(text("--join"));
  if (!seeds.ok) return seeds.message;
  if (
    config.initialClusterState === "existing" &&
    members.value.length === 0 &&
    seeds.value.length === 0
  ) {
    return "--initial-cluster-state is existing, which joins a cluster: give --initial-cluster or --join";
  }
  if (config.peerPort === null) {
    const other = members.value.length > 0 ? "--initial-cluster" : "--join";
    return members.value.length === 0 && seeds.value.length === 0
      ? null
      : `--peer-port is off, which is a single node without peers: give it a port, or leave ${other} away`;
  }
  const given = text("--advertised-peer-endpoint");
  const advertised = given === "" ? null : given;
  return membershipMistake(members.value, config.nodeId, advertised, config.peerPort);
};

const checkPeerListener: Check = (config) => {
  const files = [config.peerTlsCertFile, config.peerTlsKeyFile, config.peerTlsCaFile];
  const missing = files.filter((file) => file === null).length;
  if (missing !== 0 && missing !== files.length) {
    return "--peer-tls-cert, --peer-tls-key and --peer-tls-ca go together; give all three or none";
  }
  if (config.peerTlsRequireNodeId && missing > 0) {
    return "--peer-tls-require-node-id needs --peer-tls-cert, --peer-tls-key and --peer-tls-ca";
  }
  return config.peerPort === null ? null : checkPeerAddress(config, missing === 0);
};

/** A listener for peers opens: where it may, and for whom. */
function checkPeerAddress(config: ServerConfig, isSecured: boolean): string | null {
  const { peerHost } = config;
  if (isWildcard(peerHost) && config.advertisedPeerEndpoint === null) {
    // The member list keeps this address for good, and nobody can reach a wildcard.
    return `--peer-host is ${peerHost}, which stands for every address: give --advertised-peer-endpoint host:port, under which the roster lists this node`;
  }
  if (!isLoopback(peerHost) && !isSecured && !config.allowInsecure) {
    return `the peer listener would open on ${peerHost}, which is not loopback: give --peer-tls-cert, --peer-tls-key and --peer-tls-ca, or --allow-insecure`;
  }
  const isOpen = !isSecured && config.peerSecretFile === null && !config.allowInsecure;
  if (needsCredentials(config) && isOpen) {
    return `the peer listener would open on ${peerHost} for everybody, while clients need credentials: give --peer-secret-file, or --peer-tls-cert, --peer-tls-key and --peer-tls-ca, or --peer-port off, or --allow-insecure`;
  }
  const endpoint = config.advertisedPeerEndpoint;
  return endpoint === null || isEndpoint(endpoint)
    ? null
    : `--advertised-peer-endpoint "${endpoint}" is not of the form host:port`;
}

/** A scheme and an authority, as browsers write them: nothing behind it, no default port. */
function isOrigin(text: string): boolean {
  try {
    const { protocol, origin } = new URL(text);
    return (protocol === "http:" || protocol === "https:") && origin === text;
  } catch {
    return false;
  }
}

const checkBrowsers: Check = ({ allowedOrigins, allowedHosts }) => {
  const origin = allowedOrigins.find((text) => !isOrigin(text));
  if (origin !== undefined) {
    return `--allowed-origins names "${origin}"; an origin is a scheme and a host, such as https://console.example or http://localhost:3000`;
  }
  const host = allowedHosts.find((text) => isIP(text) === 0 && !/^[a-z0-9._-]+$/.test(text));
  return host === undefined
    ? null
    : `--allowed-hosts names "${host}"; give names or addresses without scheme and port`;
};

function unguarded(listener: string, host: string): string {
  return `the ${listener} listener would open on ${host}, which is not loopback: give --auth-tokens-file, --tls-client-ca or --allow-insecure`;
}

const checkListeners: Check = (config) => {
  if (config.grpcPort === null && config.httpsPort === null && config.httpPort === null) {
    return "--grpc-port, --https-port and --http-port are all off; open at least one listener";
  }
  if ((config.tlsCertFile === null) !== (config.tlsKeyFile === null)) {
    return "--tls-cert and --tls-key go together; give both or neither";
  }
  const isGuarded =
    config.authTokensFile !== null || config.tlsClientCaFile !== null || config.allowInsecure;
  if (config.consolePort !== null && !isLoopback(config.consoleHost) && !isGuarded) {
    return unguarded("console", config.consoleHost);
  }
  if (isLoopback(config.host)) return null;
  const cleartext: readonly (readonly [string, number | null])[] = [
    ["gRPC cleartext", config.grpcPort],
    ["HTTP cleartext", config.httpPort],
  ];
  for (const [listener, port] of cleartext) {
    if (port !== null && config.authTokensFile === null && !config.allowInsecure) {
      return `the ${listener} listener would open on ${config.host}, which is not loopback: give --auth-tokens-file or --allow-insecure, or turn it off`;
    }
  }
  return config.httpsPort !== null && !isGuarded ? unguarded("HTTPS", config.host) : null;
};

const SHUTDOWN_DELAY_BELOW_MS = 60_000;

const checkTimes: Check = (config) => {
  const delay = config.shutdownDelayMs;
  if (delay >= SHUTDOWN_DELAY_BELOW_MS) {
    return `--shutdown-delay is ${delay}ms; it must be below ${SHUTDOWN_DELAY_BELOW_MS}ms`;
  }
  const start = config.startElectionTimeoutMs;
  const end = config.endElectionTimeoutMs;
  const heartbeat = config.heartbeatIntervalMs;
  if (heartbeat < 1) return `--raft-heartbeat-interval is ${heartbeat}ms; it must be at least 1ms`;
  if (start < 5 * heartbeat) {
    return `--raft-start-election-timeout is ${start}ms; it must be at least 5 times --raft-heartbeat-interval (${heartbeat}ms)`;
  }
  if (end <= start) {
    return `--raft-end-election-timeout is ${end}ms; it must be above --raft-start-election-timeout (${start}ms)`;
  }
  if (config.requestTimeoutMs < 2 * end) {
    return `--request-timeout is ${config.requestTimeoutMs}ms; it must be at least twice --raft-end-election-timeout (${end}ms)`;
  }
  if (config.quiesceAfterMs < heartbeat) {
    return `--raft-quiesce-after is ${config.quiesceAfterMs}ms; it must be at least --raft-heartbeat-interval (${heartbeat}ms)`;
  }
  const lease = config.sequencerBlockLeaseMs;
  if (lease < 100 || lease > config.requestTimeoutMs / 2) {
    return `--sequencer-block-lease is ${lease}ms; it must be 100ms to half of --request-timeout (${config.requestTimeoutMs}ms)`;
  }
  return null;
};

const checkPeerTimes: Check = (config) => {
  const ping = config.peerPingIntervalMs;
  if (ping < 10) return `--raft-peer-ping-interval is ${ping}ms; it must be at least 10ms`;
  if (ping >= config.startElectionTimeoutMs) {
    return `--raft-peer-ping-interval is ${ping}ms; it must be below --raft-start-election-timeout (${config.startElectionTimeoutMs}ms)`;
  }
  return null;
};

const checkSizes: Check = (config) => {
  const value = config.kvMaxValueBytes;
  if (value >= config.grpcMaxReceiveBytes) {
    return `--kv-max-value-bytes is ${value}; it must be below --grpc-max-receive-bytes (${config.grpcMaxReceiveBytes})`;
  }
  const body = Math.ceil((value * 4) / 3) + 4096;
  if (config.maxRequestBytes < body) {
    return `--max-request-bytes is ${config.maxRequestBytes}; with --kv-max-value-bytes ${value} it must be at least ${body} (base64 grows a value by a third)`;
  }
  if (config.kvScanPageBytes >= config.maxResponseBytes) {
    return `--kv-scan-page-bytes is ${config.kvScanPageBytes}; it must be below --max-response-bytes (${config.maxResponseBytes})`;
  }
  return null;
};

const checkRanges: Check = (config) => {
  const split = config.rangeSplitThreshold;
  if (split > 0 && config.rangeMergeMinSize >= split) {
    return `--range-merge-min-size is ${config.rangeMergeMinSize}; it must be below --range-split-threshold (${split})`;
  }
  return firstOf(
    outside("--raft-nodeid", config.nodeId, 1, NODE_ID_MAX),
    outside("--initial-cluster-partitions", config.partitions, 1, INITIAL_PARTITIONS_MAX),
    outside("--lock-max-lease (ms)", config.lockMaxLeaseMs, 1, LEASE_MAX_MS),
    outside("--lock-max-wait (ms)", config.lockMaxWaitMs, 1, LOCK_WAIT_CONFIGURABLE_MAX_MS),
    outside("--lock-max-waiters", config.lockMaxWaiters, 1, 1_000_000),
    outside("--lock-audit-retained", config.lockAuditRetained, 1, LOCK_AUDIT_ROWS_MAX),
    outside("--lock-max-waiters-per-lock", config.lockMaxWaitersPerLock, 1, config.lockMaxWaiters),
    outside("--watch-max-watchers", config.watchMaxWatchers, 0, 1_000_000),
    outside(
      "--watch-stream-buffer-bytes",
      config.watchStreamBufferBytes,
      64 * 1024,
      256 * 1024 ** 2,
    ),
    outside("--watch-history-bytes", config.watchHistoryBytes, 0, 1024 ** 3),
    outside(
      "--watch-progress (ms)",
      config.watchProgressMs,
      WATCH_PROGRESS_MIN_MS,
      WATCH_PROGRESS_MAX_MS,
    ),
    outside("--kv-revisions-retained", config.kvRevisionsRetained, 1, 65_535),
    outside("--kv-max-value-bytes", config.kvMaxValueBytes, 1, VALUE_CONFIGURABLE_MAX_BYTES),
    outside("--kv-scan-page-bytes", config.kvScanPageBytes, 1024, 256 * 1024 ** 2),
    outside("--sequencer-block-size", config.sequencerBlockSize, 1, 2_147_483_647),
    outside("--sequencer-idempotency-retention-max", config.sequencerKeysRetainedMax, 0, 1_000_000),
    outside("--raft-max-batch-entries", config.maxBatchEntries, 1, 65_536),
    outside("--raft-max-batch-bytes", config.maxBatchBytes, 1024, ENTRY_PAYLOAD_MAX_BYTES),
    outside("--raft-max-queued-proposals", config.maxQueuedProposals, 1, 1_000_000),
    outside("--raft-max-queued-bytes", config.maxQueuedBytes, 64 * 1024, 1024 ** 3),
    outside("--raft-compact-every-entries", config.compactEveryEntries, 1, 100_000_000),
    outside("--raft-compact-every-bytes", config.compactEveryBytes, 64 * 1024, 1024 ** 4),
    outside("--max-inflight-requests", config.maxInflightRequests, 1, 1_000_000),
    outside("--max-inflight-per-stream", config.maxInflightPerStream, 1, 1_000_000),
    outside("--storage-max-bytes", config.storageMaxBytes, 16 * 1024 ** 2, 1024 ** 5),
  );
};

const checkNames: Check = (config) => {
  if (
    !/^[A-Za-z0-9._-]{1,64}$/.test(config.storageRevision) ||
    /^\.+$/.test(config.storageRevision)
  ) {
    return `--storage-revision "${config.storageRevision}" is not a plain directory name of 1 to 64 letters, digits, dots, dashes`;
  }
  const endpoint = config.advertisedClientEndpoint;
  if (endpoint !== null && !/^https?:\/\/[^/\s]+$/.test(endpoint)) {
    return `--advertised-client-endpoint "${endpoint}" is not a base URL such as http://host:8083`;
  }
  const { traceEndpoint } = config;
  if (traceEndpoint !== null && !/^https?:\/\/[^/\s@?#]+(?:\/[^\s?#]*)?$/.test(traceEndpoint)) {
    return `--trace-endpoint "${traceEndpoint}" is not a URL such as http://collector:4318`;
  }
  return null;
};

const checkLive: Check = ({ callerRateLimit, slowRequestMs }) =>
  liveMistake("--caller-rate-limit", callerRateLimit) ??
  liveMistake("--slow-request-threshold", slowRequestMs);

const CHECKS: readonly Check[] = [
  checkListeners,
  checkBrowsers,
  checkPeerListener,
  checkNodeId,
  checkCluster,
  checkTimes,
  checkPeerTimes,
  checkSizes,
  checkPlacement,
  checkBackups,
  checkRanges,
  checkNames,
  checkLive,
];

/** The first violated relation as a sentence for the operator, or null. */
export function checkRelations(config: ServerConfig, raw: RawFlags): string | null {
  for (const check of CHECKS) {
    const violation = check(config, raw);
    if (violation !== null) return violation;
  }
  return null;
}
