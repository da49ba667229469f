/**
 * What one group says about itself, for metrics, readiness and planners.
 *
 * Pure: reads, never changes.
 */
import type { GroupDriver } from "./driver.js";
import type { GroupFacts, PeerGroupFacts } from "../requests/results.js";

export function groupFacts(driver: GroupDriver): GroupFacts {
  const { core, leadership, batcher, proposals } = driver;
  return {
    partition: driver.partition,
    leading: leadership.isLeading,
    serving: leadership.isServing,
    inherits: leadership.inherits,
    leaderNode: leadership.leader,
    caughtUp: driver.caughtUpOnce,
    term: core.term,
    commitIndex: core.commitIndex,
    appliedIndex: driver.machine.appliedIndex,
    lastIndex: core.lastIndex,
    flushedIndex: driver.flushedIndex,
    queuedCommands: batcher.queuedCommands,
    queuedBytes: batcher.queuedBytes,
    pendingProposals: proposals.waitingCount,
    inFlightEntries: proposals.entryCount,
    waitingReads: driver.reads.waitingCount,
    quiesced: driver.peers.isQuiesced,
    leasesUntilMs: driver.applier.leasesUntilMs,
    peers: leadership.isLeading && !driver.members.isAlone ? peerFacts(driver) : NO_PEERS,
  };
}

const NO_PEERS: readonly PeerGroupFacts[] = [];

function peerFacts({ core }: GroupDriver): PeerGroupFacts[] {
  const others = core.status().progress.filter((peer) => peer.id !== core.id);
  return others.map(({ id: node, state, learner, match, inflightCount: inFlight }) => {
    return { node, state, learner, lagEntries: Math.max(0, core.lastIndex - match), inFlight };
  });
}
