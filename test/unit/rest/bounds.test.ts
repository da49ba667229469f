/**
 * What the listeners bound: sizes, times, connections, streams, roles; HTTP/2 and TLS; the end of a
 * server.
 */
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2, constants, type ServerHttp2Stream } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import * as x509 from "@peculiar/x509";
import t, { type Test } from "tap";
import { ConnectionCount } from "../../../src/base/connections.js";
import { RESETS_BURST_MAX } from "../../../src/base/limits.js";
import { UnsentBytes } from "../../../src/base/unsent.js";
import { NO_STAMP } from "../../../src/base/hlc.js";
import type { KvPageAnswer } from "../../../src/operations/api/requests.js";
import type { Authenticator, Role } from "../../../src/rest/http/access.js";
import { Listener, SENDING_TIMES } from "../../../src/rest/http/listener.js";
import { UnsentAnswers } from "../../../src/rest/http/unsent.js";
import { makeSelfSigned } from "../../../src/server/security/certificate.js";
import { ENHANCE_YOUR_CALM, resetStreams } from "../grpc/resets.js";
import { blankAnswer } from "../../doubles/front/operations.js";
import { type Answer, rawExchange, requestHttp2, type Rig, startRig } from "./harness.js";

const POST = { ":method": "POST", "content-type": "application/json" };
const HOST = "Host: x\r\n";

function isProblem(t: Test, answer: Answer, status: number, code: string): void {
  t.equal(answer.status, status, `status ${status} ${code}`);
  t.match(answer.headers["content-type"], /^application\/problem\+json/);
  t.match(answer.body, { code, title: /./, detail: /./ });
}

async function eventually(t: Test, condition: () => boolean, message: string): Promise<void> {
  for (let turn = 0; turn < 400 && !condition(); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.ok(condition(), message);
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on("error", () => undefined);
    socket.resume();
    if (socket.destroyed) resolve();
    else socket.once("close", () => resolve());
  });
}

async function rigFor(t: Test, ...options: Parameters<typeof startRig>): Promise<Rig> {
  const rig = await startRig(...options);
  t.teardown(async () => {
    rig.port.release();
    await rig.close();
  });
  return rig;
}

