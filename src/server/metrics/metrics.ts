/**
 * Prometheus metrics: counters that the tower keeps as plain numbers are read when somebody
 * scrapes; what happens per batch or per sync is observed as it happens.
 *
 * Invariants: 1. A request costs nothing here (see `operations/admission/tally`). 2. Label children
 * are made once and kept.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { PROGRAM } from "../../base/levels.js";
import type { ConnectionCount } from "../../base/connections.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { PartitionId } from "../../base/ids.js";
import type { ReplicationFacts } from "../../control/placement.js";
import type { GroupFacts, NodeFacts } from "../../host/requests/results.js";
import {
  DURATION_BOUNDS_MS,
  KIND_LABELS,
  type RequestTally,
} from "../../operations/admission/tally.js";
import { BackupMetrics } from "./backup-metrics.js";
import { frontLines, groupLines, nodeLines, replicationLines, scalar } from "./metric-lines.js";
import { outcomeName } from "./outcome-names.js";
import { rangeLines, type RangesByMode } from "./range-lines.js";
import { RecentLoad } from "./recent-load.js";
import { systemClock } from "../../sys.js";
import type { MeterPort } from "../../ports.js";

/** The node as operators call it. */
export interface NodeName {
  readonly nodeId: number;
  readonly nodeName: string;
}

/** What a scrape reads from the running node. */
export interface MetricSources {
  readonly groups: () => readonly GroupFacts[];
  readonly node: () => NodeFacts;
  readonly inflight: () => number;
  readonly replication: () => ReplicationFacts;
  /** Times that a request met a key range on its way. */
  readonly refusedMoved: () => number;
  readonly rangesByMode: () => RangesByMode;
  /** Look-ups of the names of peers that found nothing in time. */
  readonly resolveFailures: () => number;
  /** Connections of other nodes that were turned away. */
  readonly refusedPeers: { readonly otherIdentities: number; readonly unproven: number };
  readonly connections: ConnectionCount;
  readonly unsent: UnsentBytes;
}

const SYNC_BUCKETS_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1,
];
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/** What build this is. */
function buildLabels(version: string): Record<string, string> {
  const { min, max } = PROGRAM.levels;
  const levels = { level_min: String(min), level_max: String(max) };
  return { version, ...levels, node_version: process.versions.node };
}

export class Metrics implements MeterPort {
  private readonly registry = new Registry();
  private readonly tally: RequestTally;
  private sources: MetricSources | null = null;
  readonly load = new RecentLoad(systemClock.monotonicMs, () => this.tally.totals());
  private readonly batches = this.histogram(
    "svc_raft_batch_entries",
    "Commands per log entry",
    BATCH_BUCKETS,
  );
  private readonly syncs = this.histogram(
    "svc_wal_sync_duration_seconds",
    "Duration of one durable log write",
    SYNC_BUCKETS_SECONDS,
  );
  private readonly syncRecords = this.histogram(
    "svc_wal_records_per_sync",
    "Log records made durable by one write",
    BATCH_BUCKETS,
  );
  private readonly syncBytes = this.counter("svc_wal_written_bytes_total", "Bytes of log written");
  private readonly commits = this.histogram(
    "svc_raft_commit_duration_seconds",
    "From proposing an entry to its commit",
    SYNC_BUCKETS_SECONDS,
  );
  private readonly flushes = this.histogram(
    "svc_store_flush_duration_seconds",
    "Duration of one flush of the state store",
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
  );
  private readonly flushRows = this.counter(
    "svc_store_flushed_rows_total",
    "Rows written to the state store",
  );
  private readonly grants = this.counter("svc_lock_grants_total", "Locks granted");
  private readonly mismatches = this.counter(
    "svc_replica_digest_mismatches_total",
    "Replicas of this node found to differ from their leader's",
  );
  private readonly heldBack = this.counter(
    "svc_stamps_held_back_total",
    "Timestamps made while the wall clock was more than a day ahead of its time",
  );
  private readonly values = this.counter("svc_sequence_values_total", "Sequence values handed out");
  private readonly leaderChanges = new Counter({
    name: "svc_raft_leader_changes_total",
    help: "Times this node saw a new leader of the partition",
    labelNames: ["partition"],
    registers: [this.registry],
  });
  private readonly reloads = new Counter({
    name: "svc_reloads_total",
    help: "Reloads of what may change while the node runs",
    labelNames: ["what", "result"],
    registers: [this.registry],
  });
  private readonly expiries = new Gauge({
    name: "svc_tls_certificate_expiry_timestamp_seconds",
    help: "End of the certificate that new connections get, in seconds since 1970",
    labelNames: ["use"],
    registers: [this.registry],
  });
  readonly backups = new BackupMetrics(this.registry, () => systemClock.wallMs());
  private readonly changesOf = new Map<PartitionId, Counter.Internal>();

