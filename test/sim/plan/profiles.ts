/**
 * The profiles of runs: what kind of world a seed draws its plan for.
 *
 * Pure. Invariant: adding a profile changes no seed of another one.
 */
import type { HostSettings } from "../../../src/host/settings.js";
import { DEFAULT_SNAPSHOT_SETTINGS } from "../../../src/host/snapshots/snapshot-limits.js";
import { ORPHAN_ROWS, type OrphanRow } from "../../judge/checkers/heirs/naive-row.js";
import { FAULT_KINDS, type FaultKind } from "../faults/kinds.js";
import { STRANDING } from "../faults/swarm.js";
import type { BesideWatches } from "../watching/watchedworld.js";
import type { WorkloadKind, WorkSettings } from "./workplan.js";
import { DEFAULT_HOST_SETTINGS } from "../../doubles/default-settings.js";

export interface Profile {
  readonly name: string;
  /** Operators add and remove nodes, move leaderships and restart nodes. */
  readonly hasOperators?: boolean;
  /** Nodes go from one program to the next and back, and the level is raised. */
  readonly hasUpgrades?: boolean;
  /** Partitions have replicas on some nodes only, which are moved by hand. */
  readonly hasPlacer?: boolean;
  /** Key ranges are split, merged and moved home. */
  readonly hasRanges?: boolean;
  /** The same in a part of the seeds, and less often. */
  readonly hasRangesAtTimes?: boolean;
  /** Backups are taken and restored, and the clusters that come of it are used. */
  readonly hasBackups?: boolean;
  /** Many wait for a few locks. */
  readonly hasWaits?: boolean;
  /** The locks that are waited for have heirs, in every seed; absent: in those that draw it. */
  readonly hasHeirs?: boolean;
  /** Some tens of watches of all kinds. */
  readonly hasWatches?: boolean;
  /** What goes on beside watches, in every seed; absent: what the seed draws. */
  readonly besideWatches?: BesideWatches;
  /** Nodes change key ranges by themselves, under a load that swings around both thresholds. */
  readonly isSwinging?: boolean;
  /** Each partition has three replicas, which the allocator spreads over all nodes. */
  readonly isSpread?: boolean;
  /** Those beyond the most that may vote join a cluster of so many founders, and stay learners. */
  readonly nodes: readonly number[];
  /** Faults that the profile may switch on. */
  readonly faults: readonly FaultKind[];
  /** Mean pause of a client between operations (ms), drawn from. */
  readonly thinkMs: readonly number[];
  readonly clients: readonly number[];
  /** Instead of what the seed would draw. */
  readonly host?: Partial<HostSettings>;
  readonly ticks?: number;
  readonly segmentBytes?: number;
  /** Mean times between two faults (ms), drawn from. */
  readonly faultEveryMs?: readonly number[];
  /** All faults of the profile are on in every seed. */
  readonly hasAllFaults?: boolean;
  readonly work?: Partial<WorkSettings>;
  /** Weights instead of the drawn ones; kinds that are not named are off. */
  readonly operations?: Partial<Record<WorkloadKind, number>>;
  readonly keys?: number;
  /**
   * Of what the world counts, and of what checkers saw, that much must have happened over a sweep:
   * else it was not this world.
   */
  readonly needs?: Readonly<Record<string, number>>;
  /**
   * Of what checkers saw, so much is expected of a hundred seeds, and of a smaller sweep the part of
   * it: else these were not the worlds that the profile is for.
   */
  readonly expects?: Readonly<Record<string, number>>;
  /** In half of the seeds the disks of a majority are emptied. */
  readonly losesMajorities?: boolean;
  /** What a row costs that a read of many keys looks at (ms); absent: nothing. */
  readonly visitMs?: number;
  /** Snapshots of one group that a node may install until it has caught up, at most. */
  readonly snapshotsMax?: number;
}

const ALL_FAULTS = Object.keys(FAULT_KINDS) as (keyof typeof FAULT_KINDS)[];
/** What one node alone survives without losing anything. */
const LONELY_FAULTS = ALL_FAULTS.filter((kind) => !FAULT_KINDS[kind].needsPeers);

/** What no disk is damaged by: of some groups there is one copy. */
const WHOLE_DISKS = ALL_FAULTS.filter((kind) => {
  return !["bit-flip", "row-flip", "stray-write", "wipe"].includes(kind);
});

