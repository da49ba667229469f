/**
 * Property (P-091): a replica that was added to a group applies nothing, leads nothing and is no
 * voter before it has installed a snapshot: it does not know how its group began.
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

  /** "node/group/life": has installed a snapshot. */
  private readonly begun = new Set<string>();

  constructor(
    minimum: Readonly<Record<string, number>> = { "later lives that applied": 10, "that vote": 5 },
  ) {
    this.findings = new Findings("a snapshot comes first", minimum);
  }

  observe({ node, group, incarnation, applied, installed, leading }: Begun): void {
    if (installed > 0) this.begun.add(`${node}/${group}/${incarnation}`);
    if (incarnation === 0 || (applied === 0 && !leading)) return;
    this.findings.count("later lives that applied");
    if (installed > 0) return;
    const life = `node ${node}, partition ${group}, life ${incarnation}`;
    this.findings.violation(`${life}: applied ${applied} without any snapshot`);
  }

  /** `node` is a voter of `group` from now on. */
  votes(node: number, group: number, incarnation: number): void {
    if (incarnation === 0) return;
    this.findings.count("that vote");
    if (this.begun.has(`${node}/${group}/${incarnation}`)) return;
    const life = `node ${node}, partition ${group}, life ${incarnation}`;
    this.findings.violation(`${life}: is a voter without any snapshot`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
