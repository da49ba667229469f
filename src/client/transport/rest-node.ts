/**
 * One endpoint over REST.
 *
 * Owns two agents of the HTTP package, loaded when first needed. Invariants: 1. A refused
 * connection certainly had no effect; any other failure of the transport may have had one. 2.
 * Nothing is repeated here but what an older service refused whole: it is said in older words, and
 * so is what follows for a while. 3. What the service may let wait for long has connections of its
 * own: it holds up no release and no renewal.
 */
import type { Agent } from "undici";
import type { Try } from "../call/try.js";
import {
  AccessError,
  NotAtLevelError,
  InvalidInputError,
  localFailure,
  ServerError,
  SvcError,
  TooLargeError,
  UnavailableError,
} from "../values/errors.js";
import { backupError } from "./grpc-status.js";
import { loadUndici } from "./http-package.js";
import { parseJson, type JsonObject, type JsonValue } from "../values/json.js";
import type { ClientSettings, Endpoint, TokenSource } from "../values/options.js";
import { inTime } from "../time/pause.js";
import type { ClientPlatform } from "../time/platform.js";
import { hintFromRest, type RouteHint } from "../call/route-hint.js";
import type { TransportNode } from "../call/try.js";

/** Connections per endpoint, and as many for what waits: one request at a time each. */
const CONNECTIONS = 64;
/** How long an endpoint that did not know a member is asked without it: it may be upgraded (ms). */
const PLAIN_MS = 60_000;
/** Failures before the request can have left, when a connection was being made. */
const NOT_CONNECTED: ReadonlySet<string> = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"]);
/** Failures before the request can have left. */
const NOT_SENT: ReadonlySet<string> = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "CERT_HAS_EXPIRED",
]);

interface Loaded {
  readonly undici: Awaited<ReturnType<typeof loadUndici>>;
  readonly prompt: Agent;
  /** For requests that may wait at the service. */
  readonly waiting: Agent;
}
interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export class RestNode implements TransportNode {
  private readonly platform: ClientPlatform;
  private readonly endpoint: Endpoint;
  private readonly settings: ClientSettings;
  private readonly onUnreachable: () => void;
  private loaded: Promise<Loaded> | null = null;
  private plainUntilMs = Number.NEGATIVE_INFINITY;
  private closed = false;

  constructor(
    platform: ClientPlatform,
    endpoint: Endpoint,
    settings: ClientSettings,
    onUnreachable: () => void,
  ) {
    this.platform = platform;
    this.endpoint = endpoint;
    this.settings = settings;
    this.onUnreachable = onUnreachable;
  }

  /** Requests make their connections themselves. */
  get ready(): boolean {
    return !this.closed;
  }

  warm(): void {
    // Nothing stands before a request needs it.
  }

  watch(): null {
    return null;
  }

  send(attempt: Try): void {
    const { followRoutes } = this.settings;
    this.exchange(attempt)
      .then((answer) => settle(attempt, answer, followRoutes))
      .catch((error: unknown) => attempt.failed(this.failure(error, attempt.left)));
  }

  private async load(): Promise<Loaded> {
    const undici = await loadUndici();
    const { ca, cert, key, insecure } = this.settings.tls;
    const pem = (text: string | Uint8Array | undefined): Buffer | undefined =>
      text === undefined ? undefined : Buffer.from(text);
    const options = {
      connections: CONNECTIONS,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: {
        timeout: this.settings.connectTimeoutMs,
        ca: pem(ca),
        cert: pem(cert),
        key: pem(key),
        rejectUnauthorized: insecure !== true,
      },
    };
    const [prompt, waiting] = [new undici.Agent(options), new undici.Agent(options)];
    if (this.closed) await Promise.all([prompt.destroy(), waiting.destroy()]);
    return { undici, prompt, waiting };
  }

  private async exchange(attempt: Try): Promise<Answer> {
    const { rest } = attempt.operation;
    const { body, plainBody = null } = rest;
    const { platform } = this;
    if (plainBody !== null && platform.nowMs() < this.plainUntilMs)
      return this.ask(attempt, plainBody);
    const answer = await this.ask(attempt, body);
    if (plainBody === null || !isUnknownMember(answer)) return answer;
    this.plainUntilMs = platform.nowMs() + PLAIN_MS;
    return this.ask(attempt, plainBody);
  }

  private async ask(attempt: Try, bodyOf: (request: unknown) => string | null): Promise<Answer> {
    const { operation, request } = attempt;
    this.loaded ??= this.load();
    const { undici, prompt, waiting } = await this.loaded;
    const headers: Record<string, string> = {};
    const { token } = this.settings;
    if (token !== null) headers["authorization"] = `Bearer ${await this.tokenOf(token)}`;
    if (attempt.ended) throw new SvcError("ended", "nobody waits");
    const body = bodyOf(request);
    if (body !== null) headers["content-type"] = "application/json";
    const stop = new AbortController();
    attempt.abandon = (): void => stop.abort();
    attempt.cancelWait = attempt.abandon;
    attempt.left = true;
    const response = await undici.request(this.endpoint.url + operation.rest.path(request), {
      method: operation.rest.method,
      dispatcher: operation.waits?.(request) === true ? waiting : prompt,
      headers,
      body,
      signal: stop.signal,
    });
    const text = await response.body.text();
    return { status: response.statusCode, headers: response.headers, text };
  }

  private async tokenOf(token: TokenSource): Promise<string> {
    const message = "the token function gave no token in time";
    return inTime(this.platform, Promise.resolve(token()), this.settings.connectTimeoutMs, message);
  }

  private failure(error: unknown, left: boolean): SvcError {
    if (error instanceof SvcError || !left) return localFailure(error);
    const cause = error as Readonly<Record<"code" | "message" | "syscall", unknown>>;
    const { url } = this.endpoint;
    if (typeof cause.code === "string") {
      this.onUnreachable();
      const message = `${url}: ${String(cause.message)}`;
      if (neverLeft(cause.code, cause.syscall)) {
        const refused = cause.code === "ECONNREFUSED";
        const why = refused ? "connection refused" : String(cause.message);
        const facts = { cause, refused };
        return new UnavailableError("unreachable", `cannot reach ${url}: ${why}`, facts);
      }
      return new UnavailableError("connection-lost", message, { cause, outcome: "unknown" });
    }
    const facts = { cause: error, outcome: "unknown" } as const;
    return new UnavailableError("connection-lost", `${url}: the exchange failed`, facts);
  }

  suspect(): void {
    // Every request has a connection of its own, which ends with it.
  }

  async close(): Promise<void> {
    this.closed = true;
    const loaded = await this.loaded?.catch(() => null);
    await Promise.all([loaded?.prompt.destroy(), loaded?.waiting.destroy()]);
  }
}

