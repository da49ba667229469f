/**
 * The backup and restore calls (contract 7.6): arguments, what is not configured, one at a time,
 * cancellation, answers and outcomes.
 */
import t from "tap";
import { encodeText } from "../../../src/base/bytes.js";
import type { CallName, RequestNamed } from "../../../src/api/calls.js";
import { BACKUP_OUTCOMES } from "../../../src/api/backups.js";
import type { TakenBackup, TakingFault } from "../../../src/host/backups/backup-taking.js";
import { failure, ok } from "../../../src/base/result.js";
import { uuidOf } from "../../../src/backup/names.js";
import { BackupBench } from "../../doubles/operations/backup-bench.js";
import { ArchiveBench } from "../../doubles/backup/archive-bench.js";
import { SampleCluster, sampleId } from "../../doubles/backup/sample-backup.js";

const id = "0A1b2c3d-0000-4000-8000-00000000ffff";
const restoring = { leafBackupId: id, targetDir: "/t/x", targetTimeMs: 0n, sequenceSkip: 0n };

type Refusal = { readonly outcome: string | null; readonly message: string };

function refusal(end: object): Refusal {
  return (end as { readonly refusal: Refusal }).refusal;
}

/** A backup that was taken. */
function taken(
  substitutionReason: TakenBackup["substitutionReason"] = null,
  manifest = sample(),
): TakenBackup {
  const requestedKind = substitutionReason === null ? "Full" : "Incremental";
  return { ok: true, manifest, requestedKind, actualKind: "Full", substitutionReason };
}

function failed(outcome: string, message = "why"): TakingFault {
  return { ok: false, code: outcome as TakingFault["code"], message, leader: null };
}

/** The sample backup `number`, and its chain. */
function sample(number = 1, parent: number | null = null) {
  const cluster = new SampleCluster(new ArchiveBench());
  if (parent !== null) cluster.take(parent);
  return cluster.take(number, parent);
}

t.test("7.6 what is malformed comes first, then what is not configured", (t) => {
  const bare = new BackupBench({ configured: false, world: { restoring: null } });
  const bench = new BackupBench({ world: { taking: null, restoring: null } });
  const bad: readonly (readonly [CallName, object])[] = [
    ["backups.incremental", { parentBackupId: "x" }],
    ["backups.chain", { leafBackupId: id.slice(1) }],
    ["backups.validateChain", { leafBackupId: "" }],
    ["backups.restore", { ...restoring, leafBackupId: "-" }],
    ["backups.restore", { ...restoring, targetDir: "" }],
    ["backups.restore", { ...restoring, targetDir: "t/x" }],
    ["backups.restore", { ...restoring, targetDir: "/t\0" }],
    ["backups.restore", { ...restoring, targetTimeMs: -1n }],
    ["backups.restore", { ...restoring, sequenceSkip: -1n }],
  ];
  for (const each of [bare, bench]) {
    for (const [name, request] of bad) {
      const { outcome, message } = refusal(each.end(name, request as RequestNamed<typeof name>));
      t.equal(outcome, null, name);
      t.match(message, /\(operation [0-9a-f]{12}\)$/);
    }
  }
  const good: readonly (readonly [CallName, object])[] = [
    ["backups.full", {}],
    ["backups.coordinated", {}],
    ["backups.incremental", { parentBackupId: id }],
    ["backups.list", {}],
    ["backups.chain", { leafBackupId: id }],
    ["backups.validateChain", { leafBackupId: id }],
    ["backups.collectGarbage", { dryRun: true }],
    ["backups.restore", restoring],
  ];
  for (const [name, request] of good) {
    const { outcome, message } = refusal(bare.end(name, request as RequestNamed<typeof name>));
    t.equal(outcome, "NotConfigured", name);
    t.match(message, /\(operation [0-9a-f]{12}\)$/);
  }
  t.equal(refusal(bench.end("backups.full", {})).outcome, "NotConfigured");
  t.equal(refusal(bench.end("backups.restore", restoring)).outcome, "NotConfigured");
  t.same(bare.end("backups.running", {}), { answer: [] });
  t.end();
});

