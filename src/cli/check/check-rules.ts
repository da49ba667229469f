/**
 * What is found of a cluster, held against limits: a list of checks, each with its verdict.
 *
 * Pure. Invariants: 1. Each thing that is looked at has one line, whether it is right or not. 2.
 * What could not be seen is "unknown" and never "ok". 3. Beyond a limit is a warning; what stops
 * callers, or soon will, is "failed".
 */
import type { NodeDebug } from "../../client/mod.js";
import { partitionsText, type ClusterFacts, type NodeFacts } from "../status/status-facts.js";
import type { Catalogue, NodeSample } from "./check-gather.js";
import { figuresOf, percentileOf } from "./exposition.js";

export type Verdict = "ok" | "warning" | "failed" | "unknown";

export interface Check {
  readonly check: string;
  readonly nodeId: number | null;
  readonly endpoint: string | null;
  readonly verdict: Verdict;
  /** As a number, where it is one; in the unit that `wanted` names. */
  readonly value: number | null;
  readonly found: string;
  readonly wanted: string;
}

export interface CheckLimits {
  readonly latencyMs: number;
  readonly logSyncMs: number;
  readonly clockMs: number;
  readonly freeMib: number;
  readonly certificateDays: number;
  readonly backupHours: number;
}

/** What is this many times beyond its limit has failed. */
const FAR = 10;
/** A certificate that ends in fewer days has failed. */
const CERTIFICATE_FAILED_DAYS = 3;
/** Part of the state store's bound from which on it is nearly full. */
const STORE_SHARE = 0.85;
/** Writes of the log of which a percentile says something. */
const SYNCS_LEAST = 20;
/** So many say that a disk is slow, if half of them were. */
const SLOW_SYNCS_LEAST = 5;
/** Between the two scrapes of a node debug; the clock is read after the second one (ms). */
const DEBUG_PAUSE_MS = 10_000;
const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
const DAY_S = 86_400;

type Where = Pick<Check, "nodeId" | "endpoint">;
const CLUSTER: Where = { nodeId: null, endpoint: null };

function line(
  where: Where,
  check: string,
  verdict: Verdict,
  found: string,
  wanted = "",
  value: number | null = null,
): Check {
  return { check, nodeId: where.nodeId, endpoint: where.endpoint, verdict, value, found, wanted };
}

/** The verdict about something that should be at most `limit`. */
function atMost(value: number, limit: number): Verdict {
  if (value <= limit) return "ok";
  return value <= limit * FAR ? "warning" : "failed";
}

function milliseconds(value: number): string {
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
}

function whereOf(node: NodeFacts): Where {
  return { nodeId: node.nodeId, endpoint: node.clientEndpoint ?? node.endpoint };
}

function nodeChecks(nodes: readonly NodeFacts[]): Check[] {
  return nodes.flatMap((node) => {
    const where = whereOf(node);
    const reason = node.reason ?? "";
    if (node.state === "not-asked") {
      // Without a vote nothing depends on it.
      const verdict = node.role === "Voter" || node.role === "Leaving" ? "failed" : "unknown";
      return [line(where, "reachable", verdict, "nobody says where: name it with -c")];
    }
    if (node.state === "unreachable" || node.state === "failed") {
      return [line(where, "reachable", "failed", reason)];
    }
    const isReady = node.state === "ready";
    const ready = line(where, "ready", isReady ? "ok" : "failed", isReady ? "ready" : reason);
    return [line(where, "reachable", "ok", "answers"), ready];
  });
}

function versionCheck(versions: readonly string[]): Check {
  const different = [...new Set(versions)].sort();
  const text = different.join(", ");
  if (different.length === 0) return line(CLUSTER, "version", "unknown", "no node told its own");
  return line(CLUSTER, "version", different.length === 1 ? "ok" : "warning", text, "one");
}

function levelCheck({ level: { level, possible, behind } }: ClusterFacts): Check {
  if (level === 0) return line(CLUSTER, "level", "unknown", "no node could tell");
  const nodes = behind.join(", ");
  if (behind.length > 0) {
    return line(CLUSTER, "level", "warning", `${level}; nodes ${nodes} support less than others`);
  }
  if (possible === level) return line(CLUSTER, "level", "ok", `${level}`);
  const found = `${level}; all nodes support ${possible}: --cluster-finalize`;
  return line(CLUSTER, "level", "warning", found, `${possible}`);
}

