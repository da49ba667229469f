/**
 * Puts a node together: ports, links, disk, host, operations, front ends.
 *
 * Invariants: 1. A start that fails leaves nothing open. 2. Only this file knows all rooms of the
 * house.
 */
import type { ConnectionCount } from "../base/connections.js";
import { META_PARTITION } from "../base/ids.js";
import { PROGRAM } from "../base/levels.js";
import { type Failure, type Result, failure, ok } from "../base/result.js";
import { UnsentBytes } from "../base/unsent.js";
import { DifferedFile } from "../disk/differed-file.js";
import { openDisk, type Disk, type DiskCode } from "../disk/open.js";
import { Node, type StartRefusal } from "../host/node.js";
import type { GroupFacts } from "../host/requests/results.js";
import { Operations } from "../operations/operations.js";
import type { BackupWorld } from "../operations/api/backup-world.js";
import { RequestTally } from "../operations/admission/tally.js";
import { placeOfRow } from "../machine/store/row-place.js";
import { KernelSorter } from "../machine/store/kernel-sorter.js";
import type { FatalPort, LogFields, LoggerPort } from "../ports.js";
import { processFatal, systemClock, systemEntropy, systemTimers } from "../sys.js";
import { createKernels } from "../wasm/kernels.js";
import { AuditLog, configDigest } from "./security/audit.js";
import { backupWorld, readKey } from "./backups.js";
import { isWildcard } from "./flags/addresses.js";
import { type Beginning, findClusterId, findFounders, peersMissed } from "./listeners/belonging.js";
import type { ServerConfig } from "./flags/config.js";
import { connectionCount, descriptorLimit } from "./listeners/descriptors.js";
import { hostSettings, operationsSettings } from "./flags/floor-settings.js";
import { HealthListener } from "./listeners/health-listener.js";
import { openListeners, type ListenAddresses } from "./listeners/listeners.js";
import { debugFacts } from "./debug-facts.js";
import { cpuProfile, NodeDebug } from "./node-debug.js";
import { LiveSettings, type LiveTargets } from "./live-settings.js";
import type { LeveledLogger } from "./logs.js";
import { NodeCensus } from "./metrics/census.js";
import { LogLines } from "./metrics/log-lines.js";
import { Metrics } from "./metrics/metrics.js";
import type { Roster } from "./metrics/state-lines.js";
import { type Peers, openPeers, randomHex } from "./listeners/peers.js";
import { Assembled, type RunningServer, type Stack } from "./running.js";
import { Starting } from "./listeners/starting.js";
import { Authenticator, TokenFile } from "./security/tokens.js";
import type { SpanExporter } from "./tracing/exporter.js";
import { openTraces, tracerInto } from "./tracing/traces.js";
import { VERSION } from "../base/generated/version.js";

export type { ListenAddresses } from "./listeners/listeners.js";
export type { RunningServer } from "./running.js";

/** Why a start was refused: something to set right on the command line, or in the storage. */
export type RefusalKind = "usage" | "storage";

/** Directories that are somebody else's: another path or node id is all that it takes. */
const USAGE_CODES: readonly (DiskCode | StartRefusal)[] = [
  "storage-in-use",
  "storage-foreign",
  "log-foreign",
  "foreign-data",
];

function refusalKind(code: DiskCode | StartRefusal): RefusalKind {
  return USAGE_CODES.includes(code) ? "usage" : "storage";
}

function clientEndpointOf(config: ServerConfig, addresses: ListenAddresses): string {
  if (config.advertisedClientEndpoint !== null) return config.advertisedClientEndpoint;
  if (isWildcard(config.host)) return "";
  if (addresses.grpc !== null) return `http://${addresses.grpc}`;
  return addresses.https === null ? "" : `https://${addresses.https}`;
}

function openStorage(
  config: ServerConfig,
  clusterId: string,
  logger: LoggerPort,
  fatal: FatalPort,
  metrics: Metrics,
): Promise<Result<Disk, DiskCode>> {
  return new Promise((resolve) => {
    openDisk(
      {
        adapter: config.storage,
        path: config.storagePath,
        revision: config.storageRevision,
        walPath: config.walPath,
        maxBytes: config.storageMaxBytes,
        identity: { clusterId, nodeId: config.nodeId },
        kernels: createKernels({ mode: config.kernels }),
        placeOfRow,
        program: PROGRAM,
      },
      { timers: systemTimers, logger, fatal, clock: systemClock, meter: metrics },
      resolve,
    );
  });
}

