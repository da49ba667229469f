/** Contract 3.4 and K11: many-calls over REST. */
import type { Test } from "tap";
import type { Node } from "./node.js";
import { post } from "./wire.js";

const ZERO = { n: 0, l: 0, c: 0 };
const text = (value: string): string => Buffer.from(value).toString("base64");

export async function many(t: Test, node: Node): Promise<void> {
  const call = async (name: string, body: object) => {
    const answer = await post(node.http, `/v1/kv/${name}`, body);
    t.equal(answer.status, 200, `${name} ${answer.text.slice(0, 200)}`);
    return answer.body;
  };

  await t.test("K11 many", async (t) => {
    const items = [
      { key: "m/1", value: text("1") },
      { key: "", value: text("2") },
      { key: "m/3", flags: 4 },
      { key: "m|x/4", value: null, durability: 0 },
      { key: "m/1", expiresMs: -4 },
    ];
    const done = await call("try-set-many", { items });
    t.same(Object.keys(done).sort(), ["items", "routes", "timeElapsedMs", "type"]);
    t.equal(done["type"], 0);
    t.match(done["items"], [
      { key: "m/1", type: 0, revision: 0, durability: 1, routeIndex: 1, servedFrom: node.grpcUrl },
      { key: "", type: 100, routeIndex: 0 },
      { key: "m/3", type: 1, revision: -1 },
      { key: "m|x/4", type: 0, durability: 0 },
      { key: "m/1", type: 100 },
    ]);
    t.same(Object.keys((done["items"] as object[])[0] as object).sort(), [
      "durability",
      "key",
      "lastModified",
      "revision",
      "routeIndex",
      "servedFrom",
      "type",
    ]);
    const routes = done["routes"] as Record<string, unknown>[];
    t.match(routes[0], {
      partitionId: Number,
      endpoint: node.grpcUrl,
      provenance: 1,
      generation: 0,
    });
    const read = await call("try-get-many", {
      items: [{ key: "m/1" }, { key: "none" }, { key: "m/1", revision: 7 }],
    });
    t.same(Object.keys(read).sort(), ["items", "routes", "servedFrom", "timeElapsedMs", "type"]);
    t.match(read, {
      type: 3,
      items: [
        { key: "m/1", type: 3, value: text("1"), revision: 0, durability: 1, expires: ZERO },
        { key: "none", type: 103, value: null, revision: 0, lastModified: ZERO },
        { key: "m/1", type: 103 },
      ],
    });
    const exists = await call("try-exists-many", { items: [{ key: "m/1" }] });
    t.match(exists, { type: 3, items: [{ type: 10, value: null, revision: 0 }] });
    t.match(await call("try-delete-many", { items: [{ key: "m/1" }, { key: "m/1" }] }), {
      type: 4,
    });
    for (const name of ["try-set-many", "try-delete-many", "try-get-many", "try-exists-many"]) {
      for (const body of [{}, { items: [] }, { items: null }])
        t.match(await call(name, body), { type: 100, items: [] }, name);
      const full = Array.from({ length: 1024 }, (_, at) => ({ key: `f/${at}` }));
      const ran = await call(name, { items: full });
      t.ok(ran["type"] !== 100 && (ran["items"] as unknown[]).length === 1024, `${name} 1024`);
      const over = await call(name, { items: [...full, { key: "f" }] });
      t.equal(over["type"], 100);
      t.ok((over["items"] as { type: number }[]).every((item) => item.type === 100));
      t.equal((over["items"] as unknown[]).length, 1025);
    }
    const broken = { items: [{ key: "m/9" }, { key: "m/8", transactionId: { n: 0, l: 0, c: 1 } }] };
    t.match(await call("try-set-many", broken), {
      type: 100,
      items: [{ type: 100, key: "m/9" }, { type: 100 }],
    });
    t.match(await call("try-get", { key: "m/9" }), { type: 103 }, "nothing was done");
  });
}
