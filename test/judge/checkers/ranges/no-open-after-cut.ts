/**
 * Property: an interval is opened again at the source only after the meta partition has ended the
 * attempt that froze it, by the next one or by giving the move up; so what was cut is never opened, in
 * whatever order nodes learn of it.
 */
import { Findings, type Verdict } from "../verdict.js";
import { attemptName } from "./seen-moves.js";

export class NoOpenAfterCut {
  private readonly findings: Findings;
  private readonly cuts = new Set<string>();
  private readonly opened = new Set<string>();
  /** By move: attempts up to this one are over. */
  private readonly ended = new Map<number, number>();

  constructor(minimum: Readonly<Record<string, number>> = { cuts: 10, unfrozen: 3 }) {
    this.findings = new Findings("what was cut is not opened again", minimum);
  }

  cut(moveId: number, attempt: number): void {
    this.findings.count("cuts");
    const name = attemptName({ moveId, attempt });
    this.cuts.add(name);
    if (this.opened.has(name)) this.tell(name);
  }

  /** Attempts up to `attempt` are over without a cut; Infinity: the move is. */
  over(moveId: number, attempt: number): void {
    this.ended.set(moveId, attempt);
  }

  /** The source owns again what it had frozen in this attempt. */
  unfrozen(moveId: number, attempt: number): void {
    this.findings.count("unfrozen");
    const name = attemptName({ moveId, attempt });
    this.opened.add(name);
    if (this.cuts.has(name)) this.tell(name);
    else if ((this.ended.get(moveId) ?? 0) < attempt) {
      this.findings.violation(`attempt ${name} counts, and its source has opened what it froze`);
    }
  }

  private tell(name: string): void {
    this.findings.violation(`attempt ${name} is cut, and its source has opened it again`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
