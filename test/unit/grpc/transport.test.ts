/**
 * The connections below gRPC: reflection and health through real clients, the shared TLS port,
 * roles, limits, liveness, the orderly end.
 */
import { connect as connectHttp2, createSecureServer, type ClientHttp2Session } from "node:http2";
import { request as httpRequest } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import { connect as connectTcp, createServer, type AddressInfo, type Socket } from "node:net";
import { credentials, status } from "@grpc/grpc-js";
import protobuf from "protobufjs";
import descriptor from "protobufjs/ext/descriptor.js";
import t, { type Test } from "tap";
import { ConnectionCount } from "../../../src/base/connections.js";
import { RESETS_BURST_MAX, RESETS_PER_SECOND } from "../../../src/base/limits.js";
import { ResetAllowance } from "../../../src/base/resets.js";
import type { Authenticator, Role } from "../../../src/grpc/h2/access.js";
import { Field, RequestHead } from "../../../src/grpc/h2/fields.js";
import { decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import type { Encodable } from "../../../src/proto/codec.js";
import * as health from "../../../src/proto/generated/health.js";
import * as reflection from "../../../src/proto/generated/reflection.js";
import * as sequences from "../../../src/proto/generated/sequences.js";
import { READY } from "../../doubles/front/administrative.js";
import {
  call,
  callRaw,
  codeOf,
  connect,
  eventually,
  identity,
  openStream,
  sleep,
  start,
} from "./harness.js";
import { certificate } from "./certificate.js";
import { ENHANCE_YOUR_CALM, resetStreams } from "./resets.js";

const STREAM = "/Sequencer/BatchClientSequenceRequests";

t.test("reflection: services, files, symbols, in one pool per service", async (t) => {
  const { client } = await start(t);
  const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
  const stream = openStream(client, path);
  const ask = async (
    question: Encodable<reflection.ServerReflectionRequest>,
  ): Promise<reflection.ServerReflectionResponse> => {
    const count = stream.messages.length;
    const request = { host: "h", ...question };
    stream.call.write(encodeMessage(reflection.ServerReflectionRequest, request));
    await stream.until(() => stream.messages.length > count);
    const bytes = stream.messages[count] ?? Buffer.alloc(0);
    const answer = decodeMessage(reflection.ServerReflectionResponse, bytes);
    if (answer === null) throw new Error("malformed response");
    return answer;
  };
  const list = await ask({ list_services: "" });
  t.strictSame(list.list_services_response?.service.map((one) => one.name).sort(), [
    "Backups",
    "Cluster",
    "KeyValuer",
    "Locker",
    "Sequencer",
    "Watcher",
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
  ]);
  t.match(list.original_request, { host: "h", message_request: "list_services" });
  for (const { name } of list.list_services_response?.service ?? []) {
    const answer = await ask({ file_containing_symbol: name });
    const files = answer.file_descriptor_response?.file_descriptor_proto ?? [];
    const type = descriptor.FileDescriptorSet;
    const set = { file: files.map((bytes) => descriptor.FileDescriptorProto.decode(bytes)) };
    const root = protobuf.Root.fromDescriptor(type.encode(type.fromObject(set)).finish());
    t.ok(root.resolveAll().lookupService(name).methodsArray.length > 0, name);
  }
  const symbols = ["GrpcRouteHint", "Locker.TryLock", "TYPE_NONE", "grpc.health.v1.Health.Watch"];
  symbols.push("grpc.health.v1.HealthCheckResponse.ServingStatus");
  for (const symbol of symbols) {
    const answer = await ask({ file_containing_symbol: symbol });
    t.ok(answer.file_descriptor_response, symbol);
  }
  t.ok((await ask({ file_by_filename: "routing.proto" })).file_descriptor_response);
  const unknown = [
    { file_by_filename: "x.proto" },
    { file_containing_symbol: "X" },
    { file_containing_extension: { containing_type: "X", extension_number: 1 } },
    { all_extension_numbers_of_type: "X" },
  ];
  for (const question of unknown) {
    t.equal((await ask(question)).error_response?.error_code, status.NOT_FOUND);
  }
  const known = await ask({ all_extension_numbers_of_type: "GrpcRouteHint" });
  t.match(known.all_extension_numbers_response, { base_type_name: "GrpcRouteHint" });
  t.equal((await ask({})).error_response?.error_code, status.INVALID_ARGUMENT);
  stream.call.end();
  t.equal(await stream.ended, status.OK);
});

t.test("health: SERVING exactly while ready; Watch tells every change", async (t) => {
  const { client, operations } = await start(t);
  const { HealthCheckRequest, HealthCheckResponse, ServingStatus } = health;
  const check = (service: string) =>
    call(
      client,
      "/grpc.health.v1.Health/Check",
      HealthCheckRequest,
      { service },
      HealthCheckResponse,
    );
  t.equal((await check("")).status, ServingStatus.SERVING);
  t.equal((await check("Locker")).status, ServingStatus.SERVING);
  const unknown = encodeMessage(HealthCheckRequest, { service: "Nobody" });
  t.equal(await codeOf(client, "/grpc.health.v1.Health/Check", unknown), status.NOT_FOUND);
  operations.healthNow = { ...READY, ready: false, reason: "catching-up" };
  t.equal((await check("")).status, ServingStatus.NOT_SERVING);
  const watch = (service: string): { seen: number[]; cancel: () => void } => {
    const seen: number[] = [];
    const path = "/grpc.health.v1.Health/Watch";
    const bytes = encodeMessage(HealthCheckRequest, { service });
    const stream = client.makeServerStreamRequest(path, identity, identity, bytes);
    stream.on("data", (data: Buffer) => {
      seen.push(decodeMessage(HealthCheckResponse, data)?.status ?? -1);
    });
    stream.on("error", () => undefined);
    return { seen, cancel: () => stream.cancel() };
  };
  const all = watch("");
  const nobody = watch("Nobody");
  await eventually(() => all.seen.length === 1 && nobody.seen.length === 1);
  operations.healthNow = READY;
  await eventually(() => all.seen.length === 2);
  t.strictSame(all.seen, [ServingStatus.NOT_SERVING, ServingStatus.SERVING]);
  t.strictSame(nobody.seen, [ServingStatus.SERVICE_UNKNOWN]);
  all.cancel();
  nobody.cancel();
});

t.test("health: watchers are bounded, and all of a round share one state", async (t) => {
  const { client, operations, port } = await start(t);
  let asked = 0;
  let state = READY;
  Object.defineProperty(operations, "healthNow", {
    get: () => {
      asked += 1;
      return state;
    },
  });
  const bytes = encodeMessage(health.HealthCheckRequest, { service: "" });
  const path = "/grpc.health.v1.Health/Watch";
  const watch = (over: typeof client): { seen: number; code: number | null; end: () => void } => {
    const stream = over.makeServerStreamRequest(path, identity, identity, bytes);
    const one = { seen: 0, code: null as number | null, end: () => stream.cancel() };
    stream.on("data", () => (one.seen += 1));
    stream.on("error", (error: { code?: number }) => (one.code = error.code ?? -1));
    return one;
  };
  const first = Array.from({ length: 9 }, () => watch(client));
  await eventually(() => first.every(({ seen, code }) => seen === 1 || code !== null));
  const codes = first.map(({ code }) => code).filter((code) => code !== null);
  t.same(codes, [status.RESOURCE_EXHAUSTED], "eight on a connection");
  const others = Array.from({ length: 5 }, () => connect(port));
  t.teardown(() => others.forEach((one) => one.close()));
  const more = others.flatMap((one) => Array.from({ length: 8 }, () => watch(one)));
  await eventually(() => more.every(({ seen }) => seen === 1));
  const before = asked;
  await sleep(1000);
  t.ok(asked - before <= 20, `48 watchers asked ${asked - before} times in ten rounds`);
  state = { ...READY, ready: false };
  await eventually(() => more.every(({ seen }) => seen === 2));
  t.equal(first.filter(({ seen }) => seen === 2).length, 8, "every watcher hears of a change");
  for (const one of first) one.end();
  await eventually(() => first.every(({ code }) => code !== null));
  const again = watch(client);
  await eventually(() => again.seen === 1);
  t.pass("room again");
  for (const one of [again, ...more]) one.end();
});

/** GET /hello over one HTTP/2 session. */
function getOverHttp2(session: ClientHttp2Session): Promise<string> {
  return new Promise((resolve) => {
    const stream = session.request({ ":path": "/hello" });
    let text = "";
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
    stream.on("end", () => resolve(text));
  });
}

t.test("one TLS port serves gRPC and, untouched, HTTP/1.1 and HTTP/2 requests", async (t) => {
  const { server, operations } = await start(t);
  const { key, cert } = await certificate();
  const shared = createSecureServer({ key, cert, allowHTTP1: true }, (request, response) => {
    response.end(`hello over ${request.httpVersion}`);
  });
  const others = shared.listeners("stream");
  shared.removeAllListeners("stream");
  shared.on("stream", (...args) => {
    if (server.handleStream(args[0], args[1])) return;
    for (const other of others) Reflect.apply(other, shared, args);
  });
  await new Promise<void>((resolve) => shared.listen(0, "127.0.0.1", resolve));
  const { port } = shared.address() as AddressInfo;
  const client = connect(port, credentials.createSsl(Buffer.from(cert)));
  t.teardown(() => {
    client.close();
    shared.close();
  });
  const path = "/Sequencer/NextSequenceValue";
  const before = operations.recorded.length;
  t.equal(await codeOf(client, path), 0);
  t.equal(operations.recorded.length, before + 1);
  const stream = openStream(client, STREAM);
  t.strictSame((await stream.headers).get("svc-batch-frames"), ["1"]);
  const item = { Type: 4, RequestId: 1, NextSequenceValue: { Name: "s" } };
  stream.call.write(encodeMessage(sequences.GrpcBatchClientSequenceRequest, item));
  await stream.until(() => stream.messages.length === 1);
  const session = connectHttp2(`https://localhost:${port}`, { ca: cert });
  t.equal(await getOverHttp2(session), "hello over 2.0", "REST over HTTP/2 while a stream is open");
  const grpc = session.request({
    ":method": "POST",
    ":path": "/Locker/GetLock",
    "content-type": "application/grpc",
    te: "trailers",
  });
  const trailers = new Promise((resolve) => grpc.on("trailers", resolve));
  grpc.end(Buffer.alloc(5));
  grpc.resume();
  t.match(await trailers, { "grpc-status": "0" }, "both kinds on one connection");
  session.close();
  const agent = new Agent({ ca: cert });
  const plain = await new Promise<string>((resolve, reject) => {
    const options = { agent, port, host: "localhost", path: "/hello" };
    const sent = httpsRequest(options, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("end", () => resolve(text));
    });
    sent.on("error", reject).end();
  });
  t.equal(plain, "hello over 1.1");
  agent.destroy();
  stream.call.end();
  t.equal(await stream.ended, status.OK);
});

