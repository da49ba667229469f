/**
 * Backups and restore, carried out. They go to the first endpoint, because a catalog belongs to a
 * node.
 *
 * Invariants: 1. A named backup outcome is a refusal (exit code 1) with a document; anything else
 * is an error.
 */
import {
  BackupError,
  type BackupCollection,
  type BackupInfo,
  type RestoreResult,
  type SvcClient,
} from "../../client/mod.js";
import { outcome, type Outcome, type RunContext, type RunTable } from "../invocation/context.js";
import { isRefusal } from "../invocation/failures.js";
import { whileRunning } from "./backup-progress.js";
import { tableLines, timeText } from "../terminal/format.js";
import type { OptionValues } from "../commands/values.js";

/** The named outcome of a refusal; null when `error` is none. */
function refusalName(error: unknown): string | null {
  if (error instanceof BackupError) return error.backupOutcome;
  return isRefusal(error) ? "InvalidInput" : null;
}

/** Runs `action` on the first endpoint; a named failure becomes the operation's refusal. */
async function onFirstNode(
  context: RunContext,
  action: (client: SvcClient) => Promise<Outcome>,
): Promise<Outcome> {
  const client = await context.clientOf(context.endpoints[0] as string);
  try {
    return await action(client);
  } catch (error) {
    const name = refusalName(error);
    if (name === null) throw error;
    const { message } = error as Error;
    return outcome(false, [`${name}: ${message}`], { outcome: name, message });
  }
}

function backupLines(kind: string, backup: BackupInfo): string[] {
  const lines = [
    `${kind} backup ${backup.backupId} completed`,
    `Type: ${backup.type}`,
    `Created: ${backup.createdAtUtc}`,
    `Partitions: ${backup.partitionCount}`,
  ];
  if (backup.parentBackupId !== null) lines.push(`Parent: ${backup.parentBackupId}`);
  if (backup.clusterSnapshotPhysical !== null) {
    lines.push(`Snapshot time: ${timeText(backup.clusterSnapshotPhysical)}`);
  }
  if (backup.requestedKind !== backup.actualKind && backup.substitutionReason !== null) {
    const { requestedKind, actualKind, substitutionReason } = backup;
    lines.push(
      `Substituted: requested ${requestedKind}, produced ${actualKind} — ${substitutionReason}`,
    );
  }
  return lines;
}

function taking(
  kind: string,
  take: (client: SvcClient, values: OptionValues, context: RunContext) => Promise<BackupInfo>,
) {
  return (values: OptionValues, context: RunContext): Promise<Outcome> =>
    onFirstNode(context, async (client) => {
      const backup = await whileRunning(context, client, () => take(client, values, context));
      return outcome(true, backupLines(kind, backup), backup);
    });
}

function listRow(backup: BackupInfo): string[] {
  const parent = backup.parentBackupId ?? "-";
  const state = backup.isIncomplete ? "INCOMPLETE" : "INVALID";
  const isBad = backup.isInvalid || backup.isIncomplete;
  return [
    backup.backupId,
    backup.type,
    backup.createdAtUtc,
    String(backup.partitionCount),
    isBad ? `${state} ${backup.invalidReason ?? ""}`.trimEnd() : parent,
  ];
}

function list(_values: OptionValues, context: RunContext): Promise<Outcome> {
  return onFirstNode(context, async (client) => {
    const backups = await client.backups.list(context.calling());
    const header = ["Backup ID", "Type", "Created (UTC)", "Partitions", "Parent"];
    const lines =
      backups.length === 0
        ? ["No backups found in catalog."]
        : tableLines(header, backups.map(listRow), context.columns);
    return outcome(true, lines, backups);
  });
}

function chain(values: OptionValues, context: RunContext): Promise<Outcome> {
  const leaf = values.requiredText("--backup-chain");
  return onFirstNode(context, async (client) => {
    const backups = await client.backups.chain(leaf, context.calling());
    const lines = backups.flatMap((backup) => [
      `${backup.type === "Full" ? "●" : "├─"} ${backup.backupId} ${backup.type} ` +
        `partitions=${backup.partitionCount}`,
      `Created: ${backup.createdAtUtc}`,
    ]);
    const title = `Backup chain for ${leaf} (${backups.length} entries)`;
    return outcome(true, [title, ...lines], backups);
  });
}

