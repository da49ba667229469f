/**
 * Property: commit, applied and term never go back within one life of a process; the term not even across lives; applied
 * is never beyond commit, nor beyond what is durable where that is known.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface Progress {
  readonly node: number;
  /** Counts the process's starts. */
  readonly life: number;
  readonly group: number;
  /** Counts the lives of the node's replica of the group; absent: there is only one. */
  readonly incarnation?: number;
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  /** Highest index whose entry is known to be on this node's disk (or in its snapshot); null = not observed. */
  readonly durable: number | null;
}

export class NeverBack {
  private readonly findings: Findings;
  private readonly last = new Map<string, Progress>();

  constructor(minimum = 100) {
    this.findings = new Findings("commit and applied never back", { samples: minimum });
  }

  observe(now: Progress): void {
    this.findings.count("samples");
    const place = `${now.node}/${now.group}`;
    const { applied, commit, durable } = now;
    if (applied > commit) this.report(now, `applied ${applied} beyond commit ${commit}`);
    if (durable !== null && applied > durable) {
      this.report(now, `applied ${applied} beyond durable ${durable}`);
    }
    const before = this.last.get(place);
    this.last.set(place, now);
    if (before === undefined) return;
    if (now.term < before.term) this.report(now, `term ${now.term} after ${before.term}`);
    const isAnother = now.life !== before.life || now.incarnation !== before.incarnation;
    if (isAnother) return this.findings.count("restarts");
    if (commit < before.commit) this.report(now, `commit ${commit} after ${before.commit}`);
    if (applied < before.applied) this.report(now, `applied ${applied} after ${before.applied}`);
  }

  /** The disk of `node` was wiped: it is a new node in all but name. */
  wiped(node: number): void {
    for (const place of this.last.keys()) {
      if (place.startsWith(`${node}/`)) this.last.delete(place);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }

  private report(now: Progress, what: string): void {
    this.findings.violation(`node ${now.node} life ${now.life} group ${now.group}: ${what}`);
  }
}
