/**
 * The metrics that are read from the running node at each scrape: per peer, per node.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its TYPE line before its samples.
 */
import type { ConnectionCount } from "../../base/connections.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { ReplicationFacts } from "../../control/placement.js";
import type { NodeFacts, PlacementFacts } from "../../host/requests/results.js";
import { takingLines } from "./backup-lines.js";
import { type FamilyType, family, scalar } from "./exposition.js";

/** What is counted of connections. */
export interface FrontFacts {
  readonly connections: ConnectionCount;
  readonly unsent: UnsentBytes;
  readonly refusedPeers: { readonly otherIdentities: number; readonly unproven: number };
}

/** What clients hold of this node, and who was turned away. */
export function frontLines(
  lines: string[],
  { connections, unsent, refusedPeers }: FrontFacts,
): void {
  family(lines, "svc_connections", "gauge", "Open client connections");
  for (const [listener, open] of Object.entries(connections.open)) {
    lines.push(`svc_connections{listener="${listener}"} ${open}`);
  }
  const refused = "svc_connections_refused_total";
  family(lines, refused, "counter", "Connections turned away");
  lines.push(`${refused}{reason="limit"} ${connections.refused}`);
  lines.push(`${refused}{reason="resets"} ${connections.endedByResets}`);
  lines.push(`${refused}{reason="other-identity"} ${refusedPeers.otherIdentities}`);
  lines.push(`${refused}{reason="unproven"} ${refusedPeers.unproven}`);
  const moved = "svc_client_bytes_total";
  family(lines, moved, "counter", "Bytes from and to clients, as they travel");
  for (const [direction, bytes] of Object.entries(connections.bytesMoved())) {
    lines.push(`${moved}{direction="${direction}"} ${bytes}`);
  }
  const waiting = "svc_unsent_answer_bytes";
  family(lines, waiting, "gauge", "Bytes of answers that wait for clients to read them");
  lines.push(`${waiting} ${unsent.bytes}`);
}

type NodeSeries = readonly [
  name: string,
  type: FamilyType,
  help: string,
  read: (node: NodeFacts) => number,
];

const PER_NODE: readonly NodeSeries[] = [
  [
    "svc_queued_bytes",
    "gauge",
    "Bytes of commands that wait for an entry or its outcome",
    (node) => node.queuedBytes,
  ],
  [
    "svc_unflushed_bytes",
    "gauge",
    "Bytes of changes that are in the log and in memory, not in the state store",
    (node) => node.unflushedBytes,
  ],
  ["svc_wal_size_bytes", "gauge", "Bytes of all segments of the log", (node) => node.logBytes],
  [
    "svc_wal_full",
    "gauge",
    "1 while the disk of the log is full",
    (node) => (node.logFull ? 1 : 0),
  ],
  [
    "svc_store_size_bytes",
    "gauge",
    "Bytes of the file of the state store",
    (node) => node.storeBytes,
  ],
  [
    "svc_store_full",
    "gauge",
    "1 while the state store is full",
    (node) => (node.storeFull ? 1 : 0),
  ],
  [
    "svc_apply_held_partitions",
    "gauge",
    "Partitions that apply nothing until the state store has taken what is in memory",
    (node) => node.heldGroups,
  ],
  [
    "svc_wal_cuts_total",
    "counter",
    "Times that log was deleted although another node wanted it",
    (node) => node.logCuts,
  ],
  [
    "svc_wal_unwritten_bytes",
    "gauge",
    "Bytes of entries handed to the log that are not durable",
    (node) => node.unwrittenBytes,
  ],
  [
    "svc_raft_refused_appends_total",
    "counter",
    "Appends refused because too much waits for the log",
    (node) => node.refusedAppends,
  ],
  [
    "svc_late_ticks_total",
    "counter",
    "Gaps between ticks that were longer than an election timeout",
    (node) => node.lateTicks,
  ],
  [
    "svc_raft_stuck_handovers_total",
    "counter",
    "Leaderships offered to others because the disk hung",
    (node) => node.diskStallTransfers,
  ],
  [
    "svc_peer_sent_frames_total",
    "counter",
    "Frames sent to other nodes",
    (node) => node.sentFrames,
  ],
  ["svc_peer_sent_bytes_total", "counter", "Bytes of those frames", (node) => node.sentFrameBytes],
  [
    "svc_peer_dropped_frames_total",
    "counter",
    "Frames to other nodes dropped for want of room or a link",
    (node) => node.droppedFrames,
  ],
  [
    "svc_peer_oversized_messages_total",
    "counter",
    "Messages to other nodes dropped because no frame may be so large",
    (node) => node.oversizedMessages,
  ],
  [
    "svc_peer_bad_items_total",
    "counter",
    "Frames and items of other nodes that could not be read",
    (node) => node.badItems,
  ],
];