function collectionLines(answer: BackupCollection, columns: number | null): string[] {
  const verb = answer.applied ? "Reclaimed:" : "Would reclaim (dry run):";
  const lines = [
    `${verb} ${answer.orphanReclamations.length} orphan/leftover artifact(s), ` +
      `${answer.retentionDeletions.length} retained-out backup(s), ${answer.bytesReclaimed} byte(s).`,
  ];
  if (answer.retentionDeletions.length > 0) {
    const rows = answer.retentionDeletions.map((backup) => [
      backup.backupId,
      backup.type,
      backup.createdAtUtc,
      String(backup.bytes),
      backup.reason,
    ]);
    const header = ["Backup ID", "Type", "Created (UTC)", "Bytes", "Reason"];
    lines.push("", ...tableLines(header, rows, columns));
  }
  if (answer.orphanReclamations.length > 0) {
    const rows = answer.orphanReclamations.map((orphan) => [
      orphan.name,
      orphan.isDirectory ? "directory" : "file",
      orphan.reason,
    ]);
    lines.push("", ...tableLines(["Name", "Kind", "Reason"], rows, columns));
  }
  return lines;
}

function collect(values: OptionValues, context: RunContext): Promise<Outcome> {
  const dryRun = values.flag("--backup-gc-dry-run");
  return onFirstNode(context, async (client) => {
    const answer = await client.backups.collectGarbage({ ...context.calling(), dryRun });
    return outcome(true, collectionLines(answer, context.columns), answer);
  });
}

/** Sequences that had handed out, or could have, more than they have now. */
function aheadLines({
  sequencesAhead: names,
  sequencesAheadCount: count,
}: RestoreResult): string[] {
  if (count === 0n) return [];
  const more = count > BigInt(names.length) ? ", …" : "";
  return [`Sequences ahead: ${count} (${names.join(", ")}${more})`];
}

function restoreLines(answer: RestoreResult): string[] {
  return [
    `Restore completed to ${answer.targetDir}`,
    `Partitions restored: ${answer.partitionsRestored}`,
    `WAL entries applied: ${answer.entriesApplied}`,
    `Last applied time: ${timeText(answer.lastAppliedPhysicalMs)}`,
    `Recoverable window: ${timeText(answer.minRecoverablePhysicalMs)} to ` +
      timeText(answer.maxRecoverablePhysicalMs),
    ...aheadLines(answer),
    `Chain (${answer.chain.length} entries):`,
    ...answer.chain.map((backup) => `  ${backup.backupId}`),
    `Start a fresh node on it: svc-server --storage-path ${answer.targetDir} (with the same ` +
      "--storage and --storage-revision)",
  ];
}

function restore(values: OptionValues, context: RunContext): Promise<Outcome> {
  const leaf = values.requiredText("--restore");
  const targetDir = values.requiredText("--target-dir");
  const targetTimeMs = values.int64("--target-time-ms") ?? 0n;
  const sequenceSkip = values.int64("--sequence-skip") ?? 0n;
  return onFirstNode(context, async (client) => {
    const answer = await whileRunning(context, client, () =>
      client.backups.restore(leaf, targetDir, {
        ...context.calling(),
        targetTimeMs,
        sequenceSkip,
      }),
    );
    const { targetDir: dir, partitionsRestored, entriesApplied, lastAppliedPhysicalMs } = answer;
    const { chain: entries, ...rest } = answer;
    return outcome(true, restoreLines(answer), {
      ...{ targetDir: dir, partitionsRestored, entriesApplied, lastAppliedPhysicalMs },
      chain: entries,
      // A restore that answers at all is Ok: every other outcome is an error of the library.
      outcome: 0,
      minRecoverablePhysicalMs: rest.minRecoverablePhysicalMs,
      maxRecoverablePhysicalMs: rest.maxRecoverablePhysicalMs,
      sequencesAhead: rest.sequencesAhead,
      sequencesAheadCount: rest.sequencesAheadCount,
    });
  });
}

export const BACKUPS_RUN: RunTable = {
  "--backup-full": taking("Full", (client, _values, context) =>
    client.backups.full(context.calling()),
  ),
  "--backup-coordinated": taking("Coordinated", (client, _values, context) =>
    client.backups.coordinated(context.calling()),
  ),
  "--backup-incremental": taking("Incremental", (client, values, context) =>
    client.backups.incremental(values.requiredText("--parent-backup-id"), context.calling()),
  ),
  "--list-backups": list,
  "--backup-chain": chain,
  "--backup-gc": collect,
  "--restore": restore,
};
