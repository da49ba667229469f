/**
 * What the frames of the lane "control" begin with that are no frames of Raft messages: one number
 * for each kind, so that no part takes the frames of another.
 *
 * Pure. Invariants: 1. No mark is the version of a frame of Raft messages. 2. All are different.
 */
export const ControlMark = {
  /** Commands about members, and their outcomes (meta-proposer.ts). */
  metaProposal: 0xe1,
  /** The monotonic clock of a node (node-clocks.ts). */
  clock: 0xe2,
  /** Whether a member was heard (hearing.ts). */
  hearing: 0xe3,
  /** Planned moves of leaderships (move-frames.ts), on the lane "bulk" too. */
  move: 0xe4,
  /** What a node tells of itself (reports/node-report.ts). */
  report: 0xe5,
  /**
   * Commands of range moves, and their outcomes (ranges/range-proposer.ts), on the lane "bulk" too.
   */
  rangeProposal: 0xe6,
  /** How many keys a range holds (ranges/range-sizes.ts). */
  rangeSize: 0xe7,
  /** Backups that are being taken (backups/backup-messages.ts), on the lane "bulk" too. */
  backup: 0xe8,
} as const;
