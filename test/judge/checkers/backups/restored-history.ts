/**
 * Property: what clients of a restored cluster see is linearizable, with the restored state as what was
 * there first; leases are no shorter than they were (7.5, C1).
 *
 * The checkers of histories judge; this adds up what they say of each restored cluster.
 */
import { Findings, type Verdict } from "../verdict.js";

export class RestoredHistory {
  private readonly findings = new Findings("restored clusters go on from their state", {
    clusters: 1,
    operations: 20,
  });

  /** `verdicts`: of the history of one restored cluster. */
  cluster(name: string, verdicts: readonly Verdict[]): void {
    const { findings } = this;
    findings.count("clusters");
    for (const { property, violations, open, seen } of verdicts) {
      findings.count("operations", seen["operations"] ?? 0);
      for (const violation of violations) findings.violation(`${name}: ${property}: ${violation}`);
      for (const text of open) findings.undecided(`${name}: ${property}: ${text}`);
    }
  }

  /** Objects of a restored state that clients of the new cluster asked for. */
  inherited(count: number): void {
    this.findings.count("inherited objects", count);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
