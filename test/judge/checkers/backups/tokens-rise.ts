/**
 * Property: every token that a restored cluster grants is above every token of the clusters that were
 * there before it in the catalogue, whenever these granted it: of the same lock, of both durabilities
 * (L12, L14, L15, P-137).
 */
import { Findings, type Verdict } from "../verdict.js";

export interface GrantSeen {
  readonly lock: string;
  readonly ephemeral: boolean;
  readonly token: bigint;
}

interface Cluster {
  readonly name: string;
  readonly highest: Map<string, bigint>;
}

export class TokensRise {
  private readonly findings = new Findings("tokens rise over restores", { clusters: 1, grants: 5 });
  private readonly before: Cluster[] = [];

  /**
   * The next cluster, in the order in which they were restored. `kept`: a held lock whose token a
   * restore brought over, which is no new grant. `isBefore`: whether it must be above that cluster.
   */
  cluster(
    name: string,
    grants: readonly GrantSeen[],
    kept: (grant: GrantSeen) => boolean = () => false,
    isBefore: (name: string) => boolean = () => true,
  ): void {
    const { findings, before } = this;
    const own: Cluster = { name, highest: new Map() };
    for (const grant of grants) {
      const key = `${grant.ephemeral ? "ephemeral " : ""}${grant.lock}`;
      if (before.length > 0 && kept(grant)) {
        findings.count("kept");
        continue;
      }
      if (before.length > 0) findings.count("grants");
      for (const { name: other, highest } of before) {
        if (!isBefore(other)) continue;
        const most = highest.get(key);
        if (most === undefined) continue;
        findings.count("compared");
        if (grant.token > most) continue;
        const what = `granted token ${grant.token} of ${key}, ${other} had granted ${most}`;
        findings.violation(`${name} ${what}`);
      }
      const most = own.highest.get(key);
      if (most === undefined || grant.token > most) own.highest.set(key, grant.token);
    }
    if (before.length > 0) findings.count("clusters");
    if (before.length > 1) findings.count("later restores");
    before.push(own);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
