/**
 * Property U7: each two nodes speak the lower of their two highest protocols, and both know it.
 */
import { Findings, type Verdict } from "../verdict.js";

interface Range {
  readonly min: number;
  readonly max: number;
}

export class SpokenProtocols {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { "links of two programs": 5 }) {
    this.findings = new Findings("a link speaks what both know", minimum);
  }

  /** `node` is linked with `peer`, and speaks `protocol` with it. */
  linked(node: number, own: Range, peer: number, theirs: Range, protocol: number): void {
    this.findings.count("links");
    if (own.max !== theirs.max) this.findings.count("links of two programs");
    if (protocol === Math.min(own.max, theirs.max)) return;
    const ranges = `${own.min} to ${own.max} and ${theirs.min} to ${theirs.max}`;
    this.findings.violation(`node ${node} speaks ${protocol} with node ${peer}: ${ranges}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