/** Few copies of each value, so that large ones find room. */
const LARGE_WORK = { valueMaxBytes: 1 << 20, revisionsRetained: 1, vanishPerMille: 5 };
const WRITERS = { set: 12, "set-expiring": 1, get: 3, "kv-delete": 1, next: 1, create: 1, lock: 1 };

/** What must never be given twice, and what must not be lost. */
const GRANTS = { lock: 6, extend: 1, unlock: 2, create: 1, next: 6, set: 4, get: 4 };
const LOSSES = Array.from({ length: 4 }, () => "lose-disk" as const);
const SLOWNESS = Array.from({ length: 4 }, () => "slow" as const);
const READERS = { readers: 3, bucket: 1, range: 1, "scan-all": 1, "scan-local": 1 };
/** The property under which the world counts what happened to replicas. */
const WENT = "what placement went through";
const ROLLBACKS = Array.from({ length: 4 }, () => "roll-back" as const);

/** The property under which the world counts what moves of key ranges went through. */
const MOVED = "what ranges went through";
/** The keys of the workload, everything that one does with them. */
const KEY_WORK: Profile["operations"] = {
  ...{ set: 10, "set-conditional": 6, "set-expiring": 4, "set-flags": 4, "kv-extend": 3 },
  ...{ "kv-delete": 4, get: 8, exists: 2, "get-revision": 4, bucket: 4, range: 3 },
  ...{ "scan-all": 3, "scan-local": 1, "set-many": 2, "delete-many": 1, "get-many": 2 },
  ...{ "exists-many": 1, batch: 1, odd: 1, "ephemeral-set": 2, "ephemeral-get": 2 },
  ...{ "ephemeral-delete": 1, lock: 1, unlock: 1, next: 1, create: 1 },
};
/** Aimed ones several times: they are what the moves of a world need. */
const AIMED: readonly FaultKind[] = [
  ...Array.from({ length: 8 }, () => "strike-move" as const),
  ...(["part-move", "part-move", "part-move", "mute-meta", "mute-meta", "mute-meta"] as const),
  ...(["mute-side", "mute-side", "mute-side", "mute-side", "away", "away", "meta-deaf"] as const),
];
/** An import of a move, and a row that came on top, fits half of it. */
const MOVE_SEGMENT_BYTES = 1 << 20;
/** What the moves of a hundred seeds must have gone through. */
const MOVES_SEEN = {
  ...{ [`${MOVED}: moves`]: 300, [`${MOVED}: aborted`]: 50, [`${MOVED}: retried attempts`]: 50 },
  [`${MOVED}: leader changes between freeze and adopt`]: 30,
  [`${MOVED}: freezes with meta's leader gone`]: 20,
  ...{ [`${MOVED}: bytes of history moved`]: 100, [`${MOVED}: tombstones moved`]: 100 },
  [`${MOVED}: snapshots in the middle of a move`]: 10,
  ...{ [`${MOVED}: split moves`]: 50, [`${MOVED}: merge moves`]: 50, [`${MOVED}: home moves`]: 20 },
};

/** The property under which the world counts what it did about backups. */
const TAKEN = "what backups went through";
/** What a hundred seeds of backups must have gone through. */
const BACKUPS_SEEN = {
  ...{ [`${TAKEN}: coordinated cuts`]: 100, [`${TAKEN}: restores`]: 60 },
  [`${TAKEN}: coordinated cuts with a leader change inside`]: 5,
  [`${TAKEN}: coordinated cuts with clocks apart`]: 20,
  "coordinated cuts are closed: chains over three groups": 20,
  // Of the third of the seeds in which key ranges change.
  ...{ [`${MOVED}: moves`]: 20, [`${TAKEN}: restores of divided key spaces`]: 12 },
  ...{ [`${TAKEN}: backups that waited for a range`]: 4, [`${TAKEN}: ended by range changes`]: 2 },
  "clusters of one catalogue never meet: meetings": 100,
  ...{ [`${TAKEN}: second restores`]: 15, [`${TAKEN}: second restores of a backup`]: 8 },
  "chains go on from their parents: substituted ParentLogCompacted": 2,
  "chains go on from their parents: substituted TopologyChangedSinceParent": 2,
  ...Object.fromEntries(
    ["beginning", "images", "marks", "logs", "checking", "publishing"].map((phase) => {
      return [`${TAKEN}: crashes in phase ${phase}`, 1];
    }),
  ),
};

