/**
 * Unary calls over a real connection: every method, presence, enums, statuses, contexts,
 * administrative calls.
 */
import { status } from "@grpc/grpc-js";
import t, { type Test } from "tap";
import { Int64 } from "../../../src/base/int64.js";
import { BACKUP_OUTCOMES } from "../../../src/api/backups.js";
import type { CallName } from "../../../src/api/calls.js";
import { LEAVE_OUTCOMES } from "../../../src/api/cluster.js";
import type { DataAnswer, DataRequest, KvManyItem } from "../../../src/operations/api/requests.js";
import {
  bigIntToHalves,
  decodeMessage,
  encodeMessage,
  halvesToBigInt,
} from "../../../src/proto/codec.js";
import type { Encodable, MessageCodec } from "../../../src/proto/codec.js";
import * as backups from "../../../src/proto/generated/backups.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import * as kv from "../../../src/proto/generated/keyvalues.js";
import * as locks from "../../../src/proto/generated/locks.js";
import * as sequences from "../../../src/proto/generated/sequences.js";
import { blankAnswer } from "../../doubles/front/operations.js";
import { call, callRaw, codeOf, eventually, identity, start, type Started } from "./harness.js";

const BIG = 2n ** 53n + 1n;
const EXPIRES = { n: 3, l: 1_700_000_000_123, c: 4_294_967_295 };
const MODIFIED = { n: -1, l: 1_600_000_000_000, c: 7 };
const ROUTE = { partitionId: 5, endpoint: "http://n", provenance: 2, generation: 8 };
const FULL = { servedFrom: "http://me", route: ROUTE, refusal: null };
const HINT = { PartitionId: 5, Endpoint: "http://n", Provenance: 2 };

/** Calls a method and gives the request that came down and the response. */
async function exchange<Q, P>(
  started: Started,
  path: string,
  request: MessageCodec<Q>,
  message: Encodable<Q>,
  response: MessageCodec<P>,
): Promise<{ readonly down: DataRequest | undefined; readonly up: P }> {
  const before = started.operations.recorded.length;
  const up = await call(started.client, path, request, message, response);
  return { down: started.operations.recorded[before]?.request, up };
}

t.test("P-053 sequences: requests come down whole, answers go up whole", async (t) => {
  const started = await start(t);
  const { operations } = started;
  const path = "/Sequencer/";
  const create = sequences.GrpcCreateSequenceRequest;
  const response = sequences.GrpcSequenceResponse;
  const entry = {
    name: "s",
    currentValue: Int64.fromBigInt(BIG),
    initialValue: Int64.fromBigInt(-BIG),
    increment: Int64.fromNumber(2),
    maxValue: Int64.fromNumber(0),
    blockSize: 0,
    incarnation: 3,
    revision: 9,
    createdAt: EXPIRES,
    updatedAt: MODIFIED,
  };
  operations.script = (request): DataAnswer => {
    if (request.kind === "next-sequence" || request.kind === "reserve-sequence") {
      const start = Int64.fromBigInt(BIG);
      const end = Int64.fromBigInt(2n ** 63n - 1n);
      const allocation = { name: "s", start, end, count: 4, revision: 6 };
      return { ...FULL, type: 0, kind: "allocation", allocation };
    }
    return { ...FULL, type: 0, kind: "sequence", sequence: entry, revision: 9 };
  };
  const message = {
    Name: " ä ",
    InitialValue: bigIntToHalves(-BIG),
    Increment: 2,
    MaxValue: 0,
    Durability: 1,
    BlockSize: 0,
  };
  const created = await exchange(started, `${path}CreateSequence`, create, message, response);
  t.strictSame(created.down, {
    kind: "create-sequence",
    name: " ä ",
    initialValue: -BIG,
    increment: 2n,
    maxValue: 0n,
    blockSize: 0,
    durability: 1,
  });
  const got = created.up;
  t.match(got, { ServedFrom: "http://me", Type: 0, Route: HINT });
  t.match(got.Sequence, { Name: "s", BlockSize: 0, Durability: 1, CreatedAtNode: 3 });
  t.match(got.Sequence, { CreatedAtCounter: 4_294_967_295, UpdatedAtNode: -1 });
  t.equal(halvesToBigInt(got.Sequence?.CurrentValue ?? Int64.ZERO), BIG);
  t.equal(halvesToBigInt(got.Sequence?.InitialValue ?? Int64.ZERO), -BIG);
  t.equal(halvesToBigInt(got.Sequence?.UpdatedAtPhysical ?? Int64.ZERO), BigInt(MODIFIED.l));
  t.equal(halvesToBigInt(got.Sequence?.Incarnation ?? Int64.ZERO), 3n);
  t.equal(got.Sequence?.MaxValue === null, false, "a maximum of 0 is a maximum");

  const empty = await exchange(started, `${path}CreateSequence`, create, {}, response);
  t.strictSame(empty.down, {
    kind: "create-sequence",
    name: "",
    initialValue: 0n,
    increment: 0n,
    maxValue: null,
    blockSize: null,
    durability: 0,
  });
  const update = sequences.GrpcUpdateSequenceRequest;
  const updated = await exchange(
    started,
    `${path}UpdateSequence`,
    update,
    { Name: "u", CurrentValue: 0, RemoveMaxValue: true, Durability: 7 },
    response,
  );
  t.strictSame(updated.down, {
    kind: "update-sequence",
    name: "u",
    currentValue: 0n,
    increment: null,
    initialValue: null,
    maxValue: null,
    removeMaxValue: true,
    blockSize: null,
    removeBlockSize: false,
    durability: 7,
  });
  for (const name of ["Get", "Delete"] as const) {
    const codec = sequences[`Grpc${name}SequenceRequest`];
    const message = { Name: "g", Durability: 1 };
    const { down } = await exchange(started, `${path}${name}Sequence`, codec, message, response);
    t.strictSame(down, { kind: `${name.toLowerCase()}-sequence`, name: "g", durability: 1 });
  }
  const allocation = sequences.GrpcSequenceAllocationResponse;
  const next = sequences.GrpcNextSequenceRequest;
  for (const key of [null, "", "k"]) {
    const message = { Name: "n", IdempotencyKey: key, Durability: 1 };
    const one = await exchange(started, `${path}NextSequenceValue`, next, message, allocation);
    t.match(one.down, { kind: "next-sequence", idempotencyKey: key });
    t.equal(halvesToBigInt(one.up.Allocation?.End ?? Int64.ZERO), 2n ** 63n - 1n);
    t.match(one.up, { Type: 0, Allocation: { Name: "s", Count: 4 }, Route: HINT });
  }
  const reserve = sequences.GrpcReserveSequenceRangeRequest;
  const wish = { Name: "r", Count: -3, Durability: 1 };
  const reserved = await exchange(
    started,
    `${path}ReserveSequenceRange`,
    reserve,
    wish,
    allocation,
  );
  t.match(reserved.down, { kind: "reserve-sequence", count: -3, idempotencyKey: null });
});

