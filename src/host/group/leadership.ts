/**
 * What this node's role in one group entitles it to, and everything that ends with it.
 *
 * Owns the lease clock, the stamps and the ephemeral table of a leadership. Invariants: 1. Serving
 * means: leads, and has applied an entry of its own term; nothing is decided or answered from state
 * before (P-014). 2. Each end of a leadership calls every reset hook once; what is derived from a
 * leadership or its state registers there and nowhere else (P-042). 3. Stamps never go back within
 * a group and a wild wall clock takes them
 * only so far beyond those of the other nodes (P-063).
 */
import { assert } from "../../base/assert.js";
import { type Hlc, StampClock } from "../../base/hlc.js";
import type { EntryStamp } from "../../machine/commands/command.js";
import { EphemeralTable } from "../../machine/ephemeral.js";
import type { Machine } from "../../machine/machine.js";
import type { ClockPort, MeterPort } from "../../ports.js";
import { HeardLease, type LeaseSign, NO_LEASE_SIGN } from "../replication/heard-lease.js";
import { LeaseClock } from "./leaseclock.js";
import type { ResetHook } from "../requests/results.js";

export interface LeadershipPorts {
  readonly clock: ClockPort;
  readonly meter: Pick<MeterPort, "stampHeldBack">;
  /** What the wall clocks of all nodes show, given this node's; see `NodeReports`. */
  readonly commonWallMs: (ownWallMs: number, nowMs: number) => number | null;
}

export class Leadership {
  private readonly lease = new LeaseClock();
  /** The lease clock of whoever leads. */
  readonly heardLease = new HeardLease();
  private readonly resets: ResetHook[] = [];
  private leadingTerm = 0;
  private inheritedTerm = 0;
  private serving = false;
  private table: EphemeralTable | null = null;
  private isFrozen = false;
  /** This leadership, or the latest, took over the table of the one before. */
  inherits = false;
  private token = 0;
  private readonly stamps: StampClock;
  private leaderId = 0;

  constructor(
    nodeId: number,
    private readonly machine: Machine,
    private readonly ports: LeadershipPorts,
    private readonly ephemeralBytesMax: number,
    /** The table that came with the order `token` to lead in `term`; null when none did. */
    private readonly inherited: (term: number, token: number) => EphemeralTable | null,
  ) {
    this.stamps = new StampClock(nodeId);
    this.stamps.seen(machine.lastStamp, ports.clock.monotonicMs());
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

  /** null while not serving, and while a move is under way that may take it along. */
  get ephemeral(): EphemeralTable | null {
    return this.isFrozen ? null : this.table;
  }

  /** The table as it goes to the next leader. */
  get frozenTable(): EphemeralTable {
    assert(this.isFrozen && this.table !== null, "the table was frozen, and is there");
    return this.table;
  }

  /** From now on the ephemeral table answers nobody, until `thaw`. Only while serving. */
  freeze(): EphemeralTable {
    this.isFrozen = true;
    return this.frozenTable;
  }

  thaw(): void {
    this.isFrozen = false;
  }

  /** A table as a leadership in `term` begins with. */
  emptyTable(term: number): EphemeralTable {
    const { ephemeralFloor: floor, ownership } = this.machine;
    return new EphemeralTable({ floor, term, maxBytes: this.ephemeralBytesMax, ownership });
  }

  addReset(hook: ResetHook): void {
    this.resets.push(hook);
  }

  setLeader(leader: number): void {
    this.leaderId = leader;
  }

  /**
   * The core leads in `term`; before its own entries its log ends with one of `inheritedTerm`.
   * `token`: of the order that made it lead, 0 = none.
   */
  begin(term: number, inheritedTerm: number, token: number): void {
    assert(this.leadingTerm === 0, "a leadership begins after the one before it ended");
    assert(term > 0, "a leader has a term");
    this.leadingTerm = term;
    this.inheritedTerm = inheritedTerm;
    this.token = token;
  }

  /** Serves as soon as an own-term entry is applied. Returns true when that is now. */
  noteApplied(): boolean {
    const nowMs = this.ports.clock.monotonicMs();
    // A leader too: keys that were adopted bring stamps along.
    this.stamps.seen(this.machine.lastStamp, nowMs);
    this.table?.dropMoved();
    if (this.serving) return false;
    if (this.leadingTerm === 0) return false;
    if (this.machine.appliedTerm !== this.leadingTerm) return false;
    this.serving = true;
    const { leadingTerm: term, machine } = this;
    const inherited = this.inherited(term, this.token);
    this.inherits = inherited !== null;
    this.table = inherited ?? this.emptyTable(term);
    this.isFrozen = false;
    const { head } = this.table;
    const heardMs = this.heardLease.after(this.inheritedTerm);
    const leaseMs = Math.max(machine.leaseMs, heardMs, head.leaseMs);
    this.lease.start(leaseMs, nowMs);
    this.stamps.seen(head.stamp, nowMs);
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
    this.isFrozen = false;
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
    const nowMs = this.ports.clock.monotonicMs();
    return { leaseMs: this.leaseNowMs(nowMs), nodeMs: Math.floor(nowMs) };
  }

  /**
   * What the batch that is cut now is stamped with. `closes`: with the last stamp of its
   * millisecond.
   */
  nextEntryStamp(monotonicMs: number, closes = false): EntryStamp {
    assert(this.serving, "only a serving leader stamps");
    const { heldBack } = this.stamps;
    const { clock, meter, commonWallMs } = this.ports;
    const wallMs = clock.wallMs();
    const commonMs = commonWallMs(wallMs, monotonicMs);
    const stamp = closes
      ? this.stamps.closing(wallMs, monotonicMs, commonMs)
      : this.stamps.next(wallMs, monotonicMs, commonMs);
    if (this.stamps.heldBack > heldBack) meter.stampHeldBack();
    return this.entryStamp(stamp, monotonicMs);
  }

  private entryStamp(stamp: Hlc, monotonicMs: number): EntryStamp {
    return { leaseMs: this.lease.next(monotonicMs), stamp };
  }

  /** An entry with exactly this stamp; null: one at or above it was given already. */
  entryStampAt(stamp: Hlc, monotonicMs: number): EntryStamp | null {
    assert(this.serving, "only a serving leader stamps");
    return this.stamps.reach(stamp) ? this.entryStamp(stamp, monotonicMs) : null;
  }

  /** The last stamp that was given or seen. */
  get lastStamp(): Hlc {
    return this.stamps.latest;
  }
}