function openNode(
  config: ServerConfig,
  disk: Disk,
  peers: Peers,
  beginning: Beginning,
  logger: LoggerPort,
  fatal: FatalPort,
  metrics: Metrics,
): ReturnType<typeof Node.open> {
  const { endpoint } = peers;
  const { clusterId, storageId } = peers.self;
  return Node.open(hostSettings(config, { endpoint, clusterId, storageId, ...beginning }), {
    clock: systemClock,
    timer: systemTimers,
    log: disk.log,
    store: disk.store,
    level: disk.level,
    entropy: systemEntropy,
    logger,
    fatal,
    meter: metrics,
    load: metrics.load,
    ...(disk.space === null ? {} : { disk: disk.space }),
    ...(peers.network === null ? {} : { peers: peers.network }),
    sorter: new KernelSorter(createKernels({ mode: config.kernels }).compact),
  });
}

type Reloaded = (what: string, mistake: string | null, fields?: LogFields) => void;

/** Has a reload logged, counted and kept in the audit log. */
function reloadReport(logger: LoggerPort, metrics: Metrics, audit: AuditLog): Reloaded {
  return (what, mistake, fields = {}) => {
    metrics.reloaded(what, mistake === null);
    const told = mistake === null ? { what, ...fields } : { what, mistake };
    if (mistake === null) logger.log("info", "reloaded", told);
    else logger.log("error", "not reloaded, the old content stays", told);
    audit.happened("reload", { ...told, result: mistake === null ? "ok" : "failed" });
  };
}

function openTokens(config: ServerConfig, reloaded: Reloaded): Result<TokenFile | null, "usage"> {
  if (config.authTokensFile === null) return ok(null);
  return TokenFile.open(config.authTokensFile, (mistake, added, removed) => {
    reloaded("tokens", mistake, { added: added.join(","), removed: removed.join(",") });
  });
}

interface Secrets {
  readonly tokens: TokenFile | null;
  /** Of manifests of backups. */
  readonly key: Uint8Array | null;
}

function openSecrets(config: ServerConfig, reloaded: Reloaded): Result<Secrets, "usage"> {
  const key = readKey(config.backupMacKeyFile);
  if (!key.ok) return key;
  const tokens = openTokens(config, reloaded);
  return tokens.ok ? ok({ tokens: tokens.value, key: key.value }) : tokens;
}

interface Measured {
  readonly config: ServerConfig;
  readonly disk: Disk;
  readonly lines: LogLines;
  readonly node: Node;
  readonly operations: Operations;
  readonly peers: Peers;
  readonly connections: ConnectionCount;
  readonly unsent: UnsentBytes;
  readonly traces: SpanExporter | null;
}

/** One by one: a group that leaves meanwhile is left out. */
function* factsOfGroups(node: Node): Generator<GroupFacts> {
  for (const group of node.groups()) {
    if (node.group(group.partition) === group) yield group.facts();
  }
}

/** The members as they are applied here. */
function rosterOf(node: Node): Roster {
  const meta = node.closing || !node.initialized ? null : node.metaGroup().machine.meta;
  const roles = { voter: 0, learner: 0, leaving: 0 };
  for (const { role } of meta?.members() ?? []) roles[role]++;
  return { roles, membershipVersion: meta?.cluster()?.membershipVersion ?? 0 };
}

function attachMetrics(metrics: Metrics, measured: Measured): void {
  const { node, operations, peers, connections, unsent, disk, lines } = measured;
  metrics.attach({
    connections,
    unsent,
    groups: () => factsOfGroups(node),
    node: () => node.facts(),
    inflight: () => operations.inflight,
    calls: operations.callTally,
    census: new NodeCensus(node, { nowMs: systemClock.monotonicMs, after: systemTimers.after }),
    replication: () => operations.replication(),
    isReady: () => operations.health().ready,
    roster: () => rosterOf(node),
    storage: () => ({
      storeMaxBytes: measured.config.storageMaxBytes,
      ...disk.figures(),
      volumes: disk.space?.volumes() ?? new Map(),
    }),
    slowRequests: () => operations.slowRequests,
    traceSpans: measured.traces?.count ?? { sent: 0, dropped: 0 },
    rateLimited: () => operations.rateLimited,
    receivedPeerBytes: () => peers.network?.receivedBytes ?? 0,
    logLines: lines,
    descriptorsMax: descriptorLimit(),
    refusedPeers: peers.ports.credentials,
    refusedMoved: () => operations.refusedMoved,
    rangesByMode: () => operations.rangesByMode(),
    lockWaits: () => operations.waitTally,
    watchTally: () => operations.watches.tally,
    resolveFailures: () => peers.ports.names.failures,
  });
}