t.test("P-164 bodies, headers and streams over HTTP/1.1", async (t) => {
  const rig = await rigFor(t, { maxRequestBytes: 1000 });
  const large = JSON.stringify({ name: "a".repeat(2000) });
  isProblem(t, await rig.post("/v1/sequences/next", large), 413, "body-too-large");
  isProblem(t, await rig.post("/v1/cluster/leave", large), 413, "body-too-large");
  const exact = JSON.stringify({ name: "a".repeat(1000 - 11) });
  t.equal((await rig.post("/v1/sequences/next", exact)).status, 200, "exactly the limit");
  const chunk = `3e8\r\n${"x".repeat(1000)}\r\n`;
  const head =
    `POST /v1/sequences/next HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    "Transfer-Encoding: chunked\r\n\r\n";
  const streamed = await rawExchange(rig.httpPort, [head + chunk + chunk, "0\r\n\r\n"]);
  t.match(streamed.text, /^HTTP\/1\.1 413 /);
  t.match(streamed.text, /body-too-large/);
  const huge = 8 << 20;
  const flood = await rawExchange(rig.httpPort, [
    `POST /v1/kv/try-set HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
      `Content-Length: ${huge}\r\n\r\n${"x".repeat(huge)}`,
  ]);
  t.match(flood.text, /^HTTP\/1\.1 413 /, "a sender that does not look up gets its answer too");

  const fat = await rawExchange(rig.httpPort, [
    `GET /livez HTTP/1.1\r\n${HOST}X-Fat: ${"y".repeat(20_000)}\r\n\r\n`,
  ]);
  t.match(fat.text, /^HTTP\/1\.1 431 [^]*application\/problem\+json[^]*headers-too-large/);
  const garbage = await rawExchange(rig.httpPort, ["\x16\x03\x01 hello\r\n\r\n"]);
  t.match(garbage.text, /^HTTP\/1\.1 400 [^]*malformed-http/);
  const prior = await rawExchange(rig.httpPort, ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]);
  t.match(prior.text, /^HTTP\/1\.1 400 /, "no HTTP/2 on the cleartext port");
  const twice = await rawExchange(rig.httpPort, [
    `POST /v1/locks/get-info HTTP/1.1\r\n${HOST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
  ]);
  t.match(twice.text, /^HTTP\/1\.1 400 /, "two lengths");

  const body = '{"name":"a"}';
  const one =
    `POST /v1/sequences/next HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n`;
  const pipelined = `${one}\r\n${body}`.repeat(5) + `${one}Connection: close\r\n\r\n${body}`;
  const all = await rawExchange(rig.httpPort, [pipelined]);
  t.equal(all.text.match(/HTTP\/1\.1 200 OK/g)?.length, 6, "pipelined requests");
  const drops = [...`${one}Connection: close\r\n\r\n${body}`];
  t.match((await rawExchange(rig.httpPort, drops)).text, /^HTTP\/1\.1 200 /, "byte by byte");
  const expecting = await rawExchange(rig.httpPort, [
    `${one}Expect: 100-continue\r\nConnection: close\r\n\r\n`,
    body,
  ]);
  t.match(expecting.text, /^HTTP\/1\.1 100 [^]*HTTP\/1\.1 200 /);
  t.equal(rig.server.inFlight(), 0);
  t.strictSame(rig.faults, []);
});

t.test("P-164 a call may take longer than silence lasts, whoever is idle may not", async (t) => {
  const silenceMs = 200;
  const rig = await rigFor(t, { sendingTimes: { ...SENDING_TIMES, silenceMs } });
  rig.port.held = [];
  const body = '{"name":"a"}';
  const request =
    `POST /v1/sequences/next HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  const waiting = connect(rig.httpPort, "127.0.0.1");
  let text = "";
  waiting.on("data", (chunk: Buffer) => (text += chunk.toString()));
  waiting.write(request);
  await eventually(t, () => rig.port.held?.length === 1, "the operation runs");
  const idle = connect(rig.httpPort, "127.0.0.1");
  await closed(idle);
  await new Promise((resolve) => setTimeout(resolve, 4 * silenceMs));
  t.notOk(waiting.destroyed, "whoever waits for its answer is no silent peer");
  rig.port.release();
  await eventually(t, () => text.startsWith("HTTP/1.1 200 "), "and gets it");
  waiting.destroy();
  t.equal(rig.server.inFlight(), 0);
});

t.test("P-164 a handshake that ends too late is told as late, not as a mistake", (t) => {
  const server = createServer();
  new Listener(server, new ConnectionCount(1), SENDING_TIMES);
  const told = (code: string): string => {
    let text = "";
    const socket = { writable: true, end: (part: string) => (text += part), destroySoon: () => 0 };
    server.emit("clientError", Object.assign(new Error(code), { code }), socket);
    return text;
  };
  t.match(told("ERR_TLS_HANDSHAKE_TIMEOUT"), /^HTTP\/1\.1 408 [^]*request-timeout/);
  t.match(told("HPE_INVALID_METHOD"), /^HTTP\/1\.1 400 [^]*malformed-http/);
  t.end();
});

