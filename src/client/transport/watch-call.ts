/**
 * One watch over gRPC: a stream of its own, so that who does not read it holds up nobody else.
 *
 * Owns its call. Invariants: 1. It ends once, by `lost`, unless its owner closed it. 2. While it is
 * paused little more comes: the transport's window is the bound.
 */
import { status, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import type { WatchLink, WatchListener } from "../call/watch-link.js";
import { goneWith, localFailure, ServerError, type SvcError } from "../values/errors.js";
import type { GrpcChannel } from "./grpc-channel.js";
import { statusError } from "./grpc-status.js";

const PATH = "/Watcher/Watch";
const identity = (bytes: Buffer): Buffer => bytes;

export class WatchCall implements WatchLink {
  private readonly channel: GrpcChannel;
  private readonly listener: WatchListener;
  private readonly onEnd: (call: WatchCall) => void;
  private call: ClientDuplexStream<Buffer, Buffer> | null = null;
  private isOver = false;
  private isPaused = false;

  /** `first`: the message that asks for the watch. */
  constructor(
    channel: GrpcChannel,
    first: Uint8Array,
    listener: WatchListener,
    onEnd: (call: WatchCall) => void,
  ) {
    this.channel = channel;
    this.listener = listener;
    this.onEnd = onEnd;
    channel.whenReady((failure) => {
      if (this.isOver) return;
      if (failure !== null) this.lost(failure);
      else channel.withMetadata((metadata, why) => this.begin(metadata, why, first));
    });
  }

  /** The connection that it is on. */
  isOn(channel: GrpcChannel): boolean {
    return this.channel === channel;
  }

  private begin(
    metadata: Parameters<Parameters<GrpcChannel["withMetadata"]>[0]>[0],
    failure: SvcError | null,
    first: Uint8Array,
  ): void {
    if (this.isOver) return;
    if (metadata === null) return this.lost(failure ?? localFailure(null));
    const { channel } = this;
    const { connection } = channel;
    const call = channel.open().makeBidiStreamRequest(PATH, identity, identity, metadata);
    this.call = call;
    channel.watch.began();
    call.on("metadata", () => channel.alive(connection));
    call.on("data", (bytes: Buffer) => {
      channel.alive(connection);
      if (!this.isOver) this.take(bytes);
    });
    call.on("status", ({ code, details, metadata: trailers }: StatusObject) => {
      const words = code === status.OK ? "the stream has ended" : details;
      this.lost(statusError(code, words, trailers));
    });
    // The status event tells the same and comes for every end.
    call.on("error", () => undefined);
    if (this.isPaused) call.pause();
    call.write(Buffer.from(first));
  }

  private take(bytes: Buffer): void {
    try {
      this.listener.message(bytes);
    } catch (error) {
      this.lost(new ServerError("the message cannot be read", { cause: error }, "protocol"));
    }
  }

  send(message: Uint8Array): void {
    this.call?.write(Buffer.from(message));
  }

  pause(): void {
    this.isPaused = true;
    this.call?.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.call?.resume();
  }

  /** The connection was given up. */
  silent(): void {
    this.lost(goneWith({ left: true }));
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    if (this.call !== null) this.channel.watch.ended();
    this.call?.cancel();
    this.onEnd(this);
  }

  private lost(failure: SvcError): void {
    if (this.isOver) return;
    this.close();
    this.listener.lost(failure);
  }
}