function partitionChecks({ partitions, isInitialized }: ClusterFacts): Check[] {
  if (!isInitialized) return [line(CLUSTER, "leaders", "failed", "not initialized")];
  const { total, withoutLeader, disputed, withoutMajority, underReplicated, moving } = partitions;
  const bad: readonly (readonly [readonly number[], string])[] = [
    [withoutLeader, "without a leader"],
    [withoutMajority, "without a majority"],
    [disputed, "led twice"],
  ];
  const sentences = bad
    .filter(([numbers]) => numbers.length > 0)
    .map(([numbers, what]) => `${partitionsText(numbers)} ${what}`);
  const leaders =
    sentences.length > 0
      ? line(CLUSTER, "leaders", "failed", sentences.join("; "))
      : line(CLUSTER, "leaders", "ok", `${total} of ${total} partitions`);
  const moves = moving.length === 0 ? "" : `; replicas of ${moving.length} move`;
  const replicas =
    underReplicated.length > 0
      ? line(CLUSTER, "replicas", "warning", `${partitionsText(underReplicated)} with too few`)
      : line(CLUSTER, "replicas", "ok", `enough of each partition${moves}`);
  return [leaders, replicas];
}

function readCheck(where: Where, { reads }: NodeSample, limits: CheckLimits): Check {
  const { done, failed, p50Ms, p99Ms } = reads;
  const wanted = `p99 at most ${limits.latencyMs} ms`;
  if (failed > 0 || done === 0) {
    const found = `${failed} of ${done + failed} reads failed`;
    return line(where, "reads", "failed", found, wanted);
  }
  const found = `p50 ${milliseconds(p50Ms)}, p99 ${milliseconds(p99Ms)} of ${done}`;
  return line(where, "reads", atMost(p99Ms, limits.latencyMs), found, wanted, p99Ms);
}

function textsOf(debug: NodeDebug): readonly [before: string, after: string] {
  const texts = debug["metrics"] as readonly unknown[] | null | undefined;
  const [before, after] = Array.isArray(texts) ? (texts as readonly unknown[]) : [];
  const text = (one: unknown): string => (typeof one === "string" ? one : "");
  return [text(before), text(after)];
}

function syncCheck(where: Where, debug: NodeDebug, limits: CheckLimits): Check {
  const [before, after] = textsOf(debug);
  const name = "svc_wal_sync_duration_seconds";
  const wanted = `p99 at most ${limits.logSyncMs} ms`;
  const most = percentileOf(before, after, name, 0.99, SYNCS_LEAST);
  // Of a disk that takes a second for each there are never many.
  const half = most === null ? percentileOf(before, after, name, 0.5, SLOW_SYNCS_LEAST) : null;
  const seconds = most ?? half;
  if (seconds === null || (most === null && seconds * 1000 <= limits.logSyncMs)) {
    return line(where, "log-sync", "unknown", "too few to say", wanted);
  }
  const isOpen = seconds === Number.POSITIVE_INFINITY;
  const part = most === null ? "p50 of a few" : "p99";
  const found = isOpen
    ? `${part} above the largest class`
    : `${part} up to ${milliseconds(seconds * 1000)}`;
  const value = isOpen ? null : seconds * 1000;
  return line(where, "log-sync", atMost(seconds * 1000, limits.logSyncMs), found, wanted, value);
}

function diskChecks(where: Where, debug: NodeDebug, limits: CheckLimits): Check[] {
  const [, after] = textsOf(debug);
  const short = new Map(
    figuresOf(after, "svc_storage_short").map(({ labels, value }) => [labels["volume"], value]),
  );
  const volumes = figuresOf(after, "svc_storage_free_bytes").map(({ labels, value }) => {
    const volume = labels["volume"] ?? "";
    const mib = Math.floor(value / MIB);
    const isShort = short.get(volume) === 1;
    const verdict = isShort ? "failed" : mib < limits.freeMib ? "warning" : "ok";
    const found = `${mib} MiB free${isShort ? ": no writes are taken" : ""}`;
    return line(where, `disk of ${volume}`, verdict, found, `${limits.freeMib} MiB`, mib);
  });
  const used = figuresOf(after, "svc_store_used_bytes")[0]?.value ?? 0;
  const most = figuresOf(after, "svc_store_max_bytes")[0]?.value ?? 0;
  if (most === 0) return volumes;
  const isFull = (figuresOf(after, "svc_store_full")[0]?.value ?? 0) === 1;
  const share = Math.round((used / most) * 100);
  const verdict = isFull ? "failed" : used > most * STORE_SHARE ? "warning" : "ok";
  const wanted = `at most ${STORE_SHARE * 100} %`;
  return [...volumes, line(where, "store", verdict, `${share} % of its bound`, wanted, share)];
}

function certificateChecks(where: Where, debug: NodeDebug, nowMs: number, least: number): Check[] {
  const [, after] = textsOf(debug);
  const ends = figuresOf(after, "svc_tls_certificate_expiry_timestamp_seconds");
  return ends.map(({ labels, value }) => {
    const days = Math.floor((value - nowMs / 1000) / DAY_S);
    const verdict = days < CERTIFICATE_FAILED_DAYS ? "failed" : days < least ? "warning" : "ok";
    const found = days < 0 ? "has ended" : `${days} days left`;
    return line(where, `certificate of ${labels["use"]}`, verdict, found, `${least} days`, days);
  });
}

