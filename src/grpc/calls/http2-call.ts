/**
 * A call on a stream of the platform's HTTP/2, as the TLS port has them, which REST shares.
 *
 * Invariants: 1. A call reads no more than its handler wants. 2. Every stream that was taken is
 * answered or reset.
 */
import {
  constants,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { Call, type CallDesk, NOTHING_SPOKEN, type Route } from "../h2/call.js";
import { Status } from "../h2/constants.js";
import { type Failure, failureOf } from "../h2/failure.js";
import { Field, RequestHead } from "../h2/fields.js";
import { percentEncoded } from "../h2/output.js";

const MESSAGE_PREFIX_BYTES = 5;
const HEAD = { ":status": 200, "content-type": "application/grpc+proto" } as const;
/** Header fields that a call is told of. */
const READ = [
  ":method",
  ":path",
  ":scheme",
  "content-type",
  "content-length",
  "grpc-timeout",
  "grpc-encoding",
  "authorization",
  "svc-forwarded",
  "x-request-id",
] as const;

/** What a failure looks like as header fields. */
function failureFields(failure: Failure): Record<string, string | number> {
  return {
    "grpc-status": failure.code,
    "grpc-message": percentEncoded(failure.details),
    ...failure.trailers,
  };
}

/** The head of a request that the platform has decoded. */
function headOf(headers: IncomingHttpHeaders): RequestHead {
  const head = new RequestHead();
  for (const name of READ) {
    const value = headers[name];
    if (typeof value === "string") head.take(new Field(name, value));
  }
  return head;
}

/** Ends a stream that no handler has seen. */
function refuseStream(stream: ServerHttp2Stream, failure: Failure): void {
  stream.on("error", () => undefined);
  if (!stream.destroyed)
    stream.respond({ ...HEAD, ...failureFields(failure) }, { endStream: true });
  stream.resume();
}

/** Begins the call of a stream, or refuses it; null: it was refused. */
export function openHttp2Call(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  desk: CallDesk,
): Http2Call | null {
  const head = headOf(headers);
  const socket = stream.session?.socket;
  const refuse = (route: Route | null, failure: Failure): null => {
    desk.refused(route, failure.code);
    refuseStream(stream, failure);
    return null;
  };
  const route = desk.route(head.path?.value ?? "");
  if (route === null)
    return refuse(null, failureOf(Status.UNIMPLEMENTED, "there is no such method"));
  if (Number.isNaN(head.timeoutMs)) {
    return refuse(route, failureOf(Status.INTERNAL, "grpc-timeout is malformed"));
  }
  const address = socket?.remoteAddress ?? "";
  const judged = desk.gate(route, head, socket, address);
  if ("code" in judged) return refuse(route, judged);
  const peer = `${address}:${socket?.remotePort ?? 0}`;
  const call = new Http2Call(stream, head, route, judged, peer, desk);
  call.begin();
  call.listen();
  return call;
}

export class Http2Call extends Call {
  private hasHead = false;
  private isPaused = false;
  private failure: Failure | null = null;
  /** A stream that is gone names it no more. */
  private readonly session: Http2Session | undefined;

  constructor(
    private readonly stream: ServerHttp2Stream,
    ...rest: ConstructorParameters<typeof Call>
  ) {
    super(...rest);
    this.session = stream.session;
    stream.on("error", () => undefined);
    stream.once("close", () => this.leave());
  }

  /** Begins to read. */
  listen(): void {
    const { stream, intake } = this;
    stream.on("data", (chunk: Buffer) => {
      intake.push(chunk, 0, chunk.length);
      if (intake.isPaused) stream.pause();
    });
    stream.on("end", () => {
      this.hasEnded = true;
      intake.end();
    });
    if (this.isPaused) stream.pause();
  }

  protected get socket(): unknown {
    return this.session?.socket;
  }

  get isLost(): boolean {
    return this.session === undefined || this.session.destroyed;
  }

  /** Answered to its end, although the client has not said its last word. */
  get isAnswered(): boolean {
    return this.stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_LOCAL;
  }

  pause(): void {
    this.isPaused = true;
    this.intake.pause();
    this.stream.pause();
  }

  resume(): void {
    this.isPaused = false;
    this.intake.resume();
    this.moved();
  }

  protected moved(): void {
    if (!this.intake.isPaused) this.stream.resume();
  }

  respond(spoken: readonly string[]): void {
    const { stream } = this;
    if (this.hasHead || stream.destroyed) return;
    this.hasHead = true;
    const fields = Object.fromEntries(spoken.map((name) => [name, "1"]));
    stream.once("wantTrailers", () => {
      const { failure } = this;
      stream.sendTrailers(failure === null ? { "grpc-status": 0 } : failureFields(failure));
    });
    stream.respond({ ...HEAD, ...fields }, { waitForTrailers: true });
  }

  private framed(message: Uint8Array): Buffer {
    const bytes = Buffer.allocUnsafe(message.length + MESSAGE_PREFIX_BYTES);
    bytes[0] = 0;
    bytes.writeUInt32BE(message.length, 1);
    bytes.set(message, MESSAGE_PREFIX_BYTES);
    return bytes;
  }

  send(message: Uint8Array): boolean {
    if (!this.isOpen || this.stream.destroyed) return true;
    this.respond(NOTHING_SPOKEN);
    const { length } = message;
    this.stream.write(this.framed(message), () => this.handler.taken(length));
    return false;
  }

  answer(message: Uint8Array): void {
    if (!this.isOpen) return;
    this.respond(NOTHING_SPOKEN);
    if (!this.stream.destroyed) this.stream.write(this.framed(message));
    this.end();
  }

  end(): void {
    if (!this.isOpen) return;
    this.respond(NOTHING_SPOKEN);
    this.code = Status.OK;
    this.finish();
  }

  fail(failure: Failure): void {
    if (!this.isOpen) return;
    this.code = failure.code;
    if (this.hasHead) this.failure = failure;
    else if (!this.stream.destroyed) {
      const fields = { ...HEAD, ...failureFields(failure) };
      this.stream.respond(fields, { endStream: true });
    }
    this.finish();
  }

  private finish(): void {
    this.isOpen = false;
    if (!this.stream.destroyed) this.stream.end();
    // What still comes is dropped, so that it does not stand in the connection's window.
    this.intake.close();
    this.stream.resume();
  }

  expire(failure: Failure): void {
    this.fail(failure);
  }

  cut(): void {
    this.isOpen = false;
    this.stream.close(constants.NGHTTP2_CANCEL);
  }

  /** Ends it without an error. */
  close(): void {
    this.stream.close(constants.NGHTTP2_NO_ERROR);
  }

  refuseHalfSent(failure: Failure): void {
    if (this.route.drains) return;
    if (this.stream.state.state !== constants.NGHTTP2_STREAM_STATE_OPEN) return;
    if (this.isOpen && !this.hasHead) this.fail(failure);
    this.close();
  }
}
