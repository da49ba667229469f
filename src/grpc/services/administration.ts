/**
 * The administrative calls over gRPC, made from their descriptions: the services Cluster and
 * Backups, and the key-range calls of KeyValuer.
 *
 * Invariants: 1. While the node shuts down a call that has no refusals of its own
 * ends with UNAVAILABLE. 2. An answer that says no is a response, with the operation's own words; a
 * refusal is a status. 3. What is no valid message gets INVALID_ARGUMENT and reaches no operation.
 */
import type { Call } from "../../api/call.js";
import { CALL_LIST, type CallName } from "../../api/calls.js";
import type { OperationsPort } from "../../operations/api/requests.js";
import { ProtoWriter, protoReader } from "../../proto/codec.js";
import { readRequest, writeAnswer } from "../../proto/described.js";
import { Status } from "../h2/constants.js";
import { failureOf } from "../h2/failure.js";
import { BACKUP_CALL_MAX_MS } from "../../base/limits.js";
import { malformedRequest, notAtLevel, unadmitted } from "../calls/runtime.js";
import { ADMIN_BOUND_MS, type AdminMethod } from "../calls/unary.js";
import { backupFailure } from "./backup-refusals.js";

const NOTHING = Buffer.alloc(0);

/** The request in `bytes`, or null when they are none. */
function requestIn(call: Call, bytes: Buffer): object | null {
  try {
    return readRequest(call.request, protoReader(bytes));
  } catch {
    return null;
  }
}

function bytesOf(call: Call, answer: unknown): Buffer {
  const writer = new ProtoWriter(128);
  writeAnswer(call.answer, answer as never, writer);
  return writer.view(0);
}

function methodOf(operations: OperationsPort, name: CallName, call: Call): AdminMethod {
  return {
    path: call.grpc,
    role: call.access,
    boundMs: call.bound === "backup" ? BACKUP_CALL_MAX_MS : ADMIN_BOUND_MS,
    handle(bytes, context, respond) {
      if (!call.refusals && operations.isStopping()) {
        return respond(failureOf(Status.UNAVAILABLE, "the node is shutting down"), NOTHING);
      }
      const request = requestIn(call, bytes);
      if (request === null) return respond(malformedRequest(), NOTHING);
      const mistake = call.mistake?.(request as never) ?? null;
      if (mistake !== null) {
        return respond(failureOf(Status.INVALID_ARGUMENT, mistake.grpc), NOTHING);
      }
      // The request was read by the description from which its type follows.
      operations.administration[name](request as never, context, (end) => {
        if ("answer" in end) respond(null, bytesOf(call, end.answer));
        else if ("refused" in end) respond(unadmitted(end.refused), NOTHING);
        else if ("notAtLevel" in end) respond(notAtLevel(), NOTHING);
        else respond(backupFailure(end.refusal), NOTHING);
      });
    },
  };
}

export function adminMethods(operations: OperationsPort): AdminMethod[] {
  return CALL_LIST.map(([name, call]) => methodOf(operations, name, call));
}
