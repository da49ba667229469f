/**
 * The REST wire: every path, every member, every outcome, every refusal, through real sockets.
 */
import t, { type Test } from "tap";
import { CONTRACT_PATHS } from "../../process/contract/table.js";
import { Int64 } from "../../../src/base/int64.js";
import type {
  DataAnswer,
  DataRequest,
  KvManyItem,
  LeaveAnswer,
  RouteHint,
} from "../../../src/operations/api/requests.js";
import { BACKUP_OUTCOMES } from "../../../src/api/backups.js";
import type { CallName } from "../../../src/api/calls.js";
import { blankAnswer } from "../../doubles/front/operations.js";
import { type Answer, type Rig, startRig } from "./harness.js";

const MAX = Int64.fromBigInt(9223372036854775807n);
const MIN = Int64.fromBigInt(-9223372036854775808n);
const STAMP = { n: 3, l: 1700000000000, c: 7 };
const ZERO_STAMP = { n: 0, l: 0, c: 0 };
const ROUTE: RouteHint = { partitionId: 4, endpoint: "http://a:1", provenance: 1, generation: 0 };
const SERVED = { servedFrom: "http://a:1", route: ROUTE, refusal: null };
const X = {
  transactionId: { n: 0, l: 0, c: 0 },
  readTimestamp: null,
  coordinatorKey: "",
  operationIdHigh: 0,
  operationIdLow: 0,
  routedGeneration: 0,
  conflictPolicy: 1,
};

const NOT_WAITING = { waitMs: 0, waitId: Int64.ZERO, tryNumber: Int64.ZERO, note: null };

/** Path, body, the request that must come down. */
const REQUESTS: readonly (readonly [string, object, DataRequest])[] = [
  [
    "/v1/locks/try-lock",
    { resource: "r", owner: "me", expiresMs: 5000, durability: 0 },
    {
      kind: "try-lock",
      resource: "r",
      owner: Buffer.from("me"),
      expiresMs: 5000,
      durability: 0,
      ...NOT_WAITING,
    },
  ],
  [
    "/v1/locks/try-lock",
    { resource: "r", waitMs: 120_000, waitId: "18446744073709551615", try: 3, note: "n" },
    {
      kind: "try-lock",
      resource: "r",
      owner: Buffer.alloc(0),
      expiresMs: 0,
      durability: 1,
      waitMs: 120_000,
      waitId: new Int64(-1, -1),
      tryNumber: new Int64(0, 3),
      note: Buffer.from("n"),
    },
  ],
  [
    "/v1/locks/try-extend",
    { resource: "r", owner: "base64:/w==", expiresMs: 1, durability: "Ephemeral" },
    {
      kind: "try-extend",
      resource: "r",
      owner: Buffer.from([255]),
      expiresMs: 1,
      durability: 0,
      fencingToken: null,
      note: null,
    },
  ],
  [
    "/v1/locks/try-unlock",
    { resource: "r", owner: "me", expiresMs: 77, fencingToken: "9223372036854775807" },
    {
      kind: "try-unlock",
      resource: "r",
      owner: Buffer.from("me"),
      durability: 1,
      fencingToken: MAX,
    },
  ],
  ["/v1/locks/get-info", {}, { kind: "get-lock", resource: "", durability: 1, owner: null }],
  [
    "/v1/sequences/create",
    { name: "s" },
    {
      kind: "create-sequence",
      name: "s",
      initialValue: 0n,
      increment: 1n,
      maxValue: null,
      blockSize: null,
      durability: 1,
    },
  ],
  [
    "/v1/sequences/create",
    { name: " s ", initialValue: "-9223372036854775808", increment: -5, maxValue: 3, blockSize: 9 },
    {
      kind: "create-sequence",
      name: " s ",
      initialValue: -(2n ** 63n),
      increment: -5n,
      maxValue: 3n,
      blockSize: 9,
      durability: 1,
    },
  ],
  [
    "/v1/sequences/update",
    { name: "s", currentValue: 4, removeMaxValue: true, maxValue: null, removeBlockSize: false },
    {
      kind: "update-sequence",
      name: "s",
      currentValue: 4n,
      increment: null,
      initialValue: null,
      maxValue: null,
      removeMaxValue: true,
      blockSize: null,
      removeBlockSize: false,
      durability: 1,
    },
  ],
  ["/v1/sequences/get", { name: "s" }, { kind: "get-sequence", name: "s", durability: 1 }],
  ["/v1/sequences/delete", { name: "s" }, { kind: "delete-sequence", name: "s", durability: 1 }],
  [
    "/v1/sequences/next",
    { name: "s", idempotencyKey: "k", durability: "Persistent" },
    { kind: "next-sequence", name: "s", idempotencyKey: "k", durability: 1 },
  ],
  [
    "/v1/sequences/reserve",
    { name: "s", count: 10 },
    { kind: "reserve-sequence", name: "s", count: 10, idempotencyKey: null, durability: 1 },
  ],
  [
    "/v1/kv/try-set",
    { key: "k", value: "AQI=", compareValue: "", compareRevision: "12", flags: 33, ...X },
    {
      kind: "kv-set",
      key: "k",
      value: Buffer.from([1, 2]),
      compareValue: Buffer.alloc(0),
      compareRevision: 12n,
      expiresMs: 0,
      flags: 33,
      durability: 1,
      plain: true,
    },
  ],
  [
    "/v1/kv/try-extend",
    { key: "k", expiresMs: -1, operationIdLow: 1 },
    { kind: "kv-extend", key: "k", expiresMs: -1, durability: 1, plain: false },
  ],
  [
    "/v1/kv/try-delete",
    { key: "k", ...X },
    { kind: "kv-delete", key: "k", durability: 1, plain: true },
  ],
  [
    "/v1/kv/try-get",
    { key: "k", ...X },
    { kind: "kv-get", key: "k", revision: -1n, durability: 1, plain: true },
  ],
  [
    "/v1/kv/try-exists",
    { key: "k", revision: 0, transactionId: { l: 1 } },
    { kind: "kv-exists", key: "k", revision: 0n, durability: 1, plain: false },
  ],
  [
    "/v1/kv/try-set-many",
    {
      items: [
        { key: "a", value: null, ...X },
        { key: "b", expiresMs: 1.5 },
      ],
    },
    {
      kind: "kv-set-many",
      items: [
        {
          kind: "kv-set",
          key: "a",
          value: null,
          compareValue: null,
          compareRevision: 0n,
          expiresMs: 0,
          flags: 0,
          durability: 1,
          plain: true,
        },
        {
          kind: "kv-set",
          key: "b",
          value: null,
          compareValue: null,
          compareRevision: 0n,
          expiresMs: 0,
          flags: 1 << 30,
          durability: 1,
          plain: true,
        },
      ],
    },
  ],
  [
    "/v1/kv/try-delete-many",
    {
      items: [
        { key: "a", conflictPolicy: 2 },
        { key: "b", durability: 1e20 },
      ],
      ...X,
    },
    {
      kind: "kv-delete-many",
      items: [
        { kind: "kv-delete", key: "a", durability: 1, plain: false },
        { kind: "kv-delete", key: "b", durability: -1, plain: true },
      ],
      plain: true,
    },
  ],
  [
    "/v1/kv/try-get-many",
    { items: [{ key: "a" }, { key: "b", revision: 0.5 }], ...X },
    {
      kind: "kv-get-many",
      items: [
        { kind: "kv-get", key: "a", revision: -1n, durability: 1, plain: true },
        { kind: "kv-get", key: "b", revision: -2n, durability: 1, plain: true },
      ],
      plain: true,
    },
  ],
  [
    "/v1/kv/try-exists-many",
    { items: [{ key: "a", revision: 2, durability: 0 }], coordinatorKey: "x" },
    {
      kind: "kv-exists-many",
      items: [{ kind: "kv-exists", key: "a", revision: 2n, durability: 0, plain: true }],
      plain: false,
    },
  ],
  [
    "/v1/kv/get-by-bucket",
    { prefixKey: "b", ...X },
    { kind: "kv-bucket", bucket: "b", durability: 1, plain: true },
  ],
  [
    "/v1/kv/scan-all-by-prefix",
    { prefixKey: "p", limit: 10, cursor: "c", ...X },
    {
      kind: "kv-scan-all",
      prefix: "p",
      includeTombstones: false,
      limit: 10,
      cursor: "c",
      durability: 1,
      plain: true,
    },
  ],
  [
    "/v1/kv/get-by-range",
    { prefix: "b", startKey: "b/1", startInclusive: true, endKey: null, limit: 0, ...X },
    {
      kind: "kv-range",
      prefix: "b",
      startKey: "b/1",
      startInclusive: true,
      endKey: null,
      endInclusive: false,
      limit: 0,
      cursor: null,
      durability: 1,
      plain: true,
    },
  ],
];

