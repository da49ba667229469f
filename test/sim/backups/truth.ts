/**
 * What the groups of a cluster have applied, entry by entry, as the first replica did: the truth that
 * backups and restores are compared with.
 *
 * Invariants: 1. What is applied is applied as before. 2. An entry is kept once, as it was written to
 * a log, with the digest that the first replica had behind it.
 */
import type { Hlc } from "../../../src/base/hlc.js";
import type { PartitionId } from "../../../src/base/ids.js";
import type { Replica } from "../../../src/host/group/replica.js";
import type { Node } from "../../../src/host/node.js";
import type { Outcome } from "../../../src/machine/commands/command.js";
import type { LogEntry } from "../../../src/ports.js";

export interface TrueEntry extends LogEntry {
  /** null: an entry without one. */
  readonly stamp: Hlc | null;
  readonly leaseMs: number;
  /** Digest over all entries up to it. */
  readonly chain: string;
  /** When it was applied first (true time). */
  readonly atMs: number;
  /** Places of commands that did nothing: their keys were on their way to another group. */
  readonly moved: readonly number[];
}

const NONE: readonly number[] = [];

function movedOf(outcomes: readonly Outcome[]): readonly number[] {
  const moved: number[] = [];
  for (const [at, { kind }] of outcomes.entries()) if (kind === "moved") moved.push(at);
  return moved.length === 0 ? NONE : moved;
}

export class Truth {
  private readonly written = new Map<string, LogEntry>();
  /** By partition and index. */
  private readonly applied = new Map<number, TrueEntry[]>();

  constructor(private readonly nowMs: () => number) {}

  /** A node appends an entry to its log. */
  appended(group: number, entry: LogEntry): void {
    const key = `${group}/${entry.index}/${entry.term}`;
    if (!this.written.has(key)) {
      this.written.set(key, { ...entry, payload: entry.payload.slice() });
    }
  }

  /** Listens to all replicas of a life. */
  attach(node: Node): void {
    const { registry } = node["parts"];
    for (const { replica } of registry.all) this.listen(replica);
    registry.onAdded((replica) => this.listen(replica));
  }

  private listen({ partition, machine }: Replica): void {
    const apply = machine.apply.bind(machine);
    const note = (
      at: { index: number; term: number },
      stamp: Hlc | null,
      leaseMs: number,
      moved: () => readonly number[] = () => NONE,
    ): void => this.note(partition, at, stamp, leaseMs, moved, () => machine.chainDigest);
    machine.apply = (entry, commands, outcomes) => {
      const first = outcomes.length;
      apply(entry, commands, outcomes);
      note(entry, entry.stamp, entry.leaseMs, () => movedOf(outcomes.slice(first)));
    };
    const applyEmpty = machine.applyEmpty.bind(machine);
    machine.applyEmpty = (entry) => {
      applyEmpty(entry);
      note(entry, null, 0);
    };
    const applyMembership = machine.applyMembership.bind(machine);
    machine.applyMembership = (entry, blob, generation) => {
      applyMembership(entry, blob, generation);
      note(entry, null, 0);
    };
  }

  private note(
    partition: PartitionId,
    { index, term }: { readonly index: number; readonly term: number },
    stamp: Hlc | null,
    leaseMs: number,
    moved: () => readonly number[],
    chain: () => string,
  ): void {
    let entries = this.applied.get(partition);
    if (entries === undefined) this.applied.set(partition, (entries = []));
    if (entries[index] !== undefined) return;
    const entry = this.written.get(`${partition}/${index}/${term}`);
    if (entry === undefined) return;
    const atMs = this.nowMs();
    entries[index] = { ...entry, stamp, leaseMs, chain: chain(), atMs, moved: moved() };
  }

  get partitions(): readonly number[] {
    return [...this.applied.keys()].sort((a, b) => a - b);
  }

  /** By index; what nobody applied yet is not there. */
  entries(partition: number): readonly (TrueEntry | undefined)[] {
    return this.applied.get(partition) ?? [];
  }

  entry(partition: number, index: number): TrueEntry | undefined {
    return this.applied.get(partition)?.[index];
  }
}
