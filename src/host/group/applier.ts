/**
 * Applies committed entries of one group, in order, in slices, and answers whoever proposed them.
 *
 * Entries that this node proposed are applied from their decoded commands in memory; others come
 * from the cache of new entries, or (a replay after a start) from the log, and are decoded. May
 * call: base, machine, ports, this folder. Invariants: 1. The entry applied is the one after the
 * last applied, and of the term that the core has there (P-028, P-043). 2. What is committed and
 * not applied is always either being applied, being loaded, or waits for the next slice: `hasWork`
 * says so and the group re-arms on it. 3. An entry that cannot be decoded is never skipped: the
 * process ends with it unapplied (P-031). 4. Answers go to `Completions`, never directly to a
 * caller. 5. While memory has no room for more unflushed rows nothing is applied: what waits is
 * only positions, its entries are in the log (P-192).
 */
import { assert } from "../../base/assert.js";
import { decodeEntry, type DecodedEntry } from "../../machine/commands/codec.js";
import type { Command, Outcome } from "../../machine/commands/command.js";
import type { Machine } from "../../machine/machine.js";
import type { ClockPort, FatalPort, LogEntry, LogPort, MeterPort } from "../../ports.js";
import type { CommittedRange } from "../../raft/state/types.js";
import { EntryKindCode } from "../replication/config-entries.js";
import type { Batcher } from "../requests/batcher.js";
import type { Proposals, ProposedEntry } from "../requests/proposals.js";
import type { ProposalMarks } from "../requests/results.js";

/** One read of a replay asks the log for at most this many bytes; every group may have one open. */
const LOAD_BYTES_MAX = 256 << 10;
/** How long leases that were granted in an earlier life of the process may run on (ms). */
const EARLIER_LEASES_MS = 86_400_000;

/** What one turn may still spend on applying, over all groups. */
export interface ApplySlice {
  /** Monotonic time at which the turn stops applying. */
  endMs: number;
  /** Commands left. */
  commands: number;
}

export interface ApplierPorts {
  readonly clock: ClockPort;
  readonly log: LogPort;
  readonly meter: MeterPort;
  readonly fatal: FatalPort;
}

/** What the applier asks of its group. */
export interface ApplierGroup {
  /** Hears of what was proposed here when it is applied. */
  readonly batcher: Pick<Batcher, "applied">;
  /** The core's term of an entry that is not applied yet. */
  termAt(index: number): number;
  /** An entry that is still in memory; null when it must be read from the log. */
  cached(index: number, term: number): LogEntry | null;
  /** Memory has room for the rows of an entry more; whoever makes room asks for a turn. */
  mayApply(): boolean;
  /** Applies a membership change. False: its payload cannot be decoded. */
  applyMembership(entry: LogEntry): boolean;
  /** The entry applied last has one of the indexes at which replicas are compared. */
  onFixedIndex(): void;
  /** The entry applied last raised the level of the group. */
  onLevel(level: number): void;
  /** Called, outside of any turn, when entries that were asked from the log have come. */
  onLoaded(): void;
}

export class Applier {
  private committedTo: number;
  private loaded: readonly LogEntry[] = [];
  private loadedAt = 0;
  private loading = false;
  private halted = false;
  private readonly outcomes: Outcome[] = [];
  /** Payload bytes applied so far. */
  appliedBytes = 0;
  /** No lease of a lock or key is known to end after this lease time. */
  leasesUntilMs: number;

  constructor(
    private readonly machine: Machine,
    private readonly proposals: Proposals,
    private readonly ports: ApplierPorts,
    private readonly group: ApplierGroup,
    /** Replicas are compared at multiples of this index. */
    private readonly compareEvery: number,
  ) {
    this.committedTo = machine.appliedIndex;
    this.leasesUntilMs = machine.appliedIndex === 0 ? 0 : machine.leaseMs + EARLIER_LEASES_MS;
  }

  /** The core handed out `range` for applying. */
  commit(range: CommittedRange): void {
    assert(range.first === this.committedTo + 1, "committed ranges follow each other");
    assert(range.last >= range.first, "a committed range is not empty");
    this.committedTo = range.last;
  }

  /** A snapshot took the group to `index`: what was handed out below is in it. */
  reset(index: number): void {
    this.committedTo = index;
    this.leasesUntilMs = this.machine.leaseMs + EARLIER_LEASES_MS;
    this.loaded = [];
    this.loadedAt = 0;
  }

  /** Whether a slice would apply something now. */
  get hasWork(): boolean {
    return this.isReady && this.group.mayApply();
  }

  /** Something could be applied, if memory had room. */
  get isHeld(): boolean {
    return this.isReady && !this.group.mayApply();
  }

  private get isReady(): boolean {
    return !this.loading && !this.halted && this.machine.appliedIndex < this.committedTo;
  }

  /** Committed and not applied, being loaded or not. */
  get backlog(): number {
    return this.committedTo - this.machine.appliedIndex;
  }

  /** Applies at least one entry if there is one, then goes on within `slice`. Returns how many. */
  run(slice: ApplySlice, nowMs: number): number {
    if (!this.hasWork) return 0;
    let count = 0;
    const { machine } = this;
    const { clock, meter } = this.ports;
    const beganMs = clock.monotonicMs();
    while (this.hasWork) {
      if (count > 0 && (slice.commands <= 0 || clock.monotonicMs() >= slice.endMs)) break;
      const { level } = machine;
      if (!this.applyNext(slice, nowMs)) break;
      if (machine.level !== level) this.group.onLevel(machine.level);
      if (machine.appliedIndex % this.compareEvery === 0) this.group.onFixedIndex();
      count++;
    }
    if (count > 0) meter.applyMs(clock.monotonicMs() - beganMs);
    return count;
  }

