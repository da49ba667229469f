/**
 * A caller that knows only the wire: HTTP/1.1, HTTP/2 and gRPC against one real server process, with message types read
 * from the .proto files.
 *
 * Invariants: 1. Nothing is repeated and nothing is interpreted: status, headers, text and fields are handed back.
 * 2. 64-bit numbers of gRPC are texts; of JSON, the text of the answer is there to compare.
 */
import { request as httpRequest } from "node:http";
import { connect as http2Connect } from "node:http2";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";
import protobuf from "protobufjs";
import { root } from "../../tidy/sources.js";

export type Json = Record<string, unknown>;
type HeaderValues = Readonly<Record<string, string | string[] | undefined>>;

export interface Reply {
  readonly status: number;
  readonly headers: HeaderValues;
  readonly text: string;
  /** The answer as JSON; an empty object when it is none. */
  readonly body: Json;
}

function reply(status: number, headers: HeaderValues, text: string): Reply {
  let body: Json = {};
  try {
    body = JSON.parse(text) as Json;
  } catch {
    // Not JSON: the text speaks for itself.
  }
  return { status, headers, text, body };
}

export interface HttpOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer | undefined;
  /** HTTPS: certificate and key of the client. */
  readonly cert?: string;
  readonly key?: string;
}

/** One HTTP/1.1 request on a connection of its own. `base`: http://host:port or https://host:port. */
export function http1(base: string, path: string, options: HttpOptions = {}): Promise<Reply> {
  const secure = base.startsWith("https:");
  return new Promise((resolve, reject) => {
    const request = (secure ? httpsRequest : httpRequest)(
      base + path,
      {
        method: options.method ?? "GET",
        headers: options.headers ?? {},
        agent: false,
        ...(secure ? { rejectUnauthorized: false, cert: options.cert, key: options.key } : {}),
      },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve(reply(response.statusCode ?? 0, response.headers, text)));
      },
    );
    request.on("error", reject);
    request.end(options.body);
  });
}

/** One HTTP/2 request on a connection of its own. */
export function http2(base: string, path: string, options: HttpOptions = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const session = http2Connect(base, { rejectUnauthorized: false });
    session.on("error", reject);
    const stream = session.request({
      ":method": options.method ?? "GET",
      ":path": path,
      ...options.headers,
    });
    let status = 0;
    let headers: HeaderValues = {};
    let text = "";
    stream.on("error", reject);
    stream.on("response", (received) => {
      status = received[":status"] ?? 0;
      headers = received as HeaderValues;
    });
    stream.setEncoding("utf8").on("data", (part: string) => (text += part));
    stream.on("end", () => {
      session.close();
      resolve(reply(status, headers, text));
    });
    stream.end(options.body);
  });
}

const JSON_HEADERS = { "content-type": "application/json" };

/** POST of a JSON value, or of a text as it is. */
export function post(
  base: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return http1(base, path, {
    method: "POST",
    headers: { ...JSON_HEADERS, ...headers },
    body: text,
  });
}

// gRPC ---------------------------------------------------------------------------------------------------------------

const FILES = {
  Sequencer: "sequences",
  Locker: "locks",
  KeyValuer: "keyvalues",
  Cluster: "cluster",
  Backups: "backups",
  Watcher: "watch",
} as const;
export type ServiceName = keyof typeof FILES;

const loaded = new Map<ServiceName, protobuf.Root>();

