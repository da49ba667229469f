/**
 * What one group says about itself, for metrics, readiness and planners.
 *
 * May call: this folder. Pure: reads, never changes.
 */
import type { GroupDriver } from "./driver.js";
import type { GroupFacts } from "./results.js";

export function groupFacts(driver: GroupDriver): GroupFacts {
  const { core, leadership, batcher, proposals } = driver;
  return {
    partition: driver.partition,
    leading: leadership.isLeading,
    serving: leadership.isServing,
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
  };
}