  private applyNext(slice: ApplySlice, nowMs: number): boolean {
    const index = this.machine.appliedIndex + 1;
    const term = this.group.termAt(index);
    const proposed = this.proposals.take(index, term);
    if (proposed !== null && proposed.kind === EntryKindCode.normal) {
      slice.commands -= 1 + proposed.commands.length;
      this.appliedBytes += proposed.payload.length;
      this.applyProposed(proposed, nowMs);
      return true;
    }
    const entry = proposed ?? this.group.cached(index, term) ?? this.nextLoaded(index);
    if (entry === null) {
      this.load(index);
      return false;
    }
    assert(entry.term === term, `entry ${index} of the log has the term that the core knows`);
    if (entry.kind !== EntryKindCode.normal) {
      if (!this.group.applyMembership(entry)) {
        return this.halt(entry, "This version does not know the membership change.") !== null;
      }
      slice.commands--;
      return true;
    }
    const decoded = this.decode(entry);
    if (decoded === null) return false;
    slice.commands -= decoded === "empty" ? 1 : 1 + decoded.commands.length;
    this.appliedBytes += entry.payload.length;
    this.applyDecoded(entry, decoded);
    return true;
  }

  private applyProposed(entry: ProposedEntry, nowMs: number): void {
    const { index, term, stamp, commands, waiters } = entry;
    if (stamp === null) {
      this.machine.applyEmpty({ index, term });
      return;
    }
    const tookMs = nowMs - entry.proposedAtMs;
    this.ports.meter.commitMs(tookMs);
    if (this.proposals.entryCount === 0) this.group.batcher.applied(commands.length, tookMs, nowMs);
    const { outcomes, machine } = this;
    outcomes.length = 0;
    const { lapsedLocks } = machine;
    machine.apply({ index, term, leaseMs: stamp.leaseMs, stamp: stamp.stamp }, commands, outcomes);
    // Where the entry was proposed alone: elsewhere it is another node's to tell.
    const lapsed = machine.lapsedLocks - lapsedLocks;
    if (lapsed > 0) this.ports.meter.locksLapsed(lapsed);
    assert(outcomes.length === commands.length, "apply gives one outcome for each command");
    this.noteLeases(commands);
    const leaseMs = machine.leaseMs;
    for (let at = 0; at < waiters.length; at++) {
      const waiter = waiters[at];
      const outcome = outcomes[at];
      if (waiter === undefined || outcome === undefined) continue;
      if (waiter.marks) this.mark(waiter.marks, entry, nowMs);
      this.proposals.answer(waiter, { status: "applied", outcome, leaseMs, term, index });
    }
  }

  private mark(marks: ProposalMarks, { proposedAtMs }: ProposedEntry, nowMs: number): void {
    marks.proposedMs = proposedAtMs;
    marks.committedMs = nowMs;
    marks.appliedMs = this.ports.clock.monotonicMs();
  }

  private applyDecoded(entry: LogEntry, decoded: DecodedEntry | "empty"): void {
    const { index, term } = entry;
    if (decoded === "empty") return this.machine.applyEmpty({ index, term });
    const { leaseMs, stamp } = decoded.stamp;
    this.outcomes.length = 0;
    this.machine.apply({ index, term, leaseMs, stamp }, decoded.commands, this.outcomes);
    this.noteLeases(decoded.commands);
  }

  private noteLeases(commands: readonly Command[]): void {
    for (const command of commands) {
      if (!("expiresMs" in command)) continue;
      const endMs = this.machine.leaseMs + command.expiresMs;
      if (endMs > this.leasesUntilMs) this.leasesUntilMs = endMs;
    }
  }

  private nextLoaded(index: number): LogEntry | null {
    while (this.loadedAt < this.loaded.length) {
      const entry = this.loaded[this.loadedAt] as LogEntry;
      this.loadedAt++;
      if (entry.index === index) return entry;
      assert(entry.index < index, "loaded entries have no gap");
    }
    this.loaded = [];
    this.loadedAt = 0;
    return null;
  }

  private load(first: number): void {
    this.loading = true;
    const { log } = this.ports;
    log.read(this.machine.group, first, this.committedTo, LOAD_BYTES_MAX, (result) => {
      this.loading = false;
      if (this.machine.appliedIndex >= first) return this.group.onLoaded();
      assert(result.ok, `the log keeps what is not applied (entry ${first})`);
      assert(result.value[0]?.index === first, "a read begins with the entry that was asked for");
      this.loaded = result.value;
      this.loadedAt = 0;
      this.group.onLoaded();
    });
  }

  private decode(entry: LogEntry): DecodedEntry | "empty" | null {
    if (entry.payload.length === 0) return "empty";
    const decoded = decodeEntry(entry.payload);
    if (!decoded.ok) return this.halt(entry, decoded.message);
    return decoded.value;
  }

  private halt(entry: LogEntry, why: string): null {
    this.halted = true;
    const where = { group: this.machine.group, index: entry.index, term: entry.term };
    this.ports.fatal.fatal(`A committed entry cannot be applied: ${why}`, where);
    return null;
  }
}
