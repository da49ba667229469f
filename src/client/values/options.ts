/**
 * What a client and a call can be told, with defaults and checks.
 *
 * Invariants: 1. Wrong options throw InvalidInputError at once and name the option.
 * 2. Durations are milliseconds.
 */
import { INT32_MAX } from "../../base/int64.js";
import {
  bytesOf,
  checkFunction,
  checkSignal,
  eachOf,
  flagOf,
  membersOf,
  optionsOf,
  textOf,
  wrongType,
} from "./arguments.js";
import { InvalidInputError } from "./errors.js";

/** What every method takes. */
export interface CallOptions {
  /** Ends the call when it aborts; the call then rejects with CancelledError. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Longest time of the call with all its repeats, in ms from now (default: the client's
   * `deadlineMs`; `Infinity` = none). The call then rejects with TimeoutError.
   */
  readonly deadlineMs?: number | undefined;
}

/** Where data lives: replicated and durable, or in the memory of the leader only. */
export type Durability = "persistent" | "ephemeral";

/** A monotonic clock in ms with an arbitrary origin; replaced in tests only. */
export interface MonotonicClock {
  nowMs(): number;
}

/** How the server is verified and how the client shows itself (https endpoints). */
export interface TlsOptions {
  /** Trusted authorities (PEM). Default: those of the platform. */
  readonly ca?: string | Uint8Array | undefined;
  /** Client certificate chain (PEM). */
  readonly cert?: string | Uint8Array | undefined;
  /** Key of the client certificate (PEM). */
  readonly key?: string | Uint8Array | undefined;
  /** Accept any server certificate. For development only. */
  readonly insecure?: boolean | undefined;
}

/** Gives the current bearer token. */
export type TokenSource = () => string | Promise<string>;

/** Whether repeated allocations of sequences carry a key; see `SvcClientOptions.idempotency`. */
export type Idempotency = "auto" | "always" | "off";

/** Options of `new SvcClient`. */
export interface SvcClientOptions {
  /** One or more base URLs, or one text with commas. Without a scheme: `http://`. */
  readonly endpoints: string | readonly string[];
  /**
   * `grpc` (default): `http://` endpoints speak gRPC over cleartext HTTP/2, `https://` ones over
   * TLS. `rest`: JSON over HTTP/1.1.
   */
  readonly transport?: "grpc" | "rest" | undefined;
  readonly tls?: TlsOptions | undefined;
  /**
   * At which endpoint a client begins: a random one (default), so that many clients with the same
   * list spread over the nodes, or the first.
   */
  readonly startAt?: "random" | "first" | undefined;
  /**
   * True: when the only endpoint refuses connections, calls end at once with `unreachable` instead
   * of waiting for it until their deadline (default false).
   */
  readonly failWhenRefused?: boolean | undefined;
  /**
   * Bearer token, or a function that gives the current one, or will; asked for every stream and
   * single call, within `connectTimeoutMs`.
   */
  readonly token?: string | TokenSource | undefined;
  /** Default deadline of calls (ms, default 30,000; `Infinity` = none). */
  readonly deadlineMs?: number | undefined;
  /** Connections per endpoint (default 2). */
  readonly channels?: number | undefined;
  /** Time to connect before another endpoint is tried (ms, default 3000). */
  readonly connectTimeoutMs?: number | undefined;
  /**
   * A connection on which calls wait and nothing comes is probed after this time and given up after
   * half of it (ms, default 5000). One without calls is probed every 30 s (or this, if longer).
   */
  readonly keepAliveMs?: number | undefined;
  /**
   * What `next` and `reserve` do about lost answers when the caller gives no key. `auto` (default):
   * `next` travels without a key, so that it is served from memory, and a repeat after a lost
   * answer carries one (at most one value is skipped); `reserve` carries one from the start.
   * `always`: every allocation carries a key made here: exact repeats, each allocation durable
   * before it is answered. `off`: no keys; an allocation that may have happened is never repeated
   * and rejects with outcome `unknown`.
   */
  readonly idempotency?: Idempotency | undefined;
  /**
   * Send requests straight to the node that serves their object, as far as answers told (default
   * true). Endpoints learned so are used beside the configured ones, with their scheme and token;
   * in clear text a token goes only to hosts that are configured.
   */
  readonly followRoutes?: boolean | undefined;
  /** Monotonic clock for leases; default `performance.now`, corrected for suspended machines. */
  readonly clock?: MonotonicClock | undefined;
}

/** Options after defaults and checks. */
export interface ClientSettings {
  readonly endpoints: readonly Endpoint[];
  readonly transport: "grpc" | "rest";
  readonly tls: TlsOptions;
  readonly token: TokenSource | null;
  readonly startAt: "random" | "first";
  readonly failWhenRefused: boolean;
  readonly deadlineMs: number;
  readonly channels: number;
  readonly connectTimeoutMs: number;
  readonly keepAliveMs: number;
  readonly idempotency: Idempotency;
  readonly followRoutes: boolean;
}

/** One place to send requests to. */
export interface Endpoint {
  readonly url: string;
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
}

const DEADLINE_DEFAULT_MS = 30_000;
const CHANNELS_DEFAULT = 2;
const CHANNELS_MAX = 64;
const CONNECT_TIMEOUT_DEFAULT_MS = 3000;
const KEEP_ALIVE_DEFAULT_MS = 5000;
const TOKEN_FORM = /^[\x21-\x7e]{1,4096}$/;

