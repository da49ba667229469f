/**
 * What svc-cli makes of each outcome of a backup (contract 7.6, 8.3, 8.4): exit code 1, one document on stdout, nothing
 * on stderr, and the first line of the text begins with its name. In the shell the same, and the line failed.
 */
import * as grpc from "@grpc/grpc-js";
import t from "tap";
import { BACKUP_OUTCOMES } from "../../../src/api/backups.js";
import { Batch, type Ran, runCli } from "../../process/cli/programs.js";
import { StandIn } from "../../doubles/server/stand-in.js";

const batch = new Batch();
const node = await StandIn.bare();
t.teardown(() => {
  batch.close();
  node.stop();
});
// A loaded machine takes its time for so many lines.
t.setTimeout(240_000);

const { UNAVAILABLE, NOT_FOUND, FAILED_PRECONDITION, ALREADY_EXISTS } = grpc.status;
const { CANCELLED, INTERNAL } = grpc.status;

/** The status that comes with each, written a second time. */
const STATUSES: Readonly<Record<string, grpc.status>> = {
  ...{ NotConfigured: UNAVAILABLE, ParentMissing: NOT_FOUND, NeedsFull: FAILED_PRECONDITION },
  ...{ CorruptChain: FAILED_PRECONDITION, CorruptArtifact: FAILED_PRECONDITION },
  ...{ TargetConflict: ALREADY_EXISTS, TargetOutsideCoverage: FAILED_PRECONDITION },
  ...{ Cancelled: CANCELLED, IoError: INTERNAL, RetryableLeadershipLoss: UNAVAILABLE },
  ...{ ExactCheckpointUnavailable: FAILED_PRECONDITION, UnsupportedFormat: FAILED_PRECONDITION },
  ...{ TopologyChanged: FAILED_PRECONDITION, NotBackupCoordinator: UNAVAILABLE },
  ...{ InsecureRoot: UNAVAILABLE, RestrictedCoverage: FAILED_PRECONDITION },
};

const ID = "0b8d6c1e-4a57-4a3c-9a51-6f6e1d2c3b4a";
const CALLS: readonly (readonly [string, readonly string[]])[] = [
  ["TakeFullBackup", ["--backup-full"]],
  ["TakeCoordinatedBackup", ["--backup-coordinated"]],
  ["TakeIncrementalBackup", ["--backup-incremental", "--parent-backup-id", ID]],
  ["ListBackups", ["--list-backups"]],
  ["GetBackupChain", ["--backup-chain", ID]],
  ["RunBackupGarbageCollection", ["--backup-gc", "--backup-gc-dry-run"]],
  ["Restore", ["--restore", ID, "--target-dir", "/r/a"]],
];

function run(...words: string[]): Promise<Ran> {
  return batch.run(["-c", node.endpoint, ...words]);
}

t.test("8.3 8.4 every outcome is a refusal with a document", async (t) => {
  t.same(Object.keys(STATUSES).sort(), [...BACKUP_OUTCOMES.slice(1)].sort());
  for (const [at, [outcome, status]] of Object.entries(STATUSES).entries()) {
    const details = `why ${outcome} (operation 0123456789ab)`;
    // Each outcome with two of the calls, each call with several outcomes.
    for (const [rpc, words] of [CALLS[at % 7], CALLS[(at + 3) % 7]] as typeof CALLS) {
      node.answers.set(rpc, { status, outcome, details });
      const where = `${words[0]}: ${outcome}`;
      const json = await run("--format", "json", ...words);
      t.equal(json.exit, 1, `${where}: ${json.stderr}`);
      t.same(JSON.parse(json.stdout), { outcome, message: details }, where);
      t.equal(json.stderr, "", where);
      const text = await run(...words);
      t.match(text, { exit: 1, stdout: `${outcome}: ${details}\n`, stderr: "" }, where);
    }
  }
});

t.test("8.3 what comes without an outcome is none: overloaded, and not allowed", async (t) => {
  for (const [status, exit] of [
    [grpc.status.PERMISSION_DENIED, 4],
    [grpc.status.UNAUTHENTICATED, 4],
    [grpc.status.UNAVAILABLE, 3],
  ] as const) {
    node.answers.set("TakeFullBackup", { status, details: "no" });
    const json = await run("--format", "json", "--timeout", "5", "--backup-full");
    t.equal(json.exit, exit, `${status}: ${json.stdout} ${json.stderr}`);
    t.equal(json.stdout, "");
    t.type(JSON.parse(json.stderr), "object");
  }
});

t.test("8.5 a line of the shell that ends in an outcome did not succeed", async (t) => {
  const details = "why";
  const status = FAILED_PRECONDITION;
  node.answers.set("TakeFullBackup", { status, details, outcome: "TopologyChanged" });
  const shell = await runCli(["-c", node.endpoint], {}, "backup full\nexit\n");
  t.equal(shell.exit, 1, shell.stderr);
  t.match(shell.stdout, /^TopologyChanged: why$/m);
});