t.test("locks: requests come down whole, answers go up whole", async (t) => {
  const started = await start(t);
  started.operations.script = (): DataAnswer => ({
    ...FULL,
    kind: "lock",
    type: 4,
    fencingToken: Int64.fromBigInt(2n ** 62n),
    owner: Buffer.from("me"),
    expires: EXPIRES,
    expiresInMs: 12,
    leaseLeftMs: 11,
    waitedMs: 3,
    position: 2,
    waiters: 4,
    note: Buffer.from("noted"),
  });
  const owner = Buffer.from([0, 255, 1]);
  const take = { Resource: "r", Owner: owner, ExpiresMs: -5, Durability: 2 };
  const token = locks.GrpcTryLockResponse;
  const taken = await exchange(started, "/Locker/TryLock", locks.GrpcTryLockRequest, take, token);
  t.match(taken.down, { kind: "try-lock", resource: "r", expiresMs: -5, durability: 2 });
  t.strictSame(Reflect.get(taken.down ?? {}, "owner"), new Uint8Array(owner));
  t.equal(halvesToBigInt(taken.up.FencingToken), 2n ** 62n);
  t.match(taken.up, { ServedFrom: "http://me", Type: 4, Route: HINT });
  const extended = await exchange(
    started,
    "/Locker/TryExtendLock",
    locks.GrpcExtendLockRequest,
    { Resource: "r" },
    locks.GrpcExtendLockResponse,
  );
  t.match(extended.down, { kind: "try-extend", expiresMs: 0, durability: 0 });
  t.strictSame(Reflect.get(extended.down ?? {}, "owner"), new Uint8Array(0));
  const released = await exchange(
    started,
    "/Locker/Unlock",
    locks.GrpcUnlockRequest,
    { Resource: "r", Owner: owner, Durability: 1 },
    locks.GrpcUnlockResponse,
  );
  t.match(released.down, { kind: "try-unlock", resource: "r", durability: 1 });
  t.strictSame(Object.keys(released.up).sort(), ["Route", "ServedFrom", "Type"]);
  const info = await exchange(
    started,
    "/Locker/GetLock",
    locks.GrpcGetLockRequest,
    { Resource: "r", durability: 1 },
    locks.GrpcGetLockResponse,
  );
  t.match(info.down, { kind: "get-lock", resource: "r", durability: 1 });
  t.match(info.up, { ExpiresNode: 3, ExpiresCounter: 4_294_967_295, Type: 4 });
  t.equal(Buffer.from(info.up.Owner ?? []).toString(), "me");
});

t.test(
  "P-142 every type of every service goes up as its number; refusals are types, not errors",
  async (t) => {
    const started = await start(t);
    const { operations } = started;
    const lockTypes = [0, 1, 2, 3, 4, 99, 100, 101, 102, 103, 104];
    const ask = async (kind: "lock" | "kv" | "sequence", type: number): Promise<number> => {
      operations.script = (request) => blankAnswer(request.kind, type);
      const paths = {
        lock: ["/Locker/GetLock", locks.GrpcGetLockRequest, locks.GrpcGetLockResponse],
        kv: [
          "/KeyValuer/TryGetKeyValue",
          kv.GrpcTryGetKeyValueRequest,
          kv.GrpcTryGetKeyValueResponse,
        ],
        sequence: [
          "/Sequencer/GetSequence",
          sequences.GrpcGetSequenceRequest,
          sequences.GrpcSequenceResponse,
        ],
      } as const;
      const [path, request, response] = paths[kind];
      type Typed = MessageCodec<{ readonly Type: number; readonly ServedFrom: string | null }>;
      const answer = await call(
        started.client,
        path,
        request as MessageCodec<object>,
        {},
        response as unknown as Typed,
      );
      t.equal(answer.ServedFrom, null, "absent when refused before execution");
      t.equal(Reflect.get(answer, "Route"), null);
      return answer.Type;
    };
    for (const type of lockTypes) t.equal(await ask("lock", type), type);
    for (const type of [0, 1, 2, 3, 4, 10, 99, 100, 101, 102, 103]) {
      t.equal(await ask("kv", type), type);
    }
    for (const type of [0, 1, 2, 3, 4, 5, 6, 99]) t.equal(await ask("sequence", type), type);
    operations.script = (request) => operations.mustRetry(request.kind, "overloaded");
    const many = await call(
      started.client,
      "/KeyValuer/TrySetManyKeyValue",
      kv.GrpcTrySetManyKeyValueRequest,
      { Items: [{ Key: "a", Durability: 1 }, { Key: "b" }] },
      kv.GrpcTrySetManyKeyValueResponse,
    );
    t.match(many.Items, [
      { Type: 101, Key: "a", Durability: 1, RouteIndex: 0 },
      { Type: 101, Key: "b", Durability: 0, RouteIndex: 0 },
    ]);
    t.equal(halvesToBigInt(many.Items[0]?.Revision ?? Int64.ZERO), -1n, "K10");
  },
);

