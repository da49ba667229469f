/**
 * The listeners of a node: REST and gRPC front ends, their certificate, their credentials, their
 * end.
 *
 * Owns the front ends. Invariants: 1. Nothing listens before all material is read. 2. All
 * front ends judge callers by the same authenticator. 3. A port that cannot be opened stops the
 * start, naming the flag.
 */
import { isIP } from "node:net";
import type { TLSSocket } from "node:tls";
import type { ConnectionCount } from "../../base/connections.js";
import type { UnsentBytes } from "../../base/unsent.js";
import { failure, ok, type Result } from "../../base/result.js";
import { createGrpcServer, GRPC_DEFAULTS, type GrpcServer } from "../../grpc/server.js";
import type { NodeDebugPort } from "../../operations/api/node-debug.js";
import type { AuditPort } from "../../operations/api/audit.js";
import type { OperationsPort } from "../../operations/api/requests.js";
import type { LoggerPort } from "../../ports.js";
import { certificateOf } from "../../rest/http/access.js";
import type { TlsMaterial } from "../../rest/http/https.js";
import { hostNameOf } from "../../rest/http/browsers.js";
import type { ConsoleFiles } from "../../rest/routes/console-routes.js";
import { SENDING_TIMES } from "../../rest/http/listener.js";
import { createRestServer, type RestServer } from "../../rest/server.js";
import { systemClock } from "../../sys.js";
import { hostAndPort, isLoopback } from "../flags/addresses.js";
import type { ServerConfig } from "../flags/config.js";
import type { Metrics } from "../metrics/metrics.js";
import { expirySeconds, tlsFiles, tlsTexts } from "../security/tls-files.js";
import type { Authenticator } from "../security/tokens.js";
import { VERSION } from "../../base/generated/version.js";
import { WatchedFiles } from "../security/watched-files.js";
import { readConsoleFiles } from "./console-files.js";

/** host:port of each listener; null = off. */
export interface ListenAddresses {
  readonly grpc: string | null;
  readonly https: string | null;
  readonly http: string | null;
  /** The console's own. */
  readonly console: string | null;
}

export interface Listeners {
  readonly addresses: ListenAddresses;
  /** Reads certificate, key and client CA anew: new connections use them. */
  reload(): void;
  /** No new connections; accepted requests are still answered. */
  drain(): void;
  /** Waits for the answers in progress, at most `graceMs`, then ends every connection. */
  close(graceMs: number): Promise<void>;
}

export interface FrontEnds {
  readonly operations: OperationsPort;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
  /** One count for both front ends: the limit is that of the node. */
  readonly connections: ConnectionCount;
  readonly unsent: UnsentBytes;
  readonly logger: LoggerPort;
  readonly onFault: (error: unknown, requestId: string) => void;
  readonly audit: AuditPort;
  readonly nodeDebug: NodeDebugPort;
  /** Told of each reload of the certificate: its mistake, or null. */
  readonly reloaded: (what: "https-certificate", mistake: string | null) => void;
}

/** The names of this node, beside localhost and the addresses that connections come to. */
function hostNames(config: ServerConfig): ReadonlySet<string> {
  const { host, consoleHost, nodeName, advertisedClientEndpoint, allowedHosts } = config;
  const names = [host, consoleHost, nodeName, ...allowedHosts];
  if (advertisedClientEndpoint !== null) names.push(new URL(advertisedClientEndpoint).host);
  return new Set(names.map((name) => (isIP(name) === 6 ? name : hostNameOf(name.toLowerCase()))));
}

function makeRest(
  config: ServerConfig,
  ends: FrontEnds,
  consoleFiles: ConsoleFiles | null,
): RestServer {
  return createRestServer({
    operations: ends.operations,
    version: VERSION,
    monotonicMs: systemClock.monotonicMs,
    requestTimeoutMs: config.requestTimeoutMs,
    leaveTimeoutMs: config.drainTimeoutMs + 30_000,
    adminTimeoutMs: config.requestTimeoutMs,
    maxRequestBytes: config.maxRequestBytes,
    authenticator: ends.authenticator.required ? ends.authenticator : null,
    browsers: {
      allowedOrigins: new Set(config.allowedOrigins),
      hosts: ends.authenticator.required ? null : hostNames(config),
    },
    metrics: { contentType: ends.metrics.contentType, text: () => ends.metrics.text() },
    nodeDebug: ends.nodeDebug,
    console: consoleFiles,
    observer: ends.metrics.traffic.rest,
    connections: ends.connections,
    unsent: ends.unsent,
    watchStreamBufferBytes: config.watchStreamBufferBytes,
    responseMaxBytes: config.maxResponseBytes,
    sendingTimes: SENDING_TIMES,
    benchmarkRoute: config.benchmarkRoutes,
    onFault: ends.onFault,
    audit: ends.audit,
  });
}

function makeGrpc(config: ServerConfig, ends: FrontEnds): GrpcServer {
  const { authenticator } = ends;
  const roles = {
    authenticate: (authorization: string | undefined, socket: unknown) =>
      authenticator.authenticate(authorization ?? null, certificateOf(socket as TLSSocket)),
  };
  return createGrpcServer({
    ...GRPC_DEFAULTS,
    operations: ends.operations,
    authenticator: authenticator.required ? roles : null,
    clock: systemClock,
    requestTimeoutMs: config.requestTimeoutMs,
    maxReceiveBytes: config.grpcMaxReceiveBytes,
    maxInflightPerStream: config.maxInflightPerStream,
    watchStreamBufferBytes: config.watchStreamBufferBytes,
    lockMaxWaitMs: config.lockMaxWaitMs,
    connections: ends.connections,
    unsent: ends.unsent,
    noopMethod: config.benchmarkRoutes,
    onFault: ends.onFault,
    audit: ends.audit,
    nodeDebug: ends.nodeDebug,
    observer: ends.metrics.traffic.grpc,
  });
}

