/**
 * The single questions of a node that belongs to no cluster yet, on the side that answers: who are
 * you, and may I join.
 *
 * Invariants: 1. One message in, one out, both small. 2. A question is answered in time or told to
 * be asked again. 3. Nothing is allocated for a caller beyond its one message.
 */
import type { ServerHttp2Stream } from "node:http2";
import type { JoinAnswer, JoinRequest, PeerIdentity, TimerPort } from "../ports.js";
import { GRPC_CONTENT_TYPE, IDENTIFY_PATH } from "./dial.js";
import { MessageReader, writeMessage } from "./messages.js";
import {
  HANDSHAKE_MAX_BYTES,
  decodeJoinRequest,
  encodeIdentityAnswer,
  encodeJoinAnswer,
  isIdentityQuestion,
} from "./packets.js";

export interface UnaryOwner {
  readonly timer: TimerPort;
  readonly joinWithinMs: number;
  /** Null: nothing can be said yet. */
  identity(): PeerIdentity | null;
  joinAsked(request: JoinRequest, answer: (answer: JoinAnswer) => void): void;
}

const STATUS_OK = 0;
const STATUS_INVALID_ARGUMENT = 3;

/** Answers the question on `stream`, whose path is one of the two. */
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
  const finish = (answer: Uint8Array | null): void => {
    if (stream.destroyed || stream.writableEnded) return;
    if (answer !== null) {
      status = STATUS_OK;
      writeMessage(answer, (piece) => stream.write(piece));
    }
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
    else if (path === IDENTIFY_PATH) identify(question, owner, finish);
    else join(question, owner, finish);
  });
}

type Finish = (answer: Uint8Array | null) => void;

function identify(question: Uint8Array, owner: UnaryOwner, finish: Finish): void {
  const identity = isIdentityQuestion(question) ? owner.identity() : null;
  finish(identity === null ? null : encodeIdentityAnswer(identity));
}

function join(question: Uint8Array, owner: UnaryOwner, finish: Finish): void {
  const request = decodeJoinRequest(question);
  if (request === null) return finish(null);
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