t.test("key/value on one key: presence, revisions, transactional fields", async (t) => {
  const started = await start(t);
  const { operations } = started;
  operations.script = (request): DataAnswer => ({
    ...FULL,
    kind: "kv",
    type: 3,
    value: request.kind === "kv-get" ? new Uint8Array(0) : null,
    revision: -1,
    expires: EXPIRES,
    lastModified: MODIFIED,
    state: 2,
  });
  const setCodec = kv.GrpcTrySetKeyValueRequest;
  const set = (message: Encodable<kv.GrpcTrySetKeyValueRequest>) =>
    exchange(
      started,
      "/KeyValuer/TrySetKeyValue",
      setCodec,
      message,
      kv.GrpcTrySetKeyValueResponse,
    );
  const bare = await set({ Key: "k" });
  t.strictSame(bare.down, {
    kind: "kv-set",
    key: "k",
    value: null,
    compareValue: null,
    compareRevision: 0n,
    expiresMs: 0,
    flags: 0,
    durability: 0,
    plain: true,
  });
  t.match(bare.up, { Type: 3, LastModifiedNode: -1, LastModifiedCounter: 7, Route: HINT });
  t.equal(halvesToBigInt(bare.up.Revision), -1n);
  const whole = await set({
    Key: "k",
    Value: Buffer.alloc(0),
    CompareValue: Buffer.from("x"),
    CompareRevision: -1,
    Flags: 1 + 16 + 4096,
    ExpiresMs: -1,
    Durability: 9,
    ConflictPolicy: 1,
  });
  t.match(whole.down, { compareRevision: -1n, flags: 4113, expiresMs: -1, durability: 9 });
  t.match(whole.down, { plain: true });
  t.strictSame(Reflect.get(whole.down ?? {}, "value"), new Uint8Array(0), "K7 empty is not null");
  const marks: Encodable<kv.GrpcTrySetKeyValueRequest>[] = [
    { TransactionIdNode: 1 },
    { TransactionIdPhysical: 1 },
    { TransactionIdCounter: 1 },
    { RoutedGeneration: 1 },
    { CoordinatorKey: "c" },
    { OperationIdHigh: 1 },
    { OperationIdLow: 1 },
    { ConflictPolicy: 2 },
    { ConflictPolicy: 77 },
  ];
  for (const mark of marks) t.match((await set({ Key: "k", ...mark })).down, { plain: false });
  const get = kv.GrpcTryGetKeyValueRequest;
  const path = "/KeyValuer/TryGetKeyValue";
  const got = await exchange(
    started,
    path,
    get,
    { Key: "k", Revision: -1 },
    kv.GrpcTryGetKeyValueResponse,
  );
  t.match(got.down, { kind: "kv-get", revision: -1n, plain: true });
  t.match(got.up, { State: 2, ExpiresNode: 3, LastUsedNode: -1, LastUsedCounter: 7 });
  t.equal(got.up.Value?.length, 0, "an empty value is present");
  const unset = await exchange(started, path, get, {}, kv.GrpcTryGetKeyValueResponse);
  t.match(unset.down, { revision: 0n, key: "", durability: 0 }, "K3 unset is revision 0");
  for (const mark of [{ ReadTimestampNode: 1 }, { ReadTimestampPhysical: 1 }] as const) {
    const marked = await exchange(started, path, get, mark, kv.GrpcTryGetKeyValueResponse);
    t.match(marked.down, { plain: false });
  }
  const exists = await exchange(
    started,
    "/KeyValuer/TryExistsKeyValue",
    kv.GrpcTryExistsKeyValueRequest,
    { Key: "e", Revision: 4 },
    kv.GrpcTryExistsKeyValueResponse,
  );
  t.match(exists.down, { kind: "kv-exists", revision: 4n });
  t.match(exists.up, { State: 2, ServedFrom: "http://me" });
  const extend = await exchange(
    started,
    "/KeyValuer/TryExtendKeyValue",
    kv.GrpcTryExtendKeyValueRequest,
    { Key: "e", ExpiresMs: 5, Durability: 1 },
    kv.GrpcTryExtendKeyValueResponse,
  );
  t.strictSame(extend.down, {
    kind: "kv-extend",
    key: "e",
    expiresMs: 5,
    durability: 1,
    plain: true,
  });
  const removed = await exchange(
    started,
    "/KeyValuer/TryDeleteKeyValue",
    kv.GrpcTryDeleteKeyValueRequest,
    { Key: "e", ConflictPolicy: 2 },
    kv.GrpcTryDeleteKeyValueResponse,
  );
  t.strictSame(removed.down, { kind: "kv-delete", key: "e", durability: 0, plain: false });
});

