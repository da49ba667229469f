/**
 * The files of the web console as a server gives them out: what is there, what is not, in which
 * form, with which headers, and to whom.
 */
import { createHash } from "node:crypto";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t, { type Test } from "tap";
import type { ConsoleFiles } from "../../../src/rest/routes/console-routes.js";
import { readConsoleFiles } from "../../../src/server/listeners/console-files.js";
import { type Answer, rawExchange, requestHttp2, type Rig, startRig } from "./harness.js";

const BUILT = readConsoleFiles() as ConsoleFiles;
const ALL_MAX_BYTES = 60 * 1024;
const COMPRESSED_MAX_BYTES = 20 * 1024;

async function rigFor(t: Test, ...options: Parameters<typeof startRig>): Promise<Rig> {
  const rig = await startRig(...options);
  t.teardown(() => rig.close());
  return rig;
}

function isGuarded(t: Test, { headers }: Answer, message: string): void {
  const policy = String(headers["content-security-policy"]);
  const rules = new Map(policy.split("; ").map((rule) => rule.split(/ (.*)/s) as [string, string]));
  const own = ["script-src", "style-src", "img-src", "connect-src"];
  const nothing = ["default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types"];
  for (const name of own) t.equal(rules.get(name), "'self'", `${message}: ${name}`);
  for (const name of nothing) t.equal(rules.get(name), "'none'", `${message}: ${name}`);
  t.equal(rules.get("require-trusted-types-for"), "'script'");
  t.equal(headers["x-content-type-options"], "nosniff");
  t.equal(headers["referrer-policy"], "no-referrer");
  t.notOk("set-cookie" in headers, "no cookie");
}

t.test("the page and all it names are there, guarded, and small (contract 3.8)", async (t) => {
  const rig = await rigFor(t, { console: BUILT });
  const page = await rig.call("GET", "/console/");
  t.equal(page.status, 200);
  t.equal(page.headers["content-type"], "text/html; charset=utf-8");
  t.equal(page.headers["cache-control"], "no-cache", "it names the others: always looked at");
  isGuarded(t, page, "the page");
  t.notMatch(page.text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/, "nothing inline");
  const named = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name = ""]) => name);
  t.equal(named.length, 3, "a script, a style sheet, a picture");
  const types = [/^image\/svg/, /^text\/css/, /^text\/javascript/];
  for (const [at, name] of named.entries()) {
    t.match(name, /^[a-z]+-[0-9a-f]{16}\.[a-z]+$/, "the digest of the content is in the name");
    const file = await rig.call("GET", `/console/${name}`);
    t.equal(file.status, 200, name);
    t.match(file.headers["content-type"], types[at] as RegExp);
    t.equal(file.headers["cache-control"], "public, max-age=31536000, immutable");
    isGuarded(t, file, name);
    t.match(name, createHash("sha256").update(file.text).digest("hex").slice(0, 16));
  }
  let bytes = 0;
  let compressed = 0;
  for (const { name } of BUILT.files.values()) {
    bytes += Buffer.byteLength((await rig.call("GET", `/console/${name}`)).text);
    const smaller = await rig.call("HEAD", `/console/${name}`, null, { "accept-encoding": "br" });
    compressed += Number(smaller.headers["content-length"]);
  }
  t.ok(bytes <= ALL_MAX_BYTES, `${bytes} bytes`);
  t.ok(compressed <= COMPRESSED_MAX_BYTES, `${compressed} bytes compressed`);
  t.strictSame(rig.faults, []);
});

t.test("each form unpacks to the same, and whoever knows it is not sent it", async (t) => {
  const rig = await rigFor(t, { console: BUILT });
  const plain = await rig.call("GET", "/console/");
  const fetched = async (encoding: string): Promise<Buffer> => {
    const headers = { "accept-encoding": encoding };
    const answer = await rig.client.request({ method: "GET", path: "/console/", headers });
    t.equal(answer.headers["content-encoding"], encoding);
    t.equal(answer.headers["vary"], "accept-encoding");
    return Buffer.from(await answer.body.arrayBuffer());
  };
  t.equal(brotliDecompressSync(await fetched("br")).toString(), plain.text);
  t.equal(gunzipSync(await fetched("gzip")).toString(), plain.text);
  const tag = String(plain.headers["etag"]);
  for (const known of [tag, `W/${tag}`, `"other", ${tag}`]) {
    const again = await rig.call("GET", "/console/", null, { "if-none-match": known });
    t.equal(again.status, 304, known);
    t.equal(again.text, "");
    t.equal(again.headers["etag"], tag);
  }
  const other = await rig.call("GET", "/console/", null, { "if-none-match": '"other"' });
  t.equal(other.status, 200);
  const head = await rig.call("HEAD", "/console/");
  t.equal(head.status, 200);
  t.equal(head.text, "");
  t.equal(Number(head.headers["content-length"]), Buffer.byteLength(plain.text));
});