/** The property under which the world counts what waits for locks went through. */
const WAITED = "what waits went through";
/** What the waits of a hundred seeds must have gone through. */
const WAITS_SEEN = {
  ...{ [`${WAITED}: granted`]: 2000, [`${WAITED}: grants at the end of a lease`]: 300 },
  ...{
    [`${WAITED}: cancelled`]: 300,
    [`${WAITED}: went away`]: 300,
    [`${WAITED}: came back`]: 300,
  },
  ...{ [`${WAITED}: left`]: 50, [`${WAITED}: resets`]: 20 },
  "waiters are granted in their order: queues carried over": 15,
};

/** What forced releases of a hundred seeds must have shown; not every seed has some. */
function forcedSeen(releases: number, refused: number, changes: number): Record<string, number> {
  return {
    ...{ "force-compares: releases": releases, "force-compares: refused": refused },
    "force-compares: changes after": changes,
    ...{ "audit-exact: rows": releases, "audit-exact: told releases": releases },
    "audit-exact: refusals": refused,
  };
}

const STEPS = "steps follow a committed list";
const LISTS = "a lock moves along its list";
/** What no leader does that keeps the rules, and what no client of these worlds asks. */
const ROWS_OF_APPLY: readonly OrphanRow[] = ["a list is written", "the base asks, and not again"];
/** What heirs of locks must have gone through in a hundred seeds, of which half have some. */
const HEIRS_SEEN: Readonly<Record<string, number>> = {
  [`${STEPS}: steps`]: 2000,
  [`${STEPS}: steps while a list is lengthened`]: 200,
  [`${STEPS}: leaders that stepped while another led`]: 3,
  [`${LISTS}: orphaned lists`]: 18,
};
/** What lists that outlived their term must have gone through in a hundred seeds with heirs. */
const ORPHANS_SEEN: Readonly<Record<string, number>> = Object.fromEntries(
  ORPHAN_ROWS.filter((row) => !ROWS_OF_APPLY.includes(row)).map((row) => {
    // Few lists live to their end.
    return [`${LISTS}: row: ${row}`, row === "the list ends by time" ? 1 : 5] as const;
  }),
);

/** The property under which the world counts what its watches went through. */
const WATCHED = "what watches went through";
/** What the watches of a hundred seeds must have gone through. */
const WATCHES_SEEN = {
  ...{ [`${WATCHED}: catch-ups: behind`]: 20, [`${WATCHED}: catch-ups: resumed`]: 200 },
  ...{ [`${WATCHED}: catch-ups: image`]: 10 },
  ...{ [`${WATCHED}: resets`]: 40, [`${WATCHED}: streams lost`]: 20 },
  ...{ [`${WATCHED}: stood still`]: 200, [`${WATCHED}: went elsewhere`]: 300 },
  "a barrier of watches holds: barriers over three partitions": 100,
  "a watch that goes on misses nothing: resumes at the same node": 100,
  "a watch that goes on misses nothing: resumes elsewhere": 200,
};

/** What the watches of a hundred seeds with blackouts must have gone through. */
const BLACKOUTS_SEEN = {
  ...{ [`${WATCHED}: catch-ups: resumed`]: 200, [`${WATCHED}: streams lost`]: 500 },
  ...{ [`${MOVED}: moves`]: 200, "a watch that goes on misses nothing: resumes elsewhere": 300 },
};

/** All that makes events, and what makes none beside it. */
const WATCHED_WORK: Profile["operations"] = {
  ...{ set: 12, "set-conditional": 2, "set-expiring": 8, "kv-extend": 2, "kv-delete": 6, get: 2 },
  ...{ "set-many": 1, "delete-many": 1, lock: 8, extend: 2, unlock: 6, create: 2, update: 2 },
  ...{ delete: 1, next: 3, reserve: 1, "ephemeral-set": 1, "ephemeral-lock": 1 },
};

/** What `seeds` seeds of a profile must have shown at least, by kind of evidence. */
export function expectedOf({ expects = {} }: Profile, seeds: number): Record<string, number> {
  const parts = Object.entries(expects).map(([name, count]) => {
    return [name, Math.floor((count * seeds) / 100)] as const;
  });
  return Object.fromEntries(parts);
}

