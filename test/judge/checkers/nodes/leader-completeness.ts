/**
 * Property (Raft, Leader Completeness; C3): what was committed in a term is in the log of every later leader, and two
 * nodes never commit different entries at one index.
 *
 * Invariant: judged within the newest indexes of each group; an index that a leader has compacted counts as had.
 */
import { IndexWindow } from "./index-window.js";
import { Findings, type Verdict } from "../verdict.js";

/** Committed entries that are compared at an election; log matching covers those before. */
const COMPARED_AT_ELECTION = 64;

export class LeaderCompleteness {
  private readonly findings: Findings;
  private readonly committed = new IndexWindow<{ readonly term: number; readonly node: number }>();
  private readonly highest = new Map<number, number>();

  constructor(minimum: Readonly<Record<string, number>> = { elections: 1, commits: 50 }) {
    this.findings = new Findings("leader completeness", minimum);
  }

  /** `node` learned that the entry of `term` at `index` is committed. */
  commit(node: number, group: number, index: number, term: number): void {
    const known = this.committed.get(group, index);
    if (known === undefined) {
      this.findings.count("commits");
      this.committed.set(group, index, { term, node });
    } else if (known.term !== term) {
      const nodes = `node ${known.node} committed term ${known.term}, node ${node} term ${term}`;
      this.findings.violation(`group ${group}, index ${index}: ${nodes}`);
    }
    this.highest.set(group, Math.max(index, this.highest.get(group) ?? 0));
  }

  /**
   * `node` became leader of `term`. `termAt` gives the term at an index of its log, null when compacted into a snapshot,
   * undefined when it lies beyond the log.
   */
  leader(
    node: number,
    group: number,
    term: number,
    termAt: (index: number) => number | null | undefined,
  ): void {
    this.findings.count("elections");
    const last = this.highest.get(group) ?? 0;
    for (let index = last; index > last - COMPARED_AT_ELECTION && index > 0; index--) {
      const committed = this.committed.get(group, index);
      if (committed === undefined || committed.term >= term) continue;
      this.findings.count("compared");
      const own = termAt(index);
      if (own === null || own === committed.term) continue;
      const has = own === undefined ? "nothing" : `an entry of term ${own}`;
      const text = `group ${group}, leader ${node} of term ${term} has ${has} at index ${index}`;
      this.findings.violation(`${text}, where term ${committed.term} was committed`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
