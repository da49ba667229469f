/**
 * Listens to what machines apply, entry by entry, for the checkers of key ranges: which command came to
 * which outcome, and what the state is then.
 *
 * Invariants: 1. What is applied is applied as before. 2. An entry is told once, when the first replica
 * applies it: that all of them come to the same is for another checker. 3. An entry counts as proposed
 * when it was first written to a log in its term.
 */
import type { Replica } from "../../../src/host/group/replica.js";
import type { Node } from "../../../src/host/node.js";
import type { Command, Outcome } from "../../../src/machine/commands/command.js";
import type { Machine } from "../../../src/machine/machine.js";

/** One entry that the first replica has applied. */
export interface AppliedSeen {
  readonly group: number;
  readonly node: number;
  readonly atMs: number;
  /** When it was proposed (true time). */
  readonly proposedMs: number;
  readonly commands: readonly Command[];
  readonly outcomes: readonly Outcome[];
  /** As of the entry. */
  readonly machine: Machine;
}

export interface RangeListener {
  applied(seen: AppliedSeen): void;
  /** A replica took over a snapshot of `group`. */
  installed(node: number, group: number): void;
}

interface Written {
  readonly term: number;
  readonly atMs: number;
}

/** Entries of which it is remembered when they were written, by group. */
const WRITTEN_MAX = 4096;

export class RangeTap {
  /** The highest entry of each group that any replica has applied. */
  readonly highest = new Map<number, number>();
  private readonly written = new Map<number, Map<number, Written>>();

  constructor(
    private readonly nowMs: () => number,
    private readonly listener: RangeListener,
  ) {}

  /** A node writes an entry to its log. */
  entry(group: number, index: number, term: number): void {
    let entries = this.written.get(group);
    if (entries === undefined) this.written.set(group, (entries = new Map<number, Written>()));
    if (entries.get(index)?.term === term) return;
    entries.set(index, { term, atMs: this.nowMs() });
    if (entries.size <= WRITTEN_MAX) return;
    for (const oldest of entries.keys()) {
      if (entries.size <= WRITTEN_MAX / 2) break;
      entries.delete(oldest);
    }
  }

  /** Listens to all replicas of a life. */
  attach(node: number, life: Node): void {
    const { registry } = life["parts"];
    for (const { replica } of registry.all) this.listen(node, replica);
    registry.onAdded((replica) => this.listen(node, replica));
  }

  private listen(node: number, { partition, machine }: Replica): void {
    const apply = machine.apply.bind(machine);
    machine.apply = (entry, commands, outcomes) => {
      const first = outcomes.length;
      apply(entry, commands, outcomes);
      const { index, term } = entry;
      if (index <= (this.highest.get(partition) ?? 0)) return;
      this.highest.set(partition, index);
      const atMs = this.nowMs();
      const written = this.written.get(partition)?.get(index);
      const proposedMs = written?.term === term ? written.atMs : atMs;
      const seen = { group: partition, node, atMs, proposedMs, commands, machine };
      this.listener.applied({ ...seen, outcomes: outcomes.slice(first) });
    };
    const install = machine.install.bind(machine);
    machine.install = (sink) => {
      install(sink);
      this.listener.installed(node, partition);
    };
  }
}
