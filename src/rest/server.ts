/**
 * The REST front end: one Fastify instance over all listeners of a node.
 *
 * Owns the routing table and the listeners. Invariants: 1. Access is checked and the media type too
 * before a body is read. 2. Fastify routes and nothing else: it validates, parses, serializes and
 * logs nothing, because each of these defaults would change what was sent. 3. What cannot be
 * answered by a route is answered by a problem document. 4. `close` answers what was accepted
 * before it ends.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Http2SecureServer } from "node:http2";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { type ConnectionBudget, ConnectionCount } from "../base/connections.js";
import { HEADERS_MAX_BYTES } from "../base/limits.js";
import type { UnsentBytes } from "../base/unsent.js";
import type { AuditPort } from "../operations/api/audit.js";
import type { OperationsPort } from "../operations/api/requests.js";
import {
  type Authenticator,
  type Caller,
  addressOf,
  checkAccess,
  connectionOf,
} from "./http/access.js";
import { giveUpReceiving, isJsonType, mayBeEmpty, readBody } from "./http/body.js";
import {
  type BrowserRules,
  type Misdirection,
  misdirection,
  preflightHeaders,
} from "./http/browsers.js";
import {
  Exchange,
  type ResponseSink,
  type RestObserver,
  type ServerState,
} from "./http/exchange.js";
import {
  createHttpsServer,
  renewSecrets,
  type GrpcStreamHandler,
  type TlsMaterial,
} from "./http/https.js";
import { Listener, type SendingTimes } from "./http/listener.js";
import type { ConsoleFiles } from "./routes/console-routes.js";
import type { MetricsSource } from "./routes/node-routes.js";
import type { NodeDebugPort } from "../operations/api/node-debug.js";
import type { ProblemCode } from "./http/problems.js";
import { RequestIds } from "./http/request-ids.js";
import type { Route } from "./http/route.js";
import { PathIndex, restRoutes } from "./routes/routes.js";
import { UnsentAnswers } from "./http/unsent.js";

export interface RestServerOptions {
  readonly operations: OperationsPort;
  readonly version: string;
  /** The clock of `RequestContext.deadlineMs`. */
  readonly monotonicMs: () => number;
  /** Bound of data requests. */
  readonly requestTimeoutMs: number;
  /** Bound of leave: the drain timeout and 30 s. */
  readonly leaveTimeoutMs: number;
  /** Bound of the other administrative calls. */
  readonly adminTimeoutMs: number;
  readonly maxRequestBytes: number;
  /** null = every caller is admin. */
  readonly authenticator: Authenticator | null;
  /** Which pages may call, and under which names (contract 10.6). */
  readonly browsers: BrowserRules;
  readonly metrics: MetricsSource | null;
  readonly nodeDebug: NodeDebugPort | null;
  /** What the web console is made of; null = there is none. */
  readonly console: ConsoleFiles | null;
  readonly observer: RestObserver | null;
  /** Counts connections over all front ends; null = this one counts its own. */
  readonly connections: ConnectionBudget | null;
  /** Counts answers that wait for clients over all front ends. */
  readonly unsent: UnsentBytes;
  /** Unsent bytes of one stream of changes, then nothing more is told. */
  readonly watchStreamBufferBytes: number;
  /** --max-response-bytes. */
  readonly responseMaxBytes: number;
  /** How long clients may take to send; SENDING_TIMES unless a test is in a hurry. */
  readonly sendingTimes: SendingTimes;
  /** Adds POST /v1/benchmark/noop, against which the load tests compare. */
  readonly benchmarkRoute: boolean;
  /** Hears of every exception that no rule provides for, broken invariants included. */
  readonly onFault: (error: unknown, requestId: string) => void;
  /** Told of administrative calls and of refusals for who called; null = nobody is. */
  readonly audit: AuditPort | null;
}

