/**
 * What the objects of a restored cluster begin with, for the checkers of its history: made of the rows
 * that the old cluster's entries lead to, not of what a restore wrote.
 *
 * Only what a restore chooses is taken from there: incarnations. Lease time stands still from the end
 * of the backup to the first start of the restored cluster.
 */
import { decodeText } from "../../../src/base/bytes.js";
import { META_PARTITION, partitionId } from "../../../src/base/ids.js";
import { type KvRow, decodeKvRow } from "../../../src/machine/kv/kv-row.js";
import { LockState as RowState, decodeLockRow } from "../../../src/machine/locks/lock-row.js";
import {
  decodeAllocationRow,
  decodeSequenceRow,
} from "../../../src/machine/sequences/sequence-row.js";
import { Machine } from "../../../src/machine/machine.js";
import type { OwnedKeys } from "../../../src/machine/ownership/ownership.js";
import {
  RowKind,
  byteKeyToText,
  historyKey,
  sequenceKeyKey,
  textToByteKey,
} from "../../../src/machine/store/keys.js";
import { spacesIn } from "../../doubles/backup/settled-spaces.js";
import type { SeenSpace } from "../../judge/checkers/backups/forced-map.js";
import type { FirstStates } from "../../judge/models/first-states.js";
import type { KeptRevision, KeptRevisions } from "../../judge/models/kept-revisions.js";
import type { KvState } from "../../judge/models/kv.js";
import type { Lease } from "../../judge/models/lease-time.js";
import type { LockState } from "../../judge/models/lock.js";
import type {
  RememberedKey,
  RememberedKeys,
  SequenceState,
} from "../../judge/models/sequence-state.js";
import { toldValue } from "../../judge/operation.js";
import type { MadeState } from "./restorer.js";
import { type Beginning, type GroupRows, memtableOf } from "./shadow.js";

/** A group at the end of a backup. */
export interface GroupAtCut {
  readonly partition: number;
  readonly rows: GroupRows;
  readonly leaseMs: number;
  /** Of rows of keys that it does not own some may be left. */
  readonly keys: OwnedKeys;
}

export interface CutStates {
  readonly groups: readonly GroupAtCut[];
  /** When the restored cluster was started first (ms of the world). */
  readonly beganMs: number;
  readonly keysRetainedMs: number;
  /** Which partition has a key by the map, which also says whose it is while it is on its way. */
  homeOf(key: string): number;
  /** The map decides, whatever the groups owned: each was known as of another moment. */
  readonly isSettled: boolean;
  /** Of a sequence in the restored state; null: it is not there. */
  incarnationOf(name: string): number | null;
}

export class StatesAtCut implements FirstStates {
  /** Objects that were there and that anybody asked for. */
  inherited = 0;

  constructor(private readonly cut: CutStates) {}

  has(kind: number, name: string): boolean {
    return this.find(kind, name) !== null;
  }

  /** The group that has a row, and the row. */
  private find(kind: number, name: string): { group: GroupAtCut; bytes: Uint8Array } | null {
    const key = String.fromCharCode(kind) + textToByteKey(name);
    const isKey = kind === RowKind.value;
    const { groups, isSettled } = this.cut;
    const own = groups.filter(({ keys, rows }) => {
      return rows.has(key) && (!isKey || (!isSettled && keys.owns(key.slice(1))));
    });
    const home = isKey && own.length === 0 ? this.cut.homeOf(name) : null;
    const group = own[0] ?? groups.find(({ partition }) => partition === home);
    const bytes = group?.rows.get(key);
    return group === undefined || bytes === undefined ? null : { group, bytes };
  }

  /** What is left of a lease that ends at `endMs` of the lease clock. */
  private lease(group: GroupAtCut, endMs: number): Lease {
    const { beganMs } = this.cut;
    const leaseMs = endMs - group.leaseMs;
    return { leaseMs, startMinMs: beganMs, startMaxMs: beganMs, seenOver: false };
  }

  lock(resource: string): LockState | null {
    const found = this.find(RowKind.lock, resource);
    const row = found === null ? null : decodeLockRow(found.bytes);
    if (found === null || row === null) return null;
    this.inherited++;
    const { token } = row;
    const owner = decodeText(row.owner) ?? "";
    const released = row.state === RowState.released;
    const lease = this.lease(found.group, row.endMs);
    return { grant: { owner, token, lease, released }, floor: token, term: null };
  }

