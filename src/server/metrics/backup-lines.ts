/** What taking backups came to on this node, as lines of the exposition. */
import { PAUSE_SECONDS_BOUNDS, type BackupFacts } from "../../host/requests/backup-facts.js";
import { family, histogramLines, scalar } from "./exposition.js";

function counts(
  lines: string[],
  name: string,
  help: string,
  label: string,
  values: Iterable<readonly [string, number]>,
): void {
  family(lines, name, "counter", help);
  for (const [value, count] of values) lines.push(`${name}{${label}="${value}"} ${count}`);
}

export function takingLines(lines: string[], facts: BackupFacts): void {
  const { phases, bytes, rounds, substitutions, pauses, clockSkewSeconds } = facts;
  const spent = [...phases].map(([phase, { seconds }]) => [phase, seconds] as const);
  const times = [...phases].map(([phase, { count }]) => [phase, count] as const);
  const seconds = "svc_backup_phase_seconds_total";
  counts(lines, seconds, "Seconds that backups spent, by phase", "phase", spent);
  counts(lines, "svc_backup_phases_total", "Phases of backups that ended", "phase", times);
  const written = "Bytes of backups written by this node, those of given up ones included";
  counts(lines, "svc_backup_bytes_total", written, "kind", bytes);
  const ended = "Attempts of coordinated cuts by how they ended";
  counts(lines, "svc_backup_cut_rounds_total", ended, "result", rounds);
  const instead = "Incremental backups that became Fulls, by why";
  counts(lines, "svc_backup_substitutions_total", instead, "reason", substitutions);
  const pause = "svc_backup_pause_seconds";
  family(lines, pause, "histogram", "How long coordinated cuts paused all partitions");
  histogramLines(lines, pause, "", PAUSE_SECONDS_BOUNDS, pauses.counts, pauses.sum);
  const skew = "How far the leaders' clocks were apart in the last backup that this node took";
  scalar(lines, "svc_backup_clock_skew_seconds", "gauge", skew, clockSkewSeconds);
}
