/**
 * One endpoint over gRPC: several connections, a batcher per stream kind, unary calls beside them.
 *
 * Owns its channels. Invariants: 1. What has a place on a batch stream travels there, unless the
 * server has no such stream or the item is too large for one. 2. A unary call leaves only on a
 * standing connection. 3. An answer in pieces is given up when it has more bytes than its operation
 * says.
 */
import type { Client, Metadata, ServiceError } from "@grpc/grpc-js";
import { ProtoWriter, protoReader } from "../../proto/codec.js";
import { Batcher } from "./batcher.js";
import type { Try } from "../call/try.js";
import { goneWith, localFailure, ServerError } from "../values/errors.js";
import { GrpcChannel } from "./grpc-channel.js";
import { statusError } from "./grpc-status.js";
import { WatchCall } from "./watch-call.js";
import { HintReader, type RouteHint } from "../call/route-hint.js";
import type { TransportNode } from "../call/try.js";
import type { WatchLink, WatchListener } from "../call/watch-link.js";
import type { StreamKind } from "../call/operation.js";
import type { ClientPlatform } from "../time/platform.js";
import type { ClientSettings, Endpoint } from "../values/options.js";

const identity = (bytes: Buffer): Buffer => bytes;
/** The status of gRPC. */
const INTERNAL = 13;

/** A call of the package. */
interface Cancellable {
  cancel(): void;
}
type Done = (error: Partial<ServiceError> | null, answer: Buffer | undefined) => void;

/** A single call under way. */
interface UnaryCall {
  readonly attempt: Try;
  readonly channel: GrpcChannel;
}

export class GrpcNode implements TransportNode {
  private readonly platform: ClientPlatform;
  private readonly channels: GrpcChannel[];
  private readonly batchers = new Map<StreamKind, Batcher>();
  private readonly calls = new Map<Cancellable, UnaryCall>();
  private readonly watches = new Set<WatchCall>();
  private readonly hints: HintReader | null;
  /** Connections that are being made although nothing waits for them. */
  private warming = 0;
  private turn = 0;
  private closed = false;

  constructor(
    platform: ClientPlatform,
    endpoint: Endpoint,
    settings: ClientSettings,
    onUnreachable: () => void,
  ) {
    this.platform = platform;
    this.hints = settings.followRoutes ? new HintReader() : null;
    this.channels = Array.from(
      { length: settings.channels },
      () => new GrpcChannel(platform, endpoint, settings, onUnreachable),
    );
    for (const channel of this.channels) channel.whenSilent(() => this.silent(channel));
  }

  get ready(): boolean {
    return !this.closed && this.channels.some((channel) => channel.ready);
  }

  warm(): void {
    if (this.closed || this.warming > 0) return;
    this.warming = this.channels.length;
    for (const channel of this.channels) channel.whenReady(() => void (this.warming -= 1));
  }

  send(attempt: Try): void {
    const place = attempt.operation.stream;
    if (place === null || attempt.alone) return this.sendUnary(attempt);
    let batcher = this.batchers.get(place.kind);
    if (batcher === undefined) {
      const { platform, channels, hints } = this;
      batcher = new Batcher(platform, place.kind, channels, hints, (one) => this.sendUnary(one));
      this.batchers.set(place.kind, batcher);
    }
    batcher.push(attempt);
  }

  watch(first: Uint8Array, listener: WatchListener): WatchLink {
    const channel = this.channels[this.turn++ % this.channels.length] as GrpcChannel;
    const watch = new WatchCall(channel, first, listener, (one) => this.watches.delete(one));
    this.watches.add(watch);
    return watch;
  }

  private sendUnary(attempt: Try): void {
    const channel = this.channels[this.turn++ % this.channels.length] as GrpcChannel;
    channel.whenReady((failure) => {
      if (attempt.ended) return;
      if (failure !== null) attempt.failed(failure);
      else if (this.closed) attempt.failed(goneWith(attempt));
      else this.sendNow(channel, attempt);
    });
  }

