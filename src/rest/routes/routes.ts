/**
 * All routes of a server, and which methods each path has.
 *
 * Invariants: 1. Data, administrative and process paths are listed once. 2. The OpenAPI document
 * describes exactly this list, but for the benchmark route and the pages of the console.
 */
import { BACKUP_CALL_MAX_MS } from "../../base/limits.js";
import { type ConsoleFiles, consoleRoutes } from "./console-routes.js";
import { callRoutes } from "./call-routes.js";
import { HEALTH_ROUTE } from "./health-route.js";
import { KV_ROUTES } from "./kv-routes.js";
import { LOCK_ADMIN_ROUTES } from "./lock-admin-routes.js";
import { LOCK_ROUTES } from "./lock-routes.js";
import { type MetricsSource, nodeRoutes } from "./node-routes.js";
import { nodeDebugRoute } from "./node-debug-route.js";
import type { NodeDebugPort } from "../../operations/api/node-debug.js";
import { openApiText } from "../http/openapi.js";
import type { Route } from "../http/route.js";
import { SEQUENCE_ROUTES } from "./sequence-routes.js";
import { watchPollRoute } from "./watch-poll.js";
import { watchStreamRoute } from "./watch-stream.js";

export interface RouteOptions {
  readonly version: string;
  readonly leaveTimeoutMs: number;
  readonly adminTimeoutMs: number;
  readonly metrics: MetricsSource | null;
  readonly nodeDebug: NodeDebugPort | null;
  readonly console: ConsoleFiles | null;
  readonly watchStreamBufferBytes: number;
  readonly responseMaxBytes: number;
  readonly benchmarkRoute: boolean;
}

/** Reads a body and answers: what any POST route of this server costs at least. */
const BENCHMARK_ROUTE: Route = {
  method: "POST",
  path: "/v1/benchmark/noop",
  access: "nobody",
  summary: "Does nothing",
  tag: "node",
  body: null,
  query: [],
  answer: { object: {} },
  statuses: [],
  kind: null,
  run: (exchange) => exchange.json(200, "{}"),
};

export function restRoutes(options: RouteOptions): readonly Route[] {
  let document: string | null = null;
  const routes: Route[] = [
    ...LOCK_ROUTES,
    ...LOCK_ADMIN_ROUTES,
    ...SEQUENCE_ROUTES,
    ...KV_ROUTES,
    watchPollRoute(options.responseMaxBytes),
    watchStreamRoute(options.watchStreamBufferBytes),
    HEALTH_ROUTE,
    ...callRoutes({
      admin: options.adminTimeoutMs,
      leave: options.leaveTimeoutMs,
      backup: BACKUP_CALL_MAX_MS,
    }),
    nodeDebugRoute(options.nodeDebug),
    ...nodeRoutes(options.version, options.metrics, () => {
      document ??= openApiText(routes, options.version);
      return document;
    }),
  ];
  const pages = options.console === null ? [] : consoleRoutes(options.console);
  return [...routes, ...pages, ...(options.benchmarkRoute ? [BENCHMARK_ROUTE] : [])];
}

/** Which methods a path has, for 405 and OPTIONS. */
export class PathIndex {
  private readonly fixed = new Map<string, string>();
  private readonly patterns: { readonly pattern: RegExp; readonly methods: string }[] = [];

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      const methods = route.method === "GET" ? "GET, HEAD, OPTIONS" : "POST, OPTIONS";
      if (route.path.includes("{id}")) {
        const pattern = new RegExp(`^${route.path.replace("{id}", "[^/]+")}$`);
        this.patterns.push({ pattern, methods });
      } else {
        const known = this.fixed.get(route.path);
        // No path of this server has both methods; a second one would need a joined list here.
        this.fixed.set(route.path, known ?? methods);
      }
    }
  }

  /** Value of the header Allow for the path of `url`, or null when there is no such path. */
  methodsOf(url: string): string | null {
    const question = url.indexOf("?");
    const path = question < 0 ? url : url.slice(0, question);
    const fixed = this.fixed.get(path);
    if (fixed !== undefined) return fixed;
    return this.patterns.find(({ pattern }) => pattern.test(path))?.methods ?? null;
  }
}