t.test("key/value on many keys: items in order, routes, envelopes", async (t) => {
  const started = await start(t);
  const item = (key: string, routeIndex: number): KvManyItem => ({
    key,
    durability: 1,
    type: 3,
    servedFrom: routeIndex === 0 ? null : "http://x",
    value: routeIndex === 0 ? null : Buffer.from("v"),
    revision: 6,
    expires: EXPIRES,
    lastModified: MODIFIED,
    state: 1,
    routeIndex,
  });
  started.operations.script = (): DataAnswer => ({
    ...FULL,
    type: 0,
    kind: "kv-many",
    items: [item("b", 1), item("a", 0)],
    routes: [ROUTE],
  });
  const keys = [{ Key: "b" }, { Key: "a", Revision: 3, Durability: 1 }];
  const got = await exchange(
    started,
    "/KeyValuer/TryGetManyValues",
    kv.GrpcTryGetManyValuesRequest,
    { Items: keys, TransactionIdNode: 1 },
    kv.GrpcTryGetManyValuesResponse,
  );
  t.strictSame(got.down, {
    kind: "kv-get-many",
    plain: false,
    items: [
      { kind: "kv-get", key: "b", revision: 0n, durability: 0, plain: false },
      { kind: "kv-get", key: "a", revision: 3n, durability: 1, plain: false },
    ],
  });
  t.match(got.up.Items, [
    { Key: "b", RouteIndex: 1, State: 1, LastUsedNode: -1, ExpiresNode: 3 },
    { Key: "a", RouteIndex: 0, Value: null },
  ]);
  t.match(got.up, { ServedFrom: "http://me", Routes: [HINT] });
  const exists = await exchange(
    started,
    "/KeyValuer/TryExistsManyValues",
    kv.GrpcTryExistsManyValuesRequest,
    { Items: keys },
    kv.GrpcTryExistsManyValuesResponse,
  );
  t.match(exists.down, { kind: "kv-exists-many", plain: true, items: [{ kind: "kv-exists" }] });
  t.match(exists.up.Items, [{ Key: "b", Durability: 1, Type: 3 }]);
  const set = await exchange(
    started,
    "/KeyValuer/TrySetManyKeyValue",
    kv.GrpcTrySetManyKeyValueRequest,
    {
      Items: [
        { Key: "b", Value: Buffer.from("1"), Flags: 8 },
        { Key: "a", RoutedGeneration: 1 },
      ],
    },
    kv.GrpcTrySetManyKeyValueResponse,
  );
  t.match(set.down, {
    kind: "kv-set-many",
    items: [
      { key: "b", flags: 8, plain: true },
      { key: "a", value: null, plain: false },
    ],
  });
  t.match(set.up.Items, [
    { Key: "b", ServedFrom: "http://x", LastModifiedNode: -1 },
    { Key: "a", ServedFrom: null },
  ]);
  const removed = await exchange(
    started,
    "/KeyValuer/TryDeleteManyKeyValue",
    kv.GrpcTryDeleteManyKeyValueRequest,
    { Items: [{ Key: "b", Durability: 1 }], OperationIdLow: 1 },
    kv.GrpcTryDeleteManyKeyValueResponse,
  );
  t.match(removed.down, { kind: "kv-delete-many", plain: false, items: [{ key: "b" }] });
});

/** A page of two keys. */
function page(more: boolean): DataAnswer {
  const stamps = { expires: EXPIRES, lastModified: MODIFIED };
  return {
    ...FULL,
    kind: "kv-page",
    type: 3,
    items: [
      { key: "p/a", value: null, revision: 1, state: 2, ...stamps },
      { key: "p/b", value: Buffer.from("x"), revision: 2, state: 1, ...stamps },
    ],
    nextCursor: more ? "next" : null,
    hasMore: more,
    tooLarge: false,
  };
}

t.test("buckets, scans and ranges", async (t) => {
  const started = await start(t);
  const { operations, client } = started;
  operations.script = () => page(true);
  const bucket = await exchange(
    started,
    "/KeyValuer/GetByBucket",
    kv.GrpcGetByBucketRequest,
    { PrefixKey: "p", Durability: 1 },
    kv.GrpcGetByBucketResponse,
  );
  t.strictSame(bucket.down, { kind: "kv-bucket", bucket: "p", durability: 1, plain: true });
  t.match(bucket.up, { ServedFrom: "http://me", Type: 3 });
  t.match(bucket.up.Items, [
    { Key: "p/a", Value: null, State: 2 },
    { Key: "p/b", LastUsedNode: -1, ExpiresNode: 3, State: 1 },
  ]);
  const all = await exchange(
    started,
    "/KeyValuer/ScanAllByPrefix",
    kv.GrpcScanAllByPrefixRequest,
    { PrefixKey: "p", Limit: 7, Cursor: "" },
    kv.GrpcScanAllByPrefixResponse,
  );
  t.match(all.down, { kind: "kv-scan-all", limit: 7, cursor: "", includeTombstones: false });
  t.match(all.up, { Type: 3, NextCursor: "next", HasMore: true });
  const local = await exchange(
    started,
    "/KeyValuer/ScanByPrefix",
    kv.GrpcScanByPrefixRequest,
    { PrefixKey: "p", IncludeTombstones: true },
    kv.GrpcScanByPrefixResponse,
  );
  t.match(local.down, { kind: "kv-scan-local", includeTombstones: true, cursor: null, limit: 0 });
  t.match(local.up, { ServedFrom: "http://me", HasMore: true });
  const range = await exchange(
    started,
    "/KeyValuer/GetByRange",
    kv.GrpcGetByRangeRequest,
    { Prefix: "p", StartKey: "", EndInclusive: true, Limit: 2 },
    kv.GrpcGetByRangeResponse,
  );
  t.strictSame(range.down, {
    kind: "kv-range",
    prefix: "p",
    startKey: "",
    startInclusive: false,
    endKey: null,
    endInclusive: true,
    limit: 2,
    cursor: null,
    durability: 0,
    plain: true,
  });
  const open = { Prefix: "p", SnapshotAtLeader: true };
  const response = kv.GrpcGetByRangeResponse;
  const path = "/KeyValuer/GetByRange";
  const unset = await exchange(started, path, kv.GrpcGetByRangeRequest, open, response);
  t.match(unset.down, { startKey: null, startInclusive: true, plain: false });
  operations.script = (): DataAnswer => ({
    ...blankAnswer("kv-bucket", 3),
    kind: "kv-page",
    items: [],
    nextCursor: null,
    hasMore: false,
    tooLarge: true,
  });
  const bytes = encodeMessage(kv.GrpcGetByBucketRequest, { PrefixKey: "p" });
  for (const rpc of ["GetByBucket", "ScanAllByPrefix", "ScanByPrefix"]) {
    const code = await codeOf(client, `/KeyValuer/${rpc}`, bytes);
    t.equal(code, status.RESOURCE_EXHAUSTED, `K14, K15: ${rpc}`);
  }
});

