/** GetNodeDebug: in pieces, refused while another is made, and audited. */
import t, { type Test } from "tap";
import type { AuditEntry } from "../../../src/operations/api/audit.js";
import { decodeMessage, encodeMessage } from "../../../src/proto/codec.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import { identity, start } from "./harness.js";

interface Read {
  readonly text: string;
  readonly pieces: number;
  readonly code: number;
}

async function read(t: Test, answer: string | null, seconds: number): Promise<Read> {
  const asked: number[] = [];
  const audited: AuditEntry[] = [];
  const nodeDebug = {
    make: (profileSeconds: number, done: (text: string | null) => void): void => {
      asked.push(profileSeconds);
      setImmediate(() => done(answer));
    },
  };
  const audit = {
    administered: (entry: AuditEntry) => void audited.push(entry),
    denied: () => undefined,
  };
  const { client } = await start(t, { nodeDebug, audit });
  const bytes = encodeMessage(cluster.GrpcGetNodeDebugRequest, { ProfileSeconds: seconds });
  const path = "/Cluster/GetNodeDebug";
  const stream = client.makeServerStreamRequest(path, identity, identity, bytes);
  const parts: Uint8Array[] = [];
  const code = await new Promise<number>((resolve) => {
    stream.on("data", (data: Buffer) => {
      parts.push(decodeMessage(cluster.GrpcNodeDebugChunk, data)?.Data ?? new Uint8Array());
    });
    stream.on("error", () => undefined);
    stream.on("status", (ended) => resolve(ended.code));
  });
  t.same(asked, code === 3 ? [] : [seconds]);
  t.equal(audited.length, 1);
  t.match(audited[0], { operation: path, caller: "anonymous" });
  return { text: Buffer.concat(parts).toString(), pieces: parts.length, code };
}

t.test("5.7 the text comes in pieces, as the client takes them", async (t) => {
  const long = JSON.stringify({ logs: ["é".repeat(700_000)] });
  const { text, pieces, code } = await read(t, long, 5);
  t.equal(code, 0);
  t.ok(text === long, "whole");
  t.ok(pieces >= 20);
});

t.test("5.7 another one is UNAVAILABLE, seconds out of range INVALID_ARGUMENT", async (t) => {
  t.match(await read(t, null, 0), { code: 14, pieces: 0 });
  t.match(await read(t, "{}", 61), { code: 3, pieces: 0 });
  t.match(await read(t, "{}", -1), { code: 3, pieces: 0 });
});
