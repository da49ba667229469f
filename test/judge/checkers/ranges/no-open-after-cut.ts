/**
 * Property: an interval that was cut is never opened again at the source: no unfreeze of an attempt
 * whose cut is in the log of meta, in whatever order nodes learn of them.
 */
import { Findings, type Verdict } from "../verdict.js";
import { attemptName } from "./seen-moves.js";

export class NoOpenAfterCut {
  private readonly findings: Findings;
  private readonly cuts = new Set<string>();
  private readonly opened = new Set<string>();

  constructor(minimum: Readonly<Record<string, number>> = { cuts: 10, unfrozen: 3 }) {
    this.findings = new Findings("what was cut is not opened again", minimum);
  }

  cut(moveId: number, attempt: number): void {
    this.findings.count("cuts");
    const name = attemptName({ moveId, attempt });
    this.cuts.add(name);
    if (this.opened.has(name)) this.tell(name);
  }

  /** The source owns again what it had frozen in this attempt. */
  unfrozen(moveId: number, attempt: number): void {
    this.findings.count("unfrozen");
    const name = attemptName({ moveId, attempt });
    this.opened.add(name);
    if (this.cuts.has(name)) this.tell(name);
  }

  private tell(name: string): void {
    this.findings.violation(`attempt ${name} is cut, and its source has opened it again`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
