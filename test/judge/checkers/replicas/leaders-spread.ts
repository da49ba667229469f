/**
 * Property (P-106): in peace no node leads two partitions more than another one that could lead one
 * of them.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface Led {
  readonly partition: number;
  readonly leader: number;
  /** Voters of the group that are up, the leader among them. */
  readonly voters: readonly number[];
}

/** Why leaders are not spread; null = they are. */
export function unspread(groups: readonly Led[]): string | null {
  const leads = new Map<number, number>();
  for (const { leader } of groups) leads.set(leader, (leads.get(leader) ?? 0) + 1);
  for (const { partition, leader, voters } of groups) {
    const own = leads.get(leader) ?? 0;
    const other = voters.find((node) => own - (leads.get(node) ?? 0) >= 2);
    if (other === undefined) continue;
    const counts = `node ${leader} leads ${own} and node ${other} ${leads.get(other) ?? 0}`;
    return `${counts}: it could lead partition ${partition}`;
  }
  return null;
}

export class LeadersSpread {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { "led partitions": 20 }) {
    this.findings = new Findings("leaders are spread", minimum);
  }

  /** The end of peace; meta is one of the groups. */
  settled(groups: readonly Led[]): void {
    this.findings.count("led partitions", groups.length);
    const reason = unspread(groups);
    if (reason !== null) this.findings.violation(reason);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
