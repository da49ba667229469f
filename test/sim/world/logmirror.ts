/**
 * Sees what one node writes to its log, entry by entry, and keeps the terms: for the checkers that
 * compare logs.
 *
 * Invariants: 1. The log below is called as before, with the same arguments. 2. What was written
 * counts from the call on, durable or not; a new life begins with what recovery found. 3. What is told
 * as durable is on the disk: of a reset that is under way it is what was there before.
 */
import type { PartitionId } from "../../../src/base/ids.js";
import type {
  RecoveredGroupLog,
  HardState,
  LogEntry,
  LogPort,
  LogPosition,
  LogWrite,
} from "../../../src/ports.js";
import type { DurableState } from "../../judge/checkers/promises.js";

/** Told of every entry that a node appends. `digest` is over kind and payload. */
export type EntryHook = (
  group: number,
  index: number,
  term: number,
  previousTerm: number,
  digest: number,
  /** It changes the members of the group. */
  isConfig: boolean,
) => void;

/** Number of an entry that changes no members; see ports.ts. */
const NORMAL_ENTRY = 0;

class GroupTerms {
  /** Terms of the entries above `floor`, in order. */
  terms: number[] = [];
  /** The last entry that is known to be on the disk, with all before it. */
  durableIndex: number;
  /** Last entries of writes that are under way, as far as they still count. */
  private readonly pending = new Set<{ last: number }>();

  constructor(public floor: LogPosition) {
    this.durableIndex = floor.index;
  }

  /** A write of the entries from `first` to `last` is under way. Returns what is to be called when it is done. */
  writes(first: number, last: number): () => void {
    // What is written over counts no more, done or not.
    this.durableIndex = Math.min(this.durableIndex, first - 1);
    for (const other of this.pending) other.last = Math.min(other.last, first - 1);
    const own = { last };
    this.pending.add(own);
    return () => {
      this.pending.delete(own);
      this.durableIndex = Math.max(this.durableIndex, own.last);
    };
  }

  /** null: below the floor. undefined: beyond the end. */
  at(index: number): number | null | undefined {
    if (index === this.floor.index) return this.floor.term;
    if (index < this.floor.index) return null;
    return this.terms[index - this.floor.index - 1];
  }
}

function digestOf(entry: LogEntry): number {
  let sum = entry.kind ^ 0x9e3779b9;
  const { payload } = entry;
  for (let at = 0; at < payload.length; at++) {
    sum = Math.imul(sum ^ (payload[at] as number), 0x01000193);
  }
  return sum >>> 0;
}

export class LogMirror implements LogPort {
  private readonly groups = new Map<number, GroupTerms>();
  /** What the disk holds of groups whose reset is under way. */
  private readonly replaced = new Map<GroupTerms, GroupTerms>();
  private readonly hardStates = new Map<number, HardState>();
  private readonly issuedTerms = new Map<number, number>();
  /** How often each group was forgotten: writes of before say nothing of what is there now. */
  private readonly forgotten = new Map<number, number>();

  constructor(
    private readonly log: LogPort,
    private readonly onEntry: EntryHook,
    /** Told of every entry with its payload, where somebody reads it. */
    private readonly onPayload: ((group: number, entry: LogEntry) => void) | null = null,
    /** Told of every group that is forgotten. */
    private readonly onForget: (group: number) => void = () => undefined,
  ) {
    for (const [group, snapshot] of log.recovered()) {
      this.groups.set(group, mirrored(snapshot));
      this.hardStates.set(group, snapshot.hardState);
    }
  }

  /** The term that a restart cannot forget. */
  durableTerm(group: number): number {
    return this.hardStates.get(group)?.term ?? 0;
  }

  /** All that a restart cannot forget of `group`, and the term that was written last. */
  durable(group: number): DurableState {
    const { term, vote } = this.hardStates.get(group) ?? { term: 0, vote: 0 };
    const lastIndex = this.onDisk(group)?.durableIndex ?? 0;
    return { term, vote, lastIndex, issuedTerm: this.issuedTerms.get(group) ?? term };
  }

  /** The groups of which anything is durable. */
  get durableGroups(): Iterable<number> {
    return this.hardStates.keys();
  }

  /** A reset of `group` is under way: the disk holds less than the store of states, which is first. */
  isReset(group: number): boolean {
    return this.onDisk(group) !== this.groups.get(group);
  }

