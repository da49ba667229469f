/**
 * Puts a node together: ports, disk, host, operations, front ends; and takes it apart in the
 * reverse order.
 *
 * Owns the parts. Invariants: 1. A start that fails leaves nothing open. 2. The stop ends intake
 * first, then answers what was accepted, then closes log and store. 3. Only this file knows all
 * rooms of the house.
 */
import { META_PARTITION } from "../base/ids.js";
import { failure, ok, type Result } from "../base/result.js";
import { openDisk, type Disk, type DiskCode } from "../disk/open.js";
import { Node, type StartRefusal } from "../host/node.js";
import { Operations } from "../operations/operations.js";
import { RequestTally } from "../operations/tally.js";
import { KernelSorter } from "../machine/kernel-sorter.js";
import type { FatalPort, LoggerPort } from "../ports.js";
import { processFatal, systemClock, systemEntropy, systemTimers } from "../sys.js";
import { createKernels } from "../wasm/kernels.js";
import { isWildcard } from "./addresses.js";
import type { ServerConfig } from "./config.js";
import { hostSettings, operationsSettings } from "./floor-settings.js";
import { openListeners, type ListenAddresses, type Listeners } from "./listeners.js";
import { Metrics } from "./metrics.js";
import { Authenticator, TokenFile } from "./tokens.js";
import { VERSION } from "./version.js";

export type { ListenAddresses } from "./listeners.js";

export interface RunningServer {
  readonly addresses: ListenAddresses;
  /** The one line for stdout. */
  readonly listeningLine: string;
  reloadTokens(): void;
  /** Graceful stop; `done` is called when everything is closed. */
  stop(done: () => void): void;
}

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

/** After the deadline of the stop, connections get this long to take their last bytes (ms). */
const CLOSE_GRACE_MS = 500;
/**
 * A disk that never answers cannot hold the process: this long after the deadline it is ended (ms).
 */
const HARD_STOP_MS = 5000;

function clientEndpointOf(config: ServerConfig, addresses: ListenAddresses): string {
  if (config.advertisedClientEndpoint !== null) return config.advertisedClientEndpoint;
  if (isWildcard(config.host)) return "";
  if (addresses.grpc !== null) return `http://${addresses.grpc}`;
  return addresses.https === null ? "" : `https://${addresses.https}`;
}

function randomHex(digits: number): string {
  let text = "";
  while (text.length < digits) text += systemEntropy.uint32().toString(16).padStart(8, "0");
  return text.slice(0, digits);
}

function openStorage(
  config: ServerConfig,
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
        identity: { clusterId: randomHex(32), nodeId: config.nodeId },
        kernels: createKernels({ mode: config.kernels }),
      },
      { timers: systemTimers, logger, fatal, clock: systemClock, meter: metrics },
      resolve,
    );
  });
}

function openNode(
  config: ServerConfig,
  disk: Disk,
  logger: LoggerPort,
  fatal: FatalPort,
  metrics: Metrics,
): ReturnType<typeof Node.open> {
  return Node.open(hostSettings(config), {
    clock: systemClock,
    timer: systemTimers,
    log: disk.log,
    store: disk.store,
    entropy: systemEntropy,
    logger,
    fatal,
    meter: metrics,
    sorter: new KernelSorter(createKernels({ mode: config.kernels }).compact),
  });
}

function openTokens(config: ServerConfig, logger: LoggerPort): Result<TokenFile | null, "usage"> {
  if (config.authTokensFile === null) return ok(null);
  return TokenFile.open(config.authTokensFile, (mistake) => {
    if (mistake === null) logger.log("info", "token file reloaded");
    else logger.log("error", "token file not reloaded, the old content stays", { mistake });
  });
}

class Assembled implements RunningServer {
  constructor(
    private readonly config: ServerConfig,
    private readonly node: Node,
    private readonly disk: Disk,
    private readonly listeners: Listeners,
    private readonly tokens: TokenFile | null,
    private readonly metrics: Metrics,
    private readonly logger: LoggerPort,
    private readonly fatal: FatalPort,
  ) {}

  get addresses(): ListenAddresses {
    return this.listeners.addresses;
  }

