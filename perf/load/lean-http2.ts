/**
 * A minimal HTTP/2 client for load: just enough of RFC 9113 to speak gRPC to one server, at a
 * fraction of the cost of the platform's client, so that the driver is not what is measured.
 *
 * Owns one socket. Header fields enter the peer's table when they are sent first and are named by
 * their numbers from then on, as every client in use does it; received header blocks are not
 * decoded (the message itself says what came of a call). Invariants: 1. The peer's flow control is
 * obeyed; data waits for its window. 2. Received data is credited back when it is an eighth of its
 * window, as clients in use do it.
 */
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
const Frame = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
} as const;
const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
const HEADER_BYTES = 9;
const WINDOW_BYTES = 16 * 1024 * 1024;
/** Received data that is credited back together. */
const CREDIT_BYTES = WINDOW_BYTES / 8;
const INITIAL_WINDOW_SETTING = 4;

/** What becomes of a stream. */
export interface LeanHandlers {
  /** Payload of DATA frames, in order. */
  onData(stream: number, bytes: Buffer): void;
  /** The server ended the stream. `reset`: by RST_STREAM. */
  onEnd(stream: number, reset: boolean): void;
  onClose(reason: string): void;
}

function literal(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length >= 127) throw new RangeError("header texts of the driver are short");
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

/** Header fields in the order in which they are sent. */
export type HeaderFields = Readonly<Record<string, string>>;

const STATIC_ENTRIES = 61;
/** Of the table that every peer has; fields beyond it would push out others. */
const TABLE_MAX_BYTES = 4096;
const ENTRY_OVERHEAD_BYTES = 32;

/** The header blocks of one connection, and what its peer's table holds of them. */
class HeaderBlocks {
  private readonly inserted = new Map<string, number>();
  private tableBytes = 0;
  private blocks = new Map<HeaderFields, Buffer>();

  /** The block of `fields`; built once for each object. */
  of(fields: HeaderFields): Buffer {
    const known = this.blocks.get(fields);
    if (known !== undefined) return known;
    const before = this.inserted.size;
    const parts = Object.entries(fields).map(([name, value]) => this.field(name, value));
    // What enters the table moves everything in it one place on.
    if (this.inserted.size > before) this.blocks = new Map();
    else this.blocks.set(fields, Buffer.concat(parts));
    return Buffer.concat(parts);
  }

