/**
 * Property (T3): a lease that moves to another partition ends no earlier in true time than it would
 * have, and later only by the margin that a copy adds; and the stamp of a key does not fall.
 *
 * Compared are what was left of a lease when the source froze it and when the target closed it, each by
 * the lease clock of its own group, at the times at which these entries were proposed. Invariant: clocks
 * may differ by the declared drift, and a copy that was long under way adds what it waited.
 */
import { Findings, type Verdict } from "../verdict.js";
import type { RangeState, SeenKey } from "./range-state.js";
import { type SeenAttempt, attemptName } from "./seen-moves.js";

/** What every lease that moves may grow by (ms), and of the time that the copy took. */
const MARGIN_MS = 1000;
const MARGIN_PART = 0.01;
/** Beyond that a lease may end so much later (ms). */
const LATE_MS = 500;

export interface CopyTimes {
  /** From the opening of the attempt to its close, in true time (ms). */
  readonly tookMs: number;
  /** The longest that rows of it may have been on their way (ms). */
  readonly underWayMs: number;
}

export class LeaseNeverShorter {
  private readonly findings: Findings;
  private readonly frozenStates = new Map<string, RangeState>();

  /** `drift`: by how much any clock may be off true time. */
  constructor(
    private readonly drift: number,
    minimum: Readonly<Record<string, number>> = { leases: 20, "retained tombstones": 5 },
  ) {
    this.findings = new Findings("no lease is shorter for a move", minimum);
  }

  frozen(attempt: SeenAttempt, state: RangeState): void {
    this.frozenStates.set(attemptName(attempt), state);
  }

  closed(attempt: SeenAttempt, state: RangeState, times: CopyTimes): void {
    const source = this.frozenStates.get(attemptName(attempt));
    this.frozenStates.delete(attemptName(attempt));
    if (source === undefined) return;
    for (const [key, there] of state.keys) {
      const here = source.keys.get(key);
      if (here === undefined || here.endMs === null || there.endMs === null) continue;
      const between = state.proposedMs - source.proposedMs;
      const left = [here.endMs - source.leaseMs, there.endMs - state.leaseMs] as const;
      if (here.isTombstone) this.compareAge(key, left, between, times);
      else this.compareLease(key, left, between, times);
      this.compareStamps(key, here, there);
    }
  }

  /** What is left of a lease at freeze and at close. */
  private compareLease(
    key: string,
    [before, after]: readonly [number, number],
    between: number,
    { tookMs, underWayMs }: CopyTimes,
  ): void {
    // Whatever has ended may be carried as ended.
    if (before <= 0) return;
    this.findings.count("leases");
    const apart = Math.max(0, this.apart(tookMs) - MARGIN_MS);
    const least = before - between * (1 + this.drift) - apart;
    if (after < least - 2) {
      const text = `${key}: ${after} ms are left of its lease, at least ${Math.floor(least)} were`;
      this.findings.violation(text);
    }
    const margin = MARGIN_MS + (MARGIN_PART + 2 * this.drift) * tookMs + LATE_MS;
    const most = Math.max(0, before) - between * (1 - this.drift) + underWayMs + margin;
    if (after <= Math.max(most, margin + underWayMs)) return;
    const text = `${key}: ${after} ms are left of its lease, at most ${Math.ceil(most)} may be`;
    this.findings.violation(text);
  }

  /** Two clocks may be so far apart after a time in which both went on (ms). */
  private apart(tookMs: number): number {
    return 2 * this.drift * tookMs;
  }

  /** A tombstone is kept as long, or longer. */
  private compareAge(
    key: string,
    [before, after]: readonly [number, number],
    between: number,
    { tookMs }: CopyTimes,
  ): void {
    this.findings.count("retained tombstones");
    const least = Math.min(before - between * (1 + this.drift) - this.apart(tookMs), 0);
    if (after >= least - 2) return;
    const text = `the tombstone of ${key} is ${-after} ms old, and was ${-before}`;
    this.findings.violation(text);
  }

  private compareStamps(key: string, here: SeenKey, there: SeenKey): void {
    if (there.stamp < here.stamp) this.findings.violation(`the stamp of ${key} falls by a move`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
