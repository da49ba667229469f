/**
 * What the groups of a world did to names, entry by entry, as the first replica did that applied it:
 * a naive second version of what watches tell, made of commands with their outcomes and of leases
 * that are noted here.
 *
 * Invariants: 1. What is applied is applied as before. 2. An entry is looked at once. 3. The end of a
 * lease comes with the first entry whose lease time has reached it, before what that entry does.
 */
import { decodeText } from "../../../src/base/bytes.js";
import { KvType, LockType, SequenceType, WatchEventType } from "../../../src/base/result-types.js";
import type { Replica } from "../../../src/host/group/replica.js";
import type { Node } from "../../../src/host/node.js";
import type { Command, Handover, Outcome } from "../../../src/machine/commands/command.js";
import { LockState } from "../../../src/machine/locks/lock-row.js";
import { textToByteKey } from "../../../src/machine/store/keys.js";
import {
  type Change,
  type ChangeSort,
  type Changes,
  isEnd,
} from "../../judge/checkers/watches/changes.js";

/** The lease of a key or a lock that is there. */
export interface TrueLease {
  readonly sort: ChangeSort;
  readonly name: string;
  readonly endMs: number;
  readonly revision: number;
  readonly token: bigint;
}

type Machine = Replica["machine"];
type What = Pick<Change, "sort" | "name" | "type"> & Partial<Change>;

interface Partition {
  index: number;
  readonly leases: Map<string, TrueLease>;
  /** What is known of each sequence: incarnation and revision. */
  readonly sequences: Map<string, readonly [number, number]>;
}

export class WatchedTruth {
  private readonly partitions = new Map<number, Partition>();
  private readonly keys = new Set<string>();

  constructor(
    private readonly changes: Changes,
    private readonly nowMs: () => number,
    private readonly expired: (lease: TrueLease, partition: number) => void,
  ) {}

  /** Listens to all replicas of a life. */
  attach(node: Node): void {
    const { registry } = node["parts"];
    for (const { replica } of registry.all) this.listen(replica);
    registry.onAdded((replica) => this.listen(replica));
  }

  /** The leases of a partition that run, as far as entries say. */
  leasesOf(partition: number): Iterable<TrueLease> {
    return this.of(partition).leases.values();
  }

  private of(partition: number): Partition {
    let known = this.partitions.get(partition);
    if (known === undefined) {
      known = { index: 0, leases: new Map(), sequences: new Map() };
      this.partitions.set(partition, known);
    }
    return known;
  }

  private listen({ partition, machine }: Replica): void {
    const apply = machine.apply.bind(machine);
    machine.apply = (entry, commands, outcomes) => {
      const first = outcomes.length;
      apply(entry, commands, outcomes);
      if (entry.index <= this.of(partition).index) return;
      this.note(partition, entry.index, machine, commands, outcomes.slice(first));
    };
  }

  private note(
    id: number,
    index: number,
    machine: Machine,
    commands: readonly Command[],
    outcomes: readonly Outcome[],
  ): void {
    const partition = this.of(id);
    partition.index = index;
    const add = (what: What): void => {
      const none = { revision: 0, incarnation: 0, token: 0n, value: null };
      const { lastStamp: stamp } = machine;
      this.changes.add({ ...none, ...what, stamp, partition: id, index, atMs: this.nowMs() });
    };
    this.expire(id, partition, machine.leaseMs, add);
    let hasMoved = false;
    const locks = new Set<string>();
    for (const [at, command] of commands.entries()) {
      hasMoved ||= command.kind.startsWith("range-");
      if ("resource" in command) locks.add(command.resource);
      this.did(partition, machine, command, outcomes[at] as Outcome, add);
    }
    // A lock may have changed hands more than once.
    for (const name of locks) noteLock(partition, machine, name);
    if (!hasMoved) return;
    // Keys came or went with their leases.
    for (const name of this.keys) {
      this.endedUnseen(machine, name, add);
      this.noteKey(partition, machine, name);
    }
  }

  private expire(
    id: number,
    { leases }: Partition,
    leaseMs: number,
    add: (what: What) => void,
  ): void {
    for (const [key, lease] of leases) {
      if (lease.endMs > leaseMs) continue;
      leases.delete(key);
      const { sort, name, revision, token } = lease;
      const { expired, lockExpired } = WatchEventType;
      add({ sort, name, type: sort === "key" ? expired : lockExpired, revision, token });
      this.expired(lease, id);
    }
  }

  private did(
    partition: Partition,
    machine: Machine,
    command: Command,
    outcome: Outcome,
    add: (what: What) => void,
  ): void {
    switch (command.kind) {
      case "kv-set":
      case "kv-delete":
      case "kv-extend":
        return this.didKey(partition, machine, command, outcome, add);
      case "try-lock":
      case "lock-with-note":
      case "lock-heir":
      case "try-extend":
      case "extend-grant":
      case "try-unlock":
      case "unlock-grant":
      case "force-unlock":
        return this.didLock(partition, command, outcome, add);
      case "create-sequence":
      case "update-sequence":
      case "delete-sequence":
      case "allocate":
      case "reserve-block":
        return this.didSequence(partition, command.kind, command.name, outcome, add);
      default:
    }
  }

