/**
 * What nodes tell each other about requests: every kind of request and answer goes over the wire
 * and comes back the same, and nothing that is not one of them does harm.
 *
 * Seeded; SVC_FUZZ_INPUTS and SVC_FUZZ_SEED override number and seed. Invariants: 1. No input makes
 * a decoder throw, or a node that gets it. 2. What can be read is written back as the same bytes.
 */
import t from "tap";
import { ByteReader, ByteWriter } from "../../src/base/codec.js";
import type { Hlc } from "../../src/base/hlc.js";
import { Int64 } from "../../src/base/int64.js";
import { Prng } from "../../src/base/prng.js";
import { LEAVE_OUTCOMES } from "../../src/api/cluster.js";
import type { KvPageItem, Refusal, RouteHint } from "../../src/operations/api/answers.js";
import type {
  KvDeleteRequest,
  KvGetRequest,
  KvSetRequest,
} from "../../src/operations/api/requests.js";
import {
  type CallAnswer,
  type CallRequest,
  callAnswer,
  callRequest,
  writeCall,
} from "../../src/operations/wire/calls.js";
import { Draft, Inbox } from "../../src/operations/wire/frames.js";
import type { Shape } from "../../src/base/shape.js";
import { Trio } from "../doubles/operations/trio.js";

const inputs = Number(process.env["SVC_FUZZ_INPUTS"] ?? 100_000);
const seed = Number(process.env["SVC_FUZZ_SEED"] ?? 20_260_101);
const random = new Prng(seed);

const pick = <T>(values: readonly T[]): T => values[random.below(values.length)] as T;
const flag = (): boolean => random.chance(1, 2);
const int32 = (): number => pick([0, 1, -1, 2 ** 31 - 1, -(2 ** 31), random.nextUint32() | 0]);
const int53 = (): number =>
  pick([0, -1, 1, 2 ** 53 - 1, 1 - 2 ** 53, random.nextUint32() * 2 ** 20 + random.below(9)]);
const uint32 = (): number => pick([0, 1, 2 ** 32 - 1, random.nextUint32()]);
const int64 = (): bigint =>
  BigInt.asIntN(64, pick([0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), BigInt(int53()) * 977n]));
const halves = (): Int64 => Int64.fromBigInt(int64());
const text = (): string =>
  pick([
    "",
    "a",
    "name/x",
    "\u0000",
    "caf\u00e9|\u65e5\u672c/\u{1f600}",
    "x".repeat(random.below(200)),
  ]);
const bytes = (): Uint8Array =>
  Uint8Array.from({ length: random.below(40) }, () => random.nextUint32() & 255);
const orNull = <T>(make: () => T): T | null => (flag() ? null : make());
const hlc = (): Hlc => ({ n: int32(), l: Math.abs(int53()), c: uint32() });
const some = <T>(make: () => T): T[] => Array.from({ length: random.below(5) }, make);

const kvSet = (): KvSetRequest => ({
  kind: "kv-set",
  key: text(),
  value: orNull(bytes),
  compareValue: orNull(bytes),
  compareRevision: int64(),
  expiresMs: int32(),
  flags: int32(),
  durability: int32(),
  plain: flag(),
});
const kvDelete = (): KvDeleteRequest => {
  return { kind: "kv-delete", key: text(), durability: int32(), plain: flag() };
};
const kvGet = (kind: KvGetRequest["kind"]): KvGetRequest => {
  return { kind, key: text(), revision: int64(), durability: int32(), plain: flag() };
};
const lockOf = () => ({ resource: text(), owner: bytes(), durability: int32() });
const scanOf = () => ({
  prefix: text(),
  includeTombstones: flag(),
  limit: int32(),
  cursor: orNull(text),
  durability: int32(),
  plain: flag(),
});

type Makers<U extends { readonly kind: string }> = { readonly [Kind in U["kind"]]: () => U };