t.test("7.2 7.3 the catalogue is listed, a chain is told root first and verified", (t) => {
  const bench = new BackupBench();
  bench.fill((cluster) => {
    cluster.take(1);
    cluster.take(2, 1);
  });
  const [first, second] = [uuidOf(sampleId(1)), uuidOf(sampleId(2))];
  const leafBackupId = second.toUpperCase();
  for (const [name, request] of [
    ["backups.list", {}],
    ["backups.chain", { leafBackupId }],
    ["backups.validateChain", { leafBackupId }],
  ] as const) {
    const end = bench.end(name, request as never);
    t.match(end, { answer: { length: 2 } }, name);
    const { answer } = end as unknown as { answer: Record<string, unknown>[] };
    t.match(answer[0], {
      backupId: first,
      type: "Full",
      formatVersion: 1,
      parentBackupId: null,
      partitionCount: 2,
      isInvalid: false,
      minRecoverablePhysicalMs: BigInt,
      maxRecoverablePhysicalMs: BigInt,
    });
    const whole = { backupId: second, parentBackupId: first, minRecoverablePhysicalMs: null };
    t.match(answer[1], { type: "Incremental", ...whole });
  }
  t.equal(bench.invalid, 0);
  t.notOk([...bench.disk.files().keys()].some((name) => name.startsWith(".lease")));
  const unknown = bench.end("backups.chain", { leafBackupId: id });
  t.equal(refusal(unknown).outcome, "CorruptChain");
  bench.disk.flip(`${sampleId(1)}/log/p00000.log`, 30);
  t.equal(refusal(bench.end("backups.validateChain", { leafBackupId })).outcome, "CorruptArtifact");
  bench.disk.drop(`${sampleId(2)}/log/p00001.log`);
  t.match(bench.end("backups.list", {}), {
    answer: [
      { isInvalid: false },
      { backupId: second, isInvalid: true, isIncomplete: false, invalidReason: /is missing/ },
    ],
  });
  t.equal(bench.invalid, 1);
  bench.disk.drop(`${sampleId(2)}.manifest`);
  t.match(bench.end("backups.list", {}), {
    answer: [{ backupId: second, isInvalid: true, isIncomplete: true }, {}],
  });
  bench.disk.chmod("", 0o777);
  for (const name of ["backups.list", "backups.collectGarbage"] as const) {
    t.equal(refusal(bench.end(name, { dryRun: false })).outcome, "InsecureRoot");
  }
  t.end();
});

t.test("7.1 a backup is answered as it was published", (t) => {
  const bench = new BackupBench();
  const full = bench.begin("backups.full", {});
  t.match(bench.takes, [{ request: { kind: "full" } }]);
  const manifest = sample();
  bench.takes[0]?.done(taken(null, manifest));
  t.match(full, [
    {
      answer: {
        backupId: uuidOf(manifest.backupId),
        requestedKind: "Full",
        actualKind: "Full",
        substitutionReason: null,
      },
    },
  ]);
  bench.bench.world.settle();
  const parentBackupId = uuidOf(sampleId(1));
  const next = bench.begin("backups.incremental", { parentBackupId });
  t.match(bench.takes[1]?.request, { kind: "incremental", parentId: sampleId(1) });
  t.same([...bench.disk.files().keys()], [], "whoever takes it holds the lease");
  bench.takes[1]?.done(taken("ParentLogCompacted", manifest));
  bench.bench.world.settle();
  t.same([...bench.disk.files().keys()], []);
  t.match(next, [
    {
      answer: {
        requestedKind: "Incremental",
        actualKind: "Full",
        substitutionReason: "ParentLogCompacted",
      },
    },
  ]);
  const told = bench.events.filter(({ kind }) => kind !== "gc");
  t.match(told, [{ outcome: "Ok" }, { kind: "incremental", outcome: "Ok" }]);
  t.end();
});