/** Per node, and per peer of it. */
export function nodeLines(lines: string[], node: NodeFacts): void {
  for (const [name, type, help, read] of PER_NODE) scalar(lines, name, type, help, read(node));
  backupLogLines(lines, node.backupLog);
  takingLines(lines, node.backups);
  family(lines, "svc_replica_drops_total", "counter", "Replicas that left this node for good");
  lines.push(`svc_replica_drops_total ${node.replicaDrops}`);
  placementLines(lines, node.placement);
  travelLines(lines, node);
  const strays = "svc_stray_frames_total";
  family(lines, strays, "counter", "Messages for no replica of this node, by reason");
  for (const [reason, count] of Object.entries(node.strays)) {
    lines.push(`${strays}{reason="${reason}"} ${count}`);
  }
  levelLines(lines, node.levels);
  family(lines, "svc_peer_linked", "gauge", "1 while messages reach the other node");
  for (const peer of node.peers) {
    lines.push(`svc_peer_linked{peer="${peer.node}"} ${peer.linked ? 1 : 0}`);
  }
  family(lines, "svc_snapshots_total", "counter", "Snapshots that travelled, by how it ended");
  lines.push(`svc_snapshots_total{direction="sent",result="installed"} ${node.snapshotsDelivered}`);
  lines.push(`svc_snapshots_total{direction="sent",result="failed"} ${node.snapshotsFailed}`);
  lines.push(`svc_snapshots_total{direction="sent",result="aborted"} ${node.snapshotsAborted}`);
  const received = 'svc_snapshots_total{direction="received"';
  lines.push(`${received},result="installed"} ${node.snapshotsInstalled}`);
  lines.push(`${received},result="failed"} ${node.arrivalsFailed}`);
  lines.push(`${received},result="aborted"} ${node.arrivalsAborted}`);
  family(lines, "svc_snapshot_transfer_chunks", "gauge", "Chunks taken of snapshots on their way");
  for (const { partition, peer, direction, chunks } of node.transfers) {
    const labels = `partition="${partition}",peer="${peer}",direction="${direction}"`;
    lines.push(`svc_snapshot_transfer_chunks{${labels}} ${chunks}`);
  }
}

function levelLines(lines: string[], { level, levelMax, pendingMs }: NodeFacts["levels"]): void {
  const feature = "svc_feature_level";
  family(lines, feature, "gauge", "Level of the cluster; 0 while it is not known");
  lines.push(`${feature} ${level}`);
  family(lines, `${feature}_max`, "gauge", "Highest level that every member supports");
  lines.push(`${feature}_max ${levelMax}`);
  const pending = "svc_finalization_pending_seconds";
  const meaning = "Time for which a higher level has been possible, as seen since the start";
  family(lines, pending, "gauge", meaning);
  lines.push(`${pending} ${pendingMs / 1000}`);
}

/** What the log keeps for backups. */
function backupLogLines(lines: string[], facts: NodeFacts["backupLog"]): void {
  const kept = "Bytes of the log that would be gone without";
  family(lines, "svc_backup_holds", "gauge", "Logs of partitions that running backups hold here");
  lines.push(`svc_backup_holds ${facts.holds}`);
  family(lines, "svc_backup_hold_bytes", "gauge", `${kept} them`);
  lines.push(`svc_backup_hold_bytes ${facts.holdBytes}`);
  family(lines, "svc_pitr_log_bytes", "gauge", `${kept} --pitr-window`);
  lines.push(`svc_pitr_log_bytes ${facts.windowBytes}`);
  const lost = "svc_pitr_windows_lost_total";
  family(lines, lost, "counter", "Partitions whose window was given up for want of room");
  lines.push(`${lost} ${facts.windowsLost}`);
}

