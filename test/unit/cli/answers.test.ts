/**
 * Answers of administration that a node of this version does not give yet, from a stand-in node that speaks the same
 * messages: backups, splits, leaves, placements, and several nodes of which one leads.
 */
import * as grpc from "@grpc/grpc-js";
import t from "tap";
import { findCommand } from "../../../src/cli/commands/table.js";
import type { Encodable } from "../../../src/proto/codec.js";
import * as backups from "../../../src/proto/generated/backups.js";
import * as cluster from "../../../src/proto/generated/cluster.js";
import { Batch, misfits, type Ran } from "../../process/cli/programs.js";
import { StandIn, reply, type Reply } from "../../doubles/server/stand-in.js";

const batch = new Batch();
const first = await StandIn.bare();
const second = await StandIn.bare();
t.teardown(() => {
  batch.close();
  first.stop();
  second.stop();
});

const both = `${first.endpoint},${second.endpoint}`;

/** Runs in both formats; checks the document against its schema and gives the console text. */
async function answer(t: Tap, exit: number, ...words: string[]): Promise<string> {
  const json: Ran = await batch.run(["--format", "json", "-c", both, ...words]);
  const command = words.map(findCommand).find((found) => found !== null);
  t.equal(json.exit, exit, `${words.join(" ")}: ${json.stderr}`);
  t.same(misfits(command?.document ?? {}, JSON.parse(json.stdout)), [], words.join(" "));
  const console = await batch.run(["-c", both, ...words]);
  t.equal(console.exit, exit, console.stderr);
  return console.stdout.replace(/\n$/, "");
}
type Tap = Pick<typeof t, "equal" | "same">;

const FULL_ID = "0b8d6c1e-4a57-4a3c-9a51-6f6e1d2c3b4a";
const NEXT_ID = "1c9e7d2f-5b68-4b4d-8b62-7a7f2e3d4c5b";
const CREATED = "2026-01-02T03:04:05.678Z";
const full = {
  BackupId: FULL_ID,
  Type: "Full",
  CreatedAtUtc: CREATED,
  PartitionCount: 16,
  RequestedKind: "Full",
  ActualKind: "Full",
  FormatVersion: 1,
  ClusterId: "c1",
};
const coordinated = {
  ...full,
  HasSnapshotTime: true,
  SnapshotNode: 1,
  SnapshotPhysical: 1_767_323_045_678,
  SnapshotCounter: 0,
};
const incremental = {
  ...full,
  BackupId: NEXT_ID,
  Type: "Incremental",
  ParentBackupId: FULL_ID,
  RequestedKind: "Incremental",
  ActualKind: "Incremental",
};
const substituted = {
  ...full,
  BackupId: NEXT_ID,
  RequestedKind: "Incremental",
  SubstitutionReason: "ParentLogCompacted",
};
const broken = {
  ...full,
  BackupId: "2d",
  IsInvalid: true,
  IsIncomplete: true,
  InvalidReason: "no manifest",
};

t.test("backups", async (t) => {
  const info = (message: Encodable<backups.GrpcBackupInfoResponse>): Reply =>
    reply(backups.GrpcBackupInfoResponse, message);
  first.answers.set("TakeFullBackup", info(full));
  t.equal(
    await answer(t, 0, "--backup-full"),
    `Full backup ${FULL_ID} completed\nType: Full\nCreated: ${CREATED}\nPartitions: 16`,
  );
  first.answers.set("TakeCoordinatedBackup", info(coordinated));
  t.equal(
    await answer(t, 0, "--backup-coordinated"),
    `Coordinated backup ${FULL_ID} completed\nType: Full\nCreated: ${CREATED}\nPartitions: 16\n` +
      "Snapshot time: 2026-01-02T03:04:05.678Z",
  );
  const parent = ["--backup-incremental", "--parent-backup-id", FULL_ID];
  first.answers.set("TakeIncrementalBackup", info(incremental));
  t.match(await answer(t, 0, ...parent), `Partitions: 16\nParent: ${FULL_ID}`);
  first.answers.set("TakeIncrementalBackup", info(substituted));
  t.match(
    await answer(t, 0, ...parent),
    "Substituted: requested Incremental, produced Full — ParentLogCompacted",
  );
  first.answers.set("TakeCoordinatedBackup", {
    status: grpc.status.UNAVAILABLE,
    outcome: "NotBackupCoordinator",
  });
  t.match(await answer(t, 1, "--backup-coordinated"), /^NotBackupCoordinator: /);
  t.notOk(second.count("TakeCoordinatedBackup") > 0, "a catalog belongs to the first node");
});