/** Tokens are the names of the roles. */
const byToken: Authenticator = {
  authenticate: (authorization) => {
    const role = (["reader", "writer", "admin"] as const).find(
      (one) => authorization === `Bearer ${one}`,
    );
    return role === undefined ? null : { role, name: role };
  },
};

async function checkRole(t: Test, path: string, needed: Role | null): Promise<void> {
  const { client, operations } = await start(t, { authenticator: byToken });
  const none = await codeOf(client, path);
  t.equal(none, needed === null ? 0 : status.UNAUTHENTICATED, `${path} without credentials`);
  const order: readonly Role[] = ["reader", "writer", "admin"];
  for (const role of order) {
    const code = await codeOf(client, path, Buffer.alloc(0), { authorization: `Bearer ${role}` });
    const refused = needed !== null && order.indexOf(role) < order.indexOf(needed);
    if (refused) t.equal(code, status.PERMISSION_DENIED, `${path} as ${role}`);
    else t.not(code, status.PERMISSION_DENIED, `${path} as ${role}`);
  }
  const spoofed = { authorization: "Bearer reader", "svc-caller-role": "admin" };
  if (needed === "admin") t.equal(await codeOf(client, path, Buffer.alloc(0), spoofed), 7);
  operations.recorded.length = 0;
}

