/**
 * Starts a gRPC front end over false operations and talks to it through the real client library,
 * with raw bytes: on the cleartext port, or on a stand-in for the HTTPS port (SVC_GRPC_FRONT=https).
 *
 * Owns what it started and ends it after the test.
 */
import {
  Client,
  credentials,
  Metadata,
  type CallOptions,
  type ChannelCredentials,
  type ClientDuplexStream,
  type ServiceError,
} from "@grpc/grpc-js";
import { createSecureServer, connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import type { ClientSessionOptions } from "node:http2";
import { connect as connectSocket, type AddressInfo, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Test } from "tap";
import { ConnectionCount } from "../../../src/base/connections.js";
import { UnsentBytes } from "../../../src/base/unsent.js";
import { defaultConfig } from "../../doubles/default-settings.js";
import { createGrpcServer, GRPC_DEFAULTS, type GrpcServer } from "../../../src/grpc/server.js";
import type { GrpcServerOptions } from "../../../src/grpc/server.js";
import { decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import type { Encodable, MessageCodec } from "../../../src/proto/codec.js";
import { FakeOperations } from "../../doubles/front/operations.js";
import { certificate } from "./certificate.js";

export interface Started {
  readonly operations: FakeOperations;
  readonly server: GrpcServer;
  readonly port: number;
  readonly client: Client;
  readonly faults: unknown[];
  /** Request ids of `faults`. */
  readonly faultIds: string[];
}

export const identity = (bytes: Buffer): Buffer => bytes;

export function connect(port: number, secure?: ChannelCredentials): Client {
  return new Client(`localhost:${port}`, secure ?? credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
    // Channels to one address would share a connection otherwise.
    "grpc.use_local_subchannel_pool": 1,
  });
}

/** Starts a front end on a free port, with a client. */
export async function start(t: Test, options: Partial<GrpcServerOptions> = {}): Promise<Started> {
  const operations = new FakeOperations();
  const config = defaultConfig();
  const faults: unknown[] = [];
  const faultIds: string[] = [];
  const server = createGrpcServer({
    ...GRPC_DEFAULTS,
    requestTimeoutMs: config.requestTimeoutMs,
    maxReceiveBytes: config.grpcMaxReceiveBytes,
    lockMaxWaitMs: 3_600_000,
    maxInflightPerStream: config.maxInflightPerStream,
    watchStreamBufferBytes: config.watchStreamBufferBytes,
    noopMethod: false,
    operations,
    authenticator: null,
    connections: new ConnectionCount(),
    unsent: new UnsentBytes(),
    clock: { monotonicMs: () => performance.now() },
    onFault: (error, requestId) => {
      faults.push(error);
      faultIds.push(requestId);
    },
    audit: null,
    observer: null,
    ...options,
  });
  const front = await (isHttps() ? openHttps(server) : openCleartext(server));
  const { port, client } = front;
  t.teardown(async () => {
    client.close();
    await server.close(200);
    front.end();
  });
  return { operations, server, port, client, faults, faultIds };
}

interface Front {
  readonly port: number;
  readonly client: Client;
  end(): void;
}

function isHttps(): boolean {
  return process.env["SVC_GRPC_FRONT"] === "https";
}

async function openCleartext(server: GrpcServer): Promise<Front> {
  const port = await server.listen("127.0.0.1", 0);
  return { port, client: connect(port), end: () => undefined };
}

/** A listener like that of the HTTPS port, which hands its streams over. */
async function openHttps(server: GrpcServer): Promise<Front> {
  const { key, cert } = await certificate();
  const settings = { maxConcurrentStreams: 256, initialWindowSize: 1024 * 1024 };
  const shared = createSecureServer({ key, cert, settings, maxSessionMemory: 64 });
  const sessions = new Set<{ destroy(): void }>();
  shared.on("session", (session) => sessions.add(session));
  shared.on("stream", (stream, headers) => {
    server.handleStream(stream, headers);
  });
  await new Promise<void>((resolve) => shared.listen(0, "127.0.0.1", resolve));
  const { port } = shared.address() as AddressInfo;
  const client = connect(port, credentials.createSsl(Buffer.from(cert)));
  const end = (): void => {
    for (const session of sessions) session.destroy();
    shared.close();
  };
  return { port, client, end };
}

/** Another client of the front that was started. */
export async function connectAgain(port: number): Promise<Client> {
  if (!isHttps()) return connect(port);
  const { cert } = await certificate();
  return connect(port, credentials.createSsl(Buffer.from(cert)));
}

/** A connection of HTTP/2 to the front that was started. */
export async function rawSession(
  port: number,
  options: ClientSessionOptions = {},
): Promise<ClientHttp2Session> {
  if (!isHttps()) return connectHttp2(`http://127.0.0.1:${port}`, options);
  const { cert } = await certificate();
  return connectHttp2(`https://localhost:${port}`, { ...options, ca: cert });
}

/** A connection to the front that was started, below HTTP/2. */
export async function rawSocket(port: number): Promise<Socket> {
  if (!isHttps()) return connectSocket(port, "127.0.0.1");
  const { cert } = await certificate();
  return connectTls({ port, host: "localhost", ca: cert, ALPNProtocols: ["h2"] });
}

export interface RawAnswer {
  readonly error: ServiceError | null;
  readonly bytes: Buffer | null;
}

/** A unary call with the bytes as they are. */
export function callRaw(
  client: Client,
  path: string,
  bytes: Buffer,
  metadata: Readonly<Record<string, string>> = {},
  options: CallOptions = {},
): Promise<RawAnswer> {
  const headers = new Metadata();
  for (const [name, value] of Object.entries(metadata)) headers.set(name, value);
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, identity, identity, bytes, headers, options, (error, answer) => {
      resolve({ error, bytes: answer ?? null });
    });
  });
}