const requests: Makers<CallRequest> = {
  "remove-member": () => ({ kind: "remove-member", nodeId: int32() }),
  "try-lock": () => ({ kind: "try-lock", ...lockOf(), expiresMs: int32() }),
  "try-extend": () => ({ kind: "try-extend", ...lockOf(), expiresMs: int32() }),
  "try-unlock": () => ({ kind: "try-unlock", ...lockOf() }),
  "get-lock": () => ({ kind: "get-lock", resource: text(), durability: int32() }),
  "create-sequence": () => ({
    kind: "create-sequence",
    name: text(),
    initialValue: int64(),
    increment: int64(),
    maxValue: orNull(int64),
    blockSize: orNull(int32),
    durability: int32(),
  }),
  "update-sequence": () => ({
    kind: "update-sequence",
    name: text(),
    currentValue: orNull(int64),
    increment: orNull(int64),
    initialValue: orNull(int64),
    maxValue: orNull(int64),
    removeMaxValue: flag(),
    blockSize: orNull(int32),
    removeBlockSize: flag(),
    durability: int32(),
  }),
  "get-sequence": () => ({ kind: "get-sequence", name: text(), durability: int32() }),
  "delete-sequence": () => ({ kind: "delete-sequence", name: text(), durability: int32() }),
  "next-sequence": () => {
    return {
      kind: "next-sequence",
      name: text(),
      idempotencyKey: orNull(text),
      durability: int32(),
    };
  },
  "reserve-sequence": () => ({
    kind: "reserve-sequence",
    name: text(),
    count: int32(),
    idempotencyKey: orNull(text),
    durability: int32(),
  }),
  "kv-set": kvSet,
  "kv-extend": () => {
    return {
      kind: "kv-extend",
      key: text(),
      expiresMs: int32(),
      durability: int32(),
      plain: flag(),
    };
  },
  "kv-delete": kvDelete,
  "kv-get": () => kvGet("kv-get"),
  "kv-exists": () => kvGet("kv-exists"),
  "kv-set-many": () => ({ kind: "kv-set-many", items: some(kvSet) }),
  "kv-delete-many": () => ({ kind: "kv-delete-many", items: some(kvDelete), plain: flag() }),
  "kv-get-many": () => {
    return { kind: "kv-get-many", items: some(() => kvGet("kv-get")), plain: flag() };
  },
  "kv-exists-many": () => {
    return { kind: "kv-exists-many", items: some(() => kvGet("kv-exists")), plain: flag() };
  },
  "kv-bucket": () => ({ kind: "kv-bucket", bucket: text(), durability: int32(), plain: flag() }),
  "kv-scan-all": () => ({ kind: "kv-scan-all", ...scanOf() }),
  "kv-scan-local": () => ({ kind: "kv-scan-local", ...scanOf() }),
  "kv-range": () => ({
    kind: "kv-range",
    prefix: text(),
    startKey: orNull(text),
    startInclusive: flag(),
    endKey: orNull(text),
    endInclusive: flag(),
    limit: int32(),
    cursor: orNull(text),
    durability: int32(),
    plain: flag(),
  }),
  "scan-part": () => ({
    kind: "scan-part",
    partitions: some(int32),
    prefix: text(),
    after: orNull(bytes),
    limit: int32(),
    whole: flag(),
    durability: int32(),
  }),
  "register-range": () => ({ kind: "register-range", keySpace: text(), partitionId: int32() }),
  "unregister-range": () => ({ kind: "unregister-range", keySpace: text() }),
};

const refusal = (): Refusal | null =>
  pick([null, "overloaded", "not-initialized", "shutting-down"] as const);
const route = (): RouteHint => {
  return { partitionId: int32(), endpoint: text(), provenance: int32(), generation: int53() };
};
const base = () => ({
  type: int32(),
  servedFrom: orNull(text),
  route: orNull(route),
  refusal: refusal(),
});
const described = () => ({
  value: orNull(bytes),
  revision: int53(),
  expires: hlc(),
  lastModified: hlc(),
  state: int32(),
});
const pageItem = (): KvPageItem => ({ key: text(), ...described() });

