/**
 * Property (Raft, Election Safety; C7): at most one leader per group and term.
 *
 * Invariant: the last `TERMS_KEPT` terms of each group are remembered.
 */
import { Findings, type Verdict } from "../verdict.js";

const TERMS_KEPT = 4096;

export class ElectionSafety {
  private readonly findings: Findings;
  private readonly leaders = new Map<number, Map<number, number>>();

  constructor(minimum = 1) {
    this.findings = new Findings("one leader per term", { elections: minimum });
  }

  /** `node` became leader of `group` in `term`. */
  leader(group: number, term: number, node: number): void {
    let terms = this.leaders.get(group);
    if (terms === undefined) this.leaders.set(group, (terms = new Map()));
    const known = terms.get(term);
    this.findings.count("elections");
    if (known !== undefined && known !== node) {
      const text = `group ${group}, term ${term}: nodes ${known} and ${node} both led`;
      this.findings.violation(text);
      return;
    }
    terms.set(term, node);
    for (const old of terms.keys()) {
      if (terms.size <= TERMS_KEPT) break;
      terms.delete(old);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
