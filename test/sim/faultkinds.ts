/**
 * The kinds of faults that the world knows, with what they need. What each does is in `faults.ts`.
 */

export const FAULT_KINDS = {
  /** The process is killed; what the system has in memory stays. */
  kill: { needsPeers: false },
  /** The machine loses power: what is not synced is lost, in any part. */
  "power-loss": { needsPeers: false },
  /** Killed after some number of callbacks and port calls, so also between two effects. */
  "crash-inside": { needsPeers: false },
  /** Stands still, with its input queued. */
  pause: { needsPeers: false },
  /** Each piece of input takes time. */
  slow: { needsPeers: false },
  "clock-jump": { needsPeers: false },
  "clock-rate": { needsPeers: false },
  "graceful-stop": { needsPeers: false },
  "disk-hung": { needsPeers: false },
  "disk-full": { needsPeers: false },
  "disk-slow": { needsPeers: false },
  "disk-error": { needsPeers: false },
  "store-full": { needsPeers: false },
  "store-hung": { needsPeers: false },
  /** Two sides that hear nothing of each other. */
  partition: { needsPeers: true },
  /** One side hears the other, and is not heard. */
  "partition-one-way": { needsPeers: true },
  isolate: { needsPeers: true },
  /** Each node reaches its two neighbours only. */
  ring: { needsPeers: true },
  "link-cut": { needsPeers: true },
  "half-open": { needsPeers: true },
  /** Connections break, maybe in the middle of a frame. */
  "link-break": { needsPeers: true },
  "lane-break": { needsPeers: true },
  clog: { needsPeers: true },
  /** One bit on a disk turns; the node may be lost for good. */
  "bit-flip": { needsPeers: true },
  /** A stray write lands on old data; the node may be lost for good. */
  "stray-write": { needsPeers: true },
  /** The machine comes back with an empty disk; the node is lost for good. */
  wipe: { needsPeers: true },
  "kill-leader": { needsPeers: true },
  "kill-several": { needsPeers: true },
  /** All machines lose power in the same moment. */
  "power-loss-all": { needsPeers: true },
  "pause-leader": { needsPeers: true },
} as const;

export type FaultKind = keyof typeof FAULT_KINDS;
