/**
 * One batch stream: items out in frames, answers in by their request id.
 *
 * Owns the calls in flight on its stream. Invariants: 1. Request ids are distinct while in flight.
 * 2. At most IN_FLIGHT_MAX items are in flight, at most 256 items and 1 MiB in a frame. 3. Frames
 * are sent only after the server offered them. 4. When the stream ends, every call in flight fails
 * with an unknown outcome, unless the server has no such stream.
 */
import { Metadata, status, type ClientDuplexStream, type StatusObject } from "@grpc/grpc-js";
import { FRAME_ITEMS_MAX, FRAME_MAX_BYTES } from "../base/limits.js";
import { protoReader, type ProtoReader } from "../proto/codec.js";
import type { Try } from "./call.js";
import { ServerError, SvcError, UnavailableError } from "./errors.js";
import { FrameWriter } from "./frame-writer.js";
import type { GrpcChannel } from "./grpc-channel.js";
import { localFailure, statusError } from "./grpc-status.js";

/** What a server takes per stream by default. */
const IN_FLIGHT_MAX = 1024;
/** A server that sends no headers is spoken to item by item after this (ms). */
const HEADERS_WAIT_MS = 250;
const FRAMES_HEADER = "svc-batch-frames";
const FRAME_TYPE = 15;
const FRAME_FIELD = 17;
const TYPE_TAG = 8;
const REQUEST_ID_TAG = 16;
const ITEM_TAG = 10;
const DATA = 2;

export interface StreamEvents {
  /** There is room again, or the stream stands now. */
  onRoom(): void;
  onOpenFailed(failure: SvcError): void;
  /** The server has no such stream; `attempts` were refused by it. */
  onUnimplemented(attempts: readonly Try[]): void;
  /** For an item that is too large for the stream. */
  sendAlone(attempt: Try): void;
}

type Duplex = ClientDuplexStream<Buffer, Buffer>;
type State = "closed" | "connecting" | "opening" | "open" | "ended";
const identity = (bytes: Buffer): Buffer => bytes;

export class BatchStream {
  private readonly path: string;
  private readonly channel: GrpcChannel;
  private readonly events: StreamEvents;
  private state: State = "closed";
  private call: Duplex | null = null;
  private frames = false;
  private slots: (Try | null)[] = [];
  private free: number[] = [];
  private inFlight = 0;
  private readonly writer = new FrameWriter();
  private receivedMs = 0;
  private headersTimer: NodeJS.Timeout | null = null;
  private type = 0;
  private requestId = 0;
  private payloadField = 0;
  private payloadStart = 0;
  private payloadEnd = 0;

  constructor(path: string, channel: GrpcChannel, events: StreamEvents) {
    this.path = path;
    this.channel = channel;
    this.events = events;
  }

  /** How many items it takes now. */
  get room(): number {
    return this.state === "open" ? IN_FLIGHT_MAX - this.inFlight : 0;
  }

