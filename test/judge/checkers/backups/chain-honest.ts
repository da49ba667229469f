/**
 * Property: an incremental backup goes on from its parent and nothing else, and a Full that is taken in
 * its place names a reason that there was (7.1, P-132).
 */
import { Findings, type Verdict } from "../verdict.js";
import type { SeenEntry } from "./seen-backups.js";

/** Where a parent ends. */
export interface ParentEnd {
  readonly partition: number;
  readonly index: number;
  readonly term: number;
}

export interface SeenIncrement {
  readonly id: string;
  readonly substitution: "ParentLogCompacted" | "TopologyChangedSinceParent" | null;
  readonly topology: number;
  readonly parentTopology: number;
  /** The parent is of the cluster that took the backup, not of one before or beside it. */
  readonly isOwnParent: boolean;
  readonly parentEnds: readonly ParentEnd[];
  /** Where it begins: by partition, the index before its first entry. Empty: it is a Full. */
  readonly begins: ReadonlyMap<number, number>;
}

export class ChainHonest {
  private readonly findings = new Findings("chains go on from their parents", { increments: 1 });

  /**
   * `applied`: an entry as the cluster applied it. `hasLog`: whether, at any time of the call, some
   * replica had the log from there on.
   */
  increment(
    seen: SeenIncrement,
    applied: (partition: number, index: number) => Pick<SeenEntry, "term"> | undefined,
    hasAllLogs: boolean,
  ): void {
    const { findings } = this;
    const { id, substitution, topology, parentTopology, isOwnParent, parentEnds, begins } = seen;
    if (!isOwnParent) findings.count("parents of other clusters");
    const isOther = parentEnds.some(({ partition, index, term }) => {
      const own = applied(partition, index);
      return own !== undefined && own.term !== term;
    });
    const changed = topology !== parentTopology || isOther || !isOwnParent;
    if (substitution === null) {
      findings.count("increments");
      if (changed) findings.violation(`backup ${id} goes on from a history that is not its own`);
      for (const { partition, index } of parentEnds) {
        const begin = begins.get(partition);
        if (begin === index) continue;
        const where = `backup ${id}, partition ${partition}`;
        findings.violation(
          `${where}: begins behind ${begin ?? "nothing"}, its parent ends at ${index}`,
        );
      }
      return;
    }
    findings.count(`substituted ${substitution}`);
    if (substitution === "TopologyChangedSinceParent" && !changed) {
      // Where the parent's end is no more, nobody can tell whether it goes on from there.
      findings.violation(`backup ${id} says that the topology has changed, and it has not`);
    }
    if (substitution === "ParentLogCompacted" && hasAllLogs && !changed) {
      findings.violation(`backup ${id} says that the log was let go, and all of it was there`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