t.test("GetByRangeStream sends all pages and stops at a page that is not Got", async (t) => {
  const { operations, client } = await start(t);
  const read = (limit: number): Promise<{ pages: number; last: number; code: number }> => {
    const bytes = encodeMessage(kv.GrpcGetByRangeRequest, { Prefix: "p", Limit: limit });
    const path = "/KeyValuer/GetByRangeStream";
    const stream = client.makeServerStreamRequest(path, identity, identity, bytes);
    return new Promise((resolve) => {
      let pages = 0;
      let last = -1;
      stream.on("data", (data: Buffer) => {
        pages += 1;
        last = decodeMessage(kv.GrpcGetByRangePageResponse, data)?.Type ?? -2;
      });
      stream.on("error", () => undefined);
      stream.on("status", ({ code }) => resolve({ pages, last, code }));
    });
  };
  let count = 0;
  operations.script = () => page(++count % 5 !== 0);
  t.strictSame(await read(2), { pages: 5, last: 3, code: 0 });
  t.match(operations.recorded.map(({ request }) => request).slice(0, 2), [
    { startKey: null, startInclusive: true, limit: 2 },
    { startKey: "p/b", startInclusive: false, limit: 2 },
  ]);
  operations.script = (request) =>
    ++count % 2 === 0 ? page(true) : blankAnswer(request.kind, 101);
  t.match(await read(0), { last: 101, code: 0 });
});

t.test("C9 each page of a range stream has a deadline within the bound of a request", async (t) => {
  const boundMs = 20_000;
  const { operations, client } = await start(t, { requestTimeoutMs: boundMs });
  let pages = 0;
  operations.script = () => page(++pages % 3 !== 0);
  /** How long the third page had, from before and from behind. */
  const left = async (deadlineMs: number | null): Promise<[latest: number, earliest: number]> => {
    const bytes = encodeMessage(kv.GrpcGetByRangeRequest, { Prefix: "p" });
    const path = "/KeyValuer/GetByRangeStream";
    const options = deadlineMs === null ? {} : { deadline: Date.now() + deadlineMs };
    const before = performance.now();
    const stream = client.makeServerStreamRequest(path, identity, identity, bytes, options);
    const code = await new Promise<number>((resolve) => {
      stream.on("data", () => undefined);
      stream.on("error", () => undefined);
      stream.on("status", (ended) => resolve(ended.code));
    });
    t.equal(code, 0);
    const last = operations.recorded.slice(-3).map(({ context }) => context.deadlineMs);
    t.equal(last.length, 3);
    t.ok(deadlineMs === null ? last[0] !== last[2] : true, "each page has its own");
    return [(last[2] ?? NaN) - before, (last[2] ?? NaN) - performance.now()];
  };
  for (const given of [null, 60_000]) {
    const [latest, earliest] = await left(given);
    t.ok(latest >= boundMs && earliest <= boundMs, "the server's own bound");
  }
  const [latest, earliest] = await left(10_000);
  // Two clocks are compared, of which one counts whole milliseconds.
  t.ok(latest <= 10_000 + (latest - earliest) + 5 && earliest > 0, "the client's shorter deadline");
});

t.test(
  "P-143 P-146 what is no valid message is INVALID_ARGUMENT and reaches no operation",
  async (t) => {
    const { client, operations, faults } = await start(t);
    const invalid = Buffer.from([0x0a, 2, 0xc3, 0x28]);
    const paths = ["/Sequencer/NextSequenceValue", "/Locker/GetLock", "/KeyValuer/GetByBucket"];
    const bodies: [string, Buffer][] = [
      ["/Sequencer/NextSequenceValue", invalid],
      ["/Locker/GetLock", invalid],
      ["/KeyValuer/TryGetKeyValue", Buffer.from([0x22, 1, 0xff])],
      ["/Cluster/GetRanges", invalid],
      ["/Backups/ValidateChain", invalid],
      ["/grpc.health.v1.Health/Check", invalid],
    ];
    for (const path of paths) bodies.push([path, Buffer.from([0x0a, 200, 1, 2])]);
    for (const [path, body] of bodies) {
      t.equal(await codeOf(client, path, body), status.INVALID_ARGUMENT, path);
    }
    const nested = Buffer.from([0x0a, 4, 0x22, 2, 0xc3, 0x28]);
    t.equal(await codeOf(client, "/KeyValuer/TrySetManyKeyValue", nested), status.INVALID_ARGUMENT);
    t.equal(operations.recorded.length + operations.administered.length, 0);
    const unknown = Buffer.from([0x0a, 1, 0x61, 0xfa, 0x3f, 1, 0]);
    t.equal(await codeOf(client, "/Locker/GetLock", unknown), 0, "unknown fields are ignored");
    t.strictSame(faults, []);
  },
);