t.test("roles: each method needs its own, health needs none, nothing is read before", async (t) => {
  await checkRole(t, "/Sequencer/GetSequence", "reader");
  await checkRole(t, "/Sequencer/NextSequenceValue", "writer");
  await checkRole(t, "/Locker/GetLock", "reader");
  await checkRole(t, "/Locker/Unlock", "writer");
  await checkRole(t, "/KeyValuer/ScanAllByPrefix", "reader");
  await checkRole(t, "/KeyValuer/TrySetManyKeyValue", "writer");
  await checkRole(t, "/KeyValuer/RegisterKeyRange", "admin");
  await checkRole(t, "/Cluster/GetPlacement", "reader");
  await checkRole(t, "/Cluster/Leave", "admin");
  await checkRole(t, "/Backups/ListBackups", "admin");
  await checkRole(t, "/grpc.health.v1.Health/Check", null);
});

t.test("roles on a batch stream: judged when it opens, each item against it", async (t) => {
  const { client, operations } = await start(t, { authenticator: byToken });
  t.equal(await openStream(client, STREAM).ended, status.UNAUTHENTICATED);
  const reader = openStream(client, STREAM, {
    authorization: "Bearer reader",
    "svc-caller-role": "admin",
  });
  const item = (Type: number, payload: object): Buffer =>
    encodeMessage(sequences.GrpcBatchClientSequenceRequest, { Type, RequestId: Type, ...payload });
  reader.call.write(item(3, { GetSequence: { Name: "s" } }));
  await reader.until(() => reader.messages.length === 1);
  reader.call.write(item(4, { NextSequenceValue: { Name: "s" } }));
  t.equal(await reader.ended, status.PERMISSION_DENIED);
  t.strictSame(
    operations.recorded.map(({ request }) => request.kind),
    ["get-sequence"],
  );
  const writer = openStream(client, STREAM, { authorization: "Bearer writer" });
  writer.call.write(item(4, { NextSequenceValue: { Name: "s" } }));
  writer.call.end();
  t.equal(await writer.ended, status.OK);
});