const answers: Makers<CallAnswer> = {
  removal: () => ({ kind: "removal", outcome: pick(LEAVE_OUTCOMES) }),
  lock: () => ({
    kind: "lock",
    ...base(),
    fencingToken: halves(),
    owner: orNull(bytes),
    expires: hlc(),
    expiresInMs: int53(),
  }),
  sequence: () => ({
    kind: "sequence",
    ...base(),
    revision: int53(),
    sequence: orNull(() => ({
      name: text(),
      currentValue: halves(),
      initialValue: halves(),
      increment: halves(),
      maxValue: orNull(halves),
      blockSize: orNull(int32),
      incarnation: int53(),
      revision: int53(),
      createdAt: hlc(),
      updatedAt: hlc(),
    })),
  }),
  allocation: () => ({
    kind: "allocation",
    ...base(),
    allocation: orNull(() => {
      return { name: text(), start: halves(), end: halves(), count: int32(), revision: int53() };
    }),
  }),
  kv: () => ({ kind: "kv", ...base(), ...described() }),
  "kv-many": () => ({
    kind: "kv-many",
    ...base(),
    routes: some(route),
    items: some(() => ({
      key: text(),
      durability: int32(),
      type: int32(),
      servedFrom: orNull(text),
      ...described(),
      routeIndex: uint32(),
    })),
  }),
  "kv-page": () => ({
    kind: "kv-page",
    ...base(),
    items: some(pageItem),
    nextCursor: orNull(text),
    hasMore: flag(),
    tooLarge: flag(),
  }),
  "scan-part": () => ({
    kind: "scan-part",
    end: pick(["page", "mustRetry", "aborted"] as const),
    refusal: refusal(),
    items: some(pageItem),
    next: orNull(bytes),
  }),
  meta: () => ({ kind: "meta", status: orNull(text), index: Math.abs(int53()) }),
  "not-taken": () => ({ kind: "not-taken", leaderNode: int32(), unreadable: flag() }),
};

function encode<T>(shape: Shape<T>, value: T): Uint8Array {
  const writer = new ByteWriter();
  shape.write(writer, value);
  return writer.finish();
}

function makers<U extends { readonly kind: string }>(all: Makers<U>): readonly (() => U)[] {
  return Object.values<() => U>(all);
}

const anyRequest = (): CallRequest => pick(makers<CallRequest>(requests))();
const anyAnswer = (): CallAnswer => pick(makers<CallAnswer>(answers))();

/** A frame of some calls or answers, as a node would send it. */
function anyFrame(epoch = random.nextUint32()): Uint8Array {
  const calls = flag();
  const draft = new Draft(calls ? "calls" : "answers");
  const item = new ByteWriter();
  for (let count = 1 + random.below(3); count > 0; count--) {
    item.reset();
    const budgetMs = random.below(10_000);
    if (calls) writeCall(item, { budgetMs, requestId: text(), request: anyRequest() });
    else callAnswer.write(item, anyAnswer());
    draft.add(epoch, 1 + random.below(50), item.finish());
  }
  return draft.take()[0]?.bytes ?? new Uint8Array();
}

/** A damaged form of `valid`. */
function damage(valid: Uint8Array): Uint8Array {
  const copy = valid.slice(0, random.chance(1, 5) ? random.below(valid.length + 1) : valid.length);
  for (let change = random.below(5); change > 0 && copy.length > 0; change--) {
    copy[random.below(copy.length)] = random.chance(1, 2)
      ? pick([0, 1, 2, 127, 128, 255])
      : random.nextUint32();
  }
  return copy;
}

t.test("P-053: every kind comes back as it was sent", async (t) => {
  const rounds = Math.ceil(Math.min(inputs, 20_000) / 40);
  const same = <T>(shape: Shape<T>, value: T): boolean => {
    const encoded = encode(shape, value);
    const reader = new ByteReader(encoded);
    const decoded = shape.read(reader);
    if (!reader.isComplete()) return false;
    // Canonical: the same bytes again; and the same value, member by member.
    const again = encode(shape, decoded);
    return again.length === encoded.length && again.every((byte, at) => byte === encoded[at]);
  };
  let compared = 0;
  for (const [kind, make] of Object.entries<() => CallRequest>(requests)) {
    t.same(new Set([make().kind]), new Set([kind]));
    const value = make();
    t.strictSame(callRequest.read(new ByteReader(encode(callRequest, value))), value, kind);
    for (let round = 0; round < rounds; round++, compared++) {
      if (!same(callRequest, make())) t.fail(kind);
    }
  }
  for (const [kind, make] of Object.entries<() => CallAnswer>(answers)) {
    for (let round = 0; round < 20; round++) {
      const value = make();
      t.strictSame(callAnswer.read(new ByteReader(encode(callAnswer, value))), value, kind);
    }
    for (let round = 0; round < rounds; round++, compared++) {
      if (!same(callAnswer, make())) t.fail(kind);
    }
  }
  t.ok(compared > 0, `${compared} values, seed ${seed}`);
});

