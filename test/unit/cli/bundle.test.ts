/** The parts of a debug bundle: an archive that tar reads, the files in it, and its own file on the disk. */
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import t from "tap";
import { BundleFile, checkPlace } from "../../../src/cli/bundle/bundle-file.js";
import {
  clusterFiles,
  manifestFile,
  nodeFiles,
  type BundledNode,
} from "../../../src/cli/bundle/bundle-files.js";
import { archived, ARCHIVE_END } from "../../../src/cli/bundle/ustar.js";
import type { RangeMap } from "../../../src/client/mod.js";
import { temporaryDirectory } from "../../process/cluster/server-process.js";

const directory = temporaryDirectory();
t.teardown(() => directory.remove());

const NODE: BundledNode = {
  endpoint: "http://a:8083",
  nodeId: 2,
  reason: null,
  debug: {
    version: "0.2.0",
    config: { nodeId: 2 },
    store: { bytes: 9_007_199_254_740_993n },
    metrics: ["svc_ready 0\n", "svc_ready 1\n"],
    logs: ['{"msg":"one"}', '{"msg":"two"}'],
    profile: { nodes: [] },
    missing: { links: "why not" },
  },
};
const LOST: BundledNode = { endpoint: "b:8084", nodeId: 3, debug: null, reason: "no answer" };

function texts(node: BundledNode): Record<string, string> {
  const files = nodeFiles(node, 0);
  return Object.fromEntries(files.map(({ name, bytes }) => [name, bytes.toString()]));
}

t.test("tar lists and unpacks what was archived, whatever its size", (t) => {
  const files = [0, 1, 511, 512, 513, 70_000].map((size) => ({
    name: `svc-debug/node-1/size-${size}.txt`,
    bytes: Buffer.alloc(size, "x"),
  }));
  const path = join(directory.path, "sizes.tar");
  const madeMs = Date.UTC(2026, 0, 2, 3, 4, 5);
  writeFileSync(path, Buffer.concat([...files.map((one) => archived(one, madeMs)), ARCHIVE_END]));
  const run = (...words: string[]) =>
    spawnSync("tar", words, { encoding: "utf8", env: { ...process.env, TZ: "UTC" } });
  const listed = run("-tvf", path);
  t.equal(listed.status, 0, listed.stderr);
  t.equal(listed.stderr, "");
  t.match(
    listed.stdout,
    /^-rw------- 0\/0 +513 2026-01-02 03:04 svc-debug\/node-1\/size-513.txt$/m,
  );
  t.equal(run("-xf", path, "-C", directory.path).status, 0);
  for (const { name, bytes } of files) {
    t.ok(readFileSync(join(directory.path, name)).equals(bytes), name);
  }
  const long = { name: `${"a".repeat(100)}`, bytes: Buffer.alloc(0) };
  t.throws(() => archived(long, 0), /fits/, "a name is never cut");
  t.throws(() => archived({ name: "ä", bytes: Buffer.alloc(0) }, 0), /fits/);
  t.end();
});

t.test("what a node told has a file for each kind of reader", (t) => {
  t.same(texts(NODE), {
    "svc-debug/node-2/node.json":
      '{"version":"0.2.0","config":{"nodeId":2},"store":{"bytes":9007199254740993},' +
      '"missing":{"links":"why not"}}\n',
    "svc-debug/node-2/metrics-1.txt": "svc_ready 0\n",
    "svc-debug/node-2/metrics-2.txt": "svc_ready 1\n",
    "svc-debug/node-2/log.jsonl": '{"msg":"one"}\n{"msg":"two"}\n',
    "svc-debug/node-2/profile.cpuprofile": '{"nodes":[]}\n',
  });
  const less = texts({ ...NODE, nodeId: null, debug: { metrics: [null, "x\n"], profile: null } });
  t.same(less, {
    "svc-debug/unknown-1/node.json": "{}\n",
    "svc-debug/unknown-1/metrics-1.txt": "x\n",
    "svc-debug/unknown-1/log.jsonl": "",
  });
  t.same(texts(LOST), {});
  t.end();
});

t.test("5.7 the manifest says what is missing and why; ranges come without any name", (t) => {
  const manifest = manifestFile([NODE, LOST], "2026-01-02T03:04:05.000Z", 7);
  t.equal(manifest.name, "svc-debug/manifest.json");
  t.match(JSON.parse(manifest.bytes.toString()), {
    format: 1,
    made: "2026-01-02T03:04:05.000Z",
    profileSeconds: 7,
    nodes: [
      { nodeId: 2, ok: true, reason: null, folder: "node-2", missing: { links: "why not" } },
      { nodeId: 3, endpoint: "b:8084", ok: false, reason: "no answer", folder: null },
    ],
  });
  const range = { startKey: "canary/a", endKey: null, partitionId: 4, generation: 5n, keys: 1n };
  const space = { keySpace: "canary", routingMode: "KeyRange", descriptors: [range] };
  const ranges = {
    initialized: true,
    localEndpoint: "a:8084",
    keySpaces: [space],
    moves: [{ keySpace: "canary", startKey: "canary/a" }],
  } as unknown as RangeMap;
  const [status, told] = clusterFiles({ status: { healthy: true }, ranges });
  t.equal(status?.bytes.toString(), '{"healthy":true}\n');
  t.match(told?.bytes.toString(), '"ranges":[{"partitionId":4,"generation":5}]');
  t.notMatch(told?.bytes.toString(), "canary");
  t.equal(clusterFiles({ status: {}, ranges: null }).length, 1);
  t.end();
});

t.test(
  "the file: readable by its owner only, never over another one, nothing left behind",
  async (t) => {
    const folder = temporaryDirectory();
    t.teardown(() => folder.remove());
    const path = join(folder.path, "bundle.tar.gz");
    checkPlace(path);
    const made = new BundleFile(path, 0);
    await made.add(nodeFiles(NODE, 0));
    const before = process.umask(0);
    const bytes = await made.write().finally(() => process.umask(before));
    t.equal(statSync(path).mode & 0o777, 0o600);
    t.equal(statSync(path).size, bytes);
    t.same(readdirSync(folder.path), ["bundle.tar.gz"]);
    const unpacked = gunzipSync(readFileSync(path));
    t.equal(unpacked.length % 512, 0);
    t.match(unpacked.toString(), "svc_ready 1");
    t.throws(() => checkPlace(path), /is there already/);
    const second = new BundleFile(path, 0);
    await t.rejects(second.write(), /is there already/, "it came while the nodes were asked");
    t.ok(gunzipSync(readFileSync(path)).equals(unpacked));
    t.same(readdirSync(folder.path), ["bundle.tar.gz"]);
    t.throws(() => checkPlace(join(folder.path, "none", "file")), /is no directory/);
    t.throws(() => checkPlace(join(path, "file")), /is no directory/);
    const gone = temporaryDirectory();
    const third = new BundleFile(join(gone.path, "file"), 0);
    gone.remove();
    await t.rejects(third.write(), /ENOENT/);
  },
);
