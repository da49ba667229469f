/**
 * The single questions of a node that belongs to no cluster yet, on the side that asks: who is
 * there, and may I join.
 *
 * Invariants: 1. Each question has a connection of its own and a deadline. 2. Its answer, or why
 * there is none, comes once, in a turn of its own, and never after `cancel`. 3. What somebody says
 * whose certificate is not for it, or who does not know the secret, is no answer.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { failure, ok, type Result } from "../base/result.js";
import type { AskPort, JoinAnswer, JoinRequest, PeerIdentity, Question } from "../ports.js";
import type { PeerCredentials } from "./credentials.js";
import {
  CHALLENGE_PATH,
  GRPC_CONTENT_TYPE,
  IDENTIFY_PATH,
  JOIN_PATH,
  dial,
  type Connection,
  type DialOptions,
  type DialTarget,
} from "./dial.js";
import { MessageReader, writeMessage } from "./messages.js";
import {
  HANDSHAKE_MAX_BYTES,
  NONCE_BYTES,
  decodeChallenge,
  decodeIdentityAnswer,
  decodeJoinAnswer,
  encodeQuestion,
  encodeJoinRequest,
} from "./packets.js";
import { STATUS_UNAUTHENTICATED } from "./unary.js";
import { PEER_NETWORK_DEFAULTS, type PeerNetworkPorts, type PeerTls } from "./settings.js";

export interface AskOptions {
  /** What TLS handshakes are made with, as of now; null = without TLS. */
  readonly tls: () => PeerTls | null;
  readonly ports: Pick<PeerNetworkPorts, "timer" | "names" | "credentials">;
  /** Longest wait for an answer to `identify`, and to `join` (ms). */
  readonly identifyWithinMs?: number;
  readonly joinWithinMs?: number;
}

const IDENTIFY_WITHIN_MS = 2000;
/** What the answer to a join may take beyond the time in which it is decided. */
const JOIN_GRACE_MS = 2000;
/** Tries are counted, so that each begins with another address of its endpoint. */
const TRIES_MAX = 1 << 20;

interface Call<Answer> {
  readonly path: string;
  readonly message: Uint8Array;
  /** Null when the bytes are no answer. */
  readonly decode: (bytes: Uint8Array) => Answer | null;
  /** Whether the certificate of who answers may stand for it. */
  readonly isFrom: (answer: Answer, credentials: PeerCredentials, socket: Socket) => boolean;
  readonly withinMs: number;
}

type Done<Answer> = (answer: Result<Answer, "no-answer">) => void;

export class PeerQuestions implements AskPort {
  private tries = 0;

  constructor(private readonly options: AskOptions) {}

  identify(endpoint: string, done: Done<PeerIdentity>): Question {
    const call: Call<PeerIdentity> = {
      path: IDENTIFY_PATH,
      message: encodeQuestion(),
      decode: decodeIdentityAnswer,
      isFrom: ({ nodeId }, credentials, socket) => credentials.isNode(socket, nodeId),
      withinMs: this.options.identifyWithinMs ?? IDENTIFY_WITHIN_MS,
    };
    return this.ask(endpoint, call, done);
  }

  join(endpoint: string, request: JoinRequest, done: Done<JoinAnswer>): Question {
    const call: Call<JoinAnswer> = {
      path: JOIN_PATH,
      message: encodeJoinRequest(request),
      decode: decodeJoinAnswer,
      isFrom: (_answer, credentials, socket) => credentials.isSomeNode(socket),
      withinMs: this.options.joinWithinMs ?? PEER_NETWORK_DEFAULTS.joinWithinMs + JOIN_GRACE_MS,
    };
    return this.ask(endpoint, call, done);
  }

  private ask<Answer>(endpoint: string, call: Call<Answer>, done: Done<Answer>): Question {
    const { tls, ports } = this.options;
    const { timer, names, credentials } = ports;
    let isSettled = false;
    let isCancelled = false;
    let connection: Connection | null = null;
    const settle = (answer: Result<Answer, "no-answer">): void => {
      if (isSettled) return;
      isSettled = true;
      timeout.cancel();
      connection?.destroy();
      timer.soon(() => {
        if (!isCancelled) done(answer);
      });
    };
    const failed = (reason: string): void => settle(failure("no-answer", reason));
    const timeout = timer.after(call.withinMs, () => failed("no answer in time"));
    const take = (bytes: Uint8Array, socket: Socket): boolean => {
      const answer = call.decode(bytes);
      if (answer === null) failed("a malformed answer");
      else if (!call.isFrom(answer, credentials, socket)) {
        failed("its certificate is not for the node that it says it is");
      } else {
        connection?.proved();
        settle(ok(answer));
      }
      return false;
    };
    this.tries = (this.tries + 1) % TRIES_MAX;
    try {
      const target = { endpoint, attempt: this.tries, source: null };
      const way = { tls: tls(), names, withinMs: call.withinMs };
      connection = ask(target, call, way, credentials, { take, failed });
    } catch (error) {
      failed((error as Error).message);
    }
    return {
      cancel: () => {
        isCancelled = true;
        failed("cancelled");
      },
    };
  }
}

interface Steps {
  take(bytes: Uint8Array, socket: Socket): boolean;
  failed(reason: string): void;
}

/** Sends one message and hands on what is answered. */
function call(
  connection: Connection,
  path: string,
  message: Uint8Array,
  take: (bytes: Uint8Array) => boolean,
  failed: (reason: string) => void,
): void {
  const stream = connection.session.request({
    ":method": "POST",
    ":path": path,
    "content-type": GRPC_CONTENT_TYPE,
    te: "trailers",
  });
  const reader = new MessageReader(() => HANDSHAKE_MAX_BYTES, take);
  let isAnswered = false;
  stream.on("error", (error) => failed(error.message));
  stream.on("trailers", (trailers) => {
    if (trailers["grpc-status"] !== String(STATUS_UNAUTHENTICATED)) return;
    failed("it does not take this node's proof: --peer-secret-file must be the same on all nodes");
  });
  stream.on("data", (chunk: Buffer) => {
    isAnswered = true;
    if (!reader.push(chunk)) failed("a malformed answer");
  });
  stream.on("close", () => {
    if (!isAnswered) failed("it gave no answer");
  });
  writeMessage(message, (piece) => stream.write(piece));
  stream.end();
}

/** Sends one question over a connection of its own; with a secret, with a proof, for a proof. */
function ask(
  target: DialTarget,
  question: { readonly path: string; readonly message: Uint8Array },
  options: DialOptions,
  credentials: PeerCredentials,
  steps: Steps,
): Connection {
  const { path, message } = question;
  const { failed } = steps;
  const connection = dial(target, options, failed);
  const { socket } = connection;
  if (!credentials.hasSecret) {
    call(connection, path, message, (bytes) => steps.take(bytes, socket), failed);
    return connection;
  }
  const prove = (given: Uint8Array): boolean => {
    const challenge = decodeChallenge(given);
    if (challenge === null) return false;
    const context = [challenge, Buffer.from(path)];
    const body = Buffer.concat([randomBytes(NONCE_BYTES), message]);
    const take = (sealed: Uint8Array): boolean => {
      const reply = credentials.open("reply", sealed, ...context, body);
      if (reply !== null) return steps.take(reply, socket);
      credentials.refuseUnproven(socket);
      failed("it does not prove that it knows the peers' secret");
      return false;
    };
    call(connection, path, credentials.seal("question", body, ...context), take, failed);
    return true;
  };
  call(connection, CHALLENGE_PATH, encodeQuestion(), prove, failed);
  return connection;
}
