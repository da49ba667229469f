/**
 * The health listener: liveness, readiness, health and metrics over cleartext HTTP/1.1, for probes
 * and scrapers. It is open before the storage is, and tells how the start goes.
 *
 * Owns its server. Invariants: 1. GET of four paths, nothing else: nothing secret is told, nothing
 * can be changed. 2. A connection carries one request, and lives no longer than that may take. 3.
 * At most so many connections at a time, counted apart from those of clients. 4. Metrics need what
 * they need on every listener.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { HEADERS_MAX_BYTES, HEALTH_CONNECTIONS_MAX, HEALTH_REQUEST_MS } from "../../base/limits.js";
import { type Authenticator, checkAccess } from "../../rest/http/access.js";
import { healthText } from "../../rest/routes/health-route.js";
import {
  type HealthSource,
  type MetricsSource,
  type PlainAnswer,
  liveAnswer,
  readyAnswer,
} from "../../rest/routes/node-routes.js";
import { type ProblemCode, problemText } from "../../rest/http/problems.js";
import { hasFlag } from "../../rest/http/query.js";
import { hostAndPort } from "../flags/addresses.js";
import type { Starting } from "./starting.js";

export interface HealthListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly starting: Starting;
  readonly metrics: MetricsSource;
  /** null = everybody may read metrics. */
  readonly authenticator: Authenticator | null;
  /** Somebody asked for metrics with no or wrong credentials. */
  readonly unauthenticated: () => void;
}

function problem(status: number, code: ProblemCode, detail: string): PlainAnswer {
  return { status, type: "application/problem+json", text: problemText(status, code, detail) };
}

export class HealthListener {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  /** The node, once it runs. */
  private running: HealthSource | null = null;
  private bound = "";

  constructor(private readonly options: HealthListenerOptions) {
    this.server = createServer({ maxHeaderSize: HEADERS_MAX_BYTES }, (request, response) =>
      this.serve(request, response),
    );
    this.server.maxConnections = HEALTH_CONNECTIONS_MAX;
    this.server.on("connection", (socket) => this.accept(socket));
    this.server.on("clientError", (_error, socket) => socket.destroy());
  }

  /** host:port that is listened on. */
  get address(): string {
    return this.bound;
  }

  /** Rejects when the port cannot be opened. */
  listen(): Promise<void> {
    const { host, port } = this.options;
    return new Promise((resolve, reject) => {
      this.server.once("error", reject);
      this.server.listen({ host, port }, () => {
        this.server.removeListener("error", reject);
        this.server.on("error", () => undefined);
        this.bound = hostAndPort(host, (this.server.address() as AddressInfo).port);
        resolve();
      });
    });
  }

  /** The start is over: from now on it is `source` that is asked. */
  serves(source: HealthSource): void {
    this.running = source;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private accept(socket: Socket): void {
    this.sockets.add(socket);
    const timer = setTimeout(() => socket.destroy(), HEALTH_REQUEST_MS);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      clearTimeout(timer);
      this.sockets.delete(socket);
    });
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const answer = this.answerOf(request);
    if (answer !== null) return this.send(response, answer);
    const { metrics } = this.options;
    metrics.text().then(
      (text) => this.send(response, { status: 200, type: metrics.contentType, text }),
      () => this.send(response, problem(500, "internal", "the metrics could not be read")),
    );
  }

  private send(response: ServerResponse, { status, type, text }: PlainAnswer): void {
    response.writeHead(status, {
      "content-type": type,
      "content-length": Buffer.byteLength(text),
      connection: "close",
      ...(status === 401 ? { "www-authenticate": "Bearer" } : {}),
      ...(status === 405 ? { allow: "GET" } : {}),
    });
    response.end(text);
  }

  /** Null for the metrics, which are not at hand. */
  private answerOf(request: IncomingMessage): PlainAnswer | null {
    const { starting, authenticator } = this.options;
    const source = this.running ?? starting;
    const url = request.url ?? "";
    const isVerbose = hasFlag(url, "verbose");
    const [path] = url.split("?");
    const isKnown = PATHS.includes(path ?? "");
    if (!isKnown) return problem(404, "unknown-path", "there is nothing at this path");
    if (request.method !== "GET") return problem(405, "method-not-allowed", "use GET");
    if (path === "/readyz") return readyAnswer(source, isVerbose);
    if (path === "/livez") {
      const start = { name: "start", failure: null };
      const detail = this.running === null ? { detail: starting.phase } : {};
      return liveAnswer(source, isVerbose, [{ ...start, ...detail }]);
    }
    if (path === "/v1/cluster/health") {
      const health = source.health();
      const status = health.ready ? 200 : 503;
      return { status, type: "application/json", text: healthText(health) };
    }
    const { verdict } = checkAccess(request, "reader", authenticator);
    if (verdict === "permitted") return null;
    if (verdict === "unauthenticated") this.options.unauthenticated();
    return verdict === "forbidden"
      ? problem(403, "forbidden", "this path needs the role reader")
      : problem(401, "unauthenticated", "no or wrong credentials");
  }
}

const PATHS: readonly string[] = ["/livez", "/readyz", "/v1/cluster/health", "/metrics"];
