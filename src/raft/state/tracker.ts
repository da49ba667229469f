/**
 * The members of the group as this node has applied them, with what is known about each, and the
 * votes of an election.
 *
 * Invariants:
 * 1. There is one Progress for every member and for nobody else, ascending by id.
 * 2. Decisions go through quorum.ts, which sees voters only.
 * 3. Only the first vote of a node in an election counts.
 */
import { assert } from "../../base/assert.js";
import type { CoreConfig } from "./config.js";
import { Inflight } from "./inflight.js";
import { allMembers, emptyMembership, isLearner, membershipFault } from "./membership.js";
import { Progress } from "./progress.js";
import { jointIndex, jointVote, type VoteResult } from "./quorum.js";
import type { LogIndex, Membership, NodeId } from "./types.js";

const nobody: ReadonlySet<NodeId> = new Set();

export class Tracker {
  membership: Membership = emptyMembership;
  /** Ascending by id. */
  peers: Progress[] = [];
  private readonly config: CoreConfig;
  private readonly votes = new Map<NodeId, boolean>();
  private readonly matchOf = (id: NodeId): LogIndex => this.find(id)?.match ?? 0;
  private readonly roundOf = (id: NodeId): number => this.find(id)?.readRound ?? 0;
  private readonly voteOf = (id: NodeId): boolean | undefined => this.votes.get(id);
  private readonly activeOf = (id: NodeId): boolean => this.find(id)?.active ?? false;

  constructor(config: CoreConfig) {
    this.config = config;
  }

  find(id: NodeId): Progress | undefined {
    for (const peer of this.peers) {
      if (peer.id === id) return peer;
    }
    return undefined;
  }

  /** Whether `id` is the only voter, and nobody else has a say. */
  isOnlyVoter(id: NodeId): boolean {
    const { voters, votersOutgoing } = this.membership;
    return voters.length === 1 && voters[0] === id && votersOutgoing.length === 0;
  }

  /**
   * Takes over a membership. Members that stay keep what is known about them; `removed` ones start
   * anew.
   */
  change(membership: Membership, last: LogIndex, removed: ReadonlySet<NodeId> = nobody): void {
    assert(membershipFault(membership) === null, "a membership is well-formed");
    const before = this.peers;
    this.membership = membership;
    this.peers = allMembers(membership).map((id) => {
      const learner = isLearner(membership, id);
      const known = removed.has(id) ? undefined : before.find((peer) => peer.id === id);
      if (known === undefined) {
        const { maxInflightMessages, maxInflightBytes } = this.config;
        const inflight = new Inflight(maxInflightMessages, maxInflightBytes);
        return new Progress(id, learner, Math.max(last, 1), true, inflight);
      }
      known.learner = learner;
      return known;
    });
  }

  /** The largest index that enough voters have written. */
  committedIndex(): LogIndex {
    return jointIndex(this.membership, this.matchOf);
  }

  /** The latest read round that enough voters confirmed. */
  confirmedRound(): number {
    return jointIndex(this.membership, this.roundOf);
  }

  /** Whether enough voters answered since the last check. */
  quorumActive(): boolean {
    return jointVote(this.membership, this.activeOf) === "won";
  }

  clearVotes(): void {
    this.votes.clear();
  }

  recordVote(id: NodeId, granted: boolean): void {
    if (!this.votes.has(id)) this.votes.set(id, granted);
  }

  voteResult(): VoteResult {
    return jointVote(this.membership, this.voteOf);
  }
}