  get listeningLine(): string {
    const { grpc, https, http } = this.addresses;
    const shown = `grpc=${grpc ?? "off"} https=${https ?? "off"} http=${http ?? "off"}`;
    // A cluster of one has nobody to hear: the peer listener comes with the second node.
    return `svc-server ${VERSION} listening ${shown} peer=off node=${this.config.nodeId}`;
  }

  reloadTokens(): void {
    this.tokens?.reload();
  }

  stop(done: () => void): void {
    this.logger.log("info", "stopping");
    const graceMs = this.config.shutdownTimeoutMs;
    const hardStop = systemTimers.after(graceMs + HARD_STOP_MS, () => {
      this.fatal.fatal("the stop did not end: log or state store do not answer");
    });
    let open = 2;
    const ended = (): void => {
      open -= 1;
      if (open > 0) return;
      hardStop.cancel();
      this.tokens?.close();
      this.metrics.close();
      this.logger.log("info", "stopped");
      done();
    };
    // The node closes log and store; the locks of the directory go last.
    this.node.stop(systemClock.monotonicMs() + graceMs, () => this.disk.close(ended));
    this.listeners.drain();
    this.listeners.close(graceMs + CLOSE_GRACE_MS).then(ended, ended);
  }
}

function attachMetrics(metrics: Metrics, node: Node, operations: Operations): void {
  metrics.attach({
    groups: () => node.groups().map((group) => group.facts()),
    node: () => node.facts(),
    inflight: () => operations.inflight,
  });
}

/** Starts a node. The failure's message says which flag or file to look at. */
export async function startServer(
  config: ServerConfig,
  logger: LoggerPort,
): Promise<Result<RunningServer, RefusalKind>> {
  const tokens = openTokens(config, logger);
  if (!tokens.ok) return tokens;
  const tally = new RequestTally();
  const metrics = new Metrics(VERSION, tally);
  let operations: Operations | null = null;
  const fatal = processFatal((reason) => operations?.setFatalFault(reason));
  const disk = await openStorage(config, logger, fatal, metrics);
  const giveUp = <F>(refusal: F): F => {
    tokens.value?.close();
    metrics.close();
    return refusal;
  };
  if (!disk.ok) return giveUp(failure(refusalKind(disk.code), disk.message));
  const closeDisk = (): Promise<void> => new Promise((resolve) => disk.value.close(resolve));
  const node = openNode(config, disk.value, logger, fatal, metrics);
  if (!node.ok) {
    await closeDisk();
    return giveUp(failure(refusalKind(node.code), node.message));
  }
  let addresses: ListenAddresses = { grpc: null, https: null, http: null };
  const settings = operationsSettings(config, () => clientEndpointOf(config, addresses));
  const ports = { clock: systemClock, timer: systemTimers, entropy: systemEntropy };
  const kernels = createKernels({ mode: config.kernels });
  const world = { ...ports, logger, meter: metrics };
  const serving = new Operations(node.value, settings, world, kernels, tally);
  operations = serving;
  attachMetrics(metrics, node.value, serving);
  const listeners = await openListeners(config, {
    operations: serving,
    metrics,
    authenticator: new Authenticator(tokens.value, config.tlsClientCaFile !== null),
    logger,
    onFault: (error) => fatal.fatal("unexpected fault in a front end", { error: errorText(error) }),
  });
  if (!listeners.ok) {
    await new Promise<void>((resolve) => node.value.stop(systemClock.monotonicMs(), resolve));
    await closeDisk();
    return giveUp(listeners);
  }
  addresses = listeners.value.addresses;
  logger.log("info", "started", {
    version: VERSION,
    node: config.nodeId,
    storage: config.storage === "memory" ? "memory" : config.storagePath,
    newDirectory: disk.value.isNew,
    metaPartition: META_PARTITION,
  });
  return ok(
    new Assembled(
      config,
      node.value,
      disk.value,
      listeners.value,
      tokens.value,
      metrics,
      logger,
      fatal,
    ),
  );
}

function errorText(error: unknown): string {
  return error instanceof Error ? String(error.stack ?? error.message) : String(error);
}