  constructor(version: string, tally: RequestTally, node: NodeName) {
    this.tally = tally;
    const sources = (): MetricSources | null => this.sources;
    new Gauge({
      name: "svc_build_info",
      help: "Constant 1, labelled with the version, and the levels that it supports",
      labelNames: ["version", "level_min", "level_max", "node_version"],
      registers: [this.registry],
    }).set(buildLabels(version), 1);
    new Gauge({
      name: "svc_node_info",
      help: "Constant 1, labelled with the node's id and name",
      labelNames: ["node", "name"],
      registers: [this.registry],
    }).set({ node: String(node.nodeId), name: node.nodeName }, 1);
    new Counter({
      name: "svc_resolve_failures_total",
      help: "Look-ups of names of peers without an answer in time",
      registers: [this.registry],
      collect(): void {
        this.reset();
        this.inc(sources()?.resolveFailures() ?? 0);
      },
    });
    new Counter({
      name: "svc_range_refused_moved_total",
      help: "Times that a request met a key range on its way, and was placed anew",
      registers: [this.registry],
      collect(): void {
        this.reset();
        this.inc(sources()?.refusedMoved() ?? 0);
      },
    });
  }

  private histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, registers: [this.registry] });
  }

  private counter(name: string, help: string): Counter {
    return new Counter({ name, help, registers: [this.registry] });
  }

  /** Something was read anew while the node runs. */
  reloaded(what: string, isGood: boolean): void {
    this.reloads.inc({ what, result: isGood ? "ok" : "failed" });
  }

  /** A certificate was put in force; `atSeconds` since 1970. */
  certificateExpires(use: "https" | "peer", atSeconds: number): void {
    this.expiries.set({ use }, atSeconds);
  }

  /** Called once the node exists. */
  attach(sources: MetricSources): void {
    this.sources = sources;
  }

  batchEntries(commands: number): void {
    this.batches.observe(commands);
  }

  logSyncMs(durationMs: number, records: number, bytes: number): void {
    this.load.logSynced(durationMs);
    this.syncs.observe(durationMs / 1000);
    this.syncRecords.observe(records);
    this.syncBytes.inc(bytes);
  }

  commitMs(durationMs: number): void {
    this.commits.observe(durationMs / 1000);
  }

  flushMs(durationMs: number, rows: number): void {
    this.flushes.observe(durationMs / 1000);
    this.flushRows.inc(rows);
  }

  lockGranted(): void {
    this.grants.inc();
  }

  replicaDigestMismatch(): void {
    this.mismatches.inc();
  }

  stampHeldBack(): void {
    this.heldBack.inc();
  }

  sequenceValues(count: number): void {
    this.values.inc(count);
  }

  leaderChanged(group: PartitionId): void {
    let child = this.changesOf.get(group);
    if (child === undefined) {
      child = this.leaderChanges.labels(String(group));
      this.changesOf.set(group, child);
    }
    child.inc();
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** The whole exposition in the Prometheus text format. */
  async text(): Promise<string> {
    return `${await this.registry.metrics()}${this.plainText()}`;
  }

  private plainText(): string {
    const lines: string[] = [];
    this.requestLines(lines);
    this.groupLines(lines);
    const { load } = this;
    scalar(lines, "svc_event_loop_lag_p99_seconds", "gauge", load.loopLagP99Ms() / 1000);
    scalar(lines, "svc_event_loop_lag_max_seconds", "gauge", load.loopLagMaxMs / 1000);
    const { user, system } = process.cpuUsage();
    scalar(lines, "process_cpu_seconds_total", "counter", (user + system) / 1e6);
    scalar(lines, "process_resident_memory_bytes", "gauge", process.memoryUsage.rss());
    return `${lines.join("\n")}\n`;
  }

  private requestLines(lines: string[]): void {
    lines.push("# TYPE svc_requests_total counter");
    this.tally.visit((label, type, count) => {
      const outcome = type < 0 ? "Refused" : outcomeName(label.api, type);
      const labels = `api="${label.api}",operation="${label.operation}",outcome="${outcome}"`;
      lines.push(`svc_requests_total{${labels}} ${count}`);
    });
    lines.push("# TYPE svc_request_duration_seconds histogram");
    for (const [kind, label] of KIND_LABELS.entries()) {
      const { buckets, sumMs } = this.tally.duration(kind);
      const labels = `api="${label.api}",operation="${label.operation}"`;
      let total = 0;
      for (const [at, count] of buckets.entries()) {
        total += count;
        const bound = DURATION_BOUNDS_MS[at];
        const shown = bound === undefined ? "+Inf" : String(bound / 1000);
        lines.push(`svc_request_duration_seconds_bucket{${labels},le="${shown}"} ${total}`);
      }
      lines.push(`svc_request_duration_seconds_sum{${labels}} ${sumMs / 1000}`);
      lines.push(`svc_request_duration_seconds_count{${labels}} ${total}`);
    }
  }

  private groupLines(lines: string[]): void {
    if (this.sources === null) return;
    scalar(lines, "svc_inflight_requests", "gauge", this.sources.inflight());
    frontLines(lines, this.sources);
    groupLines(lines, this.sources.groups());
    const node = this.sources.node();
    nodeLines(lines, node);
    rangeLines(lines, node.ranges, this.sources.rangesByMode());
    replicationLines(lines, this.sources.replication());
  }

  close(): void {
    this.load.close();
  }
}
