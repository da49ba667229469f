/**
 * How a leader gets its log to the others: appending, sending, counting, committing.
 *
 * Algorithm: Raft, section 5.3 and 5.4; pipelining, probing and
 * snapshots as in etcd's raft.
 * Invariants:
 * 1. One function decides between append, snapshot and silence; every path uses it.
 * 2. Only an entry of the leader's own term is committed by counting; older ones commit underneath
 *    it.
 * 3. Peers are served in ascending order of id.
 * 4. The leader counts its own copy by a deferred message to itself, hence only once it is written.
 * 5. The uncommitted limit never stops an entry without payload: the first one of a term, and
 *    leaving a joint configuration.
 */
import type { Progress } from "../state/progress.js";
import type { RaftState } from "../state/state.js";
import type { ConfigEntryKind, NodeId, SnapshotMeta } from "../state/types.js";

const emptySizes: readonly number[] = [0];

/**
 * Appends to the leader's log. False if the unapplied tail is as large as it may be: the tail is
 * measured, inherited entries included, and not counted along, so that no change of leader can make
 * the sum wrong.
 */
export function appendEntries(
  raft: RaftState,
  sizesBytes: readonly number[],
  kind: ConfigEntryKind | null,
): boolean {
  let bytes = 0;
  for (const size of sizesBytes) bytes += size;
  const tail = raft.log.unappliedBytes;
  if (tail > 0 && bytes > 0 && tail + bytes > raft.config.maxUncommittedBytes) return false;
  raft.log.appendOwn(raft.term, sizesBytes, kind);
  raft.post("appendAnswer", raft.id).index = raft.log.lastIndex;
  return true;
}

/** Appends one empty normal entry. */
export function appendEmpty(raft: RaftState): void {
  appendEntries(raft, emptySizes, null);
}

/** The snapshot that a follower below the floor is to get. */
function sendableSnapshot(raft: RaftState): SnapshotMeta | null {
  const { log, tracker, offeredSnapshot } = raft;
  if (log.pendingSnapshot !== null) return log.pendingSnapshot;
  if (offeredSnapshot !== null && offeredSnapshot.index >= log.floorIndex) return offeredSnapshot;
  const index = Math.max(log.applied, raft.membershipIndex);
  const term = log.terms.termOf(index);
  return term === undefined ? null : { index, term, membership: tracker.membership };
}

/**
 * Sends a snapshot, unless the peer is silent: it would be lost, and nothing else would go until it
 * is given up.
 */
export function sendSnapshot(raft: RaftState, peer: Progress): boolean {
  if (!peer.active) return false;
  const snapshot = sendableSnapshot(raft);
  if (snapshot === null || snapshot.index === 0) return false;
  peer.becomeSnapshot(snapshot.index);
  raft.post("snapshot", peer.id).snapshot = snapshot;
  return true;
}

/**
 * Sends what the peer needs next, if its flow allows. Without entries to send it sends an empty
 * append only if `evenEmpty`. With a full window the append is empty: it makes the peer answer even
 * if everything on its way was lost.
 */
export function sendAppend(raft: RaftState, peer: Progress, evenEmpty: boolean): boolean {
  if (peer.paused) return false;
  const { log } = raft;
  const anchor = peer.next - 1;
  const anchorTerm = log.terms.termOf(anchor);
  if (anchorTerm === undefined) return sendSnapshot(raft, peer);
  const blocked = peer.state === "replicate" && peer.inflight.full;
  const span = blocked ? null : log.spanFrom(peer.next);
  if (span === null && !evenEmpty) return false;
  const draft = raft.post("append", peer.id);
  draft.index = anchor;
  draft.logTerm = anchorTerm;
  draft.commit = log.committed;
  draft.entries = span;
  peer.sent(span === null ? 0 : span.last - span.first + 1, span === null ? 0 : span.sizeBytes);
  peer.sentCommit = log.committed;
  return true;
}

/** Sends to everybody; empty appends too, because the commit index is news by itself. */
export function broadcastAppend(raft: RaftState): void {
  for (const peer of raft.tracker.peers) {
    if (peer.id !== raft.id) sendAppend(raft, peer, true);
  }
}

/** Sends entries, where there are any, to everybody who may get some. */
export function broadcastEntries(raft: RaftState): void {
  for (const peer of raft.tracker.peers) {
    if (peer.id !== raft.id) sendAppend(raft, peer, false);
  }
}

/** To whoever can use the commit index, with what it needs next, or without entries. */
export function announceCommit(raft: RaftState): void {
  for (const peer of raft.tracker.peers) {
    if (peer.id !== raft.id && peer.canUseCommit(raft.log.committed)) sendAppend(raft, peer, true);
  }
}

/** One heartbeat to everybody, with a read round to be confirmed (0 for none). */
export function broadcastHeartbeat(raft: RaftState, round: number): void {
  for (const peer of raft.tracker.peers) {
    if (peer.id === raft.id) continue;
    const draft = raft.post("heartbeat", peer.id);
    draft.commit = Math.min(peer.match, raft.log.committed);
    draft.context = round;
    peer.sentCommit = draft.commit;
  }
}

/** Commits what enough voters have written. Returns whether that moved the commit index. */
export function maybeCommit(raft: RaftState): boolean {
  const index = raft.tracker.committedIndex();
  const { log } = raft;
  if (index <= log.committed || !log.matches(index, raft.term)) return false;
  log.commitTo(index);
  return true;
}

/** Orders a peer whose log has caught up to campaign at once. */
export function sendTimeoutNow(raft: RaftState, to: NodeId): void {
  const draft = raft.post("timeoutNow", to);
  if (raft.transferToken === 0) return;
  draft.index = raft.log.lastIndex;
  draft.context = raft.transferToken;
}
