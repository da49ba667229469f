/**
 * Property: the digest that a backup tells of its mark is the one that live replicas had there, and
 * what is restored is the state that the old cluster's entries lead to, but for what a restore is to
 * change (P-130, P-132).
 */
import { Findings, type Verdict } from "../verdict.js";
import { type SeenRows, differenceOf } from "./cut-is-prefix.js";
import type { SeenBackup } from "./seen-backups.js";

export class DigestEqual {
  private readonly findings = new Findings("what is restored is the live state", { digests: 2 });

  /** `live`: of a replica that applied the entry; undefined: none did. */
  backup(
    { id, parts }: SeenBackup,
    live: (partition: number, index: number) => string | undefined,
  ): void {
    for (const { partition, end, chain } of parts) {
      const own = live(partition, end);
      if (own === undefined) continue;
      this.findings.count("digests");
      if (own === chain) continue;
      const what = `its digest at ${end} is ${chain}, that of the replicas ${own}`;
      this.findings.violation(`backup ${id}, partition ${partition}: ${what}`);
    }
  }

  /** Rows of a partition that a restore leaves as they are; and those of the old cluster there. */
  restored(name: string, partition: number, found: SeenRows, wanted: SeenRows): void {
    this.findings.count("restored partitions");
    this.findings.count("restored rows", wanted.size);
    const difference = differenceOf(found, wanted);
    if (difference === null) return;
    this.findings.violation(`${name}, partition ${partition}: ${difference}`);
  }

  /** Lease clocks go on from where they were. */
  leaseClock(name: string, partition: number, foundMs: number, wantedMs: number): void {
    this.findings.count("lease clocks");
    if (foundMs === wantedMs) return;
    const what = `the lease clock begins at ${foundMs} ms, it was at ${wantedMs} ms`;
    this.findings.violation(`${name}, partition ${partition}: ${what}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