/** The health listener, if there is one: it is open while all the rest begins. */
async function openHealth(
  config: ServerConfig,
  starting: Starting,
  metrics: Metrics,
  authenticator: Authenticator,
): Promise<Result<HealthListener | null, "usage">> {
  const { healthHost: host, healthPort: port } = config;
  if (port === null) return ok(null);
  const judge = authenticator.required ? authenticator : null;
  const source = { contentType: metrics.contentType, text: () => metrics.text() };
  const unauthenticated = (): void => metrics.traffic.unauthenticated("health");
  const asked = { metrics: source, authenticator: judge, unauthenticated };
  const options = { host, port, starting, ...asked };
  const listener = new HealthListener(options);
  try {
    await listener.listen();
    return ok(listener);
  } catch (error) {
    const { message } = error as Error;
    return failure("usage", `--health-port: cannot listen on ${host}: ${message}`);
  }
}

/** Peer listener, disk and host; on failure nothing of them stays open. */
async function openStack(
  config: ServerConfig,
  logger: LoggerPort,
  fatal: FatalPort,
  metrics: Metrics,
  starting: Starting,
  reloaded: Reloaded,
): Promise<Result<Stack, RefusalKind>> {
  starting.phase = "opening the peer listener";
  const opened = await openPeers(config, logger, { reloaded, metrics });
  if (!opened.ok) return opened;
  const peers = opened.value;
  const closePeers = (): Promise<void> => new Promise((resolve) => peers.close(resolve));
  starting.waitingFor = () => peers.entering.waitingFor;
  starting.phase = "finding out which cluster this node belongs to";
  const clusterId = await findClusterId(config, peers, logger);
  starting.phase = "reading log and state";
  const disk = clusterId.ok
    ? await openStorage(config, clusterId.value, logger, fatal, metrics)
    : clusterId;
  if (!disk.ok) {
    await closePeers();
    return failure(refusalKind(disk.code), disk.message);
  }
  const giveUp = async (code: RefusalKind, message: string): Promise<Failure<RefusalKind>> => {
    await new Promise<void>((resolve) => disk.value.close(resolve));
    await closePeers();
    return failure(code, message);
  };
  const { identity } = disk.value;
  peers.self.clusterId = identity.clusterId;
  // What is only in memory is another storage with every process.
  peers.self.storageId = identity.storageId === "" ? randomHex(32) : identity.storageId;
  starting.phase = "founding or joining the cluster";
  const beginning = await findFounders(config, peers, disk.value, logger);
  if (!beginning.ok) return giveUp("usage", beginning.message);
  starting.phase = "starting the partitions";
  const node = openNode(config, disk.value, peers, beginning.value, logger, fatal, metrics);
  if (!node.ok) return giveUp(refusalKind(node.code), node.message);
  peers.self.standing = () => node.value.standing();
  const stack = { peers, disk: disk.value, node: node.value };
  const missed = await peersMissed(config, node.value);
  if (missed === null) return ok(stack);
  await closeStack(stack);
  return failure("usage", missed);
}

/** What is there before the operations. */
interface Made {
  readonly logger: LoggerPort;
  readonly metrics: Metrics;
  readonly tally: RequestTally;
  readonly backups: BackupWorld;
  readonly traces: SpanExporter | null;
}

/** What the front ends call, with its ways to the other nodes. */
function makeOperations(
  config: ServerConfig,
  { node, peers }: Stack,
  clientEndpoint: () => string,
  { logger, metrics, tally, backups, traces }: Made,
): Operations {
  const settings = operationsSettings(config, peers.endpoint, clientEndpoint);
  const ports = { clock: systemClock, timer: systemTimers, entropy: systemEntropy };
  const kernels = createKernels({ mode: config.kernels });
  const calls = {
    send: (to: number, bytes: Uint8Array) => node.links.sendCall(to, bytes),
    queuedBytes: (to: number) => peers.network?.queuedBytes(to, "calls") ?? 0,
  };
  const tracer = traces === null ? {} : { tracer: tracerInto(traces) };
  const world = { ...ports, logger, meter: metrics, calls, backups, ...tracer };
  const operations = new Operations(node, settings, world, kernels, tally);
  node.links.listen(operations);
  node.links.handleCalls((from, bytes) => operations.callFrame(from, bytes));
  return operations;
}

async function closeStack({ node, disk, peers }: Stack): Promise<void> {
  await new Promise<void>((resolve) => node.stop(systemClock.monotonicMs(), resolve));
  await new Promise<void>((resolve) => peers.close(resolve));
  await new Promise<void>((resolve) => disk.close(resolve));
}

