/**
 * What this node's role in one group entitles it to, and everything that ends with it.
 *
 * Owns the lease clock, the stamps and the ephemeral table of a leadership. May call: base,
 * machine, this folder. Invariants: 1. Serving means: leads, and has applied an entry of its own
 * term; nothing is decided or answered from state before (P-014). 2. Each end of a leadership calls
 * every reset hook once; what is derived from a leadership or its state registers there and nowhere
 * else (P-042). 3. Stamps never go back within a group and jump forward boundedly (P-063).
 */
import { assert } from "../base/assert.js";
import { type Hlc, compareHlc, nextStamp } from "../base/hlc.js";
import type { EntryStamp } from "../machine/command.js";
import { EphemeralTable } from "../machine/ephemeral.js";
import type { Machine } from "../machine/machine.js";
import type { ClockPort } from "../ports.js";
import { HeardLease, type LeaseSign, NO_LEASE_SIGN } from "./heard-lease.js";
import { LeaseClock } from "./leaseclock.js";
import type { ResetHook } from "./results.js";

export class Leadership {
  private readonly lease = new LeaseClock();
  /** The lease clock of whoever leads. */
  readonly heardLease = new HeardLease();
  private readonly resets: ResetHook[] = [];
  private leadingTerm = 0;
  private inheritedTerm = 0;
  private serving = false;
  private table: EphemeralTable | null = null;
  private lastStamp: Hlc;
  private leaderId = 0;

  constructor(
    private readonly nodeId: number,
    private readonly machine: Machine,
    private readonly clock: ClockPort,
    private readonly ephemeralBytesMax: number,
  ) {
    this.lastStamp = machine.lastStamp;
  }

  get isLeading(): boolean {
    return this.leadingTerm > 0;
  }

  get isServing(): boolean {
    return this.serving;
  }

  /** The term that this node leads in; 0 when it does not. */
  get term(): number {
    return this.leadingTerm;
  }

  /** Who leads as far as is known; 0 = unknown. */
  get leader(): number {
    return this.leaderId;
  }

  get ephemeral(): EphemeralTable | null {
    return this.table;
  }

  addReset(hook: ResetHook): void {
    this.resets.push(hook);
  }

  setLeader(leader: number): void {
    this.leaderId = leader;
  }

  /** The core leads in `term`; before its own entries its log ends with one of `inheritedTerm`. */
  begin(term: number, inheritedTerm: number): void {
    assert(this.leadingTerm === 0, "a leadership begins after the one before it ended");
    assert(term > 0, "a leader has a term");
    this.leadingTerm = term;
    this.inheritedTerm = inheritedTerm;
  }

  /** Serves as soon as an own-term entry is applied. Returns true when that is now. */
  noteApplied(): boolean {
    if (this.serving || this.leadingTerm === 0) return false;
    if (this.machine.appliedTerm !== this.leadingTerm) return false;
    this.serving = true;
    const heardMs = this.heardLease.after(this.inheritedTerm);
    this.lease.start(Math.max(this.machine.leaseMs, heardMs), this.clock.monotonicMs());
    if (compareHlc(this.machine.lastStamp, this.lastStamp) > 0) {
      this.lastStamp = this.machine.lastStamp;
    }
    this.table = new EphemeralTable({
      floor: this.machine.ephemeralFloor,
      term: this.leadingTerm,
      maxBytes: this.ephemeralBytesMax,
    });
    return true;
  }

  /** The leadership is over, or the node stops: everything derived from it goes. */
  end(reason: string): void {
    assert(this.leadingTerm > 0, "only a leadership ends");
    const { leaseMs } = this.leaseSign();
    this.heardLease.heard(this.leadingTerm, { leaseMs, nodeMs: Infinity });
    this.leadingTerm = 0;
    this.serving = false;
    this.lease.stop();
    this.table = null;
    for (const hook of this.resets) hook(reason);
  }

  /** The estimate of the lease clock; the committed value while not serving. */
  leaseNowMs(monotonicMs: number): number {
    if (!this.serving) return this.machine.leaseMs;
    return Math.max(this.machine.leaseMs, this.lease.nowMs(monotonicMs));
  }

  /** What heartbeats tell the others of the lease clock. */
  leaseSign(): LeaseSign {
    if (!this.serving) return NO_LEASE_SIGN;
    const nowMs = this.clock.monotonicMs();
    return { leaseMs: this.leaseNowMs(nowMs), nodeMs: Math.floor(nowMs) };
  }

  /** What the batch that is cut now is stamped with. */
  nextEntryStamp(monotonicMs: number): EntryStamp {
    assert(this.serving, "only a serving leader stamps");
    this.lastStamp = nextStamp(this.lastStamp, this.nodeId, this.clock.wallMs());
    return { leaseMs: this.lease.next(monotonicMs), stamp: this.lastStamp };
  }
}