t.test("P-164 slow senders and clients that vanish", async (t) => {
  const sendingTimes = { ...SENDING_TIMES, headersMs: 150, requestMs: 300, checkMs: 20 };
  const rig = await rigFor(t, { sendingTimes });
  const silent = await rawExchange(rig.httpPort, [`GET /livez HTTP/1.1\r\n`]);
  t.match(silent.text, /^HTTP\/1\.1 408 [^]*request-timeout/, "headers that never end");
  const head =
    `POST /v1/sequences/next HTTP/1.1\r\n${HOST}Content-Type: application/json\r\n` +
    "Content-Length: 100\r\n\r\n";
  const slow = await rawExchange(rig.httpPort, [head + "{"]);
  t.ok(slow.closed, "a body that never ends");
  const drip = await rawExchange(rig.httpPort, [head, ...new Array<string>(60).fill(" ")], 10);
  t.ok(drip.closed, "a body that comes drop by drop");
  const vanishing = connect(rig.httpPort, "127.0.0.1");
  vanishing.write(head + "{");
  await eventually(t, () => rig.server.inFlight() === 1, "the request has begun");
  vanishing.destroy();
  await eventually(t, () => rig.server.inFlight() === 0, "and is forgotten");

  const session = rig.http2();
  const stream = session.request({ ...POST, ":path": "/v1/sequences/next" });
  stream.on("error", () => undefined);
  stream.write("{");
  const status = await new Promise((resolve) => {
    stream.on("response", (headers) => resolve(headers[":status"]));
  });
  t.equal(status, 408, "a body that never ends over HTTP/2");
  const gone = session.request({ ...POST, ":path": "/v1/sequences/next" });
  gone.on("error", () => undefined);
  gone.write("{");
  await eventually(t, () => rig.server.inFlight() === 1, "the stream has begun");
  gone.close(constants.NGHTTP2_CANCEL);
  await eventually(t, () => rig.server.inFlight() === 0, "and is forgotten");
  rig.port.held = [];
  const answerless = session.request({ ...POST, ":path": "/v1/sequences/next" });
  answerless.on("error", () => undefined);
  answerless.end("{}");
  await eventually(t, () => rig.port.held?.length === 1, "the operation runs");
  session.destroy();
  const left = rig.httpsPort;
  await new Promise((resolve) => setTimeout(resolve, 50));
  rig.port.release();
  t.equal(rig.server.inFlight(), 0, `an answer for nobody is dropped (port ${left})`);
  t.strictSame(rig.faults, []);
});

