/**
 * Property: an entry is in a coordinated backup if and only if its stamp is not above the backup's,
 * for ever, whoever leads the group later (7.1, P-134).
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenBackup, type SeenEntry, compareStamps } from "./seen-backups.js";

export class StampsSplit {
  private readonly findings = new Findings("stamps say what is in a coordinated backup", {
    cuts: 1,
    "entries in it": 20,
  });

  /** `entries`: all that a partition has applied to the end of the run. */
  cut(
    { id, at, parts }: SeenBackup,
    entries: (partition: number) => Iterable<Pick<SeenEntry, "index" | "stamp">>,
  ): void {
    if (at === null) return;
    const { findings } = this;
    findings.count("cuts");
    for (const { partition, end } of parts) {
      for (const { index, stamp } of entries(partition)) {
        if (stamp === null) continue;
        const isIn = index <= end;
        findings.count(isIn ? "entries in it" : "entries behind it");
        if (isIn === compareStamps(stamp, at) <= 0) continue;
        const where = `backup ${id}, partition ${partition}`;
        const stamped = `entry ${index}, stamped ${stamp.l}.${stamp.c} by node ${stamp.n}`;
        const place = isIn ? "is in it" : "is not in it";
        findings.violation(`${where}: ${stamped}, ${place}: it is cut at ${at.l}.${at.c}`);
      }
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