  /** True when it stands or is being made. */
  get standing(): boolean {
    return this.state !== "closed" && this.state !== "ended";
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
    let metadata: Metadata;
    try {
      metadata = this.channel.metadata();
    } catch (error) {
      this.state = "closed";
      return this.events.onOpenFailed(localFailure(error));
    }
    this.state = "opening";
    this.frames = false;
    const client = this.channel.open();
    const call = client.makeBidiStreamRequest(this.path, identity, identity, metadata);
    this.call = call;
    call.on("metadata", (headers: Metadata) => {
      if (this.call !== call) return;
      this.frames = headers.get(FRAMES_HEADER)[0] === "1";
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
    this.headersTimer = setTimeout(() => {
      if (this.call === call && this.state === "opening") this.opened();
    }, HEADERS_WAIT_MS);
  }

  private opened(): void {
    if (this.headersTimer !== null) clearTimeout(this.headersTimer);
    this.headersTimer = null;
    this.state = "open";
    this.receivedMs = performance.now();
    this.events.onRoom();
  }

  /** Sends calls of `waiting` from `from` on, one frame at most. Returns the first not taken. */
  send(waiting: readonly Try[], from: number): number {
    const { writer } = this;
    let at = from;
    for (; at < waiting.length; at++) {
      if (this.inFlight === IN_FLIGHT_MAX || writer.items === FRAME_ITEMS_MAX) break;
      const attempt = waiting[at] as Try;
      if (attempt.ended) continue;
      const slot = this.free.pop() ?? this.slots.length;
      const sizeBytes = writer.add(slot + 1, attempt.operation, attempt.request);
      if (sizeBytes > FRAME_MAX_BYTES) {
        writer.dropLast();
        this.free.push(slot);
        if (slot === this.slots.length) this.slots.push(null);
        this.events.sendAlone(attempt);
        continue;
      }
      if (writer.sizeBytes > FRAME_MAX_BYTES && writer.items > 1) {
        writer.dropLast();
        this.free.push(slot);
        if (slot === this.slots.length) this.slots.push(null);
        break;
      }
      attempt.left = true;
      this.slots[slot] = attempt;
      this.inFlight += 1;
      if (!this.frames) this.write(writer.takeItem());
    }
    if (this.frames && writer.items > 0) this.write(writer.takeFrame());
    return at;
  }

  private write(bytes: Buffer): void {
    this.call?.write(bytes);
  }

  private take(message: Buffer): void {
    if (this.state === "opening") this.opened();
    this.receivedMs = performance.now();
    const wasFull = this.inFlight === IN_FLIGHT_MAX;
    const reader = protoReader(message);
    try {
      this.readMessage(reader, message.length);
    } catch (error) {
      this.fail(new ServerError("a message cannot be read", { cause: error }, "protocol"));
      return;
    }
    if (wasFull) this.events.onRoom();
  }

  private readMessage(reader: ProtoReader, end: number): void {
    this.scan(reader, end);
    if (this.type !== FRAME_TYPE || this.payloadField !== FRAME_FIELD) {
      this.deliver(reader);
      return;
    }
    const frameEnd = this.payloadEnd;
    reader.pos = this.payloadStart;
    while (reader.pos < frameEnd) {
      const tag = reader.uint32();
      if (tag !== ITEM_TAG) {
        reader.skipType(tag & 7);
        continue;
      }
      const sizeBytes = reader.uint32();
      const itemEnd = reader.pos + sizeBytes;
      this.scan(reader, itemEnd);
      this.deliver(reader);
      reader.pos = itemEnd;
    }
  }

  /** Reads type, request id and place of the payload of one item. */
  private scan(reader: ProtoReader, end: number): void {
    this.type = 0;
    this.requestId = 0;
    this.payloadField = 0;
    while (reader.pos < end) {
      const tag = reader.uint32();
      if (tag === TYPE_TAG) {
        this.type = reader.int32();
      } else if (tag === REQUEST_ID_TAG) {
        this.requestId = reader.int32();
      } else if ((tag & 7) === DATA) {
        const sizeBytes = reader.uint32();
        this.payloadField = tag >>> 3;
        this.payloadStart = reader.pos;
        reader.pos += sizeBytes;
        this.payloadEnd = reader.pos;
      } else {
        reader.skipType(tag & 7);
      }
    }
  }

  /** Gives the scanned item to the call that waits for it. */
  private deliver(reader: ProtoReader): void {
    const slot = this.requestId - 1;
    const attempt = this.slots[slot];
    if (attempt === undefined || attempt === null) return;
    this.slots[slot] = null;
    this.free.push(slot);
    this.inFlight -= 1;
    if (attempt.ended) return;
    if (this.payloadField === 0) {
      attempt.failed(new SvcError("unimplemented", "the server does not know this item"));
      return;
    }
    reader.pos = this.payloadStart;
    const whole = reader.len;
    let answer: unknown;
    try {
      answer = attempt.operation.fromGrpc(reader, this.payloadEnd - this.payloadStart);
    } catch (error) {
      reader.len = whole;
      attempt.failed(new ServerError("the answer cannot be read", { cause: error }, "protocol"));
      return;
    }
    attempt.answered(answer);
  }

  /** The stream ended by itself. */
  private lost(code: number, details: string): void {
    const opening = this.state === "opening";
    const attempts = this.reset("closed");
    if (code === status.UNIMPLEMENTED) return this.events.onUnimplemented(attempts);
    const failure = statusError(code, details);
    for (const attempt of attempts) attempt.failed(failure);
    if (opening) this.events.onOpenFailed(failure);
    else this.events.onRoom();
  }

  /** Gives the stream up from this side. */
  private fail(failure: SvcError): void {
    const { call } = this;
    const attempts = this.reset("closed");
    call?.cancel();
    for (const attempt of attempts) attempt.failed(failure);
    this.events.onRoom();
  }

  /** Forgets the stream; returns the calls that were in flight. */
  private reset(state: State): Try[] {
    if (this.headersTimer !== null) clearTimeout(this.headersTimer);
    this.headersTimer = null;
    const attempts = this.slots.filter((one): one is Try => one !== null && !one.ended);
    this.state = state;
    this.call = null;
    this.slots = [];
    this.free = [];
    this.inFlight = 0;
    return attempts;
  }

  /** A try here got no answer in its time: a connection on which nothing came is given up. */
  suspect(attempt: Try): void {
    if (!this.slots.includes(attempt)) return;
    const silentMs = performance.now() - this.receivedMs;
    if (silentMs < 1) return;
    const why = "nothing came on this connection in time";
    this.channel.renew();
    this.fail(new UnavailableError("connection-lost", why, { outcome: "unknown" }));
  }

  close(): void {
    const { call } = this;
    this.reset("ended");
    call?.cancel();
  }
}
