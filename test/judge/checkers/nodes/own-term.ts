/**
 * Property (Raft 5.4.2, P-018): a leader commits by an entry of its own term; what is older is
 * committed with it, never by counting.
 *
 * Invariant: judged when the commit index of a leader is seen to have moved within its term.
 */
import { Findings, type Verdict } from "../verdict.js";

interface Seen {
  readonly life: number;
  readonly term: number;
  readonly commitIndex: number;
}

export class OwnTerm {
  private readonly findings: Findings;
  private readonly last = new Map<string, Seen>();

  constructor(minimum = 50) {
    this.findings = new Findings("a leader commits in its term", { commits: minimum });
  }

  /** `node` leads `group`; the entry at its commit index is of `entryTerm`, null where unknown. */
  leads(node: number, group: number, now: Seen, entryTerm: number | null): void {
    const place = `${node}/${group}`;
    const { life, term, commitIndex } = now;
    const before = this.last.get(place);
    this.last.set(place, now);
    if (before?.life !== life || before.term !== term) return;
    if (commitIndex <= before.commitIndex || entryTerm === null) return;
    this.findings.count("commits");
    if (entryTerm === term) return;
    const where = `group ${group}, leader ${node} of term ${term}`;
    this.findings.violation(`${where}: commits index ${commitIndex}, of term ${entryTerm}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
