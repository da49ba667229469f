/** Contract 1.2, 1.4, 1.5 and 11: bodies, problem documents, headers, and the three ways to reach REST. */
import { connect } from "node:net";
import type { Test } from "tap";
import type { Node } from "./node.js";
import { http1, http2, post } from "./wire.js";

/** What came back on a raw connection until it was closed. */
function rawHttp(address: string, text: string): Promise<string> {
  const [host, port] = address.replace("http://", "").split(":") as [string, string];
  return new Promise((resolve) => {
    const socket = connect(Number(port), host, () => socket.write(text));
    let all = "";
    socket.on("data", (part) => {
      all += part.toString("latin1");
      socket.end();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(all));
  });
}

export async function bodies(t: Test, node: Node): Promise<void> {
  const { http } = node;
  const lock = "/v1/locks/get-info";

  await t.test("1.4 faults of a body are typed and name the member", async (t) => {
    const deep = (levels: number) =>
      `{"resource":${"[".repeat(levels - 1)}1${"]".repeat(levels - 1)}}`;
    const faults: [string, string, RegExp][] = [
      ["", "malformed-json", /./],
      ["{", "malformed-json", /./],
      ["\ufeff{}", "malformed-json", /./],
      ['{"resource":"a"}x', "malformed-json", /./],
      ['{"resource":01}', "malformed-json", /./],
      ['{"resource":"\u0001"}', "malformed-json", /./],
      [deep(17), "malformed-json", /./],
      [deep(16), "wrong-type", /resource/],
      ["[]", "wrong-type", /./],
      ["null", "wrong-type", /./],
      ['{"resource":5}', "wrong-type", /resource/],
      ['{"Resource":"a"}', "unknown-member", /Resource/],
      ['{"__proto__":{}}', "unknown-member", /__proto__/],
      ['{"constructor":1}', "unknown-member", /constructor/],
      ['{"resource":"a","resource":"a"}', "duplicate-member", /resource/],
      ['{"resource":"a","\\u0072esource":"a"}', "duplicate-member", /resource/],
      ['{"resource":"a","durability":true}', "wrong-type", /durability/],
    ];
    for (const [body, code, detail] of faults) {
      const answer = await post(http, lock, body);
      t.equal(answer.status, 400, `${code} ${body.slice(0, 40)}`);
      t.equal(answer.headers["content-type"], "application/problem+json");
      t.match(answer.body, {
        type: `urn:svc:problem:${code}`,
        title: String,
        status: 400,
        detail,
        code,
      });
    }
    const surrogate = await post(http, lock, '{"resource":"\\ud800"}');
    t.match(
      [surrogate.status, surrogate.body["code"]],
      [400, "malformed-json"],
      "1.3: not valid Unicode",
    );
    const illFormed = await http1(http, lock, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: Buffer.from([...Buffer.from('{"resource":"'), 0xff, ...Buffer.from('"}')]),
    });
    t.match([illFormed.status, illFormed.body["code"]], [400, "malformed-json"]);
    for (const value of ["a", "YQ", "YQ=", "YR==", "Y Q==", "YQ==\\n", "_w=="])
      t.match(
        (await post(http, "/v1/kv/try-set", `{"key":"a","value":"${value}"}`)).body["code"],
        "invalid-base64",
        value,
      );
    for (const value of ['"1.0"', '"+1"', '" 1"', '""', '"0x1"', "true"])
      t.match(
        (await post(http, "/v1/kv/try-get", `{"key":"a","revision":${value}}`)).body["code"],
        "wrong-type",
        value,
      );
    for (const value of ['"-0"', '"007"', "-0"])
      t.match(
        (await post(http, "/v1/kv/try-get", `{"key":"nope","revision":${value}}`)).body,
        { type: 103 },
        value,
      );
    const nested = await post(http, "/v1/kv/try-set-many", '{"items":[{"key":"a"},{"kee":"a"}]}');
    t.match(nested.body, { code: "unknown-member", detail: /kee/ });
  });

  await t.test("1.4 media types and empty bodies", async (t) => {
    const send = (headers: Record<string, string>, body: string | undefined, path = lock) =>
      http1(http, path, { method: "POST", headers, body });
    const body = '{"resource":"a"}';
    for (const type of [
      "application/json",
      "application/json; charset=utf-8",
      "Application/JSON;charset=UTF-8",
    ])
      t.equal((await send({ "content-type": type, accept: "text/html" }, body)).status, 200, type);
    for (const type of [
      "text/plain",
      "application/json; charset=latin1",
      "application/problem+json",
    ])
      t.match(await send({ "content-type": type }, body), {
        status: 415,
        body: { code: "unsupported-media-type" },
      });
    t.match(await send({}, body), { status: 415 });
    const unregister = await send({}, undefined, "/v1/cluster/leave");
    t.equal(unregister.status, 409, "no body, no content type");
    t.equal(
      (await send({ "content-type": "application/json" }, "{}", "/v1/cluster/leave")).status,
      409,
    );
    t.match((await post(http, "/v1/cluster/leave", { a: 1 })).body, { code: "unknown-member" });
    t.match(await send({ "content-type": "text/plain" }, "{}", "/v1/cluster/leave"), {
      status: 415,
    });
  });

  await t.test("1.5 paths, methods, sizes, request ids", async (t) => {
    t.match(await http1(http, "/nothing"), { status: 404, body: { code: "unknown-path" } });
    t.match(await post(http, "/v1/kv/start-transaction", {}), { status: 404 });
    t.match(await http1(http, "/v1/locks/try-lock/"), { status: 404 });
    const wrong = await http1(http, lock);
    t.match(
      [wrong.status, wrong.body["code"], wrong.headers["allow"]],
      [405, "method-not-allowed", "POST"],
    );
    t.match((await http1(http, "/v1/ranges", { method: "DELETE" })).headers["allow"], /^GET/);
    const large = await post(http, lock, `{"resource":"${"a".repeat(2 * 1024 * 1024)}"}`);
    t.match([large.status, large.body["code"]], [413, "body-too-large"]);
    const header = await http1(http, "/livez", { headers: { "x-long": "a".repeat(17_000) } });
    t.match([header.status, header.body["code"]], [431, "headers-too-large"]);
    t.equal(
      (await http1(http, "/livez", { headers: { "x-long": "a".repeat(15_000) } })).status,
      200,
    );
    const line = await http1(http, `/livez?${"a".repeat(17_000)}`);
    t.equal(line.status, 431);
    t.equal(
      (await http1(http, "/livez", { headers: { "x-request-id": "a!~9" } })).headers[
        "x-request-id"
      ],
      "a!~9",
    );
    for (const id of ["a b", "a".repeat(129), ""]) {
      const made = (await http1(http, "/livez", { headers: { "x-request-id": id } })).headers[
        "x-request-id"
      ];
      t.match(made, /^[!-~]{1,128}$/);
      t.not(made, id);
    }
    t.match(await rawHttp(http, "NONSENSE\r\n\r\n"), /^HTTP\/1\.1 400 /);
    const { grpcAddress } = node;
    t.notMatch(
      await rawHttp(grpcAddress, "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n"),
      /HTTP\/1\.1 200/,
      "1.2 gRPC only",
    );
    const plain = await http2(`http://${grpcAddress}`, "/livez").catch(() => null);
    t.not(plain?.status, 200, "1.2: non-gRPC requests are refused");
  });

  await t.test("1.2 HTTPS: HTTP/1.1, HTTP/2 and gRPC on one port", async (t) => {
    const send = {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"key":"tls"}',
    };
    const over1 = await http1(node.https, "/v1/kv/try-get", send);
    const over2 = await http2(node.https, "/v1/kv/try-get", send);
    const clear = await http1(http, "/v1/kv/try-get", send);
    t.same(over1.body, clear.body);
    t.same(over2.body, clear.body);
    t.match([over2.status, over2.headers["content-type"]], [200, "application/json"]);
    t.match(await http2(node.https, "/nothing"), { status: 404, body: { code: "unknown-path" } });
    t.match(await http2(node.https, lock), { status: 405, headers: { allow: "POST" } });
    const large = await http2(node.https, "/v1/kv/try-get", {
      ...send,
      body: "a".repeat(2 * 1024 * 1024 + 1),
    });
    t.equal(large.status, 413);
  });

  await t.test("1.2.3 svc-forwarded", async (t) => {
    const forwarded = await post(http, "/v1/kv/try-get", { key: "fwd" }, { "svc-forwarded": "1" });
    t.match(forwarded, { status: 200, body: { type: 103 } });
  });
}
