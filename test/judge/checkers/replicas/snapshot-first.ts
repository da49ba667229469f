/**
 * Property: a replica that was added to a group applies nothing, and leads nothing, before it has
 * installed a snapshot: it does not know how its group began.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface Begun {
  readonly node: number;
  readonly group: number;
  /** 0: of the founding. */
  readonly incarnation: number;
  readonly applied: number;
  /** Index of the last snapshot that was installed; 0 = none. */
  readonly installed: number;
  readonly leading: boolean;
}

export class SnapshotFirst {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { "later lives that applied": 10 }) {
    this.findings = new Findings("a snapshot comes first", minimum);
  }

  observe({ node, group, incarnation, applied, installed, leading }: Begun): void {
    if (incarnation === 0 || (applied === 0 && !leading)) return;
    this.findings.count("later lives that applied");
    if (installed > 0) return;
    const life = `node ${node}, partition ${group}, life ${incarnation}`;
    this.findings.violation(`${life}: applied ${applied} without any snapshot`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