  key(key: string, kept: KeptRevisions): KvState | null {
    const found = this.find(RowKind.value, key);
    const row = found === null ? null : decodeKvRow(found.bytes);
    if (found === null || row === null) return null;
    const { group } = found;
    this.inherited++;
    return {
      revision: BigInt(row.revision),
      isTombstone: row.deleted,
      value: valueOf(row),
      isPassing: row.passing,
      lease: row.endMs === null ? null : this.lease(group, row.endMs),
      older: this.olderOf(group, key, row, kept),
      term: null,
    };
  }

  private olderOf(
    group: GroupAtCut,
    key: string,
    latest: KvRow,
    kept: KeptRevisions,
  ): KeptRevision | null {
    let older: KeptRevision | null = null;
    for (const { first, count } of latest.kept) {
      for (let revision = first; revision < first + count; revision++) {
        const row = this.olderRow(group, key, revision);
        if (row === null) continue;
        const lease = row.endMs === null ? null : this.lease(group, row.endMs);
        const entry = { revision: BigInt(revision), value: valueOf(row), lease };
        older = kept.add(older, { ...entry, isSure: lease === null });
      }
    }
    return older;
  }

  private olderRow({ rows }: GroupAtCut, key: string, revision: number): KvRow | null {
    const name = historyKey(textToByteKey(key), revision);
    const bytes = rows.get(String.fromCharCode(RowKind.history) + name);
    return bytes === undefined ? null : decodeKvRow(bytes);
  }

  sequence(name: string, remembered: RememberedKeys): SequenceState | null {
    const found = this.find(RowKind.sequence, name);
    const row = found === null ? null : decodeSequenceRow(found.bytes);
    if (found === null || row === null) return null;
    this.inherited++;
    const { initialValue, increment, maxValue, blockSize, currentValue, life } = row;
    return {
      ...{ initialValue, increment, maxValue, blockSize },
      incarnation: BigInt(this.cut.incarnationOf(name) ?? -1),
      revision: BigInt(row.revision),
      served: currentValue,
      blockEnd: currentValue,
      blockSharedUntil: Number.NEGATIVE_INFINITY,
      keys: this.keysOf(found.group, life, remembered),
    };
  }

  private keysOf(
    group: GroupAtCut,
    life: number,
    remembered: RememberedKeys,
  ): RememberedKey | null {
    const { beganMs, keysRetainedMs } = this.cut;
    const prefix = String.fromCharCode(RowKind.sequenceKey) + sequenceKeyKey(life, "");
    const found: { ordinal: number; key: string; row: Uint8Array }[] = [];
    for (const [key, row] of group.rows) {
      if (!key.startsWith(prefix)) continue;
      const { ordinal = 0 } = decodeAllocationRow(row) ?? {};
      found.push({ ordinal, key: byteKeyToText(key.slice(prefix.length)), row });
    }
    let keys: RememberedKey | null = null;
    for (const { key, row } of found.sort((a, b) => a.ordinal - b.ordinal)) {
      const allocation = decodeAllocationRow(row);
      if (allocation === null) continue;
      const { count, before, increment, revision, endMs } = allocation;
      const leftMs = endMs === 0 ? 0 : keysRetainedMs - (endMs - group.leaseMs);
      const atMs = beganMs - leftMs;
      const start = before + increment;
      const end = before + BigInt(count) * increment;
      const entry = { key, count, start, end, revision: BigInt(revision) };
      keys = remembered.add(keys, { ...entry, fromMs: atMs, toMs: atMs });
    }
    return keys;
  }
}

function valueOf(row: KvRow): string | null {
  return row.value === null ? null : toldValue(decodeText(row.value));
}

/** The meta partition of a state that was made. */
export function metaIn(rows: Beginning): Machine {
  return new Machine(memtableOf(rows), META_PARTITION);
}

/** Of the partitions that it was made of, and those that the map names besides. */
export function settledSpaces({
  rows,
  ends,
}: Pick<MadeState, "rows" | "ends">): readonly SeenSpace[] {
  const memtable = memtableOf(rows);
  const meta = new Machine(memtable, META_PARTITION);
  const poolSize = meta.meta.cluster()?.dataPartitions ?? 0;
  const living = meta.meta.partitions().filter(({ state }) => state !== "Removed");
  const partitions = new Set(living.map((record) => record.partitionId));
  for (const partition of ends.keys()) partitions.add(partition);
  partitions.delete(META_PARTITION);
  const groups = [...partitions].map((partition) => {
    return new Machine(memtable, partitionId(partition), 0, partition <= poolSize);
  });
  return spacesIn(meta, groups);
}
