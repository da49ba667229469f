/**
 * The debug bundle as a person takes it: of stand-in nodes in good and bad days, and of three real nodes with stored data
 * and secrets, of which none may be found in it.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { BUNDLE_DOCUMENT } from "../../../src/cli/commands/schemas.js";
import { encodeMessage } from "../../../src/proto/codec.js";
import {
  GrpcGetNodeDebugRequest,
  GrpcNodeDebugChunk,
} from "../../../src/proto/generated/cluster.js";
import { decodeMessage } from "../../../src/proto/codec.js";
import { tokenDigestText } from "../../../src/server/security/tokens.js";
import { StandIn, type Reply } from "../../doubles/server/stand-in.js";
import {
  endAll,
  freePorts,
  nodeFlags,
  ServerProcess,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { Batch, misfits, runCli } from "./programs.js";
import { tellNode } from "./standing-nodes.js";

t.setTimeout(180_000);
const batch = new Batch();
const nodes = [await StandIn.bare(), await StandIn.bare(), await StandIn.bare()];
const [first, second, third] = nodes as [StandIn, StandIn, StandIn];
const directory = temporaryDirectory();
t.teardown(async () => {
  batch.close();
  for (const node of nodes) node.stop();
  await endAll();
  directory.remove();
});

function debugOf(index: number): Reply {
  const text = JSON.stringify({
    version: "0.7",
    config: { nodeId: index + 1, text: "ä€" },
    metrics: ["svc_ready 1\n", "svc_ready 1\n"],
    logs: [`{"msg":"node ${index + 1}"}`],
    profile: null,
    missing: { profile: "not wanted" },
  });
  // Cut at every place, also within a letter.
  const bytes = [...Buffer.from(text)].map((byte) => Buffer.of(byte));
  return { messages: bytes.map((Data) => encodeMessage(GrpcNodeDebugChunk, { Data })) };
}

function tell(index: number): void {
  tellNode(nodes, index, { listed: [0, 1, 2] });
  (nodes[index] as StandIn).answers.set("GetNodeDebug", debugOf(index));
}

let made = 0;
const nextPath = (): string => join(directory.path, `bundle-${(made += 1)}.tar.gz`);

function unpacked(path: string): string {
  const into = `${path}.unpacked`;
  mkdirSync(into);
  const ran = spawnSync("tar", ["-xzf", path, "-C", into], { encoding: "utf8" });
  t.equal(ran.status, 0, ran.stderr);
  t.same(readdirSync(into), ["svc-debug"]);
  return join(into, "svc-debug");
}

function jsonAt(...parts: string[]): Record<string, unknown> {
  return JSON.parse(readFileSync(join(...parts), "utf8")) as Record<string, unknown>;
}

t.test("every node of the cluster is in it, found from one of them", async (t) => {
  for (const index of [0, 1, 2]) tell(index);
  const path = nextPath();
  const ran = await batch.run(["-c", first.endpoint, "--debug-bundle", path]);
  t.match(ran, { exit: 0, stderr: "" });
  t.equal(ran.stdout, `Wrote ${path}: 3 of 3 nodes, ${statSync(path).size} bytes\n`);
  const root = unpacked(path);
  t.same(readdirSync(root).sort(), ["cluster", "manifest.json", "node-1", "node-2", "node-3"]);
  t.match(jsonAt(root, "node-2", "node.json"), { config: { nodeId: 2, text: "ä€" } });
  t.equal(readFileSync(join(root, "node-3", "log.jsonl"), "utf8"), '{"msg":"node 3"}\n');
  t.match(jsonAt(root, "cluster", "status.json"), { healthy: true });
  t.match(jsonAt(root, "manifest.json"), {
    nodes: [1, 2, 3].map((nodeId) => ({ nodeId, ok: true, missing: { profile: "not wanted" } })),
  });
  const seconds = decodeMessage(
    GrpcGetNodeDebugRequest,
    first.asked.find(({ rpc }) => rpc === "GetNodeDebug")?.bytes ?? Buffer.alloc(0),
  );
  t.equal(seconds?.ProfileSeconds, 0);
});

t.test("8.3 a node is missing: the bundle is made, names it, and the exit code is 1", async (t) => {
  second.answers.set("GetNodeDebug", { status: 7, details: "the role admin is needed" });
  const port = third.port;
  third.stop();
  const path = nextPath();
  const json = ["--format", "json"];
  const words = ["-c", `${first.endpoint},${second.endpoint}`, "--debug-bundle", path];
  const ran = await batch.run([...words, ...json, "--profile", "9"]);
  t.match(ran, { exit: 1, stderr: "" });
  const document = JSON.parse(ran.stdout) as Record<string, unknown>;
  t.same(misfits(BUNDLE_DOCUMENT, document), []);
  const listed = [
    { endpoint: first.endpoint, nodeId: 1, ok: true, reason: null },
    { nodeId: 2, ok: false, reason: "the role admin is needed" },
    { endpoint: `http://127.0.0.1:${port}`, nodeId: 3, ok: false, reason: "connection refused" },
  ];
  t.match(document, { file: path, bytes: statSync(path).size, nodes: listed });
  const root = unpacked(path);
  t.match(jsonAt(root, "manifest.json"), { profileSeconds: 9, nodes: listed });
  t.same(readdirSync(root).sort(), ["cluster", "manifest.json", "node-1"]);
  const asked = first.asked.filter(({ rpc }) => rpc === "GetNodeDebug").at(-1);
  const request = decodeMessage(GrpcGetNodeDebugRequest, asked?.bytes ?? Buffer.alloc(0));
  t.equal(request?.ProfileSeconds, 9);
  const again = await batch.run([...words.slice(0, 3), nextPath()]);
  t.match(again, { exit: 1 });
  t.match(again.stdout, /^Wrote \S+: 1 of 3 nodes, \d+ bytes\nnode 2 \(.*\): the role admin/);
  t.match(again.stdout, `node 3 (http://127.0.0.1:${port}): connection refused\n`);
  await third.start();
});

t.test("one is being made already: it is asked for again", async (t) => {
  for (const index of [0, 1, 2]) tell(index);
  const busy: Reply = { status: 14, details: "a node debug is being made already" };
  const before = second.count("GetNodeDebug");
  second.answers.set("GetNodeDebug", (_bytes, number) => {
    return number <= before + 2 ? busy : debugOf(1);
  });
  const ran = await batch.run(["-c", first.endpoint, "--debug-bundle", nextPath()]);
  t.match(ran, { exit: 0, stdout: /: 3 of 3 nodes,/ });
  t.equal(second.count("GetNodeDebug") - before, 3);
});

t.test("nothing is written when nobody answers, and nobody is asked in vain", async (t) => {
  const path = nextPath();
  for (const node of nodes) node.answers.set("GetNodeDebug", { status: 16, details: "no token" });
  const refused = await batch.run(["-c", first.endpoint, "--debug-bundle", path]);
  t.match(refused, { exit: 4, stdout: "", stderr: /^error: no token\n$/ });
  t.notOk(existsSync(path));
  for (const node of nodes) node.answers.set("GetNodeDebug", "silence");
  const silent = await batch.run(["-c", first.endpoint, "-t", "2", "--debug-bundle", path]);
  t.match(silent, { exit: 3, stdout: "" });
  t.notOk(existsSync(path));
  writeFileSync(path, "mine");
  const asked = first.asked.length;
  const over = await batch.run(["-c", first.endpoint, "--debug-bundle", path]);
  t.match(over, { exit: 2, stdout: "", stderr: /is there already/ });
  t.equal(readFileSync(path, "utf8"), "mine");
  const long = ["-c", first.endpoint, "--debug-bundle", nextPath(), "--profile"];
  for (const seconds of ["0", "61"]) {
    t.match(await batch.run([...long, seconds]), { exit: 2, stderr: /is not 1 to 60/ });
  }
  t.equal(first.asked.length, asked);
  t.notOk(readdirSync(directory.path).some((name) => name.endsWith(".part")));
});

t.test("--node takes that node alone; the shell has it too", async (t) => {
  for (const index of [0, 1, 2]) tell(index);
  const one = await batch.run(["--node", second.endpoint, "--debug-bundle", nextPath()]);
  t.match(one, { exit: 0, stdout: /: 1 of 1 nodes,/ });
  const path = nextPath();
  const shell = await runCli(["-c", first.endpoint], {}, `debug bundle ${path}\n`);
  t.match(shell, { exit: 0, stdout: /Wrote \S+: 3 of 3 nodes,/ });
  t.equal(statSync(path).mode & 0o777, 0o600);
});

/** What is planted as stored data, secrets and environment. */
const CANARIES: Readonly<Record<string, string>> = {
  token: "canary-token-0123456789",
  secret: "canary-secret-of-peers-0123456789abcdef",
  environment: "canary-environment",
  key: "canary-space/canary-key",
  value: "canary-value",
  owner: "canary-owner",
  resource: "canary-resource",
  sequence: "canary-sequence",
  idempotency: "canary-idempotency",
  space: "canary-space",
  split: "canary-space/m",
};

