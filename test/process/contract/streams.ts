/** Contract 2.1, 2.5: batch streams, refused rpcs, reflection and health over gRPC. */
import type { Test } from "tap";
import type { Node } from "./node.js";

const UNSERVED = [
  "TryExecuteTransactionScript",
  "TryAcquireExclusiveLock",
  "TryAcquireManyExclusiveLocks",
  "TryAcquireExclusivePrefixLock",
  "TryAcquireExclusiveRangeLock",
  "TryReleaseExclusiveLock",
  "TryReleaseManyExclusiveLocks",
  "TryReleaseExclusivePrefixLock",
  "TryReleaseExclusiveRangeLock",
  "TryPrepareMutations",
  "TryPrepareManyMutations",
  "TryCommitMutations",
  "TryCommitManyMutations",
  "TryRollbackMutations",
  "TryRollbackManyMutations",
  "StartTransaction",
  "CommitTransaction",
  "RollbackTransaction",
  "AcquireSnapshotHold",
  "RenewSnapshotHold",
  "ReleaseSnapshotHold",
  "GetSnapshotFloor",
  "GetPartitionApplyFingerprint",
  "BatchServerKeyValueRequests",
];

export async function streams(t: Test, node: Node): Promise<void> {
  const { grpc } = node;

  await t.test("2.1 UNIMPLEMENTED, limits of a message", async (t) => {
    for (const name of UNSERVED)
      t.equal((await grpc.raw(`/KeyValuer/${name}`, Buffer.alloc(0))).code, 12, name);
    t.equal((await grpc.raw("/Nobody/Nothing", Buffer.alloc(0))).code, 12);
    const large = { Key: "a", Value: Buffer.alloc(4 * 1024 * 1024), Durability: 1 };
    t.equal((await grpc.call("KeyValuer", "TrySetKeyValue", large)).code, 8, "RESOURCE_EXHAUSTED");
    const unknown = Buffer.from([0x0a, 1, 0x61, 0xfa, 0x3f, 1, 0x61]);
    t.match(
      (await grpc.call("Locker", "GetLock", unknown)).fields,
      { Type: 102 },
      "unknown fields are ignored",
    );
    t.equal(
      (await grpc.call("Locker", "GetLock", Buffer.from([0x0a, 200]))).code !== 0,
      true,
      "truncated message",
    );
  });

  await t.test("health service and reflection", async (t) => {
    const checked = await grpc.raw("/grpc.health.v1.Health/Check", Buffer.alloc(0));
    t.same([checked.code, [...(checked.bytes ?? [])]], [0, [8, 1]], "SERVING");
    const named = await grpc.raw(
      "/grpc.health.v1.Health/Check",
      Buffer.from([0x0a, 6, ...Buffer.from("Locker")]),
    );
    t.same([...(named.bytes ?? [])], [8, 1]);
    const absent = await grpc.raw("/grpc.health.v1.Health/Check", Buffer.from([0x0a, 1, 0x7a]));
    t.equal(absent.code, 5, "NOT_FOUND");
  });

  await t.test("B1, B3, B4, B6 on Locker", async (t) => {
    const stream = grpc.stream("Locker", "BatchClientLockRequests");
    const lock = { Resource: "b/1", Owner: Buffer.from("o"), ExpiresMs: 60_000, Durability: 1 };
    stream.send({ Type: 1, RequestId: 7, TryLock: lock });
    t.same((await stream.headers).get("svc-batch-frames"), ["1"]);
    await stream.arrived(1);
    stream.send({ Type: 4, RequestId: -5, GetLock: { Resource: "b/1", durability: 1 } });
    stream.send({ Type: 2, RequestId: 8, ExtendLock: lock });
    stream.send({ Type: 9, RequestId: 9, TryLock: lock });
    stream.send({ Type: 0, RequestId: 10 });
    stream.send({ Type: 1, RequestId: 11 });
    stream.send({ Type: 1, RequestId: 12, Unlock: lock });
    await stream.arrived(7);
    const by = new Map(stream.received.map((item) => [item["RequestId"], item]));
    t.match(by.get(7), { Type: 1, TryLock: { Type: 0, FencingToken: "0" } });
    t.match(by.get(-5), { Type: 4, GetLock: { Type: 4, FencingToken: "0" } });
    t.match(by.get(8), { Type: 2, ExtendLock: { Type: 2 } });
    for (const [id, type] of [
      [9, 9],
      [10, 0],
      [11, 1],
      [12, 1],
    ] as const)
      t.match([by.get(id)?.["Type"], by.get(id)?.["payload"]], [type, undefined], `B4 ${id}`);
    const items = [
      { Type: 3, RequestId: 20, Unlock: lock },
      { Type: 15, RequestId: 21, Frame: { Items: [] } },
    ];
    stream.send({ Type: 15, RequestId: 19, Frame: { Items: items } });
    stream.half();
    t.equal(await stream.ended, 0, "B3");
    const framed = stream.received.slice(7).flatMap((answer) => {
      const frame = answer["Frame"] as { Items: Record<string, unknown>[] } | undefined;
      return frame?.Items ?? [answer];
    });
    const byId = new Map(framed.map((item) => [item["RequestId"], item]));
    t.match(byId.get(20), { Type: 3, Unlock: { Type: 3 } });
    t.match([byId.get(21)?.["Type"], byId.get(21)?.["payload"]], [15, undefined]);
  });

  await t.test("B6 bounds, all payloads of KeyValuer and Sequencer", async (t) => {
    const stream = grpc.stream("KeyValuer", "BatchClientKeyValueRequests");
    const items = Array.from({ length: 258 }, (_, at) => ({
      Type: 5,
      RequestId: at + 1,
      TryGetKeyValue: { Key: "b/none", Revision: -1, Durability: 1 },
    }));
    stream.send({ Type: 15, RequestId: 1, Frame: { Items: items } });
    const key = { Key: "b/k", Durability: 1 };
    const payloads = [
      { Type: 1, TrySetKeyValue: { ...key, Value: Buffer.from("v") } },
      { Type: 2, TrySetManyKeyValue: { Items: [key] } },
      { Type: 3, TryExtendKeyValue: { ...key, ExpiresMs: 1000 } },
      { Type: 4, TryDeleteKeyValue: key },
      { Type: 5, TryGetKeyValue: key },
      { Type: 6, TryExistsKeyValue: key },
      { Type: 9, GetByBucket: { PrefixKey: "b", Durability: 1 } },
      { Type: 10, ScanByPrefix: { PrefixKey: "b", Durability: 1 } },
      { Type: 14, TryDeleteManyKeyValue: { Items: [key] } },
    ];
    payloads.forEach((payload, at) => stream.send({ RequestId: 1000 + at, ...payload }));
    for (const type of [7, 8, 11, 12, 13, 99]) stream.send({ Type: type, RequestId: 2000 + type });
    stream.half();
    t.equal(await stream.ended, 0);
    const answers = stream.received.flatMap((answer) => {
      const frame = answer["Frame"] as { Items: Record<string, unknown>[] } | undefined;
      return frame?.Items ?? [answer];
    });
    t.equal(answers.length, 258 + payloads.length + 6, "B2 exactly one answer each");
    const types = answers
      .filter((answer) => (answer["RequestId"] as number) <= 258)
      .map((answer) => (answer["TryGetKeyValue"] as { Type: number }).Type);
    t.equal(types.filter((type) => type === 103).length, 256);
    t.equal(types.filter((type) => type === 101).length, 2, "beyond the bound: MustRetry");
    payloads.forEach((payload, at) => {
      const answer = answers.find((found) => found["RequestId"] === 1000 + at);
      t.equal(answer?.["payload"], Object.keys(payload)[1], JSON.stringify(Object.keys(payload)));
    });
    for (const answer of answers.filter((found) => (found["RequestId"] as number) >= 2000))
      t.match(
        [answer["Type"], answer["payload"]],
        [(answer["RequestId"] as number) - 2000, undefined],
      );

    const sequences = grpc.stream("Sequencer", "BatchClientSequenceRequests");
    const name = { Name: "b/s", Durability: 1 };
    const steps = [
      [{ Type: 1, CreateSequence: { ...name, Increment: 1 } }, { Sequence: { Type: 0 } }],
      [
        { Type: 4, NextSequenceValue: name },
        { Allocation: { Type: 0, Allocation: { Start: "1" } } },
      ],
      [
        { Type: 5, ReserveSequenceRange: { ...name, Count: 2 } },
        { Allocation: { Allocation: { End: "3" } } },
      ],
      [{ Type: 3, GetSequence: name }, { Sequence: { Sequence: { CurrentValue: "3" } } }],
      [
        { Type: 2, UpdateSequence: { ...name, Increment: 2 } },
        { Sequence: { Sequence: { Incarnation: "1" } } },
      ],
      [{ Type: 6, DeleteSequence: name }, { Sequence: { Type: 0 } }],
      [{ Type: 6, RequestId: 6, GetSequence: name }, { payload: undefined }],
    ] as const;
    for (const [at, [request, answer]] of steps.entries()) {
      sequences.send({ RequestId: at, ...request });
      await sequences.arrived(at + 1);
      t.match(sequences.received[at], { RequestId: at, ...answer });
    }
    sequences.half();
    t.equal(await sequences.ended, 0);
  });

  await t.test("2.3 the server stream of Locker has no frames", async (t) => {
    const stream = grpc.stream("Locker", "BatchServerLockRequests");
    const lock = { Resource: "b/2", Owner: Buffer.from("o"), ExpiresMs: 60_000, Durability: 1 };
    stream.send({ Type: 1, RequestId: 1, TryLock: lock, ForwardHops: 3 });
    stream.send({ Type: 15, RequestId: 2 });
    stream.half();
    t.equal(await stream.ended, 0);
    const by = new Map(stream.received.map((item) => [item["RequestId"], item]));
    t.match(by.get(1), { Type: 1, TryLock: { Type: 0 } });
    t.match([by.get(2)?.["Type"], by.get(2)?.["payload"]], [15, undefined]);
  });
}
