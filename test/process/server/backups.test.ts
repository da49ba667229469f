/**
 * The catalogue of backups on a real disk, through a real server, over REST and gRPC and by svc-cli:
 * listing, chains, verification and collection, with links, modes, damage, and what is not ours.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { statSync, symlinkSync, utimesSync, writeFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import t, { type Test } from "tap";
import { uuidOf } from "../../../src/backup/names.js";
import { signatures } from "../../../src/disk/archive.js";
import type { SignaturePort } from "../../../src/ports.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import { SampleCluster, UNSIGNED, sampleId } from "../../doubles/backup/sample-backup.js";
import { type Node, startNode } from "../contract/node.js";
import { http1, post, type Reply } from "../contract/wire.js";
import { endAll, temporaryDirectory } from "../cluster/server-process.js";
import { runCli } from "../cli/programs.js";

t.setTimeout(600_000);
t.teardown(endAll);

const KEY = "0123456789abcdef0123456789abcdef";

/** Writes a chain of two, ids 1 and 2, and a Full, id 3, as a node would have. */
function fill(directory: string, port: SignaturePort = UNSIGNED): void {
  const bench = new ArchiveBench();
  const cluster = new SampleCluster(bench, [0, 1], port);
  cluster.take(1);
  cluster.take(2, 1);
  cluster.take(3);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  for (const [path, bytes] of bench.disk.files()) {
    const full = join(directory, path);
    mkdirSync(dirname(full), { recursive: true, mode: 0o700 });
    writeFileSync(full, bytes, { mode: 0o600 });
  }
}

function age(path: string, byMs: number): void {
  const at = (Date.now() - byMs) / 1000;
  if (statSync(path).isDirectory())
    for (const name of readdirSync(path)) age(join(path, name), byMs);
  utimesSync(path, at, at);
}

interface Rig {
  readonly node: Node;
  readonly directory: string;
}

async function start(t: Test, ...flags: string[]): Promise<Rig> {
  const place = temporaryDirectory();
  t.teardown(() => place.remove());
  const directory = join(place.path, "backups");
  fill(directory);
  const node = await startNode(
    t,
    `--pitr-backup-dir=${directory}`,
    "--backup-gc-interval=0",
    ...flags,
  );
  return { node, directory };
}

const uuid = (number: number): string => uuidOf(sampleId(number));

/** One call on both wires; both must say the same. */
async function refused(
  t: Test,
  { node }: Rig,
  number: number,
  outcome: string,
  [status, code]: readonly [number, number],
  name: "chain" | "validate" = "validate",
): Promise<void> {
  const reply: Reply =
    name === "chain"
      ? await http1(node.http, `/v1/backups/${uuid(number)}/chain`)
      : await post(node.http, "/v1/backups/validate-chain", { leafBackupId: uuid(number) });
  t.equal(reply.status, status, outcome);
  t.equal(reply.headers["x-svc-backup-outcome"], outcome);
  t.match(reply.body, { code: "backup-failed", outcome, detail: /\(operation [0-9a-f]{12}\)$/ });
  const method = name === "chain" ? "GetBackupChain" : "ValidateChain";
  const grpc = await node.grpc.call("Backups", method, { LeafBackupId: uuid(number) });
  t.equal(grpc.code, code);
  t.same(grpc.trailers.get("svc-backup-outcome"), [outcome]);
}

const FAILED = [422, 9] as const;

t.test("7.3 what is whole is listed and verified, on both wires and by svc-cli", async (t) => {
  const { node } = await start(t);
  const listed = await http1(node.http, "/v1/backups");
  t.equal(listed.status, 200);
  t.match(listed.body, [
    { backupId: uuid(1), type: "Full", partitionCount: 2, isInvalid: false },
    { backupId: uuid(2), type: "Incremental", parentBackupId: uuid(1) },
    { backupId: uuid(3), type: "Full" },
  ]);
  const verified = await post(node.http, "/v1/backups/validate-chain", { leafBackupId: uuid(2) });
  t.match(verified, { status: 200, body: [{ backupId: uuid(1) }, { backupId: uuid(2) }] });
  const chain = await node.grpc.call("Backups", "GetBackupChain", { LeafBackupId: uuid(2) });
  t.equal(chain.code, 0);
  t.match(await http1(node.http, "/v1/backups/running"), { status: 200, body: [] });
  const table = await runCli(["-c", node.grpcUrl, "--list-backups"]);
  t.match(table, { exit: 0, stdout: new RegExp(uuid(3)) });
  const tree = await runCli(["-c", node.grpcUrl, "--backup-chain", uuid(2)]);
  t.match(tree, { exit: 0, stdout: /^Backup chain for .* \(2 entries\)\n● / });
  const unknown = await runCli(["-c", node.grpcUrl, "--backup-chain", uuid(9)]);
  t.match(unknown, { exit: 1, stdout: /^CorruptChain: / });
});

