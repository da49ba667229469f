/**
 * The gRPC front end as a whole: every service on the cleartext port and on the HTTPS port.
 *
 * Owns the transport, the batch streams and the health watchers. Calls run in the engine of the
 * gRPC library; the connections do not: one HTTP/2 server can belong to two owners (REST and gRPC
 * on one TLS port) only if neither of them holds the listener. Invariants: 1. Both ports serve the
 * same services by the same code. 2. After `close` no call of ours is open.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { Metadata, Server } from "@grpc/grpc-js";
import type {
  handleBidiStreamingCall,
  handleServerStreamingCall,
  UntypedHandleCall,
} from "@grpc/grpc-js";
import { assert } from "../base/assert.js";
import { adminMethods } from "./services/administration.js";
import { BatchStream, type BatchCall } from "./batch/batch.js";
import { HealthService } from "./services/health.js";
import { KEYVALUER_METHODS, KEYVALUER_STREAM } from "./services/keyvaluer.js";
import { LOCKER_METHODS, LOCKER_SERVER_STREAM, LOCKER_STREAM } from "./services/locker.js";
import type { BatchStreamKind } from "./calls/method.js";
import { RANGE_STREAM_PATH, streamPages } from "./services/range-stream.js";
import { reflect, SERVICE_NAMES } from "./services/reflection.js";
import { GrpcRuntime, type GrpcServerOptions } from "./calls/runtime.js";
import { SEQUENCER_METHODS, SEQUENCER_STREAM } from "./services/sequencer.js";
import { CALLER_ROLE_HEADER, Transport, type PathRule } from "./calls/transport.js";
import { ADMIN_BOUND_MS, adminHandler, dataHandler } from "./calls/unary.js";

export type { GrpcServerOptions } from "./calls/runtime.js";
export { GRPC_DEFAULTS } from "./calls/runtime.js";

/** What server/ does with the front end. */
export interface GrpcServer {
  /** Opens the cleartext port (0 = any). Resolves with the bound port. */
  listen(host: string, port: number): Promise<number>;
  /**
   * For the owner of the HTTPS port: takes a stream of its HTTP/2 connections when it is a gRPC
   * call (by content type). False: it is not, and was not touched.
   */
  handleStream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): boolean;
  /**
   * Ends the front end: no new connections, open calls get their answers, after `graceMs` the rest
   * is cut.
   */
  close(graceMs: number): Promise<void>;
}

/** Handling time past the operations' own bound after which a unary call is given up (ms). */
const MARGIN_MS = 5000;
const NOOP_PATH = "/Bench/Noop";

type Register = (path: string, kind: string, handler: UntypedHandleCall, rule: PathRule) => void;

const unchanged = (bytes: Buffer): Buffer => bytes;

function registerUnary(register: Register, runtime: GrpcRuntime, health: HealthService): void {
  const boundMs = runtime.options.requestTimeoutMs + MARGIN_MS;
  const data = [...SEQUENCER_METHODS, ...LOCKER_METHODS, ...KEYVALUER_METHODS];
  for (const method of data) {
    const rule = { role: method.role, boundMs, drains: false };
    register(method.path, "unary", dataHandler(runtime, method), rule);
  }
  const { operations } = runtime;
  for (const method of adminMethods(operations)) {
    const rule = { role: method.role, boundMs: ADMIN_BOUND_MS, drains: false };
    register(method.path, "unary", adminHandler(runtime, method), rule);
  }
  register("/grpc.health.v1.Health/Check", "unary", health.check, {
    role: null,
    boundMs,
    drains: false,
  });
  if (!runtime.options.noopMethod) return;
  const noop: UntypedHandleCall = (
    call: { readonly request: Buffer },
    callback: (error: null, bytes: Buffer) => void,
  ) => setImmediate(callback, null, call.request);
  register(NOOP_PATH, "unary", noop, { role: "writer", boundMs, drains: false });
}

function registerStreams(
  register: Register,
  runtime: GrpcRuntime,
  health: HealthService,
  open: Set<BatchStream>,
): void {
  const long = { boundMs: null, drains: false };
  const kinds = [SEQUENCER_STREAM, LOCKER_STREAM, LOCKER_SERVER_STREAM, KEYVALUER_STREAM];
  for (const kind of kinds) {
    const handler: handleBidiStreamingCall<Buffer, Buffer> = (call) =>
      openBatch(runtime, kind, call, open);
    register(kind.path, "bidi", handler, { role: "reader", boundMs: null, drains: true });
  }
  const pages: handleServerStreamingCall<Buffer, Buffer> = (call) => streamPages(runtime, call);
  register(RANGE_STREAM_PATH, "serverStream", pages, { role: "reader", ...long });
  const watch = "/grpc.health.v1.Health/Watch";
  register(watch, "serverStream", health.watch, { role: null, ...long });
  const info = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  register(info, "bidi", reflect, { role: "reader", ...long });
}

/** Opens a batch stream: its items are judged against the role that the caller has then. */
function openBatch(
  runtime: GrpcRuntime,
  kind: BatchStreamKind,
  call: BatchCall,
  open: Set<BatchStream>,
): void {
  const role = call.metadata.get(CALLER_ROLE_HEADER)[0];
  assert(role === "reader" || role === "writer" || role === "admin", "the gate names the role");
  const headers = new Metadata();
  if (kind.frames) headers.set("svc-batch-frames", "1");
  const stream = new BatchStream(runtime, kind, call, role, (closed) => open.delete(closed));
  open.add(stream);
  stream.start(headers);
}

/** The call engine of the library, as a function of a stream and its headers. */
function callEngine(
  server: Server,
): (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void {
  // The library offers its engine only together with a listener or a connection of its own, and
  // neither can be shared with REST on one TLS port. Its stream handler is the one internal name
  // that is used here; the version is pinned exactly, and a missing handler stops the start.
  const handler: unknown = Reflect.get(server, "_streamHandler");
  assert(typeof handler === "function", "the gRPC library has its stream handler");
  return (stream, headers) => {
    Reflect.apply(handler, server, [[], stream, headers]);
  };
}

/** Makes the front end. Nothing listens yet. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const server = new Server({
    "grpc.max_receive_message_length": options.maxReceiveBytes,
    "grpc.max_send_message_length": -1,
    "grpc.enable_channelz": 0,
  });
  const health = new HealthService(options.operations, SERVICE_NAMES);
  const streams = new Set<BatchStream>();
  const rules = new Map<string, PathRule>();
  const transport = new Transport({
    ...options,
    rules,
    handle: callEngine(server),
  });
  const runtime = new GrpcRuntime(options, transport);
  const register: Register = (path, kind, handler, rule) => {
    const added = server.register(path, handler, unchanged, unchanged, kind);
    assert(added, "a path is registered once");
    rules.set(path, rule);
  };
  registerUnary(register, runtime, health);
  registerStreams(register, runtime, health, streams);
  return {
    listen: (host, port) => transport.listen(host, port),
    handleStream: (stream, headers) => transport.handleStream(stream, headers),
    close: async (graceMs) => {
      health.close();
      for (const stream of [...streams]) stream.drain();
      await transport.close(graceMs);
      server.forceShutdown();
    },
  };
}
