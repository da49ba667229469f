/**
 * Requests of browsers: origins, names of hosts, and the answers to what is not even routed.
 */
import t, { type Test } from "tap";
import type { BrowserRules } from "../../../src/rest/http/browsers.js";
import { hostNameOf } from "../../../src/rest/http/browsers.js";
import { type Answer, rawExchange, requestHttp2, type Rig, startRig } from "./harness.js";

const EVIL = "https://evil.example";
const CONSOLE = "https://console.example:8443";
const RULES: BrowserRules = {
  allowedOrigins: new Set([CONSOLE]),
  hosts: new Set(["node-1.example", "fd00::7"]),
};
const NO_MEMBERS = ["/v1/cluster/leave", "/v1/ranges/merge", "/v1/backups/full"];

async function rigFor(t: Test, browsers: BrowserRules): Promise<Rig> {
  const rig = await startRig({ browsers });
  t.teardown(() => rig.close());
  return rig;
}

function isProblem(t: Test, answer: Answer, status: number, code: string, message: string): void {
  t.equal(answer.status, status, message);
  t.match(answer.headers["content-type"], /^application\/problem\+json/);
  t.match(answer.body, { code, status });
}

t.test("P-201 a page of a stranger calls nothing, whatever the protocol", async (t) => {
  const rig = await rigFor(t, { allowedOrigins: new Set([CONSOLE]), hosts: null });
  for (const path of NO_MEMBERS) {
    const before = rig.port.recorded.length;
    for (const origin of [EVIL, "null", `https://127.0.0.1:${rig.httpPort}`, `${CONSOLE}.evil`]) {
      const answer = await rig.call("POST", path, null, { origin });
      isProblem(t, answer, 403, "forbidden-origin", `${path} for ${origin}`);
    }
    t.equal(rig.port.recorded.length, before, "nothing came down");
  }
  const write = await rig.post("/v1/kv/try-set", { key: "k" }, { origin: EVIL });
  isProblem(t, write, 403, "forbidden-origin", "a write");
  isProblem(
    t,
    await rig.call("GET", "/metrics", null, { origin: EVIL }),
    403,
    "forbidden-origin",
    "a read",
  );
  const own = { origin: `http://127.0.0.1:${rig.httpPort}` };
  t.equal((await rig.post("/v1/kv/try-set", { key: "k" }, own)).status, 200, "the own origin");
  t.equal((await rig.post("/v1/kv/try-set", { key: "k" })).status, 200, "no browser");
  for (const path of ["/livez", "/readyz", "/v1/cluster/health", "/openapi.json", "/"]) {
    t.equal((await rig.call("GET", path, null, { origin: EVIL })).status, 200, `${path} is exempt`);
  }
  const session = rig.http2();
  const post = { ":method": "POST", ":path": "/v1/cluster/leave" };
  const foreign = await requestHttp2(session, { ...post, origin: EVIL }, "");
  isProblem(t, foreign, 403, "forbidden-origin", "over HTTP/2");
  const clear = await requestHttp2(session, { ...post, origin: own.origin }, "");
  isProblem(t, clear, 403, "forbidden-origin", "another scheme is another origin");
  const home = `https://127.0.0.1:${rig.httpsPort}`;
  const at = { ":authority": `127.0.0.1:${rig.httpsPort}`, origin: home };
  t.not((await requestHttp2(session, { ...post, ...at }, "")).status, 403, "its own over HTTP/2");
  t.strictSame(rig.faults, []);
});

t.test("P-201 pages of an allowed origin call and read", async (t) => {
  const rig = await rigFor(t, RULES);
  const headers = { origin: CONSOLE };
  const ask = await rig.call("OPTIONS", "/v1/kv/try-set", null, headers);
  t.equal(ask.status, 204);
  t.match(ask.headers, {
    "access-control-allow-origin": CONSOLE,
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers": /content-type/,
  });
  const answer = await rig.post("/v1/kv/try-set", { key: "k" }, headers);
  t.equal(answer.status, 200);
  t.match(answer.headers, { "access-control-allow-origin": CONSOLE, vary: "origin" });
  const stranger = await rig.call("OPTIONS", "/v1/kv/try-set", null, { origin: EVIL });
  t.notMatch(Object.keys(stranger.headers), ["access-control-allow-origin"], "nobody else");
  t.notOk("access-control-allow-origin" in stranger.headers);
  t.notOk("access-control-allow-origin" in (await rig.post("/v1/kv/try-set", {})).headers);
});

