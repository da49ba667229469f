/**
 * What a node that belongs to no cluster yet asks through its seeds: which cluster they are of, and
 * to be taken in.
 *
 * Invariants: 1. Seeds are asked in turn, with pauses between rounds, until one gives an answer
 * that counts, or the caller cancels. 2. `done` comes once, in a turn of its own, and never after
 * `cancel`. 3. Each question has a connection of its own and a deadline.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { assert } from "../base/assert.js";
import type { JoinAnswer, JoinRequest, PeerIdentity, TimerHandle } from "../ports.js";
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
  encodeIdentityQuestion,
  encodeJoinRequest,
} from "./packets.js";
import { STATUS_UNAUTHENTICATED } from "./unary.js";
import { PEER_NETWORK_DEFAULTS, type PeerNetworkPorts, type PeerTls } from "./settings.js";

type AskPorts = "timer" | "entropy" | "logger" | "names" | "credentials";

export interface AskOptions {
  readonly tls: PeerTls | null;
  readonly ports: Pick<PeerNetworkPorts, AskPorts>;
  /** Longest wait for one seed (ms). */
  readonly answerWithinMs?: number;
  /** Pause after the last seed, before the first is asked again (ms). */
  readonly roundPauseMs?: number;
}

export interface Asking {
  /** Asks no more; `done` will not be called. */
  cancel(): void;
}

interface Question<Answer> {
  readonly path: string;
  readonly message: Uint8Array;
  /** Null when the bytes are no answer. */
  readonly decode: (bytes: Uint8Array) => Answer | null;
  /** Null to accept; else why the next seed is asked. */
  readonly unwelcome: (answer: Answer) => string | null;
  /** Whether the certificate of who answers may stand for it. */
  readonly isFrom: (answer: Answer, credentials: PeerCredentials, socket: Socket) => boolean;
}

const ROUND_PAUSE_MS = 500;

/** Asks seeds until one is reached; `done` gets who it says it is. */
export function askIdentity(
  seeds: readonly string[],
  options: AskOptions,
  done: (identity: PeerIdentity) => void,
): Asking {
  const question: Question<PeerIdentity> = {
    path: IDENTIFY_PATH,
    message: encodeIdentityQuestion(),
    decode: decodeIdentityAnswer,
    isFrom: ({ nodeId }, credentials, socket) => credentials.isNode(socket, nodeId),
    // A node that waits to be taken in itself cannot speak for a cluster.
    unwelcome: ({ state }) => (state === "empty" ? "it belongs to no cluster yet" : null),
  };
  return new Round(seeds, question, options, done);
}

/** Asks seeds to take this node in until one accepts or refuses. */
export function askToJoin(
  seeds: readonly string[],
  request: JoinRequest,
  options: AskOptions,
  done: (answer: Exclude<JoinAnswer, { readonly status: "retry" }>) => void,
): Asking {
  const question: Question<JoinAnswer> = {
    path: JOIN_PATH,
    message: encodeJoinRequest(request),
    decode: decodeJoinAnswer,
    isFrom: (_answer, credentials, socket) => credentials.isSomeNode(socket),
    unwelcome: (answer) => (answer.status === "retry" ? answer.reason : null),
  };
  return new Round(seeds, question, options, (answer) => {
    assert(answer.status !== "retry", "a retry is no answer");
    done(answer);
  });
}

class Round<Answer> implements Asking {
  private at = 0;
  private rounds = 0;
  private ended = false;
  private timer: TimerHandle | null = null;
  private connection: Connection | null = null;
  private lastReasons = "";
  private reasons: string[] = [];

  constructor(
    private readonly seeds: readonly string[],
    private readonly question: Question<Answer>,
    private readonly options: AskOptions,
    private readonly done: (answer: Answer) => void,
  ) {
    assert(seeds.length > 0, "there is a seed to ask");
    options.ports.timer.soon(() => this.ask());
  }

  cancel(): void {
    this.ended = true;
    this.timer?.cancel();
    this.connection?.destroy();
  }

  private ask(): void {
    if (this.ended) return;
    const { question, options } = this;
    const { timer } = options.ports;
    const seed = this.seeds[this.at] as string;
    let settled = false;
    const settle = (next: () => void): void => {
      if (settled) return;
      settled = true;
      this.timer?.cancel();
      this.connection?.destroy();
      this.connection = null;
      timer.soon(() => {
        if (!this.ended) next();
      });
    };
    const failed = (reason: string): void => settle(() => this.next(seed, reason));
    const withinMs = options.answerWithinMs ?? PEER_NETWORK_DEFAULTS.joinWithinMs + 2000;
    this.timer = timer.after(withinMs, () => failed("no answer in time"));
    const { credentials } = options.ports;
    const take = (bytes: Uint8Array, socket: Socket): boolean => {
      const answer = question.decode(bytes);
      const isNode = answer !== null && question.isFrom(answer, credentials, socket);
      const misfit = isNode ? "" : "its certificate is not for the node that it says it is";
      const reason = answer === null ? "a malformed answer" : misfit;
      const unwelcome = answer === null || !isNode ? reason : question.unwelcome(answer);
      if (answer === null || unwelcome !== null) failed(unwelcome ?? "");
      else {
        this.connection?.proved();
        settle(() => this.finish(answer));
      }
      return false;
    };
    try {
      const target = { endpoint: seed, attempt: this.rounds, source: null };
      const way = { tls: options.tls, names: options.ports.names, withinMs };
      this.connection = ask(target, question, way, credentials, { take, failed });
    } catch (error) {
      failed((error as Error).message);
    }
  }

  private finish(answer: Answer): void {
    this.ended = true;
    this.done(answer);
  }

  private next(seed: string, reason: string): void {
    const { timer, entropy, logger } = this.options.ports;
    this.reasons.push(`${seed}: ${reason}`);
    this.at = (this.at + 1) % this.seeds.length;
    if (this.at > 0) return this.ask();
    this.rounds += 1;
    const reasons = this.reasons.join("; ");
    this.reasons = [];
    if (reasons !== this.lastReasons) {
      logger.log("warn", "No seed took this node in yet; asking on.", { reasons });
    }
    this.lastReasons = reasons;
    const chance = 0.5 + entropy.uint32() / 0x2_0000_0000;
    const pauseMs = (this.options.roundPauseMs ?? ROUND_PAUSE_MS) * chance;
    this.timer = timer.after(pauseMs, () => this.ask());
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
  call(connection, CHALLENGE_PATH, encodeIdentityQuestion(), prove, failed);
  return connection;
}
