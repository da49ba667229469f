/**
 * Property (Raft, Log Matching): entries with the same index and term are the same, and so is the entry before each.
 *
 * Invariant: judged within the newest indexes of each group.
 */
import { IndexWindow } from "./index-window.js";
import { Findings, type Verdict } from "../verdict.js";

interface Entry {
  readonly term: number;
  readonly previousTerm: number;
  readonly digest: string;
  readonly node: number;
}

export class LogMatching {
  private readonly findings: Findings;
  /** Entries at one index: one per term. */
  private readonly entries = new IndexWindow<Entry[]>();

  constructor(minimum = 100) {
    this.findings = new Findings("log matching", { compared: minimum });
  }

  /** `node` appended an entry; `previousTerm` is the term of the entry before it, `digest` says what it holds. */
  entry(
    node: number,
    group: number,
    index: number,
    term: number,
    previousTerm: number,
    digest: string,
  ): void {
    const list = this.entries.get(group, index) ?? [];
    const known = list.find((entry) => entry.term === term);
    if (known === undefined) {
      list.push({ term, previousTerm, digest, node });
      this.entries.set(group, index, list);
      return;
    }
    this.findings.count("compared");
    if (known.digest === digest && known.previousTerm === previousTerm) return;
    const what = known.digest === digest ? "follow different terms" : "differ";
    const where = `group ${group}, index ${index}, term ${term}`;
    this.findings.violation(`${where}: the entries of nodes ${known.node} and ${node} ${what}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
