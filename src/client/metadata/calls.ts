/**
 * The administrative calls, as the client sends and reads them: made from their descriptions.
 *
 * Invariants: 1. Roles and outcomes are the texts of the REST
 * interface on both wires. 2. An answer that says no is a result; a refusal is an error made by the
 * transport.
 */
import type { Call } from "../../api/call.js";
import { CALL_LIST, type CallName, type RequestNamed, type ResultNamed } from "../../api/calls.js";
import { HEALTH } from "../../api/cluster.js";
import { NODE_DEBUG_MAX_BYTES } from "../../base/limits.js";
import type { ProtoReader } from "../../proto/codec.js";
import { readAnswer, writeRequest } from "../../proto/described.js";
import { GrpcGetNodeDebugRequest } from "../../proto/generated/cluster.js";
import * as health from "../../proto/generated/health.js";
import type { Operation } from "../call/operation.js";
import { answerFromJson, bodyText, pathText } from "../values/described.js";
import { asObject, boolOf, parseJson } from "../values/json.js";
import type { Health, NodeDebug } from "./results.js";

/** An operation whose answer is its result. */
type Plain<Request, Result> = Operation<Request, Result, Result>;

const SERVING = 1;

/** Members that every one of these operations has: what came is the result. */
const PLAIN = { stream: null, settle: <Result>(answer: Result): Result => answer } as const;

/**
 * The member that tells an answer of the call's own from a problem document: only calls that may
 * answer no with another status need one, and their answers begin with it.
 */
function markerOf(call: Call): { readonly marker?: string } {
  const [first] = Object.keys(call.answer.members);
  return call.status === undefined || first === undefined ? {} : { marker: first };
}

function operationOf(name: CallName, call: Call): Plain<never, unknown> {
  const { method, path } = call.rest;
  return {
    ...PLAIN,
    name,
    reads: call.reads,
    repeat: (request) => call.repeat(request),
    path: call.grpc,
    rest: {
      method,
      path: (request) => pathText(call.request, path, request),
      body: (request) => bodyText(call.request, request),
      ...markerOf(call),
    },
    write: (request, writer) => writeRequest(call.request, request, writer),
    fromGrpc: (reader, lengthBytes) => readAnswer(call.answer, reader, lengthBytes),
    fromRest: (body) => answerFromJson(call.answer, body),
  };
}

type Operations = { readonly [N in CallName]: Plain<RequestNamed<N>, ResultNamed<N>> };

/** Every call by its name. Their types follow from the descriptions that make them. */
export const CALL_OPERATIONS = Object.fromEntries(
  CALL_LIST.map(([name, call]) => [name, operationOf(name, call)]),
) as unknown as Operations;

/** Over gRPC it is the health service of the gRPC project that is asked. */
export const readHealth: Plain<Readonly<Record<string, never>>, Health> = {
  ...PLAIN,
  name: "health",
  reads: true,
  repeat: () => true,
  path: "/grpc.health.v1.Health/Check",
  rest: { method: "GET", path: () => "/v1/cluster/health", body: () => null, marker: "ready" },
  write: (_request, writer) => void health.HealthCheckRequest.encode({ service: "" }, writer),
  fromGrpc(reader, lengthBytes) {
    const message = health.HealthCheckResponse.decode(reader, lengthBytes);
    return { ready: message.status === SERVING, details: null };
  },
  fromRest(body) {
    const ready = boolOf(body, "ready");
    return { ready, details: answerFromJson(HEALTH, body) };
  },
};

interface DebugRequest {
  /** 0 = without a profile. */
  readonly profileSeconds: number;
}

/** The texts of messages that lie one behind the other. */
function piecesText(reader: ProtoReader, lengthBytes: number): string {
  const pieces: Uint8Array[] = [];
  while (reader.pos < lengthBytes) {
    const tag = reader.uint32();
    if (tag === DATA_TAG) pieces.push(reader.bytes());
    else reader.skipType(tag & 7);
  }
  return Buffer.concat(pieces).toString("utf8");
}

const DATA_TAG = (1 << 3) | 2;

/** What there is to find out what is wrong with a node: it takes the node ten seconds and more. */
export const readNodeDebug: Plain<DebugRequest, NodeDebug> = {
  ...PLAIN,
  name: "cluster.nodeDebug",
  reads: true,
  waits: () => true,
  repeat: () => true,
  path: "/Cluster/GetNodeDebug",
  piecesMaxBytes: 2 * NODE_DEBUG_MAX_BYTES,
  rest: {
    method: "GET",
    path: ({ profileSeconds: seconds }) =>
      seconds === 0 ? "/v1/node/debug" : `/v1/node/debug?profileSeconds=${seconds}`,
    body: () => null,
  },
  write: ({ profileSeconds }, writer) =>
    void GrpcGetNodeDebugRequest.encode({ ProfileSeconds: profileSeconds }, writer),
  fromGrpc: (reader, lengthBytes) =>
    asObject(parseJson(piecesText(reader, lengthBytes)), "node debug"),
  fromRest: (body) => body,
};
