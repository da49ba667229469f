/**
 * What the page remembers of the last minutes, and the metrics of the asked node.
 *
 * Invariants: 1. At most SAMPLES_MAX samples per curve, and none older than SPAN_MS.
 */
import type { Overview } from "./shapes.js";

const SPAN_MS = 10 * 60 * 1000;
const SAMPLES_MAX = 400;

/** A figure at a moment, in milliseconds of the page's clock. */
export interface Sample {
  readonly atMs: number;
  readonly value: number;
}

export class History {
  private readonly curves = new Map<string, Sample[]>();

  add(name: string, value: number, atMs = performance.now()): void {
    const samples = this.curves.get(name) ?? [];
    this.curves.set(name, samples);
    samples.push({ atMs, value });
    const tooOld = samples.findIndex((sample) => sample.atMs > atMs - SPAN_MS);
    samples.splice(0, Math.max(tooOld, samples.length - SAMPLES_MAX, 0));
  }

  of(name: string): readonly Sample[] {
    return this.curves.get(name) ?? [];
  }

  /** The rates that an overview tells. */
  take({ nodes }: Overview): void {
    let requests = 0;
    let failed = 0;
    for (const node of nodes) {
      requests += node.requestsPerSecond;
      failed += node.failedPerSecond;
      this.add(`node ${node.nodeId}`, node.requestsPerSecond);
    }
    this.add("requests", requests);
    this.add("failed", failed);
  }
}

/** One value of the Prometheus text format. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const SERIES = /^([a-zA-Z_:][\w:]*)(?:\{([^}]*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;

/** The families of `names` in a text of metrics. */
export function readMetrics(
  text: string,
  names: readonly string[],
): ReadonlyMap<string, readonly Series[]> {
  const found = new Map<string, Series[]>(names.map((name) => [name, []]));
  for (const line of text.split("\n")) {
    const [, name = "", labelText = "", value = ""] = SERIES.exec(line) ?? [];
    const series = found.get(name);
    if (series === undefined) continue;
    const labels: Record<string, string> = {};
    for (const [, label = "", content = ""] of labelText.matchAll(LABEL)) labels[label] = content;
    series.push({ labels, value: Number(value) });
  }
  return found;
}
