/**
 * What the tower tells as it happens, beside what is read: entries, commits, durable writes of the
 * log, elections, apply, rounds of reads, blocks of sequences, echoes of peers.
 *
 * Invariants: 1. Telling costs no allocation, but for the first echo of a peer. 2. How long a joint
 * configuration lasts is counted from the first scrape that saw it.
 */
import type { PartitionId } from "../../base/ids.js";
import type { GroupFacts } from "../../host/requests/results.js";
import { Distribution } from "../../host/requests/distribution.js";
import { family, histogramLines, scalar } from "./exposition.js";

/** Above this a durable write, and the apply of one partition in one turn, is slow (ms). */
const SLOW_MS = 100;
const SYNC_BOUNDS_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];
const BATCH_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const APPLY_BOUNDS_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5];
const ROUND_BOUNDS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const ECHO_BOUNDS_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 1];

export class Observed {
  readonly elections = { won: 0, lost: 0 };
  readonly blocks = { reserved: 0, returned: 0 };
  /** Reads per round. */
  readonly rounds = new Distribution(ROUND_BOUNDS);
  /** Commands per entry. */
  readonly batches = new Distribution(BATCH_BOUNDS);
  readonly commits = new Distribution(SYNC_BOUNDS_SECONDS);
  values = 0;
  grants = 0;
  private slowSyncs = 0;
  private readonly syncs = new Distribution(SYNC_BOUNDS_SECONDS);
  private readonly syncRecords = new Distribution(BATCH_BOUNDS);
  private writtenBytes = 0;
  private readonly applies = new Distribution(APPLY_BOUNDS_SECONDS);
  private slowApplies = 0;
  private readonly echoes = new Map<number, Distribution>();

  synced(durationMs: number, records: number, bytes: number): void {
    if (durationMs > SLOW_MS) this.slowSyncs++;
    this.syncs.observe(durationMs / 1000);
    this.syncRecords.observe(records);
    this.writtenBytes += bytes;
  }

  applied(durationMs: number): void {
    if (durationMs > SLOW_MS) this.slowApplies++;
    this.applies.observe(durationMs / 1000);
  }

  echoed(peer: number, durationMs: number): void {
    let echoes = this.echoes.get(peer);
    if (echoes === undefined) {
      this.echoes.set(peer, (echoes = new Distribution(ECHO_BOUNDS_SECONDS)));
    }
    echoes.observe(durationMs / 1000);
  }

  lines(lines: string[], jointMs: number): void {
    const { applies, rounds, elections, blocks } = this;
    this.entryLines(lines);
    const counter = (name: string, help: string, value: number): void =>
      scalar(lines, name, "counter", help, value);
    family(lines, "svc_elections_total", "counter", "Candidacies of this node, by how they ended");
    for (const [result, count] of Object.entries(elections)) {
      lines.push(`svc_elections_total{result="${result}"} ${count}`);
    }
    const joint = "Since scrapes first saw the oldest change of a configuration that goes on";
    scalar(lines, "svc_joint_age_seconds", "gauge", joint, jointMs / 1000);
    const apply = "svc_apply_duration_seconds";
    family(lines, apply, "histogram", "Apply of one partition in one turn");
    histogramLines(lines, apply, "", applies.bounds, applies.counts, applies.sum);
    counter("svc_apply_slow_total", "Of these, longer than 100 ms", this.slowApplies);
    const reads = "svc_reads_per_round";
    family(lines, reads, "histogram", "Reads that one proof of leadership served");
    histogramLines(lines, reads, "", rounds.bounds, rounds.counts, rounds.sum);
    const total = rounds.counts.reduce((sum, count) => sum + count, 0);
    counter("svc_read_rounds_total", "Rounds that prove leadership for reads", total);
    const slow = "Durable writes of the log that took longer than 100 ms";
    counter("svc_wal_sync_slow_total", slow, this.slowSyncs);
    const made = "svc_sequence_blocks_total";
    family(lines, made, "counter", "Blocks of sequences, reserved and given back");
    for (const [how, count] of Object.entries(blocks)) {
      lines.push(`${made}{how="${how}"} ${count}`);
    }
    const echo = "svc_peer_round_trip_seconds";
    family(lines, echo, "histogram", "Echoes of the control lane to the other node and back");
    for (const [peer, { bounds, counts, sum }] of this.echoes) {
      histogramLines(lines, echo, `peer="${peer}"`, bounds, counts, sum);
    }
  }

  private entryLines(lines: string[]): void {
    const histogram = (name: string, help: string, { bounds, counts, sum }: Distribution): void => {
      family(lines, name, "histogram", help);
      histogramLines(lines, name, "", bounds, counts, sum);
    };
    const counter = (name: string, help: string, value: number): void =>
      scalar(lines, name, "counter", help, value);
    histogram("svc_raft_batch_entries", "Commands per log entry", this.batches);
    const commits = "From proposing an entry to its commit";
    histogram("svc_raft_commit_duration_seconds", commits, this.commits);
    const syncs = "Duration of one durable log write";
    histogram("svc_wal_sync_duration_seconds", syncs, this.syncs);
    const records = "Log records made durable by one write";
    histogram("svc_wal_records_per_sync", records, this.syncRecords);
    counter("svc_wal_written_bytes_total", "Bytes of log written", this.writtenBytes);
    counter("svc_lock_grants_total", "Locks granted", this.grants);
    counter("svc_sequence_values_total", "Sequence values handed out", this.values);
  }
}

/** Since when partitions have been in a joint configuration. */
export class JointAges {
  private since = new Map<PartitionId, number>();

  constructor(private readonly nowMs: () => number) {}

  /** Passes the facts of all partitions on, looking at each. */
  *seen(groups: Iterable<GroupFacts>): Generator<GroupFacts> {
    const before = this.since;
    const now = new Map<PartitionId, number>();
    for (const facts of groups) {
      const { partition, joint } = facts;
      if (joint) now.set(partition, before.get(partition) ?? this.nowMs());
      yield facts;
    }
    this.since = now;
  }

  /** The age of the oldest (ms); 0 = there is none. */
  ageMs(): number {
    let oldestMs = Infinity;
    for (const sinceMs of this.since.values()) oldestMs = Math.min(oldestMs, sinceMs);
    return oldestMs === Infinity ? 0 : this.nowMs() - oldestMs;
  }
}
