/**
 * The gRPC front end as a whole: every service on the cleartext port and on the HTTPS port.
 *
 * Owns the transport, the batch streams, the streams of watches and the health watchers. What
 * carries a call is the transport's: on the cleartext port an HTTP/2 of our own, on the HTTPS port
 * the platform's, which REST shares. Invariants: 1. Both ports serve the same services by the same
 * code. 2. After `close` no call of ours is open.
 */
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { BatchStream } from "./batch/batch.js";
import { Gate } from "./calls/gate.js";
import type { BatchStreamKind } from "./calls/method.js";
import { GrpcRuntime, type GrpcServerOptions } from "./calls/runtime.js";
import { Transport } from "./calls/transport.js";
import { adminHandler, dataHandler, type UnaryHandler } from "./calls/unary.js";
import type { Role } from "./h2/access.js";
import type { Call, CallHandler } from "./h2/call.js";
import { adminMethods } from "./services/administration.js";
import { HealthService } from "./services/health.js";
import { KEYVALUER_METHODS, KEYVALUER_STREAM } from "./services/keyvaluer.js";
import { LOCKER_METHODS, LOCKER_SERVER_STREAM, LOCKER_STREAM } from "./services/locker.js";
import { NODE_DEBUG_PATH, streamDebug } from "./services/node-debug.js";
import { RANGE_STREAM_PATH, streamPages } from "./services/range-stream.js";
import { reflect, SERVICE_NAMES } from "./services/reflection.js";
import { WATCH_PATH, WatcherStream } from "./services/watcher.js";
import { SEQUENCER_METHODS, SEQUENCER_STREAM } from "./services/sequencer.js";

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

/** A call of one message. */
function single(
  gate: Gate,
  path: string,
  role: Role | null,
  boundMs: number | null,
  serve: UnaryHandler,
): void {
  gate.add({ path, role, boundMs, drains: false, serve, open: null });
}

function addUnary(gate: Gate, runtime: GrpcRuntime, health: HealthService): void {
  const boundMs = runtime.options.requestTimeoutMs + MARGIN_MS;
  const data = [...SEQUENCER_METHODS, ...LOCKER_METHODS, ...KEYVALUER_METHODS];
  for (const method of data) {
    const waitMs = method.kind === "try-lock" ? runtime.options.lockMaxWaitMs : 0;
    single(gate, method.path, method.role, boundMs + waitMs, dataHandler(runtime, method));
  }
  for (const method of adminMethods(runtime.operations)) {
    single(gate, method.path, method.role, method.boundMs, adminHandler(runtime, method));
  }
  single(gate, "/grpc.health.v1.Health/Check", null, boundMs, health.check);
  if (!runtime.options.noopMethod) return;
  single(gate, NOOP_PATH, "writer", boundMs, (call, bytes) => call.answer(bytes));
}

function addStreams(
  gate: Gate,
  runtime: GrpcRuntime,
  health: HealthService,
  streams: Set<BatchStream | WatcherStream>,
): void {
  const several = (path: string, drains: boolean, open: (call: Call) => CallHandler): void => {
    gate.add({ path, role: "reader", boundMs: null, drains, serve: null, open });
  };
  const kinds = [SEQUENCER_STREAM, LOCKER_STREAM, LOCKER_SERVER_STREAM, KEYVALUER_STREAM];
  for (const kind of kinds) {
    several(kind.path, true, (call) => openBatch(runtime, kind, call, streams));
  }
  several(WATCH_PATH, true, (call) => {
    const stream = new WatcherStream(runtime, call, (closed) => streams.delete(closed));
    streams.add(stream);
    // At once: the client knows that it stands before its first watch does.
    call.respond([]);
    return stream;
  });
  several("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", false, reflect);
  single(gate, RANGE_STREAM_PATH, "reader", null, (call, bytes) => {
    streamPages(runtime, call, bytes);
  });
  single(gate, NODE_DEBUG_PATH, "admin", null, (call, bytes) => {
    streamDebug(runtime, call, bytes);
  });
  single(gate, "/grpc.health.v1.Health/Watch", null, null, health.watch);
}

/** Opens a batch stream: its items are judged against the role that the caller has then. */
function openBatch(
  runtime: GrpcRuntime,
  kind: BatchStreamKind,
  call: Call,
  streams: Set<BatchStream | WatcherStream>,
): CallHandler {
  const stream = new BatchStream(runtime, kind, call, (closed) => streams.delete(closed));
  streams.add(stream);
  // At once, so that the client knows before its first item.
  const spoken: string[] = [];
  if (kind.frames) spoken.push("svc-batch-frames");
  if (kind.cancel !== null) spoken.push("svc-lock-wait");
  call.respond(spoken);
  return stream;
}

/** Makes the front end. Nothing listens yet. */
export function createGrpcServer(options: GrpcServerOptions): GrpcServer {
  const runtime = new GrpcRuntime(options);
  const health = new HealthService(options.operations, SERVICE_NAMES);
  const streams = new Set<BatchStream | WatcherStream>();
  const gate = new Gate(options);
  addUnary(gate, runtime, health);
  addStreams(gate, runtime, health, streams);
  const transport = new Transport(options, gate);
  return {
    listen: (host, port) => transport.listen(host, port),
    handleStream: (stream, headers) => transport.handleStream(stream, headers),
    close: async (graceMs) => {
      health.close();
      for (const stream of [...streams]) stream.drain();
      await transport.close(graceMs);
    },
  };
}
