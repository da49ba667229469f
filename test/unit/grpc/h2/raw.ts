/**
 * A client that speaks HTTP/2 frame by frame, right or wrong, and keeps what comes back.
 *
 * Owns its socket.
 */
import { connect, type Socket } from "node:net";
import type { Test } from "tap";
import { Flag, Frame, PREFACE } from "../../../../src/grpc/h2/constants.js";
import type { Field } from "../../../../src/grpc/h2/fields.js";
import { HpackDecoder } from "../../../../src/grpc/h2/hpack.js";

export interface RawFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A length with a prefix of seven bits. */
function length(size: number): Buffer {
  const bytes = [Math.min(size, 127)];
  if (size >= 127) {
    let rest = size - 127;
    for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
    bytes.push(rest);
  }
  return Buffer.from(bytes);
}

/** A header block of literals; `first` says whether they enter the table (0x40) or not (0). */
export function block(fields: readonly (readonly [string, string])[], first = 0): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of fields) {
    parts.push(Buffer.from([first]), length(name.length), Buffer.from(name, "latin1"));
    parts.push(length(value.length), Buffer.from(value, "latin1"));
  }
  return Buffer.concat(parts);
}

export const FIELDS: readonly (readonly [string, string])[] = [
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/Locker/GetLock"],
  [":authority", "localhost"],
  ["content-type", "application/grpc"],
  ["te", "trailers"],
];

/** The fields of a call, some of them otherwise (null: left out) or more. */
export function fieldsWith(changes: Readonly<Record<string, string | null>>): [string, string][] {
  const kept = FIELDS.filter(([name]) => !(name in changes));
  const changed = Object.entries(changes).filter(([, value]) => value !== null);
  const pseudo = changed.filter(([name]) => name.startsWith(":"));
  const regular = changed.filter(([name]) => !name.startsWith(":"));
  return [...pseudo, ...kept, ...regular].map(([name, value]) => [name, String(value)]);
}

/** An empty message with its prefix. */
export const MESSAGE = Buffer.alloc(5);
const ALL = Flag.endHeaders | Flag.endStream;

/** A whole call with an empty message. */
export function wholeCall(stream: number, fields = FIELDS): Buffer {
  const head = frame(Frame.headers, Flag.endHeaders, stream, block(fields));
  return Buffer.concat([head, frame(Frame.data, Flag.endStream, stream, MESSAGE)]);
}

export class RawClient {
  readonly frames: RawFrame[] = [];
  isClosed = false;
  private readonly decoder = new HpackDecoder();
  private readonly headers = new Map<RawFrame, Field[]>();
  private rest: Buffer = Buffer.alloc(0);
  private waiters: (() => void)[] = [];

  private constructor(readonly socket: Socket) {
    socket.on("data", (chunk: Buffer) => this.take(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
      this.look();
    });
  }

  /** Connects; `greets`: says the preface and its settings at once. */
  static async open(t: Test, port: number, greets = true): Promise<RawClient> {
    const socket = connect(port, "127.0.0.1");
    const client = new RawClient(socket);
    t.teardown(() => socket.destroy());
    await new Promise((resolve) => socket.once("connect", resolve));
    if (greets) client.send(PREFACE, frame(Frame.settings, 0, 0));
    return client;
  }

  send(...parts: readonly Buffer[]): this {
    this.socket.write(Buffer.concat(parts));
    return this;
  }

  private take(chunk: Buffer): void {
    this.rest = Buffer.concat([this.rest, chunk]);
    while (this.rest.length >= 9) {
      const end = 9 + this.rest.readUIntBE(0, 3);
      if (this.rest.length < end) break;
      const found = {
        type: this.rest[3] ?? 0,
        flags: this.rest[4] ?? 0,
        stream: this.rest.readUInt32BE(5),
        payload: Buffer.from(this.rest.subarray(9, end)),
      };
      this.frames.push(found);
      if (found.type === Frame.headers) this.decode(found);
      this.rest = this.rest.subarray(end);
    }
    this.look();
  }

  private decode(found: RawFrame): void {
    const fields: Field[] = [];
    const { payload } = found;
    const sink = { take: (field: Field) => void fields.push(field) };
    const isBlock = this.decoder.decode(payload, 0, payload.length, sink);
    if (!isBlock) throw new Error("the server's header block is malformed");
    this.headers.set(found, fields);
  }

  private look(): void {
    const { waiters } = this;
    this.waiters = [];
    for (const waiter of waiters) waiter();
  }

  /** Resolves with what `pick` finds; rejects when the connection closes before. */
  async until<T>(pick: () => T | null | undefined): Promise<T> {
    for (;;) {
      const found = pick();
      if (found !== null && found !== undefined) return found;
      if (this.isClosed) throw new Error("the connection closed");
      await new Promise<void>((resolve) => this.waiters.push(resolve));
    }
  }

  of(type: number, stream: number): RawFrame[] {
    return this.frames.filter((one) => one.type === type && one.stream === stream);
  }

  /** The error code of the GOAWAY, after the connection closed. */
  async goaway(): Promise<number> {
    const found = await this.until(() => this.of(Frame.goaway, 0)[0]);
    const code = found.payload.readUInt32BE(4);
    if (code !== 0) await this.closed();
    return code;
  }

  async closed(): Promise<void> {
    while (!this.isClosed) await new Promise<void>((resolve) => this.waiters.push(resolve));
  }

  /** The code that the stream is reset with. */
  async reset(stream: number): Promise<number> {
    const found = await this.until(() => this.of(Frame.reset, stream)[0]);
    return found.payload.readUInt32BE(0);
  }

  /** All header fields of the stream, when it ended. */
  async ended(stream: number): Promise<Map<string, string>> {
    await this.until(() => this.frames.find((one) => one.stream === stream && isEnd(one)));
    const fields = this.of(Frame.headers, stream).flatMap((one) => this.headers.get(one) ?? []);
    return new Map(fields.map(({ name, value }) => [name, value]));
  }

  /** Resolves when the server has read everything that was sent: its answer to a ping came. */
  async settled(): Promise<void> {
    const before = this.of(Frame.ping, 0).length;
    this.send(frame(Frame.ping, 0, 0, Buffer.alloc(8)));
    await this.until(() => this.of(Frame.ping, 0)[before]);
  }

  /** The bytes of all data of a stream. */
  dataOf(stream: number): Buffer {
    return Buffer.concat(this.of(Frame.data, stream).map(({ payload }) => payload));
  }
}

function isEnd({ type, flags }: RawFrame): boolean {
  return (type === Frame.headers || type === Frame.data) && (flags & Flag.endStream) !== 0;
}

export { ALL };
