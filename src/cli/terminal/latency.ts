/**
 * Latencies of a measurement: counted in logarithmic classes, read as percentiles, drawn as a
 * picture.
 *
 * Invariants: 1. Constant memory. 2. A percentile is the upper edge of its class: at most 4.5 % too
 * high, never too low.
 */
import { padColumns } from "./text-width.js";

/** Classes per doubling. */
const FINENESS = 16;
/** From 1 µs to 2^30 µs (18 minutes). */
const CLASSES = 30 * FINENESS + 1;

export interface Band {
  readonly fromMs: number;
  readonly toMs: number;
  readonly count: number;
}

export class Latencies {
  private readonly counts = new Float64Array(CLASSES);
  count = 0;
  maxMs = 0;
  private sumMs = 0;

  record(milliseconds: number): void {
    const micros = Math.max(1, milliseconds * 1000);
    const at = Math.min(CLASSES - 1, Math.ceil(Math.log2(micros) * FINENESS));
    this.counts[at] = (this.counts[at] as number) + 1;
    this.count += 1;
    this.sumMs += milliseconds;
    if (milliseconds > this.maxMs) this.maxMs = milliseconds;
  }

  get meanMs(): number {
    return this.count === 0 ? 0 : this.sumMs / this.count;
  }

  /** `share` from 0 to 1. */
  percentileMs(share: number): number {
    const wanted = Math.max(1, Math.ceil(share * this.count));
    let seen = 0;
    for (let at = 0; at < CLASSES && this.count > 0; at++) {
      seen += this.counts[at] as number;
      if (seen >= wanted) return Math.min(this.maxMs, edgeMs(at));
    }
    return 0;
  }

  /** Adjacent bands, each a factor of 2^(1/2) wide or as much wider as `most` bands need. */
  bands(most: number): Band[] {
    const first = this.counts.findIndex((count) => count > 0);
    if (first < 0) return [];
    const last = CLASSES - 1 - [...this.counts].reverse().findIndex((count) => count > 0);
    let size = FINENESS / 2;
    while ((last - first + 1) / size > most) size *= 2;
    const bands: Band[] = [];
    for (let at = first; at <= last; at += size) {
      const part = this.counts.subarray(at, at + size);
      const count = part.reduce((sum, value) => sum + value, 0);
      bands.push({ fromMs: edgeMs(at - 1), toMs: edgeMs(at + size - 1), count });
    }
    return bands;
  }
}

function edgeMs(at: number): number {
  return 2 ** (at / FINENESS) / 1000;
}

/** Three significant digits: "0.123", "1.23", "123". */
export function msText(milliseconds: number): string {
  if (milliseconds >= 100) return milliseconds.toFixed(0);
  return milliseconds.toFixed(milliseconds >= 10 ? 1 : milliseconds >= 1 ? 2 : 3);
}

const ROWS_MAX = 16;

/** The histogram as lines of at most `columns` characters. */
export function pictureLines(latencies: Latencies, columns: number): string[] {
  const bands = latencies.bands(ROWS_MAX);
  const highest = Math.max(1, ...bands.map((band) => band.count));
  const width = Math.max(10, columns - 42);
  return bands.map(({ fromMs, toMs, count }) => {
    const size = count === 0 ? 0 : Math.max(1, Math.round((count / highest) * width));
    const range = `${msText(fromMs).padStart(7)} to ${msText(toMs).padStart(7)} ms`;
    const share = ((count / latencies.count) * 100).toFixed(1).padStart(5);
    return `${range} │${padColumns("█".repeat(size), width)} ${share} % ${count}`.trimEnd();
  });
}
