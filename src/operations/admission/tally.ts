/**
 * What is counted per request: how many ended how, and how long they took. Plain numbers, read when
 * somebody scrapes.
 *
 * Owns its arrays. Invariants: 1. One request costs a few numeric additions and no allocation. 2.
 * Counters only grow. 3. The order of kinds and buckets is fixed for the life of the process.
 */
import { KvType, LockType, SequenceType } from "../../base/result-types.js";
import type { DataRequestKind } from "../api/data-requests.js";
import { KINDS, type KindRow } from "../api/kinds.js";

/** Told once per data request, when its answer is given. */
export interface RequestObserver {
  /**
   * `kind`: number from KIND_NUMBERS. `type`: numeric type of the answer. `refused`: turned away
   * before anything.
   */
  finished(kind: number, type: number, refused: boolean, durationMs: number): void;
}

type KindLabel = { readonly kind: DataRequestKind } & Pick<KindRow, "api" | "operation">;

const ALL_KINDS = Object.keys(KINDS) as DataRequestKind[];

/** The labels of `svc_requests_total`, in the order of the kind numbers. */
export const KIND_LABELS: readonly KindLabel[] = ALL_KINDS.map((kind) => {
  const { api, operation } = KINDS[kind];
  return { kind, api, operation };
});

/** Number of each kind, an index into KIND_LABELS. */
export const KIND_NUMBERS = Object.fromEntries(
  ALL_KINDS.map((kind, number) => [kind, number]),
) as Readonly<Record<DataRequestKind, number>>;

/** Upper bounds of the duration buckets (ms); one more bucket is without bound. */
export const DURATION_BOUNDS_MS: readonly number[] = [
  0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000,
];

/** Answer types are below this. */
const TYPES = 128;

/** Answers that are no result. */
const FAILED: Readonly<Record<KindLabel["api"], readonly number[]>> = {
  locks: [LockType.mustRetry, LockType.aborted, LockType.errored],
  sequences: [SequenceType.mustRetry, SequenceType.aborted, SequenceType.error],
  kv: [KvType.mustRetry, KvType.aborted, KvType.errored],
};

/** The observer that keeps plain counters; whoever exports metrics reads them. */
export class RequestTally implements RequestObserver {
  private readonly counts = new Float64Array(KIND_LABELS.length * TYPES);
  private readonly refusals = new Float64Array(KIND_LABELS.length);
  private readonly durations = new Float64Array(
    KIND_LABELS.length * (DURATION_BOUNDS_MS.length + 1),
  );
  private readonly sums = new Float64Array(KIND_LABELS.length);

  finished(kind: number, type: number, refused: boolean, durationMs: number): void {
    if (refused) add(this.refusals, kind, 1);
    else add(this.counts, kind * TYPES + type, 1);
    let bucket = 0;
    while (bucket < DURATION_BOUNDS_MS.length && durationMs > (DURATION_BOUNDS_MS[bucket] ?? 0)) {
      bucket++;
    }
    add(this.durations, kind * (DURATION_BOUNDS_MS.length + 1) + bucket, 1);
    add(this.sums, kind, durationMs);
  }

  /** Requests of `kind` that ended with `type` and were not refused. */
  count(kind: number, type: number): number {
    return this.counts[kind * TYPES + type] ?? 0;
  }

  /** Requests of `kind` that were refused before anything was done. */
  refused(kind: number): number {
    return this.refusals[kind] ?? 0;
  }

  /** Requests that ended, and those that were refused or ended without a result. */
  totals(): { readonly requests: number; readonly failed: number } {
    let requests = 0;
    let failed = 0;
    for (const [kind, { api }] of KIND_LABELS.entries()) {
      requests += this.refused(kind);
      failed += this.refused(kind);
      for (let type = 0; type < TYPES; type++) requests += this.count(kind, type);
      for (const type of FAILED[api]) failed += this.count(kind, type);
    }
    return { requests, failed };
  }

  /** Visits every counter above zero. `refused` requests are visited with type -1. */
  visit(see: (label: KindLabel, type: number, count: number) => void): void {
    KIND_LABELS.forEach((label, kind) => {
      if (this.refused(kind) > 0) see(label, -1, this.refused(kind));
      for (let type = 0; type < TYPES; type++) {
        const count = this.count(kind, type);
        if (count > 0) see(label, type, count);
      }
    });
  }

  /**
   * Counts per bucket (not cumulative, the last is without bound) and the sum of durations (ms) of
   * one kind.
   */
  duration(kind: number): { readonly buckets: Float64Array; readonly sumMs: number } {
    const width = DURATION_BOUNDS_MS.length + 1;
    return {
      buckets: this.durations.slice(kind * width, (kind + 1) * width),
      sumMs: this.sums[kind] ?? 0,
    };
  }
}

function add(target: Float64Array, at: number, amount: number): void {
  target[at] = (target[at] ?? 0) + amount;
}
