/**
 * Property W11: the end of a watched lease is committed soon after it has come, while a leader serves;
 * before it none is told, as what is told is what was applied.
 *
 * Leaders are looked at again and again. Invariant: time in which a leader could not commit does not
 * count.
 */
import { Findings, type Verdict } from "../verdict.js";

export const EXPIRY_TRUE = { "ends that are watched": 1, "ends that were committed": 1 };

/** The end of a watched lease that a leader finds committed or not. */
export interface LeaseLook {
  readonly atMs: number;
  readonly name: string;
  readonly partition: number;
  /** As the leader's own clock has it: time since the end; below 0: it is yet to come. */
  readonly sinceMs: number;
  /** The leader serves, and nothing keeps it from committing, nor whoever watches from wishing. */
  readonly isAble: boolean;
  /** So long it may take (ms). */
  readonly boundMs: number;
}

export class ExpiryTrue {
  private readonly findings: Findings;
  /** Since when an end is due that nothing keeps from being committed (true time). */
  private readonly since = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = EXPIRY_TRUE) {
    this.findings = new Findings("what is watched expires in time", minimum);
  }

  look({ atMs, name, partition, sinceMs, isAble, boundMs }: LeaseLook): void {
    const id = `${partition} ${name}`;
    if (!isAble || sinceMs < 0) return void this.since.delete(id);
    const fromMs = this.since.get(id);
    if (fromMs === undefined) {
      this.findings.count("ends that are watched");
      return void this.since.set(id, atMs);
    }
    if (atMs - fromMs <= boundMs) return;
    this.since.set(id, Infinity);
    const late = `is over since ${fromMs.toFixed(0)} ms and not committed by ${atMs.toFixed(0)} ms`;
    this.findings.violation(`the lease of ${name} in partition ${partition} ${late}`);
  }

  /** The end of a lease was committed, or it has none any more. */
  committed(name: string, partition: number): void {
    this.since.delete(`${partition} ${name}`);
    this.findings.count("ends that were committed");
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