/** How far a clock is ahead of this machine's, and how exact that is (ms). */
interface ClockDifference {
  readonly where: Where;
  readonly aheadMs: number;
  readonly exactMs: number;
}

function clockOf(where: Where, { debug: sample }: NodeSample): ClockDifference | null {
  const facts = sample?.debug["process"] as Readonly<Record<string, unknown>> | null | undefined;
  const wallMs = Number(facts?.["wallMs"] ?? Number.NaN);
  if (sample === null || Number.isNaN(wallMs)) return null;
  // It was read after the pause of the node and before the answer was here.
  const least = wallMs - sample.hadMs;
  const most = Math.max(least, wallMs - (sample.askedMs + DEBUG_PAUSE_MS));
  return { where, aheadMs: Math.round((least + most) / 2), exactMs: Math.ceil((most - least) / 2) };
}

/** Clocks are held against the middle one of the cluster, a single one against this machine's. */
function clockChecks(clocks: readonly ClockDifference[], limitMs: number): Check[] {
  const sorted = clocks.map(({ aheadMs }) => aheadMs).sort((one, other) => one - other);
  const middle = sorted.length < 2 ? 0 : (sorted[Math.floor((sorted.length - 1) / 2)] ?? 0);
  return clocks.map(({ where, aheadMs, exactMs }) => {
    const apart = aheadMs - middle;
    const sure = Math.max(0, Math.abs(apart) - exactMs);
    const isVague = exactMs > limitMs && sure <= limitMs;
    const verdict = isVague ? "unknown" : atMost(sure, limitMs);
    const here = sorted.length < 2 ? "this machine" : "the others";
    const found = `${apart} ms from ${here}, ±${exactMs}`;
    return line(where, "clock", verdict, found, `at most ${limitMs} ms`, apart);
  });
}

function backupCheck(catalogue: Catalogue, nowMs: number, limitHours: number): Check[] {
  if (catalogue === null) return [];
  const wanted = `at most ${limitHours} h`;
  const good = catalogue.filter(({ isInvalid, isIncomplete }) => !isInvalid && !isIncomplete);
  const times = good.map(({ createdAtUtc }) => Date.parse(createdAtUtc)).filter((ms) => ms > 0);
  if (times.length === 0) return [line(CLUSTER, "backup", "warning", "none", wanted)];
  const hours = Math.max(0, (nowMs - Math.max(...times)) / HOUR_MS);
  const found = `the last one is ${hours.toFixed(1)} h old`;
  return [line(CLUSTER, "backup", hours <= limitHours ? "ok" : "warning", found, wanted, hours)];
}

/** All checks, the cluster's before those of its nodes. `nowMs`: of this machine (Unix ms). */
export function checksOf(
  facts: ClusterFacts,
  samples: readonly NodeSample[],
  catalogue: Catalogue,
  limits: CheckLimits,
  nowMs: number,
): Check[] {
  const placed = samples.map((sample) => {
    const node = facts.nodes.find(({ clientEndpoint }) => clientEndpoint === sample.url);
    return { sample, where: { nodeId: node?.nodeId ?? null, endpoint: sample.url } };
  });
  const versions = facts.nodes.flatMap(({ version }) => (version === null ? [] : [version]));
  const told = placed.flatMap(({ sample }) => {
    const version = sample.debug?.debug["version"];
    return typeof version === "string" ? [version] : [];
  });
  const ofNodes = placed.flatMap(({ sample, where }) => {
    const reads = readCheck(where, sample, limits);
    if (sample.debug === null) return [reads, line(where, "debug", "unknown", sample.problem)];
    const { debug } = sample.debug;
    return [
      reads,
      syncCheck(where, debug, limits),
      ...diskChecks(where, debug, limits),
      ...certificateChecks(where, debug, nowMs, limits.certificateDays),
    ];
  });
  const clocks = placed.flatMap(({ sample, where }) => clockOf(where, sample) ?? []);
  return [
    ...partitionChecks(facts),
    versionCheck([...versions, ...told].filter((text) => text !== "")),
    levelCheck(facts),
    ...backupCheck(catalogue, nowMs, limits.backupHours),
    ...nodeChecks(facts.nodes),
    ...clockChecks(clocks, limits.clockMs),
    ...ofNodes,
  ];
}

const WORST: readonly Verdict[] = ["failed", "warning", "unknown"];

/** The worst of all. */
export function verdictOf(checks: readonly Check[]): Verdict {
  return WORST.find((verdict) => checks.some((check) => check.verdict === verdict)) ?? "ok";
}