t.test("HTTPS: HTTP/1.1 and HTTP/2 by ALPN, gRPC streams aside", async (t) => {
  const grpc: string[] = [];
  const rig = await rigFor(
    t,
    { maxRequestBytes: 1000 },
    (stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>) => {
      grpc.push(String(headers[":path"]));
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      stream.end();
    },
  );
  const session = rig.http2();
  const next = { ...POST, ":path": "/v1/sequences/next" };
  const answer = await requestHttp2(session, { ...next, "x-request-id": "abc" }, '{"name":"a"}');
  t.equal(answer.status, 200);
  t.match(answer.body, { type: "Success", allocation: { name: null } });
  t.equal(answer.headers["x-request-id"], "abc");
  t.equal((await requestHttp2(session, { ":path": "/livez" })).text, "ok");
  const head = await requestHttp2(session, { ":method": "HEAD", ":path": "/livez" });
  t.strictSame([head.status, head.text, head.headers["content-length"]], [200, "", "2"]);
  isProblem(t, await requestHttp2(session, { ":path": "/x" }), 404, "unknown-path");
  isProblem(
    t,
    await requestHttp2(session, { ...next, ":method": "GET" }),
    405,
    "method-not-allowed",
  );
  isProblem(t, await requestHttp2(session, next, "x".repeat(2000)), 413, "body-too-large");
  const lengthy = { ...next, "content-length": "2000" };
  isProblem(t, await requestHttp2(session, lengthy, "x".repeat(2000)), 413, "body-too-large");
  const fat = { ":path": "/livez", "x-fat": "y".repeat(20_000) };
  isProblem(t, await requestHttp2(session, fat), 431, "headers-too-large");
  const none = await requestHttp2(session, { ":method": "POST", ":path": "/v1/cluster/leave" }, "");
  t.equal(none.status, 200, "no body, no type, no length");
  const type = { ":method": "POST", "content-type": "application/grpc+proto" };
  const called = await requestHttp2(session, { ...type, ":path": "/Sequencer/GetSequence" }, "");
  t.equal(called.headers["content-type"], "application/grpc");
  t.strictSame(grpc, ["/Sequencer/GetSequence"]);

  const many = await Promise.all(
    new Array(256).fill(0).map(() => requestHttp2(session, next, '{"name":"a"}')),
  );
  t.ok(
    many.every((one) => one.status === 200),
    "256 streams at once",
  );
  t.equal(session.remoteSettings.maxConcurrentStreams, 256);

  const tls = connectTls({ port: rig.httpsPort, ca: rig.certificate, servername: "localhost" });
  tls.write(`GET /livez HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
  let text = "";
  tls.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await closed(tls);
  t.match(text, /^HTTP\/1\.1 200 OK[^]*ok$/);
  const plain = await rawExchange(rig.httpsPort, [`GET /livez HTTP/1.1\r\n${HOST}\r\n`]);
  t.ok(plain.closed, "cleartext on the TLS port is closed");
  t.strictSame(rig.faults, []);
  t.equal(rig.server.inFlight(), 0);
});

t.test("P-164 a client that resets its streams without end is cut off over TLS", async (t) => {
  const connections = new ConnectionCount();
  const rig = await rigFor(t, { connections });
  const session = connectHttp2(`https://127.0.0.1:${rig.httpsPort}`, { rejectUnauthorized: false });
  t.teardown(() => session.destroy());
  const headers = { ...POST, ":path": "/v1/sequences/next" };
  t.equal(await resetStreams(session, headers, RESETS_BURST_MAX / 2), null, "some are nothing");
  t.equal(connections.endedByResets, 0);
  t.equal(await resetStreams(session, headers, RESETS_BURST_MAX), ENHANCE_YOUR_CALM);
  t.equal(connections.endedByResets, 1, "counted once");
  await eventually(t, () => connections.open.https === 0, "and the connection is gone");
  t.equal((await rig.call("GET", "/livez")).status, 200);
});

t.test("P-164 connections beyond the budget are closed at accept", async (t) => {
  let open = 0;
  const connections = {
    enter: (): boolean => {
      if (open >= 3) return false;
      open++;
      return true;
    },
    leave: (): void => {
      open--;
    },
    endedForResets: (): void => undefined,
  };
  const rig = await rigFor(t, { connections });
  const sockets = [1, 2, 3].map(() => connect(rig.httpPort, "127.0.0.1"));
  await eventually(t, () => open === 3, "three connections");
  await closed(connect(rig.httpPort, "127.0.0.1"));
  await closed(connect(rig.httpsPort, "127.0.0.1"));
  t.equal(open, 3, "the budget is shared by the listeners");
  for (const socket of sockets) socket.destroy();
  await eventually(t, () => open === 0, "all came back");
  t.equal((await rig.call("GET", "/livez")).status, 200);
});

t.test("roles are checked before the body is read", async (t) => {
  const seen: (string | null)[] = [];
  const authenticator: Authenticator = {
    authenticate: (authorization) => {
      seen.push(authorization);
      const match = /^Bearer (reader|writer|admin)$/.exec(authorization ?? "");
      return match === null ? null : { role: match[1] as Role, name: "somebody" };
    },
  };
  const rig = await rigFor(t, { authenticator, maxRequestBytes: 1000 });
  const document = (await rig.call("GET", "/openapi.json")).body as {
    paths: Record<string, Record<string, { "x-svc-role": string }>>;
  };
  const ranks = ["nobody", "reader", "writer", "admin"];
  const expected: Record<string, number> = { nobody: 5, reader: 18, writer: 13, admin: 19 };
  const counted: Record<string, number> = {};
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const needed = ranks.indexOf(operation["x-svc-role"]);
      counted[operation["x-svc-role"]] = (counted[operation["x-svc-role"]] ?? 0) + 1;
      const body = method === "post" ? "{}" : null;
      const none = await rig.call(method.toUpperCase(), path, body);
      if (needed === 0) t.not(none.status, 401, path);
      else {
        isProblem(t, none, 401, "unauthenticated");
        t.equal(none.headers["www-authenticate"], "Bearer");
      }
      for (const [rank, role] of ranks.entries()) {
        if (rank === 0) continue;
        const headers = { authorization: `Bearer ${role}` };
        const answer = await rig.call(method.toUpperCase(), path, body, headers);
        const forbidden = answer.body?.["code"] === "forbidden";
        t.equal(forbidden, rank < needed, `${role} on ${path}`);
      }
    }
  }
  t.strictSame(counted, expected);
  const before = rig.port.recorded.length;
  isProblem(t, await rig.post("/v1/kv/try-set", "x".repeat(2000)), 401, "unauthenticated");
  isProblem(t, await rig.post("/v1/kv/try-set", "{"), 401, "unauthenticated");
  t.equal(rig.port.recorded.length, before);
  isProblem(t, await rig.call("GET", "/v1/nothing"), 404, "unknown-path");
  t.strictSame(rig.faults, []);
});

