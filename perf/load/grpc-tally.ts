/**
 * What the gRPC load driver counts: outcomes as the answers state them, latencies, failures.
 *
 * Owns its counters. Invariants: 1. An outcome is read from the answer's own type field. 2. A
 * failed stream or connection is an error from the start of the process on, also in the warm-up.
 */
import { createHistogram } from "node:perf_hooks";
import { halvesToBigInt, type Int64Halves, type ProtoReader } from "../../src/proto/codec.js";
import type { Options } from "./grpc-options.js";

/** Tag of `Type` in every response: field 2, varint. */
const OUTCOME_TAG = 0x10;
const TOKEN_TAG = 0x18;

/** Counts what came back. */
export class Tally {
  private readonly histogram = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  private readonly handed = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  private readonly outcomes = new Map<number, number>();
  private releasedMs = Infinity;
  operations = 0;
  errors = 0;
  startedMs = Infinity;
  private enough = 0;
  private onEnough = (): void => undefined;

  /** `then`: when so many were answered since `begin`. */
  whenAnswered(enough: number, then: () => void): void {
    this.enough = enough;
    this.onEnough = then;
  }

  begin(): void {
    this.histogram.reset();
    this.handed.reset();
    this.outcomes.clear();
    this.operations = 0;
    this.startedMs = performance.now();
  }

  /** The one lock of all slots is let go: the request leaves. */
  released(nowMs: number): void {
    this.releasedMs = nowMs;
  }

  /** The one lock of all slots was granted to the next of them: the answer is here. */
  granted(nowMs: number): void {
    if (nowMs >= this.releasedMs) {
      this.handed.record(Math.max(1, Math.round((nowMs - this.releasedMs) * 1000)));
    }
    this.releasedMs = Infinity;
  }

  answered(outcome: number, latencyMs: number): void {
    this.operations += 1;
    if (this.operations === this.enough) this.onEnough();
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
    this.histogram.record(Math.max(1, Math.round(latencyMs * 1000)));
  }

  report(settings: Options): Record<string, unknown> {
    const durationMs = performance.now() - this.startedMs;
    const quantile = (percent: number): number => this.histogram.percentile(percent) / 1000;
    const { kind, mode, inflight, frame, connections, tls } = settings;
    return {
      kind,
      mode,
      tls,
      connections,
      inflight,
      frame: mode === "stream" ? frame : null,
      durationMs: Math.round(durationMs),
      operations: this.operations,
      operationsPerSecond: Math.round((this.operations * 1000) / durationMs),
      outcomes: Object.fromEntries(this.outcomes),
      errors: this.errors,
      latencyMs: {
        p50: quantile(50),
        p90: quantile(90),
        p99: quantile(99),
        p999: quantile(99.9),
        max: this.histogram.max / 1000,
      },
      ...(this.handed.count === 0
        ? {}
        : {
            handoffMs: {
              p50: this.handed.percentile(50) / 1000,
              p99: this.handed.percentile(99) / 1000,
            },
          }),
    };
  }
}

/** The outcome number of a response message in [start, end). */
export function outcomeOf(reader: ProtoReader, start: number, end: number): number {
  reader.pos = start;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === OUTCOME_TAG) return reader.int32();
    reader.skipType(tag & 7, 0, tag >>> 3);
  }
  return 0;
}

/** The fencing token in the answer to a try-lock, in [start, end). */
export function tokenOf(reader: ProtoReader, start: number, end: number): number {
  reader.pos = start;
  while (reader.pos < end) {
    const tag = reader.tag();
    if (tag === TOKEN_TAG) return Number(halvesToBigInt(reader.int64() as Int64Halves));
    reader.skipType(tag & 7, 0, tag >>> 3);
  }
  return 0;
}

/** Cuts the data of one stream into gRPC messages. */
export class MessageCutter {
  private rest: Buffer = Buffer.alloc(0);

  *messages(chunk: Buffer): Generator<Buffer> {
    const bytes = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 5) {
      const end = at + 5 + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      yield bytes.subarray(at + 5, end);
      at = end;
    }
    this.rest = bytes.subarray(at);
  }
}
