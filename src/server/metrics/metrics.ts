/**
 * Prometheus metrics: counters that the tower keeps as plain numbers are read when somebody
 * scrapes; what happens per batch or per sync is observed as it happens.
 *
 * Invariants: 1. A request costs nothing here (see `operations/admission/tally`). 2. A scrape is
 * made in pieces, the loop gets round in between. 3. One scrape at a time: who asks meanwhile gets
 * its text.
 */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { PROGRAM } from "../../base/levels.js";
import type { ConnectionCount } from "../../base/connections.js";
import type { UnsentBytes } from "../../base/unsent.js";
import type { PartitionId } from "../../base/ids.js";
import type { ReplicationFacts } from "../../control/placement.js";
import type { GroupFacts, NodeFacts } from "../../host/requests/results.js";
import type { DifferedFile } from "../../disk/differed-file.js";
import type { CallTally } from "../../operations/admission/call-tally.js";
import type { RequestTally } from "../../operations/admission/tally.js";
import { BackupMetrics } from "./backup-metrics.js";
import type { NodeCensus } from "./census.js";
import { scalar } from "./exposition.js";
import { groupLines } from "./group-lines.js";
import { frontLines, nodeLines, replicationLines } from "./metric-lines.js";
import { type LogLines, logLines, traceLines } from "./log-lines.js";
import { JointAges, Observed } from "./observed.js";
import { ProcessFigures } from "./process-figures.js";
import type { WaitTally } from "../../host/waiting/wait-tally.js";
import type { WatchTally } from "../../host/watching/watch-tally.js";
import { rangeLines, type RangesByMode } from "./range-lines.js";
import { waitLines, watchLines } from "./wait-lines.js";
import { RecentLoad } from "./recent-load.js";
import { requestLines } from "./request-lines.js";
import { inSlices } from "./slices.js";
import {
  type Roster,
  type StorageFigures,
  proposalLines,
  rosterLines,
  storageLines,
} from "./state-lines.js";
import { TrafficTally } from "./traffic-tally.js";
import { systemClock } from "../../sys.js";
import type { MeterPort } from "../../ports.js";

/** The node as operators call it. */
export interface NodeName {
  readonly nodeId: number;
  readonly nodeName: string;
}

