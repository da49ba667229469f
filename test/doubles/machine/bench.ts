/**
 * What the tests of the state machine share: a machine over a fake store, entries by number, short
 * commands.
 */
import { encodeText } from "../../../src/base/bytes.js";
import { partitionId } from "../../../src/base/ids.js";
import type {
  AllocateCommand,
  BlockCursor,
  Command,
  CreateSequenceCommand,
  KvSetCommand,
  Outcome,
  ReserveBlockCommand,
  UpdateSequenceCommand,
} from "../../../src/machine/commands/command.js";
import { Machine } from "../../../src/machine/machine.js";
import { Memtable } from "../../../src/machine/store/memtable.js";
import { FakeStore, flush } from "./fake-store.js";

export class Bench {
  readonly store: FakeStore;
  readonly memtable: Memtable;
  readonly machine: Machine;
  /** Of the entries to come. */
  term = 1;

  constructor(store = new FakeStore(), group = 1, ownsByDefault = true) {
    this.store = store;
    this.memtable = new Memtable({ store, cacheBytes: 4096 });
    this.machine = new Machine(this.memtable, partitionId(group), 0, ownsByDefault);
  }

  /** Applies one entry at this lease time. */
  apply(leaseMs: number, ...commands: Command[]): Outcome[] {
    const outcomes: Outcome[] = [];
    const index = this.machine.appliedIndex + 1;
    // A leader's clock is ahead of all that it applied, rows of other groups too.
    const stamp = { n: 1, l: Math.max(1000 + index, this.machine.lastStamp.l + 1), c: 0 };
    this.machine.apply({ index, term: this.term, leaseMs, stamp }, commands, outcomes);
    return outcomes;
  }

  one(leaseMs: number, command: Command): Outcome {
    return this.apply(leaseMs, command)[0] as Outcome;
  }

  flush(): void {
    flush(this.memtable, this.store);
  }
}

export function bytes(text: string): Uint8Array {
  return encodeText(text);
}

export function lock(resource: string, owner: string, expiresMs: number): Command {
  return { kind: "try-lock", resource, owner: bytes(owner), expiresMs };
}

export function extend(resource: string, owner: string, expiresMs: number): Command {
  return { kind: "try-extend", resource, owner: bytes(owner), expiresMs };
}

export function unlock(resource: string, owner: string): Command {
  return { kind: "try-unlock", resource, owner: bytes(owner) };
}

export function lockNoted(
  resource: string,
  owner: string,
  expiresMs: number,
  note: string,
): Command {
  const named = { resource, owner: bytes(owner), expiresMs, note: bytes(note) };
  return { kind: "lock-with-note", ...named };
}

export function extendGrant(
  resource: string,
  owner: string,
  expiresMs: number,
  { token = null, note = null }: { readonly token?: bigint | null; readonly note?: string | null },
): Command {
  const named = { resource, owner: bytes(owner), expiresMs, token };
  return { kind: "extend-grant", ...named, note: note === null ? null : bytes(note) };
}

export function unlockGrant(resource: string, owner: string, token: bigint): Command {
  return { kind: "unlock-grant", resource, owner: bytes(owner), token };
}

export function set(key: string, value: string | null, rest: Partial<KvSetCommand> = {}): Command {
  return {
    kind: "kv-set",
    key,
    value: value === null ? null : bytes(value),
    compareValue: null,
    compareRevision: 0n,
    flags: 0,
    expiresMs: 0,
    revisionsRetained: 4,
    ...rest,
  };
}

export function remove(key: string, revisionsRetained = 4): Command {
  return { kind: "kv-delete", key, revisionsRetained };
}

/** What a sequence has of which nothing is said. */
export const NEW_SEQUENCE = {
  initialValue: 0n,
  increment: 1n,
  maxValue: null,
  blockSize: null,
} as const;

/** An update that changes nothing. */
export const UNCHANGED_SEQUENCE = {
  currentValue: null,
  increment: null,
  initialValue: null,
  maxValue: null,
  removeMaxValue: false,
  blockSize: null,
  removeBlockSize: false,
} as const;

export function create(name: string, rest: Partial<CreateSequenceCommand> = {}): Command {
  return {
    kind: "create-sequence",
    name,
    ...NEW_SEQUENCE,
    ...rest,
  };
}

export function update(name: string, rest: Partial<UpdateSequenceCommand> = {}): Command {
  return {
    kind: "update-sequence",
    name,
    ...UNCHANGED_SEQUENCE,
    cursor: null,
    ...rest,
  };
}

export function allocate(
  name: string,
  count: number,
  key: string | null = null,
  rest: Partial<AllocateCommand> = {},
): Command {
  return {
    kind: "allocate",
    name,
    count,
    key,
    cursor: null,
    keysRetainedMax: 4,
    keysRetainedMs: 100,
    ...rest,
  };
}

export function reserve(
  name: string,
  count: number,
  cursor: BlockCursor | null = null,
  rest: Partial<ReserveBlockCommand> = {},
): Command {
  return { kind: "reserve-block", name, count, defaultBlockSize: 10, cursor, ...rest };
}

export function giveBack(name: string, cursor: BlockCursor): Command {
  return { kind: "return-block", name, cursor };
}

export function collect(
  limit: number,
  retentionMs: number,
  after: Uint8Array | null = null,
): Command {
  return {
    kind: "collect",
    after,
    limit,
    lockRetentionMs: retentionMs,
    tombstoneRetentionMs: retentionMs,
  };
}
