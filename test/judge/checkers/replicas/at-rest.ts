/**
 * Property (P-106): when replicas are where they belong, they stay: passes of the allocator order
 * nothing more.
 */
import { Findings, type Verdict } from "../verdict.js";

/** What changes with each order, report or member. */
export interface Versions {
  readonly map: number;
  readonly members: number;
}

export class AtRest {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = { "quiet passes": 20 }) {
    this.findings = new Findings("what is settled rests", minimum);
  }

  /** Between two moments of peace there were so many passes. */
  rested(before: Versions, after: Versions, passes: number): void {
    this.findings.count("quiet passes", passes);
    if (before.map === after.map && before.members === after.members) return;
    const text = `${JSON.stringify(before)}, then ${JSON.stringify(after)}`;
    this.findings.violation(`after ${passes} passes of peace: ${text}`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