  private sendNow(channel: GrpcChannel, attempt: Try): void {
    const writer = new ProtoWriter(256);
    try {
      attempt.operation.write(attempt.request, writer);
    } catch (error) {
      return attempt.failed(localFailure(error));
    }
    channel.withMetadata((metadata, failure) => {
      if (attempt.ended) return;
      if (this.closed) attempt.failed(goneWith(attempt));
      else if (metadata === null) attempt.failed(failure ?? localFailure(null));
      else this.callNow(channel, attempt, writer.view(0), metadata);
    });
  }

  private callNow(channel: GrpcChannel, attempt: Try, bytes: Buffer, metadata: Metadata): void {
    attempt.left = true;
    const client = channel.open();
    const { connection } = channel;
    const done: Done = (error, answer) => {
      if (this.calls.delete(call)) channel.watch.ended();
      if (error === null) channel.alive(connection);
      if (error !== null || answer === undefined) {
        const { code = 2, details = "no answer", metadata: trailers } = error ?? {};
        attempt.failed(statusError(code, details, trailers));
      } else {
        take(attempt, answer, this.hints);
      }
    };
    const { path, piecesMaxBytes } = attempt.operation;
    const call: Cancellable =
      piecesMaxBytes === undefined
        ? client.makeUnaryRequest(path, identity, identity, bytes, metadata, {}, done)
        : inPieces(client, path, bytes, metadata, piecesMaxBytes, done);
    this.calls.set(call, { attempt, channel });
    channel.watch.began();
    attempt.abandon = (): void => call.cancel();
    attempt.cancelWait = attempt.abandon;
  }

  /** Ends the calls on a connection that was given up. */
  private silent(channel: GrpcChannel): void {
    for (const watch of [...this.watches]) if (watch.isOn(channel)) watch.silent();
    for (const [call, one] of this.calls) {
      if (one.channel !== channel) continue;
      one.attempt.failed(goneWith(one.attempt));
      call.cancel();
    }
  }

  suspect(attempt: Try): void {
    for (const batcher of this.batchers.values()) batcher.suspect(attempt);
  }

  close(): Promise<void> {
    this.closed = true;
    for (const batcher of this.batchers.values()) batcher.close();
    for (const [call, { attempt }] of this.calls) {
      attempt.failed(goneWith(attempt));
      call.cancel();
    }
    for (const watch of [...this.watches]) watch.close();
    for (const channel of this.channels) channel.close();
    return Promise.resolve();
  }
}

/** A call whose answer comes in several messages: `done` gets them one behind the other. */
function inPieces(
  client: Client,
  path: string,
  bytes: Buffer,
  metadata: Metadata,
  maxBytes: number,
  done: Done,
): Cancellable {
  const call = client.makeServerStreamRequest(path, identity, identity, bytes, metadata, {});
  const pieces: Buffer[] = [];
  let leftBytes = maxBytes;
  call.on("data", (piece: Buffer) => {
    leftBytes -= piece.length;
    if (leftBytes >= 0) return void pieces.push(piece);
    done({ code: INTERNAL, details: "the answer is too large" }, undefined);
    call.cancel();
  });
  call.on("error", (error) => done(error as ServiceError, undefined));
  // What went wrong is told before.
  call.on("end", () => done(null, Buffer.concat(pieces)));
  return call;
}

/** Reads a whole message as the answer of a try. */
function take(attempt: Try, bytes: Buffer, hints: HintReader | null): void {
  const { operation } = attempt;
  let answer: unknown;
  let hint: RouteHint | null = null;
  try {
    const { route } = operation;
    if (hints !== null && route !== undefined) {
      hint = hints.find(protoReader(bytes), bytes.length, route.field);
    }
    answer = operation.fromGrpc(protoReader(bytes), bytes.length);
  } catch (error) {
    attempt.failed(new ServerError("the answer cannot be read", { cause: error }, "protocol"));
    return;
  }
  attempt.answered(answer, hint);
}
