/**
 * Property (house rule 2, P-003, P-022, P-111): what a node tells others is durable on it first, and
 * what was durable is there after a restart.
 *
 * A vote that left is the durable vote of its term; an acknowledgement that left covers durable
 * entries only. Invariant: answers of terms that the node has left behind are not judged.
 */
import type { Message } from "../../../src/raft/state/types.js";
import { Findings, type Verdict } from "./verdict.js";

/** What a log of a node says of one of its groups. */
export interface DurableState {
  readonly term: number;
  readonly vote: number;
  readonly lastIndex: number;
  readonly issuedTerm: number;
}

/** The log of one life of a node. */
export interface DurableLog {
  readonly durableGroups: Iterable<number>;
  durable(group: number): DurableState;
  /** null: below the floor. undefined: beyond the end. */
  termAt(group: number, index: number): number | null | undefined;
}

/** Entries that are compared after a restart; the newest ones. */
const COMPARED_MAX = 64;

export class Promises {
  /** A violation was found. */
  isBroken = false;
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { votes: 1, acknowledgements: 50 }) {
    this.findings = new Findings("what is promised is durable", minimum);
  }

  /** `node` sends `message` of `group`; `log` is its own. */
  sent(node: number, group: number, message: Message, log: DurableLog): void {
    const { kind, reject, term, to, index } = message;
    if (reject || (kind !== "voteAnswer" && kind !== "appendAnswer")) return;
    const state = log.durable(group);
    if (state.issuedTerm > term) return;
    const where = `node ${node}, group ${group}, term ${term}`;
    if (kind === "voteAnswer") {
      this.findings.count("votes");
      if (state.term === term && state.vote === to) return;
      const known = `term ${state.term} with a vote for ${state.vote}`;
      this.violation(`${where}: votes for node ${to}, its disk says ${known}`);
      return;
    }
    this.findings.count("acknowledgements");
    if (index <= state.lastIndex) return;
    const durable = `durable up to ${state.lastIndex}`;
    this.violation(`${where}: acknowledges index ${index}, its entries are ${durable}`);
  }

  /** `node` began another life: `before` is the log of the former one as it ended. */
  restarted(node: number, before: DurableLog, after: DurableLog): void {
    for (const group of before.durableGroups) {
      this.findings.count("restarts");
      const was = before.durable(group);
      const now = after.durable(group);
      const where = `node ${node}, group ${group}`;
      const kept = now.term > was.term || was.vote === 0 || now.vote === was.vote;
      if (now.term < was.term || !kept) {
        const former = `term ${was.term} with a vote for ${was.vote}`;
        const found = `term ${now.term} with a vote for ${now.vote}`;
        this.violation(`${where}: ${former} was durable, ${found} is found`);
      }
      const first = Math.max(1, was.lastIndex - COMPARED_MAX + 1);
      for (let index = first; index <= was.lastIndex; index++) {
        const former = before.termAt(group, index);
        const found = after.termAt(group, index);
        if (former === null || former === undefined || found === null || found === former) continue;
        const what = found === undefined ? "nothing" : `an entry of term ${found}`;
        const text = `index ${index} of term ${former} was durable, ${what} is found`;
        this.violation(`${where}: ${text}`);
        break;
      }
    }
  }

  private violation(text: string): void {
    this.isBroken = true;
    this.findings.violation(text);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