t.test("P-201 without credentials the name of the host must be ours", async (t) => {
  const rig = await rigFor(t, RULES);
  const port = rig.httpPort;
  const status = async (host: string, path = "/v1/cluster/membership"): Promise<number> =>
    (await rig.call("GET", path, null, { host })).status;
  const names = [
    "localhost",
    `localhost:${port}`,
    `127.0.0.1:${port}`,
    "127.9.9.9",
    `[::1]:${port}`,
  ];
  names.push("LOCALHOST.", "node-1.example:99", "Node-1.Example", "[fd00::7]:1");
  for (const host of names) t.equal(await status(host), 200, host);
  const foreign = [
    "evil.example",
    `evil.example:${port}`,
    "localhost.evil.example",
    "127.0.0.1.evil",
  ];
  foreign.push("10.0.0.1", "[fd00::8]", "node-1.example.evil", "a@localhost", "128.0.0.1");
  for (const host of foreign) {
    const answer = await rig.call("GET", "/v1/cluster/membership", null, { host });
    isProblem(t, answer, 421, "misdirected-request", host);
    t.equal(await status(host, "/livez"), 200, "probes come under any name");
  }
  const rebound = { host: `evil.example:${port}`, origin: `http://evil.example:${port}` };
  const write = await rig.post("/v1/kv/try-set", { key: "k" }, rebound);
  isProblem(t, write, 421, "misdirected-request", "a name that was pointed here");
  const session = rig.http2();
  const get = { ":method": "GET", ":path": "/v1/cluster/membership" };
  const over2 = await requestHttp2(session, { ...get, ":authority": "evil.example" });
  isProblem(t, over2, 421, "misdirected-request", "over HTTP/2");
  const here = { ...get, ":authority": `127.0.0.1:${rig.httpsPort}` };
  t.equal((await requestHttp2(session, here)).status, 200);
  t.same(["a", "a:1", "[::1]:1", "[::1]", "a.", ":1", "a:b:c", "[a"].map(hostNameOf), [
    "a",
    "a",
    "::1",
    "::1",
    "a",
    "",
    "",
    "",
  ]);
});

t.test(
  "P-201 with credentials every name is ours, and pages of strangers still are not",
  async (t) => {
    const rig = await rigFor(t, { allowedOrigins: new Set(), hosts: null });
    const host = { host: "lb.example" };
    t.equal((await rig.call("GET", "/v1/cluster/membership", null, host)).status, 200);
    const page = { ...host, origin: EVIL };
    t.equal((await rig.call("GET", "/v1/cluster/membership", null, page)).status, 403);
  },
);

t.test("refusals before routing are problem documents", async (t) => {
  const rig = await rigFor(t, RULES);
  const send = (port: number, head: string): Promise<{ readonly text: string }> =>
    rawExchange(port, [`${head}\r\n\r\n`]);
  const problem = (status: number, code: string): RegExp =>
    new RegExp(`^HTTP/1\\.1 ${status} [^]*application/problem\\+json[^]*"code":"${code}"`);
  const bare = await send(rig.httpPort, "GET /livez HTTP/1.1");
  t.match(bare.text, problem(400, "malformed-http"), "no Host");
  const twice = await send(rig.httpPort, "GET /livez HTTP/1.1\r\nHost: a\r\nhost: b");
  t.match(twice.text, problem(400, "malformed-http"), "two of them");
  const expecting = await send(
    rig.httpPort,
    "POST /v1/kv/try-get HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nContent-Length: 2",
  );
  t.match(expecting.text, problem(417, "expectation-failed"));
  t.match((await send(rig.httpPort, "GET /livez HTTP/1.0")).text, /^HTTP\/1\.1 200 /, "HTTP/1.0");
  t.equal(rig.server.inFlight(), 0);
  t.strictSame(rig.faults, []);
});