function protoOf(service: ServiceName): protobuf.Root {
  let found = loaded.get(service);
  if (found === undefined) {
    found = new protobuf.Root();
    found.resolvePath = (_origin, target) => join(root, "proto", target.replace(/^.*\//, ""));
    found.loadSync(`${FILES[service]}.proto`, { keepCase: true });
    found.resolveAll();
    loaded.set(service, found);
  }
  return found;
}

export interface GrpcReply {
  readonly code: number;
  readonly details: string;
  readonly fields: Json;
  readonly trailers: grpc.Metadata;
}

export interface GrpcStream {
  send(fields: Json): void;
  half(): void;
  /** What has come so far, in order. */
  readonly received: Json[];
  readonly headers: Promise<grpc.Metadata>;
  readonly ended: Promise<number>;
  /** Resolves when `count` messages are there. */
  arrived(count: number): Promise<void>;
  cancel(): void;
}

function metadataOf(entries: Readonly<Record<string, string>>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(entries)) metadata.set(name, value);
  return metadata;
}

/** A channel; methods are found by name in the .proto files. */
export class GrpcCaller {
  private readonly client: grpc.Client;

  constructor(address: string, credentials = grpc.credentials.createInsecure()) {
    this.client = new grpc.Client(address, credentials, {
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
    });
  }

  private method(service: ServiceName, name: string) {
    const proto = protoOf(service);
    const method = proto.lookupService(service).methods[name];
    if (method === undefined) throw new Error(`${service} has no method ${name}`);
    const input = proto.lookupType(method.requestType);
    const output = proto.lookupType(method.responseType);
    return {
      path: `/${service}/${name}`,
      encode: (fields: Json | Buffer): Buffer =>
        Buffer.isBuffer(fields)
          ? fields
          : Buffer.from(input.encode(input.fromObject(fields)).finish()),
      decode: (bytes: Buffer): Json =>
        output.toObject(output.decode(bytes), { longs: String, defaults: true, oneofs: true }),
    };
  }

  /** One unary call; `fields` may be the bytes of the message. `withinMs`: for so long an answer is waited for. */
  call(
    service: ServiceName,
    name: string,
    fields: Json | Buffer,
    metadata: Readonly<Record<string, string>> = {},
    withinMs = 20_000,
  ): Promise<GrpcReply> {
    const method = this.method(service, name);
    return new Promise((resolve) => {
      let answer: GrpcReply = { code: 0, details: "", fields: {}, trailers: new grpc.Metadata() };
      const call = this.client.makeUnaryRequest(
        method.path,
        method.encode,
        method.decode,
        fields,
        metadataOf(metadata),
        { deadline: Date.now() + withinMs },
        (_error, value) => (answer = { ...answer, fields: value ?? {} }),
      );
      call.on("status", ({ code, details, metadata: trailers }) => {
        setImmediate(() => resolve({ ...answer, code, details, trailers }));
      });
    });
  }

  /** A call with bytes both ways, of any path. */
  raw(
    path: string,
    bytes: Buffer,
  ): Promise<{ readonly code: number; readonly bytes: Buffer | null }> {
    const same = (value: Buffer): Buffer => value;
    return new Promise((resolve) => {
      const deadline = { deadline: Date.now() + 20_000 };
      this.client.makeUnaryRequest(path, same, same, bytes, deadline, (error, value) => {
        resolve({ code: error?.code ?? 0, bytes: value ?? null });
      });
    });
  }

  /** A bidirectional or server stream. */
  stream(
    service: ServiceName,
    name: string,
    metadata: Readonly<Record<string, string>> = {},
  ): GrpcStream {
    const method = this.method(service, name);
    const call = this.client.makeBidiStreamRequest(
      method.path,
      method.encode,
      method.decode,
      metadataOf(metadata),
      { deadline: Date.now() + 20_000 },
    );
    const received: Json[] = [];
    let wake: (() => void) | null = null;
    let over = false;
    call.on("data", (fields: Json) => {
      received.push(fields);
      wake?.();
    });
    call.on("error", () => undefined);
    const ended = new Promise<number>((resolve) => {
      call.on("status", (status) => {
        over = true;
        wake?.();
        resolve(status.code);
      });
    });
    return {
      received,
      send: (fields) => void call.write(fields),
      half: () => call.end(),
      headers: new Promise((resolve) => call.on("metadata", resolve)),
      ended,
      cancel: () => call.cancel(),
      async arrived(count) {
        while (received.length < count && !over) await new Promise<void>((next) => (wake = next));
        wake = null;
      },
    };
  }

  close(): void {
    this.client.close();
  }
}