/** What an operator wants to know of a start that succeeded. */
function tellStarted(
  config: ServerConfig,
  { peers, disk }: Stack,
  logger: LoggerPort,
  audit: AuditLog,
): void {
  logger.log("info", "started", {
    version: VERSION,
    node: config.nodeId,
    cluster: peers.self.clusterId,
    storage: config.storage === "memory" ? "memory" : config.storagePath,
    newDirectory: disk.isNew,
    metaPartition: META_PARTITION,
  });
  audit.happened("started", { version: VERSION, configuration: configDigest(config) });
}

function makeNodeDebug(
  parts: Parameters<typeof debugFacts>[0],
  metrics: Metrics,
  logger: Partial<LeveledLogger>,
): NodeDebug {
  const sources = {
    at: debugFacts(parts),
    metrics: () => metrics.text(),
    logs: () => logger.lastLines?.() ?? [],
    isEnding: () => parts.node.closing,
  };
  return new NodeDebug(sources, { after: systemTimers.after, profile: cpuProfile });
}

function faultOf(fatal: FatalPort): (error: unknown, requestId: string) => void {
  return (error, requestId) => {
    fatal.fatal("unexpected fault in a front end", { requestId, error: errorText(error) });
  };
}

function liveTargets(logger: Partial<LeveledLogger>, operations: Operations): LiveTargets {
  return {
    logLevel: (level) => logger.changeLevel?.(level),
    slowRequestMs: (thresholdMs) => operations.changeSlowThreshold(thresholdMs),
    callerRateLimit: (perSecond) => operations.changeCallerRateLimit(perSecond),
  };
}

/** Starts a node. The failure's message says which flag or file to look at. */
export async function startServer(
  config: ServerConfig,
  logger: LoggerPort & Partial<LeveledLogger>,
  lines = new LogLines(),
): Promise<Result<RunningServer, RefusalKind>> {
  const { auditLog, nodeName } = config;
  const unkept = logger.unkept ?? logger;
  const audited = AuditLog.open(auditLog, nodeName, unkept, systemClock.monotonicMs);
  if (!audited.ok) return audited;
  const audit = audited.value;
  const tally = new RequestTally();
  const metrics = new Metrics(VERSION, tally, config, DifferedFile.of(config, logger));
  const reloaded = reloadReport(logger, metrics, audit);
  const secrets = openSecrets(config, reloaded);
  if (!secrets.ok) {
    metrics.close();
    return secrets;
  }
  const { tokens, key } = secrets.value;
  const authenticator = new Authenticator(tokens, config.tlsClientCaFile !== null);
  const starting = new Starting(VERSION, systemClock.monotonicMs);
  const opened = await openHealth(config, starting, metrics, authenticator);
  const giveUp = <F>(refusal: F): F => {
    if (opened.ok) opened.value?.close();
    tokens?.close();
    metrics.close();
    return refusal;
  };
  if (!opened.ok) return giveUp(opened);
  const health = opened.value;
  let operations: Operations | null = null;
  const fatal = processFatal((reason) => operations?.setFatalFault(reason));
  const stack = await openStack(config, logger, fatal, metrics, starting, reloaded);
  if (!stack.ok) return giveUp(stack);
  const { node, disk, peers } = stack.value;
  let addresses: ListenAddresses = { grpc: null, https: null, http: null, console: null };
  const clientEndpoint = (): string => clientEndpointOf(config, addresses);
  peers.self.clientEndpoint = clientEndpoint;
  const backups = backupWorld(config, node, key, logger, metrics, audit);
  const traces = openTraces(config, logger);
  const made = { logger, metrics, tally, backups, traces };
  const serving = makeOperations(config, stack.value, clientEndpoint, made);
  operations = serving;
  const counted = { connections: connectionCount(logger), unsent: new UnsentBytes() };
  const measured = { config, disk, node, operations: serving, peers, lines, traces };
  attachMetrics(metrics, { ...measured, ...counted });
  const listeners = await openListeners(config, {
    ...counted,
    operations: serving,
    metrics,
    authenticator,
    logger,
    audit,
    nodeDebug: makeNodeDebug({ config, node, disk, operations: serving }, metrics, logger),
    reloaded,
    onFault: faultOf(fatal),
  });
  if (!listeners.ok) {
    await closeStack(stack.value);
    return giveUp(listeners);
  }
  addresses = listeners.value.addresses;
  peers.network?.release();
  health?.serves(serving);
  tellStarted(config, stack.value, logger, audit);
  const below = { node, disk, peers, operations: serving, audit };
  const live = new LiveSettings(config.liveFiles, liveTargets(logger, serving), reloaded);
  const parts = { ...below, listeners: listeners.value, tokens: tokens, health, live, traces };
  return ok(new Assembled(config, parts, metrics, logger, fatal));
}

function errorText(error: unknown): string {
  return error instanceof Error ? String(error.stack ?? error.message) : String(error);
}
