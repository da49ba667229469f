/**
 * Property (P-089): what a replica listens to was said by the life of the other replica that it
 * counts it for, and was said to the life that hears it.
 *
 * A request of a later life than is known is news: the map of the hearer may be old. An answer of
 * one is not: it was asked of somebody else. An answer of an earlier term counts for nothing
 * (P-002): it may be of a life that came and went before the process of the hearer began.
 */
import type { MessageKind } from "../../../../src/raft/state/types.js";
import { Findings, type Verdict } from "../verdict.js";

export interface Heard {
  readonly node: number;
  readonly from: number;
  readonly group: number;
  readonly kind: MessageKind;
  /** What the message names. */
  readonly fromLife: number;
  readonly toLife: number;
  /** The hearer's own life, and that of the sender as it knows it. */
  readonly ownLife: number;
  readonly knownLife: number;
  /** Of the message, and of the hearer. */
  readonly term: number;
  readonly ownTerm: number;
}

const ANSWERS: ReadonlySet<MessageKind> = new Set<MessageKind>([
  "appendAnswer",
  "voteAnswer",
  "preVoteAnswer",
  "heartbeatAnswer",
]);

function placeOf({ node, group, kind, from }: Heard): string {
  return `node ${node}, partition ${group}: ${kind} of node ${from}`;
}

export class AcksOfOneLife {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { answers: 50, "of later lives": 10 }) {
    this.findings = new Findings("answers count for one life", minimum);
  }

  heard(heard: Heard): void {
    const { kind, fromLife, toLife, ownLife, knownLife } = heard;
    const isAnswer = ANSWERS.has(kind);
    if (isAnswer) this.findings.count("answers");
    if (isAnswer && fromLife + toLife > 0) this.findings.count("of later lives");
    if (toLife !== ownLife) {
      this.findings.violation(`${placeOf(heard)} is for life ${toLife}, it is in life ${ownLife}`);
    }
    const isLate = isAnswer && heard.term < heard.ownTerm;
    if (fromLife < knownLife || (isAnswer && !isLate && fromLife !== knownLife)) {
      this.findings.violation(`${placeOf(heard)}, life ${fromLife}, counts for life ${knownLife}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
