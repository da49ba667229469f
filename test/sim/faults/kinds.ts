/**
 * The kinds of faults that the world knows, with what they need. What each does is in `faults.ts`
 * and the `faults-` files beside it; what operators do is in `operator.ts`.
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
  /** One lane alone breaks; its sender finds out at once, or by an echo that it misses. */
  "lane-break": { needsPeers: true },
  clog: { needsPeers: true },
  /** One bit on a disk turns; the node may be lost for good. */
  "bit-flip": { needsPeers: true },
  /** One bit of a row in the state store turns; the node is lost as soon as it reads that row. */
  "row-flip": { needsPeers: true },
  /** A stray write lands on old data; the node may be lost for good. */
  "stray-write": { needsPeers: true },
  /** The machine comes back with an empty disk; the node is lost for good. */
  wipe: { needsPeers: true },
  "kill-leader": { needsPeers: true },
  "kill-several": { needsPeers: true },
  /** All machines lose power in the same moment. */
  "power-loss-all": { needsPeers: true },
  "pause-leader": { needsPeers: true },
  /** A leader is cut off from all others, not from its clients: it appends what nobody will have. */
  "strand-leader": { needsPeers: true },
} as const;

/**
 * Kinds that only a profile of their own has: what it takes to bring one thing about. The others never draw them, so
 * that a new one changes no seed.
 */
export const SPECIAL_FAULTS = {
  /** A node is away while much is written; all others are restarted; then it comes back. */
  "left-behind": {},
  /** A node is away for so long that the others have dropped what it misses. */
  away: {},
  /** The store of one node takes nothing for long, while its log takes everything. */
  "store-stuck": {},
  /** Bytes that no node sends arrive over a link. */
  garbage: {},
  /** Frames that a link delivered before arrive once more, late and out of their order. */
  replay: {},
  /** The machine comes back with an empty disk; somebody has the node removed, and it is taken in again. */
  "lose-disk": {},
  /** A disk is put back as it was some restarts ago; later the node is removed and comes back empty. */
  "roll-back": {},
  /** The disks of a majority of the founders are emptied. */
  "lose-majority": {},
  /** A node takes in nothing of the meta partition for a while: what it knows of the cluster is old. */
  "meta-deaf": {},
  /** Who may lead a group next knows the record of before a move, and the leader dies after it. */
  "old-heirs": {},
  /** When a move of a key range comes to a drawn phase, who leads its source, its target or meta is struck. */
  "strike-move": {},
  /** The same, and what is struck is the way between the two leaders of a move. */
  "part-move": {},
  /** When an interval is frozen, meta has no majority for a while. */
  "mute-meta": {},
  /** The same of the target or of the source, when its move has begun or its interval is frozen. */
  "mute-side": {},
  /** Who leads a side of a move takes in nothing of the meta partition: what it knows of the move is old. */
  "deaf-side": {},
  /** A follower takes in nothing of the source of a move, and learns late that the keys have gone. */
  "late-source": {},
  /** Somebody has a move given up in the middle of its copy. */
  "give-up": {},
  /** The cut of a move comes when another leader of the source has taken the next attempt. */
  "late-cut": {},
  /** An import of a move arrives once more, behind a later one. */
  "late-copy": {},
  /** What a node asks another one for comes late for a while; what replicas say to each other does not. */
  "late-calls": {},
} as const;

/** What operators do to a cluster that runs. They have a schedule of their own beside the faults. */
export const OPERATOR_KINDS = {
  /** A new machine with an empty disk asks to be taken in. */
  join: {},
  /** A node is asked to leave, again and again until it left or is needed, and then stopped. */
  leave: {},
  /** A node that left comes back with an empty disk, under its old id. */
  rejoin: {},
  /** A node that left is started again by mistake, with its old data, and stopped later. */
  "start-the-gone": {},
  /** A node that joins loses its disk before it votes, and asks again under the same id. */
  "wipe-joiner": {},
  /** Leaderships are handed over while everything goes on. */
  transfer: {},
  /** All nodes are stopped gracefully and started again, one after the other. */
  "rolling-restart": {},
} as const;

/** What whoever upgrades a cluster does to it, on a schedule of their own. */
export const UPGRADE_KINDS = {
  /** A node is stopped or killed, and started with the next program. */
  "roll-forward": {},
  /** The same with the program before. */
  "roll-to-former": {},
  /** The level of the cluster is to be raised. */
  finalize: {},
} as const;

/** What whoever looks after placement does, on a schedule of their own. */
export const PLACEMENT_KINDS = {
  /** A partition is to have so many replicas, or as many as the others. */
  "set-factor": {},
  /** A machine is gone for good; somebody has its node removed. */
  "lose-machine": {},
  /** Somebody asks for the removal of a member that lives. */
  "remove-living": {},
} as const;

/** What whoever looks after key ranges does, on a schedule of their own. */
export const RANGE_KINDS = {
  /** A key space is to be routed by ranges. */
  "register-space": {},
  /** It is to be routed by its hash again; some time later it is registered anew. */
  "unregister-space": {},
  /** A range is to be split at a key. */
  "split-space": {},
  /** Small neighbours are to be folded. */
  "merge-spaces": {},
} as const;

export type RangeKind = keyof typeof RANGE_KINDS;
export type PlacementKind = keyof typeof PLACEMENT_KINDS;
export type OperatorKind = keyof typeof OPERATOR_KINDS;
export type UpgradeKind = keyof typeof UPGRADE_KINDS;
export type FaultKind = keyof typeof FAULT_KINDS | keyof typeof SPECIAL_FAULTS;
