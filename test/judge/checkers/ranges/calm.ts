/**
 * Property (P-106): automatic splits and merges come to rest. Without load they stop within two
 * intervals; and under a load that swings around both thresholds a range changes six times an hour at
 * most.
 *
 * Invariant: only changes that nobody asked for count.
 */
import { Findings, type Verdict } from "../verdict.js";

const CHANGES_PER_HOUR = 6;

export class Calm {
  private readonly findings: Findings;
  private quietFromMs = Infinity;

  constructor(minimum: Readonly<Record<string, number>> = { "quiet intervals": 5 }) {
    this.findings = new Findings("automatic changes come to rest", minimum);
  }

  /** Nobody writes, no lease ends and nothing is under way: two intervals later nothing may begin. */
  quiet(atMs: number, intervalMs: number): void {
    this.quietFromMs = Math.min(this.quietFromMs, atMs + 2 * intervalMs);
  }

  /** A move that nobody asked for begins. */
  began(what: string, atMs: number): void {
    this.findings.count("automatic changes");
    if (atMs < this.quietFromMs) return;
    this.findings.violation(`${what} begins at ${atMs.toFixed(0)} ms, after all load`);
  }

  /** It was quiet up to here. */
  rested(atMs: number, intervalMs: number): void {
    const intervals = Math.floor((atMs - this.quietFromMs) / intervalMs);
    if (intervals > 0) this.findings.count("quiet intervals", intervals);
  }

  /** So many changes of a key space of so many ranges, under a load that swings. */
  swung(changes: number, ranges: number, hours: number): void {
    this.findings.count("hours of swinging", Math.ceil(hours));
    const most = CHANGES_PER_HOUR * Math.max(1, ranges) * Math.max(1, hours);
    if (changes <= most) return;
    this.findings.violation(`${changes} changes of ${ranges} ranges in ${hours.toFixed(1)} hours`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
