/**
 * Property: in peace nothing is left of backups: no hold of a log, no pause, no lease of somebody who
 * lives, no hold of the planners (P-135).
 */
import { Findings, type Verdict } from "../verdict.js";

export interface LeftOver {
  readonly node: number;
  /** Holds of logs. */
  readonly holds: number;
  readonly pauses: number;
  /** Shipments and questions under way. */
  readonly isWorking: boolean;
}

export class HoldsEnd {
  private readonly findings = new Findings("nothing is held for backups in peace", { nodes: 1 });

  node({ node, holds, pauses, isWorking }: LeftOver): void {
    const { findings } = this;
    findings.count("nodes");
    if (holds > 0) findings.violation(`node ${node} holds the logs of ${holds} groups for backups`);
    if (pauses > 0) findings.violation(`node ${node} pauses ${pauses} groups for a cut`);
    if (isWorking) findings.violation(`node ${node} still ships for a backup`);
  }

  /** Names of leases that were touched in peace, and planners that wait. */
  common(leases: readonly string[], plannerHolds: readonly string[]): void {
    const { findings } = this;
    findings.count("looks");
    for (const name of leases) findings.violation(`the lease ${name} is still held`);
    for (const name of plannerHolds) findings.violation(`planners still wait for ${name}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
