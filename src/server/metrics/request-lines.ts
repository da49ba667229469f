/**
 * The metrics of requests and administrative calls: how many ended how, and how long they took.
 *
 * Invariants: 1. Reading changes nothing. 2. A kind of request that was never used has no series.
 */
import type { CallCounts } from "../../operations/admission/call-tally.js";
import {
  DURATION_BOUNDS_MS,
  KIND_LABELS,
  type RequestTally,
} from "../../operations/admission/tally.js";
import { family, histogramLines } from "./exposition.js";
import { outcomeName } from "./outcome-names.js";

const BOUNDS_SECONDS = DURATION_BOUNDS_MS.map((bound) => bound / 1000);

function isUsed(buckets: Float64Array): boolean {
  return buckets.some((count) => count > 0);
}

/** Gives way after each kind of request. */
export function* requestLines(
  lines: string[],
  tally: RequestTally,
  calls: Iterable<CallCounts>,
): Generator<void> {
  const requests = "svc_requests_total";
  family(lines, requests, "counter", "Requests and administrative calls that ended, by how");
  tally.visit((label, type, count) => {
    const outcome = type < 0 ? "Refused" : outcomeName(label.api, type);
    const labels = `api="${label.api}",operation="${label.operation}",outcome="${outcome}"`;
    lines.push(`${requests}{${labels}} ${count}`);
  });
  const administrative = [...calls];
  for (const { api, operation, outcomes } of administrative) {
    for (const [outcome, count] of outcomes) {
      const labels = `api="${api}",operation="${operation}",outcome="${outcome}"`;
      lines.push(`${requests}{${labels}} ${count}`);
    }
  }
  yield;
  const name = "svc_request_duration_seconds";
  family(lines, name, "histogram", "From the arrival of a request to its answer");
  for (const [kind, { api, operation }] of KIND_LABELS.entries()) {
    const { buckets, sumMs } = tally.duration(kind);
    if (!isUsed(buckets)) continue;
    const label = `api="${api}",operation="${operation}"`;
    histogramLines(lines, name, label, BOUNDS_SECONDS, buckets, sumMs / 1000);
    yield;
  }
  for (const { api, operation, durations } of administrative) {
    const label = `api="${api}",operation="${operation}"`;
    histogramLines(lines, name, label, BOUNDS_SECONDS, durations.counts, durations.sum / 1000);
  }
}