/** What a scrape reads from the running node. */
export interface MetricSources {
  /** Made one by one, while a scrape goes on. */
  readonly groups: () => Iterable<GroupFacts>;
  readonly node: () => NodeFacts;
  readonly inflight: () => number;
  readonly calls: CallTally;
  /** What rows there are. */
  readonly census: NodeCensus;
  readonly replication: () => ReplicationFacts;
  /** Times that a request met a key range on its way. */
  readonly refusedMoved: () => number;
  readonly rangesByMode: () => RangesByMode;
  /** Of waits for locks. */
  readonly lockWaits: () => WaitTally;
  readonly watchTally: () => WatchTally;
  /** Look-ups of the names of peers that found nothing in time. */
  readonly resolveFailures: () => number;
  /** Connections of other nodes that were turned away. */
  readonly refusedPeers: { readonly otherIdentities: number; readonly unproven: number };
  readonly connections: ConnectionCount;
  readonly unsent: UnsentBytes;
  readonly isReady: () => boolean;
  readonly roster: () => Roster;
  readonly storage: () => StorageFigures;
  readonly slowRequests: () => number;
  /** Spans that went to the collector, or did not. */
  readonly traceSpans: { readonly sent: number; readonly dropped: number };
  /** Requests that were more than their callers may make. */
  readonly rateLimited: () => number;
  /** Bytes of frames of other nodes. */
  readonly receivedPeerBytes: () => number;
  readonly logLines: LogLines;
  /** Limit of open file descriptors; null where the system does not tell. */
  readonly descriptorsMax: number | null;
}

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
  readonly traffic = new TrafficTally();
  private readonly process = new ProcessFigures((lateMs) => this.load.loopCame(lateMs));
  private readonly observed = new Observed();
  private readonly joint = new JointAges(systemClock.monotonicMs);
  private readonly flushes = this.histogram(
    "svc_store_flush_duration_seconds",
    "Duration of one flush of the state store",
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
  );
  private readonly flushRows = this.counter(
    "svc_store_flushed_rows_total",
    "Rows written to the state store",
  );
  private readonly lapses = this.counter(
    "svc_lock_expiries_total",
    "Leases of locks that ended without a release, as the next grant, release or collection found them",
  );
  private readonly mismatches = this.counter(
    "svc_replica_digest_mismatches_total",
    "Replicas found to differ from their leader's, while this data directory has been in use",
  );
  private readonly heldBack = this.counter(
    "svc_stamps_held_back_total",
    "Timestamps made while the wall clock was more than a day ahead of its time",
  );
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
  private readonly leaderChanges = new Map<PartitionId, number>();
  private scrape: Promise<string> | null = null;

  constructor(
    version: string,
    tally: RequestTally,
    node: NodeName,
    private readonly differed: DifferedFile,
  ) {
    this.tally = tally;
    this.mismatches.inc(differed.count);
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
    this.observed.batches.observe(commands);
  }

  logSyncMs(durationMs: number, records: number, bytes: number): void {
    this.load.logSynced(durationMs);
    this.observed.synced(durationMs, records, bytes);
  }

  commitMs(durationMs: number): void {
    this.observed.commits.observe(durationMs / 1000);
  }

  flushMs(durationMs: number, rows: number): void {
    this.flushes.observe(durationMs / 1000);
    this.flushRows.inc(rows);
  }

  lockGranted(): void {
    this.observed.grants += 1;
  }

  locksLapsed(count: number): void {
    this.lapses.inc(count);
  }

  electionEnded(isWon: boolean): void {
    this.observed.elections[isWon ? "won" : "lost"]++;
  }

  applyMs(durationMs: number): void {
    this.observed.applied(durationMs);
  }

  readRound(reads: number): void {
    this.observed.rounds.observe(reads);
  }

  sequenceBlock(how: "reserved" | "returned"): void {
    this.observed.blocks[how]++;
  }

  /** An echo to another node came back. */
  peerEchoed(nodeId: number, durationMs: number): void {
    this.observed.echoed(nodeId, durationMs);
  }

  replicaDigestMismatch(partition: PartitionId, index: number): void {
    this.differed.add(partition, index);
    this.mismatches.inc();
  }

  stampHeldBack(): void {
    this.heldBack.inc();
  }

  sequenceValues(count: number): void {
    this.observed.values += count;
  }

  leaderChanged(group: PartitionId): void {
    this.leaderChanges.set(group, (this.leaderChanges.get(group) ?? 0) + 1);
  }

  get contentType(): string {
    return this.registry.contentType;
  }

  /** The whole exposition in the Prometheus text format. */
  text(): Promise<string> {
    this.scrape ??= this.make().finally(() => (this.scrape = null));
    return this.scrape;
  }

  private async make(): Promise<string> {
    const observed = await this.registry.metrics();
    const lines: string[] = [];
    await inSlices(this.parts(lines));
    return `${observed}${lines.join("\n")}\n`;
  }

  /** Everything that is no object of the registry, part by part. */
  private *parts(lines: string[]): Generator<void> {
    yield* requestLines(lines, this.tally, this.sources?.calls.all() ?? []);
    yield* this.nodeParts(lines);
    this.loopLines(lines);
    yield* this.process.lines(lines, this.sources?.descriptorsMax ?? null);
  }

  private *nodeParts(lines: string[]): Generator<void> {
    const { sources } = this;
    if (sources === null) return;
    const inflight = "Data requests in progress";
    scalar(lines, "svc_inflight_requests", "gauge", inflight, sources.inflight());
    const slow = "Data requests that took longer than --slow-request-threshold";
    scalar(lines, "svc_slow_requests_total", "counter", slow, sources.slowRequests());
    traceLines(lines, sources.traceSpans);
    const limited = "Requests that were more than their callers may make in a second";
    scalar(lines, "svc_rate_limited_total", "counter", limited, sources.rateLimited());
    frontLines(lines, sources);
    yield;
    this.traffic.lines(lines);
    logLines(lines, sources.logLines);
    rosterLines(lines, sources.isReady(), sources.roster());
    storageLines(lines, sources.storage());
    yield;
    sources.census.wanted();
    sources.census.lines(lines);
    yield;
    yield* groupLines(lines, this.joint.seen(sources.groups()), this.leaderChanges);
    this.observed.lines(lines, this.joint.ageMs());
    const node = sources.node();
    yield;
    nodeLines(lines, node);
    proposalLines(lines, node);
    const received = "Bytes of frames of other nodes";
    scalar(
      lines,
      "svc_peer_received_bytes_total",
      "counter",
      received,
      sources.receivedPeerBytes(),
    );
    yield;
    rangeLines(lines, node.ranges, sources.rangesByMode());
    waitLines(lines, sources.lockWaits());
    watchLines(lines, sources.watchTally());
    yield;
    replicationLines(lines, sources.replication());
    yield;
  }

  private loopLines(lines: string[]): void {
    const { load } = this;
    const late = "How late the event loop came round";
    const gauge = (name: string, help: string, ms: number): void =>
      scalar(lines, `svc_event_loop_lag_${name}_seconds`, "gauge", `${late}, ${help}`, ms / 1000);
    gauge("p99", "99th percentile of the last seconds", load.loopLagP99Ms());
    gauge("max", "at most since the start", load.loopLagMaxMs);
  }

  close(): void {
    this.sources?.census.close();
    this.process.close();
  }
}
