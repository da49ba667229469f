/**
 * Property: in a cluster that was forced out of what one node had, map and partitions say the same of
 * each key, whatever was under way: its range is one partition's, and no other owns it (contract 7.7).
 */
import { Findings, type Verdict } from "../verdict.js";

/** An interval of keys in byte order; null = open on that side. */
export interface SeenInterval {
  readonly startKey: string | null;
  readonly endKey: string | null;
  readonly partition: number;
}

export interface SeenSpace {
  readonly keySpace: string;
  /** By the map, by start key; whole for one that is placed by hash. */
  readonly mapped: readonly SeenInterval[];
  /** By the rows of the partitions, in any order; without those that only their place in the pool gives keys. */
  readonly owned: readonly SeenInterval[];
  /** Moves and intervals that are on their way. */
  readonly open: number;
}

function told({ startKey, endKey, partition }: SeenInterval): string {
  return `${startKey ?? ""}..${endKey ?? ""}@${partition}`;
}

export class ForcedMap {
  private readonly findings = new Findings("a forced map gives each key one owner", {});

  settled(name: string, spaces: readonly SeenSpace[]): void {
    for (const { keySpace, mapped, owned, open } of spaces) {
      this.findings.count("key spaces");
      if (mapped.length > 1) this.findings.count("divided key spaces");
      const fault = (what: string): void => {
        this.findings.violation(`${name}, key space ${keySpace}: ${what}`);
      };
      if (open > 0) fault(`${open} moves are under way`);
      let reached: string | null = null;
      mapped.forEach(({ startKey }, at) => {
        if (startKey !== reached) fault(`the map has a gap before ${startKey ?? "its start"}`);
        reached = mapped[at]?.endKey ?? null;
      });
      if (reached !== null) fault(`the map ends at ${String(reached)}`);
      const wanted = mapped.map(told).sort().join(" ");
      const found = owned.map(told).sort().join(" ");
      if (wanted !== found) fault(`the map says ${wanted}, the partitions ${found}`);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