t.test("P-136 P-139 whatever is wrong with a file is told, and nothing is changed", async (t) => {
  const rig = await start(t);
  const { directory } = rig;
  const [first, second, third] = [1, 2, 3].map((number) => join(directory, sampleId(number)));
  const log = join(first as string, "log", "p00000.log");
  const other = join(first as string, "log", "p00001.log");
  const good = readFileSync(log);
  const bad = Buffer.from(good);
  bad[bad.length >> 1] = (bad[bad.length >> 1] as number) ^ 1;
  writeFileSync(log, bad);
  await refused(t, rig, 2, "CorruptArtifact", FAILED);
  writeFileSync(log, good);
  renameSync(log, `${log}.aside`);
  await refused(t, rig, 2, "CorruptArtifact", FAILED);
  symlinkSync(`${log}.aside`, log);
  await refused(t, rig, 2, "CorruptArtifact", FAILED);
  rmSync(log);
  renameSync(other, log);
  renameSync(`${log}.aside`, other);
  await refused(t, rig, 2, "CorruptArtifact", FAILED);
  renameSync(log, `${log}.aside`);
  renameSync(other, log);
  renameSync(`${log}.aside`, other);
  const whole = await post(rig.node.http, "/v1/backups/validate-chain", { leafBackupId: uuid(2) });
  t.equal(whole.status, 200, "all is as it was");
  writeFileSync(join(second as string, "notes.txt"), "more");
  await refused(t, rig, 2, "CorruptArtifact", FAILED);
  rmSync(join(second as string, "notes.txt"));
  // The manifest of somebody else under our name.
  const foreign = readFileSync(`${third}.manifest`);
  writeFileSync(`${second}.manifest`, foreign);
  await refused(t, rig, 2, "CorruptArtifact", FAILED, "chain");
  rmSync(`${first}.manifest`);
  await refused(t, rig, 7, "CorruptChain", FAILED, "chain");
  chmodSync(directory, 0o770);
  await refused(t, rig, 3, "InsecureRoot", [503, 14]);
  chmodSync(directory, 0o700);
  renameSync(directory, `${directory}.real`);
  symlinkSync(`${directory}.real`, directory);
  await refused(t, rig, 3, "InsecureRoot", [503, 14]);
  rmSync(directory);
  await refused(t, rig, 3, "IoError", [500, 13]);
  renameSync(`${directory}.real`, directory);
  t.equal((await http1(rig.node.http, "/v1/backups")).status, 200, "and again when it is back");
});

t.test("7.2 with a key, what is not signed with it is no good", async (t) => {
  const place = temporaryDirectory();
  t.teardown(() => place.remove());
  const file = join(place.path, "key");
  writeFileSync(file, `${KEY}\n`, { mode: 0o600 });
  const rig = await start(t, `--pitr-backup-mac-key-file=${file}`);
  await refused(t, rig, 2, "CorruptArtifact", FAILED, "chain");
  fill(rig.directory, signatures(Buffer.from(KEY)));
  const read = await http1(rig.node.http, `/v1/backups/${uuid(2)}/chain`);
  t.equal(read.status, 200);
  fill(rig.directory, signatures(Buffer.from(`${KEY}x`)));
  await refused(t, rig, 2, "CorruptArtifact", FAILED, "chain");
});

t.test("7.4 P-141 the collection: dry run as run, orphans, leases, what stays", async (t) => {
  const rig = await start(t, "--backup-retention-max-chains=1");
  const { node, directory } = rig;
  const staging = join(directory, `${sampleId(8)}.staging_00000008`);
  const bare = join(directory, sampleId(7));
  for (const path of [staging, bare]) {
    mkdirSync(join(path, "log"), { recursive: true });
    writeFileSync(join(path, "log", "p00000.log"), "abc");
    age(path, 2 * 3_600_000);
  }
  writeFileSync(join(directory, "notes.txt"), "mine");
  age(join(directory, "notes.txt"), 9 * 3_600_000);
  writeFileSync(join(directory, "restore_1.claim"), "{}");
  age(join(directory, "restore_1.claim"), 9 * 3_600_000);
  const lease = join(directory, ".lease_0123456789ab");
  writeFileSync(lease, `{"Kind":"restore","Node":"b:1","Backups":["${uuid(1)}"]}\n`);
  const held = await post(node.http, "/v1/backups/gc?dryRun=true", {});
  t.match(held, { status: 200, body: { applied: false, retentionDeletions: [] } });
  rmSync(lease);
  const dry = await post(node.http, "/v1/backups/gc?dryRun=true", {});
  t.match(dry.body, {
    retentionDeletions: [
      { backupId: uuid(2), type: "Incremental", reason: "MaxChains" },
      { backupId: uuid(1), type: "Full", reason: "MaxChains" },
    ],
    orphanReclamations: [
      { name: sampleId(7), isDirectory: true, reason: "NoManifest" },
      { name: `${sampleId(8)}.staging_00000008`, isDirectory: true, reason: "Leftover" },
    ],
  });
  t.ok(existsSync(staging));
  const run = await post(node.http, "/v1/backups/gc", {});
  t.same({ ...run.body, applied: false }, dry.body);
  t.equal(run.body["applied"], true);
  t.same(readdirSync(directory).sort(), [
    sampleId(3),
    `${sampleId(3)}.manifest`,
    "notes.txt",
    "restore_1.claim",
  ]);
  const cli = await runCli(["-c", node.grpcUrl, "--backup-gc", "--yes"]);
  t.match(cli, { exit: 0, stdout: /^Reclaimed: 0 orphan\/leftover artifact\(s\), 0 retained-out/ });
  const metrics = (await http1(node.http, "/metrics")).text;
  t.match(metrics, /^svc_backup_gc_bytes_total [1-9]/m);
});

