/**
 * Somebody who speaks with a peer listener by hand: a lane on a socket of its own or over HTTP/2,
 * as older programs have them, or any call.
 */
import {
  connect as connectHttp2,
  type ClientHttp2Session,
  type ClientHttp2Stream,
} from "node:http2";
import { connect as connectTcp } from "node:net";
import { LINK_PATH } from "../../../src/net/dial.js";
import { MessageReader, writePacket } from "../../../src/net/messages.js";
import { LANE_OPENING, OpeningReader } from "../../../src/net/wire.js";

/** On what a lane travels: what programs speak now, and what those of level 1 do. */
export const CARRIERS = ["socket", "http2"] as const;
export type Carrier = (typeof CARRIERS)[number];

const ANSWER_MAX_BYTES = 1 << 20;

export interface SpokenLane {
  readonly answers: Uint8Array[];
  write(bytes: Uint8Array): void;
  /** Writes one packet. */
  send(kind: number, body: Uint8Array): void;
  end(): void;
  /** Reads no more. */
  pause(): void;
  destroy(): void;
  ended(): boolean;
}

export interface SpokenCall extends SpokenLane {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  /** The status of the call; null while it is not known. */
  readonly status: () => number | null;
}

export function packet(kind: number, body: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  writePacket(kind, body, (piece) => parts.push(piece));
  return new Uint8Array(Buffer.concat(parts));
}

/** Opens a call on a connection of its own. */
export function speakCall(endpoint: string, path: string): SpokenCall {
  const session = connectHttp2(`http://${endpoint}`);
  let isEnded = false;
  let status: number | null = null;
  session.on("error", () => undefined);
  session.on("close", () => (isEnded = true));
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc" };
  const stream = session.request({ ...headers, te: "trailers" });
  const answers: Uint8Array[] = [];
  const take = (answer: Uint8Array): boolean => answers.push(answer) > 0;
  const reader = new MessageReader(() => ANSWER_MAX_BYTES, take);
  stream.on("data", (chunk: Buffer) => reader.push(chunk));
  stream.on("error", () => undefined);
  stream.on("trailers", (trailers) => (status = Number(trailers["grpc-status"])));
  stream.on("close", () => (isEnded = true));
  const write = (bytes: Uint8Array): void =>
    void (stream.destroyed || stream.writableEnded || stream.write(bytes));
  return {
    session,
    stream,
    answers,
    status: () => status,
    write,
    send: (kind, body) => write(packet(kind, body)),
    end: () => void (stream.destroyed || stream.end()),
    pause: () => void stream.pause(),
    destroy: () => session.destroy(),
    ended: () => isEnded,
  };
}

/** Opens a lane on a connection of its own. */
export function speakLane(endpoint: string, carrier: Carrier): SpokenLane {
  if (carrier === "http2") return speakCall(endpoint, LINK_PATH);
  const [host, port] = endpoint.split(":");
  const socket = connectTcp({ host: host ?? "", port: Number(port) });
  let isEnded = false;
  const answers: Uint8Array[] = [];
  const take = (answer: Uint8Array): boolean => answers.push(answer) > 0;
  const reader = new MessageReader(() => ANSWER_MAX_BYTES, take);
  const opening = new OpeningReader();
  let isOpen = false;
  socket.on("error", () => undefined);
  socket.on("close", () => (isEnded = true));
  socket.on("data", (chunk: Buffer) => {
    if (isOpen) return void reader.push(chunk);
    isOpen = opening.push(chunk) === "lane";
    if (isOpen) reader.push(opening.rest);
  });
  const write = (bytes: Uint8Array): void =>
    void (socket.destroyed || socket.writableEnded || socket.write(bytes));
  write(LANE_OPENING);
  return {
    answers,
    write,
    send: (kind, body) => write(packet(kind, body)),
    end: () => void (socket.destroyed || socket.end()),
    pause: () => void socket.pause(),
    destroy: () => void socket.destroy(),
    ended: () => isEnded,
  };
}