  private field(name: string, value: string): Buffer {
    const key = `${name}: ${value}`;
    const place = this.inserted.get(key);
    if (place !== undefined) {
      return Buffer.from([0x80 | (STATIC_ENTRIES + this.inserted.size - place)]);
    }
    this.inserted.set(key, this.inserted.size);
    this.tableBytes += name.length + value.length + ENTRY_OVERHEAD_BYTES;
    if (this.tableBytes > TABLE_MAX_BYTES) throw new RangeError("the driver's headers are few");
    return Buffer.concat([Buffer.from([0x40]), literal(name), literal(value)]);
  }
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + payload.length);
  bytes.writeUIntBE(payload.length, 0, 3);
  bytes[3] = type;
  bytes[4] = flags;
  bytes.writeUInt32BE(stream, 5);
  payload.copy(bytes, HEADER_BYTES);
  return bytes;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export class LeanConnection {
  private readonly socket: Socket;
  private readonly handlers: LeanHandlers;
  private readonly blocks = new HeaderBlocks();
  private rest: Buffer = Buffer.alloc(0);
  private nextStream = 1;
  private out: Buffer[] = [];
  private creditBytes = 0;
  private readonly unreturned = new Map<number, number>();
  private sendWindow = 65_535;
  private initialWindow = 65_535;
  private readonly windows = new Map<number, number>();
  private waiting: { stream: number; bytes: Buffer }[] = [];

  private constructor(socket: Socket, handlers: LeanHandlers) {
    this.socket = socket;
    this.handlers = handlers;
    const settings = Buffer.alloc(6);
    settings.writeUInt16BE(INITIAL_WINDOW_SETTING, 0);
    settings.writeUInt32BE(WINDOW_BYTES, 2);
    this.out.push(PREFACE, frame(Frame.settings, 0, 0, settings));
    this.out.push(frame(Frame.windowUpdate, 0, 0, uint32(WINDOW_BYTES)));
    this.flush();
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("close", () => handlers.onClose("the connection closed"));
    socket.on("error", (error) => handlers.onClose(error.message));
  }

  /** Opens a connection. `tls`: the certificate is not verified, this is a load driver. */
  static open(
    host: string,
    port: number,
    tls: boolean,
    handlers: LeanHandlers,
  ): Promise<LeanConnection> {
    return new Promise((resolve, reject) => {
      const ready = (): void => {
        socket.removeListener("error", reject);
        socket.setNoDelay(true);
        resolve(new LeanConnection(socket, handlers));
      };
      const socket = tls
        ? connectTls({ host, port, ALPNProtocols: ["h2"], rejectUnauthorized: false }, ready)
        : connect({ host, port }, ready);
      socket.once("error", reject);
    });
  }

  /** Opens a stream; returns its number. Nothing leaves before `flush`. */
  request(fields: HeaderFields): number {
    const stream = this.nextStream;
    this.nextStream += 2;
    this.windows.set(stream, this.initialWindow);
    this.out.push(frame(Frame.headers, END_HEADERS, stream, this.blocks.of(fields)));
    return stream;
  }

  /** A unary call: opens a stream, sends the whole body and ends it. The body must be small. */
  call(fields: HeaderFields, body: Buffer): number {
    const stream = this.nextStream;
    this.nextStream += 2;
    this.sendWindow -= body.length;
    this.out.push(frame(Frame.headers, END_HEADERS, stream, this.blocks.of(fields)));
    this.out.push(frame(Frame.data, END_STREAM, stream, body));
    return stream;
  }

  /** Sends data on a stream, as soon as the windows let it. At most 16 KiB a frame. */
  data(stream: number, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += 16_384) {
      this.waiting.push({ stream, bytes: bytes.subarray(at, at + 16_384) });
    }
    this.sendWaiting();
  }

  /** Half-closes a stream. */
  end(stream: number): void {
    this.out.push(frame(Frame.data, END_STREAM, stream, Buffer.alloc(0)));
    this.flush();
  }

  private sendWaiting(): void {
    let sent = 0;
    for (const { stream, bytes } of this.waiting) {
      const window = this.windows.get(stream) ?? 0;
      if (bytes.length > this.sendWindow || bytes.length > window) break;
      this.sendWindow -= bytes.length;
      this.windows.set(stream, window - bytes.length);
      this.out.push(frame(Frame.data, 0, stream, bytes));
      sent += 1;
    }
    if (sent > 0) this.waiting = this.waiting.slice(sent);
  }

  /** Writes everything that was asked for since the last flush in one write. */
  flush(): void {
    if (this.creditBytes >= CREDIT_BYTES) {
      this.out.push(frame(Frame.windowUpdate, 0, 0, uint32(this.creditBytes)));
      this.creditBytes = 0;
    }
    if (this.out.length === 0) return;
    this.socket.write(this.out.length === 1 ? (this.out[0] ?? PREFACE) : Buffer.concat(this.out));
    this.out = [];
  }

  close(): void {
    this.socket.destroy();
  }

  private receive(chunk: Buffer): void {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    while (bytes.length - at >= HEADER_BYTES) {
      const size = bytes.readUIntBE(at, 3);
      const end = at + HEADER_BYTES + size;
      if (end > bytes.length) break;
      const stream = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
      const payload = bytes.subarray(at + HEADER_BYTES, end);
      this.take(bytes[at + 3] ?? 0, bytes[at + 4] ?? 0, stream, payload);
      at = end;
    }
    this.rest = bytes.subarray(at);
    this.flush();
  }

  private take(type: number, flags: number, stream: number, payload: Buffer): void {
    switch (type) {
      case Frame.data:
        this.credit(stream, payload.length, (flags & END_STREAM) !== 0);
        this.handlers.onData(stream, payload);
        if (flags & END_STREAM) this.ended(stream, false);
        break;
      case Frame.headers:
        if (flags & END_STREAM) this.ended(stream, false);
        break;
      case Frame.reset:
        this.ended(stream, true);
        break;
      case Frame.settings:
        if (!(flags & ACK)) this.settings(payload);
        break;
      case Frame.ping:
        if (!(flags & ACK)) this.out.push(frame(Frame.ping, ACK, 0, payload));
        break;
      case Frame.goaway:
        this.handlers.onClose("the server said goodbye");
        break;
      case Frame.windowUpdate:
        this.widen(stream, payload.readUInt32BE(0) & 0x7fff_ffff);
        break;
    }
  }

  private ended(stream: number, reset: boolean): void {
    this.windows.delete(stream);
    this.unreturned.delete(stream);
    this.handlers.onEnd(stream, reset);
  }

  private credit(stream: number, sizeBytes: number, last: boolean): void {
    this.creditBytes += sizeBytes;
    if (last || !this.windows.has(stream) || sizeBytes === 0) return;
    const unreturned = (this.unreturned.get(stream) ?? 0) + sizeBytes;
    const isDue = unreturned >= CREDIT_BYTES;
    this.unreturned.set(stream, isDue ? 0 : unreturned);
    if (isDue) this.out.push(frame(Frame.windowUpdate, 0, stream, uint32(unreturned)));
  }

  private settings(payload: Buffer): void {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      if (payload.readUInt16BE(at) !== INITIAL_WINDOW_SETTING) continue;
      const size = payload.readUInt32BE(at + 2);
      for (const [stream, window] of this.windows) {
        this.windows.set(stream, window + size - this.initialWindow);
      }
      this.initialWindow = size;
    }
    this.out.push(frame(Frame.settings, ACK, 0, Buffer.alloc(0)));
    this.sendWaiting();
  }

  private widen(stream: number, sizeBytes: number): void {
    if (stream === 0) this.sendWindow += sizeBytes;
    else this.windows.set(stream, (this.windows.get(stream) ?? 0) + sizeBytes);
    this.sendWaiting();
  }
}
