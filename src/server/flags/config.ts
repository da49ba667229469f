/**
 * The server's configuration: built once from flags, checked across fields, frozen.
 *
 * Invariants: 1. Every violated relation is reported with both values and the remedy. 2. A flag
 * whose feature this version lacks is refused, never silently ignored. 3. Nothing reads flags after
 * this.
 */
import { hostname, homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { failure, ok, type Result } from "../../base/result.js";
import { isLoopback } from "./addresses.js";
import { parseMembers, parseSeeds } from "./cluster-flags.js";
import type { RawFlags } from "./flags.js";
import { checkRelations } from "./relations.js";
import type { ServerConfig } from "./server-config.js";

export { type ServerConfig, needsCredentials } from "./server-config.js";

/** Typed access to raw values; the flag table guarantees the kinds. */
class Reader {
  private readonly raw: RawFlags;

  constructor(raw: RawFlags) {
    this.raw = raw;
  }

  get liveFiles(): RawFlags["liveFiles"] {
    return this.raw.liveFiles;
  }

  isGiven(name: string): boolean {
    return this.raw.given.has(name);
  }

  number(name: string): number {
    return this.raw.values.get(name) as number;
  }

  boolean(name: string): boolean {
    return this.raw.values.get(name) as boolean;
  }

  text(name: string): string {
    return this.raw.values.get(name) as string;
  }

  /** null when not given or empty. */
  optionalText(name: string): string | null {
    const value = this.raw.values.get(name) as string | null;
    return value === null || value === "" ? null : value;
  }

  /** The parts between commas, trimmed, without empty ones. */
  list(name: string): readonly string[] {
    const parts = (this.optionalText(name) ?? "").split(",").map((part) => part.trim());
    return parts.filter((part) => part !== "");
  }

  /** A port or a duration; null = off. */
  numberOrOff(name: string): number | null {
    return this.raw.values.get(name) as number | null;
  }

  file(name: string): string | null {
    const value = this.optionalText(name);
    return value === null ? null : resolve(value);
  }
}

function defaultStoragePath(environment: Readonly<Record<string, string | undefined>>): string {
  const home = environment["XDG_DATA_HOME"];
  // The XDG base directory specification: a relative path in the variable is invalid and ignored.
  const base = home !== undefined && isAbsolute(home) ? home : join(homedir(), ".local", "share");
  return join(base, "svc", "data");
}

function auditLogOf(text: string): string {
  return text === "off" || text === "stderr" ? text : resolve(text);
}

type ClusterFields =
  | "peerHost"
  | "peerPort"
  | "peerPortGiven"
  | "advertisedPeerEndpoint"
  | "initialCluster"
  | "initialClusterState"
  | "join"
  | "peerTlsCertFile"
  | "peerTlsKeyFile"
  | "peerTlsCaFile"
  | "peerTlsRequireNodeId"
  | "peerSecretFile";

/** Where the node is among the others, and who they are. */
function clusterConfig(
  read: Reader,
  host: string,
  nodeId: number,
): Pick<ServerConfig, ClusterFields> {
  // A list that cannot be read is refused with the other relations, whatever it counts as here.
  const members = parseMembers(read.optionalText("--initial-cluster") ?? "");
  const initialCluster = members.ok ? members.value : [];
  const seeds = parseSeeds(read.optionalText("--join") ?? "");
  const listedAs = initialCluster.find((member) => member.nodeId === nodeId)?.endpoint ?? null;
  return {
    peerHost: read.optionalText("--peer-host") ?? host,
    peerPort: read.numberOrOff("--peer-port"),
    peerPortGiven: read.isGiven("--peer-port"),
    advertisedPeerEndpoint: read.optionalText("--advertised-peer-endpoint") ?? listedAs,
    initialCluster,
    initialClusterState: read.text(
      "--initial-cluster-state",
    ) as ServerConfig["initialClusterState"],
    join: seeds.ok ? seeds.value : [],
    peerTlsCertFile: read.file("--peer-tls-cert"),
    peerTlsKeyFile: read.file("--peer-tls-key"),
    peerTlsCaFile: read.file("--peer-tls-ca"),
    peerTlsRequireNodeId: read.boolean("--peer-tls-require-node-id"),
    peerSecretFile: read.file("--peer-secret-file"),
  };
}

type ListenerFields = "host" | "grpcPort" | "httpsPort" | "httpPort" | "healthPort" | "healthHost";

type ConsoleFields = "console" | "consoleGiven" | "consolePort" | "consoleHost";

/** Off loopback it is for those who can be told apart, unless an operator wants it so. */
function consoleConfig(read: Reader, host: string): Pick<ServerConfig, ConsoleFields> {
  const hasCallers = ["--auth-tokens-file", "--tls-client-ca"].some(
    (flag) => read.optionalText(flag) !== null,
  );
  const isGiven = read.isGiven("--console");
  return {
    console: isGiven ? read.boolean("--console") : hasCallers || isLoopback(host),
    consoleGiven: isGiven,
    consolePort: read.numberOrOff("--console-port"),
    consoleHost: read.optionalText("--console-host") ?? host,
  };
}

/** Where clients and probes find the node. */
function listenerConfig(read: Reader, host: string): Pick<ServerConfig, ListenerFields> {
  return {
    host,
    grpcPort: read.numberOrOff("--grpc-port"),
    httpsPort: read.numberOrOff("--https-port"),
    httpPort: read.numberOrOff("--http-port"),
    healthPort: read.numberOrOff("--health-port"),
    healthHost: read.optionalText("--health-host") ?? host,
  };
}

/** `ordinal`: by the number at the end of the name, as `svc-0` is node 1; 0 when it has none. */
function nameOf(read: Reader): Pick<ServerConfig, "nodeId" | "nodeName"> {
  const nodeName = read.optionalText("--raft-nodename") ?? hostname();
  if (read.text("--raft-nodeid") !== "ordinal") {
    return { nodeId: read.number("--raft-nodeid"), nodeName };
  }
  const digits = /\d+$/.exec(nodeName)?.[0];
  return { nodeId: digits === undefined ? 0 : Number(digits) + 1, nodeName };
}

/** Which pages may call, and under which names. */
function browserConfig(read: Reader): Pick<ServerConfig, "allowedOrigins" | "allowedHosts"> {
  const list = (name: string): readonly string[] =>
    read.list(name).map((text) => text.toLowerCase());
  return { allowedOrigins: list("--allowed-origins"), allowedHosts: list("--allowed-hosts") };
}

type RangeFields =
  | "rangeSplitThreshold"
  | "rangeSplitMinRangeSize"
  | "rangeMergeMinSize"
  | "rangeCollectionIntervalMs";

function rangeConfig(read: Reader): Pick<ServerConfig, RangeFields> {
  return {
    rangeSplitThreshold: read.number("--range-split-threshold"),
    rangeSplitMinRangeSize: read.number("--range-split-min-range-size"),
    rangeMergeMinSize: read.number("--range-merge-min-size"),
    rangeCollectionIntervalMs: read.number("--range-collection-interval"),
  };
}

/** What may change while the node runs. */
function liveConfig(
  read: Reader,
): Pick<ServerConfig, "logLevel" | "callerRateLimit" | "slowRequestMs" | "liveFiles"> {
  return {
    logLevel: read.text("--log-level") as ServerConfig["logLevel"],
    callerRateLimit: read.number("--caller-rate-limit"),
    slowRequestMs: read.number("--slow-request-threshold"),
    liveFiles: read.liveFiles,
  };
}

type BackupFields =
  | "backupDir"
  | "restoreRoot"
  | "backupMacKeyFile"
  | "backupClusterId"
  | "pitrWindowMs"
  | "backupMaxChains"
  | "backupMaxAgeMs"
  | "backupMaxBytes"
  | "backupGcIntervalMs";

function backupConfig(read: Reader): Pick<ServerConfig, BackupFields> {
  return {
    // Paths that every node has to mean alike are not completed by where a process was started.
    backupDir: read.optionalText("--pitr-backup-dir"),
    restoreRoot: read.optionalText("--pitr-restore-root"),
    backupMacKeyFile: read.file("--pitr-backup-mac-key-file"),
    backupClusterId: read.optionalText("--pitr-backup-cluster-id") ?? "",
    pitrWindowMs: read.number("--pitr-window"),
    backupMaxChains: read.number("--backup-retention-max-chains"),
    backupMaxAgeMs: read.number("--backup-retention-max-age"),
    backupMaxBytes: read.number("--backup-retention-max-bytes"),
    backupGcIntervalMs: read.number("--backup-gc-interval"),
  };
}

type PlacementFields =
  | "replicationFactor"
  | "replicationFactorGiven"
  | "enableRebalancer"
  | "placementPassIntervalMs"
  | "deadMemberTimeoutMs"
  | "drainTimeoutMs";

function placementConfig(read: Reader): Pick<ServerConfig, PlacementFields> {
  const replicationFactor = read.number("--raft-replication-factor");
  const flag = "--raft-enable-placement-rebalancer";
  return {
    replicationFactor,
    replicationFactorGiven: read.isGiven("--raft-replication-factor"),
    enableRebalancer: read.isGiven(flag) ? read.boolean(flag) : null,
    placementPassIntervalMs: read.number("--raft-placement-pass-interval"),
    deadMemberTimeoutMs: read.number("--raft-dead-member-timeout"),
    drainTimeoutMs: read.number("--raft-decommission-drain-timeout"),
  };
}

function lockConfig(read: Reader) {
  return {
    lockMaxLeaseMs: read.number("--lock-max-lease"),
    lockMaxWaitMs: read.number("--lock-max-wait"),
    lockMaxWaitersPerLock: read.number("--lock-max-waiters-per-lock"),
    lockMaxWaiters: read.number("--lock-max-waiters"),
    lockSuccession: read.boolean("--lock-succession"),
    lockAuditRetained: read.number("--lock-audit-retained"),
    lockRecordRetentionMs: read.number("--lock-record-retention"),
  };
}

function watchConfig(read: Reader) {
  return {
    watchMaxWatchers: read.number("--watch-max-watchers"),
    watchStreamBufferBytes: read.number("--watch-stream-buffer-bytes"),
    watchHistoryBytes: read.number("--watch-history-bytes"),
    watchProgressMs: read.number("--watch-progress"),
  };
}

/** What it tells of what it does, and whom. */
function tellingConfig(
  read: Reader,
): Pick<ServerConfig, "auditLog" | "traceEndpoint" | "logFormat"> {
  return {
    auditLog: auditLogOf(read.text("--audit-log")),
    traceEndpoint: read.optionalText("--trace-endpoint"),
    logFormat: read.text("--log-format") as ServerConfig["logFormat"],
  };
}

function buildConfig(
  read: Reader,
  environment: Readonly<Record<string, string | undefined>>,
): ServerConfig {
  const host = read.text("--host");
  const name = nameOf(read);
  return {
    ...listenerConfig(read, host),
    ...consoleConfig(read, host),
    ...clusterConfig(read, host, name.nodeId),
    peerPingIntervalMs: read.number("--raft-peer-ping-interval"),
    advertisedClientEndpoint: read.optionalText("--advertised-client-endpoint"),
    disableRoutingHints: read.boolean("--disable-routing-hints"),
    requestTimeoutMs: read.number("--request-timeout"),
    shutdownTimeoutMs: read.number("--shutdown-timeout"),
    shutdownDelayMs: read.number("--shutdown-delay"),
    gracefulLeave: read.boolean("--graceful-leave-on-shutdown"),
    ...placementConfig(read),
    maxRequestBytes: read.number("--max-request-bytes"),
    grpcMaxReceiveBytes: read.number("--grpc-max-receive-bytes"),
    maxResponseBytes: read.number("--max-response-bytes"),
    maxInflightRequests: read.number("--max-inflight-requests"),
    maxInflightPerStream: read.number("--max-inflight-per-stream"),
    ...liveConfig(read),
    tlsCertFile: read.file("--tls-cert"),
    tlsKeyFile: read.file("--tls-key"),
    tlsClientCaFile: read.file("--tls-client-ca"),
    authTokensFile: read.file("--auth-tokens-file"),
    ...browserConfig(read),
    allowInsecure: read.boolean("--allow-insecure"),
    storage: read.text("--storage") as ServerConfig["storage"],
    storagePath: read.file("--storage-path") ?? defaultStoragePath(environment),
    storageRevision: read.text("--storage-revision"),
    storageMaxBytes: read.number("--storage-max-bytes"),
    walPath: read.file("--wal-path"),
    ...name,
    partitions: read.number("--initial-cluster-partitions"),
    startElectionTimeoutMs: read.number("--raft-start-election-timeout"),
    endElectionTimeoutMs: read.number("--raft-end-election-timeout"),
    heartbeatIntervalMs: read.number("--raft-heartbeat-interval"),
    enableQuiescence: read.boolean("--raft-enable-quiescence"),
    quiesceAfterMs: read.number("--raft-quiesce-after"),
    enableLeaderBalancer: read.boolean("--raft-enable-leader-balancer"),
    leaderBalancerIntervalMs: read.number("--raft-leader-balancer-interval"),
    compactEveryEntries: read.number("--raft-compact-every-entries"),
    compactEveryBytes: read.number("--raft-compact-every-bytes"),
    compactKeepEntries: read.number("--raft-compact-keep-entries"),
    maxBatchEntries: read.number("--raft-max-batch-entries"),
    maxBatchBytes: read.number("--raft-max-batch-bytes"),
    batchLingerMs: read.number("--raft-batch-linger"),
    maxQueuedProposals: read.number("--raft-max-queued-proposals"),
    maxQueuedBytes: read.number("--raft-max-queued-bytes"),
    ...lockConfig(read),
    ...watchConfig(read),
    sequencerBlockSize: read.number("--sequencer-block-size"),
    sequencerBlockLeaseMs: read.number("--sequencer-block-lease"),
    sequencerKeysRetainedMax: read.number("--sequencer-idempotency-retention-max"),
    sequencerKeysRetainedMs: read.number("--sequencer-idempotency-retention-ttl"),
    kvRevisionsRetained: read.number("--kv-revisions-retained"),
    kvTombstoneRetentionMs: read.number("--kv-tombstone-retention"),
    kvMaxValueBytes: read.number("--kv-max-value-bytes"),
    kvScanPageBytes: read.number("--kv-scan-page-bytes"),
    autoFinalizeMs: read.numberOrOff("--upgrade-auto-finalize"),
    ...rangeConfig(read),
    ...backupConfig(read),
    ...tellingConfig(read),
    kernels: read.text("--kernels") as ServerConfig["kernels"],
    benchmarkRoutes: read.boolean("--benchmark-routes"),
  };
}

/** The frozen configuration, or the first violated relation as a usage failure. */
export function makeConfig(
  raw: RawFlags,
  environment: Readonly<Record<string, string | undefined>>,
): Result<ServerConfig, "usage"> {
  const config = buildConfig(new Reader(raw), environment);
  const violation = checkRelations(config, raw);
  return violation === null ? ok(Object.freeze(config)) : failure("usage", violation);
}
