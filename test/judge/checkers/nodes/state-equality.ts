/**
 * Property (Raft, State Machine Safety): replicas that applied the same index have the same state, as a chain of digests
 * says; also after restart and snapshot.
 */
import { IndexWindow } from "./index-window.js";
import { Findings, type Verdict } from "../verdict.js";

export class StateEquality {
  private readonly findings: Findings;
  private readonly states = new IndexWindow<{ readonly digest: string; readonly node: number }>();

  constructor(minimum = 50) {
    this.findings = new Findings("equal state at equal index", { compared: minimum });
  }

  /** `node` has applied up to `index`, and its state has this digest. */
  applied(node: number, group: number, index: number, digest: string): void {
    const known = this.states.get(group, index);
    if (known === undefined) {
      this.states.set(group, index, { digest, node });
      return;
    }
    if (known.node === node) this.findings.count("same node again");
    this.findings.count("compared");
    if (known.digest !== digest) {
      const nodes = `node ${known.node} has ${known.digest}, node ${node} has ${digest}`;
      this.findings.violation(`group ${group}, index ${index}: ${nodes}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
