/** Contract 6.3 on both wires: every end of a call that changes ranges, from operations that a test decides. */
import { status as grpcStatus } from "@grpc/grpc-js";
import t from "tap";
import { decodeMessage, encodeMessage, type MessageCodec } from "../../../src/proto/codec.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import * as keyvalues from "../../../src/proto/generated/keyvalues.js";
import { FakeOperations } from "../../doubles/front/operations.js";
import {
  MERGE_ENDS,
  REGISTER_ENDS,
  SPLIT_ENDS,
  UNREGISTER_ENDS,
  type RangeEnd,
} from "../../doubles/front/range-ends.js";
import { callRaw, start } from "../grpc/harness.js";
import { startRig } from "../rest/harness.js";

interface Tested {
  readonly name: "ranges.register" | "ranges.unregister" | "ranges.split" | "ranges.merge";
  readonly ends: readonly RangeEnd[];
  readonly path: string;
  readonly body: object;
  readonly rpc: string;
  readonly request: Buffer;
  readonly response: MessageCodec<object>;
  /** Members besides success, status, determinate and reason, in their order on both wires. */
  readonly more: (success: boolean, status: string) => Readonly<Record<string, unknown>>;
  readonly hasDeterminate: boolean;
}

function hintOf(status: string): string {
  return status === "NotLeader" ? "http://b:8083" : "";
}
const switched = (success: boolean) => {
  return { routingMode: success ? "KeyRange" : "Hash", descriptorCount: success ? 3 : 0 };
};
const keySpace = { KeySpace: "s" };
const CALLS: readonly Tested[] = [
  {
    ...{ name: "ranges.register", ends: REGISTER_ENDS, hasDeterminate: false },
    ...{ path: "/v1/ranges/register", body: { keySpace: "s" } },
    rpc: "/KeyValuer/RegisterKeyRange",
    request: encodeMessage(keyvalues.GrpcRegisterKeyRangeRequest, keySpace),
    response: keyvalues.GrpcRegisterKeyRangeResponse,
    more: (success, status) => ({ seeded: status === "Seeded", ...switched(success) }),
  },
  {
    ...{ name: "ranges.unregister", ends: UNREGISTER_ENDS, hasDeterminate: false },
    ...{ path: "/v1/ranges/unregister", body: { keySpace: "s" } },
    rpc: "/KeyValuer/RemoveKeyRange",
    request: encodeMessage(keyvalues.GrpcRemoveKeyRangeRequest, keySpace),
    response: keyvalues.GrpcRemoveKeyRangeResponse,
    more: switched,
  },
  {
    ...{ name: "ranges.split", ends: SPLIT_ENDS, hasDeterminate: true },
    ...{ path: "/v1/ranges/split", body: { keySpace: "s", splitKey: "s/m" } },
    rpc: "/Cluster/SplitRange",
    request: encodeMessage(cluster.GrpcSplitRangeRequest, { ...keySpace, SplitKey: "s/m" }),
    response: cluster.GrpcSplitRangeResponse,
    more: (success, status) => {
      const made = success ? { newPartitionId: 17, newGeneration: 2 ** 40 } : {};
      return { newPartitionId: 0, newGeneration: 0, ...made, leaderHint: hintOf(status) };
    },
  },
  {
    ...{ name: "ranges.merge", ends: MERGE_ENDS, hasDeterminate: true },
    ...{ path: "/v1/ranges/merge", body: {} },
    rpc: "/Cluster/MergeRanges",
    request: encodeMessage(cluster.GrpcMergeRangesRequest, {}),
    response: cluster.GrpcMergeRangesResponse,
    more: (_success, status) => ({ merges: 4, leaderHint: hintOf(status) }),
  },
];

/** The answer of an operation that ends so. */
function answerOf(call: Tested, [status, end]: RangeEnd): Readonly<Record<string, unknown>> {
  const success = end === "done";
  return {
    success,
    status,
    ...(call.hasDeterminate ? { determinate: end !== "open" } : {}),
    ...call.more(success, status),
    reason: success ? "" : `${status}, in words`,
  };
}

function answers(operations: FakeOperations, call: Tested, end: RangeEnd): void {
  const administrative = operations.administrative as Record<string, unknown>;
  administrative[call.name] = { seeded: false, ...answerOf(call, end) };
}

t.test("6.3, 3.6 REST: 200, 400 for InvalidInput, else 409 with all members", async (t) => {
  const rig = await startRig();
  t.teardown(() => rig.close());
  for (const call of CALLS) {
    for (const end of call.ends) {
      const [status] = end;
      answers(rig.port, call, end);
      const { status: code, body, headers } = await rig.post(call.path, call.body);
      const given = answerOf(call, end);
      const what = `${call.path} ${status}`;
      if (end[1] === "done") {
        t.equal(code, 200, what);
        t.same(body, given, what);
        continue;
      }
      t.equal(code, status === "InvalidInput" ? 400 : 409, what);
      t.match(headers["content-type"], /^application\/problem\+json/, what);
      const problem = status === "InvalidInput" ? "invalid-argument" : "refused";
      t.match(body, { code: problem, type: `urn:svc:problem:${problem}`, detail: given["reason"] });
      t.match(body, given, `${what}: its own members win, status among them`);
    }
  }
  t.same(rig.faults, []);
});

t.test("6.3, 2.6 gRPC: OK with the same members, whatever the end", async (t) => {
  const { client, operations, faults } = await start(t);
  for (const call of CALLS) {
    for (const end of call.ends) {
      answers(operations, call, end);
      const { error, bytes } = await callRaw(client, call.rpc, call.request);
      const what = `${call.rpc} ${end[0]}`;
      t.equal(error?.code ?? grpcStatus.OK, grpcStatus.OK, what);
      const fields = decodeMessage(call.response, bytes as Buffer) as Record<string, unknown>;
      for (const [name, value] of Object.entries(answerOf(call, end))) {
        const field = fields[`${name.charAt(0).toUpperCase()}${name.slice(1)}`];
        const isInt64 = name === "newGeneration";
        const expected = isInt64 ? { low: 0, high: Number(value) / 2 ** 32 } : value;
        t.match(field, expected, `${what}: ${name}`);
      }
    }
  }
  t.same(faults, []);
});
