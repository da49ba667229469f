/**
 * What has ever happened in a model world, and the judge of it: each check compares something that
 * a node just did with what any node did before.
 *
 * Checked properties:
 * 1. Election safety: at most one leader per term, elected by a majority of durable votes.
 * 2. Leader completeness: a new leader holds every entry that was committed in an earlier term.
 * 3. State machine safety: a committed position holds the same entry on every node, for ever.
 * 4. A leader commits only entries of its own term that a majority has on its disks.
 * 5. Terms, votes and acknowledged entries do not regress across a crash.
 * 6. A read is not older than anything that was known as committed when it was asked.
 * 7. Log matching: equal (index, term) means equal logs up to there.
 * 8. A leader has one membership change on its way, and belongs to the membership that is applied.
 * 9. What a core believes to be written is on the disk.
 */
import { naiveQuorum } from "../naive/quorum.js";
import type { Message } from "../../../../src/raft/state/types.js";
import type { Counts } from "./counts.js";
import { foundingIndex, foundingTerm, type ModelNode } from "./node.js";

/** A broken property. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function must(condition: boolean, message: () => string): asserts condition {
  if (!condition) throw new Violation(message());
}

export class History {
  /** By term: who led it. */
  leaders: number[] = [];
  /** By index - 1: the term of the committed entry. */
  truth: number[] = [foundingTerm];
  /** By index - 1: the term in which it was committed. */
  committedIn: number[] = [0];
  /** By node, then term: whom it voted for, as far as anybody was told. */
  votes: number[][] = [];
  /** By node: the highest term that an answer of it vouched for. */
  vouched: number[] = [];
  /** By context: what was committed anywhere when the read was asked. */
  reads = new Map<number, number>();
  lastLeader = 0;

  copy(): History {
    const to = new History();
    to.leaders = this.leaders.slice();
    to.truth = this.truth.slice();
    to.committedIn = this.committedIn.slice();
    to.votes = this.votes.map((votes) => votes.slice());
    to.vouched = this.vouched.slice();
    to.reads = new Map(this.reads);
    to.lastLeader = this.lastLeader;
    return to;
  }

  /** A message that vouches for a write leaves the node. */
  vouch(node: ModelNode, message: Message): void {
    const { kind, term, reject, index } = message;
    const { disk, hardState } = node;
    if (kind !== "appendAnswer" && kind !== "voteAnswer") return;
    must(
      hardState.term >= term,
      () => `${node.id} answers in term ${term} that its disk (${hardState.term}) does not know`,
    );
    this.vouched[node.id] = Math.max(this.vouched[node.id] ?? 0, term);
    if (reject) return;
    if (kind === "appendAnswer") {
      must(
        disk.last >= index || hardState.term > term,
        () => `${node.id} acknowledges ${index}, its disk ends at ${disk.last}`,
      );
      return;
    }
    must(
      hardState.term > term || hardState.vote === message.to,
      () => `${node.id} grants ${message.to} a vote that is not on its disk`,
    );
    this.vote(node.id, term, message.to);
  }

  vote(voter: number, term: number, candidate: number): void {
    const votes = (this.votes[voter] ??= []);
    const before = votes[term] ?? candidate;
    must(
      before === candidate,
      () => `${voter} votes in term ${term} for ${before} and ${candidate}`,
    );
    votes[term] = candidate;
  }

  restarted(node: ModelNode): void {
    const vouched = this.vouched[node.id] ?? 0;
    must(
      node.core.term >= vouched,
      () => `${node.id} comes back in term ${node.core.term} after answering in ${vouched}`,
    );
  }

  /** A node leads; at the first sight of it in a term it is examined. */
  leads(node: ModelNode, counts: Counts): void {
    const { term } = node.core;
    const known = this.leaders[term];
    must(
      known === undefined || known === node.id,
      () => `${known} and ${node.id} both lead term ${term}`,
    );
    if (known !== undefined) return;
    this.leaders[term] = node.id;
    counts.elections++;
    if (this.lastLeader !== node.id) counts.leaderChanges++;
    this.lastLeader = node.id;
    must(
      naiveQuorum(node.core.membership, (id) => this.votes[id]?.[term] === node.id),
      () => `${node.id} leads term ${term} without a majority of votes`,
    );
    const { log } = node;
    for (let index = Math.max(log.floor, 1); index <= this.truth.length; index++) {
      if ((this.committedIn[index - 1] ?? 0) >= term) break;
      must(log.termOf(index) === this.truth[index - 1], () => this.lacks(node, index));
    }
  }

  private lacks(node: ModelNode, index: number): string {
    const known = this.truth[index - 1];
    return `leader ${node.id} of term ${node.core.term} lacks committed ${known}/${index}`;
  }

  /** A node's commit index rose from `before`. */
  commits(node: ModelNode, before: number, counts: Counts): void {
    const { log, commit } = node;
    must(commit <= log.last, () => `${node.id} commits ${commit}, its log ends at ${log.last}`);
    for (let index = Math.max(before + 1, log.floor, foundingIndex); index <= commit; index++) {
      const term = log.termOf(index) ?? 0;
      const known = this.truth[index - 1];
      if (known === undefined) {
        must(index === this.truth.length + 1, () => `${node.id} commits ${index} out of order`);
        this.truth.push(term);
        this.committedIn.push(node.core.term);
        counts.committed++;
        if (term < node.core.term) counts.priorTermCommits++;
      }
      must(
        known === undefined || known === term,
        () => `${node.id} commits ${term}/${index}, elsewhere it was ${known}/${index}`,
      );
    }
  }

  /** A leader moved its commit index by counting. */
  counted(leader: ModelNode, nodes: readonly ModelNode[]): void {
    const { commit, core } = leader;
    const term = leader.log.termOf(commit);
    must(
      term === core.term,
      () => `leader ${leader.id} of term ${core.term} commits ${term}/${commit} by counting`,
    );
    const holds = (id: number): boolean => {
      const disk = nodes[id - 1]?.disk;
      return disk !== undefined && (disk.floor > commit || disk.termOf(commit) === term);
    };
    must(
      naiveQuorum(core.membership, holds),
      () => `leader ${leader.id} commits ${term}/${commit}, which no majority has on its disks`,
    );
  }

  answered(context: number, index: number): void {
    const needed = this.reads.get(context);
    this.reads.delete(context);
    must(
      needed === undefined || index >= needed,
      () => `read ${context} is answered with ${index}, ${needed} was committed when it was asked`,
    );
  }

  /** A leader has appended a membership change. */
  proposed(leader: ModelNode): void {
    const open = leader.log.changes.filter((index) => index > leader.core.appliedIndex);
    must(
      open.length <= 1,
      () => `leader ${leader.id} has membership changes at ${open.join(" and ")} on their way`,
    );
  }

  /** Committed changes, or a snapshot, have been applied: the core must have the same membership. */
  belongs(node: ModelNode): void {
    if (node.writes.some(({ snapshot }) => snapshot !== null)) return;
    const own = node.core.membership;
    const { membership } = node.applied;
    must(
      own === membership || JSON.stringify(own) === JSON.stringify(membership),
      () => `${node.id} goes by ${JSON.stringify(own)}, applied is ${JSON.stringify(membership)}`,
    );
  }

  /** A write has been confirmed: all that the core takes for written must be on the disk. */
  believes(node: ModelNode): void {
    const { disk, log, writes } = node;
    if (writes.some(({ snapshot }) => snapshot !== null)) return;
    const { writtenIndex } = node.core.status();
    must(
      writtenIndex <= disk.floor || disk.termOf(writtenIndex) === log.termOf(writtenIndex),
      () => `${node.id} believes that ${writtenIndex} is written, its disk has something else`,
    );
  }

  /** Log matching between a node whose log changed and all others. */
  matches(changed: ModelNode, nodes: readonly ModelNode[]): void {
    const { log } = changed;
    for (const other of nodes) {
      if (other === changed) continue;
      const theirs = other.log;
      const low = Math.max(log.floor, theirs.floor);
      let index = Math.min(log.last, theirs.last);
      while (index >= low && log.termOf(index) !== theirs.termOf(index)) index--;
      for (; index >= low; index--) {
        must(
          log.termOf(index) === theirs.termOf(index),
          () => `logs of ${changed.id} and ${other.id} agree above ${index} and differ there`,
        );
      }
    }
  }
}