t.test("the catalog, chains, collection, restore", async (t) => {
  const listed = (...all: Encodable<backups.GrpcBackupInfoResponse>[]): Reply =>
    reply(backups.GrpcListBackupsResponse, { Backups: all });
  first.answers.set("ListBackups", listed());
  t.equal(await answer(t, 0, "--list-backups"), "No backups found in catalog.");
  first.answers.set("ListBackups", listed(full, incremental, broken));
  t.match(
    await answer(t, 0, "--list-backups"),
    new RegExp(
      `^Backup ID +Type +Created \\(UTC\\) +Partitions +Parent\n[- ]+\n${FULL_ID} +Full +${CREATED} +16 +-\n` +
        `${NEXT_ID} +Incremental +${CREATED} +16 +${FULL_ID}\n2d +Full .* INCOMPLETE no manifest$`,
    ),
  );
  first.answers.set("GetBackupChain", listed(full, incremental));
  t.equal(
    await answer(t, 0, "--backup-chain", NEXT_ID),
    `Backup chain for ${NEXT_ID} (2 entries)\n● ${FULL_ID} Full partitions=16\nCreated: ${CREATED}\n` +
      `├─ ${NEXT_ID} Incremental partitions=16\nCreated: ${CREATED}`,
  );
  const collected = {
    Applied: false,
    BytesReclaimed: 4096,
    RetentionDeletions: [
      { BackupId: FULL_ID, Type: "Full", CreatedAtUtc: CREATED, Bytes: 4096, Reason: "MaxChains" },
    ],
    OrphanReclamations: [{ Name: "x.tmp_1", IsDirectory: false, Reason: "Leftover" }],
  };
  first.answers.set("RunBackupGarbageCollection", reply(backups.GrpcBackupGcResponse, collected));
  const dry = await answer(t, 0, "--backup-gc", "--backup-gc-dry-run");
  t.match(
    dry,
    /^Would reclaim \(dry run\): 1 orphan\/leftover artifact\(s\), 1 retained-out backup\(s\), 4096 byte\(s\)\.\n/,
  );
  t.match(dry, /MaxChains[\s\S]*x\.tmp_1 +file +Leftover/);
  first.answers.set(
    "RunBackupGarbageCollection",
    reply(backups.GrpcBackupGcResponse, { Applied: true }),
  );
  t.equal(
    await answer(t, 0, "--backup-gc"),
    "Reclaimed: 0 orphan/leftover artifact(s), 0 retained-out backup(s), 0 byte(s).",
  );
  first.answers.set(
    "Restore",
    reply(backups.GrpcRestoreResponse, {
      TargetDir: "/r/a",
      PartitionsRestored: 16,
      EntriesApplied: 12,
      LastAppliedPhysicalMs: 1_767_323_045_678,
      Chain: [full],
      Outcome: "Ok",
      MinRecoverablePhysicalMs: 1_767_323_045_678,
      MaxRecoverablePhysicalMs: 1_767_323_045_678,
      SequencesAhead: ["a", "b"],
      SequencesAheadCount: 3,
    }),
  );
  t.match(
    await answer(t, 0, "--restore", FULL_ID, "--target-dir", "/r/a", "--sequence-skip", "9"),
    new RegExp(
      "^Restore completed to /r/a\nPartitions restored: 16\nWAL entries applied: 12\n" +
        `Last applied time: ${CREATED}\nRecoverable window: ${CREATED} to ${CREATED}\n` +
        "Sequences ahead: 3 \\(a, b, …\\)\n" +
        `Chain \\(1 entries\\):\n  ${FULL_ID}\n.*--storage-path /r/a`,
    ),
  );
  first.answers.set("Restore", { status: grpc.status.ALREADY_EXISTS, outcome: "TargetConflict" });
  const restore = ["--restore", FULL_ID, "--target-dir", "/r/a", "--target-time-ms", "5"];
  t.match(await answer(t, 1, ...restore), /^TargetConflict: /);
});

t.test("a malformed backup id is a refusal with a document", async (t) => {
  const invalid: Reply = { status: grpc.status.INVALID_ARGUMENT };
  for (const method of ["GetBackupChain", "TakeIncrementalBackup", "Restore"]) {
    first.answers.set(method, invalid);
  }
  for (const words of [
    ["--backup-chain", "x"],
    ["--backup-incremental", "--parent-backup-id", "x"],
    ["--restore", "x", "--target-dir", "/d"],
  ]) {
    t.match(await answer(t, 1, ...words), /^InvalidInput: /, words.join(" "));
    const json = await batch.run(["--format", "json", "-c", both, ...words]);
    t.match(JSON.parse(json.stdout), { outcome: "InvalidInput" });
  }
});