function comparable(request: DataRequest | undefined): unknown {
  return JSON.parse(
    JSON.stringify(request, (_, value: unknown) => {
      if (typeof value === "bigint") return `${value}n`;
      return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
    }).replaceAll(/\{"type":"Buffer","data":\[([0-9,]*)\]\}/g, (_, list: string) => {
      return `"${Buffer.from(list === "" ? [] : list.split(",").map(Number)).toString("hex")}"`;
    }),
  );
}

let rig: Rig;
t.before(async () => {
  rig = await startRig();
});
t.teardown(() => rig.close());

/** Sends `body` to `path`; the port gives `answer`. */
async function answered(path: string, body: object, answer: DataAnswer): Promise<Answer> {
  rig.port.answers.push(answer);
  return rig.post(path, body);
}

function isProblem(t: Test, answer: Answer, status: number, code: string): void {
  t.equal(answer.status, status, `status ${status} ${code}`);
  t.match(answer.headers["content-type"], /^application\/problem\+json/);
  t.match(answer.body, { code, title: /./, detail: /./ });
}

t.test("P-142 every data path hands down exactly what was sent", async (t) => {
  for (const [path, body, expected] of REQUESTS) {
    const answer = await rig.post(path, body);
    t.equal(answer.status, 200, path);
    t.strictSame(comparable(rig.port.recorded.at(-1)?.request), comparable(expected), path);
  }
  t.equal(new Set(REQUESTS.map(([path]) => path)).size, 22, "all 22 data paths are covered");
});