  private didKey(
    partition: Partition,
    machine: Machine,
    command: Extract<Command, { kind: "kv-set" | "kv-delete" | "kv-extend" }>,
    outcome: Outcome,
    add: (what: What) => void,
  ): void {
    if (outcome.kind !== "kv") return;
    const { key: name } = command;
    const { type, revision } = outcome;
    const sort = "key";
    this.keys.add(name);
    if (type === KvType.set && command.kind === "kv-set") {
      const value = command.value === null ? null : decodeText(command.value);
      add({ sort, name, type: WatchEventType.set, revision, value });
    } else if (type === KvType.deleted && command.kind === "kv-delete") {
      add({ sort, name, type: WatchEventType.deleted, revision });
    } else if (type !== KvType.extended) return;
    this.noteKey(partition, machine, name);
  }

  private noteKey({ leases }: Partition, machine: Machine, name: string): void {
    const row = machine.reads.watched.key(textToByteKey(name));
    const id = `key ${name}`;
    if (row === null || row.deleted || row.endMs === null) return void leases.delete(id);
    // One that has ended was told of where it ended.
    if (row.endMs <= machine.leaseMs) return;
    const { endMs, revision } = row;
    leases.set(id, { sort: "key", name, endMs, revision, token: 0n });
  }

  /** Of a key that came with its move, and whose lease ended while nobody had it. */
  private endedUnseen(machine: Machine, name: string, add: (what: What) => void): void {
    const row = machine.reads.watched.key(textToByteKey(name));
    if (row === null || row.deleted || row.endMs === null || row.endMs > machine.leaseMs) return;
    const last = this.changes.of("key", name).at(-1);
    if (last === undefined || isEnd(last)) return;
    add({ sort: "key", name, type: WatchEventType.expired, revision: row.revision });
  }

  private didLock(
    { leases }: Partition,
    command: Extract<Command, { readonly resource: string }>,
    outcome: Outcome,
    add: (what: What) => void,
  ): void {
    const { kind, resource: name } = command;
    const isForced = outcome.kind === "forced";
    if ((outcome.kind !== "lock" && !isForced) || (isForced && kind !== "force-unlock")) return;
    // What an ephemeral table did is no change of a row.
    if (kind === "force-unlock" && command.owner !== null) return;
    const id = `lock ${name}`;
    const held = leases.get(id);
    const { type, token, handover } = outcome;
    const sort = "lock";
    if (handover !== undefined) return this.handedOver(leases, name, handover, add);
    if (type === LockType.locked && held?.token !== token) {
      add({ sort, name, type: WatchEventType.locked, token });
      leases.set(id, { sort, name, endMs: Infinity, revision: 0, token });
    } else if (type === LockType.unlocked && held !== undefined) {
      add({ sort, name, type: WatchEventType.unlocked, token: held.token });
      leases.delete(id);
    }
  }

  /** Along heirs a command may end a grant, and make others, of which all but the last are over. */
  private handedOver(
    leases: Map<string, TrueLease>,
    name: string,
    { to, isFree }: Handover,
    add: (what: What) => void,
  ): void {
    const id = `lock ${name}`;
    const sort = "lock";
    const end = (): void => {
      const held = leases.get(id);
      if (held !== undefined) add({ sort, name, type: WatchEventType.unlocked, token: held.token });
      leases.delete(id);
    };
    for (const { token } of to) {
      end();
      add({ sort, name, type: WatchEventType.locked, token });
      leases.set(id, { sort, name, endMs: Infinity, revision: 0, token });
    }
    if (isFree) end();
  }

  private didSequence(
    { sequences }: Partition,
    kind: string,
    name: string,
    outcome: Outcome,
    add: (what: What) => void,
  ): void {
    const sort = "sequence";
    const { sequenceCreated, sequenceUpdated, sequenceDeleted, sequenceReserved } = WatchEventType;
    if (outcome.kind === "sequence" && outcome.type === SequenceType.success) {
      if (kind === "delete-sequence") return add({ sort, name, type: sequenceDeleted });
      if (outcome.record === null) return;
      const { revision, incarnation } = outcome.record;
      sequences.set(name, [incarnation, revision]);
      const type = kind === "create-sequence" ? sequenceCreated : sequenceUpdated;
      return add({ sort, name, type, revision, incarnation });
    }
    if (outcome.kind !== "allocation" || outcome.type !== SequenceType.success) return;
    const { revision, incarnation } = outcome;
    const [before, last] = sequences.get(name) ?? [-1, -1];
    // What was allocated once is answered again.
    if (incarnation < before || (incarnation === before && revision <= last)) return;
    sequences.set(name, [incarnation, revision]);
    add({ sort, name, type: sequenceReserved, revision, incarnation });
  }
}

/** The lease of a lock as it is behind an entry. */
function noteLock({ leases }: Partition, machine: Machine, name: string): void {
  const id = `lock ${name}`;
  const row = machine.reads.watched.lock(textToByteKey(name));
  if (row?.state !== LockState.held || row.endMs <= machine.leaseMs) return void leases.delete(id);
  leases.set(id, { sort: "lock", name, endMs: row.endMs, revision: 0, token: row.token });
}