t.test("P-128: damaged frames are read or refused, and never harm", async (t) => {
  let read = 0;
  let items = 0;
  const inbox = new Inbox(1000);
  for (let input = 0; input < inputs; input++) {
    const valid = anyFrame();
    const frame = random.chance(1, 4) ? Uint8Array.from(bytes()) : damage(valid);
    const decoded = inbox.open(frame);
    if (decoded === null) continue;
    read++;
    for (const { content } of decoded.items) if (content !== null) items++;
  }
  t.ok(read > inputs / 4 && items > inputs / 8, `${read} frames, ${items} items, seed ${seed}`);
  const head = [1, 2, 0, 0, 0, 0];
  const many = [1, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 15];
  const counts = inbox.open(Uint8Array.from([...head, many.length, ...many]));
  t.same(counts?.items, [{ id: 1, content: null }], "counts are bounded");
  // Parts: more than the bound, out of order, and of two items.
  const part = (id: number, number: number, size: number): Uint8Array => {
    const item = [id, 0, 0, 0, 0, 0, 0, 0, number, ...new Uint8Array(size)];
    return Uint8Array.from([...head, item.length, ...item]);
  };
  const parts = [part(1, 1, 90), part(2, 2, 90), part(1, 3, 9), part(1, 3, 9), part(3, 2, 1)];
  const opened = parts.map((frame) => inbox.open(frame)?.items.length);
  t.same(opened, [0, 0, 1, 0, 0], "an item ends with its last part");
  inbox.open(part(4, 1, 100));
  const sizes = Array.from({ length: 12 }, () => inbox.open(part(4, 2, 100))?.items.length);
  t.equal(sizes.filter((count) => count === 1).length, 1, "too large: told once, then dropped");
});

t.test("P-128: a node survives every frame and answers what it can read", async (t) => {
  const trio = new Trio({ requestTimeoutMs: 50 });
  trio.moveAll(2);
  const data = Object.keys(requests) as CallRequest["kind"][];
  let asked = 0;
  for (let input = 0; input < inputs / 50; input++) {
    const draft = new Draft("calls");
    const item = new ByteWriter();
    const count = 1 + random.below(3);
    for (let id = 1; id <= count; id++) {
      // Half of them with names and numbers that get past the checks of the input.
      const made = requests[pick(data)]();
      const request = flag() ? made : ({ ...made, ...ACCEPTABLE } as CallRequest);
      writeCall(item.reset(), { budgetMs: 20, requestId: "f", request });
      draft.add(7, id, item.finish());
    }
    const frame = draft.take()[0]?.bytes ?? new Uint8Array();
    const intact = flag();
    trio.node(2).callFrame(1, intact ? frame : damage(frame));
    if (random.chance(1, 8)) trio.node(1).callFrame(2, damage(anyFrame()));
    trio.world.settle();
    trio.world.pass(100, 50);
    const replies = trio.sent
      .filter(({ from, frame }) => from === 2 && frame.direction === "answers")
      .reduce((sum, { frame }) => sum + frame.items.length, 0);
    if (intact) {
      asked += count;
      if (replies !== count) t.equal(replies, count, "every call is answered once");
    }
    trio.sent.length = 0;
  }
  t.ok(asked > inputs / 100, `${asked} calls were answered`);
  t.equal(trio.open, 0, "nothing is left open");
});

/** Members that most kinds of requests accept. */
const ACCEPTABLE: Readonly<Record<string, unknown>> = {
  resource: "r",
  owner: Uint8Array.of(1),
  name: "s",
  key: "b/k",
  bucket: "b",
  prefix: "b",
  keySpace: "space",
  partitionId: 1,
  partitions: [1, 2, 3],
  after: null,
  cursor: null,
  durability: 1,
  plain: true,
  expiresMs: 1000,
  flags: 0,
  limit: 10,
  count: 2,
  revision: -1n,
  idempotencyKey: null,
};
