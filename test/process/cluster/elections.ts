/**
 * How leaderships of a cluster moved: by order, and by elections that nobody ordered. A call that an
 * election finds on its way may end with a refusal; one that a planned move finds may not.
 *
 * Invariants: 1. Counters that begin anew, because their process did, are counted from zero. 2. A partition that was made
 * meanwhile began with one election, which nobody's call could meet; those after it count like others', as the moves do
 * that are told from them.
 */
import { Increases } from "./metrics.js";

/** Nodes whose metrics can be read: name with labels, and value. */
interface MeteredNodes {
  readonly ids: readonly number[];
  metrics(id: number): Promise<ReadonlyMap<string, number>>;
}

export interface Elections {
  /** Terms that began, of all partitions. */
  readonly terms: number;
  /** Moves that were ordered and came about: each begins a term too. */
  readonly ordered: number;
  /** Times that a node stood still for longer than an election takes. */
  readonly stills: number;
}

/** That of the leader with which a partition begins. */
const FIRST_TERM = 1;
const NONE: ReadonlyMap<string, number> = new Map();

/** What nobody ordered: each may have ended one call of every caller with a refusal. */
export function unplanned({ terms, ordered, stills }: Elections): number {
  return Math.max(0, terms - ordered) + stills;
}

export class ElectionTally {
  private readonly terms = new Map<string, number>();
  private readonly counted = new Increases();
  private hasBegun = false;

  constructor(private readonly nodes: MeteredNodes) {}

  /** What happened since the last call; the first one begins. */
  async take(): Promise<Elections> {
    const found = { terms: 0, ordered: 0, stills: 0 };
    for (const id of this.nodes.ids) {
      const metrics = await this.nodes.metrics(id).catch(() => NONE);
      for (const [name, value] of metrics) {
        if (name.startsWith("svc_raft_term{")) found.terms += this.rise(this.terms, name, value);
        const isMoved = name.startsWith("svc_leader_transfers") && name.includes('"moved"');
        if (isMoved) found.ordered += this.counted.of(`${id} ${name}`, value);
        if (name === "svc_late_ticks_total")
          found.stills += this.counted.of(`${id} ${name}`, value);
      }
    }
    this.hasBegun = true;
    return found;
  }

  /** Of the highest value that any node told; one of a partition that was not there before counts from its first term. */
  private rise(known: Map<string, number>, name: string, value: number): number {
    const before = known.get(name);
    if (before !== undefined && value <= before) return 0;
    known.set(name, value);
    if (before !== undefined) return value - before;
    return this.hasBegun ? Math.max(0, value - FIRST_TERM) : 0;
  }
}
