/**
 * What a node that belongs to no cluster yet asks through its seeds: which cluster they are of, and
 * to be taken in.
 *
 * Invariants: 1. Seeds are asked in turn, with pauses between rounds, until one gives an answer
 * that counts, or the caller cancels. 2. `done` comes once, in a turn of its own, and never after
 * `cancel`. 3. Each question has a connection of its own and a deadline.
 */
import { assert } from "../base/assert.js";
import type { JoinAnswer, JoinRequest, PeerIdentity, TimerHandle } from "../ports.js";
import {
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
  decodeIdentityAnswer,
  decodeJoinAnswer,
  encodeIdentityQuestion,
  encodeJoinRequest,
} from "./packets.js";
import { PEER_NETWORK_DEFAULTS, type PeerNetworkPorts, type PeerTls } from "./settings.js";

export interface AskOptions {
  readonly tls: PeerTls | null;
  readonly ports: Pick<PeerNetworkPorts, "timer" | "entropy" | "logger" | "names">;
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
    const take = (bytes: Uint8Array): boolean => {
      const answer = question.decode(bytes);
      const unwelcome = answer === null ? "a malformed answer" : question.unwelcome(answer);
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
      this.connection = ask(target, question, way, take, failed);
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

/** Sends one question over a connection of its own. */
function ask(
  target: DialTarget,
  question: { readonly path: string; readonly message: Uint8Array },
  options: DialOptions,
  take: (bytes: Uint8Array) => boolean,
  failed: (reason: string) => void,
): Connection {
  const connection = dial(target, options, failed);
  const stream = connection.session.request({
    ":method": "POST",
    ":path": question.path,
    "content-type": GRPC_CONTENT_TYPE,
    te: "trailers",
  });
  const reader = new MessageReader(() => HANDSHAKE_MAX_BYTES, take);
  stream.on("error", (error) => failed(error.message));
  stream.on("data", (chunk: Buffer) => {
    if (!reader.push(chunk)) failed("a malformed answer");
  });
  stream.on("close", () => failed("it gave no answer"));
  writeMessage(question.message, (piece) => stream.write(piece));
  stream.end();
  return connection;
}
