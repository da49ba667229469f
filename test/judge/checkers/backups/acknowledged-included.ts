/**
 * Property: whatever was acknowledged, or shown to anybody, before the call for a backup came is in it,
 * also where the partitions are not aligned (7.1).
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenBackup, type SeenWrite, isIn } from "./seen-backups.js";

export class AcknowledgedIncluded {
  private readonly findings = new Findings("what was acknowledged before is in a backup", {
    backups: 1,
    writes: 20,
  });

  backup(backup: SeenBackup, writes: readonly SeenWrite[]): void {
    const { findings } = this;
    findings.count("backups");
    for (const write of writes) {
      if (write.seenMs >= backup.askedMs) continue;
      findings.count("writes");
      if (isIn(write, backup)) continue;
      const { value, partition, index, seenMs } = write;
      const what = `${value.slice(0, 20)} (partition ${partition}, entry ${index})`;
      const known = `known at ${seenMs.toFixed(1)} ms, asked for at ${backup.askedMs.toFixed(1)} ms`;
      findings.violation(`backup ${backup.id} lacks ${what}, ${known}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