t.test("split and merge ask until a node leads", async (t) => {
  const split = (message: Encodable<cluster.GrpcSplitRangeResponse>): Reply =>
    reply(cluster.GrpcSplitRangeResponse, message);
  const words = ["--split-range", "users", "--split-key", "users/m"];
  const notLeader = {
    Status: "NotLeader",
    Determinate: true,
    LeaderHint: "http://b:1",
    Reason: "no",
  };
  first.answers.set("SplitRange", split(notLeader));
  second.answers.set(
    "SplitRange",
    split({
      Success: true,
      Status: "Succeeded",
      Determinate: true,
      NewPartitionId: 17,
      NewGeneration: 2,
    }),
  );
  t.equal(await answer(t, 0, ...words), "Split: users at users/m — partition 17 at generation 2.");
  second.answers.set("SplitRange", split(notLeader));
  t.equal(await answer(t, 1, ...words), "Not split: status NotLeader — no\nTry --node http://b:1.");
  first.answers.set("SplitRange", split({ Status: "TransferFailed", Reason: "timed out" }));
  const before = second.asked.length;
  t.equal(
    await answer(t, 1, ...words),
    "Not split: status TransferFailed — timed out\nOutcome open: read --ranges again.",
  );
  t.equal(second.asked.length, before, "an open outcome ends the search");
  const merge = (message: Encodable<cluster.GrpcMergeRangesResponse>): Reply =>
    reply(cluster.GrpcMergeRangesResponse, message);
  first.answers.set("MergeRanges", merge({ Status: "NotLeader", Determinate: true, Reason: "no" }));
  second.answers.set(
    "MergeRanges",
    merge({ Success: true, Status: "Completed", Determinate: true, Merges: 2 }),
  );
  t.equal(await answer(t, 0, "--merge-ranges"), "Merge pass complete: folded 2 adjacent pair(s).");
  first.answers.set("MergeRanges", merge({ Status: "Indeterminate", Reason: "unclear" }));
  t.match(
    await answer(t, 1, "--merge-ranges"),
    /^No merge pass ran: status Indeterminate — unclear/,
  );
});

t.test("leave, placement, replication factor", async (t) => {
  const leave = (message: Encodable<cluster.GrpcClusterLeaveResponse>): Reply =>
    reply(cluster.GrpcClusterLeaveResponse, message);
  const words = ["--cluster-leave", "--node", first.endpoint];
  first.answers.set(
    "Leave",
    leave({ Left: true, Outcome: 0, MembershipVersion: 5, Drained: true, Reason: "Done." }),
  );
  t.equal(
    await answer(t, 0, ...words),
    `Node ${first.endpoint}  Outcome Committed  Membership version 5\nDone.\n` +
      "Its replicas were evacuated to other nodes.\nThe process may now be stopped.",
  );
  first.answers.set(
    "Leave",
    leave({ Outcome: 7, MembershipVersion: 4, Retryable: true, Reason: "Slow." }),
  );
  t.match(
    await answer(t, 1, ...words),
    /Outcome DrainTimedOut[\s\S]*--raft-decommission-drain-timeout/,
  );
  first.answers.set(
    "GetPlacement",
    reply(cluster.GrpcGetPlacementResponse, {
      ReplicationFactor: 3,
      RebalancerEnabled: true,
      Initialized: true,
      LocalEndpoint: "a:1",
      HostedPartitionCount: 1,
      Partitions: [
        {
          PartitionId: 1,
          State: "Active",
          Generation: 2,
          EffectiveReplicationFactor: 3,
          HostedLocally: true,
          Replicas: [
            { Endpoint: "a:1", Role: 0 },
            { Endpoint: "b:1", Role: 1 },
          ],
        },
        { PartitionId: 2, State: "Removed", Generation: 7, EffectiveReplicationFactor: 3 },
      ],
    }),
  );
  t.match(
    await answer(t, 0, "--cluster-placement"),
    /^Replication factor 3 \(per-partition placement\) {2}Rebalancer enabled {2}Node a:1 hosts 1 of 2 partitions\n\nPartition .*\n[- ]+\n1 +Active +2 +3 +yes +a:1 \(Voter\), b:1 \(Learner\)\n2 +Removed +7 +3 +no +none\n\nNode .*\n[- ]+\na:1 +1 +1 +0 +0\nb:1 +1 +0 +1 +0$/,
  );
  const factor = (message: Encodable<cluster.GrpcSetReplicationFactorResponse>): Reply =>
    reply(cluster.GrpcSetReplicationFactorResponse, message);
  first.answers.set(
    "SetReplicationFactor",
    factor({ Status: "Refused", Reason: "not the leader" }),
  );
  second.answers.set(
    "SetReplicationFactor",
    factor({ Success: true, Status: "Success", Generation: 9 }),
  );
  const set = ["--set-replication-factor", "3", "--partition", "7"];
  t.equal(
    await answer(t, 0, ...set),
    "Committed: partition 7 replication factor override set to 3 (generation 9).",
  );
  second.answers.set("SetReplicationFactor", { status: grpc.status.PERMISSION_DENIED });
  t.equal(await answer(t, 1, ...set), "Refused: status Refused — not the leader");
});