/** A unary call that must succeed. */
export async function call<Q, P>(
  client: Client,
  path: string,
  request: MessageCodec<Q>,
  message: Encodable<Q>,
  response: MessageCodec<P>,
  metadata: Readonly<Record<string, string>> = {},
): Promise<P> {
  const answer = await callRaw(client, path, encodeMessage(request, message), metadata);
  if (answer.error !== null) throw answer.error;
  const decoded = decodeMessage(response, answer.bytes ?? Buffer.alloc(0));
  if (decoded === null) throw new Error("the response is not a valid message");
  return decoded;
}

/** The status code that a call ends with. */
export async function codeOf(
  client: Client,
  path: string,
  bytes: Buffer = Buffer.alloc(0),
  metadata: Readonly<Record<string, string>> = {},
  options: CallOptions = {},
): Promise<number> {
  return (await callRaw(client, path, bytes, metadata, options)).error?.code ?? 0;
}

/** An open bidirectional stream whose messages are gathered. */
export interface OpenStream {
  readonly call: ClientDuplexStream<Buffer, Buffer>;
  readonly headers: Promise<Metadata>;
  readonly messages: Buffer[];
  /** Resolves with the status code at the end. */
  readonly ended: Promise<number>;
  /** Resolves when `condition` holds; looked at after each message. */
  until(condition: () => boolean): Promise<void>;
}

export function openStream(
  client: Client,
  path: string,
  metadata: Readonly<Record<string, string>> = {},
  options: CallOptions = {},
): OpenStream {
  const sent = new Metadata();
  for (const [name, value] of Object.entries(metadata)) sent.set(name, value);
  const call = client.makeBidiStreamRequest(path, identity, identity, sent, options);
  const messages: Buffer[] = [];
  let waiters: { condition: () => boolean; resolve: () => void }[] = [];
  const look = (): void => {
    waiters = waiters.filter(({ condition, resolve }) => {
      if (!condition()) return true;
      resolve();
      return false;
    });
  };
  call.on("data", (bytes: Buffer) => {
    messages.push(bytes);
    look();
  });
  call.on("error", () => undefined);
  const headers = new Promise<Metadata>((resolve) => call.on("metadata", resolve));
  const ended = new Promise<number>((resolve) => {
    call.on("status", (status) => resolve(status.code));
  });
  return {
    call,
    headers,
    messages,
    ended,
    until: (condition) =>
      new Promise((resolve) => {
        if (condition()) resolve();
        else waiters.push({ condition, resolve });
      }),
  };
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Resolves when `condition` holds, looking every few milliseconds; fails after ten seconds. */
export async function eventually(condition: () => boolean): Promise<void> {
  for (let round = 0; round < 2000; round++) {
    if (condition()) return;
    await sleep(5);
  }
  throw new Error("the condition did not come true");
}