const NOT_SERVED =
  "TryExecuteTransactionScript TryAcquireExclusiveLock TryAcquireManyExclusiveLocks " +
  "TryAcquireExclusivePrefixLock TryAcquireExclusiveRangeLock TryReleaseExclusiveLock " +
  "TryReleaseManyExclusiveLocks TryReleaseExclusivePrefixLock TryReleaseExclusiveRangeLock " +
  "TryPrepareMutations TryPrepareManyMutations TryCommitMutations TryCommitManyMutations " +
  "TryRollbackMutations TryRollbackManyMutations StartTransaction CommitTransaction " +
  "RollbackTransaction AcquireSnapshotHold RenewSnapshotHold ReleaseSnapshotHold " +
  "GetSnapshotFloor GetPartitionApplyFingerprint BatchServerKeyValueRequests";

t.test(
  "methods that are not served are UNIMPLEMENTED, the no-op only exists by option",
  async (t) => {
    const { client } = await start(t);
    for (const name of NOT_SERVED.split(" ")) {
      t.equal(await codeOf(client, `/KeyValuer/${name}`), status.UNIMPLEMENTED, name);
    }
    t.equal(await codeOf(client, "/Bench/Noop"), status.UNIMPLEMENTED);
    const measured = await start(t, { noopMethod: true });
    t.equal(await codeOf(measured.client, "/Bench/Noop", Buffer.from("x")), 0);
  },
);

t.test(
  "P-147 contexts: deadlines, hops and request ids come down; the bound ends a call",
  async (t) => {
    const { client, operations } = await start(t, { requestTimeoutMs: 1000 });
    const path = "/Locker/GetLock";
    const context = async (
      metadata: Readonly<Record<string, string>>,
      deadlineMs: number | null = null,
    ) => {
      const options = deadlineMs === null ? {} : { deadline: Date.now() + deadlineMs };
      const before = performance.now();
      await callRaw(client, path, Buffer.alloc(0), metadata, options);
      const recorded = operations.recorded.at(-1);
      if (recorded === undefined) throw new Error("the request came down");
      return { ...recorded.context, leftMs: recorded.context.deadlineMs - before };
    };
    const bare = await context({});
    t.equal(bare.forwardHops, 0);
    t.ok(bare.leftMs > 900 && bare.leftMs < 3000, "the server's own bound");
    t.match(bare.requestId, /^[\x21-\x7e]{1,128}$/);
    t.not((await context({})).requestId, bare.requestId);
    t.ok((await context({}, 500)).leftMs < 600, "the client's shorter deadline");
    t.ok((await context({}, 60_000)).leftMs < 3000, "a longer one does not extend the bound");
    t.equal((await context({ "svc-forwarded": "2" })).forwardHops, 2);
    t.equal((await context({ "svc-forwarded": "x" })).forwardHops, 0);
    t.equal((await context({ "x-request-id": "abc-1" })).requestId, "abc-1");
    t.not((await context({ "x-request-id": "a b" })).requestId, "a b");
    t.not((await context({ "x-request-id": "x".repeat(129) })).requestId.length, 129);
    operations.script = () => null;
    const late = await callRaw(client, path, Buffer.alloc(0), {}, { deadline: Date.now() + 100 });
    t.equal(late.error?.code, status.DEADLINE_EXCEEDED);
    const before = operations.recorded.length;
    const cancelled = new Promise<number>((resolve) => {
      const open = client.makeUnaryRequest(path, identity, identity, Buffer.alloc(0), (error) =>
        resolve(error?.code ?? 0),
      );
      void eventually(() => operations.recorded.length > before).then(() => open.cancel());
    });
    t.equal(await cancelled, status.CANCELLED);
    for (const { request, done } of operations.recorded) done(blankAnswer(request.kind, 0));
    operations.script = (request) => blankAnswer(request.kind, 4);
    t.equal(await codeOf(client, path), 0, "late answers to dead calls do no harm");
  },
);

t.test("messages over the limit are RESOURCE_EXHAUSTED, large ones below it pass", async (t) => {
  const { client, operations } = await start(t);
  const set = (size: number): Buffer =>
    encodeMessage(kv.GrpcTrySetKeyValueRequest, { Key: "k", Value: Buffer.alloc(size, 1) });
  const path = "/KeyValuer/TrySetKeyValue";
  t.equal(await codeOf(client, path, set(4 * 1024 * 1024)), status.RESOURCE_EXHAUSTED);
  t.equal(operations.recorded.length, 0);
  t.equal(await codeOf(client, path, set(3 * 1024 * 1024)), 0);
  t.equal((Reflect.get(operations.recorded[0]?.request ?? {}, "value") as Buffer).length, 3 << 20);
});

