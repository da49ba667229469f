/** Contract 2.4, 3.4 and 4.3: single keys and many-calls over REST and gRPC. */
import type { Test } from "tap";
import { sleep } from "../cluster/server-process.js";
import type { Node } from "./node.js";
import { post } from "./wire.js";

const ZERO = { n: 0, l: 0, c: 0 };
const text = (value: string): string => Buffer.from(value).toString("base64");
const NAME_1024 = "\u0000" + "\u{1F600}".repeat(255) + "abc";

export async function keys(t: Test, node: Node): Promise<void> {
  const call = async (name: string, body: object | string) => {
    const answer = await post(node.http, `/v1/kv/${name}`, body);
    t.equal(
      answer.status,
      200,
      `${name} ${JSON.stringify(body).slice(0, 90)} ${answer.text.slice(0, 200)}`,
    );
    return answer.body;
  };
  const set = (key: string, value: string | null, more = {}) =>
    call("try-set", { key, value: value === null ? null : text(value), ...more });
  const get = (key: string, more = {}) => call("try-get", { key, ...more });

  await t.test("K1, K3, K7, K9, K10 and members", async (t) => {
    const never = await get("k/1");
    t.same(Object.keys(never).sort(), [
      "expires",
      "lastModified",
      "revision",
      "route",
      "servedFrom",
      "type",
      "value",
    ]);
    t.match(never, { type: 103, value: null, revision: 0, expires: ZERO, lastModified: ZERO });
    t.match(await call("try-delete", { key: "k/1" }), {
      type: 103,
      revision: 0,
      lastModified: ZERO,
    });
    t.match(await call("try-extend", { key: "k/1", expiresMs: 5 }), {
      type: 103,
      revision: 0,
      lastModified: ZERO,
    });
    t.match(
      await set("k/1", "x", { flags: 4 }),
      { type: 1, revision: -1, lastModified: ZERO },
      "K10",
    );
    const first = await set("k/1", "a");
    t.same(Object.keys(first).sort(), ["lastModified", "revision", "route", "servedFrom", "type"]);
    t.match(first, { type: 0, revision: 0, servedFrom: node.grpcUrl, route: { provenance: 1 } });
    t.match(await set("k/1", "", { flags: 1 }), { type: 0, revision: 1 });
    t.match(await set("k/1", null), { type: 0, revision: 2 });
    t.match(await get("k/1"), { type: 3, value: null, revision: 2 }, "K7");
    t.match(await get("k/1", { revision: 1 }), { type: 3, value: "", revision: 1 });
    t.match(await get("k/1", { revision: 0 }), { type: 3, value: text("a"), revision: 0 });
    t.match(await get("k/1", { revision: 3 }), { type: 103, revision: 0 });
    t.match(await get("k/1", { revision: -2 }), { type: 100 });
    t.match(await call("try-exists", { key: "k/1", revision: "-1" }), { type: 10, revision: 2 });
    t.notOk("value" in (await call("try-exists", { key: "k/1" })));
    const deleted = await call("try-delete", { key: "k/1" });
    t.match(deleted, { type: 4, revision: 3 });
    t.match(await call("try-delete", { key: "k/1" }), { type: 103, revision: 3 }, "K10");
    t.match(await get("k/1"), { type: 103, revision: 0, lastModified: ZERO });
    t.match(await get("k/1", { revision: 3 }), { type: 103 }, "a tombstone's revision");
    t.match(await get("k/1", { revision: 1 }), { type: 3, value: "" }, "K2");
    t.match(await call("try-extend", { key: "k/1", expiresMs: 5 }), { type: 103, revision: 0 });
    t.match(await set("k/1", "x", { flags: 4 }), {
      type: 1,
      revision: 3,
      lastModified: deleted["lastModified"],
    });
    t.match(await set("k/1", "x", { flags: 32, compareRevision: 3 }), { type: 0, revision: 4 });
  });

  await t.test("K5 conditions, K6, K2", async (t) => {
    const compareValue = text("a");
    t.match(await set("k/2", "a", { flags: 32 + 8, compareRevision: -1 }), {
      type: 0,
      revision: 0,
    });
    t.match(await set("k/2", "b", { flags: 8 }), { type: 1, revision: 0 });
    t.match(await set("k/2", "b", { flags: 16, compareValue: text("z") }), {
      type: 1,
      revision: 0,
    });
    t.match(
      await set("k/2", "b", { flags: 16 }),
      { type: 1, revision: 0 },
      "null compareValue is empty",
    );
    t.match(await set("k/2", "b", { flags: 16 + 4 + 1, compareValue }), { type: 0, revision: 1 });
    t.match(await set("k/2", "c", { flags: 32, compareRevision: 0 }), { type: 1, revision: 1 });
    for (const flags of [12, 64, -1, 2147483647])
      t.match(await set("k/2", "c", { flags }), { type: 100 }, `${flags}`);
    t.match(await set("k/2", null, { flags: 2 }), { type: 0, revision: 2 });
    t.match(
      await set("k/2", "d", { flags: 16 }),
      { type: 0, revision: 3 },
      "a null value counts as empty",
    );
    t.match(await get("k/2", { revision: 2 }), { type: 103 }, "K6");
    t.match(await get("k/2", { revision: 1 }), { type: 3, value: text("b") });
    t.match(
      await set("k/none", "d", { flags: 16 }),
      { type: 0, revision: 0 },
      "missing counts as empty",
    );
    for (let at = 4; at < 20; at += 1) await set("k/2", `${at}`);
    t.match(await get("k/2", { revision: 4 }), { type: 3 }, "16 revisions are retained");
    t.match(await get("k/2", { revision: 3 }), { type: 103 });
  });

  await t.test("K8 leases", async (t) => {
    t.match(await set("k/3", "a", { expiresMs: 40 }), { type: 0 });
    await set("k/4", "a", { expiresMs: 600_000 });
    t.ok(((await get("k/4"))["expires"] as { l: number }).l > Date.now());
    t.match(await set("k/3", "a", { expiresMs: -1 }), { type: 100 });
    await sleep(60);
    t.match(await get("k/3"), { type: 103, revision: 0 });
    t.match(await get("k/3", { revision: 0 }), { type: 103 }, "K3 the revision has expired");
    t.match(await call("try-delete", { key: "k/3" }), { type: 103, revision: 0 }, "K9");
    t.match(await set("k/3", "b", { flags: 4 }), { type: 1, revision: 0 });
    t.match(
      await set("k/3", "b", { flags: 8 }),
      { type: 0, revision: 1 },
      "expired counts as missing",
    );
    t.match(await call("try-extend", { key: "k/3", expiresMs: 0 }), { type: 100 });
    t.match(
      await call("try-extend", { key: "k/3", expiresMs: 2147483647 }),
      { type: 2, revision: 1 },
      "K1",
    );
    t.match(await get("k/3"), { revision: 1, expires: { l: Number } });
    t.match(await call("try-extend", { key: "k/3", expiresMs: 1 }), { type: 2 });
    await sleep(20);
    t.match(await call("try-exists", { key: "k/3" }), { type: 103 });
  });

  await t.test("K18 and limits; X members; K19", async (t) => {
    t.equal(Buffer.byteLength(NAME_1024), 1024);
    t.match(await set(NAME_1024, "a"), { type: 0 });
    t.match(await get(NAME_1024), { type: 3 });
    for (const key of ["", `${NAME_1024}x`, "__svc:a"]) {
      t.match(await set(key, "a"), {
        type: 100,
        revision: Number,
        lastModified: ZERO,
        servedFrom: null,
        route: null,
      });
      t.match(await get(key), { type: 100 });
    }
    const value = Buffer.alloc(1024 * 1024, 7).toString("base64");
    t.match(await call("try-set", { key: "k/big", value }), { type: 0 });
    t.equal((await get("k/big"))["value"], value);
    const over = Buffer.alloc(1024 * 1024 + 1).toString("base64");
    t.match(await call("try-set", { key: "k/big", value: over }), { type: 100 });
    const big = { Key: "k/big", Value: Buffer.alloc(1024 * 1024, 7), Durability: 1, Flags: 16 };
    const same = await node.grpc.call("KeyValuer", "TrySetKeyValue", {
      ...big,
      CompareValue: big.Value,
    });
    t.match(same.fields, { Type: 0, Revision: "1" }, "value and compare value of 1 MiB each");
    const nothing = {
      transactionId: ZERO,
      readTimestamp: null,
      coordinatorKey: "",
      operationIdHigh: 0,
      operationIdLow: "0",
      routedGeneration: 0,
      conflictPolicy: 1,
    };
    t.match(await set("k/x", "a", nothing), { type: 0 });
    for (const more of [
      { transactionId: { n: 0, l: 1, c: 0 } },
      { readTimestamp: { n: 1, l: 0, c: 0 } },
      { coordinatorKey: "a" },
      { operationIdHigh: 1 },
      { operationIdLow: 1 },
      { routedGeneration: 1 },
      { conflictPolicy: 2 },
    ]) {
      t.match(await set("k/x", "a", more), { type: 100 }, JSON.stringify(more));
      t.match(await call("scan-all-by-prefix", { prefixKey: "k", ...more }), { type: 100 });
      t.match(await call("try-get-many", { items: [{ key: "k" }], ...more }), {
        type: 100,
        items: [{ type: 100 }],
      });
    }
    t.match(await set("k/e", "mem", { durability: 0 }), { type: 0, revision: 0 });
    t.match(await get("k/e"), { type: 103 });
    t.match(await get("k/e", { durability: "Ephemeral" }), { type: 3, value: text("mem") });
    t.match(await get("k/e", { durability: 2 }), { type: 100 });
  });

  await t.test("2.4 over gRPC: K4, revisions, unset is Ephemeral", async (t) => {
    const { grpc } = node;
    const kv = async (name: string, fields: object) => {
      const answer = await grpc.call("KeyValuer", name, fields as Record<string, unknown>);
      t.equal(answer.code, 0, name);
      return answer.fields;
    };
    const key = { Key: "g/1", Durability: 1 };
    t.match(await kv("TryGetKeyValue", { ...key, Revision: -1 }), {
      Type: 103,
      State: 0,
      Revision: "0",
    });
    t.match(await kv("TrySetKeyValue", { ...key, Value: Buffer.from("v"), Flags: 9 }), {
      Type: 0,
      Revision: "0",
      ServedFrom: node.grpcUrl,
      Route: { Provenance: 1 },
    });
    await kv("TrySetKeyValue", key);
    const got = await kv("TryGetKeyValue", { ...key, Revision: -1 });
    t.match(got, { Type: 3, Revision: "1", State: 1 });
    t.notOk(got["Value"]);
    t.equal(got["LastUsedPhysical"], got["LastModifiedPhysical"]);
    t.match(
      await kv("TryGetKeyValue", key),
      { Type: 3, Revision: "0", Value: Buffer.from("v") },
      "unset 0 is revision 0",
    );
    t.match(await kv("TryGetKeyValue", { Key: "g/1", Revision: -1 }), { Type: 103 });
    t.match(await kv("TryDeleteKeyValue", key), { Type: 4, Revision: "2" });
    t.match(await kv("TryExistsKeyValue", { ...key, Revision: -1 }), { Type: 103, State: 2 });
    for (const more of [
      { TransactionIdCounter: 1 },
      { CoordinatorKey: "a" },
      { OperationIdHigh: 1 },
      { RoutedGeneration: 1 },
      { ConflictPolicy: 2 },
      { ConflictPolicy: 9 },
      { Durability: 5 },
      { Flags: 64 },
      { Flags: 12 },
    ])
      t.match(await kv("TrySetKeyValue", { ...key, ...more }), { Type: 100 }, JSON.stringify(more));
    t.match(await kv("TrySetKeyValue", { ...key, ConflictPolicy: 1 }), { Type: 0, Revision: "3" });
    const many = await kv("TrySetManyKeyValue", { Items: [{ ...key }, { Key: "" }] });
    t.match(many, {
      Items: [{ Type: 0, Key: "g/1", Revision: "4", Durability: 1, RouteIndex: 1 }, { Type: 100 }],
    });
    t.match(await kv("TrySetManyKeyValue", {}), { Items: [], Routes: [] });
    const read = await kv("TryGetManyValues", { Items: [{ ...key, Revision: -1 }] });
    t.match(read, {
      Items: [{ Type: 3, State: 1, RouteIndex: 1 }],
      Routes: [{ Endpoint: node.grpcUrl }],
    });
    t.match(await kv("TryGetManyValues", { Items: [{ ...key }], ReadTimestampNode: 1 }), {
      Items: [{ Type: 100 }],
    });
  });
}