/** What every method takes, checked; returns it, or nothing given. Throws InvalidInputError. */
export function callOptions(given: CallOptions | undefined): CallOptions {
  const options = optionsOf(given);
  checkSignal(options.signal);
  if (options.deadlineMs !== undefined) checkDeadline(options.deadlineMs);
  return options;
}

/** Reads `http://host:port`; throws InvalidInputError otherwise. */
export function parseEndpoint(text: string): Endpoint {
  const trimmed = text.trim();
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`;
  let url: URL;
  try {
    url = new URL(withScheme);
  } catch (error) {
    throw new InvalidInputError(`"${text}" is not an endpoint (http://host:port)`, {
      cause: error,
    });
  }
  const secure = url.protocol === "https:";
  const bare = url.pathname === "/" && url.search === "" && url.hash === "" && url.username === "";
  if ((!secure && url.protocol !== "http:") || url.hostname === "" || !bare) {
    throw new InvalidInputError(`"${text}" is not an endpoint (http://host:port)`);
  }
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  return { url: `${url.protocol}//${url.hostname}:${port}`, secure, host: url.hostname, port };
}

/** A duration option in whole ms from `min` to 2^31 - 1; throws InvalidInputError otherwise. */
export function durationMs(name: string, value: number, min: number): number {
  if (Number.isInteger(value) && value >= min && value <= INT32_MAX) return value;
  if (typeof value !== "number") throw wrongType(name, "a number of milliseconds", value);
  throw new InvalidInputError(`${name} is whole milliseconds from ${min} to ${INT32_MAX}`);
}

/** Throws InvalidInputError unless `value` is one of the three rules. */
export function checkIdempotency(value: Idempotency): Idempotency {
  if (["auto", "always", "off"].includes(value)) return value;
  throw new InvalidInputError('idempotency is "auto", "always" or "off"');
}

/** A deadline: as a duration, or Infinity. */
export function checkDeadline(value: number, name = "deadlineMs"): number {
  if (value === Number.POSITIVE_INFINITY) return value;
  if (typeof value !== "number") throw wrongType(name, "a number of milliseconds", value);
  if (value > 0 && value <= INT32_MAX) return value;
  throw new InvalidInputError(`${name} is a time in ms up to ${INT32_MAX}, or Infinity`);
}

function endpointsOf(given: string | readonly string[]): Endpoint[] {
  const texts =
    typeof given === "string"
      ? given.split(",")
      : eachOf("endpoints", given, (text) => textOf("an endpoint", text));
  const endpoints = texts.filter((text) => text.trim() !== "").map(parseEndpoint);
  if (endpoints.length === 0) throw new InvalidInputError("endpoints names no endpoint");
  return endpoints;
}

function tlsOf(tls: TlsOptions | undefined): TlsOptions {
  const { ca, cert, key, insecure } = optionsOf(tls, "tls");
  for (const [name, pem] of Object.entries({ ca, cert, key })) {
    if (pem !== undefined) bytesOf(`tls.${name}`, pem);
  }
  return { ca, cert, key, insecure: flagOf("tls.insecure", insecure, false) };
}

function checkedToken(text: unknown): string {
  if (typeof text === "string" && TOKEN_FORM.test(text)) return text;
  throw new InvalidInputError("a token is visible ASCII text");
}

function tokenOf(token: SvcClientOptions["token"]): TokenSource | null {
  if (token === undefined) return null;
  if (typeof token === "string") return () => checkedToken(token);
  checkFunction("token", token);
  return () => {
    const given = token();
    return given instanceof Promise ? given.then(checkedToken) : checkedToken(given);
  };
}

/** Applies defaults and checks. Throws InvalidInputError. */
export function clientSettings(options: SvcClientOptions): ClientSettings {
  membersOf("options", options);
  const transport = options.transport ?? "grpc";
  if (transport !== "grpc" && transport !== "rest") {
    throw new InvalidInputError('transport is "grpc" or "rest"');
  }
  const { startAt = "random" } = options;
  if (startAt !== "random" && startAt !== "first") {
    throw new InvalidInputError('startAt is "random" or "first"');
  }
  const channels = options.channels ?? CHANNELS_DEFAULT;
  if (!Number.isInteger(channels) || channels < 1 || channels > CHANNELS_MAX) {
    throw new InvalidInputError(`channels is 1 to ${CHANNELS_MAX}`);
  }
  const connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_DEFAULT_MS;
  return {
    endpoints: endpointsOf(options.endpoints),
    transport,
    tls: tlsOf(options.tls),
    startAt,
    failWhenRefused: flagOf("failWhenRefused", options.failWhenRefused, false),
    token: tokenOf(options.token),
    deadlineMs: checkDeadline(options.deadlineMs ?? DEADLINE_DEFAULT_MS),
    channels,
    connectTimeoutMs: durationMs("connectTimeoutMs", connectTimeoutMs, 1),
    keepAliveMs: durationMs("keepAliveMs", options.keepAliveMs ?? KEEP_ALIVE_DEFAULT_MS, 10),
    idempotency: checkIdempotency(options.idempotency ?? "auto"),
    followRoutes: flagOf("followRoutes", options.followRoutes, true),
  };
}
