/**
 * The metrics of partitions: a series for each where there are few, the sums of all always.
 *
 * Invariants: 1. Reading changes nothing. 2. With more than PARTITIONS_MAX partitions only those
 * that are out of order have series of their own, SHOWN_MAX at most, and the sums say how many
 * there are. 3. No step looks at more than one partition, or writes more than one family.
 */
import type { PartitionId } from "../../base/ids.js";
import type { GroupFacts } from "../../host/requests/results.js";
import { type FamilyType, family, scalar } from "./exposition.js";

/** Up to so many partitions each has its series. */
const PARTITIONS_MAX = 256;
const SHOWN_MAX = 64;
/** Behind by more than this, a replica is out of order (entries). */
const LAG_MAX_ENTRIES = 1000;

/** How a replica of this node stands. */
const STATES = ["serving", "following", "catching-up", "leaderless"] as const;
type State = (typeof STATES)[number];

type GroupSeries = readonly [
  name: string,
  type: FamilyType,
  help: string,
  read: (facts: GroupFacts) => number,
];

const PER_GROUP: readonly GroupSeries[] = [
  ["svc_raft_is_leader", "gauge", "1 where this node leads", (facts) => (facts.leading ? 1 : 0)],
  ["svc_raft_leader_node", "gauge", "Who leads; 0 = not known", (facts) => facts.leaderNode],
  [
    "svc_raft_asleep",
    "gauge",
    "1 while the partition sends no heartbeats",
    (facts) => (facts.quiesced ? 1 : 0),
  ],
  ["svc_raft_term", "gauge", "Term", (facts) => facts.term],
  ["svc_raft_last_index", "gauge", "Last entry of the log", (facts) => facts.lastIndex],
  ["svc_raft_commit_index", "gauge", "Last committed entry", (facts) => facts.commitIndex],
  ["svc_raft_applied_index", "gauge", "Last applied entry", (facts) => facts.appliedIndex],
  [
    "svc_raft_flushed_index",
    "gauge",
    "Last entry whose changes are in the state store",
    (facts) => facts.flushedIndex,
  ],
  [
    "svc_raft_commit_lag_entries",
    "gauge",
    "Entries that are not committed",
    (facts) => facts.lastIndex - facts.commitIndex,
  ],
  [
    "svc_raft_apply_lag_entries",
    "gauge",
    "Committed entries that are not applied",
    (facts) => applyLag(facts),
  ],
  [
    "svc_raft_pending_proposals",
    "gauge",
    "Commands proposed and not answered",
    (facts) => facts.pendingProposals,
  ],
  [
    "svc_raft_inflight_entries",
    "gauge",
    "Entries with commands of this node on their way",
    (facts) => facts.inFlightEntries,
  ],
  [
    "svc_raft_queued_commands",
    "gauge",
    "Commands that wait for an entry",
    (facts) => facts.queuedCommands,
  ],
  [
    "svc_raft_waiting_reads",
    "gauge",
    "Reads that wait for the proof of leadership",
    (facts) => facts.waitingReads,
  ],
];

function applyLag(facts: GroupFacts): number {
  return facts.commitIndex - facts.appliedIndex;
}

function stateOf({ leading, serving, leaderNode, caughtUp }: GroupFacts): State {
  if (leading) return serving ? "serving" : "catching-up";
  if (leaderNode === 0) return "leaderless";
  return caughtUp ? "following" : "catching-up";
}

function isOutOfOrder(facts: GroupFacts): boolean {
  const state = stateOf(facts);
  return (
    state === "leaderless" ||
    state === "catching-up" ||
    applyLag(facts) > LAG_MAX_ENTRIES ||
    facts.peers.some((peer) => peer.state === "snapshot" || peer.lagEntries > LAG_MAX_ENTRIES)
  );
}

/** What is known of all partitions together. */
class Sums {
  readonly states: Record<State, number> = {
    serving: 0,
    following: 0,
    "catching-up": 0,
    leaderless: 0,
  };
  leading = 0;
  asleep = 0;
  applyLagMax = 0;

  add(facts: GroupFacts): void {
    this.states[stateOf(facts)]++;
    if (facts.leading) this.leading++;
    if (facts.quiesced) this.asleep++;
    this.applyLagMax = Math.max(this.applyLagMax, applyLag(facts));
  }
}

function sumLines(lines: string[], sums: Sums): void {
  const name = "svc_partitions";
  family(lines, name, "gauge", "Replicas of this node, by how they stand");
  for (const state of STATES) lines.push(`${name}{state="${state}"} ${sums.states[state]}`);
  scalar(lines, `${name}_leading`, "gauge", "Partitions that this node leads", sums.leading);
  const leaderless = "Replicas of this node that know no leader";
  scalar(lines, `${name}_without_leader`, "gauge", leaderless, sums.states.leaderless);
  scalar(lines, `${name}_asleep`, "gauge", "Replicas of this node that are asleep", sums.asleep);
  const lag = "Committed entries that are not applied, where they are most";
  scalar(lines, "svc_apply_lag_entries_max", "gauge", lag, sums.applyLagMax);
}

function peerLines(
  lines: string[],
  groups: readonly GroupFacts[],
  [name, help]: readonly [name: string, help: string],
  read: (peer: GroupFacts["peers"][number]) => number,
): void {
  family(lines, name, "gauge", help);
  for (const { partition, peers } of groups) {
    for (const peer of peers) {
      lines.push(`${name}{partition="${partition}",peer="${peer.node}"} ${read(peer)}`);
    }
  }
}

function stateLines(lines: string[], groups: readonly GroupFacts[]): void {
  const name = "svc_raft_peer_state";
  family(lines, name, "gauge", "Constant 1, labelled with how the leader sends to the peer");
  for (const { partition, peers } of groups) {
    for (const { node, state } of peers) {
      lines.push(`${name}{partition="${partition}",peer="${node}",state="${state}"} 1`);
    }
  }
}

/** `leaderChanges`: of each partition that had one. */
export function* groupLines(
  lines: string[],
  groups: Iterable<GroupFacts>,
  leaderChanges: ReadonlyMap<PartitionId, number>,
): Generator<void> {
  const sums = new Sums();
  const all: GroupFacts[] = [];
  const odd: GroupFacts[] = [];
  let count = 0;
  for (const facts of groups) {
    count++;
    sums.add(facts);
    if (count <= PARTITIONS_MAX) all.push(facts);
    if (odd.length < SHOWN_MAX && isOutOfOrder(facts)) odd.push(facts);
    yield;
  }
  sumLines(lines, sums);
  const shown = count <= PARTITIONS_MAX ? all : odd;
  for (const [name, type, help, read] of PER_GROUP) {
    family(lines, name, type, help);
    for (const facts of shown) {
      lines.push(`${name}{partition="${facts.partition}"} ${read(facts)}`);
    }
    yield;
  }
  const changes = "svc_raft_leader_changes_total";
  family(lines, changes, "counter", "Times this node saw a new leader of the partition");
  for (const { partition } of shown) {
    const times = leaderChanges.get(partition);
    if (times !== undefined) lines.push(`${changes}{partition="${partition}"} ${times}`);
  }
  yield;
  const lag = ["svc_raft_peer_lag_entries", "Entries that the peer is not known to have"] as const;
  peerLines(lines, shown, lag, (peer) => peer.lagEntries);
  yield;
  const open = ["svc_raft_peer_inflight_appends", "Appends on their way to the peer"] as const;
  peerLines(lines, shown, open, (peer) => peer.inFlight);
  yield;
  stateLines(lines, shown);
}
