/**
 * Property U1, U2: nothing is written above a level. No node writes an entry that its program does
 * not support, and no entry needs a level that its group was not set to before.
 *
 * Invariant: what a leader of a former term set, and nobody has any more, still counts as set: too
 * little is found then, never too much.
 */
import { Findings, type Verdict } from "../verdict.js";

/** An entry as it stands in a log. */
export interface SeenEntry {
  readonly group: number;
  readonly index: number;
  /** The level since which all of its commands are permitted. */
  readonly needs: number;
  /** The level that it sets its group to; 0 = none. */
  readonly sets: number;
  /** The level that it raises the cluster to; 0 = none. */
  readonly raises: number;
}

export class PermittedEntries {
  private readonly findings: Findings;
  /** By group and level: the lowest index of an entry that set it. */
  private readonly setAt = new Map<string, number>();

  constructor(minimum: Readonly<Record<string, number>> = { "entries of a raised level": 5 }) {
    this.findings = new Findings("nothing is written above a level", minimum);
  }

  /**
   * `node` writes `entry`; its program supports levels up to `supports`, its directory says that it
   * may hold data up to `stored`.
   */
  written(node: number, supports: number, stored: number, entry: SeenEntry): void {
    const { group, index, needs, sets, raises } = entry;
    const where = `node ${node} writes entry ${index} of group ${group}`;
    const highest = Math.max(needs, sets, raises);
    if (highest > supports) {
      this.findings.violation(`${where}: it is of level ${highest}, and supports ${supports}`);
    }
    if (highest > stored) {
      this.findings.violation(
        `${where}: it is of level ${highest}, and its directory of ${stored}`,
      );
    }
    this.findings.count("entries");
    if (sets > 0) {
      this.findings.count("entries that set a level");
      const key = `${group}/${sets}`;
      this.setAt.set(key, Math.min(index, this.setAt.get(key) ?? Infinity));
    }
    if (needs <= 1) return;
    this.findings.count("entries of a raised level");
    if (index > (this.setAt.get(`${group}/${needs}`) ?? Infinity)) return;
    this.findings.violation(`${where}: it needs level ${needs}, which the group was not set to`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