  /** True when the entry of `term` at `index` is on the disk, or lies below what a snapshot covers. */
  isDurable(group: number, index: number, term: number): boolean {
    const mirror = this.onDisk(group);
    if (mirror === undefined || index > mirror.durableIndex) return false;
    const own = mirror.at(index);
    return own === null || own === term;
  }

  termAt(group: number, index: number): number | null | undefined {
    return this.groups.get(group)?.at(index);
  }

  recovered(): ReadonlyMap<PartitionId, RecoveredGroupLog> {
    return this.log.recovered();
  }

  write(write: LogWrite): void {
    const first = write.entries[0];
    let written: (() => void) | null = null;
    if (first !== undefined) {
      let group = this.groups.get(write.group);
      if (group === undefined) {
        group = new GroupTerms({ term: 0, index: 0 });
        this.groups.set(write.group, group);
      }
      group.terms.length = first.index - group.floor.index - 1;
      for (const entry of write.entries) {
        const previous = group.at(entry.index - 1) ?? 0;
        group.terms.push(entry.term);
        const isConfig = entry.kind !== NORMAL_ENTRY;
        this.onEntry(write.group, entry.index, entry.term, previous, digestOf(entry), isConfig);
        this.onPayload?.(write.group, entry);
      }
      written = group.writes(first.index, first.index + write.entries.length - 1);
    }
    const { hardState, group, done } = write;
    if (hardState !== null) this.issuedTerms.set(group, hardState.term);
    const epoch = this.forgotten.get(group);
    this.log.write({
      ...write,
      done: () => {
        const isOfNow = this.forgotten.get(group) === epoch;
        if (hardState !== null && isOfNow) this.hardStates.set(group, hardState);
        written?.();
        done();
      },
    });
  }

  read(...parameters: Parameters<LogPort["read"]>): void {
    this.log.read(...parameters);
  }

  raiseFloor(group: PartitionId, floor: LogPosition): void {
    const mirror = this.groups.get(group);
    if (mirror !== undefined && floor.index > mirror.floor.index) {
      mirror.terms = mirror.terms.slice(floor.index - mirror.floor.index);
      mirror.floor = floor;
      mirror.durableIndex = Math.max(mirror.durableIndex, floor.index);
    }
    this.log.raiseFloor(group, floor);
  }

  resetGroup(group: PartitionId, floor: LogPosition, state: HardState, done: () => void): void {
    const former = this.onDisk(group);
    const next = new GroupTerms(floor);
    this.groups.set(group, next);
    this.replaced.set(next, former ?? new GroupTerms({ term: 0, index: 0 }));
    this.issuedTerms.set(group, state.term);
    const epoch = this.forgotten.get(group);
    this.log.resetGroup(group, floor, state, () => {
      this.replaced.delete(next);
      if (this.forgotten.get(group) === epoch) this.hardStates.set(group, state);
      done();
    });
  }

  /** What the disk holds of `group`: a reset counts when it is done, and may wait long for space. */
  private onDisk(group: number): GroupTerms | undefined {
    const own = this.groups.get(group);
    return own === undefined ? undefined : (this.replaced.get(own) ?? own);
  }

  forgetGroup(group: PartitionId, done: () => void): void {
    this.groups.delete(group);
    this.hardStates.delete(group);
    this.issuedTerms.delete(group);
    this.forgotten.set(group, (this.forgotten.get(group) ?? 0) + 1);
    this.onForget(group);
    this.log.forgetGroup(group, done);
  }

  space(): ReturnType<LogPort["space"]> {
    return this.log.space();
  }

  sizeBytes(): number {
    return this.log.sizeBytes();
  }

  pinningGroups(): readonly PartitionId[] {
    return this.log.pinningGroups();
  }

  close(done: () => void): void {
    this.log.close(done);
  }
}

function mirrored(snapshot: RecoveredGroupLog): GroupTerms {
  const group = new GroupTerms(snapshot.floor);
  for (const [at, run] of snapshot.termRuns.entries()) {
    const next = snapshot.termRuns[at + 1]?.firstIndex ?? snapshot.lastIndex + 1;
    for (let index = run.firstIndex; index < next; index++) group.terms.push(run.term);
  }
  group.durableIndex = snapshot.lastIndex;
  return group;
}
