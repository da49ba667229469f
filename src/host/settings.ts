/**
 * The settings of the host and the ports that it runs on. Parsed, checked and frozen by the server
 * before they come here.
 *
 * Invariants: 1. Nothing here changes after the node was opened. 2. No setting reaches apply:
 * whatever an outcome depends on travels inside its command. 3. Relations between settings are
 * asserted at open.
 */
import { assert } from "../base/assert.js";
import { PERMITS, PROGRAM, type Permits, type Program, assertRange } from "../base/levels.js";
import { ENTRY_PAYLOAD_MAX_BYTES, NODE_ID_MAX, PARTITIONS_MAX } from "../base/limits.js";
import type { EntrySorter } from "../machine/store/row-table.js";
import type {
  ClockPort,
  DiskPort,
  EntropyPort,
  FatalPort,
  Founder,
  LevelPort,
  LoadPort,
  LogPort,
  LoggerPort,
  MeterPort,
  PeerPort,
  PeerStorage,
  StorePort,
  TimerPort,
} from "../ports.js";
import { type CoreConfig, defaultConfig } from "../raft/state/config.js";
import { DEFAULT_SNAPSHOT_SETTINGS, type SnapshotSettings } from "./snapshots/snapshot-limits.js";

/** When key ranges are split and merged by themselves, while this node leads the meta partition. */
export interface RangeSettings {
  /** Live keys from which on a range is split; 0 = never. */
  readonly splitThreshold: number;
  /** Ranges with fewer are not split. */
  readonly splitMinSize: number;
  /** Neighbours with fewer together are merged; 0 = never. */
  readonly mergeMinSize: number;
  /** Pause between two looks at all ranges (ms). */
  readonly collectionEveryMs: number;
}

export interface HostPorts {
  readonly clock: ClockPort;
  readonly timer: TimerPort;
  readonly log: LogPort;
  readonly store: StorePort;
  /** Absent where nobody asks the system. */
  readonly disk?: DiskPort;
  /** Absent where nothing of the node outlives it. */
  readonly level?: LevelPort;
  readonly entropy: EntropyPort;
  readonly logger: LoggerPort;
  readonly fatal: FatalPort;
  readonly meter: MeterPort;
  /** Absent where nobody measures. */
  readonly load?: LoadPort;
  /** The other nodes; absent on a node without a network. */
  readonly peers?: PeerPort;
  /** Sorts rows before a flush; plain sorting when absent. */
  readonly sorter?: EntrySorter;
}

