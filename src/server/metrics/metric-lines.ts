/**
 * The metrics that are read from the running node at each scrape: per group, per peer, per node.
 *
 * Invariants: 1. Reading changes nothing. 2. Every series has its TYPE line before its samples.
 */
import type { ConnectionCount } from "../../base/connections.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { ReplicationFacts } from "../../control/placement.js";
import type { GroupFacts, NodeFacts, PlacementFacts } from "../../host/requests/results.js";

type GroupSeries = readonly [name: string, type: string, read: (facts: GroupFacts) => number];

const PER_GROUP: readonly GroupSeries[] = [
  ["svc_raft_is_leader", "gauge", (facts) => (facts.leading ? 1 : 0)],
  ["svc_raft_leader_node", "gauge", (facts) => facts.leaderNode],
  ["svc_raft_asleep", "gauge", (facts) => (facts.quiesced ? 1 : 0)],
  ["svc_raft_term", "gauge", (facts) => facts.term],
  ["svc_raft_last_index", "gauge", (facts) => facts.lastIndex],
  ["svc_raft_commit_index", "gauge", (facts) => facts.commitIndex],
  ["svc_raft_applied_index", "gauge", (facts) => facts.appliedIndex],
  ["svc_raft_flushed_index", "gauge", (facts) => facts.flushedIndex],
  ["svc_raft_commit_lag_entries", "gauge", (facts) => facts.lastIndex - facts.commitIndex],
  ["svc_raft_apply_lag_entries", "gauge", (facts) => facts.commitIndex - facts.appliedIndex],
  ["svc_raft_pending_proposals", "gauge", (facts) => facts.pendingProposals],
  ["svc_raft_inflight_entries", "gauge", (facts) => facts.inFlightEntries],
  ["svc_raft_queued_commands", "gauge", (facts) => facts.queuedCommands],
  ["svc_raft_waiting_reads", "gauge", (facts) => facts.waitingReads],
];

/** Per partition, and per partition and peer where this node leads. */
export function groupLines(lines: string[], groups: readonly GroupFacts[]): void {
  for (const [name, type, read] of PER_GROUP) {
    lines.push(`# TYPE ${name} ${type}`);
    for (const facts of groups)
      lines.push(`${name}{partition="${facts.partition}"} ${read(facts)}`);
  }
  peerSeries(lines, groups, "svc_raft_peer_lag_entries", (peer) => peer.lagEntries);
  peerSeries(lines, groups, "svc_raft_peer_inflight_appends", (peer) => peer.inFlight);
  lines.push("# TYPE svc_raft_peer_state gauge");
  for (const { partition, peers } of groups) {
    for (const { node, state } of peers) {
      lines.push(`svc_raft_peer_state{partition="${partition}",peer="${node}",state="${state}"} 1`);
    }
  }
}

function peerSeries(
  lines: string[],
  groups: readonly GroupFacts[],
  name: string,
  read: (peer: GroupFacts["peers"][number]) => number,
): void {
  lines.push(`# TYPE ${name} gauge`);
  for (const { partition, peers } of groups) {
    for (const peer of peers) {
      lines.push(`${name}{partition="${partition}",peer="${peer.node}"} ${read(peer)}`);
    }
  }
}

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
  const waiting = "svc_unsent_answer_bytes";
  family(lines, waiting, "gauge", "Bytes of answers that wait for clients to read them");
  lines.push(`${waiting} ${unsent.bytes}`);
}

/** Per node, and per peer of it. */
export function nodeLines(lines: string[], node: NodeFacts): void {
  scalar(lines, "svc_queued_bytes", "gauge", node.queuedBytes);
  scalar(lines, "svc_unflushed_bytes", "gauge", node.unflushedBytes);
  scalar(lines, "svc_wal_size_bytes", "gauge", node.logBytes);
  scalar(lines, "svc_wal_full", "gauge", node.logFull ? 1 : 0);
  scalar(lines, "svc_store_size_bytes", "gauge", node.storeBytes);
  scalar(lines, "svc_store_full", "gauge", node.storeFull ? 1 : 0);
  scalar(lines, "svc_apply_held_partitions", "gauge", node.heldGroups);
  scalar(lines, "svc_wal_cuts_total", "counter", node.logCuts);
  backupLogLines(lines, node.backupLog);
  scalar(lines, "svc_wal_unwritten_bytes", "gauge", node.unwrittenBytes);
  scalar(lines, "svc_raft_refused_appends_total", "counter", node.refusedAppends);
  scalar(lines, "svc_late_ticks_total", "counter", node.lateTicks);
  scalar(lines, "svc_raft_stuck_handovers_total", "counter", node.diskStallTransfers);
  scalar(lines, "svc_peer_sent_frames_total", "counter", node.sentFrames);
  scalar(lines, "svc_peer_sent_bytes_total", "counter", node.sentFrameBytes);
  scalar(lines, "svc_peer_dropped_frames_total", "counter", node.droppedFrames);
  scalar(lines, "svc_peer_oversized_messages_total", "counter", node.oversizedMessages);
  scalar(lines, "svc_peer_bad_items_total", "counter", node.badItems);
  family(lines, "svc_replica_drops_total", "counter", "Replicas that left this node for good");
  lines.push(`svc_replica_drops_total ${node.replicaDrops}`);
  placementLines(lines, node.placement);
  travelLines(lines, node);
  const strays = "svc_stray_frames_total";
  family(lines, strays, "counter", "Messages for no replica of this node, by reason");
  for (const [reason, count] of Object.entries(node.strays)) {
    lines.push(`${strays}{reason="${reason}"} ${count}`);
  }
  const { level, levelMax, pendingMs } = node.levels;
  const feature = "svc_feature_level";
  family(lines, feature, "gauge", "Level of the cluster; 0 while it is not known");
  lines.push(`${feature} ${level}`);
  family(lines, `${feature}_max`, "gauge", "Highest level that every member supports");
  lines.push(`${feature}_max ${levelMax}`);
  const pending = "svc_finalization_pending_seconds";
  const meaning = "Time for which a higher level has been possible, as seen since the start";
  family(lines, pending, "gauge", meaning);
  lines.push(`${pending} ${pendingMs / 1000}`);
  lines.push("# TYPE svc_peer_linked gauge");
  for (const peer of node.peers) {
    lines.push(`svc_peer_linked{peer="${peer.node}"} ${peer.linked ? 1 : 0}`);
  }
  lines.push("# TYPE svc_snapshots_total counter");
  lines.push(`svc_snapshots_total{direction="sent",result="installed"} ${node.snapshotsDelivered}`);
  lines.push(
    `svc_snapshots_total{direction="received",result="installed"} ${node.snapshotsInstalled}`,
  );
  lines.push("# TYPE svc_snapshot_transfer_chunks gauge");
  for (const { partition, peer, direction, chunks } of node.transfers) {
    const labels = `partition="${partition}",peer="${peer}",direction="${direction}"`;
    lines.push(`svc_snapshot_transfer_chunks{${labels}} ${chunks}`);
  }
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

export function family(lines: string[], name: string, type: string, help: string): void {
  lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`);
}

export function scalar(lines: string[], name: string, type: string, value: number): void {
  lines.push(`# TYPE ${name} ${type}`, `${name} ${value}`);
}
