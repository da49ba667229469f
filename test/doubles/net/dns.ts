/** A name server for tests, on loopback unless it is told where: it answers A questions as it is told, or not at all. */
import { createSocket, type Socket } from "node:dgram";
import type { AddressInfo } from "node:net";

const TYPE_A = 1;
const HEADER_BYTES = 12;

/** Name and type of the first question of a DNS message. */
function questionOf(message: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let size = message[at] ?? 0; size > 0; size = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + size));
    at += 1 + size;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}

function answerTo(message: Buffer, addresses: readonly string[] | null): Buffer {
  const { type, end } = questionOf(message);
  const given = type === TYPE_A ? (addresses ?? []) : [];
  const head = Buffer.from(message.subarray(0, end));
  // A response, recursion available; "no such name" where there is none.
  head.writeUInt16BE(addresses === null ? 0x8183 : 0x8180, 2);
  head.writeUInt16BE(given.length, 6);
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  const records = given.map((address) => {
    const record = Buffer.from([0xc0, HEADER_BYTES, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    for (const [at, part] of address.split(".").entries()) record[12 + at] = Number(part);
    return record;
  });
  return Buffer.concat([head, ...records]);
}

export class NameServer {
  /** Addresses by name; a name that is not listed does not exist. */
  readonly names = new Map<string, readonly string[]>();
  silent = false;
  /** Every so many-th question gets no answer; 0 = each gets one. */
  dropEvery = 0;
  private questions = 0;
  delayMs = 0;
  /** Questions for addresses of IPv4, by name. */
  readonly asked = new Map<string, number>();

  private constructor(private readonly socket: Socket) {
    socket.on("message", (message, from) => {
      const { name, type } = questionOf(message);
      if (type === TYPE_A) this.asked.set(name, (this.asked.get(name) ?? 0) + 1);
      if (this.silent || ++this.questions % this.dropEvery === 0) return;
      const answer = answerTo(message, this.names.get(name) ?? null);
      setTimeout(() => {
        if (!this.isClosed) socket.send(answer, from.port, from.address);
      }, this.delayMs);
    });
  }

  private isClosed = false;

  static async open(host = "127.0.0.1", port = 0): Promise<NameServer> {
    const socket = createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(port, host, resolve));
    return new NameServer(socket);
  }

  get address(): string {
    return `127.0.0.1:${(this.socket.address() as AddressInfo).port}`;
  }

  close(): Promise<void> {
    this.isClosed = true;
    return new Promise((resolve) => this.socket.close(() => resolve()));
  }
}