/** A certificate that is its own authority, for the unit `unit`. */
async function clientCertificate(unit: string): Promise<{ cert: string; key: string }> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  x509.cryptoProvider.set(webcrypto);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=worker-${unit}, OU=${unit}`,
    notBefore: new Date(Date.now() - 3_600_000),
    notAfter: new Date(Date.now() + 3_600_000),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  const key = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
  const body = key.toString("base64").replace(/(.{64})/g, "$1\n");
  return {
    cert: certificate.toString("pem"),
    key: `-----BEGIN PRIVATE KEY-----\n${body.trimEnd()}\n-----END PRIVATE KEY-----\n`,
  };
}

t.test("client certificates reach the authenticator over both protocols", async (t) => {
  const seen: unknown[] = [];
  const authenticator: Authenticator = {
    authenticate: (_, certificate) => {
      seen.push(certificate);
      return certificate === null ? null : { role: "reader", name: certificate.commonName };
    },
  };
  const known = await clientCertificate("svc-reader");
  const stranger = await clientCertificate("svc-admin");
  const rig = await rigFor(t, { authenticator });
  const own = await makeSelfSigned("svc-dev");
  const material = {
    certificate: own.certificate,
    key: own.key,
    clientCa: known.cert,
    clientCertificateRequired: false,
  };
  const port = await rig.server.listenHttps("127.0.0.1", 0, material, null);
  const status = async (pair: { cert: string; key: string } | null): Promise<number[]> => {
    const tls = { ca: own.certificate, servername: "localhost", ...(pair ?? {}) };
    const session = connectHttp2(`https://127.0.0.1:${port}`, tls);
    const path = { ":path": "/v1/cluster/membership" };
    const second = await requestHttp2(session, path);
    t.equal((await requestHttp2(session, path)).status, second.status, "again on one session");
    session.destroy();
    const socket = connectTls({ port, ...tls });
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
    socket.write(`GET /v1/cluster/membership HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    await closed(socket);
    return [second.status, Number(text.slice(9, 12))];
  };
  t.strictSame(await status(known), [200, 200]);
  const facts = { commonName: "worker-svc-reader", organizationalUnits: ["svc-reader"] };
  t.strictSame(seen, [facts, facts, facts]);
  t.strictSame(await status(null), [401, 401], "no certificate");
  t.strictSame(await status(stranger), [401, 401], "a certificate of another authority");
  t.strictSame(seen.slice(3), [null, null, null, null, null, null]);
});

t.test("P-164 odd request targets are answered", async (t) => {
  const rig = await rigFor(t);
  const targets: readonly (readonly [string, number])[] = [
    ["GET //", 404],
    ["GET /v1//locks", 404],
    ["GET /v1/backups//chain", 503],
    [`GET /v1/backups/${"a".repeat(300)}/chain`, 400],
    ["GET /v1/backups/%2e%2e/chain", 503],
    ["GET /livez#x", 200],
    ["GET /livez?", 200],
    ["GET /livez?verbose=1&verbose=2", 200],
    ["GET /LIVEZ", 404],
    ["GET /%6civez", 200],
    ["OPTIONS *", 404],
    ["GET http://other/livez", 200],
    ["TRACE /livez", 405],
    ["BREW /livez", 400],
    ["DELETE /v1/kv/try-set", 405],
  ];
  for (const [target, status] of targets) {
    const sent = `${target} HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`;
    const { text } = await rawExchange(rig.httpPort, [sent]);
    t.equal(text.slice(0, 12), `HTTP/1.1 ${status}`, target.slice(0, 40));
  }
  t.strictSame(rig.faults, []);
  t.equal(rig.server.inFlight(), 0);
});

t.test("P-127 pages of many rows arrive whole, over both protocols", async (t) => {
  const rig = await rigFor(t);
  const stamps = { expires: NO_STAMP, lastModified: NO_STAMP };
  for (const [path, kind, body] of [
    ["/v1/kv/get-by-range", "kv-range", '{"prefix":"k"}'],
    ["/v1/kv/get-by-bucket", "kv-bucket", '{"prefixKey":"k"}'],
    ["/v1/kv/scan-all-by-prefix", "kv-scan-all", '{"prefixKey":"k"}'],
  ] as const) {
    for (const count of [1000, 1001, 10_000]) {
      const items = Array.from({ length: count }, (_, at) => {
        return {
          key: `k/${at} é`,
          value: Buffer.from([at & 255]),
          revision: at,
          state: 1,
          ...stamps,
        };
      });
      const page = { ...blankAnswer(kind, 3), items, hasMore: false } as KvPageAnswer;
      rig.port.answers.push(page, page);
      const first = await rig.call("POST", path, body);
      const headers = { ...POST, ":path": path };
      const second = await requestHttp2(rig.http2(), headers, body);
      for (const { status, text, body: got } of [first, second]) {
        t.equal(status, 200, `${path}, ${count} rows`);
        const list = (got?.["items"] ?? []) as readonly { readonly key: string }[];
        t.equal(list.length, count);
        t.equal(list.at(-1)?.key, `k/${count - 1} é`);
        t.equal(text, first.text);
      }
      t.equal(Number(first.headers["content-length"]), Buffer.byteLength(first.text));
    }
  }
  t.strictSame(rig.faults, []);
});

t.test("P-153 answers that nobody reads are bounded", async (t) => {
  const count = new UnsentBytes();
  const unsent = new UnsentAnswers(count);
  const responses: EventEmitter[] = [];
  const track = (characters: number): void => {
    const response = Object.assign(new EventEmitter(), { destroy: () => undefined });
    responses.push(response);
    unsent.track(response, characters);
  };
  track(1000);
  t.equal(count.bytes, 0, "small answers are not counted");
  const large = 100 << 20;
  t.ok(unsent.admits(large));
  track(large);
  t.ok(unsent.admits(large));
  track(large);
  t.notOk(unsent.admits(large), "the third one would be too much");
  t.ok(unsent.admits(1000), "small ones pass");
  for (const response of responses) response.emit("close");
  t.equal(count.bytes, 0);

  const rig = await rigFor(t);
  // One stream a session: within a session its memory credit would bound the answers already.
  const value = Buffer.alloc((12 << 20) - 1024);
  const item = { key: "k", value, revision: 0, state: 1 };
  const page = { ...blankAnswer("kv-bucket", 3) } as KvPageAnswer;
  const items = [{ ...item, expires: NO_STAMP, lastModified: NO_STAMP }];
  const read = { ...POST, ":path": "/v1/kv/get-by-bucket" };
  const statuses: unknown[] = [];
  const streams = Array.from({ length: 20 }, () => {
    rig.port.answers.push({ ...page, items });
    const stream = rig.http2().request(read);
    stream.on("response", (headers) => statuses.push(headers[":status"]));
    stream.on("error", () => undefined);
    stream.end("{}");
    return stream;
  });
  await eventually(t, () => statuses.length === 20, "every reader hears");
  const refused = statuses.filter((status) => status === 503).length;
  t.equal(refused, 4, "16 answers of 16 MiB wait, the others are refused as overload");
  for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
  await eventually(t, () => rig.server.inFlight() === 0, "nothing is left");
  const after = async (): Promise<Answer> => {
    rig.port.answers.push({ ...page, items });
    return requestHttp2(rig.http2(), read, "{}");
  };
  let answer = await after();
  for (let turn = 0; turn < 50 && answer.status !== 200; turn++) answer = await after();
  t.equal(answer.status, 200, "room again once the readers are gone");
  t.strictSame(rig.faults, []);
});

t.test("P-162 a server that closes answers what it accepted", async (t) => {
  const rig = await rigFor(t);
  const idle = connect(rig.httpPort, "127.0.0.1");
  await new Promise((resolve) => idle.once("connect", resolve));
  const session = rig.http2();
  t.equal((await requestHttp2(session, { ":path": "/livez" })).status, 200);
  const idleSession = rig.http2();
  t.equal((await requestHttp2(idleSession, { ":path": "/livez" })).status, 200);
  rig.port.held = [];
  const first = rig.post("/v1/sequences/next", { name: "a" });
  const second = requestHttp2(session, { ...POST, ":path": "/v1/sequences/next" }, '{"name":"b"}');
  await eventually(t, () => rig.port.held?.length === 2, "both are in progress");
  const closing = rig.server.close(5000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  t.equal(rig.server.inFlight(), 2);
  const refused = connect(rig.httpPort, "127.0.0.1");
  const refusal = await new Promise<string>((resolve) => {
    refused.once("error", () => resolve("refused"));
    refused.once("connect", () => resolve("accepted"));
  });
  t.equal(refusal, "refused", "no new connection");
  rig.port.release();
  const answer = await first;
  t.equal(answer.status, 200);
  t.equal(answer.headers["connection"], "close");
  t.equal((await second).status, 200);
  await closing;
  await closed(idle);
  t.ok(session.closed && idleSession.closed, "sessions are gone");
});

t.test("P-162 a close does not wait for requests that were never sent to their end", async (t) => {
  const rig = await rigFor(t);
  const session = rig.http2();
  const begin = (headers: Record<string, string>, text: string): Promise<number> => {
    const stream = session.request({ ...POST, ...headers });
    if (text !== "") stream.write(text);
    stream.on("error", () => undefined);
    stream.resume();
    return new Promise((resolve) => stream.on("close", () => resolve(stream.rstCode)));
  };
  const half = [
    begin({ ":path": "/v1/kv/try-set" }, "{"),
    begin({ ":path": "/v1/kv/try-set" }, ""),
    begin({ ":path": "/v1/kv/try-set", "content-length": "100" }, '{"key":"a"}'),
    begin({ ":path": "/v1/kv/try-set" }, '{"key":"a","value":"AAAA"}'),
    begin({ ":path": "/none/such" }, "{"),
    begin({ ":path": "/livez", ":method": "GET" }, ""),
  ];
  const slow = connect(rig.httpPort, "127.0.0.1");
  slow.write(`POST /v1/kv/try-set HTTP/1.1\r\n${HOST}Content-Length: 100\r\n`);
  slow.write("Content-Type: application/json\r\n\r\n{");
  await eventually(t, () => rig.server.inFlight() === 5, "all have begun");
  rig.port.held = [];
  const whole = rig.post("/v1/sequences/next", { name: "a" });
  await eventually(t, () => rig.port.held?.length === 1, "one is in progress");
  // The grace is far beyond the time limit of a test.
  const closing = rig.server.close(600_000);
  rig.port.release();
  t.equal((await whole).status, 200, "what was accepted is answered");
  await closing;
  const codes = await Promise.all(half);
  t.strictSame(codes.slice(0, 4), Array(4).fill(constants.NGHTTP2_REFUSED_STREAM));
  t.equal(rig.port.recorded.length, 1, "nothing was begun for any of them");
  await closed(slow);
  t.equal(rig.server.inFlight(), 0, "nothing is left in the books");
  t.strictSame(rig.faults, []);
});

t.test("P-162 a close that is never answered ends at its deadline", async (t) => {
  const rig = await rigFor(t);
  rig.port.held = [];
  const lost = rig.post("/v1/sequences/next", { name: "a" }).then(
    () => "answered",
    () => "cut",
  );
  const session = rig.http2();
  const stream = session.request({ ...POST, ":path": "/v1/kv/try-set" });
  stream.on("error", () => undefined);
  stream.write("{");
  await eventually(t, () => rig.server.inFlight() === 2, "both are in progress");
  await rig.server.close(100);
  t.equal(await lost, "cut");
  t.ok(session.closed);
});

t.test("C9 a deadline is the bound of its kind of call, from when its body is there", async (t) => {
  const bounds = { requestTimeoutMs: 20_000, adminTimeoutMs: 40_000, leaveTimeoutMs: 80_000 };
  const rig = await rigFor(t, bounds);
  const within = async (
    boundMs: number,
    call: () => Promise<number | undefined>,
  ): Promise<void> => {
    const before = performance.now();
    const deadlineMs = (await call()) ?? NaN;
    t.ok(deadlineMs >= before + boundMs, `not before ${boundMs}`);
    t.ok(deadlineMs <= performance.now() + boundMs, `not behind ${boundMs}`);
  };
  for (const path of ["/v1/kv/try-get", "/v1/kv/try-set", "/v1/sequences/next"]) {
    await within(bounds.requestTimeoutMs, async () => {
      await rig.post(path, {}, { "grpc-timeout": "90S" });
      return rig.port.recorded.at(-1)?.context.deadlineMs;
    });
  }
  t.equal(rig.port.recorded.length, 3);
  await within(bounds.adminTimeoutMs, async () => {
    await rig.call("GET", "/v1/cluster/membership");
    return rig.port.administeredIn?.deadlineMs;
  });
  await within(bounds.leaveTimeoutMs, async () => {
    await rig.call("POST", "/v1/cluster/leave");
    return rig.port.administeredIn?.deadlineMs;
  });
});

t.test("an exception in a route is 500 and reported, the server lives", async (t) => {
  const rig = await rigFor(t);
  const broken = (): void => {
    throw new Error("broken");
  };
  Object.assign(rig.port.administration, { "cluster.membership": broken });
  isProblem(t, await rig.call("GET", "/v1/cluster/membership"), 500, "internal");
  t.match(rig.faults, [/broken/]);
  t.equal((await rig.call("GET", "/livez")).status, 200);
});

t.test("the benchmark route exists only when asked for, and answers are observed", async (t) => {
  const seen: (readonly [string, number])[] = [];
  const observer = {
    answered: (path: string, status: number, durationMs: number): void => {
      t.ok(durationMs >= 0);
      seen.push([path, status]);
    },
    unauthenticated: () => undefined,
  };
  const rig = await rigFor(t, { benchmarkRoute: true, observer });
  t.equal((await rig.post("/v1/benchmark/noop", { a: 1 })).text, "{}");
  await rig.call("GET", "/nothing");
  t.strictSame(seen, [
    ["/v1/benchmark/noop", 200],
    ["", 404],
  ]);
  const plain = await rigFor(t);
  t.equal((await plain.post("/v1/benchmark/noop", {})).status, 404);
});