t.test("P-144 lock answers carry every member, exactly", async (t) => {
  const base = blankAnswer("try-lock", 0);
  const locked = { ...base, ...SERVED, fencingToken: MAX } as DataAnswer;
  const waited = { ...locked, leaseLeftMs: 7, waitedMs: 8, position: 9, waiters: 10 };
  for (const [path, lease] of [
    ["try-lock", '"leaseLeftMs":7,"waitedMs":8,"position":9,"waiters":10,'],
    ["try-extend", '"leaseLeftMs":7,"waiters":10,'],
    ["try-unlock", ""],
  ] as const) {
    const answer = await answered(`/v1/locks/${path}`, {}, waited as DataAnswer);
    t.equal(
      answer.text,
      `{"type":0,"fencingToken":9223372036854775807,${lease}"servedFrom":"http://a:1",` +
        '"route":{"partitionId":4,"endpoint":"http://a:1","provenance":1,"generation":0}}',
    );
  }
  const unknown = await answered("/v1/locks/try-lock", {}, locked);
  t.match(unknown.body, { leaseLeftMs: null, waitedMs: null }, "of a node that does not know it");
  const info = {
    ...locked,
    owner: Buffer.from('a"ß'),
    expires: STAMP,
    expiresInMs: 4000,
    note: Buffer.from("n"),
    waiters: 2,
    position: 1,
  } as DataAnswer;
  const answer = await answered("/v1/locks/get-info", {}, info);
  t.strictSame(answer.body, {
    type: 0,
    owner: 'a"ß',
    fencingToken: Number(MAX.toBigInt()),
    expires: STAMP,
    expiresInMs: 4000,
    note: "n",
    waiters: 2,
    position: 1,
    servedFrom: "http://a:1",
    route: { ...ROUTE },
  });
  for (const type of [1, 2, 3, 4, 99, 100, 101, 102, 103, 104]) {
    const answer = await answered("/v1/locks/get-info", {}, blankAnswer("get-lock", type));
    t.strictSame(
      [answer.status, answer.body],
      [
        200,
        {
          type,
          owner: null,
          fencingToken: 0,
          expires: ZERO_STAMP,
          expiresInMs: 0,
          note: null,
          waiters: 0,
          position: 0,
          servedFrom: null,
          route: null,
        },
      ],
    );
  }
});

const SEQUENCE: DataAnswer = {
  ...SERVED,
  kind: "sequence",
  type: 0,
  revision: 8,
  sequence: {
    name: "s\u2028\n",
    currentValue: MIN,
    initialValue: Int64.fromNumber(-5),
    increment: MAX,
    maxValue: null,
    blockSize: 12,
    incarnation: 2,
    revision: 8,
    createdAt: STAMP,
    updatedAt: STAMP,
  },
};
const ALLOCATION: DataAnswer = {
  ...SERVED,
  kind: "allocation",
  type: 0,
  allocation: {
    name: "s",
    start: Int64.fromBigInt(9007199254740993n),
    end: MAX,
    count: 3,
    revision: 9,
  },
};
const NAMES = ["Success", "NotFound", "AlreadyExists", "InvalidInput", "MaxValueExceeded"];
NAMES.push("MustRetry", "Aborted");

t.test("P-144 sequence answers in the named and in the numeric form", async (t) => {
  for (const path of ["create", "update", "get", "delete"]) {
    const named = await answered(`/v1/sequences/${path}`, { name: "s" }, SEQUENCE);
    t.match(named.text, /"currentValue":-9223372036854775808,"initialValue":-5,/);
    t.match(named.text, /"increment":9223372036854775807,"maxValue":null,"blockSize":12,/);
    t.match(named.body, { type: "Success", revision: 8, servedFrom: "http://a:1" });
    t.match(named.body?.["sequence"], {
      name: "s\u2028\n",
      durability: "Persistent",
      incarnation: 2,
    });
    t.strictSame(named.body?.["allocation"], {
      name: null,
      start: 0,
      end: 0,
      count: 0,
      revision: 0,
    });
    const numeric = await answered(`/v1/sequences/${path}`, { durability: 1 }, SEQUENCE);
    t.match(numeric.body, { type: 0, sequence: { durability: 1 } });
  }
  for (const path of ["next", "reserve"]) {
    const answer = await answered(`/v1/sequences/${path}`, { name: "s" }, ALLOCATION);
    t.equal(
      answer.text,
      '{"servedFrom":"http://a:1","type":"Success","sequence":null,"allocation":{"name":"s",' +
        '"start":9007199254740993,"end":9223372036854775807,"count":3,"revision":9},"revision":9,' +
        '"route":{"partitionId":4,"endpoint":"http://a:1","provenance":1,"generation":0}}',
    );
    for (const [type, name] of [...NAMES.entries(), [99, "Error"] as const]) {
      const blank = blankAnswer("next-sequence", type);
      const named = await answered(`/v1/sequences/${path}`, { durability: "x" }, blank);
      t.strictSame(named.body, {
        servedFrom: null,
        type: name,
        sequence: null,
        allocation: { name: null, start: 0, end: 0, count: 0, revision: 0 },
        revision: 0,
        route: null,
      });
      const numeric = await answered(`/v1/sequences/${path}`, { durability: 0 }, blank);
      t.equal(numeric.body?.["type"], type);
    }
  }
});

