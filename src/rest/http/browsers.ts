/**
 * Requests that a browser sends on behalf of a page that is not ours (contract 10.6).
 *
 * Invariants: 1. A page of another origin reaches no path that needs a role, unless its origin was
 * allowed: browsers say the origin of every request that such a page can make and that changes
 * something. 2. Where nobody has credentials, the name in the request must be one of this node, so
 * that a name that a removed member pointed here does not count as ours (P-201).
 */
import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { connectionOf } from "./access.js";

export interface BrowserRules {
  /** Origins whose pages may call, as browsers write them: `https://name:8443`. */
  readonly allowedOrigins: ReadonlySet<string>;
  /**
   * Names, in lower case, that a request may give for this node beside localhost, loopback
   * addresses and the address that it came to; null = any, because callers have credentials.
   */
  readonly hosts: ReadonlySet<string> | null;
}

/** No page of another origin may call; what the host is called is not looked at. */
export const OWN_ORIGIN_ONLY: BrowserRules = { allowedOrigins: new Set(), hosts: null };

const LOOPBACK = /^127(?:\.\d{1,3}){3}$/;
const AUTHORITY = /^(\[[0-9a-f:.]+\]|[^:[\]]*)(?::\d{1,5})?$/;

/** `name`, `name:port`, `[v6]:port` as the request gives it; "" when it gives none. */
function authorityOf(raw: IncomingMessage): string {
  const named = raw.headers[":authority"] ?? raw.headers.host;
  return typeof named === "string" ? named.toLowerCase() : "";
}

/** The name or address in an authority, without port, brackets and final dot; "" for none. */
export function hostNameOf(authority: string): string {
  const name = AUTHORITY.exec(authority)?.[1] ?? "";
  if (name.startsWith("[")) return name.slice(1, -1);
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

export type Misdirection = "forbidden-origin" | "misdirected-request";

/** Why `raw` is refused; null when it is not. */
export function misdirection(raw: IncomingMessage, rules: BrowserRules): Misdirection | null {
  const { origin } = raw.headers;
  if (origin === undefined && rules.hosts === null) return null;
  const authority = authorityOf(raw);
  const socket = connectionOf(raw);
  if (origin !== undefined && !isOwn(origin, authority, socket)) {
    if (!rules.allowedOrigins.has(origin)) return "forbidden-origin";
  }
  if (rules.hosts === null) return null;
  const name = hostNameOf(authority);
  return isHere(name, socket) || rules.hosts.has(name) ? null : "misdirected-request";
}

function isOwn(origin: string, authority: string, socket: Partial<TLSSocket>): boolean {
  const scheme = socket.encrypted === true ? "https" : "http";
  return origin === `${scheme}://${authority}`;
}

function isHere(name: string, socket: Partial<TLSSocket>): boolean {
  if (name === "localhost" || name === "::1" || LOOPBACK.test(name)) return true;
  const { localAddress } = socket;
  if (localAddress === undefined || name === "") return false;
  return name === localAddress.toLowerCase().replace(/^::ffff:(?=\d+\.)/, "");
}

/** What a page of an allowed origin needs to read the answer. Empty for everybody else. */
export function sharingHeaders(
  raw: IncomingMessage,
  { allowedOrigins }: BrowserRules,
): Readonly<Record<string, string>> {
  const { origin } = raw.headers;
  if (origin === undefined || !allowedOrigins.has(origin)) return {};
  return {
    "access-control-allow-origin": origin,
    "access-control-expose-headers": "retry-after, x-request-id",
    vary: "origin",
  };
}

/** What such a page asks before it sends JSON or credentials. */
export function preflightHeaders(
  raw: IncomingMessage,
  rules: BrowserRules,
): Readonly<Record<string, string>> {
  const headers = sharingHeaders(raw, rules);
  if (!("vary" in headers)) return headers;
  return {
    ...headers,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": "authorization, content-type, x-request-id",
    "access-control-max-age": "600",
  };
}