t.test("which form a client gets", async (t) => {
  const rig = await rigFor(t, { console: BUILT });
  for (const [accepted, encoding] of [
    ["", undefined],
    ["identity", undefined],
    ["gzip, deflate, br, zstd", "br"],
    ["GZIP", "gzip"],
    ["br;q=0, gzip;q=0.5", "gzip"],
    ["br;q=0.0,gzip;q=0", undefined],
    ["brotli", undefined],
  ] as const) {
    const answer = await rig.call("HEAD", "/console/", null, { "accept-encoding": accepted });
    t.equal(answer.headers["content-encoding"], encoding, accepted);
  }
});

t.test("nothing else is there, whatever a path says", async (t) => {
  const rig = await rigFor(t, { console: BUILT });
  const paths = [
    "/console/files.json",
    "/console/index.html.br",
    "/console/..%2ffiles.json",
    "/console/%2e%2e",
    "/console/%2e%2e%2fbin%2fsvc-server.js",
    "/console/..%5cfiles.json",
    "/console/index.html%00",
    "/console/x/index.html",
    "/console/__proto__",
    "/console/constructor",
  ];
  for (const path of paths) {
    const answer = await rig.call("GET", path);
    t.equal(answer.status, 404, path);
    t.match(answer.body, { code: "unknown-path" });
  }
  const bare = await rawExchange(rig.httpPort, [
    "GET /console/../../package.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
  ]);
  t.match(bare.text, /^HTTP\/1\.1 404 /, "dots are a name as any other");
  for (const path of ["/console/%zz", `/console/${"a".repeat(300)}`]) {
    const malformed = await rig.call("GET", path);
    t.equal(malformed.status, 400, "no text, or too long a one");
  }
  const way = await rig.call("GET", "/console");
  t.equal(way.status, 308);
  t.equal(way.headers["location"], "/console/");
  t.strictSame(rig.faults, []);
});

t.test("only GET and HEAD", async (t) => {
  const rig = await rigFor(t, { console: BUILT });
  for (const path of ["/console/", "/console/index.html"]) {
    for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
      const answer = await rig.call(method, path);
      t.equal(answer.status, 405, `${method} ${path}`);
      t.equal(answer.headers["allow"], "GET, HEAD, OPTIONS");
    }
    const asked = await rig.call("OPTIONS", path);
    t.equal(asked.status, 204);
    t.equal(asked.headers["allow"], "GET, HEAD, OPTIONS");
  }
});

t.test("nobody is needed for it, and it is over HTTP/2 too (contract 10.1, 10.6)", async (t) => {
  const asked: unknown[] = [];
  const authenticator = {
    authenticate: (authorization: string | null) => {
      asked.push(authorization);
      return null;
    },
  };
  const browsers = { allowedOrigins: new Set<string>(), hosts: new Set(["node-1"]) };
  const rig = await rigFor(t, { console: BUILT, authenticator, browsers });
  const headers = { host: "console.example", origin: "https://evil.example" };
  t.equal((await rig.call("GET", "/console/", null, headers)).status, 200, "files are no secret");
  t.strictSame(asked, [], "nobody was asked who it is");
  const own = { host: "node-1" };
  const overview = await rig.call("GET", "/v1/cluster/overview", null, own);
  t.equal(overview.status, 401, "data are for callers with a role");
  const secure = await requestHttp2(rig.http2(), { ":path": "/console/" });
  t.equal(secure.status, 200);
  isGuarded(t, secure, "over HTTP/2");
});

t.test("without a console there is nothing at its paths", async (t) => {
  const rig = await rigFor(t);
  for (const path of ["/console", "/console/", "/console/index.html"]) {
    const answer = await rig.call("GET", path);
    t.equal(answer.status, 404, path);
    t.match(answer.body, { code: "unknown-path" });
  }
  const { paths } = (await rig.call("GET", "/openapi.json")).body as { paths: object };
  t.notMatch(Object.keys(paths).join(), /console/, "the document describes the API");
});

t.test("a file that cannot be read is not there; others are, and the node lives", async (t) => {
  const broken: ConsoleFiles = {
    ...BUILT,
    read: (file, encoding, done) => {
      if (file.name === BUILT.first) setImmediate(() => done(null));
      else BUILT.read(file, encoding, done);
    },
  };
  const rig = await rigFor(t, { console: broken });
  const answer = await rig.call("GET", "/console/");
  t.equal(answer.status, 404);
  isGuarded(t, answer, "the refusal");
  const [other = ""] = [...BUILT.files.keys()].filter((name) => name !== BUILT.first);
  t.equal((await rig.call("GET", `/console/${other}`)).status, 200);
  t.equal(rig.server.inFlight(), 0);
  t.strictSame(rig.faults, []);
});