t.test("key/value answers carry every member", async (t) => {
  const kv: DataAnswer = {
    ...SERVED,
    kind: "kv",
    type: 3,
    value: Buffer.from([0, 255]),
    revision: 5,
    expires: STAMP,
    lastModified: STAMP,
    state: 1,
  };
  const served = { servedFrom: "http://a:1", route: { ...ROUTE } };
  for (const path of ["try-set", "try-extend", "try-delete"]) {
    const answer = await answered(`/v1/kv/${path}`, {}, kv);
    t.strictSame(answer.body, { type: 3, revision: 5, lastModified: STAMP, ...served }, path);
  }
  const found = { type: 3, revision: 5, expires: STAMP, lastModified: STAMP, ...served };
  t.strictSame((await answered("/v1/kv/try-exists", {}, kv)).body, found);
  t.strictSame((await answered("/v1/kv/try-get", {}, kv)).body, { ...found, value: "AP8=" });
  t.match((await answered("/v1/kv/try-get", {}, { ...kv, value: null })).text, /"value":null/);
  for (const type of [0, 1, 2, 4, 10, 99, 100, 101, 102, 103]) {
    const answer = await answered("/v1/kv/try-get", {}, blankAnswer("kv-get", type));
    t.strictSame(answer.body, {
      type,
      value: null,
      revision: 0,
      expires: ZERO_STAMP,
      lastModified: ZERO_STAMP,
      servedFrom: null,
      route: null,
    });
  }
});

t.test("P-142 many-calls and pages carry every member", async (t) => {
  const item: KvManyItem = {
    key: "a\u0001",
    durability: 1,
    type: 0,
    servedFrom: null,
    value: Buffer.from("v"),
    revision: 2,
    expires: STAMP,
    lastModified: STAMP,
    state: 1,
    routeIndex: 1,
  };
  const many: DataAnswer = {
    ...SERVED,
    kind: "kv-many",
    type: 4,
    items: [item, item],
    routes: [ROUTE],
  };
  const elapsed = (answer: Answer): void => {
    t.ok(Number.isInteger(answer.body?.["timeElapsedMs"]));
    delete answer.body?.["timeElapsedMs"];
  };
  for (const path of ["try-set-many", "try-delete-many"]) {
    const answer = await answered(`/v1/kv/${path}`, { items: [{}] }, many);
    elapsed(answer);
    const { key, type, revision, lastModified, durability, routeIndex, servedFrom } = item;
    const entry = { servedFrom, key, type, revision, lastModified, durability, routeIndex };
    t.strictSame(answer.body, { type: 4, items: [entry, entry], routes: [{ ...ROUTE }] });
  }
  for (const [path, value] of [
    ["try-get-many", "dg=="] as const,
    ["try-exists-many", null] as const,
  ]) {
    const answer = await answered(`/v1/kv/${path}`, { items: [{}] }, many);
    elapsed(answer);
    const { key, type, revision, expires, lastModified, durability, routeIndex } = item;
    const entry = { key, type, value, revision, expires, lastModified, durability, routeIndex };
    const envelope = { type: 4, servedFrom: "http://a:1" };
    t.strictSame(answer.body, { ...envelope, items: [entry, entry], routes: [{ ...ROUTE }] });
  }
  for (const path of ["try-set-many", "try-delete-many", "try-get-many", "try-exists-many"]) {
    for (const body of [{}, { items: [] }, { items: null }]) {
      const before = rig.port.recorded.length;
      const answer = await rig.post(`/v1/kv/${path}`, body);
      t.match(answer.body, { type: 100, items: [], routes: [] });
      t.equal(rig.port.recorded.length, before, "nothing came down");
    }
  }
  const { key, revision, expires, lastModified, state } = item;
  const pageItem = { key, value: null, revision, expires, lastModified };
  const page: DataAnswer = {
    ...SERVED,
    kind: "kv-page",
    type: 3,
    items: [{ ...pageItem, state }],
    nextCursor: "n",
    hasMore: true,
    tooLarge: false,
  };
  const bucket = { type: 3, items: [pageItem], servedFrom: "http://a:1" };
  t.strictSame((await answered("/v1/kv/get-by-bucket", {}, page)).body, bucket);
  for (const path of ["scan-all-by-prefix", "get-by-range"]) {
    const answer = await answered(`/v1/kv/${path}`, {}, page);
    t.strictSame(answer.body, { ...bucket, nextCursor: "n", hasMore: true });
  }
  for (const path of ["get-by-bucket", "scan-all-by-prefix"]) {
    const large = await answered(`/v1/kv/${path}`, {}, { ...page, tooLarge: true });
    isProblem(t, large, 422, "response-too-large");
    t.match(large.body, { detail: path.startsWith("get") ? /get-by-range/ : /limit/ }, "K14, K15");
  }
});

t.test("P-142 P-147 refusals are 503 with the endpoint's own members", async (t) => {
  const codes = ["overloaded", "not-initialized", "shutting-down"] as const;
  for (const refusal of codes) {
    for (const [path, body, request] of REQUESTS) {
      const answer = await answered(path, body, rig.port.mustRetry(request.kind, refusal));
      isProblem(t, answer, 503, refusal);
      t.equal(answer.headers["retry-after"], "1");
      const type = path.startsWith("/v1/sequences") ? "MustRetry" : 101;
      t.match(answer.body, { type, status: 503 }, `${path}: the endpoint's type wins`);
    }
  }
  const numeric = await answered(
    "/v1/sequences/next",
    { durability: 1 },
    rig.port.mustRetry("next-sequence", "overloaded"),
  );
  t.match(numeric.body, { type: 5, code: "overloaded", allocation: { name: null }, revision: 0 });
  t.equal((numeric.text.match(/"type":/g) ?? []).length, 1, "no member is written twice");
  const unknown = await answered("/v1/locks/try-lock", {}, blankAnswer("try-lock", 101));
  t.equal(unknown.status, 200, "MustRetry after something may have happened is 200");
});