function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  return [text, bytes.toString("hex"), bytes.toString("base64").replace(/=+$/, "")];
}

t.test(
  "5.7 three real nodes, one of them stopped: no stored data, no secret, in no form",
  async (t) => {
    const secretFile = (name: string, text = ""): string => {
      const path = join(directory.path, name);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    };
    const word = (name: string): string => CANARIES[name] as string;
    process.env["CANARY"] = word("environment");
    const tokens = secretFile("tokens", `admin ada ${tokenDigestText(word("token"))}\n`);
    const peers = await freePorts(3);
    const founders = peers.map((port, at) => `${at + 1}=127.0.0.1:${port}`).join();
    const servers = peers.map((port, at) => {
      const flags = nodeFlags(join(directory.path, `data-${at + 1}`)).filter(
        (flag) => !/^--(peer-port|https-port)=/.test(flag),
      );
      return new ServerProcess([
        ...flags,
        "--https-port=0",
        `--peer-port=${port}`,
        `--raft-nodeid=${at + 1}`,
        `--initial-cluster=${founders}`,
        "--initial-cluster-partitions=4",
        `--auth-tokens-file=${tokens}`,
        `--peer-secret-file=${secretFile("secret", word("secret"))}`,
        "--slow-request-threshold=1ms",
      ]);
    });
    const addresses = await Promise.all(servers.map((server) => server.ready()));
    const endpoints = addresses.map(({ grpc }) => grpc).join();
    const tokenFile = secretFile("token", word("token"));
    const cli = (...words: string[]) =>
      batch.run(["-c", endpoints, "--token-file", tokenFile, ...words]);
    const done = async (...words: string[]): Promise<void> => {
      const ran = await cli(...words);
      t.equal(ran.exit, 0, `${words.join(" ")}: ${ran.stdout}${ran.stderr}`);
    };
    await done("--register-key-range", word("space"));
    for (const at of [0, 1, 2])
      await done("--set", `${word("key")}-${at}`, "--value", word("value"));
    await cli("--split-range", word("space"), "--split-key", word("split"));
    const lease = ["--expires", "60000", "--owner", word("owner")];
    await done("--lock", word("resource"), ...lease);
    await done("--create-sequence", word("sequence"));
    await done("--next-sequence", word("sequence"), "--idempotency-key", word("idempotency"));
    const stopped = servers[2] as ServerProcess;
    t.equal((await stopped.stop()).code, 0);
    const path = nextPath();
    const ran = await cli("--debug-bundle", path, "--profile", "1");
    t.match(ran, { exit: 1, stderr: "" });
    t.match(ran.stdout, /: 2 of 3 nodes, \d+ bytes\nnode 3 \(.*\): connection refused\n$/);
    const root = unpacked(path);
    t.match(jsonAt(root, "manifest.json"), {
      nodes: [
        { nodeId: 1, ok: true, missing: {} },
        { nodeId: 2, ok: true, missing: {} },
        { nodeId: 3, ok: false, reason: "connection refused" },
      ],
    });
    for (const at of [1, 2]) {
      t.match(jsonAt(root, `node-${at}`, "profile.cpuprofile"), { nodes: Array });
      t.match(readFileSync(join(root, `node-${at}`, "metrics-2.txt"), "utf8"), /^svc_build_info/m);
    }
    t.match(jsonAt(root, "cluster", "ranges.json"), { keySpaces: [{ routingMode: "KeyRange" }] });
    const keyFile = join(directory.path, "data-1", "tls");
    const keys = readdirSync(keyFile)
      .map((name) => readFileSync(join(keyFile, name), "utf8"))
      .filter((text) => text.includes("PRIVATE KEY"))
      .flatMap((text) => text.split("\n").filter((line) => line.length > 20 && !/^-/.test(line)));
    t.ok(keys.length > 0, "there is key material to look for");
    const digest = tokenDigestText(word("token")).replace(/^sha256:/, "");
    const patterns = [...Object.values(CANARIES).flatMap(formsOf), ...keys, digest, "canary"];
    const list = secretFile("patterns", patterns.map((text) => `${text}\n`).join(""));
    const grep = (...words: string[]) => spawnSync("grep", words, { encoding: "utf8" });
    const found = grep("-raoiF", "-f", list, root);
    t.match(found, { status: 1, stdout: "" }, `found: ${found.stdout}`);
    t.equal(grep("-rlF", "slow request", root).status, 0, "the same search finds what is there");
  },
);
