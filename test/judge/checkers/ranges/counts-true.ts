/**
 * Property: a size that is told as known is one that the range had, at about the time that it took to
 * ask: between the least and the most live keys that there were in that time.
 *
 * Invariants: 1. The model counts anew, over all rows, at every look. 2. Looks that are apart by less
 * than the time of an answer bound it; what was never looked at says nothing.
 */
import { Findings, type Verdict } from "../verdict.js";

interface Look {
  readonly atMs: number;
  readonly least: number;
  readonly most: number;
}

/** Looks of a range that are kept. */
const LOOKS_MAX = 256;

export class CountsTrue {
  private readonly findings: Findings;
  private readonly looks = new Map<string, Look[]>();

  constructor(minimum: Readonly<Record<string, number>> = { "known sizes": 20 }) {
    this.findings = new Findings("sizes of ranges are true", minimum);
  }

  /** So many live keys, within the inaccuracy of a clock, are in the range now. */
  counted(range: string, atMs: number, least: number, most: number): void {
    let known = this.looks.get(range);
    if (known === undefined) this.looks.set(range, (known = []));
    known.push({ atMs, least, most });
    if (known.length > LOOKS_MAX) known.shift();
  }

  /** Somebody asked at `fromMs`, and is told now. `keys` null: it is not known. `slack`: keys. */
  told(range: string, fromMs: number, atMs: number, keys: number | null, slack = 0): void {
    this.findings.count(keys === null ? "unknown sizes" : "known sizes");
    if (keys === null) return;
    const known = this.looks.get(range) ?? [];
    // The looks before and after it bound the time as well.
    const first = known.filter((look) => look.atMs <= fromMs).length - 1;
    const after = known.findIndex((look) => look.atMs >= atMs);
    if (first < 0) return this.findings.count("sizes of nothing that was looked at");
    const between = known.slice(first, after < 0 ? undefined : Math.max(first, after) + 1);
    const least = Math.min(...between.map((look) => look.least)) - slack;
    const most = Math.max(...between.map((look) => look.most)) + slack;
    if (keys >= least && keys <= most) return;
    this.findings.violation(`${range} has ${keys} keys, it is told; it had ${least} to ${most}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
