/**
 * What one group says about itself, for metrics, readiness and planners.
 *
 * Pure: reads, never changes.
 */
import type { Replica } from "./replica.js";
import type { GroupFacts, GroupHealth, PeerGroupFacts } from "../requests/results.js";

/** What readiness asks of each group: nothing that costs. */
export function groupHealth(replica: Replica): GroupHealth {
  const { isLeading: leading, isServing: serving, leader: leaderNode } = replica.leadership;
  return { leading, serving, leaderNode, caughtUp: replica.caughtUpOnce };
}

export function groupFacts(replica: Replica): GroupFacts {
  const { core, leadership, batcher, proposals } = replica;
  // No spread in the middle: that makes an object of slow properties, one by one.
  return {
    partition: replica.partition,
    leading: leadership.isLeading,
    serving: leadership.isServing,
    leaderNode: leadership.leader,
    caughtUp: replica.caughtUpOnce,
    inherits: leadership.inherits,
    term: core.term,
    commitIndex: core.commitIndex,
    appliedIndex: replica.machine.appliedIndex,
    lastIndex: core.lastIndex,
    flushedIndex: replica.flushedIndex,
    queuedCommands: batcher.queuedCommands,
    queuedBytes: batcher.queuedBytes,
    pendingProposals: proposals.waitingCount,
    inFlightEntries: proposals.entryCount,
    waitingReads: replica.reads.waitingCount,
    quiesced: replica.peers.isQuiesced,
    joint: replica.members.membership.votersOutgoing.length > 0,
    leasesUntilMs: replica.applier.leasesUntilMs,
    peers: leadership.isLeading && !replica.members.isAlone ? peerFacts(replica) : NO_PEERS,
  };
}

const NO_PEERS: readonly PeerGroupFacts[] = [];

function peerFacts({ core }: Replica): PeerGroupFacts[] {
  const others = core.status().progress.filter((peer) => peer.id !== core.id);
  return others.map(({ id: node, state, learner, match, inflightCount: inFlight }) => {
    return { node, state, learner, lagEntries: Math.max(0, core.lastIndex - match), inFlight };
  });
}
