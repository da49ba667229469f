/**
 * Property (P-084, P-097): whoever leads a group votes in it, by the configuration that it has
 * applied itself: a node that knows of its removal never leads.
 *
 * More would be too much: a removed voter whose log holds its own removal may win one more
 * election before it applies it, and gives up right then.
 */
import type { Membership } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

export class LeadersVote {
  private readonly findings: Findings;
  private readonly own = new Map<string, { readonly index: number; readonly config: Membership }>();

  constructor(minimum: Readonly<Record<string, number>> = { leaders: 1, "after a change": 5 }) {
    this.findings = new Findings("leaders vote", minimum);
  }

  membership(node: number, life: number, group: number, index: number, config: Membership): void {
    this.own.set(`${node}/${life}/${group}`, { index, config });
  }

  /** A life of `node` leads, or leads still. */
  leads(node: number, life: number, group: number, term: number): void {
    const own = this.own.get(`${node}/${life}/${group}`);
    if (own === undefined) return;
    this.findings.count("leaders");
    if (own.index > 0) this.findings.count("after a change");
    const { voters, votersOutgoing } = own.config;
    if (voters.includes(node) || votersOutgoing.includes(node)) return;
    const known = `the voters are ${voters.join()} since entry ${own.index}`;
    this.findings.violation(`node ${node} leads group ${group} in term ${term}, but ${known}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
