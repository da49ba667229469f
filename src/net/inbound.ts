/**
 * One accepted lane of another node, from its greeting to its end.
 *
 * Invariants: 1. No frame is taken before the other side proved that it hears this one. 2. A second
 * greeting, an unknown packet or one out of turn ends the lane. 3. What is read is handed on at
 * once: reading never waits for writing. 4. What an echo flood makes this side write is bounded.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { EMPTY_BYTES, equalBytes } from "../base/bytes.js";
import type { Program } from "../base/levels.js";
import { PEER_RECEIVE_MAX_BYTES } from "../base/limits.js";
import type { PeerAddress, PeerHello, PeerLane, PeerRefusal } from "../ports.js";
import type { PeerCredentials } from "./credentials.js";
import { MessageReader, writePacket } from "./messages.js";
import {
  HANDSHAKE_MAX_BYTES,
  NONCE_BYTES,
  PACKET,
  type Greeting,
  decodeGreeting,
  decodeRefusal,
  encodeGreeting,
  encodeRefusal,
} from "./packets.js";
import { plainAddress } from "./resolve.js";
import type { InboundWire } from "./wire.js";

export interface InboundOwner {
  /** False: not started yet, or closing; nobody is let in, and nobody is judged. */
  readonly isServing: boolean;
  hello(): PeerHello;
  judge(hello: PeerHello): PeerRefusal | null;
  admit(hello: PeerHello): PeerRefusal | null;
  refused(by: PeerAddress, refusal: PeerRefusal, program: Program): void;
  /** The handshake is through. */
  opened(inbound: InboundLane): void;
  frame(from: number, lane: PeerLane, bytes: Uint8Array): void;
  /** `wasOpen`: frames may have been on it. */
  ended(inbound: InboundLane, wasOpen: boolean): void;
  nowMs(): number;
  readonly credentials: PeerCredentials;
}

/** Answers to echoes that the other side does not read, before it is cut off (bytes). */
const UNREAD_MAX_BYTES = 64 * 1024;

export class InboundLane {
  private phase: "greeting" | "refused" | "confirm" | "open" | "ended" = "greeting";
  private readonly stream: Duplex;
  private readonly reader: MessageReader;
  private readonly nonce = new Uint8Array(randomBytes(NONCE_BYTES));
  private greeting: Greeting | null = null;
  /** The two greetings, as they travelled. */
  private greetings: readonly Uint8Array[] = [];
  private writtenAhead = false;
  private readonly beganMs: number;
  heardMs: number;

  constructor(
    readonly wire: InboundWire,
    private readonly owner: InboundOwner,
  ) {
    this.beganMs = owner.nowMs();
    this.heardMs = this.beganMs;
    const { stream } = wire;
    this.stream = stream;
    const bound = (): number =>
      this.phase === "open" ? PEER_RECEIVE_MAX_BYTES : HANDSHAKE_MAX_BYTES;
    this.reader = new MessageReader(bound, (message) => this.take(message));
    stream.on("data", this.read);
    stream.on("error", () => this.end());
    stream.on("end", () => this.end());
    stream.on("close", () => this.end());
  }

  /** Takes the next bytes of the other side. */
  readonly read = (piece: Uint8Array): void => {
    if (this.phase === "ended") return;
    this.heardMs = this.owner.nowMs();
    if (!this.reader.push(piece)) this.end();
  };

  get isOpen(): boolean {
    return this.phase === "open";
  }

  beganBefore(timeMs: number): boolean {
    return this.isOpen && this.beganMs < timeMs;
  }

  /** Node on the other side; 0 before its greeting was judged. */
  get nodeId(): number {
    return this.greeting?.hello.nodeId ?? 0;
  }

  /** Address that the connection comes from. */
  get source(): string | null {
    const address = this.wire.socket?.remoteAddress;
    return address === undefined ? null : plainAddress(address);
  }

  /** Where the node on the other side says that it is reached. */
  get endpoint(): string {
    return this.greeting?.hello.endpoint ?? "";
  }

