/**
 * What happens to a backup while real nodes take it: the disk fills up, keys move, two are taken at once; and what a
 * parent of somebody else comes to. On both wires.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t, { type Test } from "tap";
import { type Node, startNode } from "../contract/node.js";
import { GrpcCaller, http1, post } from "../contract/wire.js";
import {
  ServerProcess,
  endAll,
  foundersOf,
  freePorts,
  nodeFlags,
  serverMain,
  sleep,
  temporaryDirectory,
} from "../cluster/server-process.js";
import { hasSmallDisk } from "../cluster/small-disk.js";

const directory = temporaryDirectory();
t.setTimeout(400_000);
t.teardown(async () => {
  await endAll();
  directory.remove();
});

const FAILED_PRECONDITION = 9;
const INTERNAL = 13;
const UNAVAILABLE = 14;

function place(name: string): string {
  const path = join(directory.path, name);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

async function ballast(http: string, values: number, sizeBytes: number): Promise<void> {
  const value = Buffer.alloc(sizeBytes, 7).toString("base64");
  for (let at = 0; at < values; at++) {
    await post(http, "/v1/kv/try-set", { key: `ballast/${at}`, value, durability: 1 });
  }
}

/** A node whose steps of a backup take long enough to do something in between. */
async function slowNode(t: Test, slowMs: number, ...flags: string[]): Promise<Node> {
  const url = new URL("slow-archive.js", import.meta.url);
  url.searchParams.set("ms", String(slowMs));
  const storage = temporaryDirectory();
  const command = [process.execPath, "--import", url.href, serverMain];
  const server = new ServerProcess(nodeFlags(storage.path, ...flags), command);
  const { http, grpc: grpcAddress } = await server.ready();
  const grpc = new GrpcCaller(grpcAddress);
  t.teardown(async () => {
    grpc.close();
    await server.kill();
    storage.remove();
  });
  const urls = { http: `http://${http}`, https: "", grpcUrl: `http://${grpcAddress}` };
  return { server, directory: storage.path, ...urls, grpcAddress, grpc };
}

/** Adds a partition to what the cluster had, by the manifest of a backup; its id. */
function withoutPartition(backups: string, id: string): number {
  const path = join(backups, `${id}.manifest`);
  const manifest = JSON.parse(readFileSync(path, "utf8")) as { ClusterPartitions: number[] };
  const { ClusterPartitions: partitions } = manifest;
  const other = Math.max(...partitions) + 1;
  writeFileSync(path, JSON.stringify({ ...manifest, ClusterPartitions: [...partitions, other] }));
  return other;
}

async function untilPhase({ http }: Node, phase: string): Promise<void> {
  for (let look = 0; look < 5000; look++) {
    const running = (await http1(http, "/v1/backups/running")).body as unknown;
    const list = running as readonly { readonly phase: string }[];
    if (list.some((each) => each.phase === phase)) return;
    await sleep(5);
  }
  throw new Error(`no backup comes to ${phase}`);
}

t.test("P-140 a disk that fills up ends the backup and leaves nothing of it", async (t) => {
  const backups = place("full-disk");
  if (!hasSmallDisk(t, backups, "size=3m,mode=0700")) return;
  const node = await startNode(t, `--pitr-backup-dir=${backups}`, "--pitr-backup-cluster-id=full");
  await ballast(node.http, 100, 60_000);
  const full = await post(node.http, "/v1/backups/full", "");
  t.match(full, { status: 500, headers: { "x-svc-backup-outcome": "IoError" } });
  const again = await node.grpc.call("Backups", "TakeCoordinatedBackup", {});
  t.equal(again.code, INTERNAL, again.details);
  t.same(again.trailers.get("svc-backup-outcome"), ["IoError"]);
  t.same(readdirSync(backups), [], "the disk is as free as before");
  spawnSync("mount", ["-o", "remount,size=64m", backups]);
  const taken = await post(node.http, "/v1/backups/full", "");
  t.equal(taken.status, 200, taken.text);
  const validate = { leafBackupId: taken.body["backupId"] };
  t.equal((await post(node.http, "/v1/backups/validate-chain", validate)).status, 200);
});

