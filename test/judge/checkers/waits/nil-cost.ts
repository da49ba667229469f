/**
 * Property P-064, Q (5.5): when nobody waits any more, waiting costs nothing: no entry is written for
 * it, and groups sleep as if nobody ever had waited.
 */
import { Findings, type Verdict } from "../verdict.js";

export const NIL_COST = { "quiet groups": 1, sleepers: 1, "entries of locks before": 1 };

/** A group at a leader, at the end of a stretch in which nobody asked for anything. */
export interface QuietGroup {
  readonly node: number;
  readonly partition: number;
  /** Who waits in it, and places that are kept. */
  readonly waiters: number;
  readonly places: number;
  /** Entries with commands about locks while somebody waited: they are seen. */
  readonly lockEntriesBefore: number;
  /** Entries with commands about locks since nobody waits. */
  readonly lockEntries: number;
  /** Tries that were made since then. */
  readonly tries: number;
  /** It should sleep, as nothing happened for long enough. */
  readonly maySleep: boolean;
  readonly sleeps: boolean;
}

export class NilCost {
  private readonly findings: Findings;

  constructor(minimum: Readonly<Record<string, number>> = NIL_COST) {
    this.findings = new Findings("without waiters waiting costs nothing", minimum);
  }

  quiet(group: QuietGroup): void {
    const { node, partition, waiters, places, lockEntries, tries, maySleep, sleeps } = group;
    this.findings.count("quiet groups");
    if (sleeps) this.findings.count("sleepers");
    this.findings.count("entries of locks before", group.lockEntriesBefore);
    const where = `partition ${partition} at node ${node}`;
    if (waiters + places > 0) {
      this.findings.violation(`${where}: ${waiters} wait and ${places} places are kept`);
    }
    if (lockEntries + tries > 0) {
      this.findings.violation(`${where}: ${tries} tries and ${lockEntries} entries for nobody`);
    }
    if (maySleep && !sleeps) this.findings.violation(`${where}: is awake although nobody waits`);
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