t.test("a fault in a handler ends the call with INTERNAL and is reported", async (t) => {
  const { client, operations, faults, faultIds } = await start(t);
  operations.script = () => {
    throw new Error("planted");
  };
  t.equal(await codeOf(client, "/Locker/GetLock"), status.INTERNAL);
  t.match(faults, [{ message: "planted" }]);
  await callRaw(client, "/Locker/GetLock", Buffer.alloc(0), { "x-request-id": "mine" });
  t.match(faultIds, [/^[0-9a-f]{10}-[0-9a-z]+$/, "mine"]);
});

async function checkClusterReads(t: Test, { client, operations }: Started): Promise<void> {
  const membership = await call(
    client,
    "/Cluster/GetMembership",
    cluster.GrpcGetMembershipRequest,
    {},
    cluster.GrpcGetMembershipResponse,
  );
  t.match(membership, { LocalRole: 1, Initialized: true });
  t.match(membership.Members, [{ Endpoint: "a:1", NodeId: 1, Role: 1 }, { Role: 0 }, { Role: 2 }]);
  t.equal(halvesToBigInt(membership.MembershipVersion), 7n);
  const placement = await call(
    client,
    "/Cluster/GetPlacement",
    cluster.GrpcGetPlacementRequest,
    {},
    cluster.GrpcGetPlacementResponse,
  );
  t.match(placement, { ReplicationFactor: 3, RebalancerEnabled: true, HostedPartitionCount: 2 });
  t.match(placement.Partitions, [{ PartitionId: 1, State: "Active", HostedLocally: true }]);
  t.match(placement.Partitions[0]?.Replicas, [{ Role: 0 }, { Role: 1 }, { Role: 2 }]);
  const ranges = await call(
    client,
    "/Cluster/GetRanges",
    cluster.GrpcGetRangesRequest,
    { KeySpace: "z" },
    cluster.GrpcGetRangesResponse,
  );
  t.strictSame(operations.administered.at(-1), ["ranges.list", { keySpace: "z" }]);
  t.match(ranges.KeySpaces, [{ KeySpace: "orders", RoutingMode: "KeyRange" }]);
  const expected = [
    { StartKey: null, EndKey: "m", PartitionId: 1 },
    { StartKey: "m", EndKey: "", PartitionId: 2 },
  ];
  t.match(ranges.KeySpaces[0]?.Descriptors, expected, "an open end and an empty one differ");
  const [space] = ranges.KeySpaces;
  t.match(
    space?.Descriptors,
    [{ Keys: null }, { Keys: { low: 41, high: 0 } }],
    "unknown is absent",
  );
  t.match(space?.Moves, [{ Kind: "split", Target: 17, Phase: "copying", Attempt: 3 }]);
  t.equal(space?.Leaving, true);
  const routing = await call(
    client,
    "/Cluster/GetRoutingMetadata",
    cluster.GrpcGetRoutingMetadataRequest,
    {},
    cluster.GrpcGetRoutingMetadataResponse,
  );
  t.match(routing, {
    Initialized: true,
    SchemaVersion: 1,
    HashAlgorithm: "svc.bucket-jump-xxh32-v1",
    PrefixSeparator: "/",
    HashPoolSize: 16,
    HashPartitionOffset: 1,
    SequenceStorageKeyFormat: "__svc:sequences:{0}",
    ReservedKeyPrefix: "__svc:",
    Coherent: true,
    GroupSeparator: "|",
    Leaders: [{ PartitionId: 1, Endpoint: "http://a" }],
  });
  t.match(routing.KeySpaces[0]?.Ranges, expected);
}

