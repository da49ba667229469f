/**
 * Property: memory, queues and logs stay within their bounds, which follow from the settings.
 *
 * Invariants: 1. The bounds are of what one node may hold at most; nothing that a run did widens them. 2. The log is
 * judged only when the disk and the store have worked for a while: while nothing can be flushed nothing can be dropped.
 */
import { PITR_LOG_MAX_BYTES } from "../../../../src/base/limits.js";
import type { HostSettings } from "../../../../src/host/settings.js";
import type { OperationsSettings } from "../../../../src/operations/api/settings.js";
import type { NodeMeasure } from "../../../sim/world/observe.js";
import { Findings, type Verdict } from "../verdict.js";

export interface SizeBounds {
  readonly logBytes: number;
  readonly unflushedBytes: number;
  readonly queuedBytes: number;
  readonly requests: number;
}

/** Segments that are not yet made small or dropped, beside those that are full of what is needed. */
const SEGMENTS_IN_USE = 6;
/** What a row or an entry costs beside its value: key, names, stamps, frames (bytes). */
const OVERHEAD_BYTES = 4096;
/** The log keeps more for others than it should where snapshots could not be joined to it. */
const KEEP_FACTOR = 4;
/** After trouble with disk or store the log has this time to become small again (ms). */
const CALM_MS = 10_000;

/** What one node of a cluster with these settings may hold. */
export function boundsOf(
  host: HostSettings,
  operations: OperationsSettings,
  segmentBytes: number,
): SizeBounds {
  const groups = host.initialPartitions + 1;
  const entryBytes = Math.max(host.batchBytesMax, operations.valueMaxBytes) + OVERHEAD_BYTES;
  // While one flush is under way the entries of the next one gather.
  const gathering = 2 * host.compactEveryEntries + host.inFlightEntriesMax;
  const entries = gathering + host.compactKeepEntries;
  const rowBytes = operations.valueMaxBytes + OVERHEAD_BYTES;
  const rows = 2 * host.unflushedRowsMax + groups * host.inFlightEntriesMax * host.batchEntriesMax;
  const forOthers = KEEP_FACTOR * host.logKeepBytesMax;
  const forBackups = host.pitrWindowMs > 0 ? PITR_LOG_MAX_BYTES : 0;
  return {
    logBytes:
      groups * entries * entryBytes + forOthers + forBackups + SEGMENTS_IN_USE * segmentBytes,
    // What a group applies next is looked at before, not after.
    unflushedBytes: Math.min(rows * rowBytes, 2 * host.unflushedBytesMax + groups * entryBytes),
    queuedBytes: Math.min(groups * host.queuedBytesMax, host.nodeQueuedBytesMax) + entryBytes,
    requests: 2 * operations.inflightMax,
  };
}

export class BoundedSize {
  private readonly findings: Findings;
  private readonly largest = new Map<string, number>();
  private readonly troubledMs = new Map<number, number>();

  constructor(minimum = 10) {
    this.findings = new Findings("memory and log size bounded", { samples: minimum });
  }

  measure(node: number, measured: NodeMeasure, bounds: SizeBounds): void {
    const { atMs, isTroubled } = measured;
    if (isTroubled) this.troubledMs.set(node, atMs);
    const isCalm = atMs - (this.troubledMs.get(node) ?? -Infinity) >= CALM_MS;
    this.sample(node, "unflushed bytes", measured.unflushedBytes, bounds.unflushedBytes);
    this.sample(node, "queued bytes", measured.queuedBytes, bounds.queuedBytes);
    this.sample(node, "requests in progress", measured.requests, bounds.requests);
    if (isCalm) this.sample(node, "log bytes", measured.logBytes, bounds.logBytes);
  }

  /** `what` of `node` measures `size` and may measure `bound` at most. */
  sample(node: number, what: string, size: number, bound: number): void {
    this.findings.count("samples");
    const largest = this.largest.get(what) ?? 0;
    if (size > largest) {
      this.largest.set(what, size);
      this.findings.count(`largest ${what}`, size - largest);
    }
    if (size > bound) this.findings.violation(`node ${node}: ${what} ${size}, bound ${bound}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
