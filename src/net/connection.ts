/**
 * One connection of one lane, from the dialling to its end: handshake, frames, echoes. It is a
 * socket of its own; where an older program answers on it, HTTP/2 on another one takes its place.
 *
 * The handshake: this side greets with a fresh nonce; the other side answers with its own greeting,
 * which repeats it and carries another one; this side confirms that, and is in. Whoever does not
 * like what it hears says so and ends.
 * Invariants: 1. Frames are taken only between `up` and `ended`. 2. `ended` comes once, in a turn
 * of its own, and nothing of the connection is left then. 3. An echo without an answer in time ends
 * the connection, whatever the operating system believes (P-152).
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { EMPTY_BYTES, equalBytes } from "../base/bytes.js";
import type { Program } from "../base/levels.js";
import { PEER_RECEIVE_MAX_BYTES } from "../base/limits.js";
import type { PeerAddress, PeerHello, PeerLane, PeerRefusal, TimerHandle } from "../ports.js";
import {
  GRPC_CONTENT_TYPE,
  LINK_PATH,
  dial,
  dialSocket,
  type DialOptions,
  type DialTarget,
  type Dialled,
} from "./dial.js";
import { untilEchoMs } from "./echo-times.js";
import { MessageReader } from "./messages.js";
import {
  HANDSHAKE_MAX_BYTES,
  NONCE_BYTES,
  NO_NONCE,
  PACKET,
  decodeGreeting,
  decodeRefusal,
  encodeGreeting,
  encodeRefusal,
} from "./packets.js";
import { LaneSender } from "./sending.js";
import type { PeerNetworkPorts, LinkSettings } from "./settings.js";
import { LANE_OPENING, OpeningReader } from "./wire.js";

export interface ConnectionOwner {
  admit(hello: PeerHello): PeerRefusal | null;
  refused(by: PeerAddress, refusal: PeerRefusal, program: Program): void;
  up(hello: PeerHello): void;
  ended(reason: string): void;
}

/** How long a refusal may take to leave before the connection is destroyed (ms). */
const LAST_WORD_MS = 100;

export class LaneConnection {
  /** What this side said first, and what it was answered, as they travelled. */
  private greeted: Uint8Array = EMPTY_BYTES;
  private readonly nonce = new Uint8Array(randomBytes(NONCE_BYTES));
  private connection: Dialled | null = null;
  private stream: Duplex | null = null;
  private sender: LaneSender | null = null;
  private isUp = false;
  private isEnded = false;
  private timer: TimerHandle | null = null;
  private echoSentMs: number | null = null;
  private echoDueMs = 0;
  private echoForgiven = false;

  constructor(
    private readonly peer: PeerAddress,
    private readonly lane: PeerLane,
    private readonly settings: LinkSettings,
    private readonly ports: PeerNetworkPorts,
    private readonly owner: ConnectionOwner,
    way: DialTarget,
  ) {
    this.timer = ports.timer.after(settings.handshakeWithinMs, () =>
      this.end("no handshake in time"),
    );
    try {
      this.begin(way);
    } catch (error) {
      this.end((error as Error).message);
    }
  }

  get queuedBytes(): number {
    return this.sender?.queuedBytes ?? 0;
  }

  /** False: not up, or no room. */
  send(bytes: Uint8Array): boolean {
    return this.isUp && this.sender !== null && this.sender.frame(bytes);
  }

