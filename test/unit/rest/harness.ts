/**
 * A REST server over the fake port, and the clients that talk to it.
 */
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import { connect } from "node:net";
import { Client } from "undici";
import { UnsentBytes } from "../../../src/base/unsent.js";
import { OWN_ORIGIN_ONLY } from "../../../src/rest/http/browsers.js";
import { SENDING_TIMES } from "../../../src/rest/http/listener.js";
import {
  createRestServer,
  type RestServer,
  type RestServerOptions,
} from "../../../src/rest/server.js";
import { makeSelfSigned } from "../../../src/server/security/certificate.js";
import { FakeOperations } from "../../doubles/front/operations.js";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The body as JSON; null when it is none. */
  readonly body: Record<string, unknown> | null;
}

export interface Rig {
  readonly port: FakeOperations;
  readonly server: RestServer;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly certificate: string;
  readonly faults: unknown[];
  readonly client: Client;
  call(method: string, path: string, body?: string | null, headers?: object): Promise<Answer>;
  post(path: string, body: unknown, headers?: object): Promise<Answer>;
  http2(): ClientHttp2Session;
  close(): Promise<void>;
}

type GrpcHandler = Parameters<RestServer["listenHttps"]>[3];

function jsonOrNull(text: string): Record<string, unknown> | null {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return null;
  }
}

export async function startRig(
  options: Partial<RestServerOptions> = {},
  grpcStream: GrpcHandler = null,
): Promise<Rig> {
  const port = new FakeOperations();
  const faults: unknown[] = [];
  const server = createRestServer({
    operations: port,
    version: "0.1.0",
    monotonicMs: () => performance.now(),
    requestTimeoutMs: 10_000,
    leaveTimeoutMs: 150_000,
    adminTimeoutMs: 30_000,
    maxRequestBytes: 2 << 20,
    authenticator: null,
    metrics: { contentType: "text/plain; version=0.0.4", text: async () => "svc_up 1\n" },
    nodeDebug: null,
    console: null,
    observer: null,
    browsers: OWN_ORIGIN_ONLY,
    connections: null,
    unsent: new UnsentBytes(),
    watchStreamBufferBytes: 64 * 1024,
    responseMaxBytes: 1 << 20,
    sendingTimes: SENDING_TIMES,
    benchmarkRoute: false,
    onFault: (error) => faults.push(error),
    audit: null,
    ...options,
  });
  const { certificate, key } = await makeSelfSigned("svc-dev");
  const material = { certificate, key, clientCa: null, clientCertificateRequired: false };
  const httpPort = await server.listenHttp("127.0.0.1", 0);
  const httpsPort = await server.listenHttps("127.0.0.1", 0, material, grpcStream);
  const client = new Client(`http://127.0.0.1:${httpPort}`, { pipelining: 1 });
  const sessions: ClientHttp2Session[] = [];

  const call: Rig["call"] = async (method, path, body = null, headers = {}) => {
    const answer = await client.request({
      method: method as "GET",
      path,
      body,
      headers: {
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...headers,
      },
    });
    const text = await answer.body.text();
    const { statusCode, headers: answered } = answer;
    return { status: statusCode, headers: answered, text, body: jsonOrNull(text) };
  };
  return {
    port,
    server,
    httpPort,
    httpsPort,
    certificate,
    faults,
    client,
    call,
    post: (path, body, headers = {}) => {
      return call("POST", path, typeof body === "string" ? body : JSON.stringify(body), headers);
    },
    http2: () => {
      const url = `https://127.0.0.1:${httpsPort}`;
      const session = connectHttp2(url, { ca: certificate, servername: "localhost" });
      session.on("error", () => undefined);
      sessions.push(session);
      return session;
    },
    close: async () => {
      await client.destroy();
      for (const session of sessions) session.destroy();
      await server.close(2000);
    },
  };
}

/** One request over an HTTP/2 session. */
export function requestHttp2(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body: string | Buffer | null = null,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers, { endStream: body === null });
    let status = 0;
    let answered: Record<string, string | string[] | undefined> = {};
    let text = "";
    stream.setEncoding("utf8");
    stream.on("response", (received) => {
      status = Number(received[":status"]);
      answered = received as typeof answered;
    });
    stream.on("data", (chunk: string) => (text += chunk));
    stream.on("error", (error) => {
      if (status === 0) reject(error);
    });
    stream.on("close", () => {
      if (status === 0) reject(new Error(`stream closed with code ${stream.rstCode}`));
      else resolve({ status, headers: answered, text, body: jsonOrNull(text) });
    });
    if (body !== null) stream.end(body);
  });
}

/**
 * Sends `pieces` over a bare socket, one per turn of the loop (and half-closes when `ends`);
 * resolves to all that came back once it is closed.
 */
export function rawExchange(
  port: number,
  pieces: readonly string[],
  pauseMs = 0,
  ends = false,
): Promise<{ readonly text: string; readonly closed: boolean }> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => (text += chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve({ text, closed: true }));
    void (async () => {
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((wait) => setTimeout(wait, pauseMs));
      }
      if (ends) socket.end();
    })();
  });
}
