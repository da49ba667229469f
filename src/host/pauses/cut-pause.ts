/**
 * The pause of a group for a coordinated cut: behind the mark no entry is cut until every other
 * group has its mark too, and the leader can prove that there was none.
 *
 * Owns which cut paused the group, since when, and whether that holds. Reads, elections and changes
 * of members go on; what needs an entry waits in its queue. Invariants: 1. No group stands still
 * for longer than CUT_PAUSE_MAX_MS by the monotonic clock, however many cuts follow each other: one
 * that takes the place of another has what is left, until a turn has let the writers go on. 2. A
 * cut of an earlier epoch than one that was seen here is refused, as is the same one again. 3. A
 * pause that was broken is over, and is proved by nobody: an entry that was appended (the last
 * commands before a move) breaks it, and so does the end of the leadership (P-134).
 */
import { CUT_PAUSE_MAX_MS } from "../../base/limits.js";

/** Which round of which cut: later ones go before earlier ones. */
export interface CutEpoch {
  /** In which the meta partition is led by whoever makes the cut. */
  readonly term: number;
  /** Of all rounds in that term. */
  readonly round: number;
}

function compareEpochs(one: CutEpoch, other: CutEpoch): number {
  return one.term - other.term || one.round - other.round;
}

export class CutPause {
  /** The latest that was seen. */
  private latest: CutEpoch = { term: 0, round: 0 };
  /** The term of the group's leader that paused it for `latest`; 0 = it is not paused. */
  private leaderTerm = 0;
  /** Since when the writers wait; Infinity: they do not. */
  private sinceMs = Infinity;

  /** Whether `begin` would be refused. */
  isStale(epoch: CutEpoch, nowMs: number): boolean {
    return compareEpochs(epoch, this.latest) <= 0 || nowMs >= this.sinceMs + CUT_PAUSE_MAX_MS;
  }

  /** The group is led in `leaderTerm` and pauses from now on. False: refused. */
  begin(epoch: CutEpoch, leaderTerm: number, nowMs: number): boolean {
    if (this.isStale(epoch, nowMs)) return false;
    this.latest = { term: epoch.term, round: epoch.round };
    this.leaderTerm = leaderTerm;
    this.sinceMs = Math.min(this.sinceMs, nowMs);
    return true;
  }

  /** No entry is to be cut. */
  isOn(nowMs: number): boolean {
    return this.leaderTerm > 0 && nowMs < this.sinceMs + CUT_PAUSE_MAX_MS;
  }

  /** The pause of `epoch`, begun in `leaderTerm`, lasts until now without a break. */
  lasts(epoch: CutEpoch, leaderTerm: number, nowMs: number): boolean {
    const isSame = compareEpochs(epoch, this.latest) === 0 && leaderTerm === this.leaderTerm;
    return isSame && this.isOn(nowMs);
  }

  /** The cut of `epoch` is done with it. */
  release(epoch: CutEpoch): void {
    if (compareEpochs(epoch, this.latest) === 0) this.drop();
  }

  /** It is over, and was broken: an entry was appended, or the leadership ended. */
  drop(): void {
    this.leaderTerm = 0;
  }

  /** To be called in every turn of the group, before entries are cut. */
  pass(nowMs: number): void {
    if (this.isOn(nowMs)) return;
    this.drop();
    this.sinceMs = Infinity;
  }

  /** When it ends by itself; Infinity without one. */
  get wakeAtMs(): number {
    return this.sinceMs + CUT_PAUSE_MAX_MS;
  }
}
