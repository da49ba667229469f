/**
 * Property: no partition id has two lives. A new one is above all that there ever were, and one that
 * was removed stays so.
 *
 * Invariant: records are told by version of the map, and older versions say nothing.
 */
import { Findings, type Verdict } from "../verdict.js";

export interface SeenPartition {
  readonly partitionId: number;
  /** "Removed" is the last one. */
  readonly state: string;
}

const REMOVED = "Removed";

export class IdsOnce {
  private readonly findings: Findings;
  private readonly states = new Map<number, string>();
  private highest = 0;
  private version = -1;

  constructor(minimum: Readonly<Record<string, number>> = { "new ids": 10, removed: 3 }) {
    this.findings = new Findings("no partition id has two lives", minimum);
  }

  map(version: number, partitions: readonly SeenPartition[]): void {
    if (version <= this.version) return;
    const isFirst = this.version < 0;
    this.version = version;
    const before = this.highest;
    for (const { partitionId, state } of partitions) {
      const known = this.states.get(partitionId);
      if (known === undefined && !isFirst) {
        this.findings.count("new ids");
        if (partitionId <= before) {
          this.findings.violation(`partition ${partitionId} is new, after ${before}`);
        }
      }
      if (known === REMOVED && state !== REMOVED) {
        this.findings.violation(`partition ${partitionId} was removed, and is ${state}`);
      }
      if (known !== undefined && known !== REMOVED && state === REMOVED) {
        this.findings.count("removed");
      }
      this.states.set(partitionId, state);
      this.highest = Math.max(this.highest, partitionId);
    }
    this.noteGone(new Set(partitions.map(({ partitionId }) => partitionId)));
  }

  /** The record of a removed partition may be dropped; the id stays used. */
  private noteGone(listed: ReadonlySet<number>): void {
    for (const [id, state] of this.states) {
      if (listed.has(id) || state === REMOVED) continue;
      this.findings.violation(`partition ${id} was ${state}, and has no record any more`);
      this.states.set(id, REMOVED);
    }
  }

  verdict(): Verdict {
    return this.findings.verdict();
  }
}
