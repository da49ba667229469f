/**
 * The state of a group at any index, made anew from what was applied since its beginning: by the
 * machine that ships, on a table of its own, from no image and no artifact.
 *
 * Invariants: 1. It goes forward, and begins anew to go back. 2. Looking changes nothing elsewhere.
 */
import { present } from "../../../src/base/assert.js";
import { META_PARTITION, partitionId } from "../../../src/base/ids.js";
import {
  EntryKindCode,
  decodeConfigChange,
  decodeMembership,
  encodeMembership,
  membershipOfVoters,
} from "../../../src/host/replication/config-entries.js";
import { decodeEntry } from "../../../src/machine/commands/codec.js";
import { Machine } from "../../../src/machine/machine.js";
import {
  type ByteKey,
  fromByteKey,
  generationPrefix,
  keySuccessor,
} from "../../../src/machine/store/keys.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import type { Membership } from "../../../src/raft/state/types.js";
import { changeMembership } from "../../../src/raft/state/membership.js";
import { FakeStore } from "../../doubles/machine/fake-store.js";
import type { Truth } from "./truth.js";

/** Rows of a group by kind and name, without the prefix of its generation. */
export type GroupRows = ReadonlyMap<ByteKey, Uint8Array>;

/** All rows of a machine. */
export function rowsOf(memtable: Memtable, machine: Machine): GroupRows {
  const prefix = generationPrefix(machine.group, machine.record().generation);
  const rows = new Map<ByteKey, Uint8Array>();
  memtable.scan(prefix, keySuccessor(prefix), (key, value) => {
    rows.set(key.slice(prefix.length), value);
    return true;
  });
  return rows;
}

/** What a group begins with where a restore made it: rows as they are stored. */
export type Beginning = ReadonlyMap<ByteKey, Uint8Array>;

/** A table of its own over such rows. */
export function memtableOf(rows: Beginning): Memtable {
  const store = new FakeStore();
  const changes = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  if (changes.length > 0) {
    store.write(
      changes.map(([key, value]) => ({ key: fromByteKey(key), value })),
      () => undefined,
    );
  }
  return new Memtable({ store, cacheBytes: 0 });
}

class Replay {
  readonly memtable: Memtable;
  readonly machine: Machine;
  private membership: Membership | null;

  constructor(
    private readonly truth: Truth,
    private readonly partition: number,
    beginning: Beginning | null,
    isOfPool: boolean,
    founders: readonly number[],
  ) {
    this.memtable = memtableOf(beginning ?? new Map());
    this.machine = new Machine(this.memtable, partitionId(partition), 0, isOfPool);
    this.membership = membershipOfVoters(founders);
  }

  /** False: an entry on the way is not known. */
  goTo(index: number): boolean {
    const { machine } = this;
    while (machine.appliedIndex < index) {
      const entry = this.truth.entry(this.partition, machine.appliedIndex + 1);
      if (entry === undefined) return false;
      const { term, kind, payload } = entry;
      const at = { index: entry.index, term };
      if (kind !== EntryKindCode.normal) this.change(at, payload);
      else if (payload.length === 0) machine.applyEmpty(at);
      else {
        const decoded = decodeEntry(payload);
        if (!decoded.ok) throw new Error(`entry ${entry.index} of ${this.partition} is damaged`);
        const { leaseMs, stamp } = decoded.value.stamp;
        machine.apply({ ...at, leaseMs, stamp }, decoded.value.commands, []);
      }
    }
    return true;
  }

  private change(at: { index: number; term: number }, payload: Uint8Array): void {
    const ordered = present(decodeConfigChange(payload), "a change of members is whole");
    const stored = this.machine.membership;
    const before = stored === null ? this.membership : decodeMembership(stored);
    const changed = changeMembership(present(before, "members are known"), ordered.change);
    if (!changed.ok) throw new Error(`entry ${at.index} of ${this.partition} changes nobody`);
    this.membership = changed.membership;
    this.machine.applyMembership(at, encodeMembership(changed.membership), ordered.generation);
  }
}

/** One cluster's groups. */
export class Shadows {
  private readonly replays = new Map<number, Replay>();
  /** Of meta, with all that it has applied. */
  private latest: Replay | null = null;

  constructor(
    private readonly truth: Truth,
    private readonly founders: readonly number[],
    private readonly dataPartitions: number,
    private readonly beginning: Beginning | null = null,
  ) {}

  /** The machine of a group right behind `index`; null: not all of it is known. */
  at(partition: number, index: number): { machine: Machine; rows: GroupRows } | null {
    let replay = this.replays.get(partition);
    if (replay === undefined || replay.machine.appliedIndex > index) {
      const founders = this.foundersOf(partition);
      const isOfPool = partition <= this.dataPartitions;
      replay = new Replay(this.truth, partition, this.beginning, isOfPool, founders);
      this.replays.set(partition, replay);
    }
    if (!replay.goTo(index) || replay.machine.appliedIndex !== index) return null;
    return { machine: replay.machine, rows: rowsOf(replay.memtable, replay.machine) };
  }

  /** Who a group began with: by its record, or all of them. */
  private foundersOf(partition: number): readonly number[] {
    if (partition === META_PARTITION) return this.founders;
    if (this.latest === null) {
      const { truth, beginning, founders } = this;
      this.latest = new Replay(truth, META_PARTITION, beginning, true, founders);
      this.latest.goTo(truth.entries(META_PARTITION).length - 1);
    }
    const listed = this.latest.machine.meta.partition(partitionId(partition))?.founders ?? [];
    return listed.length > 0 ? listed : this.founders;
  }
}
