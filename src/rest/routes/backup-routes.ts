/**
 * The backup and restore paths (contract 3.7 and 7.6).
 *
 * Invariants: 1. Every failed call carries its outcome in the header X-Svc-Backup-Outcome and in
 * the member `outcome`; a malformed id or an empty target has none and is 400. 2. In this version
 * every call ends in a refusal.
 */
import type { BackupOutcome, BackupRefusal, BackupRequest } from "../../operations/api/requests.js";
import { adminRoute } from "./admin-route.js";
import type { Exchange } from "../http/exchange.js";
import type { OperationsPort } from "../../operations/api/requests.js";
import { int64, optionalText, tableOf, text } from "../json/members.js";
import type { Route } from "../http/route.js";
import type { Shape } from "../http/shapes.js";

const leaf = text("leafBackupId", "id of the newest backup of the chain");
const parentTable = tableOf(text("parentBackupId", "id of the backup to continue from"));
const validateTable = tableOf(
  leaf,
  optionalText("targetDir", "accepted and ignored"),
  int64("targetTimeMs", 0n, "accepted and ignored"),
);
const restoreTable = tableOf(
  leaf,
  text("targetDir", "absolute path of the new storage directory on the server"),
  int64("targetTimeMs", 0n, "Unix milliseconds; 0 or omitted = the end of the chain"),
);

const INFO: Shape = {
  object: {
    backupId: "text",
    formatVersion: "int32",
    type: "text",
    createdAtUtc: "text",
    parentBackupId: "text-or-null",
    partitionCount: "int32",
    clusterId: "text-or-null",
    coordinatorNode: "text-or-null",
    clusterSnapshotNode: "int32-or-null",
    clusterSnapshotPhysical: "int64-or-null",
    clusterSnapshotCounter: "int64-or-null",
    requestedKind: "text-or-null",
    actualKind: "text-or-null",
    substitutionReason: "text-or-null",
    isInvalid: "bool",
    isIncomplete: "bool",
    invalidReason: "text-or-null",
    minRecoverablePhysicalMs: "int64-or-null",
    maxRecoverablePhysicalMs: "int64-or-null",
  },
};
const INFOS: Shape = { list: INFO };
const COLLECTED: Shape = {
  object: {
    applied: "bool",
    bytesReclaimed: "int64",
    retentionDeletions: {
      list: {
        object: {
          backupId: "text",
          type: "text",
          createdAtUtc: "text",
          bytes: "int64",
          reason: "text",
        },
      },
    },
    orphanReclamations: {
      list: { object: { name: "text", isDirectory: "bool", reason: "text" } },
    },
  },
};
const RESTORED: Shape = {
  object: {
    targetDir: "text",
    partitionsRestored: "int32",
    entriesApplied: "int64",
    lastAppliedPhysicalMs: "int64",
    chain: INFOS,
    outcome: "int32",
    minRecoverablePhysicalMs: "int64-or-null",
    maxRecoverablePhysicalMs: "int64-or-null",
  },
};

const OUTCOME_STATUSES: Readonly<Record<BackupOutcome, number>> = {
  Ok: 500,
  NotConfigured: 503,
  ParentMissing: 404,
  NeedsFull: 422,
  CorruptChain: 422,
  CorruptArtifact: 422,
  TargetConflict: 409,
  TargetOutsideCoverage: 422,
  Cancelled: 499,
  IoError: 500,
  RetryableLeadershipLoss: 503,
  ExactCheckpointUnavailable: 422,
  UnsupportedFormat: 422,
  TopologyChanged: 422,
  NotBackupCoordinator: 503,
  InsecureRoot: 503,
  RestrictedCoverage: 422,
};

function answerRefusal(exchange: Exchange, isRestore: boolean, answer: BackupRefusal): void {
  const { outcome, message } = answer;
  if (outcome === null) {
    exchange.problem(400, "invalid-argument", message);
    return;
  }
  const notPermitted = isRestore && outcome === "NotConfigured";
  const status = notPermitted ? 403 : OUTCOME_STATUSES[outcome];
  const headers = { "x-svc-backup-outcome": outcome };
  exchange.problem(status, "backup-failed", message, headers, `{"outcome":"${outcome}"}`);
}

const FAILURES = [403, 404, 409, 422, 499, 500, 503] as const;
const shared = { tag: "backups", access: "admin", statuses: FAILURES } as const;

type Call = (exchange: Exchange, port: OperationsPort, request: BackupRequest) => void;

function takingRoutes(call: Call): readonly Route[] {
  const take = (kind: "full" | "coordinated", summary: string): Route =>
    adminRoute({
      ...shared,
      method: "POST",
      path: `/v1/backups/${kind}`,
      summary,
      answer: INFO,
      run: (exchange, port) => call(exchange, port, { kind }),
    });
  return [
    take("full", "Take a full backup"),
    take("coordinated", "Take a full backup of one instant of the whole cluster"),
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/backups/incremental",
      summary: "Take a backup of what changed since another one",
      table: parentTable,
      answer: INFO,
      run: (exchange, port, [parentBackupId]) => {
        call(exchange, port, { kind: "incremental", parentBackupId });
      },
    }),
  ];
}

function chainRoutes(call: Call): readonly Route[] {
  return [
    adminRoute({
      ...shared,
      method: "GET",
      path: "/v1/backups",
      summary: "List the backups, oldest first",
      answer: INFOS,
      run: (exchange, port) => call(exchange, port, { kind: "list" }),
    }),
    adminRoute({
      ...shared,
      method: "GET",
      path: "/v1/backups/{id}/chain",
      summary: "List the chain of a backup, root first",
      answer: INFOS,
      run: (exchange, port) => {
        call(exchange, port, { kind: "chain", leafBackupId: exchange.pathId });
      },
    }),
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/backups/validate-chain",
      summary: "Verify every artifact of a chain",
      table: validateTable,
      answer: INFOS,
      run: (exchange, port, [leafBackupId]) => {
        call(exchange, port, { kind: "validate-chain", leafBackupId });
      },
    }),
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/backups/gc",
      summary: "Delete what retention no longer keeps",
      query: [{ name: "dryRun", kind: "bool", note: "only report; omitted = false" }],
      answer: COLLECTED,
      run: (exchange, port, _, query) => {
        call(exchange, port, { kind: "gc", dryRun: query.get("dryRun") === "true" });
      },
    }),
    adminRoute({
      ...shared,
      method: "POST",
      path: "/v1/restore",
      summary: "Restore a chain into a new storage directory",
      table: restoreTable,
      answer: RESTORED,
      run: (exchange, port, [leafBackupId, targetDir, targetTimeMs]) => {
        call(exchange, port, { kind: "restore", leafBackupId, targetDir, targetTimeMs });
      },
    }),
  ];
}

/** `timeoutMs`: longest handling time of a call. */
export function backupRoutes(timeoutMs: number): readonly Route[] {
  const call: Call = (exchange, port, request) => {
    port.backup(request, exchange.context(timeoutMs), (answer) => {
      answerRefusal(exchange, request.kind === "restore", answer);
    });
  };
  return [...takingRoutes(call), ...chainRoutes(call)];
}