export interface HostSettings {
  readonly nodeId: number;
  /** Advertised peer endpoint, host:port, as the member list lists it; "" = without a network. */
  readonly endpoint: string;
  /** What handshakes check; made with the data directory, or learned from the cluster joined. */
  readonly clusterId: string;
  /** Made with the data directory. */
  readonly storageId: string;
  readonly storage: PeerStorage;
  /** What this node supports, whatever build it is. */
  readonly program: Program;
  /** Since which level what is permitted. */
  readonly permits: Permits;
  /**
   * Level at which the cluster is founded, or stood when it took this node in: for a directory that
   * belongs to none yet.
   */
  readonly entryLevel: number;
  /** The level is raised by itself when all members have supported it for so long; null = never. */
  readonly autoFinalizeMs: number | null;
  /**
   * The nodes that the cluster is founded with, for a directory that belongs to none yet: this one
   * among them, unless it joined. Of a joiner the ids count, its member list brings the addresses.
   */
  readonly founders: readonly Founder[];
  /**
   * The directory was made by a restore, and no node was started on it yet: it has groups, and this
   * node alone makes a cluster of them.
   */
  readonly adopts?: boolean;
  /** Data partitions when a cluster is founded here; ignored once a member list is stored. */
  readonly initialPartitions: number;
  /** Of a cluster that is founded here: replicas of each data partition; 0 = every voter. */
  readonly replicationFactor: number;
  /** The one that this node was started with; null when none was given. */
  readonly givenReplicationFactor: number | null;
  /**
   * While this node leads the meta partition, replicas are moved toward the factors; null = if the
   * factor of the cluster is not 0.
   */
  readonly rebalancerEnabled: boolean | null;
  /** Pause between two passes of that. */
  readonly placementPassEveryMs: number;
  /** When key ranges are split and merged by themselves. */
  readonly ranges: RangeSettings;
  /** Silence after which the replicas of a member are replaced; 0 = never by itself. */
  readonly deadMemberMs: number;
  /** Length of a raft tick: the heartbeat interval. */
  readonly heartbeatMs: number;
  /** Shortest election timeout. */
  readonly electionMs: number;
  /** Longest one: each is drawn in between. */
  readonly electionEndMs: number;
  /** A group that was idle for so long stops its heartbeats; 0 = never. */
  readonly quiesceAfterMs: number;
  /** Pause between looks at how leaderships are spread; 0 = they stay where they are. */
  readonly leaderBalanceEveryMs: number;
  /** Commands per entry, at most. */
  readonly batchEntriesMax: number;
  /** Bytes of commands per entry; a larger command travels alone. */
  readonly batchBytesMax: number;
  /** Extra wait to fill a batch. */
  readonly lingerMs: number;
  /** Queued commands per group, then "overloaded". */
  readonly queuedCommandsMax: number;
  readonly queuedBytesMax: number;
  /** Queued and unapplied command bytes of all groups of the node, then "overloaded". */
  readonly nodeQueuedBytesMax: number;
  /** Entries of one group that are proposed and not yet applied. */
  readonly inFlightEntriesMax: number;
  /** New entries of one group kept in memory for followers and apply (bytes). */
  readonly entryCacheBytesMax: number;
  /** The same, over all groups. */
  readonly nodeCacheBytesMax: number;
  /** Reads that wait in one group, then "retry". */
  readonly waitingReadsMax: number;
  /** Flush a group after so many entries since its last flush. */
  readonly compactEveryEntries: number;
  /** Replicas compare what they are at every multiple of this log index (C14). */
  readonly digestEveryEntries: number;
  readonly compactEveryBytes: number;
  /** Entries kept in the log behind the flushed index. */
  readonly compactKeepEntries: number;
  /** Oldest age of an unflushed change before a flush is due. */
  readonly flushAgeMs: number;
  /** Size of the unflushed table at which a flush is due. */
  readonly flushBytes: number;
  /**
   * Rows in it at which a flush is due. Handing over a row costs the loop some microseconds: this
   * bounds the stall, and small flushes were also faster in all (2,000 rows: about 10 ms).
   */
  readonly flushRows: number;
  /**
   * Unflushed bytes of the node, immutable table included, then intake is refused until a flush is
   * through.
   */
  readonly unflushedBytesMax: number;
  /**
   * Rows that may gather behind a flush that is under way, then intake waits for it: what the next
   * flush hands over in one go stalls the loop (about 8 microseconds a row).
   */
  readonly unflushedRowsMax: number;
  /**
   * What the log keeps of all groups for other nodes that lag, before it is cut and they get
   * snapshots; more where snapshots are large (bytes).
   */
  readonly logKeepBytesMax: number;
  /** The log stays for incremental backups for so long; 0 = they are not configured. */
  readonly pitrWindowMs: number;
  /** What the state store may grow to; 0 = no bound is known (bytes). */
  readonly storeMaxBytes: number;
  /** Entries handed to the log and not durable, of all groups, then appends are refused (bytes). */
  readonly unwrittenBytesMax: number;
  /** Pause before a flush that met a full store is tried again. */
  readonly flushRetryMs: number;
  /** Commands applied in one turn by one group before the loop is given back. */
  readonly applySliceCommands: number;
  /** Time that one turn may spend on applying (ms). */
  readonly applySliceMs: number;
  /** Bounds of the snapshots that go from node to node. */
  readonly snapshots: SnapshotSettings;
  readonly lockRecordRetentionMs: number;
  /** 0 = tombstones are kept for ever. */
  readonly tombstoneRetentionMs: number;
  /** Pause between looks for rows past their retention. */
  readonly collectEveryMs: number;
  /** Rows that one collect command drops at most. */
  readonly collectLimit: number;
  /** Bound of the ephemeral table of one group. */
  readonly ephemeralBytesMax: number;
}