t.test("P-164 what is not gRPC over HTTP/2 is refused on the cleartext port", async (t) => {
  const { port, client } = await start(t);
  const plain = await new Promise<string>((resolve) => {
    const sent = httpRequest({ port, host: "127.0.0.1", path: "/v1/locks/get" }, () =>
      resolve("answered"),
    );
    sent.on("error", () => resolve("refused")).end();
  });
  t.equal(plain, "refused", "HTTP/1.1");
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const code = await new Promise((resolve) => {
    const stream = session.request({ ":method": "POST", ":path": "/Locker/GetLock" });
    stream.on("response", (headers) => resolve(headers[":status"]));
    stream.end();
  });
  t.equal(code, 415, "HTTP/2 without the content type of gRPC");
  session.close();
  const garbage = connectTcp(port, "127.0.0.1");
  garbage.on("error", () => undefined);
  garbage.resume();
  garbage.write(Buffer.alloc(4096, 0x41));
  await new Promise((resolve) => garbage.on("close", resolve));
  t.equal(await codeOf(client, "/Locker/GetLock"), 0, "others are served");
});

t.test("P-164 streams per connection and connections are limited", async (t) => {
  const { port, operations } = await start(t, { connections: new ConnectionCount(2) });
  operations.script = () => null;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  await new Promise((resolve) => session.on("remoteSettings", resolve));
  t.equal(session.remoteSettings.maxConcurrentStreams, 256);
  t.equal(session.remoteSettings.maxHeaderListSize, 16 * 1024);
  const second = connectTcp(port, "127.0.0.1");
  await new Promise((resolve) => second.on("connect", resolve));
  const third = connectTcp(port, "127.0.0.1");
  third.on("error", () => undefined);
  third.resume();
  await new Promise((resolve) => third.on("close", resolve));
  t.pass("the third connection is closed at accept");
  second.destroy();
  session.destroy();
  let open = 0;
  const connections = {
    enter: (): boolean => open < 1 && ++open > 0,
    leave: (): void => void (open -= 1),
    endedForResets: (): void => undefined,
  };
  const shared = await start(t, { connections });
  t.equal(await codeOf(shared.client, "/Cluster/GetMembership"), 0);
  const beyond = connectTcp(shared.port, "127.0.0.1");
  beyond.on("error", () => undefined);
  beyond.resume();
  await new Promise((resolve) => beyond.on("close", resolve));
  shared.client.close();
  await eventually(() => open === 0);
  const again = connect(shared.port);
  t.equal(await codeOf(again, "/Cluster/GetMembership"), 0, "room again after a close");
  again.close();
});