function warnUnprotected(config: ServerConfig, logger: LoggerPort): void {
  if (isLoopback(config.host)) return;
  if (config.grpcPort !== null || config.httpPort !== null) {
    logger.log("warn", "data and tokens travel unencrypted on the cleartext listeners", {
      host: config.host,
    });
  }
  if (config.allowInsecure && config.authTokensFile === null) {
    logger.log("warn", "listeners off loopback without authentication", { host: config.host });
  }
}

/** What the console is made of, where anybody is to see it. */
function consoleFilesOf(config: ServerConfig, logger: LoggerPort): ConsoleFiles | null {
  const { console: isServed, consoleGiven, consolePort, host } = config;
  if (!isServed && !consoleGiven && consolePort === null) {
    const why = "off loopback without authentication it is served with --console only";
    logger.log("info", `no web console: ${why}`, { host });
  }
  if (!isServed && consolePort === null) return null;
  const files = readConsoleFiles();
  if (files === null) logger.log("warn", "no web console: its files are not beside the program");
  return files;
}

function measureExpiry({ metrics }: FrontEnds, { certificate }: TlsMaterial): void {
  metrics.certificateExpires("https", expirySeconds(certificate));
}

/** Puts new certificates in place while the node runs. */
class Renewal {
  private readonly files: WatchedFiles | null;

  constructor(
    private readonly config: ServerConfig,
    private readonly ends: FrontEnds,
    private readonly fronts: readonly RestServer[],
  ) {
    const isUsed = config.httpsPort !== null || config.consolePort !== null;
    const paths = isUsed ? tlsFiles(config) : [];
    this.files = paths.length === 0 ? null : new WatchedFiles(paths, () => this.run());
  }

  /** All of it is read and checked before any of it is used; a mistake keeps what there is. */
  run(): void {
    if (this.files === null) return;
    this.files.taken();
    void tlsTexts(this.config, this.ends.logger).then((texts) => {
      if (texts.ok) {
        for (const front of this.fronts) front.renew(texts.value);
        measureExpiry(this.ends, texts.value);
      }
      this.ends.reloaded("https-certificate", texts.ok ? null : texts.message);
    });
  }

  close(): void {
    this.files?.close();
  }
}

/** The front ends of a node: REST with gRPC, and REST with the console on a port of its own. */
interface Fronts {
  readonly rest: RestServer;
  readonly grpc: GrpcServer;
  readonly own: RestServer | null;
}

function makeFronts(config: ServerConfig, ends: FrontEnds): Fronts {
  const files = consoleFilesOf(config, ends.logger);
  return {
    rest: makeRest(config, ends, config.console ? files : null),
    grpc: makeGrpc(config, ends),
    own: config.consolePort === null ? null : makeRest(config, ends, files),
  };
}

type Bound = { -readonly [name in keyof ListenAddresses]: string | null };

/** Opens what has a port; throws what the system says, with the flag in `at`. */
async function open(
  config: ServerConfig,
  { rest, grpc, own }: Fronts,
  material: TlsMaterial | null,
  at: { flag: string },
): Promise<ListenAddresses> {
  const { host, consoleHost } = config;
  const bound: Bound = { grpc: null, https: null, http: null, console: null };
  at.flag = `--grpc-port: cannot listen on ${host}`;
  if (config.grpcPort !== null) {
    bound.grpc = hostAndPort(host, await grpc.listen(host, config.grpcPort));
  }
  at.flag = `--http-port: cannot listen on ${host}`;
  if (config.httpPort !== null) {
    bound.http = hostAndPort(host, await rest.listenHttp(host, config.httpPort));
  }
  if (material === null) return bound;
  at.flag = `--https-port: cannot listen on ${host}`;
  if (config.httpsPort !== null) {
    const port = await rest.listenHttps(host, config.httpsPort, material, (stream, headers) => {
      grpc.handleStream(stream, headers);
    });
    bound.https = hostAndPort(host, port);
  }
  at.flag = `--console-port: cannot listen on ${consoleHost}`;
  if (own !== null && config.consolePort !== null) {
    const port = await own.listenHttps(consoleHost, config.consolePort, material, null);
    bound.console = hostAndPort(consoleHost, port);
  }
  return bound;
}

/** Opens every configured listener, or says which flag to change. */
export async function openListeners(
  config: ServerConfig,
  ends: FrontEnds,
): Promise<Result<Listeners, "usage">> {
  const fronts = makeFronts(config, ends);
  const { rest, grpc, own } = fronts;
  warnUnprotected(config, ends.logger);
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all([rest.close(graceMs), grpc.close(graceMs), own?.close(graceMs)]);
  };
  const isSecured = config.httpsPort !== null || own !== null;
  const texts = isSecured ? await tlsTexts(config, ends.logger) : null;
  if (texts?.ok === false) {
    await close(0);
    return texts;
  }
  const at = { flag: "" };
  let addresses: ListenAddresses;
  try {
    addresses = await open(config, fronts, texts?.value ?? null, at);
  } catch (error) {
    await close(0);
    return failure("usage", `${at.flag}: ${(error as Error).message}`);
  }
  if (texts !== null) measureExpiry(ends, texts.value);
  const renewal = new Renewal(config, ends, own === null ? [rest] : [rest, own]);
  const end = (graceMs: number): Promise<void> => {
    renewal.close();
    return close(graceMs);
  };
  const reload = (): void => renewal.run();
  const drain = (): void => {
    rest.drain();
    own?.drain();
  };
  return ok({ addresses, reload, drain, close: end });
}