  /** Ends it; `ended` follows. */
  end(reason: string): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.isUp = false;
    this.sender = null;
    this.timer?.cancel();
    this.connection?.destroy();
    this.ports.timer.soon(() => this.owner.ended(reason));
  }

  /** Lets what was sent leave, for `withinMs` at most, then ends. */
  finish(withinMs: number): void {
    if (!this.isUp || this.stream === null) return this.end("closed");
    this.isUp = false;
    this.timer?.cancel();
    this.timer = this.ports.timer.after(withinMs, () => this.end("closed"));
    this.sender?.flush();
    this.stream.end();
  }

  private begin(target: DialTarget): void {
    const { settings, ports } = this;
    const withinMs = settings.handshakeWithinMs;
    const options = { tls: settings.tls(), names: ports.names, withinMs };
    const dialled = dialSocket(target, options, (reason) => {
      if (this.connection === dialled) this.end(reason);
    });
    this.connection = dialled;
    const { socket } = dialled;
    socket.write(LANE_OPENING);
    const opening = new OpeningReader();
    let isOpen = false;
    const read = this.use(socket, dialled);
    socket.on("data", (chunk: Buffer) => {
      if (this.connection !== dialled) return;
      if (isOpen) return read(chunk);
      const opened = opening.push(chunk);
      if (opened === "other") return this.beginOlder(target, options);
      if (opened === "broken") return this.end("it does not speak this protocol");
      isOpen = opened === "lane";
      if (isOpen) read(opening.rest);
    });
  }

  /** The other side's program is of before lanes had sockets of their own: again, as it speaks. */
  private beginOlder(target: DialTarget, options: DialOptions): void {
    this.connection?.destroy();
    const dialled = dial(target, options, (reason) => this.end(reason));
    this.connection = dialled;
    const stream = dialled.session.request(
      {
        ":method": "POST",
        ":path": LINK_PATH,
        "content-type": GRPC_CONTENT_TYPE,
        te: "trailers",
      },
      { endStream: false },
    );
    stream.on("response", (headers) => {
      if (headers[":status"] !== 200) this.end(`answered with HTTP ${String(headers[":status"])}`);
    });
    stream.on("data", this.use(stream, dialled));
  }

  /** Greets on `stream`; what is returned takes what comes back. */
  private use(stream: Duplex, dialled: Dialled): (chunk: Uint8Array) => void {
    const { peer, lane, settings, nonce } = this;
    const ended = (reason: string): void => {
      if (this.connection === dialled) this.end(reason);
    };
    stream.on("error", (error) => ended(error.message));
    stream.on("end", () => ended("the other side ended the link"));
    stream.on("close", () => ended("the other side ended the link"));
    this.stream = stream;
    this.sender = new LaneSender(stream, settings.lanes[lane]);
    const greeting = { hello: settings.hello(), lane, target: peer.nodeId, nonce };
    this.greeted = encodeGreeting({ ...greeting, answerTo: NO_NONCE });
    this.sender.packet(PACKET.hello, this.ports.credentials.seal("greeting", this.greeted));
    const bound = (): number => (this.isUp ? PEER_RECEIVE_MAX_BYTES : HANDSHAKE_MAX_BYTES);
    const reader = new MessageReader(bound, (message) => this.take(message));
    return (chunk) => {
      if (!this.isEnded && !reader.push(chunk)) this.end("it does not speak this protocol");
    };
  }

  private take(message: Uint8Array): boolean {
    if (this.isEnded) return false;
    const body = message.subarray(1);
    switch (message[0]) {
      case PACKET.hello:
        return !this.isUp && this.takeGreeting(body);
      case PACKET.refusal:
        return this.takeRefusal(body);
      case PACKET.echoAnswer:
        if (!this.isUp || this.echoSentMs === null) return false;
        this.echoCame(this.echoSentMs);
        return true;
      default:
        return false;
    }
  }

  private echoCame(sentMs: number): void {
    this.echoSentMs = null;
    const { clock, echoed } = this.ports;
    if (this.lane === "control") echoed?.(this.peer.nodeId, clock.monotonicMs() - sentMs);
  }

  private takeGreeting(sealed: Uint8Array): boolean {
    const { credentials } = this.ports;
    const body = credentials.open("answer", sealed, this.greeted);
    if (body === null) {
      credentials.refuseUnproven(this.connection?.socket);
      this.end("it does not prove that it knows the peers' secret");
      return true;
    }
    const greeting = decodeGreeting(body);
    if (greeting === null || !equalBytes(greeting.answerTo, this.nonce)) return false;
    const { hello, target, lane } = greeting;
    const refusal = this.judge(hello, target);
    if (refusal !== null) {
      this.refuse(refusal, greeting.nonce);
      return true;
    }
    if (lane !== this.lane) return false;
    const confirm = credentials.seal("confirm", greeting.nonce, this.greeted, body);
    this.sender?.packet(PACKET.confirm, confirm);
    this.connection?.proved();
    this.isUp = true;
    this.timer?.cancel();
    this.echo();
    this.owner.up(hello);
    return true;
  }

  private judge(hello: PeerHello, target: number): PeerRefusal | null {
    if (hello.nodeId !== this.peer.nodeId) return "other-node";
    if (target !== this.settings.hello().nodeId) return "other-node";
    if (!this.ports.credentials.isNode(this.connection?.socket, hello.nodeId)) {
      return "other-identity";
    }
    return this.owner.admit(hello);
  }

  private refuse(refusal: PeerRefusal, answerTo: Uint8Array): void {
    const { nodeId, endpoint, program } = this.settings.hello();
    const note = encodeRefusal({ by: { nodeId, endpoint }, refusal, program, answerTo });
    this.sender?.packet(PACKET.refusal, this.ports.credentials.seal("refusal", note));
    this.sender?.flush();
    this.stream?.end();
    this.timer?.cancel();
    this.timer = this.ports.timer.after(LAST_WORD_MS, () => this.end(`refused it: ${refusal}`));
  }

  private takeRefusal(sealed: Uint8Array): boolean {
    const body = this.ports.credentials.open("refusal", sealed);
    const note = body === null ? null : decodeRefusal(body);
    // Only the greeting of this connection can be refused, and only until it was answered.
    if (note === null || this.isUp || !equalBytes(note.answerTo, this.nonce)) return false;
    this.owner.refused(note.by, note.refusal, note.program);
    this.end(`it refused: ${note.refusal}`);
    return true;
  }

  /** Sends an echo, or judges the one that is on its way. */
  private echo(): void {
    const nowMs = this.ports.clock.monotonicMs();
    const { echoEveryMs, echoWithinMs } = this.settings.lanes[this.lane];
    if (this.echoSentMs === null) {
      this.echoSentMs = nowMs;
      this.echoForgiven = false;
      this.sender?.packet(PACKET.echo, EMPTY_BYTES);
    } else if (this.echoDueMs + echoEveryMs < nowMs && !this.echoForgiven) {
      // This process stood still: the answer may have come long ago and not be read yet.
      this.echoSentMs = nowMs;
      this.echoForgiven = true;
    } else if (nowMs - this.echoSentMs >= echoWithinMs) {
      return this.end("no echo in time");
    }
    const leftMs = this.echoSentMs + echoWithinMs - nowMs;
    const pauseMs = Math.min(untilEchoMs(nowMs, echoEveryMs), leftMs);
    this.echoDueMs = nowMs + pauseMs;
    this.timer = this.ports.timer.after(pauseMs, () => this.echo());
  }
}