t.test("7.6 every outcome of whoever takes or restores reaches the caller", (t) => {
  const bench = new BackupBench();
  for (const outcome of BACKUP_OUTCOMES) {
    if (outcome === "Ok") continue;
    const coordinated = bench.begin("backups.coordinated", {});
    bench.takes.at(-1)?.done(failed(outcome));
    t.match(coordinated, [{ refusal: { outcome, message: /^why \(operation [0-9a-f]{12}\)$/ } }]);
    const restored = bench.begin("backups.restore", restoring);
    bench.restores.at(-1)?.done(failure(outcome as "IoError", "why"));
    bench.bench.world.settle();
    t.match(restored, [{ refusal: { outcome } }]);
    t.match(bench.events.slice(-2), [
      { kind: "coordinated", outcome },
      { kind: "restore", outcome },
    ]);
  }
  const elsewhere = bench.begin("backups.coordinated", {});
  const leader = { nodeId: 3, endpoint: "c:8084", clientEndpoint: "http://c:8083" };
  bench.takes.at(-1)?.done({ ...failed("NotBackupCoordinator"), leader });
  t.match(elsewhere, [
    { refusal: { message: /^why Ask node 3 \(c:8084, http:\/\/c:8083\)\. \(op/ } },
  ]);
  const restored = bench.begin("backups.restore", { ...restoring, sequenceSkip: 7n });
  t.match(bench.restores.at(-1)?.request, { leafId: id.toLowerCase().replaceAll("-", "") });
  t.equal(bench.restores.at(-1)?.request.sequenceSkip, 7n);
  bench.restores.at(-1)?.done(
    ok({
      ...{ targetDir: "/t/x", partitionsRestored: 2, entriesApplied: 9, lastAppliedPhysicalMs: 5 },
      ...{ minRecoverablePhysicalMs: 4, maxRecoverablePhysicalMs: 6 },
      ...{ chain: [sample()], sequencesAhead: ["s"], sequencesAheadCount: 1 },
    }),
  );
  bench.bench.world.settle();
  t.match(restored, [
    {
      answer: {
        ...{ targetDir: "/t/x", partitionsRestored: 2, entriesApplied: 9n, outcome: "Ok" },
        ...{ chain: [{ type: "Full" }], sequencesAhead: ["s"], sequencesAheadCount: 1n },
      },
    },
  ]);
  t.end();
});

t.test("7.6 one at a time: another one waits for 30 s, what reads does not", (t) => {
  const bench = new BackupBench();
  const first = bench.begin("backups.full", {});
  const restored = bench.begin("backups.restore", restoring);
  const hurried = bench.begin(
    "backups.collectGarbage",
    { dryRun: true },
    {
      deadlineMs: bench.bench.world.timer.nowMs + 5000,
    },
  );
  t.same([bench.takes.length, bench.restores.length], [1, 0]);
  t.same(bench.end("backups.list", {}), { answer: [] });
  bench.takes[0]?.progress({
    ...{ phase: "images", partitionsDone: 3, partitions: 16, bytes: 7 },
  });
  t.match(bench.end("backups.running", {}), {
    answer: [{ kind: "full", phase: "images", partitionsDone: 3, bytesDone: 7 }],
  });
  bench.pass(6000);
  t.same(hurried, [{ refused: "overloaded" }]);
  t.same(restored, []);
  bench.pass(23_000);
  t.same(restored, []);
  bench.pass(2000);
  t.same(restored, [{ refused: "overloaded" }]);
  const second = bench.begin("backups.coordinated", {});
  bench.takes[0]?.done(taken());
  t.equal(first.length, 1);
  bench.bench.world.settle();
  t.equal(bench.takes.length, 2, "it begins when its turn has come");
  bench.takes[1]?.done(failed("IoError"));
  bench.bench.world.settle();
  t.equal(second.length, 1);
  t.same(bench.end("backups.running", {}), { answer: [] });
  t.end();
});

t.test("7.6 what runs ends with its caller, its time, or the node", (t) => {
  const bench = new BackupBench();
  const { world, operations } = bench.bench;
  let leave: () => void = () => undefined;
  bench.begin("backups.full", {}, { whenGone: (callback) => void (leave = callback) });
  t.equal(bench.takes[0]?.cancelled, false);
  leave();
  t.equal(bench.takes[0]?.cancelled, true, "the client has gone");
  bench.takes[0]?.done(failed("Cancelled"));
  world.settle();
  bench.begin("backups.restore", restoring, { deadlineMs: world.timer.nowMs + 50_000 });
  bench.pass(49_000);
  t.equal(bench.restores[0]?.cancelled, false);
  bench.pass(2000);
  t.equal(bench.restores[0]?.cancelled, true, "its time is over");
  const waiting = bench.begin("backups.full", {});
  operations.endBackups();
  bench.restores[0]?.done(failure("Cancelled", "it was cancelled"));
  world.settle();
  t.same(waiting, [{ refused: "shutting-down" }]);
  t.same(bench.begin("backups.coordinated", {}), [{ refused: "shutting-down" }]);
  t.equal(bench.takes.length, 1);
  t.end();
});

t.test(
  "7.4 a pass that a node makes by itself waits for no other one, and whoever asks has its turn",
  (t) => {
    const bench = new BackupBench();
    bench.fill((cluster) => void cluster.take(1));
    // The one of a node that died: it counts for a minute.
    bench.disk.put(".lease_gc", encodeText('{"Backups":[]}'));
    bench.begin("backups.full", {});
    bench.takes[0]?.done(taken());
    bench.pass(100);
    bench.begin("backups.full", {});
    bench.pass(100);
    t.equal(bench.takes.length, 2, "the turn is free");
    bench.takes[1]?.done(taken());
    const asked = bench.begin("backups.collectGarbage", { dryRun: false });
    bench.pass(29_000);
    t.same(asked, [], "whoever asks for a pass waits");
    bench.pass(5000);
    t.same(asked, [{ refused: "overloaded" }]);
    bench.bench.operations.endBackups();
    t.end();
  },
);

t.test("7.4 passes: on request, after a backup, and every so often where meta is led", (t) => {
  const retention = { maxChains: 1, maxAgeMs: 0, maxBytes: 0 };
  const bench = new BackupBench({ world: { retention, collectEveryMs: 60_000 } });
  bench.fill((cluster) => {
    for (const number of [1, 2, 3]) cluster.take(number);
  });
  const dry = bench.end("backups.collectGarbage", { dryRun: true });
  t.match(dry, {
    answer: {
      applied: false,
      retentionDeletions: [
        { backupId: uuidOf(sampleId(1)), type: "Full", reason: "MaxChains" },
        {},
      ],
      orphanReclamations: [],
    },
  });
  t.equal(bench.reclaimed, 0);
  const run = bench.end("backups.collectGarbage", { dryRun: false });
  t.match(run, { answer: { ...(dry as { answer: object }).answer, applied: true } });
  t.match(bench.end("backups.list", {}), { answer: [{ backupId: uuidOf(sampleId(3)) }] });
  t.ok(bench.reclaimed > 0);
  bench.fill((cluster) => {
    for (const number of [1, 2, 3]) cluster.take(number);
  });
  const full = bench.begin("backups.full", {});
  bench.takes[0]?.done(taken());
  t.equal(full.length, 1);
  bench.bench.world.settle();
  t.match(bench.end("backups.list", {}), { answer: { length: 1 } }, "after a backup");
  bench.fill((cluster) => {
    for (const number of [1, 2, 3]) cluster.take(number);
  });
  t.match(bench.end("backups.list", {}), { answer: { length: 3 } });
  bench.pass(61_000);
  t.match(bench.end("backups.list", {}), { answer: { length: 1 } }, "every so often");
  bench.bench.operations.endBackups();
  t.end();
});