t.test("P-143 numbers that do not fit are InvalidInput on data paths", async (t) => {
  const cases: readonly (readonly [string, string, object])[] = [
    ["/v1/locks/try-lock", '{"expiresMs":1.5}', { type: 100 }],
    ["/v1/locks/try-lock", '{"expiresMs":2147483648}', { type: 100 }],
    ["/v1/sequences/create", '{"initialValue":9223372036854775808}', { type: "InvalidInput" }],
    ["/v1/sequences/create", '{"increment":"-9223372036854775809"}', { type: "InvalidInput" }],
    ["/v1/sequences/reserve", '{"count":1e400,"durability":1}', { type: 3 }],
    ["/v1/sequences/next", '{"durability":1.5}', { type: 3 }],
    ["/v1/kv/try-get", '{"revision":1e3}', { type: 100 }],
    ["/v1/kv/try-get", '{"operationIdHigh":99999999999999999999}', { type: 100 }],
    ["/v1/kv/get-by-range", '{"limit":0.1}', { type: 100, items: [], hasMore: false }],
    ["/v1/kv/try-get-many", '{"items":[{}],"routedGeneration":1.5}', { type: 100 }],
  ];
  for (const [path, body, expected] of cases) {
    const before = rig.port.recorded.length;
    const answer = await rig.post(path, body);
    t.equal(answer.status, 200, `${path} ${body}`);
    t.match(answer.body, expected);
    t.equal(rig.port.recorded.length, before, "nothing came down");
  }
});

t.test("P-143 P-145 bad bodies are typed 400, on every POST path", async (t) => {
  const document = (await rig.call("GET", "/openapi.json")).body as {
    paths: Record<string, Record<string, object>>;
  };
  const posts = Object.entries(document.paths).filter(([, methods]) => "post" in methods);
  t.ok(posts.length >= 34, `${posts.length} POST paths`);
  for (const [path] of posts) {
    const before = rig.port.recorded.length + rig.port.administered.length;
    isProblem(t, await rig.post(path, "{"), 400, "malformed-json");
    isProblem(t, await rig.post(path, '{"a":'.repeat(5000)), 400, "malformed-json");
    isProblem(t, await rig.post(path, '{"__proto__":{}}'), 400, "unknown-member");
    isProblem(t, await rig.post(path, "[]"), 400, "wrong-type");
    const text = await rig.call("POST", path, "{}", { "content-type": "text/plain" });
    isProblem(t, text, 415, "unsupported-media-type");
    const invalid = await rig.call("POST", path, "{}", { "content-type": "///" });
    isProblem(t, invalid, 415, "unsupported-media-type");
    isProblem(t, await rig.call("GET", path), 405, "method-not-allowed");
    t.equal(
      rig.port.recorded.length + rig.port.administered.length,
      before,
      `${path}: nothing came down`,
    );
  }
  isProblem(t, await rig.post("/v1/kv/try-set", '{"value":"a"}'), 400, "invalid-base64");
  isProblem(t, await rig.post("/v1/kv/try-set", '{"key":"a","key":"b"}'), 400, "duplicate-member");
  isProblem(t, await rig.post("/v1/kv/try-set", '{"key":true}'), 400, "wrong-type");
  isProblem(t, await rig.post("/v1/locks/try-lock", ""), 400, "malformed-json");
  const bare = await rig.call("POST", "/v1/locks/try-lock");
  isProblem(t, bare, 400, "malformed-json");
});

t.test("content types, request ids, methods", async (t) => {
  for (const type of [
    "application/json",
    "application/json; charset=utf-8",
    'Application/JSON;charset="UTF-8"',
  ]) {
    const answer = await rig.call("POST", "/v1/locks/get-info", "{}", { "content-type": type });
    t.equal(answer.status, 200, type);
    t.equal(answer.headers["content-type"], "application/json");
  }
  for (const type of ["application/json; charset=latin1", "application/jsonx", "text/json"]) {
    const answer = await rig.call("POST", "/v1/locks/get-info", "{}", { "content-type": type });
    isProblem(t, answer, 415, "unsupported-media-type");
  }
  const id = "a".repeat(128);
  const echoed = await rig.post("/v1/locks/get-info", {}, { "x-request-id": id });
  t.equal(echoed.headers["x-request-id"], id);
  t.equal(rig.port.recorded.at(-1)?.context.requestId, id);
  for (const bad of ["a".repeat(129), "a b", "é"]) {
    const made = await rig.post("/v1/locks/get-info", {}, { "x-request-id": bad });
    t.match(made.headers["x-request-id"], /^[0-9a-f]{12}-[0-9a-z]+$/);
  }
  await rig.post("/v1/locks/get-info", {}, { "svc-forwarded": "2" });
  t.equal(rig.port.recorded.at(-1)?.context.forwardHops, 2);
  await rig.post("/v1/locks/get-info", {}, { "svc-forwarded": "x" });
  t.equal(rig.port.recorded.at(-1)?.context.forwardHops, 0);

  isProblem(t, await rig.call("GET", "/v1/nothing"), 404, "unknown-path");
  isProblem(t, await rig.post("/v1/kv/start-transaction", {}), 404, "unknown-path");
  isProblem(t, await rig.post("/v1/locks/try-lock/", {}), 404, "unknown-path");
  isProblem(t, await rig.call("GET", "/V1/cluster/health"), 404, "unknown-path");
  isProblem(t, await rig.call("GET", "/v1/backups/%zz/chain"), 400, "invalid-argument");
  for (const method of ["GET", "PUT", "DELETE", "PATCH", "HEAD"]) {
    const answer = await rig.call(method, "/v1/locks/try-lock");
    t.equal(answer.status, 405, method);
    t.equal(answer.headers["allow"], "POST, OPTIONS");
  }
  const wrong = await rig.post("/v1/backups/x/chain", {});
  isProblem(t, wrong, 405, "method-not-allowed");
  t.equal(wrong.headers["allow"], "GET, HEAD, OPTIONS");
  const options = await rig.call("OPTIONS", "/v1/cluster/health");
  t.strictSame([options.status, options.headers["allow"]], [204, "GET, HEAD, OPTIONS"]);
  const head = await rig.call("HEAD", "/v1/cluster/health");
  t.strictSame([head.status, head.text], [200, ""]);
  t.equal((await rig.call("PROPFIND", "/v1/cluster/health")).status, 405);
});

