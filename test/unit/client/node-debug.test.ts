/** The node debug as the client reads it, on both wires: whole, exact, bounded, refused. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { readNodeDebug } from "../../../src/client/metadata/calls.js";
import { SvcClient } from "../../../src/client/mod.js";
import { encodeMessage } from "../../../src/proto/codec.js";
import { GrpcNodeDebugChunk } from "../../../src/proto/generated/cluster.js";
import { StandIn } from "../../doubles/server/stand-in.js";

const TEXT = '{"version":"0.2","large":9007199254740993,"logs":["ä€"],"missing":{}}';
const WANTED = { version: "0.2", large: 9_007_199_254_740_993n, logs: ["ä€"], missing: {} };

t.test("over gRPC: pieces are put together, cut wherever", async (t) => {
  const node = await StandIn.bare();
  const client = new SvcClient({ endpoints: node.endpoint, failWhenRefused: true });
  t.teardown(async () => {
    await client.close();
    node.stop();
  });
  const piece = (Data: Buffer): Buffer => encodeMessage(GrpcNodeDebugChunk, { Data });
  const messages = [...Buffer.from(TEXT)].map((byte) => piece(Buffer.of(byte)));
  node.answers.set("GetNodeDebug", { messages });
  t.same(await client.cluster.nodeDebug({ profileSeconds: 3 }), WANTED);
  node.answers.set("GetNodeDebug", { messages: messages.slice(0, 9) });
  await t.rejects(client.cluster.nodeDebug(), { code: "protocol" }, "half of it is none of it");
  node.answers.set("GetNodeDebug", { status: 7, details: "admin" });
  await t.rejects(client.cluster.nodeDebug(), { code: "forbidden", outcome: "none" });
  node.answers.set("GetNodeDebug", "silence");
  await t.rejects(client.cluster.nodeDebug({ deadlineMs: 50 }), { code: "timeout" });
  const stop = new AbortController();
  const cancelled = client.cluster.nodeDebug({ signal: stop.signal });
  stop.abort();
  await t.rejects(cancelled, { code: "cancelled" });
  await t.rejects(client.cluster.nodeDebug({ profileSeconds: -1 }), /profileSeconds/);
  const most = readNodeDebug.piecesMaxBytes ?? 0;
  const mebibyte = piece(Buffer.alloc(1024 * 1024, " "));
  const many = Array.from({ length: Math.ceil(most / mebibyte.length) + 2 }, () => mebibyte);
  node.answers.set("GetNodeDebug", { messages: many });
  await t.rejects(client.cluster.nodeDebug(), /too large/);
});

t.test("over REST", async (t) => {
  const asked: string[] = [];
  const server = createServer((request, answer) => {
    asked.push(request.url ?? "");
    answer.setHeader("content-type", "application/json");
    answer.end(TEXT);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const client = new SvcClient({ endpoints: `http://127.0.0.1:${port}`, transport: "rest" });
  t.teardown(async () => {
    await client.close();
    server.close();
  });
  t.same(await client.cluster.nodeDebug(), WANTED);
  t.same(await client.cluster.nodeDebug({ profileSeconds: 7 }), WANTED);
  t.same(asked, ["/v1/node/debug", "/v1/node/debug?profileSeconds=7"]);
});