t.test("P-132 keys that move by hand end the backup, and no chain goes over them", async (t) => {
  const backups = place("backups");
  const node = await slowNode(
    ...([t, 100, `--pitr-backup-dir=${backups}`, "--pitr-backup-cluster-id=split"] as const),
    ...["--initial-cluster-partitions=16", "--range-split-min-range-size=1"],
  );
  for (let at = 10; at < 40; at++) {
    await post(node.http, "/v1/kv/try-set", { key: `s/k${at}`, value: "dg==", durability: 1 });
  }
  t.equal((await post(node.http, "/v1/ranges/register", { keySpace: "s" })).status, 200);
  const parent = await post(node.http, "/v1/backups/full", "");
  t.equal(parent.status, 200, parent.text);
  const split = async (splitKey: string): Promise<void> => {
    const answer = await post(node.http, "/v1/ranges/split", { keySpace: "s", splitKey });
    t.equal(answer.body["status"], "Succeeded", answer.text);
  };
  const rest = post(node.http, "/v1/backups/full", "");
  await untilPhase(node, "images");
  await split("s/k20");
  t.match(await rest, { status: 422, headers: { "x-svc-backup-outcome": "TopologyChanged" } });
  const grpc = node.grpc.call("Backups", "TakeCoordinatedBackup", {}, {}, 60_000);
  await untilPhase(node, "images");
  await split("s/k30");
  const ended = await grpc;
  t.equal(ended.code, FAILED_PRECONDITION, ended.details);
  t.same(ended.trailers.get("svc-backup-outcome"), ["TopologyChanged"]);
  const names = readdirSync(backups).filter((name) => name.endsWith(".manifest"));
  t.equal(names.length, 1, "nothing was published");
  const parentBackupId = parent.body["backupId"];
  const next = await post(node.http, "/v1/backups/incremental", { parentBackupId });
  const substituted = { actualKind: "Full", substitutionReason: "TopologyChangedSinceParent" };
  t.match(next, { status: 200, body: { requestedKind: "Incremental", ...substituted } });
});

t.test("7.3 7.6 what is another cluster's is not continued, nor is memory restored", async (t) => {
  const backups = place("shared");
  const restores = place("restores");
  const catalogue = [`--pitr-backup-dir=${backups}`, `--pitr-restore-root=${restores}`];
  const first = await startNode(t, ...catalogue, "--pitr-backup-cluster-id=first");
  const full = await post(first.http, "/v1/backups/full", "");
  t.equal(full.status, 200, full.text);
  const other = await startNode(
    ...([t, ...catalogue, "--pitr-backup-cluster-id=other", "--storage=memory"] as const),
  );
  const parentBackupId = full.body["backupId"];
  const refused = await post(other.http, "/v1/backups/incremental", { parentBackupId });
  t.match(refused, { status: 422, headers: { "x-svc-backup-outcome": "NeedsFull" } });
  const request = { ParentBackupId: parentBackupId };
  const grpc = await other.grpc.call("Backups", "TakeIncrementalBackup", request);
  t.equal(grpc.code, FAILED_PRECONDITION, grpc.details);
  t.same(grpc.trailers.get("svc-backup-outcome"), ["NeedsFull"]);
  const own = await post(other.http, "/v1/backups/full", "");
  t.equal(own.status, 200, own.text);
  const leafBackupId = own.body["backupId"];
  const [targetDir, TargetDir] = [join(restores, "a"), join(restores, "b")];
  const restore = await post(other.http, "/v1/restore", { leafBackupId, targetDir });
  t.match(restore, { status: 422, headers: { "x-svc-backup-outcome": "UnsupportedFormat" } });
  const asked = { LeafBackupId: leafBackupId, TargetDir };
  const unsupported = await other.grpc.call("Backups", "Restore", asked);
  t.equal(unsupported.code, FAILED_PRECONDITION, unsupported.details);
  t.same(unsupported.trailers.get("svc-backup-outcome"), ["UnsupportedFormat"]);
  const conflict = { LeafBackupId: parentBackupId, TargetDir: join(backups, "c") };
  const inside = await other.grpc.call("Backups", "Restore", conflict);
  t.equal(inside.code, 6, inside.details);
  t.same(inside.trailers.get("svc-backup-outcome"), ["TargetConflict"]);
  const early = { LeafBackupId: parentBackupId, TargetDir, TargetTimeMs: "5" };
  const outside = await other.grpc.call("Backups", "Restore", early);
  t.equal(outside.code, FAILED_PRECONDITION, outside.details);
  t.same(outside.trailers.get("svc-backup-outcome"), ["TargetOutsideCoverage"]);
  const lost = await other.grpc.call("Backups", "TakeIncrementalBackup", {
    ParentBackupId: "00000000-0000-0000-0000-000000000009",
  });
  t.equal(lost.code, 5, lost.details);
  t.same(lost.trailers.get("svc-backup-outcome"), ["ParentMissing"]);
  const narrow = withoutPartition(backups, String(parentBackupId).replaceAll("-", ""));
  const partial = { leafBackupId: parentBackupId, targetDir };
  const restricted = await post(other.http, "/v1/restore", partial);
  const header = { "x-svc-backup-outcome": "RestrictedCoverage" };
  t.match(restricted, { status: 422, headers: header }, restricted.text);
  const part = { LeafBackupId: parentBackupId, TargetDir };
  const lacking = await other.grpc.call("Backups", "Restore", part);
  t.equal(lacking.code, FAILED_PRECONDITION, lacking.details);
  t.same(lacking.trailers.get("svc-backup-outcome"), ["RestrictedCoverage"]);
  t.match(lacking.details, `lacks partition ${narrow}`);
  t.same(readdirSync(restores), [], "nothing was restored");
});