export interface RestServer {
  /** REST over cleartext HTTP/1.1. Resolves to the port. */
  listenHttp(host: string, port: number): Promise<number>;
  /**
   * REST over TLS (HTTP/1.1 and HTTP/2), and gRPC streams through `grpcStream`. Resolves to the
   * port.
   */
  listenHttps(
    host: string,
    port: number,
    material: TlsMaterial,
    grpcStream: GrpcStreamHandler | null,
  ): Promise<number>;
  /** New connections over TLS are made with `material`. */
  renew(material: TlsMaterial): void;
  /** Requests without an answer. */
  inFlight(): number;
  /** Stops accepting connections and streams; answers from now on close their connection. */
  drain(): void;
  /** Drains, waits for the answers in progress, ends all connections; at most `graceMs`. */
  close(graceMs: number): Promise<void>;
}

class Server implements RestServer {
  private readonly options: RestServerOptions;
  private readonly state: ServerState;
  private readonly framework: FastifyInstance;
  private readonly paths: PathIndex;
  private readonly budget: ConnectionBudget;
  private readonly listeners: Listener[] = [];
  private readonly secure: Http2SecureServer[] = [];
  private readonly requestIds = new RequestIds();

  constructor(options: RestServerOptions) {
    this.options = options;
    this.state = {
      monotonicMs: options.monotonicMs,
      requestTimeoutMs: options.requestTimeoutMs,
      observer: options.observer,
      unsent: new UnsentAnswers(options.unsent),
      browsers: options.browsers,
      authenticator: options.authenticator,
      lasting: new Set(),
      draining: false,
      inFlight: 0,
      receiving: new Set(),
      onIdle: null,
    };
    this.budget = options.connections ?? new ConnectionCount();
    const routes = restRoutes(options);
    this.paths = new PathIndex(routes);
    this.framework = this.createFramework(routes);
  }

  private createFramework(routes: readonly Route[]): FastifyInstance {
    const framework = fastify({
      logger: false,
      exposeHeadRoutes: false,
      // Answering while the server closes is this module's business.
      return503OnClosing: false,
      requestIdHeader: false,
      genReqId: (raw) => this.requestIds.of(raw.headers["x-request-id"]),
      frameworkErrors: (_error, request, reply) => {
        const exchange = this.exchange(request, reply, "");
        exchange.problem(400, "invalid-argument", "the path is too long or no valid text");
      },
    });
    // Bodies are read by `body.ts`, after the access check; this parser only keeps Fastify from
    // reading them.
    framework.removeAllContentTypeParsers();
    framework.addContentTypeParser("*", (_request, _payload, done) => done(null, undefined));
    for (const route of routes) {
      framework.route({
        method: route.method === "GET" ? ["GET", "HEAD"] : "POST",
        url: route.path.replace("{id}", ":id"),
        handler: (request: FastifyRequest, reply: FastifyReply) =>
          this.serve(route, request, reply),
      });
    }
    framework.setNotFoundHandler((request, reply) => this.answerUnrouted(request, reply));
    framework.setErrorHandler((error, request, reply) => {
      this.answerError(error as Error & { readonly code?: string }, request, reply);
    });
    return framework;
  }

  private exchange(request: FastifyRequest, reply: FastifyReply, path: string): Exchange {
    return new Exchange(request.raw, reply.raw as ResponseSink, path, request.id, this.state);
  }

  /** One routed request. Nothing here returns a promise: Fastify would wait for it. */
  private serve(route: Route, request: FastifyRequest, reply: FastifyReply): void {
    const exchange = this.exchange(request, reply, route.path);
    if (!this.isPermitted(route, exchange)) return;
    if (route.method === "GET") {
      const { id } = request.params as { readonly id?: string };
      if (id !== undefined) exchange.pathId = id;
      this.run(route, exchange, EMPTY_BODY);
      return;
    }
    const type = request.raw.headers["content-type"];
    // Where there is no body, its type is nobody's business.
    const mayBeMissing = type === undefined && mayBeEmpty(request.raw);
    if (route.body !== null && !isJsonType(type) && !mayBeMissing) {
      this.refuseType(exchange);
      return;
    }
    const { maxRequestBytes, sendingTimes } = this.options;
    readBody(exchange, maxRequestBytes, sendingTimes.requestMs, (body) => {
      if (body.length > 0 && !isJsonType(type)) this.refuseType(exchange);
      else this.run(route, exchange, body);
    });
  }

