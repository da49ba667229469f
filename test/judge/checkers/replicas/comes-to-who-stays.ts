/**
 * Property (P-096): no pass of the allocator orders a replica to come to a node that leaves, or is no member, by the very
 * lists that it looked at. Apply refuses such an order; so the partition would wait for as long as the node leaves.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface SeenTargets {
  readonly node: number;
  readonly members: readonly { readonly nodeId: number; readonly role: string }[];
  /** Replicas that the pass ordered to come. */
  readonly adds: readonly { readonly partitionId: number; readonly nodeId: number }[];
}

export class ComesToWhoStays {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { passes: 20 }) {
    this.findings = new Findings("replicas come to who stays", minimum);
  }

  pass({ node, members, adds }: SeenTargets): void {
    this.findings.count("passes");
    for (const { partitionId, nodeId } of adds) {
      this.findings.count("orders");
      const role = members.find((line) => line.nodeId === nodeId)?.role ?? "no member";
      if (role === "voter" || role === "learner") continue;
      const what = `a replica of partition ${partitionId} is to come to node ${nodeId}, ${role}`;
      this.findings.violation(`node ${node} orders: ${what}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