/** Watches of all kinds, and all that they are told of. */
const WATCHING = {
  nodes: [3, 3, 3, 4, 5],
  faults: [...ALL_FAULTS, "kill-leader", "pause-leader", "graceful-stop", "away"],
  thinkMs: [80, 200],
  clients: [3],
  hasWatches: true,
  operations: WATCHED_WORK,
  keys: 4,
  ticks: 7000,
  faultEveryMs: [1000, 3000, 8000],
} satisfies Omit<Profile, "name">;

/** Clients that wait for a few locks. */
const WAITING = {
  nodes: [3, 3, 3, 4, 5],
  faults: [...ALL_FAULTS, "kill-leader", "pause-leader", "graceful-stop"],
  thinkMs: [300],
  clients: [3],
  hasWaits: true,
  operations: { set: 2, get: 2 },
  keys: 3,
  ticks: 10_000,
  faultEveryMs: [1000, 3000, 8000],
} satisfies Omit<Profile, "name">;

export const PROFILES: Readonly<Record<string, Profile>> = {
  one: {
    name: "one",
    nodes: [1],
    faults: LONELY_FAULTS,
    thinkMs: [50, 300, 1000],
    clients: [1, 3, 8, 16],
  },
  three: {
    name: "three",
    nodes: [3],
    faults: ALL_FAULTS,
    thinkMs: [100, 500, 2000],
    clients: [2, 5, 10],
  },
  five: {
    name: "five",
    nodes: [5],
    faults: ALL_FAULTS,
    thinkMs: [100, 500, 2000],
    clients: [2, 5, 10],
  },
  /** Nodes join and leave, come back empty, and leaderships move, under all faults. */
  members: {
    name: "members",
    nodes: [3, 3, 4, 5, 6],
    faults: ALL_FAULTS,
    thinkMs: [100, 500, 2000],
    clients: [2, 5, 10],
    hasOperators: true,
  },
  /**
   * Replicas on some nodes only, which come, go and come again: moved by the allocator, in half of
   * the seeds by a hand at random too, while factors are set, nodes join and leave, and disks and
   * machines are lost for good.
   */
  placed: {
    name: "placed",
    nodes: [5, 5, 5, 6, 7, 9, 12],
    faults: [...WHOLE_DISKS, "lose-disk", "replay", "replay", "meta-deaf", "meta-deaf"],
    thinkMs: [300, 1000, 3000],
    clients: [2, 4],
    hasPlacer: true,
    faultEveryMs: [2000, 5000, 15_000, 40_000],
    expects: {
      ...{ [`${WENT}: moves`]: 200, [`${WENT}: leader changes inside a move`]: 50 },
      ...{ [`${WENT}: replicas that come again`]: 20, [`${WENT}: drains`]: 20 },
      ...{ [`${WENT}: removals by force`]: 10, [`${WENT}: frames of former lives`]: 20 },
      [`${WENT}: replicas kept`]: 5,
      ...Object.fromEntries([1, 2, 3, 4, 5].map((count) => [`${WENT}: partitions of ${count}`, 5])),
    },
  },
  /**
   * Key ranges that are split, merged and unregistered all the time, by hand or by the nodes, while
   * clients work on few key spaces and faults are aimed at the moves.
   */
  ranges: {
    name: "ranges",
    nodes: [3, 3, 3, 4, 5, 6],
    faults: [...WHOLE_DISKS, ...AIMED],
    thinkMs: [30, 100, 300],
    clients: [4, 8],
    hasRanges: true,
    operations: KEY_WORK,
    keys: 40,
    faultEveryMs: [300, 1000, 3000],
    segmentBytes: MOVE_SEGMENT_BYTES,
    expects: MOVES_SEEN,
  },
  /** The same where partitions have replicas on some nodes only, and these come and go. */
  "ranges-placed": {
    name: "ranges-placed",
    nodes: [5, 5, 6, 7],
    faults: [...WHOLE_DISKS, ...AIMED, "lose-disk", "replay"],
    thinkMs: [100, 300],
    clients: [4],
    hasRanges: true,
    hasPlacer: true,
    operations: KEY_WORK,
    keys: 40,
    faultEveryMs: [1000, 3000, 10_000],
    segmentBytes: MOVE_SEGMENT_BYTES,
    expects: MOVES_SEEN,
  },
  /** An hour of a load that swings around the sizes at which ranges are split and merged. */
  "ranges-swing": {
    name: "ranges-swing",
    nodes: [3],
    faults: [],
    thinkMs: [30_000],
    clients: [1],
    isSwinging: true,
    operations: { lock: 1, "get-lock": 1 },
    ticks: 3_600_000,
    segmentBytes: MOVE_SEGMENT_BYTES,
    needs: {
      "automatic changes come to rest: hours of swinging": 1,
      ...{ [`${MOVED}: split moves`]: 1, [`${MOVED}: merge moves`]: 1 },
    },
  },
  /**
   * Backups of all kinds under faults of nodes, wires and the directory, and restores in the middle of
   * it, whose clusters are used beside the old one.
   */
  backup: {
    name: "backup",
    nodes: [1, 3, 3, 3, 4, 5],
    faults: [...WHOLE_DISKS, "kill-leader", "kill-leader", "power-loss"],
    thinkMs: [100, 300],
    clients: [2],
    hasBackups: true,
    hasRangesAtTimes: true,
    ticks: 16_000,
    faultEveryMs: [1000, 3000, 8000],
    work: { largeValues: 0 },
    expects: BACKUPS_SEEN,
  },
  /**
   * Some tens of clients that wait for a few locks, cancel, go away, come back, freeze and forget,
   * while leaders change; in half of the seeds the locks are hot and have heirs.
   */
  waiting: {
    ...{ name: "waiting", ...WAITING },
    expects: { ...WAITS_SEEN, ...HEIRS_SEEN, ...forcedSeen(15, 15, 5) },
  },
  /** The same with heirs in every seed. */
  "waiting-heirs": {
    ...{ name: "waiting-heirs", ...WAITING, hasHeirs: true },
    expects: {
      ...{ ...HEIRS_SEEN, ...ORPHANS_SEEN, ...forcedSeen(60, 60, 15) },
      "what an orphaned list holds up ends: looks at orphaned lists": 300,
    },
  },
  /**
   * Some tens of watches of all kinds, slow ones too, that end and go on at other nodes from newer and
   * older cursors, while names change, leases end, leaders change and images are installed; in some
   * seeds nodes join and leave.
   */
  watching: {
    ...{ name: "watching", ...WATCHING },
    expects: { ...WATCHES_SEEN, ...forcedSeen(35, 60, 25) },
  },
  /** The same, with key ranges that move, or replicas, in every seed. */
  "watching-ranges": { name: "watching-ranges", ...WATCHING, besideWatches: "ranges" },
  "watching-placed": { name: "watching-placed", ...WATCHING, besideWatches: "replicas" },
  /** The same, with key ranges that move while all machines lose power at once. */
  "watching-blackouts": {
    ...{ name: "watching-blackouts", ...WATCHING, besideWatches: "blackouts" },
    expects: BLACKOUTS_SEEN,
  },
  "calm-five": { name: "calm-five", nodes: [5], faults: [], thinkMs: [1000], clients: [8] },
  /** Many nodes and groups under little load: how cost grows with the cluster. */
  crowd: {
    name: "crowd",
    // A cluster has nine voters at most.
    nodes: [9],
    faults: ["kill", "isolate", "link-break"],
    thinkMs: [500],
    clients: [10],
    host: { initialPartitions: 222, heartbeatMs: 100, electionMs: 1000 },
    ticks: 10_000,
  },
  /** The largest world: two thousand groups, with the settings that ship, under light load. */
  wide: {
    name: "wide",
    nodes: [25],
    faults: ["kill", "isolate", "link-break"],
    thinkMs: [500],
    clients: [20],
    host: { ...DEFAULT_HOST_SETTINGS, initialPartitions: 2000 },
    // Large enough that joiners are fed from the log: a snapshot for each of 2000 groups takes
    // long.
    segmentBytes: 4 << 20,
    ticks: 10_000,
  },
  /**
   * The same with three replicas of each partition, and as many partitions as are spread over nodes
   * that join within the time of peace.
   */
  "wide-placed": {
    name: "wide-placed",
    nodes: [25],
    faults: ["kill", "isolate", "link-break"],
    thinkMs: [500],
    clients: [20],
    host: { ...DEFAULT_HOST_SETTINGS, initialPartitions: 200 },
    segmentBytes: 4 << 20,
    ticks: 10_000,
    isSpread: true,
  },
  /**
   * Days of a cluster that sleeps most of the time: what goes by clocks and counters, and groups
   * that are woken by a request or a fault. A day costs a few seconds.
   */
  long: {
    name: "long",
    nodes: [1, 3, 3, 5],
    faults: ALL_FAULTS,
    thinkMs: [1_200_000, 3_600_000],
    clients: [2, 5],
    ticks: 5 * 86_400_000,
    faultEveryMs: [3_600_000, 21_600_000],
  },
  /** Leaders that lose the others while clients go on: tails that the next one overwrites. */
  stranded: {
    name: "stranded",
    nodes: [3, 3, 5],
    faults: [...STRANDING, "kill", "power-loss", "disk-slow", "pause-leader"],
    thinkMs: [20, 100, 300],
    clients: [5, 10],
    host: { initialPartitions: 1, batchEntriesMax: 1, inFlightEntriesMax: 16 },
    ticks: 30_000,
    faultEveryMs: [1000, 3000],
  },
  /**
   * Values of almost a mebibyte, written while a node is away; those that have them were restarted
   * when it comes back.
   */
  heavy: {
    name: "heavy",
    nodes: [3],
    faults: ["left-behind"],
    hasAllFaults: true,
    thinkMs: [30, 80],
    clients: [3, 6],
    host: { initialPartitions: 1, compactEveryEntries: 1000, compactKeepEntries: 1000 },
    ticks: 30_000,
    segmentBytes: 16 << 20,
    faultEveryMs: [2000, 5000],
    work: { ...LARGE_WORK, largeValues: 30, largeBytes: (1 << 20) - 8192 },
    operations: WRITERS,
    keys: 10,
    needs: { "fault left-behind": 3, "work large values": 50 },
  },
  /** The store of a node takes nothing for long, while the cluster writes. */
  stuck: {
    name: "stuck",
    nodes: [3],
    faults: ["store-stuck", "store-stuck", "kill-leader", "link-break"],
    hasAllFaults: true,
    thinkMs: [20, 60],
    clients: [5],
    host: {
      ...{ initialPartitions: 2, flushRows: 20, unflushedRowsMax: 100, flushAgeMs: 500 },
      ...{ flushBytes: 32 << 10, unflushedBytesMax: 128 << 10 },
    },
    ticks: 40_000,
    faultEveryMs: [3000],
    work: { ...LARGE_WORK, valueMaxBytes: 4000, largeValues: 100, largeBytes: 3000 },
    operations: WRITERS,
    keys: 300,
    needs: { "fault store-stuck": 3, "work large values": 200 },
  },
  /** Nodes that are away until they need snapshots, while much is written. */
  images: {
    name: "images",
    nodes: [3],
    faults: ["away"],
    hasAllFaults: true,
    thinkMs: [10, 30],
    clients: [12],
    host: {
      ...{ initialPartitions: 1, compactEveryEntries: 20, compactKeepEntries: 5 },
      ...{ flushAgeMs: 500, flushRows: 200, unflushedRowsMax: 1000 },
      snapshots: { ...DEFAULT_SNAPSHOT_SETTINGS, chunkBytes: 4000, windowChunks: 4 },
    },
    ticks: 40_000,
    segmentBytes: 64 << 10,
    faultEveryMs: [4000],
    work: { ...LARGE_WORK, largeValues: 120, largeBytes: 3000 },
    operations: WRITERS,
    keys: 400,
    needs: { "fault away": 3, "snapshots installed": 3 },
    snapshotsMax: 2,
  },
  /** One bucket of thousands of dead rows, and many who read it at once. */
  tombs: {
    name: "tombs",
    nodes: [1, 3, 3, 5],
    // A node that takes its time has other things come in between two slices of a read.
    faults: [...ALL_FAULTS, ...SLOWNESS],
    thinkMs: [100, 300],
    clients: [5, 8],
    host: {
      ...{ queuedCommandsMax: 2048, batchEntriesMax: 256, inFlightEntriesMax: 4 },
      snapshots: { ...DEFAULT_SNAPSHOT_SETTINGS, chunkBytes: 4000, windowChunks: 4 },
    },
    ticks: 8000,
    faultEveryMs: [500, 2000],
    operations: {
      ...READERS,
      churn: 8,
      ends: 6,
      set: 3,
      get: 3,
      "kv-delete": 2,
      "set-expiring": 1,
      lock: 1,
    },
    keys: 3000,
    visitMs: 0.0025,
    needs: {
      "a turn reads few rows: dead rows": 50_000,
      "a turn reads few rows: full turns": 20,
      "a turn reads few rows: turns with several readers": 10,
      "fault slow": 1,
    },
  },
  /** Leaders change every second or two while leases of a minute run. */
  hasty: {
    name: "hasty",
    nodes: [3, 5],
    faults: ["kill-leader", "strand-leader", "pause-leader", "isolate"],
    hasAllFaults: true,
    thinkMs: [300, 1000],
    clients: [4],
    host: { heartbeatMs: 100, electionMs: 500 },
    ticks: 90_000,
    faultEveryMs: [800, 2000],
    operations: {
      lock: 4,
      extend: 2,
      unlock: 1,
      "get-lock": 6,
      "set-expiring": 3,
      get: 4,
      create: 1,
    },
    needs: { "fault kill-leader": 3, "fault strand-leader": 3 },
  },
  /**
   * What no connection brings comes over the links: bytes that no node sends, and frames once more.
   */
  rude: {
    name: "rude",
    nodes: [3],
    faults: [
      "garbage",
      "garbage",
      "garbage",
      "replay",
      "replay",
      "replay",
      "link-break",
      "kill-leader",
    ],
    hasAllFaults: true,
    thinkMs: [100, 500],
    clients: [5],
    ticks: 20_000,
    faultEveryMs: [100, 300],
    needs: { "network garbage": 10, "network replayed": 10 },
  },
  /**
   * Founders lose their disks: a minority, whom one command heals each, or a majority, which ends
   * all grants.
   */
  wiped: {
    name: "wiped",
    nodes: [3, 5],
    faults: [
      ...LOSSES,
      "lose-majority",
      "kill",
      "kill-leader",
      "power-loss-all",
      "isolate",
      "link-break",
    ],
    hasAllFaults: true,
    losesMajorities: true,
    thinkMs: [100, 300],
    clients: [4],
    ticks: 30_000,
    faultEveryMs: [500, 1500],
    operations: GRANTS,
    needs: {
      ...{ "fault lose-disk": 1, "fault lose-majority": 1 },
      ...{ "losses nodes replaced": 1, "losses majorities": 1 },
    },
  },
  /**
   * Disks are put back as they were some restarts ago, and the nodes are restarted again and again.
   */
  "rolled-back": {
    name: "rolled-back",
    nodes: [3, 5],
    faults: [...ROLLBACKS, "kill", "kill", "kill-leader", "power-loss-all", "isolate"],
    hasAllFaults: true,
    thinkMs: [50, 200],
    clients: [4],
    ticks: 40_000,
    faultEveryMs: [500, 1500],
    operations: GRANTS,
    needs: {
      ...{ "fault roll-back": 1, "losses nodes replaced": 1 },
      "outdated disks have no say: lives refused": 2,
    },
  },
  /**
   * Nodes of two programs: they roll forward and back, join and leave, and somebody finalizes.
   */
  levels: {
    name: "levels",
    nodes: [1, 3, 3, 5],
    faults: [
      ...(["kill", "kill", "kill-leader", "power-loss", "crash-inside", "graceful-stop"] as const),
      ...(["isolate", "link-break", "pause", "power-loss-all", "disk-slow", "disk-full"] as const),
    ],
    thinkMs: [50, 200],
    clients: [3, 6],
    hasOperators: true,
    hasUpgrades: true,
    ticks: 30_000,
    faultEveryMs: [1000, 3000, 8000],
    operations: {
      lock: 4,
      extend: 4,
      unlock: 1,
      set: 3,
      "set-expiring": 3,
      "kv-extend": 4,
      get: 3,
      create: 1,
      next: 2,
    },
    needs: {
      ...{ "fault roll-forward": 3, "fault roll-to-former": 1, "fault finalize": 1 },
      ...{ "upgrades finalized": 1, "upgrades refused": 1, "upgrades heldUp": 1 },
    },
  },
  calm: { name: "calm", nodes: [1], faults: [], thinkMs: [100], clients: [4] },
};