  private refuseType(exchange: Exchange): void {
    exchange.problem(415, "unsupported-media-type", "send Content-Type: application/json");
  }

  private refuseMisdirected(exchange: Exchange, code: Misdirection): void {
    if (code === "forbidden-origin") {
      exchange.problem(403, code, "--allowed-origins names the origins whose pages may call");
    } else {
      exchange.problem(421, code, "--allowed-hosts names the hosts that this node answers for");
    }
  }

  private isPermitted(route: Route, exchange: Exchange): boolean {
    const { authenticator, browsers } = this.options;
    const misdirected = route.access === "nobody" ? null : misdirection(exchange.raw, browsers);
    if (misdirected !== null) {
      this.audit(exchange, route, null, "denied");
      this.refuseMisdirected(exchange, misdirected);
      return false;
    }
    const { verdict, caller } = checkAccess(exchange.raw, route.access, authenticator);
    exchange.caller =
      caller === null
        ? { name: addressOf(exchange.raw), rate: null }
        : { name: caller.name, actor: caller.name, rate: caller.rate ?? null };
    if (verdict === "permitted" && route.access !== "admin") return true;
    this.audit(exchange, route, caller, verdict === "permitted" ? "administered" : "denied");
    if (verdict === "permitted") return true;
    if (verdict === "unauthenticated") {
      this.options.observer?.unauthenticated(connectionOf(exchange.raw).encrypted === true);
    }
    if (verdict === "forbidden") {
      exchange.problem(403, "forbidden", `this path needs the role ${route.access}`);
    } else {
      const headers = { "www-authenticate": "Bearer" };
      exchange.problem(401, "unauthenticated", "no or wrong credentials", headers);
    }
    return false;
  }

  /** Has the end of the call written down. */
  private audit(
    exchange: Exchange,
    { path: operation }: Route,
    caller: Caller | null,
    how: keyof AuditPort,
  ): void {
    const { audit, authenticator } = this.options;
    if (audit === null) return;
    const address = addressOf(exchange.raw);
    const { requestId } = exchange;
    const isOpen = authenticator === null;
    const name = caller?.name ?? (isOpen ? "anonymous" : "");
    const role = caller?.role ?? (isOpen ? "admin" : "");
    exchange.whenEnded = (status) => {
      audit[how]({ operation, caller: name, role, address, requestId, outcome: String(status) });
    };
  }

  private run(route: Route, exchange: Exchange, body: Buffer): void {
    exchange.received();
    try {
      route.run(exchange, body, this.options.operations);
    } catch (error) {
      this.fault(exchange, error);
    }
  }

  private fault(exchange: Exchange, error: unknown): void {
    if (!exchange.hasEnded) {
      exchange.problem(500, "internal", `unexpected fault, logged under ${exchange.requestId}`);
    }
    this.options.onFault(error, exchange.requestId);
  }

