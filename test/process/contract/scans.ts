/** Contract 4.3 K12 to K17: buckets, prefix scans and range pages over REST and gRPC. */
import type { Test } from "tap";
import type { Node } from "./node.js";
import { post } from "./wire.js";

interface Page {
  readonly type: number;
  readonly items: readonly { readonly key: string; readonly value: string | null }[];
  readonly nextCursor: string | null;
  readonly hasMore: boolean;
}

export async function scans(t: Test, node: Node): Promise<void> {
  const call = async (name: string, body: object) => {
    const answer = await post(node.http, `/v1/kv/${name}`, body);
    t.equal(
      answer.status,
      200,
      `${name} ${JSON.stringify(body).slice(0, 90)} ${answer.text.slice(0, 200)}`,
    );
    return answer.body;
  };
  const setAll = (all: readonly string[], durability: number) =>
    call("try-set-many", { items: all.map((key) => ({ key, value: "YQ==", durability })) });
  const keysOf = (body: Record<string, unknown>) =>
    (body as unknown as Page).items.map((item) => item.key);
  const stored = ["p", "p/a", "p/b", "p/\u{1F600}", "p/\uffff", "p/c/d", "p//x", "p|q/z", "pp"];
  await setAll(stored, 1);
  await setAll(["p/mem"], 0);
  await call("try-delete", { key: "p/b" });
  const byBytes = (all: readonly string[]) =>
    [...all].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const live = byBytes(stored.filter((key) => key !== "p/b"));

  await t.test("K12, K13 buckets", async (t) => {
    const bucket = await call("get-by-bucket", { prefixKey: "p" });
    t.same(Object.keys(bucket).sort(), ["items", "servedFrom", "type"]);
    t.same(keysOf(bucket), byBytes(["p", "p/a", "p/\u{1F600}", "p/\uffff"]));
    t.same(Object.keys((bucket["items"] as object[])[0] as object).sort(), [
      "expires",
      "key",
      "lastModified",
      "revision",
      "value",
    ]);
    t.same(keysOf(await call("get-by-bucket", { prefixKey: "p/" })), ["p//x"]);
    t.same(keysOf(await call("get-by-bucket", { prefixKey: "p/c" })), ["p/c/d"]);
    t.same(keysOf(await call("get-by-bucket", { prefixKey: "p|q" })), ["p|q/z"]);
    t.same(keysOf(await call("get-by-bucket", { prefixKey: "p", durability: 0 })), ["p/mem"]);
    t.match(await call("get-by-bucket", { prefixKey: "nobody" }), { type: 3, items: [] });
    for (const prefixKey of ["", "__svc:x", "a".repeat(1025), undefined])
      t.match(await call("get-by-bucket", { prefixKey }), {
        type: 100,
        items: [],
        servedFrom: null,
      });
  });

  await t.test("K15 scan over all partitions, with and without limits", async (t) => {
    const whole = await call("scan-all-by-prefix", { prefixKey: "p" });
    t.same(Object.keys(whole).sort(), ["hasMore", "items", "nextCursor", "servedFrom", "type"]);
    t.same(keysOf(whole), live);
    t.match(whole, { type: 3, hasMore: false, nextCursor: null });
    for (const limit of [1, 2, 3, live.length]) {
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page: Page = (await call("scan-all-by-prefix", {
          prefixKey: "p",
          limit,
          cursor,
        })) as never;
        t.ok(page.items.length <= limit && (page.items.length > 0 || !page.hasMore));
        t.equal(page.hasMore, page.nextCursor !== null);
        seen.push(...page.items.map((item) => item.key));
        cursor = page.nextCursor;
      } while (cursor !== null);
      t.same(seen, live, `limit ${limit}`);
    }
    t.same(keysOf(await call("scan-all-by-prefix", { prefixKey: "p", durability: 0 })), ["p/mem"]);
    t.match(await call("scan-all-by-prefix", { prefixKey: "p", limit: 10000 }), { type: 3 });
    for (const more of [
      { limit: -1 },
      { limit: 10001 },
      { cursor: "nonsense" },
      { prefixKey: "" },
      { prefixKey: "__svc:" },
    ])
      t.match(await call("scan-all-by-prefix", { prefixKey: "p", ...more }), {
        type: 100,
        items: [],
        nextCursor: null,
        hasMore: false,
      });
    t.match(
      await call("scan-all-by-prefix", { prefixKey: "__svc" }),
      { type: 3, items: [] },
      "reserved keys hidden",
    );
    const bytes = Array.from({ length: 5 }, (_, at) => ({
      key: `large/${at}`,
      value: Buffer.alloc(1024 * 1024 - 10, at).toString("base64"),
    }));
    for (const item of bytes) await call("try-set", item);
    const unpaged = await call("scan-all-by-prefix", { prefixKey: "large/" });
    t.match([keysOf(unpaged).length, unpaged["hasMore"], unpaged["nextCursor"]], [5, false, null]);
    const first = await call("scan-all-by-prefix", { prefixKey: "large/", limit: 10_000 });
    t.ok(
      keysOf(first).length >= 1 && keysOf(first).length < 5 && first["hasMore"],
      "a page ends at 2 MiB",
    );
  });

  await t.test("K16 ranges", async (t) => {
    const range = (more: object) => call("get-by-range", { prefix: "p", ...more });
    const all = byBytes(["p", "p/a", "p/\u{1F600}", "p/\uffff"]);
    const whole = await range({});
    t.same(Object.keys(whole).sort(), ["hasMore", "items", "nextCursor", "servedFrom", "type"]);
    t.same(keysOf(whole), all);
    t.same(keysOf(await range({ startKey: "p/a" })), all.slice(2), "startInclusive as sent: false");
    t.same(keysOf(await range({ startKey: "p/a", startInclusive: true })), all.slice(1));
    t.same(keysOf(await range({ startInclusive: false })), all, "true when startKey is absent");
    t.same(keysOf(await range({ endKey: "p/a" })), ["p"]);
    t.same(keysOf(await range({ endKey: "p/a", endInclusive: true })), ["p", "p/a"]);
    t.same(keysOf(await range({ startKey: "z", endKey: "a" })), []);
    t.same(keysOf(await range({ startKey: "a", endKey: "p0" })), all);
    const first = (await range({ limit: 2 })) as unknown as Page;
    t.match(first, { hasMore: true, nextCursor: String });
    const second = (await range({ limit: 2, cursor: first.nextCursor })) as unknown as Page;
    t.same(
      [...first.items, ...second.items].map((item) => item.key),
      all,
    );
    for (const more of [
      { limit: -1 },
      { limit: 10001 },
      { cursor: "!" },
      { prefix: "" },
      { prefix: "__svc:a" },
    ])
      t.match(await range(more), { type: 100, items: [] }, JSON.stringify(more));
  });

  await t.test("2.4 over gRPC: pages, local scan with tombstones, range stream, K14", async (t) => {
    const { grpc } = node;
    const kv = async (name: string, fields: Record<string, unknown>) =>
      (await grpc.call("KeyValuer", name, { Durability: 1, ...fields })).fields;
    const names = (fields: Record<string, unknown>) =>
      (fields["Items"] as { Key: string }[]).map((item) => item.Key);
    t.same(names(await kv("ScanAllByPrefix", { PrefixKey: "p" })), live);
    t.same(names(await kv("ScanByPrefix", { PrefixKey: "p" })), live);
    const local = await kv("ScanByPrefix", { PrefixKey: "p/b", IncludeTombstones: true });
    t.match(local, {
      Type: 3,
      ServedFrom: node.grpcUrl,
      HasMore: false,
      Items: [{ Key: "p/b", State: 2 }],
    });
    t.match(await kv("GetByBucket", { PrefixKey: "p/c" }), {
      Type: 3,
      Items: [{ Key: "p/c/d", State: 1 }],
    });
    const page = await kv("GetByRange", { Prefix: "p", Limit: 2 });
    t.match(page, { Type: 3, HasMore: true });
    const last = names(page).at(-1);
    t.same(names(await kv("GetByRange", { Prefix: "p", StartKey: last })).length, 2);
    t.match(await kv("GetByRange", { Prefix: "p", SnapshotAtLeader: true }), { Type: 100 });
    const pages = grpc.stream("KeyValuer", "GetByRangeStream");
    pages.send({ Prefix: "p", Limit: 1, Durability: 1 });
    pages.half();
    t.equal(await pages.ended, 0);
    t.same(
      pages.received.map((received) => [names(received).length, received["HasMore"]]),
      [
        [1, true],
        [1, true],
        [1, true],
        [1, false],
      ],
    );
    const refused = grpc.stream("KeyValuer", "GetByRangeStream");
    refused.send({ Prefix: "", Durability: 1 });
    refused.half();
    t.equal(await refused.ended, 0);
    t.match(refused.received, [{ Type: 100 }]);
    for (let at = 0; at < 17; at += 1)
      await kv("TrySetKeyValue", { Key: `huge/${at}`, Value: Buffer.alloc(1024 * 1024), Flags: 0 });
    const large = await post(node.http, "/v1/kv/get-by-bucket", { prefixKey: "huge" });
    t.match(large, { status: 422, body: { code: "response-too-large", status: 422 } }, "K14");
    const scan = await post(node.http, "/v1/kv/scan-all-by-prefix", { prefixKey: "huge/" });
    t.match(scan, { status: 422, body: { code: "response-too-large", status: 422 } }, "K14, K15");
    const PrefixKey = "huge";
    for (const rpc of ["GetByBucket", "ScanAllByPrefix", "ScanByPrefix"]) {
      const exhausted = await grpc.call("KeyValuer", rpc, { PrefixKey, Durability: 1 });
      t.equal(exhausted.code, 8, rpc);
    }
    const stream = grpc.stream("KeyValuer", "BatchClientKeyValueRequests");
    stream.send({ Type: 9, RequestId: 1, GetByBucket: { PrefixKey, Durability: 1 } });
    stream.send({ Type: 10, RequestId: 2, ScanByPrefix: { PrefixKey, Durability: 1 } });
    stream.send({ Type: 10, RequestId: 3, ScanByPrefix: { PrefixKey, Durability: 1, Limit: 99 } });
    stream.half();
    t.equal(await stream.ended, 0);
    const received = [...stream.received].sort(
      (a, b) => Number(a["RequestId"]) - Number(b["RequestId"]),
    );
    t.match(received, [
      { Type: 9, RequestId: 1, GetByBucket: { Type: 99 } },
      { Type: 10, RequestId: 2, ScanByPrefix: { Type: 99, HasMore: false } },
      { Type: 10, RequestId: 3, ScanByPrefix: { Type: 3, HasMore: true } },
    ]);
    await kv("TryDeleteKeyValue", { Key: "huge/16" });
    await kv("TryDeleteKeyValue", { Key: "huge/15" });
    const fits = await post(node.http, "/v1/kv/scan-all-by-prefix", { prefixKey: "huge/" });
    t.match([fits.status, keysOf(fits.body).length, fits.body["hasMore"]], [200, 15, false]);
    for (const at of [15, 16])
      await kv("TrySetKeyValue", { Key: `huge/${at}`, Value: Buffer.alloc(1024 * 1024), Flags: 0 });
    const items = Array.from({ length: 17 }, (_, at) => ({ key: `huge/${at}` }));
    const many = await post(node.http, "/v1/kv/try-get-many", { items });
    t.equal(many.status, 200, `many large values: ${many.text.slice(0, 200)}`);
  });
}