/** Leaderships and snapshots that went from node to node. */
export function travelLines(
  lines: string[],
  {
    leaderTransfers,
    snapshotBytes,
    plannedRates,
  }: Pick<NodeFacts, "leaderTransfers" | "snapshotBytes" | "plannedRates">,
): void {
  const transfers = "svc_leader_transfers_total";
  const ended = "Planned moves of leaderships that began here, by what for and how they ended";
  family(lines, transfers, "counter", ended);
  for (const { reason, result, count } of leaderTransfers) {
    lines.push(`${transfers}{reason="${reason}",result="${result}"} ${count}`);
  }
  const images = "svc_image_bytes_total";
  const travelled = "Bytes of snapshots that travelled, to learners and to voters that fell behind";
  family(lines, images, "counter", travelled);
  for (const { direction, class: kind, bytes } of snapshotBytes) {
    lines.push(`${images}{direction="${direction}",class="${kind}"} ${bytes}`);
  }
  const planned = "svc_image_planned_bytes_per_second";
  family(lines, planned, "gauge", "What snapshots for drain and balance may take here now");
  for (const { purpose, bytesPerSecond } of plannedRates) {
    lines.push(`${planned}{class="${purpose}"} ${bytesPerSecond}`);
  }
}

/** What the allocator does, where the meta partition is led. */
export function placementLines(lines: string[], facts: PlacementFacts): void {
  const moves = "svc_placement_moves_total";
  family(lines, moves, "counter", "Replicas that were ordered to come or go, by what for");
  for (const { class: kind, result, count } of facts.moves) {
    lines.push(`${moves}{class="${kind}",result="${result}"} ${count}`);
  }
  const passes = "svc_placement_passes_total";
  family(lines, passes, "counter", "Passes of the allocator on this node");
  for (const [result, count] of Object.entries(facts.passes)) {
    lines.push(`${passes}{result="${result}"} ${count}`);
  }
  const inFlight = "svc_placement_in_flight";
  family(lines, inFlight, "gauge", "Partitions with a replica on its way, by what for");
  for (const [kind, count] of facts.inFlight) lines.push(`${inFlight}{class="${kind}"} ${count}`);
  const oldest = "svc_placement_oldest_transition_seconds";
  family(lines, oldest, "gauge", "For so long the longest of them is on its way");
  lines.push(`${oldest} ${facts.oldestTransitionMs / 1000}`);
  const waiting = "svc_placement_waiting";
  family(
    lines,
    waiting,
    "gauge",
    "Partitions that wait, and balance, by reason; on the leader of meta",
  );
  for (const [reason, count] of facts.waiting) {
    lines.push(`${waiting}{reason="${reason}"} ${count}`);
  }
  const alarm = "svc_placement_idle_alarm";
  family(lines, alarm, "gauge", "1 when many passes in a row had work and moved nothing");
  lines.push(`${alarm} ${facts.isIdle ? 1 : 0}`);
}

/** Where replicas are missing, or too many, as this node sees it. */
export function replicationLines(lines: string[], facts: ReplicationFacts): void {
  const gauge = (name: string, help: string, value: number): void => {
    family(lines, name, "gauge", help);
    lines.push(`${name} ${value}`);
  };
  const { under, over, withoutMajority, moving, leavingReplicas } = facts;
  const all = [
    ["under_replicated", "Partitions with fewer live voters than their factor", under],
    ["over_replicated", "Partitions with more voters than their factor", over],
    ["without_majority", "Placed partitions without a majority of live voters", withoutMajority],
    ["moving", "Partitions in which a replica comes or goes", moving],
  ] as const;
  for (const [name, help, { length }] of all) gauge(`svc_partitions_${name}`, help, length);
  const leaving = "Replicas that are listed on members that leave";
  gauge("svc_drain_replicas_left", leaving, leavingReplicas);
}