  /** Unknown paths, and known ones with another method. */
  private answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
    const exchange = this.exchange(request, reply, "");
    const allow = this.paths.methodsOf(request.raw.url ?? "");
    if (allow === null) {
      exchange.problem(404, "unknown-path", "there is nothing at this path");
    } else if (request.raw.method === "OPTIONS") {
      exchange.empty(204, { ...preflightHeaders(request.raw, this.options.browsers), allow });
    } else exchange.problem(405, "method-not-allowed", `use ${allow}`, { allow });
  }

  private answerError(
    error: Error & { readonly code?: string },
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    if (request.is404) this.answerUnrouted(request, reply);
    else if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") {
      this.refuseType(this.exchange(request, reply, ""));
    } else this.fault(this.exchange(request, reply, ""), error);
  }

  private readonly dispatch = (raw: IncomingMessage, response: ServerResponse): void => {
    const mistake = hostMistake(raw);
    if (mistake === null) this.framework.routing(raw, response);
    else this.refuseUnrouted(raw, response, 400, "malformed-http", mistake);
  };

  /** `Expect` with anything but 100-continue. */
  private readonly refuseExpectation = (raw: IncomingMessage, response: ServerResponse): void => {
    const detail = "the only expectation that is met is 100-continue";
    this.refuseUnrouted(raw, response, 417, "expectation-failed", detail);
  };

  /** Answers what is not even routed, and closes its connection: its body is not read. */
  private refuseUnrouted(
    raw: IncomingMessage,
    response: ServerResponse,
    status: number,
    code: ProblemCode,
    detail: string,
  ): void {
    const requestId = this.requestIds.of(raw.headers["x-request-id"]);
    const exchange = new Exchange(raw, response as ResponseSink, "", requestId, this.state);
    exchange.problem(status, code, detail, exchange.isHttp2 ? null : { connection: "close" });
  }

  private async start(listener: Listener, host: string, port: number): Promise<number> {
    await this.framework.ready();
    const bound = await listener.listen(host, port);
    this.listeners.push(listener);
    return bound;
  }

  listenHttp(host: string, port: number): Promise<number> {
    const { sendingTimes } = this.options;
    const server = createServer(
      {
        maxHeaderSize: HEADERS_MAX_BYTES,
        connectionsCheckingInterval: sendingTimes.checkMs,
        // Looked at here, where the answer is a problem document.
        requireHostHeader: false,
      },
      this.dispatch,
    );
    server.on("checkExpectation", this.refuseExpectation);
    return this.start(new Listener(server, this.budget, sendingTimes), host, port);
  }

  listenHttps(
    host: string,
    port: number,
    material: TlsMaterial,
    grpcStream: GrpcStreamHandler | null,
  ): Promise<number> {
    const server = createHttpsServer(material, this.dispatch, grpcStream);
    server.on("checkExpectation", this.refuseExpectation);
    this.secure.push(server);
    return this.start(new Listener(server, this.budget, this.options.sendingTimes), host, port);
  }

  renew(material: TlsMaterial): void {
    for (const server of this.secure) renewSecrets(server, material);
  }

  inFlight(): number {
    return this.state.inFlight;
  }

  drain(): void {
    this.state.draining = true;
    for (const end of [...this.state.lasting]) end();
    for (const listener of this.listeners) listener.drain();
  }

  async close(graceMs: number): Promise<void> {
    const started = performance.now();
    this.drain();
    // A slow sender is not waited for: what it sends would only be refused.
    if (this.state.inFlight > this.state.receiving.size) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.state.onIdle = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const exchange of this.state.receiving) giveUpReceiving(exchange);
    const left = Math.max(0, graceMs - (performance.now() - started));
    await Promise.all(this.listeners.map((listener) => listener.close(left)));
    await this.framework.close();
  }
}

const EMPTY_BODY = Buffer.alloc(0);

/** What is wrong with Host in an HTTP/1 request (RFC 9112 3.2); null when it is right. */
function hostMistake(raw: IncomingMessage): string | null {
  if (raw.httpVersionMajor >= 2) return null;
  if (raw.headers.host === undefined) {
    return raw.httpVersion === "1.0" ? null : "the header Host is missing";
  }
  let hosts = 0;
  const { rawHeaders } = raw;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  return hosts > 1 ? "the header Host is there twice" : null;
}

/** The REST front end over `options.operations`; nothing listens yet. */
export function createRestServer(options: RestServerOptions): RestServer {
  return new Server(options);
}
