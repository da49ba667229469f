/**
 * Property (P-094, P-098): one member list per version. No two nodes ever know different member
 * lists of one version, and the version that a life of a node knows never goes back.
 */
import { Findings, type Verdict } from "../verdict.js";

export class MemberLists {
  private readonly findings: Findings;
  private readonly known = new Map<number, { readonly text: string; readonly node: number }>();
  private readonly last = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = { versions: 3, compared: 10 }) {
    this.findings = new Findings("one roster per version", minimum);
  }

  /** A life of `node` has applied the member list of `version`; 0 = none. `text` says all of it. */
  members(node: number, life: number, version: number, text: string): void {
    const place = `${node}/${life}`;
    const before = this.last.get(place) ?? 0;
    this.last.set(place, version);
    if (version < before) {
      this.findings.violation(`node ${node} life ${life}: version ${version} after ${before}`);
    }
    if (version === 0) return;
    const other = this.known.get(version);
    if (other === undefined) {
      this.findings.count("versions");
      this.known.set(version, { text, node });
      return;
    }
    this.findings.count("compared");
    if (other.text === text) return;
    const both = `node ${other.node} knows ${other.text}, node ${node} knows ${text}`;
    this.findings.violation(`version ${version}: ${both}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