/**
 * Whether a failure with this code came before the request can have left. A network may also fail
 * below a request: reading and writing meet some of the same codes.
 */
export function neverLeft(code: string, syscall: unknown): boolean {
  if (NOT_CONNECTED.has(code)) return syscall === undefined || syscall === "connect";
  return NOT_SENT.has(code);
}

/** Whether the service did nothing because it does not know a member of the body. */
function isUnknownMember({ status, text }: Answer): boolean {
  if (status !== 400) return false;
  try {
    const problem = parseJson(text);
    if (typeof problem !== "object" || problem === null || Array.isArray(problem)) return false;
    return problem["code"] === "unknown-member";
  } catch {
    return false;
  }
}

function settle(attempt: Try, answer: Answer, followRoutes: boolean): void {
  if (attempt.ended) return;
  let body: JsonValue;
  try {
    body = parseJson(answer.text);
  } catch (error) {
    attempt.failed(statusFailure(answer, {}, error));
    return;
  }
  const object = Array.isArray(body) ? { list: body } : body;
  if (typeof object !== "object" || object === null) {
    attempt.failed(statusFailure(answer, {}));
    return;
  }
  const { marker } = attempt.operation.rest;
  const own = answer.status === 200 || (marker !== undefined && object[marker] !== undefined);
  if (!own) return attempt.failed(statusFailure(answer, object));
  let result: unknown;
  let hint: RouteHint | null = null;
  try {
    result = attempt.operation.fromRest(object);
    if (followRoutes && attempt.operation.route !== undefined) hint = hintFromRest(object);
  } catch (error) {
    const failure = new ServerError("the answer cannot be read", { cause: error }, "protocol");
    return attempt.failed(error instanceof SvcError ? error : failure);
  }
  attempt.answered(result, hint);
}

/** The error of a problem document (RFC 9457), or of a body that is none. */
function statusFailure(answer: Answer, body: JsonObject, cause?: unknown): SvcError {
  const { status, headers } = answer;
  const detail = body["detail"];
  const code = body["code"];
  const message = typeof detail === "string" ? detail : `HTTP ${status}`;
  const outcome = headers["x-svc-backup-outcome"];
  if (typeof outcome === "string") return backupError(outcome, message);
  switch (status) {
    case 401:
      return new AccessError("unauthenticated", message);
    case 403:
      return new AccessError("forbidden", message);
    case 404:
    case 405:
      // The service says why; a proxy or another service does not: another endpoint may be right.
      if (typeof code === "string") return new InvalidInputError(message);
      return new UnavailableError("unreachable", `${message}: not an answer of the service`);
    case 409:
      if (code === "not-available-at-level") return new NotAtLevelError(message);
      return new InvalidInputError(message);
    case 413:
    case 422:
      return new TooLargeError(message);
    case 503: {
      const seconds = Number(headers["retry-after"] ?? 0);
      const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : 0;
      const known = typeof code === "string";
      const facts = { outcome: known ? "none" : "unknown" } as const;
      return new UnavailableError(known ? code : "unavailable", message, facts, retryAfterMs);
    }
    case 408:
    case 502:
    case 504:
      return new UnavailableError("no-answer", message, { outcome: "unknown" });
    default:
      if (status >= 400 && status < 500) return new InvalidInputError(message);
      return new ServerError(message, { cause });
  }
}
