/**
 * Answers to what does not get as far as a handler.
 *
 * Invariants: 1. Each ends its stream; the connection goes on.
 */
import type { ServerHttp2Stream } from "node:http2";
import { status } from "@grpc/grpc-js";

/** Answer to a request on the gRPC port that is not gRPC. */
export function refuseOther(stream: ServerHttp2Stream): void {
  stream.on("error", () => undefined);
  stream.respond({ ":status": 415 }, { endStream: true });
}

const REFUSALS = new Map<status, string>([
  [status.UNAUTHENTICATED, "valid credentials are needed"],
  [status.PERMISSION_DENIED, "the role of the caller does not allow this call"],
  [status.UNAVAILABLE, "the node is stopping; the call had no effect, repeat it at another node"],
]);

/** Ends a call that no handler has seen. */
export function refuseCall(stream: ServerHttp2Stream, code: status): void {
  stream.on("error", () => undefined);
  stream.respond(
    {
      ":status": 200,
      "content-type": "application/grpc+proto",
      "grpc-status": code,
      "grpc-message": REFUSALS.get(code) ?? "refused",
    },
    { endStream: true },
  );
}
