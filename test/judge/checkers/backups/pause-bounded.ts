/**
 * Property: no group stands still for a coordinated cut for longer than its bound, by the clock of its
 * leader (P-134).
 */
import { Findings, type Verdict } from "../verdict.js";

export class PauseBounded {
  private readonly findings = new Findings("pauses of cuts are bounded", { pauses: 1 });

  /** `mostMs`: the bound in true time, with what looking adds. */
  constructor(private readonly mostMs: number) {}

  paused(node: number, partition: number, tookMs: number): void {
    const { findings } = this;
    findings.count("pauses");
    findings.count("milliseconds", Math.round(tookMs));
    if (tookMs <= this.mostMs) return;
    const what = `node ${node} paused partition ${partition} for ${Math.round(tookMs)} ms`;
    findings.violation(`${what}, at most ${this.mostMs} ms are allowed`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
