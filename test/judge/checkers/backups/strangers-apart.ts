/**
 * Property: a node of a restored cluster and one of the old cluster never let each other in: no link
 * between them is ever up, and no message of the consensus core goes from one to the other (7.5,
 * P-138).
 */
import { Findings, type Verdict } from "../verdict.js";

export class StrangersApart {
  private readonly findings = new Findings("clusters of one catalogue never meet", {
    clusters: 1,
    meetings: 1,
  });

  /** Somebody at a node was asked for a link by somebody of another cluster. */
  met(from: string, to: string, isLetIn: boolean): void {
    this.findings.count("meetings");
    if (isLetIn) this.findings.violation(`a node of ${to} lets in one of ${from}`);
  }

  /** A restored cluster has begun, under an id. */
  began(id: string, others: readonly string[]): void {
    this.findings.count("clusters");
    if (others.includes(id))
      this.findings.violation(`a restored cluster has the id ${id} of another`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