t.test("cluster paths", async (t) => {
  const health = await rig.call("GET", "/v1/cluster/health");
  t.strictSame(
    [health.status, health.body],
    [200, { ...rig.port.healthNow, localRole: "Voter", uptimeMs: 1234 }],
  );
  const healthy = rig.port.healthNow;
  rig.port.healthNow = {
    ...healthy,
    ready: false,
    reason: "not-a-member",
    localRole: "not-member",
  };
  const sick = await rig.call("GET", "/v1/cluster/health");
  t.equal(sick.status, 503);
  t.equal(sick.headers["content-type"], "application/json");
  t.match(sick.body, { ready: false, reason: "not-a-member", localRole: "NotMember" });
  const unready = await rig.call("GET", "/readyz");
  t.strictSame([unready.status, unready.text], [503, "failed: not-a-member"]);
  rig.port.checks = [
    { name: "initialized", failure: null },
    { name: "membership", failure: "not a member" },
  ];
  const verbose = await rig.call("GET", "/readyz?verbose");
  const lines = "[+]initialized ok\n[-]membership failed: not a member\nfailed: not-a-member";
  t.equal(verbose.text, lines);
  rig.port.healthNow = healthy;
  t.equal((await rig.call("GET", "/readyz")).text, "ok");
  t.equal((await rig.call("GET", "/livez?verbose")).text, "[+]process ok\nok");
  rig.port.fault = "storage failure";
  const dead = await rig.call("GET", "/livez");
  t.strictSame([dead.status, dead.text], [503, "failed: storage failure"]);
  rig.port.fault = null;
  t.equal((await rig.call("GET", "/")).text, "svc-server 0.1.0");
  t.equal((await rig.call("GET", "/metrics")).text, "svc_up 1\n");

  t.match((await rig.call("GET", "/v1/cluster/membership")).body, {
    membershipVersion: 7,
    members: [{ endpoint: "a:1", nodeId: 1, role: "Voter", joinedVersion: 1 }, {}, {}],
    localRole: "Voter",
    initialized: true,
  });
  t.strictSame(
    (await rig.call("GET", "/v1/cluster/placement")).body,
    rig.port.administrative["cluster.placement"],
  );
  const routing = await rig.call("GET", "/v1/cluster/routing?keySpace=a%2Fb+c");
  t.strictSame(rig.port.administered.at(-1), ["cluster.routing", { keySpace: "a/b c" }]);
  t.strictSame(routing.body, rig.port.administrative["cluster.routing"]);

  const outcomes: readonly (readonly [LeaveAnswer["outcome"], number, string | null])[] = [
    ["Committed", 200, null],
    ["NotAMember", 200, null],
    ["RefusedInsufficientVoters", 409, "refused"],
    ["NotInitialized", 503, "unavailable"],
    ["NoLeader", 503, "unavailable"],
    ["RefusedDrainInProgress", 503, "unavailable"],
    ["Timeout", 504, "timeout"],
    ["DrainTimedOut", 504, "timeout"],
    ["RefusedStillAlive", 409, "refused"],
  ];
  for (const [outcome, status, code] of outcomes) {
    const given = { ...rig.port.administrative["cluster.leave"], outcome };
    rig.port.administrative["cluster.leave"] = given;
    const answer = await rig.call("POST", "/v1/cluster/leave");
    t.equal(answer.status, status, outcome);
    t.match(answer.body, { ...given, ...(code === null ? {} : { code, status }) });
  }
  const own = ["cluster.leave", { nodeId: 0 }];
  t.strictSame(rig.port.administered.at(-1), own, "5.3: without a member, the answering node");
  await rig.post("/v1/cluster/leave", { nodeId: 3 });
  t.strictSame(rig.port.administered.at(-1), ["cluster.leave", { nodeId: 3 }]);
  isProblem(t, await rig.post("/v1/cluster/leave", { nodeId: -1 }), 400, "invalid-argument");
  isProblem(t, await rig.post("/v1/cluster/leave", '{"nodeId":3.5}'), 400, "invalid-number");
  const factor = await rig.post("/v1/cluster/replication-factor", {
    partitionId: 1,
    replicationFactor: 3,
  });
  t.strictSame(factor.body, rig.port.administrative["cluster.setReplicationFactor"]);
  const refusal = {
    success: false,
    status: "Refused",
    generation: 0,
    reason: "no leader",
  } as const;
  rig.port.administrative["cluster.setReplicationFactor"] = refusal;
  const refused = await rig.post("/v1/cluster/replication-factor", {});
  isProblem(t, refused, 409, "refused");
  t.match(refused.body, { status: "Refused", success: false, type: "urn:svc:problem:refused" });
  const misfit = await rig.post("/v1/cluster/replication-factor", '{"partitionId":1.5}');
  isProblem(t, misfit, 400, "invalid-number");
});

