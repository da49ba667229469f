/**
 * The settings of one Raft core: what they mean, their defaults, and the check that they fit
 * together.
 *
 * Invariants: 1. A core never sees a configuration that `assertConfig` refuses. 2. Settings never
 * change afterwards.
 */
import { assert } from "../../base/assert.js";
import type { NodeId } from "./types.js";

/** No limit, for every setting that limits something. */
export const unlimited = Number.MAX_SAFE_INTEGER;

export interface CoreConfig {
  readonly id: NodeId;
  /**
   * The shortest election timeout in ticks; the actual one is drawn from [electionTicks,
   * electionTicks + electionSpreadTicks).
   */
  readonly electionTicks: number;
  /** 0 = as many as electionTicks. */
  readonly electionSpreadTicks: number;
  readonly heartbeatTicks: number;
  readonly preVote: boolean;
  readonly checkQuorum: boolean;
  /** Whether a leader that a membership change removes or demotes gives up leadership at once. */
  readonly stepDownOnRemoval: boolean;
  /**
   * Whether leadership goes to voters of the new half of a joint configuration only, and leaving
   * one is proposed again as soon as a transfer is given up. The model does neither.
   */
  readonly cautiousTransfer: boolean;
  /**
   * Whether a commit index that moved is sent to everybody at once, in appends without entries.
   * Otherwise it travels with the next entries, when the host asks for it (`announceCommit`), or
   * with a heartbeat at the latest: a follower applies a little later, and a write of a quiet group
   * costs half the messages. A committed membership change is always told at once.
   */
  readonly announceCommits: boolean;
  /**
   * Whether answers to (pre-)votes say how far their sender knows the log to be committed, and the
   * candidate takes that over where its log is the same. So it learns of a membership change which
   * it does not know to be committed, and does not go on asking for the votes of those who left.
   * The model does not.
   */
  readonly votesTellCommit: boolean;
  /** `leaseBased` needs checkQuorum. */
  readonly readMode: "safe" | "leaseBased";
  /**
   * Largest sum of entry sizes (payload plus entryOverheadBytes) in one append; one entry always
   * goes.
   */
  readonly maxMessageBytes: number;
  readonly maxInflightMessages: number;
  /** Payload bytes on their way to one follower. */
  readonly maxInflightBytes: number;
  /** Payload bytes in a leader's log that are not applied yet; one entry always goes. */
  readonly maxUncommittedBytes: number;
  /** Entry bytes handed out for applying and not yet acknowledged; one entry always goes. */
  readonly maxCommittedBytesPerTake: number;
  /** Reads waiting for the first commit of a term or for a round, at most. */
  readonly maxPendingReads: number;
  /** What an entry costs besides its payload, for maxMessageBytes and maxCommittedBytesPerTake. */
  readonly entryOverheadBytes: number;
  readonly disableConfigChangeValidation: boolean;
  /** Whether followers refuse proposals instead of passing them on to the leader. */
  readonly disableProposalForwarding: boolean;
  /**
   * Whether committed entries are handed out before they are known to be written here (synchronous
   * hosts only).
   */
  readonly applyBeforeWritten: boolean;
  /** Seed of the election timeouts; differs by node and group. */
  readonly seed: number;
  /** For tests: every draw of the election timeout gives this; 0 draws at random. */
  readonly fixedElectionTicks: number;
}

/**
 * What svc runs with: pre-vote and check-quorum on, a removed leader steps down, nothing is
 * forwarded.
 */
export function defaultConfig(id: NodeId, seed: number): CoreConfig {
  return {
    id,
    electionTicks: 10,
    electionSpreadTicks: 0,
    heartbeatTicks: 1,
    preVote: true,
    checkQuorum: true,
    stepDownOnRemoval: true,
    cautiousTransfer: true,
    announceCommits: false,
    votesTellCommit: true,
    readMode: "safe",
    maxMessageBytes: 1 << 20,
    maxInflightMessages: 64,
    maxInflightBytes: 8 << 20,
    maxUncommittedBytes: 64 << 20,
    maxCommittedBytesPerTake: 16 << 20,
    maxPendingReads: 4096,
    entryOverheadBytes: 16,
    disableConfigChangeValidation: false,
    disableProposalForwarding: true,
    applyBeforeWritten: false,
    seed,
    fixedElectionTicks: 0,
  };
}

/** Throws AssertionError unless the settings are whole, positive and fit together. */
export function assertConfig(config: CoreConfig): void {
  assert(Number.isSafeInteger(config.id) && config.id > 0, "a node id is a positive integer");
  const positive: readonly (readonly [string, number])[] = [
    ["heartbeatTicks", config.heartbeatTicks],
    ["electionTicks", config.electionTicks],
    ["maxMessageBytes", config.maxMessageBytes],
    ["maxInflightMessages", config.maxInflightMessages],
    ["maxInflightBytes", config.maxInflightBytes],
    ["maxUncommittedBytes", config.maxUncommittedBytes],
    ["maxCommittedBytesPerTake", config.maxCommittedBytesPerTake],
    ["maxPendingReads", config.maxPendingReads],
  ];
  for (const [name, value] of positive) {
    assert(Number.isSafeInteger(value) && value > 0, `${name} is a positive integer, not ${value}`);
  }
  assert(
    config.electionTicks > config.heartbeatTicks,
    `electionTicks (${config.electionTicks}) exceeds heartbeatTicks (${config.heartbeatTicks})`,
  );
  assert(config.entryOverheadBytes >= 1, "an entry costs at least one byte");
  assert(
    config.maxInflightBytes >= config.maxMessageBytes || config.maxInflightBytes === unlimited,
    `maxInflightBytes (${config.maxInflightBytes}) holds a message (${config.maxMessageBytes})`,
  );
  assert(
    config.readMode === "safe" || config.checkQuorum,
    "lease-based reads need checkQuorum: without it an old leader never notices",
  );
  assert(config.fixedElectionTicks >= 0, "fixedElectionTicks is not negative");
}
