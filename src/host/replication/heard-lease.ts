/**
 * What a node knows of the lease clock of a group that it does not lead, in case it leads next
 * (contract T1 to T3).
 *
 * Heartbeats name the leader's clock. A sleeping group gets none: meanwhile the clock is taken to
 * have gone on as the monotonic clock of the leader's node did, which that node tells. Who votes for
 * a candidate tells it what it has heard: the candidate may have been cut off from the leader, and
 * of any majority somebody has heard it lately.
 *
 * Pure. Invariants: 1. The value is one that the clock of the leader of `term` had before now, or
 * would have had, had it gone on to lead: it is never ahead, so no lease is shortened. 2. It is of
 * use only to a leader whose log ends, before its own entries, with one of that same term: nobody
 * served in between, and nothing was decided by another clock. 3. All values are whole
 * milliseconds.
 */
import { assert } from "../../base/assert.js";

/** A leader's lease clock, and its node's monotonic clock at the same moment (ms). */
export interface LeaseSign {
  readonly leaseMs: number;
  readonly nodeMs: number;
}

/** What a node heard of the lease clock of the leader of `term` (ms); zeros: nothing. */
export interface HeardSign {
  readonly term: number;
  readonly leaseMs: number;
}

/** Of a leader that does not serve yet, and in messages that carry none. */
export const NO_LEASE_SIGN: LeaseSign = { leaseMs: 0, nodeMs: 0 };

export class HeardLease {
  private term = 0;
  private leaseMs = 0;
  /** Infinity: nothing is counted on to the value. */
  private nodeMs = Infinity;

  /** The leader of `term` said so; or it was this node itself, which says it as it steps down. */
  heard(term: number, sign: LeaseSign): void {
    if (sign.leaseMs === 0 || term < this.term) return;
    assert(Number.isSafeInteger(sign.leaseMs), "lease time is a whole number of ms");
    const isOlder = term === this.term && sign.leaseMs < this.leaseMs;
    this.leaseMs = isOlder ? this.leaseMs : sign.leaseMs;
    this.nodeMs = isOlder ? Infinity : sign.nodeMs;
    this.term = term;
  }

  /** The latest that is known. */
  get latest(): HeardSign {
    return { term: this.term, leaseMs: this.leaseMs };
  }

  /** A voter of this node in `term` heard `sign`. */
  toldByVoter(term: number, { term: ledIn, leaseMs }: HeardSign): void {
    // A leader of a later term is none that this node follows.
    if (ledIn < term) this.heard(ledIn, { leaseMs, nodeMs: Infinity });
  }

  /**
   * The group slept, without heartbeats, while the leader's node went on to `nodeMs` on its clock;
   * 0 = nothing is known. From now on only what is heard counts.
   */
  woken(nodeMs: number): void {
    // Both are rounded: the difference may be one too large.
    const sleptMs = Math.floor(nodeMs - this.nodeMs) - 1;
    if (sleptMs > 0) this.leaseMs += sleptMs;
    this.nodeMs = Infinity;
  }

  /** Where a new leader's clock may begin whose log ended with an entry of `term`; 0 = unknown. */
  after(term: number): number {
    return term === this.term ? this.leaseMs : 0;
  }
}