t.test("range and backup paths", async (t) => {
  t.strictSame((await rig.call("GET", "/v1/ranges?keySpace=")).body, {
    initialized: true,
    localEndpoint: "http://a",
    keySpaces: [
      {
        keySpace: "orders",
        routingMode: "KeyRange",
        descriptors: [
          { startKey: null, endKey: "m", partitionId: 1, generation: 1, keys: null },
          { startKey: "m", endKey: "", partitionId: 2, generation: 2, keys: 41 },
        ],
        moves: [
          {
            ...{ moveId: 12, kind: "split", startKey: "m", endKey: "", source: 2, target: 17 },
            ...{ phase: "copying", attempt: 3, reason: "none" },
          },
        ],
        leaving: true,
      },
    ],
  });
  const register = await rig.post("/v1/ranges/register", { keySpace: "s" });
  const given = rig.port.administrative;
  t.strictSame(register.body, given["ranges.register"]);
  const { seeded, ...unregistered } = given["ranges.register"];
  t.ok(seeded);
  t.strictSame((await rig.post("/v1/ranges/unregister", { keySpace: "s" })).body, unregistered);
  const split = await rig.post("/v1/ranges/split", { keySpace: "s", splitKey: "s/m" });
  t.strictSame(split.body, given["ranges.split"]);
  t.strictSame((await rig.call("POST", "/v1/ranges/merge")).body, given["ranges.merge"]);
  const refused = { success: false, determinate: true, leaderHint: "", reason: "x" };
  const failed = { ...given["ranges.split"], ...refused };
  given["ranges.split"] = { ...failed, status: "NotLeader" };
  isProblem(t, await rig.post("/v1/ranges/split", {}), 409, "refused");
  given["ranges.split"] = { ...failed, status: "InvalidInput" };
  const invalid = await rig.post("/v1/ranges/split", {});
  isProblem(t, invalid, 400, "invalid-argument");
  t.match(invalid.body, { status: "InvalidInput", determinate: true, leaderHint: "" });

  for (const query of ["keyspace=a", "keySpace=a&keySpace=b", "keySpace=%ff", "x"]) {
    isProblem(t, await rig.call("GET", `/v1/ranges?${query}`), 400, "invalid-argument");
  }
  for (const query of ["dryrun=true", "dryRun=yes", "dryRun="]) {
    const before = rig.port.administered.length;
    isProblem(t, await rig.call("POST", `/v1/backups/gc?${query}`), 400, "invalid-argument");
    t.equal(rig.port.administered.length, before, "nothing is collected by mistake");
  }
  const calls: readonly (readonly [string, string, object | null, CallName, object])[] = [
    ["POST", "/v1/backups/full", null, "backups.full", {}],
    ["POST", "/v1/backups/coordinated", {}, "backups.coordinated", {}],
    ["GET", "/v1/backups", null, "backups.list", {}],
    ["GET", "/v1/backups/running", null, "backups.running", {}],
    ["GET", "/v1/backups/0a%201/chain", null, "backups.chain", { leafBackupId: "0a 1" }],
    ["POST", "/v1/backups/gc?dryRun=true", null, "backups.collectGarbage", { dryRun: true }],
    ["POST", "/v1/backups/gc", null, "backups.collectGarbage", { dryRun: false }],
    [
      "POST",
      "/v1/backups/incremental",
      { parentBackupId: "p" },
      "backups.incremental",
      { parentBackupId: "p" },
    ],
    [
      "POST",
      "/v1/backups/validate-chain",
      { leafBackupId: "l", targetDir: "/x", targetTimeMs: 5 },
      "backups.validateChain",
      { leafBackupId: "l" },
    ],
  ];
  for (const [method, path, body, name, expected] of calls) {
    const answer = await rig.call(method, path, body === null ? null : JSON.stringify(body));
    isProblem(t, answer, 503, "backup-failed");
    t.equal(answer.headers["x-svc-backup-outcome"], "NotConfigured");
    t.strictSame(rig.port.administered.at(-1), [name, expected]);
  }
  const restore = { leafBackupId: "l", targetDir: "/r", targetTimeMs: "9007199254740993" };
  isProblem(t, await rig.post("/v1/restore", restore), 403, "backup-failed");
  const cut = { targetTimeMs: 9007199254740993n, sequenceSkip: 0n };
  t.match(rig.port.administered.at(-1), ["backups.restore", cut]);
  const statuses = [
    500, 503, 404, 422, 422, 422, 409, 422, 499, 500, 503, 422, 422, 422, 503, 503, 422,
  ];
  for (const [at, outcome] of BACKUP_OUTCOMES.entries()) {
    rig.port.backupRefusal = { outcome, message: "m (operation 0123456789ab)" };
    const answer = await rig.call("GET", "/v1/backups");
    isProblem(t, answer, statuses[at] as number, "backup-failed");
    t.equal(answer.body?.["outcome"], outcome);
  }
  rig.port.backupRefusal = { outcome: null, message: "not an id" };
  const malformed = await rig.call("GET", "/v1/backups/x/chain");
  isProblem(t, malformed, 400, "invalid-argument");
  t.equal(malformed.headers["x-svc-backup-outcome"], undefined);
});

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Record<string, Schema>;
  readonly required?: readonly string[];
  readonly items?: Schema;
}
interface Operation {
  readonly operationId: string;
  readonly responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
  readonly requestBody?: { content: { "application/json": { schema: Schema } } };
}

