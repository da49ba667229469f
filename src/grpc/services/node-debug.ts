/**
 * GetNodeDebug: the text of the node debug in pieces, as its client takes them.
 *
 * Owns the rest of the text of its one call. Invariants: 1. The next piece is sent when the
 * transport has taken the last one. 2. A client that goes away ends it.
 */
import { PROFILE_MAX_SECONDS } from "../../base/limits.js";
import type { NodeDebugPort } from "../../operations/api/node-debug.js";
import { decodeMessage, encodeMessage } from "../../proto/codec.js";
import { GrpcGetNodeDebugRequest, GrpcNodeDebugChunk } from "../../proto/generated/cluster.js";
import { type GrpcRuntime, malformedRequest } from "../calls/runtime.js";
import type { Call, CallHandler } from "../h2/call.js";
import { Status, statusName } from "../h2/constants.js";
import { type Failure, failureOf } from "../h2/failure.js";

export const NODE_DEBUG_PATH = "/Cluster/GetNodeDebug";

const PIECE_BYTES = 64 * 1024;

const BUSY = failureOf(Status.UNAVAILABLE, "a node debug is being made already");
const BAD_SECONDS = failureOf(
  Status.INVALID_ARGUMENT,
  `ProfileSeconds is 0 to ${PROFILE_MAX_SECONDS}`,
);

/** Serves one call, which leaves a line in the audit log. */
export function streamDebug(runtime: GrpcRuntime, call: Call, bytes: Buffer): void {
  const { audit, nodeDebug } = runtime.options;
  const requestId = runtime.requestId(call.head);
  const { name: caller, role, address } = call.caller;
  answer(nodeDebug, call, bytes, (code) => {
    const outcome = statusName(code);
    audit?.administered({ operation: NODE_DEBUG_PATH, caller, role, address, requestId, outcome });
  });
}

function answer(
  debug: NodeDebugPort | null,
  call: Call,
  bytes: Buffer,
  ended: (code: number) => void,
): void {
  const fail = (failure: Failure): void => {
    ended(failure.code);
    call.fail(failure);
  };
  const message = decodeMessage(GrpcGetNodeDebugRequest, bytes);
  if (message === null) return fail(malformedRequest());
  const seconds = message.ProfileSeconds;
  if (seconds < 0 || seconds > PROFILE_MAX_SECONDS) return fail(BAD_SECONDS);
  const pieces = new Pieces(call);
  call.tell(pieces);
  if (debug === null) return fail(BUSY);
  debug.make(seconds, (text) => {
    if (!call.isOpen) return;
    if (text === null) return fail(BUSY);
    ended(Status.OK);
    pieces.send(Buffer.from(text));
  });
}

class Pieces implements CallHandler {
  private rest: Buffer = Buffer.alloc(0);

  constructor(private readonly call: Call) {}

  send(rest: Buffer): void {
    this.rest = rest;
    this.taken();
  }

  message(): void {
    // The one message has been read.
  }

  halfClosed(): void {
    // Nothing follows on it.
  }

  taken(): void {
    const { call } = this;
    while (call.isOpen && this.rest.length > 0) {
      const Data = this.rest.subarray(0, PIECE_BYTES);
      this.rest = this.rest.subarray(PIECE_BYTES);
      if (!call.send(encodeMessage(GrpcNodeDebugChunk, { Data }))) return;
    }
    if (call.isOpen) call.end();
  }

  gone(): void {
    this.rest = Buffer.alloc(0);
  }
}
