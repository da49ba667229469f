/**
 * The replicas that were called in place of a leaving node's, when it stays after all: those still
 * on their way are cancelled (contract 5.3, DrainTimedOut).
 *
 * Invariants: 1. Nothing is cancelled before the records applied here give the role back: until
 * then the leader of meta orders more. 2. What is ordered after that is left alone: it is for
 * something else. 3. An order whose end is not known is given again, and changes nothing when it
 * was carried out (P-094). 4. What has moved stays moved.
 */
import { PLACEMENT_ITEMS_MAX } from "../../base/limits.js";
import { arrivalsFor, cancelOf, type Arrival } from "../../control/drain.js";
import type { MetaReads } from "../../machine/meta/meta-reads.js";
import type { ProposeOnMeta } from "./meta-proposer.js";

export interface CalledInDeps {
  readonly nodeId: number;
  metaReads(): MetaReads | null;
  readonly proposeOnMeta: ProposeOnMeta;
}

/** One order is waited for so long (ms). */
const PATIENCE_MS = 5000;

function nameOf({ partitionId, incarnation }: Arrival): string {
  return `${partitionId}/${incarnation}`;
}

export class CalledIn {
  /** Those that were on their way when the role was back; null before. */
  private noted: ReadonlySet<string> | null = null;
  private isAsked = false;

  /** The role is back at that version of the member list. */
  constructor(
    private readonly deps: CalledInDeps,
    private readonly version: number,
  ) {}

  /** Takes the step that is due; true: nothing of it is on its way any more. */
  step(nowMs: number): boolean {
    const reads = this.deps.metaReads();
    const known = reads?.cluster()?.membershipVersion ?? 0;
    if (this.isAsked || reads === null || known < this.version) return false;
    const all = arrivalsFor(reads.partitions(), this.deps.nodeId);
    this.noted ??= new Set(all.map(nameOf));
    const left = all.filter((each) => this.noted?.has(nameOf(each)));
    if (left.length === 0) return true;
    this.isAsked = true;
    const items = left.slice(0, PLACEMENT_ITEMS_MAX).map(cancelOf);
    this.deps.proposeOnMeta({ kind: "change-replicas", items }, nowMs + PATIENCE_MS, () => {
      this.isAsked = false;
    });
    return false;
  }
}