/** Differences between `value` and `schema`, member by member. */
function differences(schema: Schema, value: unknown, at: string): string[] {
  if (value === null) return schema.type?.includes("null") === true ? [] : [`${at} is null`];
  if (schema.$ref !== undefined) return [];
  if (Array.isArray(value)) {
    const list = value as unknown[];
    return list.flatMap((item, index) => differences(schema.items ?? {}, item, `${at}[${index}]`));
  }
  const type = typeof value === "number" ? "integer" : typeof value;
  if (schema.type?.includes(type) !== true) return [`${at} is ${type}, not ${String(schema.type)}`];
  if (typeof value !== "object") return [];
  const members = Object.keys(value);
  const named = Object.keys(schema.properties ?? {});
  const missing = named
    .filter((name) => !members.includes(name))
    .map((name) => `${at}.${name} missing`);
  const extra = members
    .filter((name) => !named.includes(name))
    .map((name) => `${at}.${name} extra`);
  return [
    ...missing,
    ...extra,
    ...members.flatMap((name) => {
      const inner = schema.properties?.[name];
      const below = (value as Record<string, unknown>)[name];
      return inner === undefined ? [] : differences(inner, below, `${at}.${name}`);
    }),
  ];
}

t.test("P-142 the OpenAPI document says what the server does", async (t) => {
  const answer = await rig.call("GET", "/openapi.json");
  const document = answer.body as unknown as {
    openapi: string;
    info: object;
    paths: Record<string, { get?: Operation; post?: Operation }>;
    components: Record<string, Record<string, unknown>>;
  };
  t.notMatch(answer.text, /(?:minimum|maximum)":-?9223372036854775/, "no bound outside of int64");
  t.equal(document.openapi, "3.1.0");
  t.match(document.info, { title: "svc", version: "0.1.0" });
  const paths = Object.keys(document.paths);
  const contract = CONTRACT_PATHS.map(([, path]) => path);
  t.strictSame([...paths].sort(), contract.sort(), "every path of the contract");
  const ids = paths.flatMap((path) => Object.values(document.paths[path] ?? {}));
  t.equal(new Set(ids.map((operation) => (operation as Operation).operationId)).size, paths.length);
  for (const reference of answer.text.matchAll(/"\$ref":"#\/components\/([^/]+)\/([^"]+)"/g)) {
    t.ok(document.components[reference[1] as string]?.[reference[2] as string] !== undefined);
  }
  for (const [path, body, request] of REQUESTS) {
    const operation = document.paths[path]?.post as Operation;
    const accepted = Object.keys(
      operation.requestBody?.content["application/json"].schema.properties ?? {},
    );
    for (const name of Object.keys(body)) t.ok(accepted.includes(name), `${path} ${name}`);
    rig.port.answers.push(sample(request));
    const sent = await rig.post(path, { ...body, durability: undefined });
    const schema = operation.responses["200"]?.content?.["application/json"]?.schema as Schema;
    t.strictSame(differences(schema, sent.body, path), []);
  }
  for (const path of ["/v1/cluster/health", "/v1/cluster/membership", "/v1/cluster/placement"]) {
    const schema = document.paths[path]?.get?.responses["200"]?.content?.["application/json"];
    t.strictSame(
      differences(schema?.schema as Schema, (await rig.call("GET", path)).body, path),
      [],
    );
  }
  for (const path of ["/v1/cluster/routing", "/v1/ranges"]) {
    const schema = document.paths[path]?.get?.responses["200"]?.content?.["application/json"];
    t.strictSame(
      differences(schema?.schema as Schema, (await rig.call("GET", path)).body, path),
      [],
    );
  }
});

/** An answer with something in every member. */
function sample(request: DataRequest): DataAnswer {
  const blank = blankAnswer(request.kind, 0);
  if (blank.kind === "sequence") return SEQUENCE;
  if (blank.kind === "allocation") return ALLOCATION;
  const key = { key: "k", value: Buffer.from("v"), revision: 1, expires: STAMP, state: 1 };
  const item = {
    ...key,
    lastModified: STAMP,
    durability: 1,
    type: 0,
    servedFrom: "",
    routeIndex: 1,
  };
  if (blank.kind === "kv-many") return { ...blank, ...SERVED, items: [item], routes: [ROUTE] };
  if (blank.kind === "kv-page") return { ...blank, ...SERVED, items: [item], nextCursor: "c" };
  return { ...blank, ...SERVED };
}

t.test("no fault was reported", (t) => {
  t.strictSame(rig.faults, []);
  t.equal(rig.server.inFlight(), 0, "no request is left in progress");
  t.end();
});
