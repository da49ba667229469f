/**
 * One batch stream: items out in frames, answers in by their request id.
 *
 * Owns the calls in flight on its stream. Invariants: 1. Request ids are distinct while in flight.
 * 2. At most IN_FLIGHT_MAX items are in flight, at most 256 items and 1 MiB in a frame. 3. Frames
 * are sent only after the server offered them. 4. When the stream ends, every call in flight fails
 * with an unknown outcome; certain is only the verdict about the single one in flight, and that of
 * a server without such streams.
 */
import { status, type Metadata, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { FRAME_ITEMS_MAX, FRAME_MAX_BYTES, LOCK_STREAM_WAITS_MAX } from "../../base/limits.js";
import type { ProtoReader } from "../../proto/codec.js";
import type { Try } from "../call/try.js";
import type { ClientPlatform, Timer } from "../time/platform.js";
import {
  goneWith,
  localFailure,
  ServerError,
  SvcError,
  UnavailableError,
} from "../values/errors.js";
import { FrameWriter } from "./frame-writer.js";
import type { GrpcChannel } from "./grpc-channel.js";
import { httpStatus, statusError } from "./grpc-status.js";
import { ItemReader } from "./item-reader.js";
import type { HintReader, RouteHint } from "../call/route-hint.js";

/** What a server takes per stream by default. */
const IN_FLIGHT_MAX = 1024;
/** A server that sends no headers is spoken to item by item after this (ms). */
const HEADERS_WAIT_MS = 250;
const FRAMES_HEADER = "svc-batch-frames";
/** The server lets items wait, counts them apart, and takes cancel items. */
const WAIT_HEADER = "svc-lock-wait";
const CANCEL_TYPE = 5;
const CANCEL_FIELD = 8;
/** Cancel items have ids of their own: nobody waits for their answers. */
const CANCEL_ID = 2 ** 30;

export interface StreamEvents {
  /** There is room again, or the stream stands now. */
  onRoom(): void;
  onOpenFailed(failure: SvcError): void;
  /** The server has no such stream; `attempts` were refused by it. */
  onUnimplemented(attempts: readonly Try[]): void;
  /** For an item that is too large for the stream. */
  sendAlone(attempt: Try): void;
}

/** With these a server ends a stream over one of its items, before it did anything about it. */
const VERDICTS: ReadonlySet<number> = new Set([
  status.INVALID_ARGUMENT,
  status.PERMISSION_DENIED,
  status.RESOURCE_EXHAUSTED,
]);

type Duplex = ClientDuplexStream<Buffer, Buffer>;
type State = "closed" | "connecting" | "opening" | "open" | "ended";
const identity = (bytes: Buffer): Buffer => bytes;

export class BatchStream {
  private readonly platform: ClientPlatform;
  private readonly path: string;
  private readonly channel: GrpcChannel;
  private readonly events: StreamEvents;
  private readonly hints: HintReader | null;
  private state: State = "closed";
  private call: Duplex | null = null;
  /** The connection of the channel that it was made on. */
  private connection = 0;
  private frames = false;
  /** The server sent something on this stream: it has such streams. */
  private heard = false;
  private slots: (Try | null)[] = [];
  private free: number[] = [];
  private inFlight = 0;
  /** Items that may wait, apart from those in flight, where the server counts them so. */
  private waiting = 0;
  private knowsWaiting = false;
  private writer = new FrameWriter();
  private readonly items = new ItemReader();
  private readonly deliverItem = (reader: ProtoReader): void => this.deliver(reader);
  /** When the call in each slot was sent. */
  private sentMs: number[] = [];
  private headersTimer: Timer | null = null;

  /** `hints`: reads the hints of answers; null = they are not wanted. */
  constructor(path: string, channel: GrpcChannel, hints: HintReader | null, events: StreamEvents) {
    this.platform = channel.platform;
    this.path = path;
    this.hints = hints;
    this.channel = channel;
    this.events = events;
    channel.whenSilent(() => this.silent());
  }

  /** How many items it takes now. */
  get room(): number {
    return this.state === "open" ? IN_FLIGHT_MAX - this.inFlight : 0;
  }

  /** How many of those that may wait at the server. */
  get waitRoom(): number {
    if (!this.knowsWaiting) return this.room;
    return this.state === "open" ? LOCK_STREAM_WAITS_MAX - this.waiting : 0;
  }

  /** True when it stands or is being made. */
  get standing(): boolean {
    return this.state !== "closed" && this.state !== "ended";
  }

  /** True when it takes items, or will once some of its own are answered. */
  get isOpen(): boolean {
    return this.state === "open";
  }

  /** Makes the stream unless it stands. */
  open(): void {
    if (this.state !== "closed") return;
    this.state = "connecting";
    this.channel.whenReady((failure) => {
      if (this.state !== "connecting") return;
      if (failure === null) return this.begin();
      this.state = "closed";
      this.events.onOpenFailed(failure);
    });
  }

  private begin(): void {
    this.channel.withMetadata((metadata, failure) => {
      if (this.state !== "connecting") return;
      if (metadata !== null) return this.beginWith(metadata);
      this.state = "closed";
      this.events.onOpenFailed(failure ?? localFailure(null));
    });
  }

  private beginWith(metadata: Metadata): void {
    this.state = "opening";
    this.frames = false;
    this.knowsWaiting = false;
    this.heard = false;
    const client = this.channel.open();
    this.connection = this.channel.connection;
    const call = client.makeBidiStreamRequest(this.path, identity, identity, metadata);
    this.call = call;
    call.on("metadata", (headers: Metadata) => {
      if (this.call !== call) return;
      this.frames = headers.get(FRAMES_HEADER)[0] === "1";
      this.knowsWaiting = headers.get(WAIT_HEADER)[0] === "1";
      this.heard = true;
      this.opened();
    });
    call.on("data", (message: Buffer) => {
      if (this.call === call) this.take(message);
    });
    call.on("status", (end: StatusObject) => {
      if (this.call === call) this.lost(end.code, end.details);
    });
    // The status event tells the same and comes for every end.
    call.on("error", () => undefined);
    this.headersTimer = this.platform.after(HEADERS_WAIT_MS, () => {
      if (this.call === call && this.state === "opening") this.opened();
    });
  }

  private opened(): void {
    this.headersTimer?.cancel();
    this.headersTimer = null;
    this.state = "open";
    this.channel.alive(this.connection);
    this.events.onRoom();
  }

  /** Sends calls of `waiting` from `from` on, one frame at most. Returns the first not taken. */
  send(waiting: readonly Try[], from: number): number {
    const { writer } = this;
    const nowMs = this.platform.nowMs();
    let at = from;
    for (; at < waiting.length; at++) {
      if (writer.items === FRAME_ITEMS_MAX) break;
      const attempt = waiting[at] as Try;
      if (attempt.ended) continue;
      const waits = this.isCountedApart(attempt);
      if (waits ? this.waiting === LOCK_STREAM_WAITS_MAX : this.inFlight === IN_FLIGHT_MAX) break;
      const slot = this.free.at(-1) ?? this.slots.length;
      let sizeBytes: number;
      try {
        sizeBytes = writer.add(slot + 1, attempt.operation, attempt.request);
      } catch (error) {
        attempt.failed(localFailure(error));
        continue;
      }
      if (writer.sizeBytes > FRAME_MAX_BYTES && (sizeBytes > FRAME_MAX_BYTES || writer.items > 1)) {
        writer.dropLast();
        if (sizeBytes <= FRAME_MAX_BYTES) break;
        this.events.sendAlone(attempt);
        continue;
      }
      attempt.left = true;
      this.free.pop();
      this.slots[slot] = attempt;
      this.sentMs[slot] = nowMs;
      if (this.inFlight + this.waiting === 0) this.channel.watch.began();
      if (waits) {
        this.waiting += 1;
        attempt.cancelWait = (): void => this.cancelWait(attempt, slot);
      } else this.inFlight += 1;
      if (!this.frames) this.write(writer.takeItem());
    }
    if (this.frames && writer.items > 0) this.write(writer.takeFrame());
    return at;
  }

  private isCountedApart(attempt: Try): boolean {
    return this.knowsWaiting && attempt.operation.waits?.(attempt.request) === true;
  }

  /** Has the server end the wait of the item in `slot`; its answer comes as any other. */
  private cancelWait(attempt: Try, slot: number): void {
    if (this.state !== "open" || this.slots[slot] !== attempt) return;
    const { writer } = this;
    writer.addRaw(CANCEL_ID + slot, CANCEL_TYPE, CANCEL_FIELD, (bytes) => {
      bytes.uint32(8).int32(slot + 1);
    });
    this.write(this.frames ? writer.takeFrame() : writer.takeItem());
  }

  private write(bytes: Buffer): void {
    this.call?.write(bytes);
  }

  private take(message: Buffer): void {
    this.heard = true;
    if (this.state === "opening") this.opened();
    this.channel.alive(this.connection);
    const wasFull = this.room === 0 || this.waitRoom === 0;
    try {
      this.items.read(message, this.deliverItem);
    } catch (error) {
      this.fail(new ServerError("a message cannot be read", { cause: error }, "protocol"));
      return;
    }
    if (wasFull) this.events.onRoom();
  }

  /** Gives the scanned item to the call that waits for it. */
  private deliver(reader: ProtoReader): void {
    const { items } = this;
    const slot = items.requestId - 1;
    const attempt = this.slots[slot];
    if (attempt === undefined || attempt === null) return;
    this.slots[slot] = null;
    this.free.push(slot);
    if (this.isCountedApart(attempt)) this.waiting -= 1;
    else this.inFlight -= 1;
    if (this.inFlight + this.waiting === 0) this.channel.watch.ended();
    if (attempt.ended) return;
    if (items.payloadField === 0) {
      attempt.failed(new SvcError("unimplemented", "the server does not know this item"));
      return;
    }
    reader.pos = items.payloadStart;
    const whole = reader.len;
    const { route } = attempt.operation;
    let answer: unknown;
    let hint: RouteHint | null = null;
    try {
      if (this.hints !== null && route !== undefined) {
        hint = this.hints.find(reader, items.payloadEnd, route.field);
        reader.pos = items.payloadStart;
      }
      answer = attempt.operation.fromGrpc(reader, items.payloadEnd - items.payloadStart);
    } catch (error) {
      reader.len = whole;
      attempt.failed(new ServerError("the answer cannot be read", { cause: error }, "protocol"));
      return;
    }
    attempt.answered(answer, hint);
  }

  /** The stream ended by itself. */
  private lost(code: number, details: string): void {
    const opening = this.state === "opening";
    // Counted with those for whom nobody waits any more: the server still had them.
    const alone = this.inFlight + this.waiting === 1;
    const attempts = this.reset("closed");
    const isMissing = code === status.UNIMPLEMENTED && httpStatus(details) === null;
    if (isMissing && !this.heard) return this.events.onUnimplemented(attempts);
    const failure = statusError(code, details);
    if (failure instanceof UnavailableError || failure instanceof ServerError) {
      for (const attempt of attempts) attempt.failed(failure);
    } else {
      this.refused(attempts, alone && VERDICTS.has(code), failure);
    }
    if (opening) this.events.onOpenFailed(failure);
    else this.events.onRoom();
  }

  /**
   * The server ended the stream over one item. Alone in flight it `isVerdict` about that one; among
   * several any may have been done, and each goes on outside the streams to its own verdict.
   */
  private refused(attempts: readonly Try[], isVerdict: boolean, failure: SvcError): void {
    for (const attempt of attempts) {
      if (isVerdict) {
        attempt.failed(failure);
        continue;
      }
      attempt.alone = true;
      const message = `the stream ended: ${failure.message}`;
      const facts = { outcome: "unknown", cause: failure } as const;
      attempt.failed(new UnavailableError("connection-lost", message, facts));
    }
  }

  /** Gives the stream up from this side. */
  private fail(failure: SvcError): void {
    const { call } = this;
    const attempts = this.reset("closed");
    call?.cancel();
    for (const attempt of attempts) attempt.failed(failure);
    this.events.onRoom();
  }

  /** A fault of this side while it was written to: what is in flight may have left. */
  broken(cause: unknown): void {
    this.writer = new FrameWriter();
    if (this.standing) this.fail(new ServerError("the stream was given up", { cause }, "local"));
  }

  /** Forgets the stream; returns the calls that were in flight. */
  private reset(state: State): Try[] {
    this.headersTimer?.cancel();
    this.headersTimer = null;
    const attempts = this.slots.filter((one): one is Try => one !== null && !one.ended);
    this.state = state;
    this.call = null;
    this.slots = [];
    this.free = [];
    if (this.inFlight + this.waiting > 0) this.channel.watch.ended();
    this.inFlight = 0;
    this.waiting = 0;
    return attempts;
  }

  /**
   * A try here got no answer in its time: the connection is given up when nothing came on it since
   * that try was sent. Another stream may have given it up already, for a newer one.
   */
  suspect(attempt: Try): void {
    const slot = this.slots.indexOf(attempt);
    if (slot < 0) return;
    if (this.connection === this.channel.connection) {
      if (this.channel.aliveSince(this.sentMs[slot] as number)) return;
      this.channel.renew();
    }
    this.silent();
  }

  /** The connection was given up because nothing came on it. */
  private silent(): void {
    if (this.state !== "opening" && this.state !== "open") return;
    const why = "nothing came on this connection in time";
    this.fail(new UnavailableError("connection-lost", why, { outcome: "unknown" }));
  }

  /** For good: what is in flight goes elsewhere. */
  close(): void {
    const { call } = this;
    const attempts = this.reset("ended");
    call?.cancel();
    for (const attempt of attempts) attempt.failed(goneWith(attempt));
  }
}
