/**
 * Why an endpoint cannot be reached, in words, found by connecting to it once beside the client.
 *
 * Owns its one socket until it answers. Invariants: 1. It ends within its limit. 2. It sends
 * nothing but what TLS itself needs. 3. It never keeps the process alive.
 */
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TlsOptions } from "../../client/mod.js";

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was reset",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the name of the host cannot be looked up",
  EHOSTUNREACH: "no route to the host",
  ENETUNREACH: "no route to the network",
  ETIMEDOUT: "no connection in time",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted (self-signed)",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not trusted (unknown authority)",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not trusted (unknown authority)",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate is not trusted (unknown authority)",
  CERT_HAS_EXPIRED: "its certificate has expired",
};

function reason(error: NodeJS.ErrnoException): string {
  return WORDS[error.code ?? ""] ?? (error.message || (error.code ?? "no connection"));
}

function bytes(pem: string | Uint8Array | undefined): Buffer | undefined {
  return pem === undefined ? undefined : Buffer.from(pem);
}

function open(endpoint: URL, tls: TlsOptions, onConnected: () => void): Socket {
  const host = endpoint.hostname.replace(/[[\]]/g, "");
  const port = Number(endpoint.port) || (endpoint.protocol === "https:" ? 443 : 80);
  if (endpoint.protocol !== "https:") return connect({ host, port }, onConnected);
  const options = {
    host,
    port,
    ca: bytes(tls.ca),
    cert: bytes(tls.cert),
    key: bytes(tls.key),
    rejectUnauthorized: tls.insecure !== true,
    ALPNProtocols: ["h2"],
    ...(isIP(host) === 0 ? { servername: host } : {}),
  };
  return connectTls(options, onConnected);
}

/** Why `endpoint` cannot be reached; null when it accepts connections. Never rejects. */
export function probe(endpoint: string, tls: TlsOptions, limitMs: number): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = open(new URL(endpoint), tls, () => end(null));
    const end = (answer: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const seconds = (limitMs / 1000).toFixed(1);
    const timer = setTimeout(() => end(`no connection within ${seconds} s`), limitMs);
    timer.unref();
    socket.unref();
    socket.on("error", (error) => end(reason(error)));
  });
}
