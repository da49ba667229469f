/**
 * Property: memory, queues and logs stay within their bounds.
 */
import { Findings, type Verdict } from "./verdict.js";

export class BoundedSize {
  private readonly findings: Findings;
  private readonly largest = new Map<string, number>();

  constructor(minimum = 10) {
    this.findings = new Findings("memory and log size bounded", { samples: minimum });
  }

  /** `what` of `node` measures `size` and may measure `bound` at most. */
  sample(node: number, what: string, size: number, bound: number): void {
    this.findings.count("samples");
    const largest = this.largest.get(what) ?? 0;
    if (size > largest) {
      this.largest.set(what, size);
      this.findings.count(`largest ${what}`, size - largest);
    }
    if (size > bound) this.findings.violation(`node ${node}: ${what} ${size}, bound ${bound}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