t.test("P-164 a client that resets its calls without end is cut off and counted", async (t) => {
  const connections = new ConnectionCount();
  const { port, client, operations } = await start(t, { connections });
  operations.script = () => null;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const type = { "content-type": "application/grpc" };
  const headers = { ":method": "POST", ":path": "/Locker/GetLock", ...type };
  t.equal(await resetStreams(session, headers, RESETS_BURST_MAX / 2), null, "some are nothing");
  t.equal(connections.endedByResets, 0);
  // Far more than flows back while a busy machine sends them.
  t.equal(await resetStreams(session, headers, 3 * RESETS_BURST_MAX), ENHANCE_YOUR_CALM);
  t.equal(connections.endedByResets, 1, "counted once");
  await eventually(() => connections.open.grpc === 0);
  t.equal(await codeOf(client, "/grpc.health.v1.Health/Check"), 0, "others are served");
});

t.test("P-164 calls taken back: so many at once, and then as many as flow back", (t) => {
  let nowMs = 5000;
  const allowance = new ResetAllowance(() => nowMs);
  const taken = (): number => {
    let count = 0;
    while (allowance.take()) count += 1;
    return count;
  };
  t.equal(taken(), RESETS_BURST_MAX);
  t.equal(taken(), 0);
  nowMs += 3_600_000;
  t.equal(taken(), RESETS_BURST_MAX, "never more at once");
  for (let second = 0; second < 100; second++) {
    nowMs += 1000;
    for (let at = 0; at < RESETS_PER_SECOND - 2; at++) allowance.take();
  }
  t.ok(allowance.take(), "whoever stays below what flows back goes on for ever");
  t.end();
});