  get lane(): PeerLane {
    return this.greeting?.lane ?? "control";
  }

  /** Ends it and its connection; `ended` follows at once. */
  end(): void {
    if (this.phase === "ended") return;
    const wasOpen = this.isOpen;
    this.phase = "ended";
    this.wire.destroy();
    this.owner.ended(this, wasOpen);
  }

  private write(kind: number, body: Uint8Array): void {
    if (!this.writtenAhead) {
      this.writtenAhead = true;
      this.stream.cork();
      process.nextTick(() => {
        this.writtenAhead = false;
        this.stream.uncork();
      });
    }
    writePacket(kind, body, (piece) => this.stream.write(piece));
  }

  private take(message: Uint8Array): boolean {
    const body = message.subarray(1);
    switch (message[0]) {
      case PACKET.frame:
        if (this.phase !== "open") return false;
        this.owner.frame(this.nodeId, this.lane, body);
        return true;
      case PACKET.echo:
        if (this.phase !== "open" || this.stream.writableLength > UNREAD_MAX_BYTES) return false;
        this.write(PACKET.echoAnswer, EMPTY_BYTES);
        return true;
      case PACKET.hello:
        return this.phase === "greeting" && this.takeGreeting(body);
      case PACKET.confirm:
        return this.phase === "confirm" && this.takeConfirm(body);
      case PACKET.refusal:
        return this.takeRefusal(body);
      default:
        return false;
    }
  }

  private takeConfirm(sealed: Uint8Array): boolean {
    const body = this.owner.credentials.open("confirm", sealed, ...this.greetings);
    if (body === null || !equalBytes(body, this.nonce) || this.greeting === null) return false;
    // Another start of that node may have been let in since the greeting was judged.
    if (this.owner.admit(this.greeting.hello) !== null) return false;
    this.phase = "open";
    this.owner.opened(this);
    return true;
  }

  private takeGreeting(sealed: Uint8Array): boolean {
    const { credentials } = this.owner;
    const body = credentials.open("greeting", sealed);
    if (body === null) credentials.refuseUnproven(this.wire.socket);
    const greeting = body === null ? null : decodeGreeting(body);
    if (body === null || greeting === null || !this.owner.isServing) return false;
    const own = this.owner.hello();
    const refusal = this.judge(greeting, own);
    if (refusal !== null) {
      const by = { nodeId: own.nodeId, endpoint: own.endpoint };
      const note = { by, refusal, program: own.program, answerTo: greeting.nonce };
      this.write(PACKET.refusal, credentials.seal("refusal", encodeRefusal(note)));
      this.phase = "refused";
      this.stream.end();
      return true;
    }
    this.greeting = greeting;
    this.phase = "confirm";
    const { lane, nonce: answerTo, hello } = greeting;
    const answer = { hello: own, lane, target: hello.nodeId, nonce: this.nonce, answerTo };
    const answered = encodeGreeting(answer);
    this.greetings = [body, answered];
    this.write(PACKET.hello, credentials.seal("answer", answered, body));
    return true;
  }

  private judge({ hello, target }: Greeting, own: PeerHello): PeerRefusal | null {
    if (target !== own.nodeId || hello.nodeId === own.nodeId) return "other-node";
    if (!this.owner.credentials.isNode(this.wire.socket, hello.nodeId)) return "other-identity";
    return this.owner.judge(hello);
  }

  private takeRefusal(sealed: Uint8Array): boolean {
    const body = this.owner.credentials.open("refusal", sealed);
    const note = body === null ? null : decodeRefusal(body);
    // Only the greeting that answered the other side's can be refused, by that side, until it is
    // confirmed.
    const isAnswer = this.phase === "confirm" && note?.by.nodeId === this.nodeId;
    if (note !== null && isAnswer && equalBytes(note.answerTo, this.nonce)) {
      this.owner.refused(note.by, note.refusal, note.program);
    }
    return false;
  }
}
