/**
 * The HTTPS server: REST over HTTP/1.1 and HTTP/2, and gRPC streams, on one port.
 *
 * Invariants: 1. Which protocol a connection speaks is settled by ALPN, what a stream is by its
 * content type, before any framework sees it. 2. An HTTP/2 request with too large headers is
 * answered 431; only far beyond that its stream is reset. 3. At most 256 streams of a connection
 * are open.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  constants,
  createSecureServer,
  type Http2SecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { SecureContextOptions, Server as TlsServer } from "node:tls";
import {
  HEADERS_MAX_BYTES,
  HTTP_SESSION_MEMORY_MIB,
  STREAMS_PER_CONNECTION_MAX,
  TLS_HANDSHAKE_TIMEOUT_MS,
} from "../../base/limits.js";
import type { RequestHandler } from "./listener.js";
import { problemText } from "./problems.js";

/**
 * Takes over one gRPC stream: untouched, nothing is listening on it yet. The handler answers and
 * ends it; the session stays the listener's.
 */
export type GrpcStreamHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

export interface TlsMaterial {
  /** PEM certificate chain. */
  readonly certificate: string | Buffer;
  /** PEM private key. */
  readonly key: string | Buffer;
  /** PEM CA that client certificates must chain to; null = none are asked for. */
  readonly clientCa: string | Buffer | null;
  /** Whether a handshake without a valid client certificate fails. */
  readonly clientCertificateRequired: boolean;
}

/** Headers of HTTP/2 are refused by reset only beyond this, so that 431 can be said below it. */
const HEADER_LIST_MAX_BYTES = 4 * HEADERS_MAX_BYTES;
const STREAM_WINDOW_BYTES = 1024 * 1024;
const GRPC_TYPE = "application/grpc";

type StreamListener = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: string[],
) => void;

function headersSizeBytes(rawHeaders: readonly string[]): number {
  let size = 0;
  for (const part of rawHeaders) size += part.length;
  return size;
}

function refuseHeaders(stream: ServerHttp2Stream): void {
  stream.on("error", () => undefined);
  stream.respond({ ":status": 431, "content-type": "application/problem+json" });
  const detail = `the headers are larger than ${HEADERS_MAX_BYTES} bytes`;
  stream.end(problemText(431, "headers-too-large", detail));
  stream.close(constants.NGHTTP2_NO_ERROR);
}

/**
 * Puts the choice between gRPC, 431 and REST before what node's compatibility layer does with a
 * stream.
 */
function interceptStreams(server: Http2SecureServer, grpcStream: GrpcStreamHandler | null): void {
  const compatibility = server.listeners("stream") as StreamListener[];
  server.removeAllListeners("stream");
  const dispatch: StreamListener = (stream, headers, flags, rawHeaders) => {
    if (grpcStream !== null && headers["content-type"]?.startsWith(GRPC_TYPE) === true) {
      grpcStream(stream, headers);
    } else if (headersSizeBytes(rawHeaders) > HEADERS_MAX_BYTES) refuseHeaders(stream);
    else
      for (const listener of compatibility)
        listener.call(server, stream, headers, flags, rawHeaders);
  };
  server.on("stream", dispatch);
}

/** What handshakes are made with. */
function secretsOf({ certificate, key, clientCa }: TlsMaterial): SecureContextOptions {
  const authority = clientCa === null ? {} : { ca: clientCa };
  return { cert: certificate, key, ...authority, minVersion: "TLSv1.2" };
}

/**
 * Handshakes from now on are made with `material`; whether certificates are asked for stays. No
 * session of before is resumed: the keys of its tickets are gone.
 */
export function renewSecrets(server: Http2SecureServer, material: TlsMaterial): void {
  (server as unknown as TlsServer).setSecureContext(secretsOf(material));
}

/**
 * A server, not listening yet, that hands REST requests to `handler` and gRPC streams to
 * `grpcStream`.
 */
export function createHttpsServer(
  material: TlsMaterial,
  handler: RequestHandler,
  grpcStream: GrpcStreamHandler | null,
): Http2SecureServer {
  const server = createSecureServer({
    allowHTTP1: true,
    ...secretsOf(material),
    requestCert: material.clientCa !== null,
    rejectUnauthorized: material.clientCa !== null && material.clientCertificateRequired,
    handshakeTimeout: TLS_HANDSHAKE_TIMEOUT_MS,
    maxSessionMemory: HTTP_SESSION_MEMORY_MIB,
    settings: {
      maxConcurrentStreams: STREAMS_PER_CONNECTION_MAX,
      // Batch streams carry frames of up to 1 MiB; the usual 64 KiB would stall each of them.
      initialWindowSize: STREAM_WINDOW_BYTES,
      maxHeaderListSize: HEADER_LIST_MAX_BYTES,
      enableConnectProtocol: false,
    },
  });
  server.on("request", (request, response) => {
    // The compatibility layer offers what REST uses of the HTTP/1 classes: headers, data events,
    // writeHead, end.
    handler(request as unknown as IncomingMessage, response as unknown as ServerResponse);
  });
  interceptStreams(server, grpcStream);
  return server;
}
