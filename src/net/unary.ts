/**
 * The single questions of a node that belongs to no cluster yet, on the side that answers: who are
 * you, and may I join.
 *
 * Invariants: 1. One message in, one out, both small. 2. A question is answered in time or told to
 * be asked again. 3. Nothing is allocated for a caller beyond its one message. 4. With a secret
 * nobody is told anything who does not prove with a fresh nonce of ours that it knows it.
 */
import { randomBytes } from "node:crypto";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { EMPTY_BYTES } from "../base/bytes.js";
import type { JoinAnswer, JoinRequest, PeerIdentity, TimerPort } from "../ports.js";
import type { PeerCredentials } from "./credentials.js";
import { CHALLENGE_PATH, GRPC_CONTENT_TYPE, IDENTIFY_PATH } from "./dial.js";
import { MessageReader, writeMessage } from "./messages.js";
import {
  HANDSHAKE_MAX_BYTES,
  NONCE_BYTES,
  decodeJoinRequest,
  encodeChallenge,
  encodeIdentityAnswer,
  encodeJoinAnswer,
  isQuestion,
} from "./packets.js";

export interface UnaryOwner {
  readonly timer: TimerPort;
  readonly credentials: PeerCredentials;
  readonly joinWithinMs: number;
  /** Null: nothing can be said yet. */
  identity(): PeerIdentity | null;
  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void;
}

const STATUS_OK = 0;
const STATUS_INVALID_ARGUMENT = 3;
export const STATUS_UNAUTHENTICATED = 16;

/** Nonces that were given out, by connection: each is good for the next question on it. */
const challenges = new WeakMap<object, Uint8Array>();

/** One question, and what it was proved with. */
interface Asked {
  readonly body: Uint8Array;
  /** Answers with `answer`; null = the question cannot be answered. */
  readonly finish: (answer: Uint8Array | null) => void;
  readonly socket: Socket | undefined;
}

/** Answers the question on `stream`, whose path is one of those for questions. */
export function answerQuestion(stream: ServerHttp2Stream, path: string, owner: UnaryOwner): void {
  let status = STATUS_INVALID_ARGUMENT;
  let question: Uint8Array | null = null;
  const reader = new MessageReader(
    () => HANDSHAKE_MAX_BYTES,
    (message) => {
      const isFirst = question === null;
      question = message;
      return isFirst;
    },
  );
  const finish = (answer: Uint8Array | null, failed = STATUS_INVALID_ARGUMENT): void => {
    if (stream.destroyed || stream.writableEnded) return;
    status = answer === null ? failed : STATUS_OK;
    if (answer !== null) writeMessage(answer, (piece) => stream.write(piece));
    stream.end();
  };
  stream.on("error", () => undefined);
  stream.respond({ ":status": 200, "content-type": GRPC_CONTENT_TYPE }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": String(status) }));
  stream.on("data", (chunk: Buffer) => {
    if (!reader.push(chunk)) finish(null);
  });
  stream.on("end", () => {
    if (question === null || !reader.isBetweenMessages) finish(null);
    else take(stream, path, question, owner, finish);
  });
}

/** Opens what was asked: with a secret, of those only who prove that they know it. */
function take(
  stream: ServerHttp2Stream,
  path: string,
  question: Uint8Array,
  owner: UnaryOwner,
  finish: (answer: Uint8Array | null, failed?: number) => void,
): void {
  const { credentials } = owner;
  const session = stream.session as ServerHttp2Session | undefined;
  if (session === undefined) return finish(null);
  const socket = session.socket as Socket | undefined;
  if (path === CHALLENGE_PATH) {
    const nonce = new Uint8Array(randomBytes(NONCE_BYTES));
    challenges.set(session, nonce);
    return finish(encodeChallenge(nonce));
  }
  const challenge = challenges.get(session) ?? null;
  challenges.delete(session);
  if (!credentials.hasSecret) return answer(path, { body: question, finish, socket }, owner);
  const context = [challenge ?? EMPTY_BYTES, Buffer.from(path)];
  const proved = challenge === null ? null : credentials.open("question", question, ...context);
  if (proved === null || proved.length < NONCE_BYTES) {
    credentials.refuseUnproven(socket);
    return finish(null, STATUS_UNAUTHENTICATED);
  }
  const reply = (body: Uint8Array | null): void => {
    finish(body === null ? null : credentials.seal("reply", body, ...context, proved));
  };
  answer(path, { body: proved.subarray(NONCE_BYTES), finish: reply, socket }, owner);
}

function answer(path: string, asked: Asked, owner: UnaryOwner): void {
  if (path === IDENTIFY_PATH) identify(asked, owner);
  else join(asked, owner);
}

function identify({ body, finish }: Asked, owner: UnaryOwner): void {
  const identity = isQuestion(body) ? owner.identity() : null;
  finish(identity === null ? null : encodeIdentityAnswer(identity));
}

function join({ body, finish, socket }: Asked, owner: UnaryOwner): void {
  const request = decodeJoinRequest(body);
  if (request === null) return finish(null);
  if (!owner.credentials.isNode(socket, request.nodeId)) {
    const reason = `the certificate of this connection is not for node ${request.nodeId}`;
    return finish(encodeJoinAnswer({ status: "refused", reason }));
  }
  let answered = false;
  const answer = (given: JoinAnswer): void => {
    if (answered) return;
    answered = true;
    patience.cancel();
    finish(encodeJoinAnswer(given));
  };
  const patience = owner.timer.after(owner.joinWithinMs, () => {
    answer({ status: "retry", reason: "the join was not decided in time" });
  });
  owner.joinAsked(request, answer);
}
