/**
 * What a leader knows about one peer, and how fast it may send to it.
 *
 * Algorithm: the probe, replicate and snapshot states
 * of etcd's raft.
 * Invariants:
 * 1. match < next, and match rises only on an accepted append of the leader's own term.
 * 2. probe: at most one append with entries is on its way; replicate: next runs ahead up to the
 *    window; snapshot: nothing.
 * 3. sentCommit never exceeds next - 1 after a step backwards, so that commit news lost on the way
 *    is sent again.
 * 4. A refusal lowers next only, never below match + 1, and is ignored when it does not answer the
 *    probe in flight.
 */
import { Inflight } from "./inflight.js";
import type { LogIndex, NodeId, PeerProgress, ProgressState } from "./types.js";

export class Progress {
  readonly id: NodeId;
  readonly inflight: Inflight;
  learner: boolean;
  state: ProgressState = "probe";
  match: LogIndex = 0;
  next: LogIndex;
  /** The commit index that the peer was last told. */
  sentCommit: LogIndex = 0;
  pendingSnapshot: LogIndex = 0;
  /** Whether the peer answered since the last check-quorum round. */
  active: boolean;
  /** Whether appends wait for an answer. */
  flowPaused = false;
  /** The latest read round that the peer confirmed. */
  readRound = 0;

  constructor(id: NodeId, learner: boolean, next: LogIndex, active: boolean, inflight: Inflight) {
    this.id = id;
    this.learner = learner;
    this.next = next;
    this.active = active;
    this.inflight = inflight;
  }

  /** Back to knowing nothing, at the beginning of a term. */
  restart(next: LogIndex, match: LogIndex): void {
    this.enter("probe");
    this.match = match;
    this.next = next;
    this.sentCommit = 0;
    this.active = false;
    this.readRound = 0;
  }

  get paused(): boolean {
    return this.state === "snapshot" || this.flowPaused;
  }

  becomeProbe(): void {
    const after = this.state === "snapshot" ? this.pendingSnapshot : 0;
    this.enter("probe");
    this.next = Math.max(this.match, after) + 1;
    this.limitSentCommit();
  }

  becomeReplicate(): void {
    this.enter("replicate");
    this.next = this.match + 1;
  }

  becomeSnapshot(index: LogIndex): void {
    this.enter("snapshot");
    this.pendingSnapshot = index;
    this.next = index + 1;
    this.sentCommit = index;
  }

  /** An append with `count` entries, or without any, was sent. */
  sent(count: number, sizeBytes: number): void {
    if (this.state === "probe") {
      if (count > 0) this.flowPaused = true;
      return;
    }
    if (count > 0) {
      this.next += count;
      this.inflight.add(this.next - 1, sizeBytes);
    }
    this.flowPaused = this.inflight.full;
  }

  /** Everything up to `index` is known to match. Returns whether that is news. */
  acknowledge(index: LogIndex): boolean {
    if (index <= this.match) return false;
    this.match = index;
    this.next = Math.max(this.next, index + 1);
    this.flowPaused = false;
    return true;
  }

  /**
   * The append anchored at `refused` was refused; `hint` is the best guess where to try. False if
   * that is stale.
   */
  refuse(refused: LogIndex, hint: LogIndex): boolean {
    if (this.state === "replicate") {
      if (refused <= this.match) return false;
      this.next = this.match + 1;
      this.limitSentCommit();
      return true;
    }
    if (this.next - 1 !== refused) return false;
    this.next = Math.max(Math.min(refused, hint + 1), this.match + 1);
    this.limitSentCommit();
    this.flowPaused = false;
    return true;
  }

  /** Whether an append just for the sake of `commit` could move the peer's commit index. */
  canUseCommit(commit: LogIndex): boolean {
    return commit > this.sentCommit && this.sentCommit < this.next - 1;
  }

  describe(): PeerProgress {
    return {
      id: this.id,
      state: this.state,
      match: this.match,
      next: this.next,
      learner: this.learner,
      paused: this.paused,
      pendingSnapshot: this.pendingSnapshot,
      active: this.active,
      inflightCount: this.inflight.count,
      inflightFull: this.inflight.full,
    };
  }

  private enter(state: ProgressState): void {
    this.flowPaused = false;
    this.pendingSnapshot = 0;
    this.state = state;
    this.inflight.clear();
  }

  private limitSentCommit(): void {
    this.sentCommit = Math.min(this.sentCommit, this.next - 1);
  }
}