t.test("Cluster: every call, every outcome, UNAVAILABLE while shutting down", async (t) => {
  const started = await start(t);
  const { client, operations } = started;
  const { administrative } = operations;
  await checkClusterReads(t, started);
  for (const [index, outcome] of LEAVE_OUTCOMES.entries()) {
    const stays = { left: false, outcome, retryable: true, reason: "later" };
    administrative["cluster.leave"] = { ...administrative["cluster.leave"], ...stays };
    const left = await call(
      client,
      "/Cluster/Leave",
      cluster.GrpcClusterLeaveRequest,
      {},
      cluster.GrpcClusterLeaveResponse,
    );
    t.match(left, { Left: false, Outcome: index, Retryable: true, Reason: "later" });
  }
  const own = ["cluster.leave", { nodeId: 0 }];
  t.strictSame(operations.administered.at(-1), own, "5.3: without a member, the answering node");
  const leave = (NodeId: number) =>
    call(
      client,
      "/Cluster/Leave",
      cluster.GrpcClusterLeaveRequest,
      { NodeId },
      cluster.GrpcClusterLeaveResponse,
    );
  await leave(3);
  t.strictSame(operations.administered.at(-1), ["cluster.leave", { nodeId: 3 }]);
  t.equal(operations.administeredIn?.forwardHops, 0);
  await t.rejects(leave(-1), { code: status.INVALID_ARGUMENT });
  const refused = { success: false, status: "Refused", generation: 5, reason: "no" } as const;
  administrative["cluster.setReplicationFactor"] = refused;
  const factor = await call(
    client,
    "/Cluster/SetReplicationFactor",
    cluster.GrpcSetReplicationFactorRequest,
    { PartitionId: 2, ReplicationFactor: 5 },
    cluster.GrpcSetReplicationFactorResponse,
  );
  t.match(factor, { Success: false, Status: "Refused", Reason: "no" });
  const split = await call(
    client,
    "/Cluster/SplitRange",
    cluster.GrpcSplitRangeRequest,
    { KeySpace: "s", SplitKey: "k" },
    cluster.GrpcSplitRangeResponse,
  );
  t.match(split, { Success: true, Status: "Succeeded", Determinate: true, NewPartitionId: 17 });
  const unmerged = { success: false, status: "Indeterminate" } as const;
  administrative["ranges.merge"] = { ...administrative["ranges.merge"], ...unmerged };
  const merged = await call(
    client,
    "/Cluster/MergeRanges",
    cluster.GrpcMergeRangesRequest,
    {},
    cluster.GrpcMergeRangesResponse,
  );
  t.match(merged, { Success: false, Merges: 2, LeaderHint: "h", Reason: "r" });
  const registered = await call(
    client,
    "/KeyValuer/RegisterKeyRange",
    kv.GrpcRegisterKeyRangeRequest,
    { KeySpace: "s" },
    kv.GrpcRegisterKeyRangeResponse,
  );
  t.match(registered, { Success: true, Seeded: true, RoutingMode: "KeyRange", DescriptorCount: 3 });
  const removed = await call(
    client,
    "/KeyValuer/RemoveKeyRange",
    kv.GrpcRemoveKeyRangeRequest,
    { KeySpace: "s" },
    kv.GrpcRemoveKeyRangeResponse,
  );
  t.match(removed, { Success: true, RoutingMode: "KeyRange", DescriptorCount: 3 });
  t.strictSame(operations.administered.slice(-5), [
    ["cluster.setReplicationFactor", { partitionId: 2, replicationFactor: 5 }],
    ["ranges.split", { keySpace: "s", splitKey: "k" }],
    ["ranges.merge", {}],
    ["ranges.register", { keySpace: "s" }],
    ["ranges.unregister", { keySpace: "s" }],
  ]);
  operations.stopping = true;
  for (const path of ["/Cluster/GetMembership", "/Cluster/Leave", "/KeyValuer/RemoveKeyRange"]) {
    t.equal(await codeOf(client, path), status.UNAVAILABLE, path);
  }
});

const BACKUP_CODES: Readonly<Record<(typeof BACKUP_OUTCOMES)[number], number>> = {
  Ok: 0,
  NotConfigured: 14,
  ParentMissing: 5,
  NeedsFull: 9,
  CorruptChain: 9,
  CorruptArtifact: 9,
  TargetConflict: 6,
  TargetOutsideCoverage: 9,
  Cancelled: 1,
  IoError: 13,
  RetryableLeadershipLoss: 14,
  ExactCheckpointUnavailable: 9,
  UnsupportedFormat: 9,
  TopologyChanged: 9,
  NotBackupCoordinator: 14,
  InsecureRoot: 14,
  RestrictedCoverage: 9,
};

t.test("Backups: every call comes down, every outcome has its status and trailer", async (t) => {
  const { client, operations } = await start(t);
  const calls: [string, Buffer, CallName, object][] = [
    ["TakeFullBackup", Buffer.alloc(0), "backups.full", {}],
    ["TakeCoordinatedBackup", Buffer.alloc(0), "backups.coordinated", {}],
    ["ListBackups", Buffer.alloc(0), "backups.list", {}],
    ["ListRunningBackups", Buffer.alloc(0), "backups.running", {}],
    [
      "TakeIncrementalBackup",
      encodeMessage(backups.GrpcTakeIncrementalBackupRequest, { ParentBackupId: "p" }),
      "backups.incremental",
      { parentBackupId: "p" },
    ],
    [
      "GetBackupChain",
      encodeMessage(backups.GrpcGetBackupChainRequest, { LeafBackupId: "l" }),
      "backups.chain",
      { leafBackupId: "l" },
    ],
    [
      "ValidateChain",
      encodeMessage(backups.GrpcValidateChainRequest, { LeafBackupId: "l" }),
      "backups.validateChain",
      { leafBackupId: "l" },
    ],
    [
      "RunBackupGarbageCollection",
      encodeMessage(backups.GrpcBackupGcRequest, { DryRun: true }),
      "backups.collectGarbage",
      { dryRun: true },
    ],
    [
      "Restore",
      encodeMessage(backups.GrpcRestoreRequest, {
        LeafBackupId: "l",
        TargetDir: "/t",
        TargetTimeMs: bigIntToHalves(BIG),
        SequenceSkip: 7,
      }),
      "backups.restore",
      { leafBackupId: "l", targetDir: "/t", targetTimeMs: BIG, sequenceSkip: 7n },
    ],
  ];
  for (const [name, bytes, asked, down] of calls) {
    t.equal(await codeOf(client, `/Backups/${name}`, bytes), status.UNAVAILABLE, name);
    t.strictSame(operations.administered.at(-1), [asked, down], name);
  }
  for (const outcome of BACKUP_OUTCOMES.slice(1)) {
    operations.backupRefusal = { outcome, message: `text of ${outcome}` };
    const { error } = await callRaw(client, "/Backups/ListBackups", Buffer.alloc(0));
    t.equal(error?.code, BACKUP_CODES[outcome], outcome);
    t.strictSame(error?.metadata.get("svc-backup-outcome"), [outcome]);
    t.equal(error?.details, `text of ${outcome}`);
  }
  operations.backupRefusal = { outcome: null, message: "malformed id" };
  const { error } = await callRaw(client, "/Backups/ListBackups", Buffer.alloc(0));
  t.equal(error?.code, status.INVALID_ARGUMENT);
  t.strictSame(error?.metadata.get("svc-backup-outcome"), []);
});
