/**
 * Property (P-003): a node votes for one candidate in a term of a group, in all lives of its process
 * and of its replica.
 *
 * Invariant: a leader has voted for itself. A candidate asks for votes while its own is on its way to
 * the disk: one that dies then has voted for nobody.
 */
import type { Message } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

export class OneVotePerTerm {
  private readonly findings: Findings;
  private readonly votes = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = { votes: 3 }) {
    this.findings = new Findings("one vote per term", minimum);
  }

  /** `node` sends `message` of `group`. */
  sent(node: number, group: number, { kind, term, to, reject }: Message): void {
    if (kind === "append" || kind === "heartbeat") this.vote(node, group, term, node);
    if (kind === "voteAnswer" && !reject) this.vote(node, group, term, to);
  }

  private vote(node: number, group: number, term: number, candidate: number): void {
    const place = `${node}/${group}/${term}`;
    const known = this.votes.get(place);
    if (known === candidate) return;
    this.findings.count("votes");
    this.votes.set(place, candidate);
    if (known === undefined) return;
    const both = `nodes ${known} and ${candidate}`;
    this.findings.violation(`node ${node} votes for ${both} in term ${term} of group ${group}`);
  }

  /** The disk of `node` was emptied or put back: what it voted is not known there any more. */
  forgot(node: number): void {
    for (const place of this.votes.keys()) {
      if (place.startsWith(`${node}/`)) this.votes.delete(place);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
