/** Values of wrong types at every public method of the client, over both transports (P-202). */
import { EventEmitter } from "node:events";
import { Metadata } from "@grpc/grpc-js";
import t from "tap";
import { SvcClient, SvcError, type SvcClientOptions } from "../../../src/client/mod.js";
import { systemPlatform } from "../../../src/client/time/system-platform.js";
import { Batcher } from "../../../src/client/transport/batcher.js";
import type { GrpcChannel } from "../../../src/client/transport/grpc-channel.js";
import type { Try } from "../../../src/client/call/try.js";
import { FrameWriter } from "../../../src/client/transport/frame-writer.js";
import type { Operation } from "../../../src/client/call/operation.js";
import {
  endAll,
  nodeFlags,
  ServerProcess,
  temporaryDirectory,
} from "../../process/cluster/server-process.js";

const directory = temporaryDirectory();
const server = new ServerProcess(nodeFlags(directory.path));
const { grpc, http } = await server.ready();

const stray: unknown[] = [];
process.on("uncaughtException", (error) => stray.push(error));
process.on("unhandledRejection", (error) => stray.push(error));

t.setTimeout(300_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

/** What a value may be instead of what it is to be; each kind leaves out what it takes. */
const WRONG: Readonly<Record<string, unknown>> = {
  number: 5,
  NaN: Number.NaN,
  negative: -1,
  huge: 1e300,
  fraction: 1.5,
  text: "x",
  emptyText: "",
  true: true,
  bigint: 5n,
  hugeBigint: 2n ** 64n,
  undefined,
  null: null,
  symbol: Symbol("s"),
  object: { a: 1 },
  array: [1],
  function: () => 1,
  ArrayBuffer: new ArrayBuffer(3),
  DataView: new DataView(new ArrayBuffer(3)),
  Float64Array: new Float64Array(2),
  Date: new Date(0),
};
const TEXTS = ["text", "emptyText"];
/** Values of `WRONG` that a kind of argument takes, or that the service decides about. */
const TAKEN: Readonly<Record<string, readonly string[]>> = {
  text: TEXTS,
  optionalText: [...TEXTS, "undefined"],
  bytes: TEXTS,
  bytesOrNull: [...TEXTS, "null"],
  optionalBytes: [...TEXTS, "null", "undefined"],
  flag: ["true", "undefined"],
  int32: ["number"],
  optionalInt32: ["number", "undefined"],
  int32OrNull: ["number", "undefined", "null"],
  int64: ["number", "negative", "bigint", "undefined"],
  int64OrNull: ["number", "negative", "bigint", "undefined", "null"],
  deadline: ["number", "fraction", "undefined"],
  signal: ["undefined"],
  durability: ["undefined"],
  idempotency: ["undefined"],
  // Any object is one without known members.
  options: ["undefined", "object", "ArrayBuffer", "DataView", "Float64Array", "Date"],
  group: ["object", "ArrayBuffer", "DataView", "Float64Array", "Date"],
  list: ["array"],
  keyItem: TEXTS,
  work: ["function"],
};

interface Wish {
  /** The argument or member that the refusal names. */
  readonly name: string;
  readonly kind: string;
  /** The arguments with the wrong value in its place. */
  with(wrong: unknown): unknown[];
}

/** Arguments of a call by position: name, kind, a good value, and the kinds of its members. */
type Members = Readonly<Record<string, string>>;
type Argument = readonly [name: string, kind: string, good: unknown, members?: Members];

function wishesOf(list: readonly Argument[]): Wish[] {
  const good = list.map(([, , value]) => value);
  return list.flatMap(([name, kind, value, members = {}], at) => {
    const put = (other: unknown): unknown[] =>
      good.map((one, place) => (place === at ? other : one));
    const inner = Object.entries(members).map(([member, memberKind]) => ({
      name: member,
      kind: memberKind,
      with: (wrong: unknown) => put({ ...(value as object), [member]: wrong }),
    }));
    return [{ name, kind, with: put }, ...inner];
  });
}

const CALL = { signal: "signal", deadlineMs: "deadline" };
const CALL_IN = { ...CALL, durability: "durability" };
const LEASED = { ...CALL_IN, owner: "bytes", leaseMs: "int32" };
const CONDITIONS = {
  expiresMs: "optionalInt32",
  ifExists: "flag",
  ifNotExists: "flag",
  ifValue: "optionalBytes",
  ifRevision: "int64",
  noHistory: "flag",
  flags: "optionalInt32",
};
const SEQUENCE = {
  initialValue: "int64",
  increment: "int64",
  maxValue: "int64OrNull",
  blockSize: "int32OrNull",
};
const options = (members: Members = CALL): Argument => ["options", "options", {}, members];
const allocate = options({ ...CALL, idempotencyKey: "optionalText", idempotency: "idempotency" });
const name: Argument = ["name", "text", "a"];
const key: Argument = ["key", "text", "a"];
const resource: Argument = ["resource", "text", "a"];
const step: Argument = ["step", "group", { owner: "me", leaseMs: 1000 }, LEASED];
const keySpace: Argument = ["keySpace", "optionalText", "a"];
const LOCKING = {
  ...LEASED,
  owner: "optionalBytes",
  waitMs: "optionalInt32",
  retryMs: "optionalInt32",
  note: "optionalBytes",
  renew: "flag",
  watchLoss: "flag",
};
const PAGED = { prefix: "optionalText", limit: "optionalInt32" };
const FORCING = { ...CALL_IN, fencingToken: "int64", reason: "text", dropWaiters: "flag" };
const force: Argument = ["step", "group", { fencingToken: 1, reason: "r" }, FORCING];
const acquire: Argument = ["options", "group", { leaseMs: 1000 }, LOCKING];

/** Every public method of every part of the client. */
const METHODS: Readonly<Record<string, Readonly<Record<string, readonly Argument[]>>>> = {
  kv: {
    set: [key, ["value", "bytesOrNull", "v"], options({ ...CALL_IN, ...CONDITIONS })],
    extend: [key, ["expiresMs", "int32", 1000], options(CALL_IN)],
    delete: [key, options(CALL_IN)],
    get: [key, options({ ...CALL_IN, revision: "int64" })],
    exists: [key, options({ ...CALL_IN, revision: "int64" })],
    setMany: [["items", "list", [{ key: "a", value: "v" }]], options(CALL_IN)],
    deleteMany: [["keys", "list", ["a"]], options(CALL_IN)],
    getMany: [["keys", "list", ["a"]], options(CALL_IN)],
    existsMany: [["keys", "list", ["a"]], options(CALL_IN)],
    bucket: [["bucket", "text", "a"], options(CALL_IN)],
    scanPage: [
      ["prefix", "text", "a"],
      options({ ...CALL_IN, limit: "optionalInt32", cursor: "optionalText" }),
    ],
    scan: [
      ["prefix", "text", "a"],
      options({ ...CALL_IN, limit: "optionalInt32", overallDeadlineMs: "deadline" }),
    ],
    rangePage: [
      [
        "range",
        "group",
        { bucket: "a" },
        {
          bucket: "text",
          start: "optionalText",
          end: "optionalText",
          startInclusive: "flag",
          endInclusive: "flag",
        },
      ],
      options({ ...CALL_IN, limit: "optionalInt32" }),
    ],
    range: [
      ["range", "group", { bucket: "a" }, { bucket: "text" }],
      options({ ...CALL_IN, limit: "optionalInt32", overallDeadlineMs: "deadline" }),
    ],
  },
  sequences: {
    create: [name, ["parameters", "options", {}, SEQUENCE], options()],
    update: [
      name,
      ["changes", "group", { increment: 1 }, { ...SEQUENCE, currentValue: "int64" }],
      options(),
    ],
    get: [name, options()],
    delete: [name, options()],
    next: [name, allocate],
    nextNumber: [name, allocate],
    nextRange: [name, allocate],
    reserve: [name, ["count", "int32", 1], allocate],
    ensure: [name, ["parameters", "options", {}, SEQUENCE], options()],
  },
  locks: {
    acquire: [resource, acquire],
    withLock: [resource, acquire, ["work", "work", () => Promise.resolve()]],
    permit: [name, ["count", "int32", 1], acquire],
    tryLock: [resource, step],
    tryExtend: [resource, step],
    unlock: [resource, ["step", "group", { owner: "me" }, { ...CALL_IN, owner: "bytes" }]],
    info: [resource, options({ ...CALL_IN, owner: "optionalBytes" })],
    list: [options({ ...CALL_IN, ...PAGED, heldOnly: "flag" })],
    forceUnlock: [resource, force],
    audit: [options({ ...CALL, ...PAGED })],
  },
  cluster: {
    membership: [options()],
    placement: [options()],
    leave: [options()],
    overview: [options()],
    nodeDebug: [options({ ...CALL, profileSeconds: "optionalInt32" })],
    finalize: [["level", "optionalInt32", 0], options()],
    removeMember: [["nodeId", "int32", 1], options()],
    setReplicationFactor: [
      ["partitionId", "int32", 1],
      ["replicationFactor", "int32", 0],
      options(),
    ],
    routing: [keySpace, options()],
  },
  ranges: {
    list: [keySpace, options()],
    register: [["keySpace", "text", "a"], options()],
    unregister: [["keySpace", "text", "a"], options()],
    split: [["keySpace", "text", "a"], ["splitKey", "text", "a/b"], options()],
    merge: [options()],
  },
  backups: {
    full: [options()],
    coordinated: [options()],
    incremental: [["parentBackupId", "text", "a"], options()],
    list: [options()],
    running: [options()],
    chain: [["leafBackupId", "text", "a"], options()],
    validateChain: [["leafBackupId", "text", "a"], options()],
    collectGarbage: [options({ ...CALL, dryRun: "flag" })],
    restore: [
      ["leafBackupId", "text", "a"],
      ["targetDir", "text", "/nowhere"],
      options({ ...CALL, targetTimeMs: "int64", sequenceSkip: "int64" }),
    ],
  },
  client: {
    health: [options()],
    close: [options({ releaseMs: "optionalInt32", drainMs: "optionalInt32" })],
  },
};
/** Not called with wrong values in a part, because they have no arguments to get wrong. */
const ELSEWHERE: readonly string[] = ["constructor", "sequence", "election", "cache"];

type Part = Readonly<Record<string, (...given: unknown[]) => unknown>>;

function partOf(client: SvcClient, part: string): Part {
  const parts = client as unknown as Readonly<Record<string, Part>>;
  return part === "client" ? (client as unknown as Part) : (parts[part] as Part);
}

/** What a call comes to; iterators are asked for their first item. */
async function outcomeOf(call: () => unknown): Promise<unknown> {
  const late = { name: "nothing within 10 s" };
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise((resolve) => (timer = setTimeout(() => resolve(late), 10_000)));
  const run = async (): Promise<unknown> => {
    try {
      const given = call() as { next?(): Promise<unknown> } | undefined;
      await (typeof given?.next === "function" ? given.next() : given);
      return "settled";
    } catch (error) {
      return error;
    }
  };
  const result = await Promise.race([run(), limit]);
  clearTimeout(timer);
  return result;
}

function refusalFault(error: unknown, wish: Wish): string | null {
  if (!(error instanceof SvcError)) return `came to ${String(error)}`;
  if (error.code !== "invalid-input" && error.code !== "out-of-range") return `code ${error.code}`;
  if (error.outcome !== "none") return `outcome ${error.outcome}`;
  // "deadlineMs" stands for both deadlines of an iteration.
  return error.message.includes(wish.name) ? null : `does not name ${wish.name}: ${error.message}`;
}

const transports: readonly (readonly [string, SvcClientOptions])[] = [
  ["grpc", { endpoints: grpc }],
  ["rest", { endpoints: http, transport: "rest" }],
];

t.test("P-202 the table of methods names every public method", (t) => {
  const client = new SvcClient({ endpoints: grpc });
  for (const [part, methods] of Object.entries(METHODS)) {
    const prototype = Object.getPrototypeOf(partOf(client, part)) as object;
    const internal = part === "locks" ? ["close", "allReleased"] : ["closeNow"];
    const privates = ["request", "handleFacts", "inBackground", "pages", ...internal];
    const found = Object.getOwnPropertyNames(prototype).filter(
      (one) => !ELSEWHERE.includes(one) && !(part !== "client" && privates.includes(one)),
    );
    const expected = part === "client" ? [...Object.keys(methods), "closeNow"] : methods;
    t.same(found.sort(), (Array.isArray(expected) ? expected : Object.keys(expected)).sort(), part);
  }
  t.end();
});

for (const [transport, settings] of transports) {
  t.test(`P-202 ${transport}: every method refuses every wrong value by name`, async (t) => {
    const client = new SvcClient({ deadlineMs: 8000, ...settings });
    let calls = 0;
    const faults: string[] = [];
    for (const [part, methods] of Object.entries(METHODS)) {
      for (const [method, list] of Object.entries(methods)) {
        for (const wish of wishesOf(list)) {
          const taken = TAKEN[wish.kind] as readonly string[];
          for (const [label, wrong] of Object.entries(WRONG)) {
            if (taken.includes(label)) continue;
            const given = wish.with(wrong);
            calls += 1;
            const target = partOf(client, part);
            const error = await outcomeOf(() => target[method]?.(...given));
            const fault = refusalFault(error, wish);
            if (fault !== null) faults.push(`${part}.${method} ${wish.name}=${label} ${fault}`);
          }
        }
      }
    }
    t.same(faults, [], `${calls} calls`);
    t.ok(calls > 2000, "the table is not empty");
    t.same(await client.kv.get("still works"), null);
    await client.close();
    t.same(stray, [], "nothing left a turn");
  });

  t.test(`P-202 ${transport}: poison among a hundred good calls`, async (t) => {
    const client = new SvcClient({ deadlineMs: 8000, ...settings });
    const poisons: ((at: number) => Promise<unknown>)[] = [
      () => client.kv.set("k", 5 as unknown as string),
      () => client.kv.get(undefined as unknown as string),
      () => client.sequences.next(undefined as unknown as string),
      () => client.locks.info(5 as unknown as string),
      () => client.kv.getMany([undefined as unknown as string]),
    ];
    const good: Promise<unknown>[] = [];
    const bad: Promise<unknown>[] = [];
    for (let at = 0; at < 100; at++) {
      good.push(client.kv.set(`good/${at}`, `${at}`), client.locks.info(`good/${at}`));
      bad.push((poisons[at % poisons.length] as (at: number) => Promise<unknown>)(at));
    }
    const [done, refused] = await Promise.all([Promise.allSettled(good), Promise.allSettled(bad)]);
    t.same(
      done.filter(({ status }) => status === "rejected"),
      [],
    );
    for (const result of refused) {
      t.equal(result.status, "rejected");
      const { reason } = result as PromiseRejectedResult;
      t.match(reason, { code: "invalid-input", outcome: "none" });
    }
    t.equal((await client.kv.get("good/99"))?.text, "99");
    await client.close();
    t.same(stray, [], "nothing left a turn");
  });

  t.test(`P-202 ${transport}: a durability is told by its exact name`, async (t) => {
    const client = new SvcClient({ deadlineMs: 8000, ...settings });
    for (const durability of [
      "Ephemeral",
      "Persistent",
      "EPHEMERAL",
      "",
    ] as unknown as "ephemeral"[]) {
      const refused = { code: "invalid-input", outcome: "none", message: /durability/ };
      await t.rejects(client.kv.set("capitals", "v", { durability }), refused);
      await t.rejects(client.locks.acquire("capitals", { leaseMs: 1000, durability }), refused);
    }
    t.equal(await client.kv.get("capitals"), null);
    await client.close();
  });
}

t.test("P-202 handles, supplies and sequences refuse in the same way", async (t) => {
  const client = new SvcClient({ endpoints: grpc, deadlineMs: 8000 });
  await client.sequences.create("supply");
  const refused = { code: /invalid-input|out-of-range/, outcome: "none" };
  const wrong = (value: unknown): never => value as never;
  const sequence = client.sequence(wrong(5));
  const calls: (() => Promise<unknown>)[] = [
    () => sequence.next(),
    () => sequence.nextNumber(),
    () => sequence.reserve(3),
    () => sequence.ensure(),
    () => sequence.get(),
    () => sequence.update({ increment: 2 }),
    () => sequence.delete(),
    () => sequence.prefetch(3).next(),
  ];
  for (const call of calls) await t.rejects(call(), refused);
  const supply = client.sequence("supply");
  t.throws(() => supply.prefetch(wrong("3")), refused);
  t.throws(() => supply.prefetch(3, { refillAt: wrong({}) }), refused);
  t.throws(() => supply.prefetch(3, wrong(null)), refused);
  t.throws(() => supply.prefetch(3, { signal: wrong({}) }), refused);
  const lock = await client.locks.acquire("handle", { leaseMs: 60_000 });
  await t.rejects(lock.extend(wrong("5")), refused);
  await t.rejects(lock.extend(5000, wrong(5)), refused);
  await t.rejects(lock.release(wrong(5)), refused);
  await t.rejects(lock.release({ deadlineMs: wrong("x") }), refused);
  await t.rejects(lock.info({ signal: wrong({}) }), refused);
  t.equal(lock.held, true, "a refused release released nothing");
  t.equal(await lock.release(), true);
  await client.close();
  for (const settings of [
    wrong(null),
    { endpoints: wrong(5) },
    { endpoints: [wrong(5)] },
    { endpoints: grpc, token: wrong(5) },
    { endpoints: grpc, clock: wrong({}) },
    { endpoints: grpc, tls: wrong(5) },
    { endpoints: grpc, tls: { ca: wrong(5) } },
    { endpoints: grpc, followRoutes: wrong("no") },
    { endpoints: grpc, keepAliveMs: wrong("5") },
  ] as SvcClientOptions[])
    t.throws(() => new SvcClient(settings), refused);
  t.same(stray, [], "nothing left a turn");
});

t.test("P-202 a fault of the transport itself leaves no turn and no call behind", async (t) => {
  let broken = true;
  const written: number[] = [];
  const call = Object.assign(new EventEmitter(), {
    cancel: () => undefined,
    write: (bytes: Buffer) => {
      if (broken) throw new TypeError("planted");
      written.push(bytes.length);
    },
  });
  const channel = {
    connection: 0,
    watch: { began: () => undefined, ended: () => undefined },
    whenSilent: () => undefined,
    alive: () => undefined,
    platform: systemPlatform,
    whenReady: (ready: (failure: null) => void) => ready(null),
    withMetadata: (take: (metadata: Metadata, failure: null) => void) => take(new Metadata(), null),
    open: () => ({ makeBidiStreamRequest: () => call }),
  } as unknown as GrpcChannel;
  const batcher = new Batcher(systemPlatform, "kv", [channel], null, () => undefined);
  const failures: SvcError[] = [];
  const push = (name: string): void => {
    const operation = { name, stream: { kind: "kv", type: 1, field: 3 }, write: () => undefined };
    const attempt: Partial<Try> = { operation: operation as never, left: false, ended: false };
    batcher.push({
      ...attempt,
      failed(error: SvcError) {
        (this as { ended: boolean }).ended = true;
        failures.push(error);
      },
    } as Try);
  };
  const opened = async (): Promise<void> => {
    await new Promise((resolve) => setImmediate(resolve));
    const headers = new Metadata();
    headers.set("svc-batch-frames", "1");
    call.emit("metadata", headers);
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  for (const name of ["a", "b", "c"]) push(name);
  await opened();
  t.same(
    failures.map(({ code, outcome }) => [code, outcome]),
    [1, 2, 3].map(() => ["local", "unknown"]),
    "they may have left: every one is told",
  );
  broken = false;
  push("d");
  await opened();
  t.equal(failures.length, 3);
  t.equal(written.length, 1, "what comes later goes out");
  t.same(stray, [], "nothing left a turn");
  batcher.close();
});

t.test("P-202 an item that cannot be written takes no other with it", (t) => {
  const writer = new FrameWriter();
  const operation = (write: Operation<unknown, unknown, unknown>["write"]) =>
    ({ stream: { kind: "kv", type: 1, field: 3 }, write }) as Operation<unknown, unknown, unknown>;
  const good = operation((_request, to) => void to.uint32(10).string("good"));
  const bad = operation((_request, to) => {
    to.uint32(10).fork().string("half");
    throw new RangeError("planted");
  });
  writer.add(1, good, null);
  const alone = new FrameWriter();
  alone.add(1, good, null);
  alone.add(2, good, null);
  t.throws(() => writer.add(2, bad, null), /planted/);
  writer.add(2, good, null);
  t.equal(writer.items, 2);
  t.same(writer.takeFrame(), alone.takeFrame());
  t.end();
});