/** Settings that no flag sets. */
export const FIXED_HOST_SETTINGS = {
  program: PROGRAM,
  permits: PERMITS,
  nodeQueuedBytesMax: 256 << 20,
  inFlightEntriesMax: 4,
  entryCacheBytesMax: 8 << 20,
  nodeCacheBytesMax: 128 << 20,
  waitingReadsMax: 65_536,
  digestEveryEntries: 4096,
  flushAgeMs: 30_000,
  flushBytes: 32 << 20,
  flushRows: 2000,
  unflushedBytesMax: 256 << 20,
  unflushedRowsMax: 10_000,
  logKeepBytesMax: 1 << 30,
  pitrWindowMs: 0,
  storeMaxBytes: 0,
  unwrittenBytesMax: 128 << 20,
  flushRetryMs: 1000,
  applySliceCommands: 4096,
  applySliceMs: 5,
  snapshots: DEFAULT_SNAPSHOT_SETTINGS,
  collectEveryMs: 10_000,
  collectLimit: 256,
  ephemeralBytesMax: 32 << 20,
} as const satisfies Partial<HostSettings>;

/** Throws AssertionError unless the settings are whole numbers in range that fit together. */
export function assertSettings(settings: HostSettings): void {
  assert(settings.nodeId >= 1 && settings.nodeId <= NODE_ID_MAX, "the node id is 1 to 65535");
  assertRange(settings.program.levels);
  assertRange(settings.program.protocols);
  const partitions = settings.initialPartitions;
  assert(
    partitions >= 1 && partitions <= PARTITIONS_MAX,
    `there are 1 to ${PARTITIONS_MAX} data partitions`,
  );
  for (const [name, value] of Object.entries(settings)) {
    if (typeof value !== "number" || name === "applySliceMs") continue;
    assert(Number.isSafeInteger(value) && value >= 0, `${name} is a whole number, not ${value}`);
  }
  for (const name of ["batchEntriesMax", "batchBytesMax", "inFlightEntriesMax"] as const) {
    assert(settings[name] >= 1, `${name} is at least 1`);
  }
  assert(settings.electionMs >= 5 * settings.heartbeatMs, "an election takes 5 heartbeats or more");
  assert(settings.heartbeatMs >= 1, "a heartbeat interval is at least 1 ms");
  assert(settings.batchEntriesMax <= settings.queuedCommandsMax, "a queue holds a full batch");
  assert(settings.batchBytesMax <= ENTRY_PAYLOAD_MAX_BYTES, "a full batch fits one entry");
  assert(settings.flushBytes <= settings.unflushedBytesMax, "a flush is due before intake pauses");
  assert(settings.flushRows <= settings.unflushedRowsMax, "a flush is due before intake pauses");
  assert(settings.applySliceMs > 0 && settings.applySliceCommands > 0, "a slice does something");
}

/**
 * The settings of a group's core: durations become ticks, and a tick is a heartbeat interval.
 * `seed` differs by node and group, so that timeouts do (P-007).
 */
export function raftSettings(settings: HostSettings, seed: number): CoreConfig {
  const { nodeId, heartbeatMs, electionMs, electionEndMs, waitingReadsMax } = settings;
  return {
    ...defaultConfig(nodeId, seed),
    electionTicks: Math.ceil(electionMs / heartbeatMs),
    electionSpreadTicks: Math.ceil(Math.max(1, electionEndMs - electionMs) / heartbeatMs),
    maxPendingReads: Math.max(2, waitingReadsMax),
  };
}