t.test("7.6 whoever does not get its turn in time is refused as overloaded", async (t) => {
  const { node, directory } = await start(t);
  // A pass of another node that does not end, and lives.
  const lease = join(directory, ".lease_gc");
  writeFileSync(lease, '{"Kind":"gc","Node":"b:1","Backups":[]}\n');
  const touching = setInterval(() => age(lease, 0), 5000);
  t.teardown(() => clearInterval(touching));
  // The first one waits for the pass, the second one for the first.
  const method = ["Backups", "RunBackupGarbageCollection"] as const;
  const [late, after] = await Promise.all([
    post(node.http, "/v1/backups/gc", {}),
    node.grpc.call(...method, { DryRun: true }, {}, 60_000),
  ]);
  t.equal(after.code, 14, after.details);
  t.match(after.details, /another one is running/);
  t.same(after.trailers.get("svc-backup-outcome"), []);
  t.match(late, { status: 503, body: { code: "overloaded" } });
  t.notOk(late.headers["x-svc-backup-outcome"], "it is no outcome of a backup");
  t.ok(existsSync(lease));
});

t.test("3.7 a backup is taken, continued, collected and restored, on either wire", async (t) => {
  const place = temporaryDirectory();
  t.teardown(() => place.remove());
  const directory = join(place.path, "made-at-the-start");
  const root = join(place.path, "restores");
  mkdirSync(root);
  const node = await startNode(
    t,
    `--pitr-backup-dir=${directory}`,
    `--pitr-restore-root=${root}`,
    "--pitr-backup-cluster-id=prod",
    "--backup-retention-max-chains=1",
  );
  t.equal(statSync(directory).mode & 0o777, 0o700);
  const set = { key: "k", value: "dg==", durability: 1 };
  t.equal((await post(node.http, "/v1/kv/try-set", set)).status, 200);
  const full = await post(node.http, "/v1/backups/full", "");
  const kinds = { requestedKind: "Full", actualKind: "Full", substitutionReason: null };
  t.match(full, { status: 200, body: { type: "Full", clusterId: "prod", ...kinds } });
  const cut = await node.grpc.call("Backups", "TakeCoordinatedBackup", {});
  t.match(cut, { code: 0, fields: { Type: "Full", HasSnapshotTime: true } });
  const parentBackupId = String(cut.fields["BackupId"]);
  const next = await post(node.http, "/v1/backups/incremental", { parentBackupId });
  t.match(next, { status: 200, body: { type: "Incremental", parentBackupId } });
  const leafBackupId = String(next.body["backupId"]);
  const lost = await post(node.http, "/v1/backups/incremental", { parentBackupId: uuid(9) });
  t.match(lost, { status: 404, headers: { "x-svc-backup-outcome": "ParentMissing" } });
  const verified = await post(node.http, "/v1/backups/validate-chain", { leafBackupId });
  t.match(verified, { status: 200, body: [{ backupId: parentBackupId }, {}] });
  t.equal((await post(node.http, "/v1/backups/gc", {})).status, 200);
  const listed = await http1(node.http, "/v1/backups");
  t.match(listed.body, [{ backupId: parentBackupId }, { backupId: leafBackupId }]);
  t.equal((listed.body as unknown as unknown[]).length, 2, "the first chain is collected");
  const target = join(root, "new");
  const restore = ["--restore", leafBackupId, "--target-dir", target, "--sequence-skip", "2"];
  const words = ["-c", node.grpcUrl, "--format", "json", ...restore];
  const restored = await runCli(words);
  t.match(restored, { exit: 0 });
  t.match(JSON.parse(restored.stdout), { targetDir: target, outcome: 0, sequencesAheadCount: 0 });
  t.match(await runCli(words), { exit: 1, stdout: /"TargetConflict"/ });
  const inside = { leafBackupId, targetDir: join(place.path, "elsewhere") };
  t.match(await post(node.http, "/v1/restore", inside), {
    status: 409,
    body: { outcome: "TargetConflict" },
  });
  const early = { leafBackupId, targetDir: join(root, "early"), targetTimeMs: 5 };
  t.match(await post(node.http, "/v1/restore", early), {
    status: 422,
    body: { outcome: "TargetOutsideCoverage" },
  });
  const metrics = (await http1(node.http, "/metrics")).text;
  t.match(metrics, /^svc_backup_last_success_timestamp_seconds 1[0-9]{9}/m);
  t.match(metrics, /^svc_restore_runs_total\{outcome="Ok"\} 1$/m);
  t.match(metrics, /^svc_backup_runs_total\{kind="incremental",outcome="ParentMissing"\} 1$/m);
});