t.test("P-134 P-135 two are taken at once, and one that loses the others says so", async (t) => {
  const backups = place("twice");
  const storage = place("storage");
  const ports = await freePorts(3);
  const nodes = [1, 2, 3].map((id) => {
    const flags = [`--raft-nodeid=${id}`, `--peer-port=${ports[id - 1]}`];
    return new ServerProcess(
      nodeFlags(
        ...([join(storage, String(id)), ...flags] as const),
        ...[`--initial-cluster=${foundersOf(ports)}`, "--initial-cluster-partitions=4"],
        ...[`--pitr-backup-dir=${backups}`, "--pitr-backup-cluster-id=two"],
      ),
    );
  });
  const https = await Promise.all(nodes.map(async (node) => `http://${(await node.ready()).http}`));
  await ballast(https[0] as string, 40, 60_000);
  const overview = await http1(https[0] as string, "/v1/cluster/overview");
  const meta = Number(overview.body["metaLeaderNodeId"]) - 1;
  const kinds = https.map((http, at) =>
    post(http, `/v1/backups/${at === meta ? "coordinated" : "full"}`, ""),
  );
  for (const answer of await Promise.all(kinds)) t.equal(answer.status, 200, answer.text);
  const names = readdirSync(backups).filter((name) => /lease_backup|staging|tmp_/.test(name));
  t.same(names, []);
  // The others are gone: nobody proves anything any more.
  const alone = (meta + 1) % 3;
  await Promise.all(nodes.filter((_, at) => at !== alone).map((node) => node.kill()));
  const unproved = await post(https[alone] as string, "/v1/backups/full", "");
  const headers = { "x-svc-backup-outcome": "ExactCheckpointUnavailable" };
  t.match(unproved, { status: 422, headers }, unproved.text);
  rmSync(backups, { recursive: true });
  const caller = new GrpcCaller((await (nodes[alone] as ServerProcess).addresses()).grpc);
  const gone = await caller.call("Backups", "TakeCoordinatedBackup", {}, {}, 60_000);
  caller.close();
  t.ok([UNAVAILABLE, INTERNAL].includes(gone.code), gone.details);
  t.match(String(gone.trailers.get("svc-backup-outcome")), /IoError|NotBackupCoordinator/);
});