t.test("P-152 a half-open connection is found and dropped, a live idle one stays", async (t) => {
  const options = { keepaliveIntervalMs: 60, keepaliveTimeoutMs: 200 };
  const { port, client } = await start(t, options);
  const pairs: { readonly inner: Socket; readonly outer: Socket }[] = [];
  let blackHole = false;
  const proxy = createServer((outer) => {
    const inner = connectTcp(port, "127.0.0.1");
    pairs.push({ inner, outer });
    inner.on("data", (bytes) => blackHole || outer.write(bytes));
    outer.on("data", (bytes) => blackHole || inner.write(bytes));
    for (const one of [inner, outer]) one.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const through = connect((proxy.address() as AddressInfo).port);
  t.equal(await codeOf(through, "/Locker/GetLock"), 0);
  const stream = openStream(client, STREAM);
  await stream.headers;
  const { inner } = pairs[0] ?? {};
  if (inner === undefined) throw new Error("the proxy was used");
  await sleep(600);
  t.notOk(inner.destroyed, "idle connections that answer stay open");
  blackHole = true;
  await new Promise((resolve) => inner.on("close", resolve));
  t.pass("dropped by the server");
  t.equal(stream.messages.length, 0);
  stream.call.end();
  t.equal(await stream.ended, status.OK, "the other connection lived on");
  through.close();
  proxy.close();
  for (const { outer } of pairs) outer.destroy();
});

t.test("P-164 a sender that never finishes its request is given up", async (t) => {
  const { port, operations } = await start(t, { requestTimeoutMs: 10 });
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const stream = session.request({
    ":method": "POST",
    ":path": "/Locker/GetLock",
    "content-type": "application/grpc",
    te: "trailers",
    "grpc-timeout": "50m",
  });
  stream.write(Buffer.from([0, 0, 0, 0, 9, 1]));
  const headers = await new Promise((resolve) => stream.on("response", resolve));
  t.match(headers, { "grpc-status": String(status.DEADLINE_EXCEEDED) });
  t.equal(operations.recorded.length, 0);
  session.destroy();
  for (const [given, expected] of [
    ["99999999H", 99_999_999 * 3_600_000],
    ["15001m", 15_001],
    ["14S", 14_000],
    ["2M", 120_000],
    ["5u", 0.005],
    ["7n", 0.000_007],
    ["x", Number.NaN],
    ["-1S", Number.NaN],
    ["999999999S", Number.NaN],
  ] as const) {
    const head = new RequestHead();
    head.take(new Field("grpc-timeout", given));
    t.same(head.timeoutMs.toPrecision(12), expected.toPrecision(12), given);
  }
});

t.test("P-162 close: open calls get their answers, streams end, the port is free", async (t) => {
  const { server, client, operations, port } = await start(t);
  operations.script = () => null;
  const unary = codeOf(client, "/Locker/GetLock");
  const stream = openStream(client, STREAM);
  const item = { Type: 4, RequestId: 1, NextSequenceValue: { Name: "s" } };
  stream.call.write(encodeMessage(sequences.GrpcBatchClientSequenceRequest, item));
  const idle = openStream(client, STREAM);
  await idle.headers;
  await eventually(() => operations.recorded.length === 2);
  const closed = server.close(5000);
  t.equal(await idle.ended, status.OK, "an idle stream ends at once");
  for (const { request, done } of operations.recorded) done(operations.invalidInput(request.kind));
  t.equal(await unary, 0);
  t.equal(await stream.ended, status.OK);
  t.equal(stream.messages.length, 1);
  await closed;
  const refused = connectTcp(port, "127.0.0.1");
  const code = await new Promise((resolve) => {
    refused.on("error", (error) => resolve(Reflect.get(error, "code")));
  });
  t.equal(code, "ECONNREFUSED");
});

t.test("P-162 close does not wait for requests that were never sent to their end", async (t) => {
  const { server, client, operations, port } = await start(t);
  operations.script = () => null;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  session.on("error", () => undefined);
  await new Promise((resolve) => session.once("connect", resolve));
  const begin = (path: string, bytes: readonly number[]): Promise<unknown> => {
    const type = { "content-type": "application/grpc", te: "trailers" };
    const stream = session.request({ ":method": "POST", ":path": path, ...type });
    if (bytes.length > 0) stream.write(Buffer.from(bytes));
    stream.on("error", () => undefined);
    stream.resume();
    let told: unknown = null;
    stream.on("response", (headers) => (told = headers["grpc-status"]));
    stream.on("trailers", (trailers) => (told = trailers["grpc-status"]));
    return new Promise((resolve) => stream.on("close", () => resolve(told)));
  };
  const cut = [0, 0, 0, 0, 9, 1];
  const whole = [0, 0, 0, 0, 0];
  const half = [
    begin("/Locker/GetLock", cut),
    begin("/Locker/GetLock", whole),
    begin("/KeyValuer/GetByRangeStream", whole),
    begin("/Locker/GetLock", []),
    begin("/KeyValuer/GetByRangeStream", cut),
    begin("/grpc.health.v1.Health/Check", cut),
    begin("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", cut),
  ];
  const unknown = begin("/None/Such", cut);
  const stream = begin(STREAM, cut);
  await new Promise((resolve) => session.ping(resolve));
  // The grace is far beyond the time limit of a test.
  const accepted = codeOf(client, "/Locker/GetLock");
  await eventually(() => operations.recorded.length === 1);
  const closing = server.close(600_000);
  for (const { request, done } of operations.recorded) done(operations.invalidInput(request.kind));
  await closing;
  t.equal(await accepted, status.OK, "what was begun is answered");
  const told = await Promise.all(half);
  t.strictSame(told, Array(half.length).fill(String(status.UNAVAILABLE)), "repeat it elsewhere");
  t.equal(await unknown, String(status.UNIMPLEMENTED));
  await stream;
  t.equal(operations.recorded.length, 1, "nothing was begun for any of the others");
  session.destroy();
});

t.test("P-162 close cuts what does not end within the grace time", async (t) => {
  const { server, client, operations } = await start(t);
  operations.script = () => null;
  const unary = callRaw(client, "/Locker/GetLock", Buffer.alloc(0));
  await eventually(() => operations.recorded.length === 1);
  await server.close(50);
  t.ok((await unary).error, "the call fails at the client");
});
